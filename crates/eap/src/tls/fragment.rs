//! Fragmentation and reassembly of flights.

use super::{MAX_FLIGHT_BYTES, Message};

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FragmentError {
    #[error("a fragment that others follow has no data")]
    Empty,
    #[error("the first of several fragments does not announce a length")]
    NotAnnounced,
    #[error("a flight of {bytes} bytes; accepted: up to {MAX_FLIGHT_BYTES}")]
    TooLong { bytes: usize },
    #[error("a fragment announces {now} bytes, and an earlier one {before}")]
    LengthChanged { before: usize, now: usize },
    #[error("fragments hold {bytes} bytes, and {announced} were announced")]
    TooMuch { announced: usize, bytes: usize },
    #[error("the last fragment ends after {bytes} bytes, and {announced} were announced")]
    TooLittle { announced: usize, bytes: usize },
}

/// The kind of a received message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// Nothing new: an acknowledgement.
    Acknowledgement,
    /// A fragment that others follow; it must be acknowledged.
    Fragment,
    Flight(Vec<u8>),
}

#[derive(Clone, Debug, Default)]
pub struct Reassembly {
    buffer: Vec<u8>,
    announced: Option<usize>,
}

impl Reassembly {
    /// Processes a message.
    ///
    /// # Errors
    /// [`FragmentError`]; the reassembly cannot continue after it.
    pub fn push(&mut self, message: &Message<'_>) -> Result<Received, FragmentError> {
        if self.buffer.is_empty() && message.is_acknowledgement() {
            return Ok(Received::Acknowledgement);
        }
        if let Some(length) = message.length {
            let now = usize::try_from(length).unwrap_or(usize::MAX);
            if now > MAX_FLIGHT_BYTES {
                return Err(FragmentError::TooLong { bytes: now });
            }
            match self.announced {
                Some(before) if before != now => return Err(FragmentError::LengthChanged { before, now }),
                _ => self.announced = Some(now),
            }
        }
        let bytes = self.buffer.len() + message.data.len();
        if message.more && message.data.is_empty() {
            return Err(FragmentError::Empty);
        }
        if message.more && self.announced.is_none() {
            return Err(FragmentError::NotAnnounced);
        }
        if bytes > MAX_FLIGHT_BYTES {
            return Err(FragmentError::TooLong { bytes });
        }
        if let Some(announced) = self.announced {
            // A fragment that others follow cannot contain the last announced byte.
            if bytes > announced || message.more && bytes == announced {
                return Err(FragmentError::TooMuch { announced, bytes });
            }
            if !message.more && bytes < announced {
                return Err(FragmentError::TooLittle { announced, bytes });
            }
        }
        // Grows with the received data, not with the announced length.
        self.buffer.extend(message.data);
        if message.more {
            return Ok(Received::Fragment);
        }
        self.announced = None;
        Ok(Received::Flight(std::mem::take(&mut self.buffer)))
    }
}

#[derive(Clone, Debug)]
pub struct Outgoing {
    flight: Vec<u8>,
    sent: usize,
    fragment_bytes: usize,
}

impl Outgoing {
    /// No flight yet; fragments will contain at most `fragment_bytes` TLS bytes, at least 1.
    pub fn new(fragment_bytes: usize) -> Self {
        Self { flight: Vec::new(), sent: 0, fragment_bytes: fragment_bytes.max(1) }
    }

    /// Reduces the size of the next fragments.
    pub fn limit(&mut self, fragment_bytes: usize) {
        self.fragment_bytes = self.fragment_bytes.min(fragment_bytes).max(1);
    }

    /// The buffer for the next flight; emptied if the last flight has been sent.
    pub fn flight(&mut self) -> &mut Vec<u8> {
        if self.sent > 0 && self.is_empty() {
            self.flight.clear();
            self.sent = 0;
        }
        &mut self.flight
    }

    /// True if the whole flight has been sent.
    pub fn is_empty(&self) -> bool {
        self.sent == self.flight.len()
    }

    /// The next fragment; the first of several announces the flight's length. An acknowledgement if none is left.
    pub fn next_message(&mut self) -> Message<'_> {
        let left = self.flight.len() - self.sent;
        let bytes = left.min(self.fragment_bytes);
        let more = bytes < left;
        let length = (self.sent == 0 && more).then(|| u32::try_from(left).unwrap_or(u32::MAX));
        let data = &self.flight[self.sent..self.sent + bytes];
        self.sent += bytes;
        Message { length, more, start: false, data }
    }
}
