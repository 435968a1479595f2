//! The certificates of a chain: one interface to both forms.

use super::{Certificate, CertificateError, CertifiedKey, Holder, ServiceName, X509Certificate};
use crate::crypto::{CryptoError, Provider};
use crate::numbers::{HashAlgorithm, SignatureAlgorithm};
use crate::parameters::Identifier;
use std::borrow::Cow;

/// A certificate in a supported form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChainCertificate {
    Wtls(Certificate),
    X509(Box<X509Certificate>),
}

impl From<Certificate> for ChainCertificate {
    fn from(certificate: Certificate) -> Self {
        Self::Wtls(certificate)
    }
}

impl From<X509Certificate> for ChainCertificate {
    fn from(certificate: X509Certificate) -> Self {
        Self::X509(Box::new(certificate))
    }
}

impl ChainCertificate {
    /// The owner of the certified key.
    pub fn subject(&self) -> &Identifier {
        match self {
            Self::Wtls(certificate) => &certificate.fields().subject,
            Self::X509(certificate) => certificate.subject(),
        }
    }

    pub fn issuer(&self) -> &Identifier {
        match self {
            Self::Wtls(certificate) => &certificate.fields().issuer,
            Self::X509(certificate) => certificate.issuer(),
        }
    }

    /// Begin and end of validity, in seconds since 1970.
    pub fn validity_unix_s(&self) -> (u64, u64) {
        match self {
            Self::Wtls(certificate) => {
                let fields = certificate.fields();
                (fields.valid_not_before_unix_s.into(), fields.valid_not_after_unix_s.into())
            }
            Self::X509(certificate) => certificate.valid_unix_s,
        }
    }

    /// The key. X.509 does not state the use of an EC key: a leaf's is for key agreement, an issuer's for signatures.
    pub fn public_key(&self, is_leaf: bool) -> Cow<'_, CertifiedKey> {
        match self {
            Self::Wtls(certificate) => Cow::Borrowed(&certificate.fields().public_key),
            Self::X509(certificate) => Cow::Owned(certificate.public_key(is_leaf)),
        }
    }

    pub fn signature_algorithm(&self) -> SignatureAlgorithm {
        match self {
            Self::Wtls(certificate) => certificate.fields().signature_algorithm,
            Self::X509(certificate) => certificate.signature.algorithm,
        }
    }

    /// Whether the certificate may certify others, with `below` intermediates between it and the leaf. A WTLS
    /// certificate states this in its name (`T=ca`, required by WAP-261 but not by WAP-199).
    pub fn may_certify(&self, below: usize) -> bool {
        match self {
            Self::Wtls(certificate) => {
                let name = certificate.fields().subject.as_text().map(ServiceName::parse);
                name.is_some_and(|name| name.is_authority())
            }
            Self::X509(certificate) => certificate.extensions.may_certify(below),
        }
    }

    /// Whether key usage permits a leaf's key in handshakes of this holder. WTLS certificates have no key usage.
    pub fn may_take_part(&self, holder: Holder) -> bool {
        match self {
            Self::Wtls(_) => true,
            Self::X509(certificate) => certificate.may_take_part(holder),
        }
    }

    /// Whether extended key usage permits this holder. WTLS certificates have no extended key usage.
    pub fn is_for(&self, holder: Holder) -> bool {
        match self {
            Self::Wtls(_) => true,
            Self::X509(certificate) => certificate.extensions.is_for(holder),
        }
    }

    /// Checks that the certificate is for this host.
    pub fn check_host(&self, wanted: &str) -> Result<(), CertificateError> {
        let (right, found) = match self {
            Self::Wtls(certificate) => {
                let subject = certificate.fields().subject.as_text().unwrap_or_default();
                let found = ServiceName::common_name_of(subject);
                (found == wanted, found)
            }
            Self::X509(certificate) => (certificate.names(wanted), certificate.host_names().into()),
        };
        let wrong = || CertificateError::WrongName { found: found.into_owned(), wanted: wanted.to_owned() };
        if right { Ok(()) } else { Err(wrong()) }
    }

    /// Verifies that `key` signed this certificate.
    pub fn verify<P: Provider>(&self, provider: &P, key: &P::PublicKey) -> Result<(), CertificateError> {
        let certificate = match self {
            Self::Wtls(certificate) => certificate,
            Self::X509(certificate) => return certificate.verify(provider, key),
        };
        let hash = provider.digest(HashAlgorithm::Sha1, &[certificate.signed_part()]);
        match certificate.fields().signature_algorithm {
            SignatureAlgorithm::RsaSha => provider.rsa_verify(key, &hash, certificate.signature())?,
            SignatureAlgorithm::EcdsaSha => provider.ecdsa_verify(key, &hash, certificate.signature())?,
            SignatureAlgorithm::Anonymous => return Err(CryptoError::BadSignature.into()),
        }
        Ok(())
    }
}
