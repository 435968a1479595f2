//! Reads WTLS certificates, and determines which certificate issued which.

use crate::CertsError;
use shakedown_pki::order::{Link, is_self_signed};
use shakedown_wtls::SignatureAlgorithm;
use shakedown_wtls::certificate::{Certificate, CertifiedKey, ServiceName, TrustAnchor};
use shakedown_wtls::codec::{Codec, Reader};
use shakedown_wtls::crypto::Provider;
use shakedown_wtls::provider::openssl::OpenSsl;
use std::path::Path;

const BEGIN: &str = "-----BEGIN WTLS CERTIFICATE-----";
const END: &str = "-----END WTLS CERTIFICATE-----";

/// The certificates of a file: text between dashed lines, or consecutive binary encodings. `None` for any other
/// content; `path` is the name of the file in errors.
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

/// A certificate with the primitives that determine its place in a chain.
#[derive(Clone, Copy)]
pub(super) struct Linked<'a> {
    provider: &'a OpenSsl,
    pub(super) certificate: &'a Certificate,
}

/// The certificates, in the same order.
pub(super) fn linked<'a>(provider: &'a OpenSsl, certificates: &'a [Certificate]) -> Vec<Linked<'a>> {
    certificates.iter().map(|certificate| Linked { provider, certificate }).collect()
}

impl Link for Linked<'_> {
    /// Compares the name or the hash of the key.
    fn names(&self, issuer: &Self) -> bool {
        let named = &self.certificate.fields().issuer;
        *named == issuer.certificate.fields().subject
            || TrustAnchor::from_certificate(self.provider, issuer.certificate, true)
                .is_ok_and(|anchor| anchor.is(named))
    }

    fn is_signed_by(&self, issuer: &Self) -> bool {
        let Self { provider, certificate } = self;
        let signing_key = &issuer.certificate.fields().public_key;
        let Ok(key) = signing_key.import(*provider, true) else { return false };
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

    fn subject(&self) -> String {
        self.certificate.fields().subject.to_string()
    }

    fn issuer(&self) -> String {
        self.certificate.fields().issuer.to_string()
    }

    fn validity_s(&self) -> Option<(i64, i64)> {
        let fields = self.certificate.fields();
        Some((fields.valid_not_before_unix_s.into(), fields.valid_not_after_unix_s.into()))
    }

    /// A root does not need to be marked as a CA.
    fn is_no_issuer(&self) -> Option<&'static str> {
        let is_ca = is_self_signed(self) || is_authority(self.certificate);
        (!is_ca).then_some("its name does not say that it is a CA (T=ca)")
    }
}

/// True if the name marks the subject as a CA.
fn is_authority(certificate: &Certificate) -> bool {
    certificate.fields().subject.as_text().is_some_and(|name| ServiceName::parse(name).is_authority())
}
