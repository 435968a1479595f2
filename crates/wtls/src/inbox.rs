//! Puts received plain records into order.
//!
//! A flight is one datagram, so its records come in order unless a peer splits it. Records of a
//! plain handshake count from 0; what comes too early is held, what came before is a duplicate.

use std::collections::BTreeMap;

/// How far ahead of its turn a record is held, which is more than the longest flight has.
const AHEAD: u16 = 12;
/// How many bytes are held in all.
pub(crate) const HELD_BYTES: usize = 4 * 1024;

/// What to do with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It is its turn.
    Now,
    /// It is held until it is.
    Later,
    /// It has been seen, or is too far ahead.
    Never,
}

/// Which record's turn it is.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    expected: u32,
    /// Held records; an empty one stands for an alert, which is handled out of order.
    held: BTreeMap<u16, Vec<u8>>,
    held_bytes: usize,
}

impl Inbox {
    /// Takes note of a record.
    pub fn offer(&mut self, sequence: u16, raw: &[u8]) -> Turn {
        let number = u32::from(sequence);
        if number == self.expected {
            self.expected += 1;
            return Turn::Now;
        }
        if number < self.expected || number > self.expected + u32::from(AHEAD) {
            return Turn::Never;
        }
        if self.held.get(&sequence).is_some_and(|held| held == raw && !raw.is_empty()) {
            // It came again and what is missing before it did not: numbers may have gaps, as when
            // an alert between handshake messages got lost.
            if let Some((&first, _)) = self.held.first_key_value() {
                self.expected = first.into();
            }
        } else if self.held_bytes + raw.len() <= HELD_BYTES {
            self.held_bytes += raw.len();
            self.held.insert(sequence, raw.to_vec());
        }
        Turn::Later
    }

    /// How many bytes are held.
    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Takes note of an alert's number, which no other record has.
    pub fn pass(&mut self, sequence: u16) {
        if self.offer(sequence, &[]) == Turn::Later {
            self.held.entry(sequence).or_default();
        }
    }

    /// The held record whose turn it now is.
    pub fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let sequence = u16::try_from(self.expected).ok()?;
            let raw = self.held.remove(&sequence)?;
            self.held_bytes -= raw.len();
            self.expected += 1;
            if !raw.is_empty() {
                return Some(raw);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn early_records_wait_for_their_turn() {
        let mut inbox = Inbox::default();
        assert_eq!(inbox.offer(1, b"one"), Turn::Later);
        assert_eq!(inbox.next(), None);
        assert_eq!(inbox.offer(0, b"zero"), Turn::Now);
        assert_eq!(inbox.next(), Some(b"one".to_vec()));
        assert_eq!(inbox.offer(0, b"zero"), Turn::Never);
        assert_eq!(inbox.offer(40, b"far"), Turn::Never);
    }

    #[test]
    fn an_alert_takes_a_number_and_a_lost_one_leaves_a_gap() {
        let mut inbox = Inbox::default();
        inbox.pass(0);
        assert_eq!(inbox.offer(1, b"one"), Turn::Now);
        assert_eq!(inbox.offer(3, b"three"), Turn::Later);
        assert_eq!(inbox.offer(3, b"three"), Turn::Later);
        assert_eq!(inbox.next(), Some(b"three".to_vec()));
        assert_eq!(inbox.offer(4, b"four"), Turn::Now);
    }
}
