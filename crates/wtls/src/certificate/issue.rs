//! Issuing certificates.

use super::{Certificate, CertificateError, CertificateFields, CertifiedKey};
use crate::codec::Codec;
use crate::crypto::{Key, KeyKind, Provider, Random};
use crate::numbers::{HashAlgorithm, SignatureAlgorithm};
use crate::parameters::Identifier;

pub struct Issuer<'a, P: Provider> {
    pub name: &'a Identifier,
    pub key: &'a P::PrivateKey,
}

#[derive(Debug, Clone)]
pub struct Subject {
    pub name: Identifier,
    pub public_key: CertifiedKey,
    /// When validity begins, in seconds since 1970.
    pub valid_not_before_unix_s: u32,
    pub valid_not_after_unix_s: u32,
}

pub fn issue<P: Provider>(
    provider: &P,
    issuer: &Issuer<'_, P>,
    subject: Subject,
    random: &mut dyn Random,
) -> Result<Certificate, CertificateError> {
    let kind = issuer.key.kind();
    let signature_algorithm = match kind {
        KeyKind::Rsa { .. } => SignatureAlgorithm::RsaSha,
        KeyKind::Ec(_) => SignatureAlgorithm::EcdsaSha,
        KeyKind::Dh { .. } => return Err(CertificateError::IssuerKey),
    };
    let fields = CertificateFields {
        signature_algorithm,
        issuer: issuer.name.clone(),
        valid_not_before_unix_s: subject.valid_not_before_unix_s,
        valid_not_after_unix_s: subject.valid_not_after_unix_s,
        subject: subject.name,
        public_key: subject.public_key,
    };
    let bytes = fields.to_bytes()?;
    let hash = provider.digest(HashAlgorithm::Sha1, &[&bytes]);
    let signature = match kind {
        KeyKind::Ec(_) => provider.ecdsa_sign(issuer.key, &hash, random)?,
        _ => provider.rsa_sign(issuer.key, &hash)?,
    };
    Ok(Certificate::assemble(fields, bytes, signature)?)
}

/// Issues the certificate of a root, which certifies itself.
pub fn self_signed<P: Provider>(
    provider: &P,
    key: &P::PrivateKey,
    subject: Subject,
    random: &mut dyn Random,
) -> Result<Certificate, CertificateError> {
    let name = subject.name.clone();
    issue(provider, &Issuer { name: &name, key }, subject, random)
}
