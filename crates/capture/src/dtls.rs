//! DTLS 1.0 and 1.2 (RFC 4347, RFC 6347), and the headers of DTLS 1.3 (RFC 9147).
//!
//! Messages are sent in fragments, each with its own header; the bytes of a message are those of all its
//! fragments and their record headers, without repetitions. DTLS 1.3 is not decrypted: protected records of the
//! handshake epoch are reported as encrypted bytes.

mod fragments;

use crate::message::{Mark, Name, Problems, Seen, SeenAlert, Span, push_alert, push_message};
use crate::tcp::Counts;
use crate::tls::keylog::KeyLog;
use crate::tls::{LegacyDecryptor, Negotiation, Undecrypted};
use fragments::{Fragments, Taken};
use shakedown_trace::MessageName;

const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;
const CONNECTION_ID: u8 = 25;
const ACKNOWLEDGEMENT: u8 = 26;
const HEADER_BYTES: usize = 13;
/// DTLS 1.3: the epoch of handshake keys.
const EPOCH_HANDSHAKE: u16 = 2;

struct Record<'a> {
    kind: u8,
    version: u16,
    epoch: u16,
    sequence: u64,
    body: &'a [u8],
    wire_bytes: usize,
}

/// The record at the start of these bytes; the unified header of DTLS 1.3 has no content type, which is then 0.
fn record(bytes: &[u8]) -> Option<Record<'_>> {
    if bytes.first()? & 0xe0 == 0x20 {
        return unified(bytes);
    }
    let header = bytes.get(..HEADER_BYTES)?;
    let kind = header[0];
    let version = u16::from_be_bytes([header[1], header[2]]);
    let known =
        (CHANGE_CIPHER_SPEC..=ACKNOWLEDGEMENT).contains(&kind) && matches!(version, 0xfefd..=0xfeff | 0x0100);
    if !known {
        return None;
    }
    let epoch = u16::from_be_bytes([header[3], header[4]]);
    let sequence = header[5..11].iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
    let length = usize::from(u16::from_be_bytes([header[11], header[12]]));
    // The length of the connection identifier is unknown, and therefore also the end of the record.
    let end = if kind == CONNECTION_ID { bytes.len() } else { HEADER_BYTES + length };
    let body = bytes.get(HEADER_BYTES..end)?;
    Some(Record { kind, version, epoch, sequence, body, wire_bytes: end })
}

/// A record with the unified header (RFC 9147 section 4), whose first byte is 001CSLEE.
fn unified(bytes: &[u8]) -> Option<Record<'_>> {
    let flags = bytes[0];
    let epoch = u16::from(flags & 3);
    let sequence_bytes = if flags & 8 == 0 { 1 } else { 2 };
    let end = if flags & 0x10 == 0 && flags & 4 != 0 {
        let at = 1 + sequence_bytes;
        let length = u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]);
        at + 2 + usize::from(length)
    } else {
        bytes.len()
    };
    let body = bytes.get(1..end)?;
    // The sequence number is encrypted.
    Some(Record { kind: 0, version: 0xfefc, epoch, sequence: 0, body, wire_bytes: end })
}

/// True if a datagram begins a DTLS handshake.
pub(crate) fn begins(datagram: &[u8]) -> bool {
    let Some(record) = record(datagram) else { return false };
    let hello = matches!(record.body, [1..=3, ..]) && record.body.len() >= 12;
    record.kind == HANDSHAKE && record.epoch == 0 && hello
}

/// The random of a ClientHello that is complete in this datagram; it distinguishes handshakes.
fn client_random(datagram: &[u8]) -> Option<&[u8]> {
    let record = record(datagram)?;
    let body = record.body;
    (record.kind == HANDSHAKE && record.epoch == 0 && body.first() == Some(&1)).then(|| body.get(14..46))?
}

/// Which records of an epoch have been seen.
#[derive(Default)]
struct Window {
    highest: u64,
    /// Bit n: record number `highest - n` was seen.
    bits: u64,
}

impl Window {
    /// True the first time a number is seen; numbers older than the window count as seen.
    fn is_new(&mut self, number: u64) -> bool {
        if self.bits == 0 || number > self.highest {
            let shift = if self.bits == 0 { 64 } else { number - self.highest };
            self.bits = self.bits.checked_shl(u32::try_from(shift).unwrap_or(64)).unwrap_or(0) | 1;
            self.highest = number;
            return true;
        }
        let age = self.highest - number;
        let bit = 1u64.checked_shl(u32::try_from(age).unwrap_or(64)).unwrap_or(0);
        let new = bit != 0 && self.bits & bit == 0;
        self.bits |= bit;
        new
    }
}

