//! X.509 certificates, as far as WTLS uses them (WAP-211, RFC 5280).
//!
//! Names are sent and compared in their encoded form. An EC key is for key agreement in a leaf and for signatures in
//! an issuer, because X.509 does not distinguish the two.

mod extensions;
mod key;
mod signature;

use super::{CertificateError, CertifiedKey, Holder};
use crate::crypto::Provider;
use crate::parameters::Identifier;
use core::ops::Range;
use extensions::Extensions;
use key::SubjectKey;
use signature::Signature;
use x509_cert::der::{self, Decode, Encode, Reader, SliceReader};
use x509_cert::name::Name;

/// Why an X.509 certificate is not supported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum X509Error {
    #[error("not an X.509 certificate in DER: {0}")]
    Malformed(String),
    #[error("the X.509 certificate of {subject} has a key of the unknown kind {algorithm}")]
    KeyAlgorithm {
        subject: String,
        /// The object identifier of the kind.
        algorithm: String,
    },
    #[error("the X.509 certificate of {subject} has a key on a curve that WTLS does not have ({curve})")]
    Curve {
        subject: String,
        /// The curve's object identifier, or a text if it has none.
        curve: String,
    },
    #[error(
        "the X.509 certificate of {subject} is signed with {algorithm}; accepted: RSA (PKCS #1 v1.5) or ECDSA, with SHA-1, \
         SHA-256, SHA-384 or SHA-512"
    )]
    SignatureAlgorithm { subject: String, algorithm: String },
    #[error(
        "the X.509 certificate of {subject} limits the names that it certifies, which is not checked here"
    )]
    NameConstraints { subject: String },
    #[error(
        "the X.509 certificate of {subject} has the critical extension {extension}, which is unknown here"
    )]
    CriticalExtension { subject: String, extension: String },
}

impl From<der::Error> for X509Error {
    fn from(error: der::Error) -> Self {
        Self::Malformed(error.to_string())
    }
}

/// An X.509 certificate whose key, signature and critical extensions are understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct X509Certificate {
    der: Vec<u8>,
    /// The position of the signed part in `der`.
    signed: Range<usize>,
    subject: Identifier,
    issuer: Identifier,
    /// Seconds since 1970.
    pub(super) valid_unix_s: (u64, u64),
    key: SubjectKey,
    pub(super) signature: Signature,
    pub(super) extensions: Extensions,
    common_name: Option<String>,
}

fn identifier(name: &Name) -> der::Result<Identifier> {
    Ok(Identifier::X509Name(name.to_der()?))
}

impl X509Certificate {
    pub fn from_der(bytes: &[u8]) -> Result<Self, X509Error> {
        let decoded = x509_cert::Certificate::from_der(bytes)?;
        let contents = decoded.tbs_certificate();
        let whose = contents.subject().to_string();
        let validity = contents.validity();
        let algorithms = (contents.signature(), decoded.signature_algorithm());
        let signature = Signature::read(algorithms, decoded.signature(), &whose)?;
        Ok(Self {
            signed: signed_part(bytes)?,
            subject: identifier(contents.subject())?,
            issuer: identifier(contents.issuer())?,
            valid_unix_s: (
                validity.not_before.to_unix_duration().as_secs(),
                validity.not_after.to_unix_duration().as_secs(),
            ),
            key: SubjectKey::read(contents.subject_public_key_info(), &whose)?,
            signature,
            extensions: Extensions::read(contents.extensions().map_or(&[][..], Vec::as_slice), &whose)?,
            // A common name in an unsupported string type is ignored.
            common_name: contents
                .subject()
                .common_name()
                .ok()
                .flatten()
                .map(|name| name.value().into_owned()),
            der: bytes.to_vec(),
        })
    }

    /// The whole certificate as sent.
    pub fn as_bytes(&self) -> &[u8] {
        &self.der
    }

    /// The owner of the certified key.
    pub fn subject(&self) -> &Identifier {
        &self.subject
    }

    pub fn issuer(&self) -> &Identifier {
        &self.issuer
    }

    /// The key: for key agreement if the certificate is a leaf, for signatures if it is an issuer's.
    pub fn public_key(&self, is_leaf: bool) -> CertifiedKey {
        self.key.certified(is_leaf)
    }

    /// Whether key usage permits a leaf's key in handshakes of this holder.
    pub fn may_take_part(&self, holder: Holder) -> bool {
        self.extensions.may_take_part(holder, matches!(self.key, SubjectKey::Rsa(_)))
    }

    /// Whether the certificate is for this host: by its alternative names, else by its common name (RFC 6125).
    pub fn names(&self, host: &str) -> bool {
        match self.extensions.host_names.as_slice() {
            [] => self.common_name.as_deref() == Some(host),
            names => names.iter().any(|name| matches(name, host)),
        }
    }

    pub fn host_names(&self) -> String {
        match self.extensions.host_names.as_slice() {
            [] => self.common_name.clone().unwrap_or_default(),
            names => names.join(", "),
        }
    }

    /// Verifies that `key` signed this certificate.
    pub fn verify<P: Provider>(&self, provider: &P, key: &P::PublicKey) -> Result<(), CertificateError> {
        Ok(self.signature.verify(provider, key, &self.der[self.signed.clone()])?)
    }
}

/// The position of the first element of the outer sequence.
fn signed_part(bytes: &[u8]) -> der::Result<Range<usize>> {
    let mut reader = SliceReader::new(bytes)?;
    let header = der::Header::decode(&mut reader)?;
    let start = usize::try_from(header.encoded_len()?)?;
    let length = reader.tlv_bytes()?.len();
    Ok(start..start + length)
}

/// A name, or a pattern whose first label is `*`, which stands for any one label.
fn matches(pattern: &str, host: &str) -> bool {
    match pattern.strip_prefix("*.") {
        Some(rest) => host
            .split_once('.')
            .is_some_and(|(label, domain)| !label.is_empty() && domain.eq_ignore_ascii_case(rest)),
        None => pattern.eq_ignore_ascii_case(host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcard_matches_one_label() {
        assert!(matches("gw.example", "GW.example"));
        assert!(matches("*.example", "gw.example"));
        assert!(!matches("*.example", "a.gw.example"));
        assert!(!matches("*.example", "example"));
        assert!(!matches("*.example", ".example"));
        assert!(!matches("gw.example", "gw.example.net"));
    }
}
