//! Splits the content of handshake records into messages, and attributes record overhead to them.

use super::record::Record;
use crate::message::{Mark, Span};

const HEADER_BYTES: usize = 4;
/// Bodies of larger messages are not kept.
const MAXIMUM_KEPT_BYTES: usize = 1 << 18;
/// Larger messages are rejected; the longest certificate chains are far smaller.
const MAXIMUM_BYTES: usize = 1 << 22;

pub(crate) const CLIENT_HELLO: u8 = 1;
pub(crate) const SERVER_HELLO: u8 = 2;
pub(crate) const NEW_SESSION_TICKET: u8 = 4;
pub(crate) const CERTIFICATE: u8 = 11;
pub(crate) const SERVER_KEY_EXCHANGE: u8 = 12;

/// Types whose content is used.
fn is_kept(kind: u8) -> bool {
    matches!(kind, CLIENT_HELLO | SERVER_HELLO | NEW_SESSION_TICKET | CERTIFICATE | SERVER_KEY_EXCHANGE)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) kind: u8,
    /// Without the header; `None` if it is not needed, not captured or too long.
    pub(crate) body: Option<Vec<u8>>,
    /// Bytes on the wire, including the message's share of record overhead.
    pub(crate) bytes: u64,
    pub(crate) span: Span,
}

/// The content cannot be handshake messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotMessages;

#[derive(Debug)]
struct Partial {
    header: [u8; HEADER_BYTES],
    have: usize,
    /// Bytes of the body that are still to come; valid once the header is complete.
    remaining: usize,
    body: Option<Vec<u8>>,
    bytes: u64,
    start: Mark,
}

impl Partial {
    /// True if this message fills the content, or continues after it.
    fn reaches(&self, plain: &[u8]) -> bool {
        let taken = (HEADER_BYTES - self.have).min(plain.len());
        let mut header = self.header;
        header[self.have..self.have + taken].copy_from_slice(&plain[..taken]);
        if self.have + taken < HEADER_BYTES {
            return true;
        }
        let remaining = if self.have < HEADER_BYTES { length(header) } else { self.remaining };
        taken + remaining >= plain.len()
    }
}

fn length([_, high, middle, low]: [u8; HEADER_BYTES]) -> usize {
    usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low)
}

#[derive(Debug, Default)]
pub(crate) struct MessageReader {
    partial: Option<Partial>,
}

impl MessageReader {
    pub(crate) fn held_bytes(&self) -> usize {
        self.partial.as_ref().and_then(|partial| partial.body.as_ref()).map_or(0, Vec::capacity)
    }

    pub(crate) fn is_within_message(&self) -> bool {
        self.partial.is_some()
    }

    /// Reads a record with the content `plain`; appends the messages that end in it.
    ///
    /// # Errors
    /// [`NotMessages`] if a message header is implausible or was not captured; the reader then restarts
    /// with the next record.
    pub(crate) fn read(
        &mut self,
        record: &Record<'_>,
        plain: &[u8],
        messages: &mut Vec<Message>,
    ) -> Result<(), NotMessages> {
        let mut overhead = record.wire_bytes.saturating_sub(plain.len()) as u64;
        let mut at = 0;
        // If no message begins in the record, the overhead is attributed to the one that continues.
        if let Some(partial) = &mut self.partial
            && partial.reaches(plain)
        {
            partial.bytes += std::mem::take(&mut overhead);
        }
        while at < plain.len() {
            let is_hole =
                |from: usize, to: usize| record.holes.iter().any(|hole| hole.0 < to && from < hole.1);
            let partial = self.partial.get_or_insert_with(|| Partial {
                header: [0; HEADER_BYTES],
                have: 0,
                remaining: 0,
                body: None,
                bytes: std::mem::take(&mut overhead),
                start: record.span.start,
            });
            if partial.have < HEADER_BYTES {
                let taken = (HEADER_BYTES - partial.have).min(plain.len() - at);
                if is_hole(at, at + taken) {
                    self.partial = None;
                    return Err(NotMessages);
                }
                partial.header[partial.have..partial.have + taken].copy_from_slice(&plain[at..at + taken]);
                partial.have += taken;
                partial.bytes += taken as u64;
                at += taken;
                if partial.have < HEADER_BYTES {
                    break;
                }
                let (kind, length) = (partial.header[0], length(partial.header));
                if length > MAXIMUM_BYTES {
                    self.partial = None;
                    return Err(NotMessages);
                }
                partial.remaining = length;
                partial.body = (is_kept(kind) && length <= MAXIMUM_KEPT_BYTES).then(Vec::new);
            }
            let taken = partial.remaining.min(plain.len() - at);
            if is_hole(at, at + taken) {
                partial.body = None;
            }
            if let Some(body) = &mut partial.body {
                body.extend_from_slice(&plain[at..at + taken]);
            }
            partial.remaining -= taken;
            partial.bytes += taken as u64;
            at += taken;
            if partial.remaining == 0
                && let Some(done) = self.partial.take()
            {
                messages.push(Message {
                    kind: done.header[0],
                    body: done.body,
                    bytes: done.bytes,
                    span: Span { start: done.start, ..record.span },
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(
        reader: &mut MessageReader,
        plain: &[u8],
        overhead: usize,
    ) -> Result<Vec<(u8, u64)>, NotMessages> {
        let record = Record { wire_bytes: plain.len() + overhead, ..Record::default() };
        let mut messages = Vec::new();
        reader.read(&record, plain, &mut messages)?;
        Ok(messages.iter().map(|message| (message.kind, message.bytes)).collect())
    }

    #[test]
    fn overhead_goes_to_the_first_message_that_begins_in_the_record() {
        let mut reader = MessageReader::default();
        // Two messages in one record.
        assert_eq!(read(&mut reader, &[14, 0, 0, 0, 13, 0, 0, 1, 9], 5).unwrap(), [(14, 9), (13, 5)]);
        // One message in three records, the last of which begins another.
        assert_eq!(read(&mut reader, &[11, 0, 0, 8, 1, 2], 5).unwrap(), []);
        assert_eq!(read(&mut reader, &[3, 4], 5).unwrap(), []);
        assert_eq!(read(&mut reader, &[5, 6, 7, 8, 14, 0, 0, 0], 5).unwrap(), [(11, 22), (14, 9)]);
        // A header that is cut by the end of a record.
        assert_eq!(read(&mut reader, &[20, 0], 5).unwrap(), []);
        assert_eq!(read(&mut reader, &[0, 1, 7], 5).unwrap(), [(20, 15)]);
        assert_eq!(read(&mut reader, &[20, 0], 5).unwrap(), []);
        assert_eq!(read(&mut reader, &[0, 1, 7, 14, 0, 0, 0], 5).unwrap(), [(20, 10), (14, 9)]);
        assert!(!reader.is_within_message());
    }

    #[test]
    fn implausible_lengths_are_refused() {
        let mut reader = MessageReader::default();
        assert_eq!(read(&mut reader, &[11, 0xff, 0, 0, 1], 5), Err(NotMessages));
        assert_eq!(read(&mut reader, &[14, 0, 0, 0], 5).unwrap(), [(14, 9)]);
    }
}
