//! The handshake messages (§10.5): one type each, parsed and written in one place.

mod certificate;
mod hello;
mod key_exchange;

pub use certificate::{CertificateEntry, CertificateList, CertificateRequest, CertificateVerify};
pub use hello::{ClientHello, ServerHello, VERSION};
pub use key_exchange::{ClientKeyExchange, Finished, ServerKey, ServerKeyExchange};

use crate::codec::{DecodeError, Reader};
use crate::numbers::HandshakeType;

pub const HEADER_BYTES: usize = 3;

/// A handshake message with an unparsed body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    pub handshake_type: HandshakeType,
    pub body: &'a [u8],
    /// Header and body, as in the transcript.
    pub raw: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Parses a record's content, which must be exactly one message.
    pub fn parse(raw: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(raw);
        let handshake_type = HandshakeType::from_number(reader.u8("handshake type")?)?;
        let body = reader.v16("handshake body")?;
        reader.finish("handshake message")?;
        Ok(Self { handshake_type, body, raw })
    }
}