#[derive(Default)]
pub(crate) struct Direction {
    fragments: Fragments,
    windows: [Window; 2],
    changed: bool,
    finished: bool,
    decryptor: Option<Box<LegacyDecryptor>>,
    decryptor_tried: bool,
    pub(crate) counts: Counts,
    pub(crate) undecrypted: Vec<Undecrypted>,
    pub(crate) application_bytes: u64,
}

#[derive(Default)]
pub(crate) struct DtlsConnection {
    pub(crate) directions: [Direction; 2],
    pub(crate) negotiation: Negotiation,
    pub(crate) seen: Vec<Seen>,
    pub(crate) alerts: Vec<SeenAlert>,
    pub(crate) problems: Problems,
}

impl DtlsConnection {
    pub(crate) fn new() -> Self {
        let negotiation = Negotiation { datagram: true, ..Negotiation::default() };
        Self { negotiation, ..Self::default() }
    }

    pub(crate) fn held_bytes(&self) -> usize {
        let directions = self.directions.iter().map(|direction| {
            direction.fragments.held_bytes() + direction.undecrypted.capacity() * size_of::<Undecrypted>()
        });
        directions.sum::<usize>() + self.negotiation.held_bytes() + self.seen.capacity() * size_of::<Seen>()
    }

    /// True once both sides have finished.
    pub(crate) fn is_over(&self) -> bool {
        self.directions.iter().all(|direction| direction.finished)
    }

    /// True if the handshake is over and its suite is not determined yet.
    pub(crate) fn wants_settling(&self) -> bool {
        self.is_over() && !self.negotiation.settled
    }

    /// True if a datagram begins another handshake than this one.
    pub(crate) fn is_another(&self, datagram: &[u8]) -> bool {
        let (Some(hello), Some(random)) = (&self.negotiation.client_hello, client_random(datagram)) else {
            return false;
        };
        self.is_over() && hello.random != random
    }

    /// Reads a datagram; `missing` bytes of it were not captured.
    pub(crate) fn read(
        &mut self,
        keys: &KeyLog,
        direction: usize,
        datagram: &[u8],
        missing: usize,
        mark: Mark,
    ) {
        self.directions[direction].counts.datagram(datagram.len(), missing);
        let mut rest = datagram;
        while !rest.is_empty() {
            let Some(record) = record(rest) else {
                let text = if missing > 0 {
                    "datagrams were cut by the snap length"
                } else {
                    "a datagram is not all DTLS"
                };
                self.problems.add(text);
                break;
            };
            rest = &rest[record.wire_bytes..];
            self.record(keys, direction, &record, mark);
        }
    }

    fn record(&mut self, keys: &KeyLog, direction: usize, record: &Record<'_>, mark: Mark) {
        let wire_bytes = record.wire_bytes as u64;
        if record.kind == 0 {
            self.protected_1_3(direction, record, mark);
            return;
        }
        let slot = &mut self.directions[direction];
        if !slot.windows[usize::from(record.epoch.min(1))].is_new(record.sequence) {
            slot.counts.repeated(wire_bytes);
            return;
        }
        match record.kind {
            CHANGE_CIPHER_SPEC => {
                if std::mem::replace(&mut slot.changed, true) {
                    slot.counts.repeated(wire_bytes);
                } else {
                    let name = Name::Known(MessageName::ChangeCipherSpec);
                    self.push(direction, name, wire_bytes, Span::at(mark));
                }
            }
            HANDSHAKE if record.epoch == 0 => self.handshake(direction, record.body, wire_bytes, mark),
            HANDSHAKE => self.protected_handshake(keys, direction, record, mark),
            ALERT => {
                let content = if record.epoch == 0 {
                    Some(record.body.to_vec())
                } else {
                    self.open(keys, direction, record)
                };
                push_alert(&mut self.alerts, direction, mark, content.as_deref());
            }
            APPLICATION_DATA => slot.application_bytes += wire_bytes,
            CONNECTION_ID => {
                slot.application_bytes += wire_bytes;
                self.problems.add("records with connection identifiers are not decoded");
            }
            _ => {}
        }
    }

