//! Names of keys and their parameters: Identifier, ParameterSpecifier, KeyExchangeId (§10.5.1.2).

use crate::codec::{Codec, DecodeError, EncodeError, Reader, Writer, bounded};
use crate::curve::{Curve, EcParameters};
use crate::dh::{DhGroup, DhParameters};
use crate::numbers::{KeyExchangeFamily, KeyExchangeSuite};
use std::sync::Arc;
use x509_cert::der::Decode;
use x509_cert::name::Name;

/// The IANA number of UTF-8, the character set of names.
pub const UTF_8: u16 = 106;

/// Names a key, a certificate's subject or issuer, or a shared secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Identifier {
    Null,
    Text {
        /// IANA MIBenum of the character set.
        character_set: u16,
        name: Vec<u8>,
    },
    Binary(Vec<u8>),
    /// SHA-1 of the modulus or the x-coordinate of a public key.
    KeyHash([u8; 20]),
    /// A DER-encoded distinguished name.
    X509Name(Vec<u8>),
}

impl Identifier {
    /// A name in UTF-8.
    pub fn text(name: &str) -> Self {
        Self::Text { character_set: UTF_8, name: name.as_bytes().to_vec() }
    }

    /// The name, if this is text in UTF-8 or US-ASCII.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { character_set: 3 | UTF_8, name } => core::str::from_utf8(name).ok(),
            _ => None,
        }
    }
}

impl core::fmt::Display for Identifier {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (kind, bytes) = match self {
            Self::Null => return formatter.write_str("(none)"),
            Self::Text { character_set, name } => match self.as_text() {
                Some(text) => return write!(formatter, "{}", text.escape_debug()),
                None => {
                    write!(formatter, "text in character set {character_set} ")?;
                    return write_hex(formatter, name);
                }
            },
            Self::Binary(bytes) => ("binary ", bytes.as_slice()),
            Self::KeyHash(hash) => ("key hash ", hash.as_slice()),
            Self::X509Name(name) => match Name::from_der(name) {
                Ok(name) => return write!(formatter, "{}", name.to_string().escape_debug()),
                Err(_) => ("X.509 name ", name.as_slice()),
            },
        };
        formatter.write_str(kind)?;
        write_hex(formatter, bytes)
    }
}

fn write_hex(formatter: &mut core::fmt::Formatter<'_>, bytes: &[u8]) -> core::fmt::Result {
    bytes.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
}

impl Codec for Identifier {
    fn encode(&self, to: &mut Writer) -> Result<(), EncodeError> {
        match self {
            Self::Null => to.u8(0),
            Self::Text { character_set, name } => {
                to.u8(1);
                to.u16(*character_set);
                to.v8("text identifier", name)?;
            }
            Self::Binary(bytes) => {
                to.u8(2);
                to.v8("binary identifier", bytes)?;
            }
            Self::KeyHash(hash) => {
                to.u8(254);
                to.raw(hash);
            }
            Self::X509Name(name) => {
                to.u8(255);
                to.v8("distinguished name", name)?;
            }
        }
        Ok(())
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match from.u8("identifier type")? {
            0 => Self::Null,
            1 => Self::Text {
                character_set: from.u16("character set")?,
                name: non_empty("text identifier", from)?,
            },
            2 => Self::Binary(non_empty("binary identifier", from)?),
            254 => Self::KeyHash(from.array("key hash")?),
            255 => Self::X509Name(non_empty("distinguished name", from)?),
            other => {
                return Err(DecodeError::Unassigned { field: "identifier type", value: other.into() });
            }
        })
    }
}

fn non_empty(field: &'static str, from: &mut Reader<'_>) -> Result<Vec<u8>, DecodeError> {
    Ok(bounded(field, from.v8(field)?, 1, 255)?.to_vec())
}

/// The parameters of a key or a key exchange. The structure of an explicit set depends on the suite or the key type,
/// so [`curve`](Self::curve) and [`group`](Self::group) parse it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ParameterSpecifier {
    /// An assigned number; 0 means not applicable, or specified elsewhere.
    Index(u8),
    Explicit(Vec<u8>),
}

const EXPLICIT: u8 = 255;

impl ParameterSpecifier {
    /// Nothing specified.
    pub const NONE: Self = Self::Index(0);

    /// The specifier of a curve: its number, or its private number if `private_numbers`, else its explicit
    /// parameters.
    pub fn of_curve(curve: Curve, private_numbers: bool) -> Self {
        let private = if private_numbers { curve.private_number() } else { None };
        match curve.number().or(private) {
            Some(number) => Self::Index(number),
            // Every curve of the table is short enough for its length fields.
            None => Self::Explicit(EcParameters::of(curve).to_bytes().unwrap_or_default()),
        }
    }

