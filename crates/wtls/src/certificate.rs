//! WTLS certificates (§10.5.2), a compact form without serial numbers, extensions or wrappers, and X.509 certificates.

mod chain;
mod issue;
mod name;
mod peer;
mod verify;
mod x509;

pub use chain::ChainCertificate;
pub use issue::{Issuer, Subject, issue, self_signed};
pub use name::ServiceName;
pub use peer::PeerIdentity;
pub use verify::{CertificateError, ChainPolicy, Holder, TrustAnchor, VerifiedChain, verify_chain};
pub use x509::{X509Certificate, X509Error};

use crate::codec::{Codec, DecodeError, EncodeError, Reader, Writer, bits, bounded, significant};
use crate::crypto::{CryptoError, KeyKind, Provider, PublicKeyRef};
use crate::curve::Curve;
use crate::numbers::{HashAlgorithm, PublicKeyType, SignatureAlgorithm};
use crate::parameters::{EncodedRsaKey, Identifier, ParameterError, ParameterSpecifier};

/// The only certificate version.
pub const CERTIFICATE_VERSION: u8 = 1;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertifiedKey {
    Rsa(EncodedRsaKey),
    Ecdh(CertifiedPoint),
    Ecdsa(CertifiedPoint),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertifiedPoint {
    pub parameters: ParameterSpecifier,
    pub point: Vec<u8>,
}

impl CertifiedKey {
    pub fn key_type(&self) -> PublicKeyType {
        match self {
            Self::Rsa(_) => PublicKeyType::Rsa,
            Self::Ecdh(_) => PublicKeyType::Ecdh,
            Self::Ecdsa(_) => PublicKeyType::Ecdsa,
        }
    }

    /// Kind and size of the key.
    pub fn kind(&self, private_curves: bool) -> Result<KeyKind, ParameterError> {
        match self {
            Self::Rsa(key) => Ok(KeyKind::Rsa { bits: bits(key.parts()?.1) }),
            Self::Ecdh(key) | Self::Ecdsa(key) => Ok(KeyKind::Ec(key.parameters.curve(private_curves)?)),
        }
    }

    pub fn curve(&self, private_curves: bool) -> Option<Curve> {
        match self.kind(private_curves) {
            Ok(KeyKind::Ec(curve)) => Some(curve),
            _ => None,
        }
    }

    /// Decodes and validates the key.
    pub fn import<P: Provider>(
        &self,
        provider: &P,
        private_curves: bool,
    ) -> Result<P::PublicKey, CertificateError> {
        Ok(match self {
            Self::Rsa(key) => {
                let (exponent, modulus) = key.parts()?;
                provider.import(PublicKeyRef::Rsa { exponent, modulus })?
            }
            Self::Ecdh(key) | Self::Ecdsa(key) => {
                let curve = key.parameters.curve(private_curves)?;
                provider.import(PublicKeyRef::Ec { curve, point: &key.point })?
            }
        })
    }

    /// The hash that identifies the key: SHA-1 of the modulus or the x-coordinate (§10.5.1.2).
    pub fn key_hash<P: Provider>(
        &self,
        provider: &P,
        private_curves: bool,
    ) -> Result<[u8; 20], CertificateError> {
        let hashed = match self {
            Self::Rsa(key) => significant(key.parts()?.1),
            Self::Ecdh(key) | Self::Ecdsa(key) => {
                let field = key.parameters.curve(private_curves)?.field_bytes();
                key.point.get(1..=field).ok_or(CryptoError::InvalidKey)?
            }
        };
        let mut hash = [0; 20];
        hash.copy_from_slice(&provider.digest(HashAlgorithm::Sha1, &[hashed]));
        Ok(hash)
    }
}

impl Codec for CertifiedKey {
    fn encode(&self, to: &mut Writer) -> Result<(), EncodeError> {
        to.u8(self.key_type().number());
        match self {
            Self::Rsa(key) => {
                ParameterSpecifier::NONE.encode(to)?;
                key.encode(to)
            }
            Self::Ecdh(key) | Self::Ecdsa(key) => {
                key.parameters.encode(to)?;
                to.v8("certified point", &key.point)
            }
        }
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let key_type = PublicKeyType::from_number(from.u8("public key type")?)?;
        let parameters = ParameterSpecifier::decode(from)?;
        let mut point = |parameters| -> Result<_, DecodeError> {
            let point = bounded("certified point", from.v8("certified point")?, 1, 255)?.to_vec();
            Ok(CertifiedPoint { parameters, point })
        };
        Ok(match key_type {
            PublicKeyType::Rsa => Self::Rsa(EncodedRsaKey::decode(from)?),
            PublicKeyType::Ecdh => Self::Ecdh(point(parameters)?),
            PublicKeyType::Ecdsa => Self::Ecdsa(point(parameters)?),
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFields {
    pub signature_algorithm: SignatureAlgorithm,
    pub issuer: Identifier,
    /// Begin of validity, in seconds since 1970.
    pub valid_not_before_unix_s: u32,
    /// End of validity, in seconds since 1970.
    pub valid_not_after_unix_s: u32,
    pub subject: Identifier,
    pub public_key: CertifiedKey,
}

impl Codec for CertificateFields {
    fn encode(&self, to: &mut Writer) -> Result<(), EncodeError> {
        to.u8(CERTIFICATE_VERSION);
        to.u8(self.signature_algorithm.number());
        self.issuer.encode(to)?;
        to.u32(self.valid_not_before_unix_s);
        to.u32(self.valid_not_after_unix_s);
        self.subject.encode(to)?;
        self.public_key.encode(to)
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let version = from.u8("certificate version")?;
        if version != CERTIFICATE_VERSION {
            let field = "certificate version";
            return Err(DecodeError::Unassigned { field, value: version.into() });
        }
        Ok(Self {
            signature_algorithm: SignatureAlgorithm::from_number(from.u8("signature algorithm")?)?,
            issuer: Identifier::decode(from)?,
            valid_not_before_unix_s: from.u32("valid_not_before")?,
            valid_not_after_unix_s: from.u32("valid_not_after")?,
            subject: Identifier::decode(from)?,
            public_key: CertifiedKey::decode(from)?,
        })
    }
}

/// A certificate: its fields, its signature, and the received bytes, over which the signature is computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    bytes: Vec<u8>,
    signed_bytes: usize,
    fields: CertificateFields,
    signature: Vec<u8>,
}

/// The PEM label.
const PEM_LABEL: &str = "WTLS CERTIFICATE";

/// Why a text is not a certificate in PEM form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PemError {
    #[error("not in PEM form: {0}")]
    Malformed(String),
    #[error("holds a {found}, not a {PEM_LABEL}")]
    WrongLabel { found: String },
    #[error(transparent)]
    Certificate(#[from] DecodeError),
}

impl Certificate {
    /// Appends the signature to the signed part.
    fn assemble(
        fields: CertificateFields,
        mut bytes: Vec<u8>,
        signature: Vec<u8>,
    ) -> Result<Self, EncodeError> {
        let signed_bytes = bytes.len();
        if fields.signature_algorithm != SignatureAlgorithm::Anonymous {
            let mut writer = Writer::appending_to(bytes);
            writer.v16("certificate signature", &signature)?;
            bytes = writer.into_bytes();
        }
        Ok(Self { bytes, signed_bytes, fields, signature })
    }

    pub fn fields(&self) -> &CertificateFields {
        &self.fields
    }

    /// The whole certificate as sent.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn signed_part(&self) -> &[u8] {
        &self.bytes[..self.signed_bytes]
    }

    /// The signature; empty if anonymous.
    pub fn signature(&self) -> &[u8] {
        &self.signature
    }

    /// The PEM form.
    pub fn to_pem(&self) -> String {
        let pem = pem::Pem::new(PEM_LABEL, self.bytes.clone());
        pem::encode_config(&pem, pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF))
    }

    pub fn from_pem(text: &str) -> Result<Self, PemError> {
        let pem = pem::parse(text).map_err(|error| PemError::Malformed(error.to_string()))?;
        if pem.tag() != PEM_LABEL {
            return Err(PemError::WrongLabel { found: pem.tag().to_owned() });
        }
        Ok(Self::from_bytes("certificate", pem.contents())?)
    }
}

impl Codec for Certificate {
    fn encode(&self, to: &mut Writer) -> Result<(), EncodeError> {
        to.raw(&self.bytes);
        Ok(())
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let start = from.position();
        let fields = CertificateFields::decode(from)?;
        let signed_bytes = from.position() - start;
        let signature = match fields.signature_algorithm {
            SignatureAlgorithm::Anonymous => Vec::new(),
            _ => from.v16("certificate signature")?.to_vec(),
        };
        Ok(Self { bytes: from.since(start).to_vec(), signed_bytes, fields, signature })
    }
}