    fn protected_1_3(&mut self, direction: usize, record: &Record<'_>, mark: Mark) {
        let slot = &mut self.directions[direction];
        if record.epoch == EPOCH_HANDSHAKE && slot.undecrypted.len() < 64 {
            slot.undecrypted.push(Undecrypted { wire_bytes: record.wire_bytes, span: Span::at(mark) });
        } else {
            slot.application_bytes += record.wire_bytes as u64;
        }
    }

    fn open(&mut self, keys: &KeyLog, direction: usize, record: &Record<'_>) -> Option<Vec<u8>> {
        let slot = &mut self.directions[direction];
        if !std::mem::replace(&mut slot.decryptor_tried, true) {
            slot.decryptor = self.negotiation.legacy_decryptor(keys, direction);
        }
        let number = u64::from(record.epoch) << 48 | record.sequence;
        slot.decryptor.as_mut()?.open_numbered(record.kind, record.version, number, record.body)
    }

    fn protected_handshake(&mut self, keys: &KeyLog, direction: usize, record: &Record<'_>, mark: Mark) {
        let wire_bytes = record.wire_bytes as u64;
        if let Some(plain) = self.open(keys, direction, record) {
            self.handshake(direction, &plain, wire_bytes, mark);
            return;
        }
        if self.directions[direction].decryptor.is_some() {
            self.problems.add("the key log's secret does not decrypt this connection's records");
        }
        let slot = &mut self.directions[direction];
        if std::mem::replace(&mut slot.finished, true) {
            // Counts as a repetition; without keys, a renegotiation would look the same.
            slot.counts.repeated(wire_bytes);
        } else {
            self.push(direction, Name::Known(MessageName::Finished), wire_bytes, Span::at(mark));
        }
    }

    fn handshake(&mut self, direction: usize, content: &[u8], wire_bytes: u64, mark: Mark) {
        let slot = &mut self.directions[direction];
        match slot.fragments.take(content, wire_bytes, mark) {
            Taken::All => {}
            Taken::Repeated(bytes) => slot.counts.repeated(bytes),
            Taken::Malformed => self.problems.add("a handshake record cannot be read"),
        }
        while let Some(message) = self.directions[direction].fragments.next_message() {
            let after = self.directions[direction].finished;
            let name = if after {
                MessageName::from_tls(message.kind).map_or(Name::Unknown(message.kind), Name::Known)
            } else {
                self.negotiation.note(direction, message.kind, message.body)
            };
            self.push(direction, name, message.bytes, message.span);
            if name == Name::Known(MessageName::Finished) {
                self.directions[direction].finished = true;
            }
        }
    }

    /// Emits the messages behind lost ones at the end of the connection.
    pub(crate) fn end(&mut self) {
        for direction in 0..2 {
            if self.directions[direction].fragments.pass_losses() {
                self.problems.add("fragments are missing, and messages may be missing too");
                self.handshake(direction, &[], 0, Mark::default());
            }
        }
    }

    fn push(&mut self, direction: usize, name: Name, bytes: u64, span: Span) {
        let finished = self.directions[direction].finished;
        let after_handshake = finished && name != Name::Known(MessageName::Finished);
        let seen = Seen { direction, name, bytes, span, after_handshake };
        push_message(&mut self.seen, &mut self.problems, seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replay_window_detects_repeated_numbers() {
        let mut window = Window::default();
        let numbers = [0, 0, 2, 1, 1, 2, 70, 70, 5, 69, 69, 200, 70];
        let new = numbers.map(|number| window.is_new(number));
        assert_eq!(
            new,
            [true, false, true, true, false, false, true, false, false, true, false, true, false]
        );
    }

    #[test]
    fn dtls_headers_are_distinguished() {
        let mut hello = vec![22, 0xfe, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12, 1];
        hello.resize(25, 0);
        assert!(begins(&hello));
        assert!(!begins(&hello[..24]));
        hello[4] = 1;
        assert!(!begins(&hello));
        let unified = record(&[0x2e, 0, 1, 0, 2, 9, 9, 0x2f]);
        assert_eq!(unified.map(|record| (record.epoch, record.wire_bytes)), Some((2, 7)));
        assert!(record(&[0x2e, 0, 1, 0, 9, 9]).is_none());
    }
}
