//! EAP packets (RFC 3748 section 4).

/// Code, identifier, length.
pub const HEADER_BYTES: usize = 4;

/// Maximum length of a stored identity; the rest is cut off.
pub const MAX_IDENTITY_BYTES: usize = 253;

/// The code of a packet (RFC 3748 section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    Request = 1,
    Response = 2,
    Success = 3,
    Failure = 4,
}

/// Types of requests and responses (RFC 3748 section 5).
pub mod kind {
    pub const IDENTITY: u8 = 1;
    pub const NOTIFICATION: u8 = 2;
    pub const NAK: u8 = 3;
    pub const TLS: u8 = 13;
}

/// Why bytes are not an EAP packet. They are discarded silently (RFC 3748 section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EapError {
    #[error("{bytes} bytes are not an EAP packet; accepted: {HEADER_BYTES} or more")]
    TooShort { bytes: usize },
    #[error("an EAP packet has the code {code}; accepted: 1 to 4")]
    Code { code: u8 },
    #[error("an EAP packet states {length} bytes and has {bytes}")]
    Length { length: usize, bytes: usize },
    #[error("an EAP request or response has no type")]
    NoType,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    pub code: Code,
    /// The number that a response shares with its request.
    pub identifier: u8,
    /// Type of a request or response; 0 in Success and Failure.
    pub kind: u8,
    pub data: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Parses a packet; the bytes after it are padding of the lower layer.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, EapError> {
        let &[code, identifier, high, low, ref rest @ ..] = bytes else {
            return Err(EapError::TooShort { bytes: bytes.len() });
        };
        let code = match code {
            1 => Code::Request,
            2 => Code::Response,
            3 => Code::Success,
            4 => Code::Failure,
            _ => return Err(EapError::Code { code }),
        };
        let length = usize::from(u16::from_be_bytes([high, low]));
        let wrong = EapError::Length { length, bytes: bytes.len() };
        let data = length.checked_sub(HEADER_BYTES).and_then(|length| rest.get(..length)).ok_or(wrong)?;
        if matches!(code, Code::Success | Code::Failure) {
            return Ok(Self { code, identifier, kind: 0, data });
        }
        let (&kind, data) = data.split_first().ok_or(EapError::NoType)?;
        Ok(Self { code, identifier, kind, data })
    }
}

/// Builds a request or response.
pub fn packet(code: Code, identifier: u8, kind: u8, data: &[u8]) -> Vec<u8> {
    let mut bytes = header(code, identifier, HEADER_BYTES + 1 + data.len());
    bytes.push(kind);
    bytes.extend(data);
    bytes
}

/// Builds a Success or Failure.
pub fn result(code: Code, identifier: u8) -> Vec<u8> {
    header(code, identifier, HEADER_BYTES)
}

fn header(code: Code, identifier: u8, length: usize) -> Vec<u8> {
    let [high, low] = u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes();
    vec![code as u8, identifier, high, low]
}
