//! What a chain is made of: certificates of either form, asked the same questions.

use super::{Certificate, CertificateError, CertifiedKey, Holder, ServiceName, X509Certificate};
use crate::crypto::{CryptoError, Provider};
use crate::numbers::{HashAlgorithm, SignatureAlgorithm};
use crate::parameters::Identifier;
use std::borrow::Cow;

/// A certificate in a form that is understood here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChainCertificate {
    Wtls(Certificate),
    /// X.509.
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
    /// Whose key it certifies.
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

    /// The key. X.509 does not say what a point is for: in a leaf, for agreement; in an issuer, for signatures.
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

    /// Whether it may certify others, of whom `below` intermediates stand between it and the leaf. WTLS's own
    /// form says so in the name (`T=ca`, as WAP-261 wants and WAP-199 did not).
    pub fn may_certify(&self, below: usize) -> bool {
        match self {
            Self::Wtls(certificate) => {
                let name = certificate.fields().subject.as_text().map(ServiceName::parse);
                name.is_some_and(|name| name.is_authority())
            }
            Self::X509(certificate) => certificate.extensions.may_certify(below),
        }
    }

    /// Whether a leaf's key may do what it does in a handshake of such a holder. WTLS's own form does not say.
    pub fn may_take_part(&self, holder: Holder) -> bool {
        match self {
            Self::Wtls(_) => true,
            Self::X509(certificate) => certificate.may_take_part(holder),
        }
    }

    /// Whether it is a certificate for such a holder, or for its issuers. WTLS's own form does not say.
    pub fn is_for(&self, holder: Holder) -> bool {
        match self {
            Self::Wtls(_) => true,
            Self::X509(certificate) => certificate.extensions.is_for(holder),
        }
    }

    /// Checks that it certifies a host of this name.
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
