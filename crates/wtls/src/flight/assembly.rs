//! Records that arrived without the rest of their flight, or before their keys existed.
//!
//! A flight is one datagram (§10.4), but datagrams may be reordered, and some peers send one record per datagram. The
//! stored records are not authenticated: their amount is limited, and an assembled flight is verified like any other.

use super::{Extent, Part, extent};
use crate::record::{Record, Records, write_header};
use std::collections::BTreeMap;

/// Limit of stored records; more than the longest flight has.
const HELD_RECORDS: usize = 12;
pub(crate) const HELD_BYTES: usize = 4 * 1024;

/// Assembles a flight from its records.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    /// Records in clear text, by their numbers.
    plain: BTreeMap<u16, Vec<u8>>,
    protected: Option<Vec<u8>>,
}

impl Assembly {
    /// Stores the records of a datagram that is part of a flight. Returns the flight once it is complete. A record
    /// replaces an earlier one with the same number.
    pub fn add(&mut self, datagram: &[u8]) -> Option<Vec<u8>> {
        for record in Records::new(datagram).map_while(Result::ok) {
            match (Part::of(&record), record.sequence) {
                (Some(Part::Protected), _) if self.has_room(record.raw, None) => {
                    self.protected = Some(record.raw.to_vec());
                }
                (None | Some(Part::Protected), _) | (_, None) => {}
                (Some(_), Some(number)) => {
                    if self.has_room(record.raw, Some(number)) {
                        self.plain.insert(number, with_length(&record, number));
                    }
                }
            }
        }
        self.flight()
    }

    /// Whether a record fits after removal of the one that it replaces.
    fn has_room(&self, raw: &[u8], number: Option<u16>) -> bool {
        let replaced = match number {
            Some(number) => self.plain.get(&number),
            None => self.protected.as_ref(),
        };
        let records = self.plain.len() + usize::from(self.protected.is_some());
        let fewer = usize::from(replaced.is_some());
        records - fewer < HELD_RECORDS
            && self.held_bytes() - replaced.map_or(0, Vec::len) + raw.len() <= HELD_BYTES
    }

    /// The stored flight, if it is complete and its numbers are consecutive.
    fn flight(&self) -> Option<Vec<u8>> {
        let first = *self.plain.first_key_value()?.0;
        let last = *self.plain.last_key_value()?.0;
        if usize::from(last - first) + 1 != self.plain.len() {
            return None;
        }
        let records = self.plain.values().chain(&self.protected);
        let flight = records.fold(Vec::new(), |mut flight, record| {
            flight.extend_from_slice(record);
            flight
        });
        (extent(&flight) == Extent::Complete).then_some(flight)
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    pub fn held_bytes(&self) -> usize {
        let records = self.plain.values().chain(&self.protected);
        records.map(Vec::len).sum()
    }
}

/// An unencrypted record with a length field, so that others can follow it.
fn with_length(record: &Record<'_>, number: u16) -> Vec<u8> {
    if record.record_type.has_length() {
        return record.raw.to_vec();
    }
    let mut raw = Vec::with_capacity(record.raw.len() + 2);
    write_header(&mut raw, record.record_type.with_length(), number, record.fragment.len() as u16);
    raw.extend_from_slice(record.fragment);
    raw
}

/// Limit of stored protected records; further ones must be retransmitted.
const EARLY_RECORDS: usize = 4;
pub(crate) const EARLY_BYTES: usize = 1024;

/// Protected records that arrived before their keys existed.
#[derive(Debug, Default)]
pub(crate) struct EarlyRecords(Vec<Vec<u8>>);

impl EarlyRecords {
    pub fn keep(&mut self, record: &Record<'_>) {
        let room = self.0.len() < EARLY_RECORDS && self.held_bytes() + record.raw.len() <= EARLY_BYTES;
        if room && !self.0.iter().any(|early| early == record.raw) {
            self.0.push(record.raw.to_vec());
        }
    }

    /// Removes and returns all records, each as it arrived.
    pub fn take(&mut self) -> Vec<Vec<u8>> {
        core::mem::take(&mut self.0)
    }

    pub fn held_bytes(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: u16, content: &[u8]) -> Vec<u8> {
        let mut raw = vec![0xC3];
        raw.extend(number.to_be_bytes());
        raw.extend((content.len() as u16).to_be_bytes());
        raw.extend(content);
        raw
    }

    fn done(number: u16) -> Vec<u8> {
        record(number, &[14, 0, 0])
    }

    const CHANGE: [u8; 6] = [0xC1, 0, 2, 0, 1, 1];
    const FINISHED: [u8; 7] = [0xE3, 0, 0, 0, 2, 9, 9];

    #[test]
    fn flight_is_complete_when_all_records_up_to_its_end_are_present() {
        let (first, second) = (record(0, &[2, 0, 0]), record(1, &[11, 0, 0]));
        let whole = [&first[..], &second, &done(2)].concat();
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut assembly = Assembly::default();
            let parts = [&first, &second, &done(2)];
            let mut made: Vec<_> = order.iter().filter_map(|index| assembly.add(parts[*index])).collect();
            assert_eq!(made.pop(), Some(whole.clone()), "{order:?}");
        }
        // A flight with ChangeCipherSpec ends with a protected message.
        let mut assembly = Assembly::default();
        assert_eq!(assembly.add(&FINISHED), None);
        let exchange = record(1, &[16, 0, 0]);
        assert_eq!(assembly.add(&exchange), None);
        assert_eq!(assembly.add(&CHANGE), Some([&exchange[..], &CHANGE, &FINISHED].concat()));
    }

    #[test]
    fn record_replaces_another_with_its_number_and_counts_once() {
        let mut assembly = Assembly::default();
        let long = record(1, &[11; 3000]);
        for _ in 0..10 {
            assembly.add(&long);
            assert_eq!(assembly.held_bytes(), long.len());
        }
        let other = record(1, &[11, 0, 0]);
        assembly.add(&other);
        assert_eq!(assembly.held_bytes(), other.len());
        for _ in 0..10 {
            assembly.add(&FINISHED);
        }
        assert_eq!(assembly.held_bytes(), other.len() + FINISHED.len());
    }

    #[test]
    fn length_is_added_to_a_record_without_one() {
        let mut assembly = Assembly::default();
        assert_eq!(assembly.add(&[0x43, 0, 0, 2, 0, 0]), None);
        assert_eq!(assembly.add(&done(1)), Some([&record(0, &[2, 0, 0])[..], &done(1)].concat()));
    }

    #[test]
    fn held_records_and_bytes_are_limited() {
        let mut assembly = Assembly::default();
        for number in 0..=u16::MAX {
            assembly.add(&record(number, &[16, 0, 0]));
        }
        assert_eq!(assembly.plain.len(), HELD_RECORDS);
        let mut assembly = Assembly::default();
        for number in 0..10 {
            assembly.add(&record(number, &[16; 1000]));
        }
        assert!(assembly.held_bytes() <= HELD_BYTES);
        let mut early = EarlyRecords::default();
        for fill in 0..100 {
            let raw = record(1, &[fill; 300]);
            for record in Records::new(&raw).flatten() {
                early.keep(&record);
                early.keep(&record);
            }
        }
        assert!(early.held_bytes() <= EARLY_BYTES);
        assert_eq!(early.take().len(), 3);
    }
}
