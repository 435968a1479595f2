//! Messages on a stream (kind, length, body), and the fields of bodies.

/// Kind and length.
pub const HEADER_BYTES: usize = 3;
/// Maximum length of a body.
pub const MAX_BODY_BYTES: usize = u16::MAX as usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("a message of unknown kind {kind}")]
    Kind { kind: u8 },
    #[error("a message of kind {kind} with an invalid body")]
    Body { kind: u8 },
}

/// Appends a message. A body longer than [`MAX_BODY_BYTES`] is truncated; senders do not exceed it.
pub fn put(out: &mut Vec<u8>, kind: u8, body: &[u8]) {
    let body = &body[..body.len().min(MAX_BODY_BYTES)];
    let length = u16::try_from(body.len()).unwrap_or(u16::MAX);
    out.push(kind);
    out.extend(length.to_be_bytes());
    out.extend(body);
}

/// Reassembles messages from chunks of a stream. Holds at most a message and a chunk.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    buffer: Vec<u8>,
    read: usize,
}

impl Frames {
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.read);
        self.read = 0;
        self.buffer.extend(bytes);
    }

    pub fn next_frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let rest = self.buffer.get(self.read..)?;
        let (header, rest) = rest.split_at_checked(HEADER_BYTES)?;
        let length = usize::from(u16::from_be_bytes([header[1], header[2]]));
        let body = rest.get(..length)?.to_vec();
        let kind = header[0];
        self.read += HEADER_BYTES + length;
        Some((kind, body))
    }
}

/// Writes the fields of a body.
#[derive(Clone, Debug, Default)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    /// Bytes, preceded by their length. More than 65,535 bytes are truncated; no field is that long.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        let bytes = &bytes[..bytes.len().min(MAX_BODY_BYTES)];
        self.0.extend(u16::try_from(bytes.len()).unwrap_or(u16::MAX).to_be_bytes());
        self.0.extend(bytes);
        self
    }

    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }

    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.0.extend(value.to_be_bytes());
        self
    }
}

/// Reads the fields of a body; `None` if it ends early.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// Bytes, preceded by their length.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.take(2)?;
        self.take(usize::from(u16::from_be_bytes([length[0], length[1]])))
    }

    pub fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// Whether an optional field follows; only 0 and 1 are valid.
    pub fn flag(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_be_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_be_bytes)
    }

    /// `read`, if the body has ended.
    pub fn end<T>(&self, read: T) -> Option<T> {
        self.0.is_empty().then_some(read)
    }
}
