//! Reassembles fragmented packets in bounded memory.

use super::internet::InternetPacket;
use std::collections::{HashMap, VecDeque};

/// Limit of incomplete packets; beyond it, the oldest is dropped.
const MAX_PACKETS: usize = 64;
/// Limit of a packet's length: the longest fragment at the highest offset.
const MAXIMUM_BYTES: usize = 65_535 + 8 * 8192;
const MAX_PIECES: usize = 8192;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    source: u128,
    destination: u128,
    protocol: u8,
    identification: u32,
}

#[derive(Default)]
struct Pieces {
    /// Start, length on the wire and captured bytes; in the order of their start, without overlaps.
    pieces: Vec<(usize, usize, Vec<u8>)>,
    /// Where the last fragment ends.
    end: Option<usize>,
}

/// A complete packet: its payload up to the first byte that was not captured, and its length on the wire.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reassembled {
    pub(crate) payload: Vec<u8>,
    pub(crate) payload_bytes: usize,
}

/// Fragments of incomplete packets.
#[derive(Default)]
pub(crate) struct Reassembler {
    waiting: HashMap<Key, Pieces>,
    /// Keys in the order of their first fragment.
    order: VecDeque<Key>,
    given_up: u64,
}

impl Reassembler {
    /// Adds a fragment; returns the packet that it completes.
    pub(crate) fn add(&mut self, packet: &InternetPacket<'_>) -> Option<Reassembled> {
        let fragment = packet.fragment?;
        let key = Key {
            source: packet.source,
            destination: packet.destination,
            protocol: packet.protocol,
            identification: fragment.identification,
        };
        if !self.waiting.contains_key(&key) {
            if self.order.len() >= MAX_PACKETS
                && let Some(oldest) = self.order.pop_front()
                && self.waiting.remove(&oldest).is_some()
            {
                self.given_up += 1;
            }
            self.order.push_back(key);
        }
        let pieces = self.waiting.entry(key).or_default();
        pieces.add(fragment.offset, packet.payload_bytes, packet.payload, fragment.more);
        let whole = pieces.whole()?;
        self.waiting.remove(&key);
        self.order.retain(|other| *other != key);
        Some(whole)
    }

    /// Number of incomplete packets, dropped and waiting ones.
    pub(crate) fn incomplete(&self) -> u64 {
        self.given_up + self.waiting.len() as u64
    }
}

impl Pieces {
    fn add(&mut self, offset: usize, bytes_on_wire: usize, captured: &[u8], more: bool) {
        let end = offset + bytes_on_wire;
        if end > MAXIMUM_BYTES || self.pieces.len() >= MAX_PIECES {
            return;
        }
        if !more {
            self.end = Some(end);
        }
        let place = self.pieces.partition_point(|piece| piece.0 < offset);
        let before = place.checked_sub(1).map_or(0, |index| self.pieces[index].0 + self.pieces[index].1);
        let after = self.pieces.get(place).map_or(usize::MAX, |piece| piece.0);
        // Correct senders never send overlapping fragments (RFC 5722 drops them); a repeated one is a duplicate.
        if offset >= before && end <= after && bytes_on_wire > 0 {
            self.pieces.insert(place, (offset, bytes_on_wire, captured.to_vec()));
        }
    }

    fn whole(&self) -> Option<Reassembled> {
        let end = self.end?;
        let mut next = 0;
        for (start, length, _) in &self.pieces {
            if *start != next {
                return None;
            }
            next += length;
        }
        if next != end {
            return None;
        }
        let mut payload = Vec::with_capacity(end);
        for (_, length, captured) in &self.pieces {
            payload.extend_from_slice(captured);
            if captured.len() < *length {
                break;
            }
        }
        Some(Reassembled { payload, payload_bytes: end })
    }
}
