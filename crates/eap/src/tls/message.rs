//! The content of an EAP-TLS packet after the type (RFC 5216 section 3).

const LENGTH_INCLUDED: u8 = 0x80;
const MORE_FRAGMENTS: u8 = 0x40;
const START: u8 = 0x20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    #[error("an EAP-TLS packet has no flags")]
    NoFlags,
    #[error("an EAP-TLS packet announces a length and ends before it")]
    NoLength,
}

/// Flags, announced length and TLS bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Message<'a> {
    /// Bytes of the whole flight.
    pub length: Option<u32>,
    pub more: bool,
    /// Set in the server's first message.
    pub start: bool,
    pub data: &'a [u8],
}

impl<'a> Message<'a> {
    /// An empty message: acknowledges a fragment, or a flight without a reply.
    pub const ACKNOWLEDGEMENT: Self = Self { length: None, more: false, start: false, data: &[] };
    pub const START: Self = Self { length: None, more: false, start: true, data: &[] };

    /// Parses a message; reserved flags are ignored.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, MessageError> {
        let (&flags, rest) = bytes.split_first().ok_or(MessageError::NoFlags)?;
        let (length, data) = if flags & LENGTH_INCLUDED == 0 {
            (None, rest)
        } else {
            let (length, data) = rest.split_first_chunk::<4>().ok_or(MessageError::NoLength)?;
            (Some(u32::from_be_bytes(*length)), data)
        };
        Ok(Self { length, more: flags & MORE_FRAGMENTS != 0, start: flags & START != 0, data })
    }

    /// True for a message without data and relevant flags.
    pub fn is_acknowledgement(&self) -> bool {
        self.data.is_empty() && !self.more && !self.start && self.length.unwrap_or(0) == 0
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let flag = |set, flag| if set { flag } else { 0 };
        let mut bytes = Vec::with_capacity(5 + self.data.len());
        bytes.push(
            flag(self.length.is_some(), LENGTH_INCLUDED)
                | flag(self.more, MORE_FRAGMENTS)
                | flag(self.start, START),
        );
        bytes.extend(self.length.iter().flat_map(|length| length.to_be_bytes()));
        bytes.extend(self.data);
        bytes
    }
}
