//! A received packet, checked for its form and nothing else.

use super::{AUTHENTICATOR_BYTES, Authenticator, HEADER_BYTES, MAX_PACKET_BYTES, attribute};

/// Bytes that are no RADIUS packet. Such datagrams are dropped without an answer (RFC 2865 section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    #[error("{bytes} bytes are not a RADIUS packet; accepted: {HEADER_BYTES} or more")]
    TooShort { bytes: usize },
    #[error("a RADIUS packet states {length} bytes; accepted: {HEADER_BYTES} to {MAX_PACKET_BYTES}")]
    Length { length: usize },
    #[error("a RADIUS packet of {length} bytes has been cut to {bytes}")]
    Cut { length: usize, bytes: usize },
    #[error("the RADIUS attribute at byte {offset} has no room for its own header")]
    AttributeHeader { offset: usize },
    #[error("the RADIUS attribute at byte {offset} states {length} bytes, and {left} are left")]
    AttributeLength { offset: usize, length: usize, left: usize },
}

/// A packet whose length and attributes fit together.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// As long as the packet says.
    bytes: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    pub kind: u8,
    pub value: &'a [u8],
    /// Where its value begins in the packet.
    pub offset: usize,
}

impl<'a> Packet<'a> {
    /// Reads a datagram; what follows the packet in it is padding (RFC 2865 section 3).
    pub fn parse(bytes: &'a [u8]) -> Result<Self, PacketError> {
        let Some(&[high, low]) = bytes.get(2..4).filter(|_| bytes.len() >= HEADER_BYTES) else {
            return Err(PacketError::TooShort { bytes: bytes.len() });
        };
        let length = usize::from(u16::from_be_bytes([high, low]));
        if !(HEADER_BYTES..=MAX_PACKET_BYTES).contains(&length) {
            return Err(PacketError::Length { length });
        }
        let cut = PacketError::Cut { length, bytes: bytes.len() };
        let bytes = bytes.get(..length).ok_or(cut)?;
        let mut offset = HEADER_BYTES;
        while offset < length {
            let Some(&own) = bytes.get(offset + 1) else {
                return Err(PacketError::AttributeHeader { offset });
            };
            let (own, left) = (usize::from(own), length - offset);
            if own < 2 {
                return Err(PacketError::AttributeHeader { offset });
            }
            if own > left {
                return Err(PacketError::AttributeLength { offset, length: own, left });
            }
            offset += own;
        }
        Ok(Self { bytes })
    }

    /// The packet without padding.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What it is for; one of [`code`](super::code), or another.
    pub fn code(&self) -> u8 {
        self.bytes[0]
    }

    /// Which request it is, or answers.
    pub fn identifier(&self) -> u8 {
        self.bytes[1]
    }

    /// A request's random number, or the proof of an answer.
    pub fn authenticator(&self) -> Authenticator {
        let mut authenticator = [0; AUTHENTICATOR_BYTES];
        authenticator.copy_from_slice(&self.bytes[4..HEADER_BYTES]);
        authenticator
    }

    /// In the packet's order.
    pub fn attributes(&self) -> impl Iterator<Item = Attribute<'a>> + use<'a> {
        let (bytes, mut next) = (self.bytes, HEADER_BYTES);
        std::iter::from_fn(move || {
            let &[kind, length] = bytes.get(next..next + 2)? else { return None };
            let offset = next + 2;
            next += usize::from(length);
            Some(Attribute { kind, value: bytes.get(offset..next)?, offset })
        })
    }

    pub fn all(&self, kind: u8) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.attributes().filter(move |attribute| attribute.kind == kind).map(|attribute| attribute.value)
    }

    pub fn first(&self, kind: u8) -> Option<&'a [u8]> {
        self.all(kind).next()
    }

    /// The EAP packet, whose pieces follow each other (RFC 3579 section 3.1); `None` where there is none.
    pub fn eap_message(&self) -> Option<Vec<u8>> {
        let mut pieces = self.all(attribute::EAP_MESSAGE).peekable();
        pieces.peek()?;
        Some(pieces.flatten().copied().collect())
    }
}
