//! Parsing of packets: only their form is checked.

use super::{AUTHENTICATOR_BYTES, Authenticator, HEADER_BYTES, MAX_PACKET_BYTES, attribute};

/// Why bytes are not a RADIUS packet. Such datagrams are dropped without a response (RFC 2865 section 3).
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

/// A packet with consistent length and attributes.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// The bytes up to the length that the packet states.
    bytes: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    pub kind: u8,
    pub value: &'a [u8],
    /// The offset of the value in the packet.
    pub offset: usize,
}

impl<'a> Packet<'a> {
    /// Parses a datagram; the bytes after the packet are padding (RFC 2865 section 3).
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

    /// One of [`code`](super::code), or another.
    pub fn code(&self) -> u8 {
        self.bytes[0]
    }

    /// The number that a response shares with its request.
    pub fn identifier(&self) -> u8 {
        self.bytes[1]
    }

    /// A request's random number, or the Response Authenticator.
    pub fn authenticator(&self) -> Authenticator {
        let mut authenticator = [0; AUTHENTICATOR_BYTES];
        authenticator.copy_from_slice(&self.bytes[4..HEADER_BYTES]);
        authenticator
    }

    /// The attributes in the order of the packet.
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

    /// The EAP packet, joined from its attributes in their order (RFC 3579 section 3.1); `None` without any.
    pub fn eap_message(&self) -> Option<Vec<u8>> {
        let mut pieces = self.all(attribute::EAP_MESSAGE).peekable();
        pieces.peek()?;
        Some(pieces.flatten().copied().collect())
    }
}