    /// The specifier of a Diffie–Hellman group: its number, else its explicit parameters.
    pub fn of_group(group: &DhGroup) -> Result<Self, EncodeError> {
        Ok(match group.number {
            Some(number) => Self::Index(number),
            None => Self::Explicit(DhParameters::of(group).to_bytes()?),
        })
    }

    /// Whether nothing is specified.
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }

    pub fn curve(&self, private_numbers: bool) -> Result<Curve, ParameterError> {
        match self {
            Self::Index(number) => Curve::from_number(*number, private_numbers)
                .ok_or(ParameterError::UnknownIndex { index: *number }),
            Self::Explicit(set) => {
                EcParameters::from_bytes("ECParameters", set)?.curve().ok_or(ParameterError::UnknownExplicit)
            }
        }
    }

    /// The specified Diffie–Hellman group.
    pub fn group(&self) -> Result<Arc<DhGroup>, ParameterError> {
        match self {
            Self::Index(number) => {
                DhGroup::from_number(*number).ok_or(ParameterError::UnknownIndex { index: *number })
            }
            Self::Explicit(set) => {
                DhParameters::from_bytes("DHParameters", set)?.group().ok_or(ParameterError::UnknownExplicit)
            }
        }
    }
}

/// Why parameters are rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    #[error("parameter index {index} is not known")]
    UnknownIndex { index: u8 },
    #[error("explicit parameters are neither a known curve nor an acceptable group")]
    UnknownExplicit,
    #[error("malformed parameters: {0}")]
    Malformed(#[from] DecodeError),
}

impl Codec for ParameterSpecifier {
    fn encode(&self, to: &mut Writer) -> Result<(), EncodeError> {
        match self {
            Self::Index(number) => {
                to.u8(*number);
                Ok(())
            }
            Self::Explicit(set) => {
                to.u8(EXPLICIT);
                to.v16("parameter set", set)
            }
        }
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match from.u8("parameter index")? {
            EXPLICIT => Self::Explicit(from.v16("parameter set")?.to_vec()),
            number => Self::Index(number),
        })
    }
}

/// An offered key exchange, or the name of a trusted key. The suite is kept as a number, because peers may name
/// unknown suites.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeyExchangeId {
    pub suite: u8,
    pub parameters: ParameterSpecifier,
    pub identifier: Identifier,
}

impl KeyExchangeId {
    pub fn new(suite: KeyExchangeSuite, parameters: ParameterSpecifier, identifier: Identifier) -> Self {
        Self { suite: suite.number(), parameters, identifier }
    }

    /// The suite, if it is known.
    pub fn known_suite(&self) -> Option<KeyExchangeSuite> {
        KeyExchangeSuite::from_number(self.suite).ok()
    }

    /// The suite's family, if it is known.
    pub fn family(&self) -> Option<KeyExchangeFamily> {
        self.known_suite().map(KeyExchangeSuite::family)
    }
}

impl Codec for KeyExchangeId {
    fn encode(&self, to: &mut Writer) -> Result<(), EncodeError> {
        to.u8(self.suite);
        self.parameters.encode(to)?;
        self.identifier.encode(to)
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            suite: from.u8("key exchange suite")?,
            parameters: ParameterSpecifier::decode(from)?,
            identifier: Identifier::decode(from)?,
        })
    }
}

/// An RSAPublicKey as encoded in certificates and messages: exponent and modulus with their lengths. The pre-master
/// secret of RSA ends with these bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedRsaKey(pub Vec<u8>);

impl EncodedRsaKey {
    pub fn new(exponent: &[u8], modulus: &[u8]) -> Result<Self, EncodeError> {
        let mut writer = Writer::default();
        writer.v16("RSA exponent", exponent)?;
        writer.v16("RSA modulus", modulus)?;
        Ok(Self(writer.into_bytes()))
    }

    /// Exponent and modulus.
    pub fn parts(&self) -> Result<(&[u8], &[u8]), DecodeError> {
        let mut reader = Reader::new(&self.0);
        let parts = (reader.v16("RSA exponent")?, reader.v16("RSA modulus")?);
        reader.finish("RSAPublicKey")?;
        Ok(parts)
    }
}

impl Codec for EncodedRsaKey {
    fn encode(&self, to: &mut Writer) -> Result<(), EncodeError> {
        to.raw(&self.0);
        Ok(())
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let start = from.position();
        bounded("RSA exponent", from.v16("RSA exponent")?, 1, 0xFFFF)?;
        bounded("RSA modulus", from.v16("RSA modulus")?, 1, 0xFFFF)?;
        Ok(Self(from.since(start).to_vec()))
    }
}
