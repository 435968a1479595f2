//! Verification of a chain, from the trust anchor down.
//!
//! A signature is only checked with a key that is already trusted, so a stranger's long chain costs
//! no more than one verification.

use super::{Certificate, CertifiedKey, ServiceName};
use crate::codec::{DecodeError, EncodeError};
use crate::crypto::{CryptoError, Provider};
use crate::numbers::{HashAlgorithm, KeyExchangeFamily, PublicKeyType, SignatureAlgorithm};
use crate::parameters::{Identifier, ParameterError};

/// Why a certificate or a chain was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// No certificate at all.
    #[error("there is no certificate")]
    Missing,
    /// A form other than WTLS's own.
    #[error("certificates of this format are not taken")]
    Format,
    /// Malformed contents.
    #[error("malformed certificate: {0}")]
    Malformed(#[from] DecodeError),
    /// A key with unknown parameters.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
    /// A key that is no valid key, or a signature that does not verify.
    #[error(transparent)]
    Crypto(#[from] CryptoError),
    /// Not yet or no longer valid.
    #[error("the certificate of {subject} is valid from {from_unix_s} to {to_unix_s}, now is {now_unix_s}")]
    NotValidNow {
        /// Whose certificate.
        subject: String,
        /// Begin of validity.
        from_unix_s: u32,
        /// End of validity.
        to_unix_s: u32,
        /// The time of the check.
        now_unix_s: u64,
    },
    /// The issuer is neither a trust anchor nor next in the chain.
    #[error("{issuer}, who issued the certificate of {subject}, is not trusted")]
    UnknownIssuer {
        /// Whose certificate.
        subject: String,
        /// Who issued it.
        issuer: String,
    },
    /// An intermediate certificate whose subject is no certificate authority.
    #[error("{subject} is not a certificate authority")]
    NotAuthority {
        /// Whose certificate.
        subject: String,
    },
    /// A key or signature algorithm that does not go with the key exchange.
    #[error("the certificate of {subject} has a key or signature that the key exchange has no use for")]
    Unsuitable {
        /// Whose certificate.
        subject: String,
    },
    /// A server other than the one that was wanted.
    #[error("the certificate names {found:?}, wanted is {wanted:?}")]
    WrongName {
        /// The common name in the certificate.
        found: String,
        /// The one that was wanted.
        wanted: String,
    },
    /// A key larger than the suite allows.
    #[error("a key of {bits} bits exceeds the suite's limit of {limit}")]
    TooLarge {
        /// Size of the key.
        bits: u32,
        /// Limit of the suite.
        limit: u32,
    },
    /// A key that can't sign certificates.
    #[error("the issuer's key cannot sign certificates")]
    IssuerKey,
    /// A field too long for its length.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// A key that is trusted without a certificate. It is decoded once, when the anchor is made.
pub struct TrustAnchor<P: Provider> {
    /// The name by which certificates refer to it.
    pub name: Identifier,
    /// The hash by which they may refer to it instead.
    pub key_hash: [u8; 20],
    /// The kind of signature that it verifies.
    pub signature_algorithm: SignatureAlgorithm,
    key: P::PublicKey,
}

impl<P: Provider> TrustAnchor<P> {
    /// Trusts a key under a name.
    pub fn new(
        provider: &P,
        name: Identifier,
        public_key: &CertifiedKey,
        private_curves: bool,
    ) -> Result<Self, CertificateError> {
        let signature_algorithm = match public_key.key_type() {
            PublicKeyType::Rsa => SignatureAlgorithm::RsaSha,
            PublicKeyType::Ecdsa => SignatureAlgorithm::EcdsaSha,
            PublicKeyType::Ecdh => return Err(CertificateError::IssuerKey),
        };
        Ok(Self {
            name,
            key_hash: public_key.key_hash(provider, private_curves)?,
            signature_algorithm,
            key: public_key.import(provider, private_curves)?,
        })
    }

    /// Trusts the subject of a certificate, which is usually self-signed. Its signature and validity
    /// are not looked at: trust in a root does not come from itself.
    pub fn from_certificate(
        provider: &P,
        certificate: &Certificate,
        private_curves: bool,
    ) -> Result<Self, CertificateError> {
        let fields = certificate.fields();
        Self::new(provider, fields.subject.clone(), &fields.public_key, private_curves)
    }

    /// Whether a certificate's issuer field means this anchor.
    pub fn is(&self, issuer: &Identifier) -> bool {
        match issuer {
            Identifier::KeyHash(hash) => *hash == self.key_hash,
            other => *other == self.name,
        }
    }
}

/// What is asked of a chain.
#[derive(Debug, Clone, Copy)]
pub struct ChainPolicy<'a> {
    /// What the leaf's key is for.
    pub family: KeyExchangeFamily,
    /// Seconds since 1970.
    pub now_unix_s: u64,
    /// Whether private curve numbers are understood.
    pub private_curves: bool,
    /// Whether intermediates must be marked `T=ca`, as WAP-261 wants and WAP-199 did not.
    pub require_authority_mark: bool,
    /// The common name that the leaf must have.
    pub name: Option<&'a str>,
}

/// A chain that was verified, and the leaf's key.
pub struct VerifiedChain<P: Provider> {
    /// The leaf's key, decoded and validated.
    pub key: P::PublicKey,
}

/// Verifies `chain`, leaf first, up to one of `anchors`. What lies beyond the first certificate that
/// an anchor issued, such as the root itself, is ignored.
pub fn verify_chain<P: Provider>(
    provider: &P,
    chain: &[Certificate],
    anchors: &[TrustAnchor<P>],
    policy: &ChainPolicy<'_>,
) -> Result<VerifiedChain<P>, CertificateError> {
    let leaf = chain.first().ok_or(CertificateError::Missing)?;
    let top = check_links(chain, anchors, policy)?;
    let mut signer_key = None;
    for (index, certificate) in chain[..=top].iter().enumerate().rev() {
        match &signer_key {
            Some(key) => verify_signature(provider, certificate, key)?,
            None => verify_with_anchors(provider, certificate, anchors)?,
        }
        let key = certificate.fields().public_key.import(provider, policy.private_curves)?;
        if index == 0 {
            check_name(leaf, policy.name)?;
            return Ok(VerifiedChain { key });
        }
        signer_key = Some(key);
    }
    Err(CertificateError::Missing)
}

/// Checks everything but signatures, and returns the index of the certificate that an anchor issued.
fn check_links<P: Provider>(
    chain: &[Certificate],
    anchors: &[TrustAnchor<P>],
    policy: &ChainPolicy<'_>,
) -> Result<usize, CertificateError> {
    for (index, certificate) in chain.iter().enumerate() {
        check_suitable(certificate, index == 0, policy)?;
        check_validity(certificate, policy.now_unix_s)?;
        let fields = certificate.fields();
        if anchors.iter().any(|anchor| anchor.is(&fields.issuer)) {
            return Ok(index);
        }
        let next = chain.get(index + 1).filter(|next| next.fields().subject == fields.issuer);
        if next.is_none() {
            return Err(CertificateError::UnknownIssuer {
                subject: fields.subject.to_string(),
                issuer: fields.issuer.to_string(),
            });
        }
    }
    Err(CertificateError::Missing)
}

/// §10.5.2: with RSA all keys and signatures are RSA; with ECDH_ECDSA the leaf's key is for ECDH, the
/// others for ECDSA, and all signatures are ECDSA.
fn check_suitable(
    certificate: &Certificate,
    is_leaf: bool,
    policy: &ChainPolicy<'_>,
) -> Result<(), CertificateError> {
    let fields = certificate.fields();
    let suitable = match policy.family {
        KeyExchangeFamily::EcdhEcdsa => {
            let wanted = if is_leaf { PublicKeyType::Ecdh } else { PublicKeyType::Ecdsa };
            fields.public_key.key_type() == wanted
                && fields.signature_algorithm == SignatureAlgorithm::EcdsaSha
        }
        _ => {
            fields.public_key.key_type() == PublicKeyType::Rsa
                && fields.signature_algorithm == SignatureAlgorithm::RsaSha
        }
    };
    if !suitable {
        return Err(CertificateError::Unsuitable { subject: fields.subject.to_string() });
    }
    let is_authority = || {
        let name = fields.subject.as_text().map(ServiceName::parse);
        name.is_some_and(|name| name.is_authority())
    };
    if !is_leaf && policy.require_authority_mark && !is_authority() {
        return Err(CertificateError::NotAuthority { subject: fields.subject.to_string() });
    }
    Ok(())
}

fn check_validity(certificate: &Certificate, now_unix_s: u64) -> Result<(), CertificateError> {
    let fields = certificate.fields();
    let (from_unix_s, to_unix_s) = (fields.valid_not_before_unix_s, fields.valid_not_after_unix_s);
    if (u64::from(from_unix_s)..=u64::from(to_unix_s)).contains(&now_unix_s) {
        return Ok(());
    }
    let subject = fields.subject.to_string();
    Err(CertificateError::NotValidNow { subject, from_unix_s, to_unix_s, now_unix_s })
}

fn check_name(leaf: &Certificate, wanted: Option<&str>) -> Result<(), CertificateError> {
    let Some(wanted) = wanted else { return Ok(()) };
    let subject = leaf.fields().subject.as_text().unwrap_or_default();
    let found = ServiceName::parse(subject).common_name;
    if found == wanted {
        return Ok(());
    }
    Err(CertificateError::WrongName { found, wanted: wanted.to_owned() })
}

/// Several anchors may go by one name.
fn verify_with_anchors<P: Provider>(
    provider: &P,
    certificate: &Certificate,
    anchors: &[TrustAnchor<P>],
) -> Result<(), CertificateError> {
    let fields = certificate.fields();
    let mut result = None;
    for anchor in anchors.iter().filter(|anchor| anchor.is(&fields.issuer)) {
        if anchor.signature_algorithm == fields.signature_algorithm {
            let verified = verify_signature(provider, certificate, &anchor.key);
            if verified.is_ok() {
                return verified;
            }
            result = Some(verified);
        }
    }
    result.unwrap_or_else(|| Err(CertificateError::Unsuitable { subject: fields.subject.to_string() }))
}

fn verify_signature<P: Provider>(
    provider: &P,
    certificate: &Certificate,
    key: &P::PublicKey,
) -> Result<(), CertificateError> {
    let hash = provider.digest(HashAlgorithm::Sha1, &[certificate.signed_part()]);
    match certificate.fields().signature_algorithm {
        SignatureAlgorithm::RsaSha => provider.rsa_verify(key, &hash, certificate.signature())?,
        SignatureAlgorithm::EcdsaSha => provider.ecdsa_verify(key, &hash, certificate.signature())?,
        SignatureAlgorithm::Anonymous => return Err(CryptoError::BadSignature.into()),
    }
    Ok(())
}
