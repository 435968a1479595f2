//! ServerKeyExchange, ClientKeyExchange and Finished. The bodies of the first two depend on the suite, so their
//! parsers have its family as an argument.

use crate::codec::{Codec, DecodeError, EncodeError, Reader, Writer};
use crate::key_schedule::VERIFY_DATA_BYTES;
use crate::numbers::KeyExchangeFamily;
use crate::parameters::{EncodedRsaKey, ParameterSpecifier};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerKey {
    Rsa(EncodedRsaKey),
    /// A Diffie–Hellman value.
    Dh(Vec<u8>),
    Ec(Vec<u8>),
}

/// ServerKeyExchange of the anonymous suites.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerKeyExchange {
    /// The parameters of the key; 0 for those of the client's offer.
    pub parameters: ParameterSpecifier,
    pub key: ServerKey,
}

impl ServerKeyExchange {
    /// Reads the body. Only anonymous families have this message.
    pub fn decode(family: KeyExchangeFamily, body: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(body);
        let parameters = ParameterSpecifier::decode(&mut reader)?;
        let key = match family {
            KeyExchangeFamily::RsaAnon => ServerKey::Rsa(EncodedRsaKey::decode(&mut reader)?),
            KeyExchangeFamily::DhAnon => ServerKey::Dh(reader.v16("server Y")?.to_vec()),
            KeyExchangeFamily::EcdhAnon => ServerKey::Ec(reader.v8("server point")?.to_vec()),
            _ => {
                let extra = reader.left();
                return Err(DecodeError::Trailing { structure: "ServerKeyExchange", extra });
            }
        };
        reader.finish("ServerKeyExchange")?;
        Ok(Self { parameters, key })
    }

    pub fn encode(&self, to: &mut Writer) -> Result<(), EncodeError> {
        self.parameters.encode(to)?;
        match &self.key {
            ServerKey::Rsa(key) => key.encode(to),
            ServerKey::Dh(value) => to.v16("server Y", value),
            ServerKey::Ec(point) => to.v8("server point", point),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientKeyExchange {
    Rsa(Vec<u8>),
    /// A Diffie–Hellman value.
    Dh(Vec<u8>),
    Ec(Vec<u8>),
}

impl ClientKeyExchange {
    /// Reads the body. Some clients of the time sent an RSA ciphertext without its length. The parser recognises it
    /// by the length of the modulus, `modulus_bytes`.
    pub fn decode(family: KeyExchangeFamily, modulus_bytes: usize, body: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(body);
        let exchange = match family {
            KeyExchangeFamily::Rsa | KeyExchangeFamily::RsaAnon => {
                if body.len() == modulus_bytes {
                    Self::Rsa(reader.rest().to_vec())
                } else {
                    Self::Rsa(reader.v16("encrypted secret")?.to_vec())
                }
            }
            KeyExchangeFamily::DhAnon => Self::Dh(reader.v16("client Y")?.to_vec()),
            KeyExchangeFamily::EcdhAnon | KeyExchangeFamily::EcdhEcdsa => {
                Self::Ec(reader.v8("client point")?.to_vec())
            }
            KeyExchangeFamily::Null | KeyExchangeFamily::SharedSecret => {
                let extra = reader.left();
                return Err(DecodeError::Trailing { structure: "ClientKeyExchange", extra });
            }
        };
        reader.finish("ClientKeyExchange")?;
        Ok(exchange)
    }

    pub fn encode(&self, to: &mut Writer) -> Result<(), EncodeError> {
        match self {
            Self::Rsa(ciphertext) => to.v16("encrypted secret", ciphertext),
            Self::Dh(value) => to.v16("client Y", value),
            Self::Ec(point) => to.v8("client point", point),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    /// Proof of the master secret and of all messages.
    pub verify_data: [u8; VERIFY_DATA_BYTES],
}

impl Codec for Finished {
    fn encode(&self, to: &mut Writer) -> Result<(), EncodeError> {
        to.raw(&self.verify_data);
        Ok(())
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { verify_data: from.array("verify data")? })
    }
}
