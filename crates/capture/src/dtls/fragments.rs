//! Reassembles handshake messages from fragments, in any order and with repetitions.

use crate::message::{Mark, Span};
use crate::tls::Message;
use std::collections::BTreeMap;

const HEADER_BYTES: usize = 12;
/// Largest accepted message.
const MAXIMUM_BYTES: usize = 1 << 18;
/// Fragments are kept up to this many messages ahead of the next one.
const MAX_AHEAD: u16 = 32;
const MAX_PIECES: usize = 1024;

struct Partial {
    kind: u8,
    length: usize,
    body: Vec<u8>,
    /// Received ranges (start and end), sorted and disjoint.
    there: Vec<(usize, usize)>,
    bytes: u64,
    span: Span,
}

impl Partial {
    fn is_whole(&self) -> bool {
        self.length == 0 || self.there == [(0, self.length)]
    }

    /// Adds a range; false if all of it was received before, or there are too many ranges.
    fn add(&mut self, start: usize, content: &[u8]) -> bool {
        let end = start + content.len();
        let covered = self.there.iter().any(|range| range.0 <= start && end <= range.1);
        if covered || self.there.len() >= MAX_PIECES {
            return false;
        }
        self.body[start..end].copy_from_slice(content);
        self.there.push((start, end));
        self.there.sort_unstable();
        let mut joined: Vec<(usize, usize)> = Vec::with_capacity(self.there.len());
        for &range in &self.there {
            match joined.last_mut() {
                Some(last) if range.0 <= last.1 => last.1 = last.1.max(range.1),
                _ => joined.push(range),
            }
        }
        self.there = joined;
        true
    }
}

/// The result of reading a record's fragments.
pub(super) enum Taken {
    All,
    /// The whole record, with this many bytes, was received before.
    Repeated(u64),
    Malformed,
}

/// Messages of one direction.
#[derive(Default)]
pub(super) struct Fragments {
    /// Number of the next message; `None` before the first.
    next: Option<u16>,
    partial: BTreeMap<u16, Partial>,
}

impl Fragments {
    pub(super) fn held_bytes(&self) -> usize {
        self.partial.values().map(|partial| partial.body.capacity()).sum()
    }

    /// Reads the content of a handshake record. Record overhead is attributed to the first new fragment.
    pub(super) fn take(&mut self, mut content: &[u8], wire_bytes: u64, mark: Mark) -> Taken {
        let mut overhead = wire_bytes.saturating_sub(content.len() as u64);
        let mut new = content.is_empty();
        while !content.is_empty() {
            let Some((header, rest)) = content.split_at_checked(HEADER_BYTES) else {
                return Taken::Malformed;
            };
            let three =
                |at: usize| header[at..at + 3].iter().fold(0, |sum, &byte| sum << 8 | usize::from(byte));
            let (kind, length, start, count) = (header[0], three(1), three(6), three(9));
            let number = u16::from_be_bytes([header[4], header[5]]);
            let Some((piece, rest)) = rest.split_at_checked(count) else { return Taken::Malformed };
            if length > MAXIMUM_BYTES || start + count > length {
                return Taken::Malformed;
            }
            content = rest;
            // The first number seen may be any, after a cookie exchange or if the capture begins later.
            let next = *self.next.get_or_insert(number);
            if number < next || number - next > MAX_AHEAD {
                continue;
            }
            let partial = self.partial.entry(number).or_insert_with(|| Partial {
                kind,
                length,
                body: vec![0; length],
                there: Vec::new(),
                bytes: 0,
                span: Span::at(mark),
            });
            if partial.length != length || partial.kind != kind {
                return Taken::Malformed;
            }
            if partial.add(start, piece) || length == 0 {
                new = true;
                partial.bytes += (HEADER_BYTES + count) as u64 + std::mem::take(&mut overhead);
                partial.span.end = mark;
            }
        }
        if new { Taken::All } else { Taken::Repeated(wire_bytes) }
    }

    /// The next message, once it is complete.
    pub(super) fn next_message(&mut self) -> Option<Message> {
        let next = self.next?;
        let entry = self.partial.first_entry()?;
        if *entry.key() != next || !entry.get().is_whole() {
            return None;
        }
        let Partial { kind, body, bytes, span, .. } = entry.remove();
        self.next = Some(next.wrapping_add(1));
        Some(Message { kind, body: Some(body), bytes, span })
    }

    /// Drops incomplete messages, so that complete ones behind them can be read; true if any messages were waiting.
    pub(super) fn pass_losses(&mut self) -> bool {
        let any = !self.partial.is_empty();
        self.partial.retain(|_, partial| partial.is_whole());
        // Numbered consecutively.
        let kept: Vec<Partial> = std::mem::take(&mut self.partial).into_values().collect();
        self.next = Some(0);
        self.partial = (0..).zip(kept).collect();
        any
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn fragment(kind: u8, number: u16, length: usize, start: usize, piece: &[u8]) -> Vec<u8> {
        let three = |value: usize| [(value >> 16) as u8, (value >> 8) as u8, value as u8];
        let mut bytes = vec![kind];
        bytes.extend(three(length));
        bytes.extend(number.to_be_bytes());
        bytes.extend(three(start));
        bytes.extend(three(piece.len()));
        bytes.extend_from_slice(piece);
        bytes
    }

    #[test]
    fn fragments_join_in_any_order_and_repetitions_are_ignored() {
        let mut fragments = Fragments::default();
        let first = fragment(1, 0, 6, 0, b"abc");
        let second = fragment(1, 0, 6, 3, b"def");
        let third = fragment(14, 1, 0, 0, b"");
        let mark = Mark::default();
        for (record, repeated) in
            [(&first, false), (&third, false), (&first, true), (&second, false), (&second, true)]
        {
            let taken = fragments.take(record, record.len() as u64 + 13, mark);
            assert_eq!(matches!(taken, Taken::Repeated(_)), repeated);
            // Only complete messages are returned, in order.
            if let Some(message) = fragments.next_message() {
                assert_eq!((message.kind, message.bytes), (1, 2 * (13 + 12 + 3)));
                assert_eq!(message.body.unwrap(), b"abcdef");
                let done = fragments.next_message().unwrap();
                assert_eq!((done.kind, done.bytes), (14, 25));
            }
        }
        assert!(fragments.next_message().is_none());
        assert_eq!(fragments.held_bytes(), 0);
    }

    #[test]
    fn malformed_fragments_are_refused() {
        let mut fragments = Fragments::default();
        let mark = Mark::default();
        for bad in [vec![1; 5], fragment(1, 0, 2, 1, b"ab"), fragment(1, 0, 1 << 20, 0, b"")] {
            assert!(matches!(fragments.take(&bad, 99, mark), Taken::Malformed));
        }
    }
}
