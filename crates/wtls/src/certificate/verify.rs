//! Verification of a chain, from the trust anchor down.
//!
//! A signature is only checked with a key that is already trusted, so a long forged chain costs at most one
//! verification.

use super::{Certificate, CertifiedKey, ChainCertificate, X509Certificate, X509Error};
use crate::codec::{DecodeError, EncodeError};
use crate::crypto::{CryptoError, Provider};
use crate::numbers::{KeyExchangeFamily, PublicKeyType, SignatureAlgorithm};
use crate::parameters::{Identifier, ParameterError};

/// Why a certificate or a chain was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    #[error("there is no certificate")]
    Missing,
    #[error("certificates of this format are not accepted")]
    Format,
    #[error(transparent)]
    X509(#[from] X509Error),
    #[error("malformed certificate: {0}")]
    Malformed(#[from] DecodeError),
    #[error(transparent)]
    Parameters(#[from] ParameterError),
    #[error(transparent)]
    Crypto(#[from] CryptoError),
    #[error("the certificate of {subject} is valid from {from_unix_s} to {to_unix_s}, now is {now_unix_s}")]
    NotValidNow { subject: String, from_unix_s: u64, to_unix_s: u64, now_unix_s: u64 },
    #[error("{issuer}, who issued the certificate of {subject}, is not trusted")]
    UnknownIssuer { subject: String, issuer: String },
    #[error("{subject} is not a certificate authority")]
    NotAuthority { subject: String },
    #[error("the certificate of {subject} has a key or signature that the key exchange cannot use")]
    Unsuitable { subject: String },
    #[error("the X.509 certificate of {subject} does not allow {what}")]
    Usage {
        subject: String,
        /// The use that key usage or extended key usage does not permit.
        what: &'static str,
    },
    #[error("the certificate names {found:?}, wanted is {wanted:?}")]
    WrongName { found: String, wanted: String },
    #[error("the issuer's key cannot sign certificates")]
    IssuerKey,
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// A key that is trusted without a certificate. It is decoded once, when the anchor is created.
pub struct TrustAnchor<P: Provider> {
    pub name: Identifier,
    /// The key hash, by which certificates may name the anchor instead.
    pub key_hash: [u8; 20],
    pub signature_algorithm: SignatureAlgorithm,
    key: P::PublicKey,
}

impl<P: Provider> TrustAnchor<P> {
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

    /// Trusts the subject of a certificate, which is usually self-signed. Its signature and validity are not
    /// checked: a root cannot vouch for itself.
    pub fn from_certificate(
        provider: &P,
        certificate: &Certificate,
        private_curves: bool,
    ) -> Result<Self, CertificateError> {
        let fields = certificate.fields();
        Self::new(provider, fields.subject.clone(), &fields.public_key, private_curves)
    }

    /// Trusts the subject of an X.509 certificate in the same way.
    pub fn from_x509(provider: &P, certificate: &X509Certificate) -> Result<Self, CertificateError> {
        Self::new(provider, certificate.subject().clone(), &certificate.public_key(false), false)
    }

    /// The anchor's identifier in messages: its name, or the key hash if the name is too long to send.
    pub(crate) fn identifier(&self) -> Identifier {
        match &self.name {
            Identifier::X509Name(name) if name.len() > usize::from(u8::MAX) => {
                Identifier::KeyHash(self.key_hash)
            }
            name => name.clone(),
        }
    }

    /// Whether a certificate's issuer field identifies this anchor.
    pub fn is(&self, issuer: &Identifier) -> bool {
        match issuer {
            Identifier::KeyHash(hash) => *hash == self.key_hash,
            other => *other == self.name,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Holder {
    Server,
    Client,
}

#[derive(Debug, Clone, Copy)]
pub struct ChainPolicy<'a> {
    pub holder: Holder,
    pub family: KeyExchangeFamily,
    /// Seconds since 1970.
    pub now_unix_s: u64,
    /// Whether private curve numbers are understood.
    pub private_curves: bool,
    /// The common name that the leaf must have.
    pub name: Option<&'a str>,
}

/// The result of the verification of a chain.
pub struct VerifiedChain<P: Provider> {
    /// The leaf's key, decoded and validated.
    pub key: P::PublicKey,
    /// Begin and end of the time in which every certificate that was verified is valid, in seconds
    /// since 1970.
    pub validity_unix_s: (u64, u64),
}

/// Verifies `chain`, leaf first, up to one of `anchors`. Certificates after the first one that an anchor issued, such
/// as the root itself, are ignored.
pub fn verify_chain<P: Provider>(
    provider: &P,
    chain: &[ChainCertificate],
    anchors: &[TrustAnchor<P>],
    policy: &ChainPolicy<'_>,
) -> Result<VerifiedChain<P>, CertificateError> {
    let leaf = chain.first().ok_or(CertificateError::Missing)?;
    let top = check_links(chain, anchors, policy)?;
    let mut signer_key = None;
    for (index, certificate) in chain[..=top].iter().enumerate().rev() {
        match &signer_key {
            Some(key) => certificate.verify(provider, key)?,
            None => verify_with_anchors(provider, certificate, anchors)?,
        }
        let key = certificate.public_key(index == 0).import(provider, policy.private_curves)?;
        if index == 0 {
            if let Some(wanted) = policy.name {
                leaf.check_host(wanted)?;
            }
            return Ok(VerifiedChain { key, validity_unix_s: common_validity(&chain[..=top]) });
        }
        signer_key = Some(key);
    }
    Err(CertificateError::Missing)
}

/// Checks everything but signatures, and returns the index of the certificate that an anchor issued.
fn check_links<P: Provider>(
    chain: &[ChainCertificate],
    anchors: &[TrustAnchor<P>],
    policy: &ChainPolicy<'_>,
) -> Result<usize, CertificateError> {
    for (index, certificate) in chain.iter().enumerate() {
        // Self-issued certificates do not count (RFC 5280, section 6.1.4).
        let self_issued = |link: &&ChainCertificate| link.subject() == link.issuer();
        let below = chain[..index].iter().skip(1).filter(|link| !self_issued(link)).count();
        check_suitable(certificate, index == 0, below, policy)?;
        check_validity(certificate, policy.now_unix_s)?;
        let issuer = certificate.issuer();
        if anchors.iter().any(|anchor| anchor.is(issuer)) {
            return Ok(index);
        }
        if chain.get(index + 1).is_none_or(|next| next.subject() != issuer) {
            let (subject, issuer) = (certificate.subject().to_string(), issuer.to_string());
            return Err(CertificateError::UnknownIssuer { subject, issuer });
        }
    }
    Err(CertificateError::Missing)
}

/// §10.5.2: with RSA all keys and signatures are RSA; with ECDH_ECDSA the leaf's key is for ECDH, the
/// others for ECDSA, and all signatures are ECDSA.
fn check_suitable(
    certificate: &ChainCertificate,
    is_leaf: bool,
    below: usize,
    policy: &ChainPolicy<'_>,
) -> Result<(), CertificateError> {
    let wanted = match policy.family {
        KeyExchangeFamily::EcdhEcdsa if is_leaf => (PublicKeyType::Ecdh, SignatureAlgorithm::EcdsaSha),
        KeyExchangeFamily::EcdhEcdsa => (PublicKeyType::Ecdsa, SignatureAlgorithm::EcdsaSha),
        _ => (PublicKeyType::Rsa, SignatureAlgorithm::RsaSha),
    };
    let found = (certificate.public_key(is_leaf).key_type(), certificate.signature_algorithm());
    let subject = || certificate.subject().to_string();
    if found != wanted {
        return Err(CertificateError::Unsuitable { subject: subject() });
    }
    if !is_leaf && !certificate.may_certify(below) {
        return Err(CertificateError::NotAuthority { subject: subject() });
    }
    let holder = policy.holder;
    let what = match (certificate.is_for(holder), !is_leaf || certificate.may_take_part(holder), holder) {
        (true, true, _) => return Ok(()),
        (false, _, Holder::Server) => "servers (extended key usage)",
        (false, _, Holder::Client) => "clients (extended key usage)",
        (_, false, _) if policy.family == KeyExchangeFamily::EcdhEcdsa => "key agreement (key usage)",
        (_, false, Holder::Server) => "key encipherment (key usage)",
        (_, false, Holder::Client) => "digital signatures (key usage)",
    };
    Err(CertificateError::Usage { subject: subject(), what })
}

/// The time in which all of these are valid.
fn common_validity(chain: &[ChainCertificate]) -> (u64, u64) {
    let validities = chain.iter().map(ChainCertificate::validity_unix_s);
    validities.fold((0, u64::MAX), |(from, to), next| (from.max(next.0), to.min(next.1)))
}

fn check_validity(certificate: &ChainCertificate, now_unix_s: u64) -> Result<(), CertificateError> {
    let (from_unix_s, to_unix_s) = certificate.validity_unix_s();
    if (from_unix_s..=to_unix_s).contains(&now_unix_s) {
        return Ok(());
    }
    let subject = certificate.subject().to_string();
    Err(CertificateError::NotValidNow { subject, from_unix_s, to_unix_s, now_unix_s })
}

/// Verifies with every anchor of the issuer's name: several anchors may have the same name.
fn verify_with_anchors<P: Provider>(
    provider: &P,
    certificate: &ChainCertificate,
    anchors: &[TrustAnchor<P>],
) -> Result<(), CertificateError> {
    let mut result = None;
    for anchor in anchors.iter().filter(|anchor| anchor.is(certificate.issuer())) {
        if anchor.signature_algorithm == certificate.signature_algorithm() {
            let verified = certificate.verify(provider, &anchor.key);
            if verified.is_ok() {
                return verified;
            }
            result = Some(verified);
        }
    }
    let unsuitable = || CertificateError::Unsuitable { subject: certificate.subject().to_string() };
    result.unwrap_or_else(|| Err(unsuitable()))
}
