//! Reads WTLS certificates, and finds out which was issued by which.

use crate::CertsError;
use shakedown_wtls::SignatureAlgorithm;
use shakedown_wtls::certificate::{Certificate, CertifiedKey, TrustAnchor};
use shakedown_wtls::codec::{Codec, Reader};
use shakedown_wtls::crypto::Provider;
use shakedown_wtls::provider::openssl::OpenSsl;
use std::path::Path;

const BEGIN: &str = "-----BEGIN WTLS CERTIFICATE-----";
const END: &str = "-----END WTLS CERTIFICATE-----";

/// The certificates of a file: text between dashed lines, or the bytes on the wire, one after the other. `None`
/// where it is something else; `path` is what errors call it.
///
/// # Errors
/// [`CertsError::BadWtlsCertificate`].
pub fn read_certificates(bytes: &[u8], path: &Path) -> Result<Option<Vec<Certificate>>, CertsError> {
    if let Some(text) = std::str::from_utf8(bytes).ok().filter(|text| text.contains(BEGIN)) {
        let mut certificates = Vec::new();
        for (start, _) in text.match_indices(BEGIN) {
            let rest = &text[start..];
            let block = rest.find(END).map_or(rest, |end| &rest[..end + END.len()]);
            let read = Certificate::from_pem(block).map_err(|error| CertsError::BadWtlsCertificate {
                path: path.into(),
                place: certificates.len() + 1,
                reason: error.to_string(),
            });
            certificates.push(read?);
        }
        return Ok(Some(certificates));
    }
    let mut reader = Reader::new(bytes);
    let mut certificates = Vec::new();
    while !reader.is_empty() {
        match Certificate::decode(&mut reader) {
            Ok(certificate) => certificates.push(certificate),
            Err(_) => return Ok(None),
        }
    }
    Ok((!certificates.is_empty()).then_some(certificates))
}

/// True where `certificate` names `issuer` as its issuer, by name or by the hash of its key.
pub(super) fn names_match(provider: &OpenSsl, certificate: &Certificate, issuer: &Certificate) -> bool {
    let fields = certificate.fields();
    fields.issuer == issuer.fields().subject
        || TrustAnchor::from_certificate(provider, issuer, true).is_ok_and(|anchor| anchor.is(&fields.issuer))
}

/// True where the signature of `certificate` verifies under the issuer's key.
pub(super) fn signature_holds(provider: &OpenSsl, certificate: &Certificate, issuer: &Certificate) -> bool {
    let signing_key = &issuer.fields().public_key;
    let Ok(key) = signing_key.import(provider, true) else { return false };
    let hash = provider.digest(shakedown_wtls::HashAlgorithm::Sha1, &[certificate.signed_part()]);
    let signature = certificate.signature();
    match (certificate.fields().signature_algorithm, signing_key) {
        (SignatureAlgorithm::RsaSha, CertifiedKey::Rsa(_)) => {
            provider.rsa_verify(&key, &hash, signature).is_ok()
        }
        (SignatureAlgorithm::EcdsaSha, CertifiedKey::Ecdsa(_)) => {
            provider.ecdsa_verify(&key, &hash, signature).is_ok()
        }
        _ => false,
    }
}

/// True where `issuer` has issued `certificate`.
pub(super) fn issued_by(provider: &OpenSsl, certificate: &Certificate, issuer: &Certificate) -> bool {
    names_match(provider, certificate, issuer) && signature_holds(provider, certificate, issuer)
}

/// True where a certificate is signed by its own key.
pub(super) fn is_self_signed(provider: &OpenSsl, certificate: &Certificate) -> bool {
    issued_by(provider, certificate, certificate)
}

/// The path from the certificate at `leaf` upwards as far as it goes, as places in `certificates`.
pub(super) fn path_from(provider: &OpenSsl, certificates: &[Certificate], leaf: usize) -> Vec<usize> {
    let mut path = vec![leaf];
    let mut last = leaf;
    while !is_self_signed(provider, &certificates[last]) {
        let next = (0..certificates.len()).find(|place| {
            !path.contains(place) && issued_by(provider, &certificates[last], &certificates[*place])
        });
        let Some(next) = next else { break };
        path.push(next);
        last = next;
    }
    path
}

/// The place of the leaf: the certificate that issued none of the others; the first of several.
pub(super) fn leaf_of(provider: &OpenSsl, certificates: &[Certificate]) -> usize {
    let issued_none = |place: &usize| {
        let mut others = certificates.iter().enumerate().filter(|(other, _)| other != place);
        !others.any(|(_, other)| names_match(provider, other, &certificates[*place]))
    };
    (0..certificates.len()).find(issued_none).unwrap_or(0)
}
