//! Reassembles one direction of a TCP connection from captured segments to a stream.
//!
//! Segments may be late, repeated, overlapping, out of order, lost or truncated. Captured bytes are delivered
//! once and in order. Segments behind a hole are held while they fit into the granted memory; then the bytes of
//! the hole are reported as missing.

use crate::message::Mark;
use std::collections::BTreeMap;

/// A sequence number farther ahead than any window does not belong to the connection.
const FARTHEST_AHEAD: i64 = 1 << 30;
/// The largest window without scaling: a sender may be that far ahead of the captured bytes.
const PLAIN_WINDOW: i64 = 0xffff;
/// Limit of remembered initial sequence numbers besides the last; beyond it, the earliest is forgotten.
const MAX_OTHER_STARTS: usize = 8;
/// Maximum distance between an initial sequence number and the first captured data.
const NEAR_START: u32 = 1 << 20;
/// A segment that fills a hole within this time was reordered, not retransmitted (same rule as Wireshark).
const REORDERING_NS: u64 = 3_000_000;

/// The receiver of a stream.
pub(crate) trait Sink {
    /// Receives the next bytes; `offset` counts from the start of the stream.
    fn bytes(&mut self, offset: u64, bytes: &[u8], mark: Mark);
    /// Notes that the next `count` bytes are not in the capture.
    fn missing(&mut self, offset: u64, count: u64, mark: Mark);
}

/// A segment behind a hole.
#[derive(Debug)]
struct Held {
    captured: Box<[u8]>,
    /// Length on the wire.
    length: u64,
    mark: Mark,
}

/// Counts of one direction's segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) segments: u64,
    /// Payload bytes on the wire, repetitions included.
    pub(crate) payload_bytes: u64,
    pub(crate) retransmitted_segments: u64,
    pub(crate) retransmitted_bytes: u64,
    pub(crate) out_of_order_segments: u64,
    pub(crate) gaps: u64,
    pub(crate) gap_bytes: u64,
    /// Segments with payload outside the stream; they are not read.
    pub(crate) stray_segments: u64,
}

impl Counts {
    /// Counts a datagram; `missing` bytes of it were not captured.
    pub(crate) fn datagram(&mut self, captured: usize, missing: usize) {
        self.segments += 1;
        self.payload_bytes += (captured + missing) as u64;
        self.gaps += u64::from(missing > 0);
        self.gap_bytes += missing as u64;
    }

    pub(crate) fn repeated(&mut self, bytes: u64) {
        self.retransmitted_segments += 1;
        self.retransmitted_bytes += bytes;
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Payload<'a> {
    pub(crate) sequence: u32,
    pub(crate) captured: &'a [u8],
    /// Length on the wire.
    pub(crate) length: usize,
    pub(crate) fin: bool,
}

/// State of one direction.
#[derive(Debug, Default)]
pub(crate) struct HalfStream {
    /// Sequence number of the byte at `offset`; `None` until one was seen.
    next: Option<u32>,
    /// Sequence numbers of the first byte according to earlier SYNs with other numbers; neither confirmed nor excluded.
    other_starts: Vec<u32>,
    /// True if the SYN was captured: the stream has no earlier bytes.
    opened: bool,
    /// Bytes delivered or declared missing.
    offset: u64,
    /// Segments behind a hole, by offset.
    held: BTreeMap<u64, Held>,
    held_bytes: usize,
    /// When the first hole was seen.
    hole_since_ns: u64,
    end: Option<u64>,
    /// End of the farthest segment seen.
    highest: u64,
    /// Highest offset that the other end has acknowledged.
    acknowledged: u64,
    /// Highest end offset of all retransmissions, and the time of the last one.
    last_repetition: Option<(u64, u64)>,
    pub(crate) counts: Counts,
}

impl HalfStream {
    /// Memory held for segments out of order.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes + self.other_starts.capacity() * size_of::<u32>()
    }

    /// True once every byte up to the FIN was delivered or reported as missing.
    pub(crate) fn is_complete(&self) -> bool {
        self.end.is_some_and(|end| self.offset >= end)
    }

    pub(crate) fn is_placed(&self) -> bool {
        self.next.is_some()
    }

    /// Sets the sequence number at which the stream begins or was first seen, unless it is already set.
    pub(crate) fn place(&mut self, sequence: u32) {
        self.next.get_or_insert(sequence);
    }

    /// Sets the sequence number of the first byte from a SYN. A repeated SYN may have another number (a middlebox, or a
    /// server that lost its state): then the other end's acknowledgement decides, or the first data.
    pub(crate) fn place_opening(&mut self, sequence: u32) {
        let known = *self.next.get_or_insert(sequence);
        if self.highest == 0 && self.offset == 0 && known == sequence {
            // A repeated SYN had no response: earlier acknowledgements belong to another stream.
            self.acknowledged = 0;
        }
        self.opened |= known == sequence || self.is_untouched();
        if known != sequence && self.is_untouched() {
            self.other_starts.retain(|&other| other != sequence && other != known);
            if self.other_starts.len() >= MAX_OTHER_STARTS {
                self.other_starts.remove(0);
            }
            self.other_starts.push(known);
            self.next = Some(sequence);
        }
    }

    /// Selects the first byte's sequence number: the nearest candidate before `sequence`, which is from an
    /// acknowledgement or a data segment.
    fn confirm_start(&mut self, sequence: u32) {
        if self.other_starts.is_empty() || !self.is_untouched() {
            return;
        }
        let starts = self.other_starts.iter().copied().chain(self.next);
        let nearest = starts.min_by_key(|&start| sequence.wrapping_sub(start));
        if let Some(start) = nearest.filter(|&start| sequence.wrapping_sub(start) < NEAR_START) {
            self.next = Some(start);
            self.other_starts = Vec::new();
        }
    }

    /// True if the stream may continue with this number, so that its receiver accepts a reset (RFC 9293
    /// section 3.5.3).
    pub(crate) fn expects(&self, sequence: u32) -> bool {
        let Some(next) = self.next else { return false };
        let distance = i64::from(sequence.wrapping_sub(next).cast_signed());
        let at = self.offset.cast_signed() + distance;
        let reached = self.highest.max(self.acknowledged).cast_signed();
        (at >= self.acknowledged.cast_signed() && at <= reached + PLAIN_WINDOW)
            || self.other_starts.contains(&sequence)
    }

    /// True if this acknowledgement number confirms sent data, or at least the SYN.
    pub(crate) fn has_sent(&self, sequence: u32) -> bool {
        let Some(next) = self.next else { return false };
        let distance = i64::from(sequence.wrapping_sub(next).cast_signed());
        let at = self.offset.cast_signed() + distance;
        (0..=self.highest.cast_signed() + PLAIN_WINDOW).contains(&at) || self.other_starts.contains(&sequence)
    }

    /// True while no data was seen or acknowledged.
    fn is_untouched(&self) -> bool {
        self.highest == 0 && self.offset == 0 && self.acknowledged == 0
    }

    /// True if a SYN with this number begins another connection.
    pub(crate) fn contradicts_start(&self, sequence: u32) -> bool {
        let start = self.next.map(|next| next.wrapping_sub(self.offset as u32));
        start.is_some_and(|start| start != sequence.wrapping_add(1))
    }

    /// Stream offset of an acknowledgement from the other end.
    pub(crate) fn offset_of(&self, sequence: u32) -> u64 {
        let Some(next) = self.next else { return 0 };
        let distance = i64::from(sequence.wrapping_sub(next).cast_signed());
        self.offset.saturating_add_signed(distance)
    }

    /// Notes that the other end has everything before this number; returns its stream offset.
    pub(crate) fn acknowledge(&mut self, sequence: u32) -> u64 {
        self.confirm_start(sequence);
        let offset = self.offset_of(sequence);
        if offset < self.offset + FARTHEST_AHEAD.cast_unsigned() {
            self.acknowledged = self.acknowledged.max(offset);
        }
        offset
    }

    /// End of the farthest segment seen.
    pub(crate) fn highest(&self) -> u64 {
        self.highest
    }

    /// Time of the last retransmission, if one reached `offset`.
    pub(crate) fn repeated_ns(&self, offset: u64) -> Option<u64> {
        self.last_repetition.filter(|repetition| repetition.0 >= offset).map(|repetition| repetition.1)
    }

    /// Processes a segment; `room` is the memory granted for out-of-order segments.
    /// Returns true if all its bytes lie beyond those seen before.
    pub(crate) fn segment(
        &mut self,
        payload: Payload<'_>,
        mark: Mark,
        room: usize,
        sink: &mut impl Sink,
    ) -> bool {
        if payload.length > 0 {
            self.confirm_start(payload.sequence);
        }
        let next = *self.next.get_or_insert(payload.sequence);
        let distance = i64::from(payload.sequence.wrapping_sub(next).cast_signed());
        let length = payload.length as u64;
        // No data precedes the SYN, except the single byte of a keep-alive.
        let before = self.opened && self.offset.cast_signed() + distance + length.cast_signed() <= 0;
        if distance > FARTHEST_AHEAD || (before && length > 1) {
            self.counts.stray_segments += u64::from(length > 0);
            return false;
        }
        if length > 0 {
            self.counts.segments += 1;
            self.counts.payload_bytes += length;
        }
        let start = self.offset.cast_signed() + distance;
        let end = start + length.cast_signed();
        if payload.fin && end >= 0 {
            self.end.get_or_insert(end.cast_unsigned());
        }
        if length == 0 {
            return false;
        }
        let fresh = self.count(start, end, mark);
        if end > self.offset.cast_signed() {
            let passed = (self.offset.cast_signed() - start).max(0) as usize;
            let captured = payload.captured.get(passed..).unwrap_or_default();
            if distance <= 0 && self.held.is_empty() {
                self.deliver(captured, length - passed as u64, mark, sink);
            } else {
                self.hold(start + passed as i64, captured, length - passed as u64, mark);
                self.release(mark, sink);
                while self.held_bytes > room {
                    self.give_up_hole(sink);
                }
            }
        }
        fresh
    }

    /// Delivers the held data and reports gaps at the end of the connection.
    /// `mark` is the packet at the connection's end.
    pub(crate) fn finish(&mut self, mark: Mark, sink: &mut impl Sink) {
        while !self.held.is_empty() {
            self.give_up_hole(sink);
        }
        // Bytes that were acknowledged but not captured; the last number may be that of a FIN, which is no byte.
        let end = self.end.unwrap_or(self.acknowledged.saturating_sub(1));
        if let Some(count) = end.checked_sub(self.offset).filter(|&count| count > 0) {
            self.miss(self.offset, count, mark, sink);
            self.advance(count);
        }
    }

    /// Counts a segment as new, repeated or out of order.
    fn count(&mut self, start: i64, end: i64, mark: Mark) -> bool {
        let highest = self.highest.cast_signed();
        if start >= highest {
            if start > self.offset.cast_signed() && self.held.is_empty() {
                self.hole_since_ns = mark.time_ns;
            }
            self.highest = end.cast_unsigned();
            return true;
        }
        // A single byte before the next expected one is a keep-alive.
        if end - start <= 1 && end == self.offset.cast_signed() {
            return false;
        }
        let fills_hole = !self.held.is_empty() && !self.is_known(start, end);
        if fills_hole && mark.time_ns.saturating_sub(self.hole_since_ns) < REORDERING_NS {
            self.counts.out_of_order_segments += 1;
        } else {
            self.counts.retransmitted_segments += 1;
            self.counts.retransmitted_bytes += (end.min(highest) - start).max(0).cast_unsigned();
            let reached = end.max(0).cast_unsigned();
            self.last_repetition =
                Some((reached.max(self.last_repetition.map_or(0, |last| last.0)), mark.time_ns));
        }
        self.highest = self.highest.max(end.max(0).cast_unsigned());
        false
    }

    /// True if every byte was seen before.
    fn is_known(&self, start: i64, end: i64) -> bool {
        let mut reached = start.max(0).cast_unsigned().max(self.offset);
        let end = end.max(0).cast_unsigned();
        for (&at, held) in &self.held {
            if reached >= end || at > reached {
                break;
            }
            reached = reached.max(at + held.length);
        }
        reached >= end
    }

    fn deliver(&mut self, captured: &[u8], length: u64, mark: Mark, sink: &mut impl Sink) {
        let captured = &captured[..captured.len().min(length as usize)];
        if !captured.is_empty() {
            sink.bytes(self.offset, captured, mark);
        }
        let cut = length - captured.len() as u64;
        if cut > 0 {
            self.miss(self.offset + captured.len() as u64, cut, mark, sink);
        }
        self.advance(length);
    }

    fn miss(&mut self, offset: u64, count: u64, mark: Mark, sink: &mut impl Sink) {
        self.counts.gaps += 1;
        self.counts.gap_bytes += count;
        sink.missing(offset, count, mark);
    }

    fn advance(&mut self, length: u64) {
        self.offset += length;
        self.next = self.next.map(|next| next.wrapping_add(length as u32));
    }

    fn hold(&mut self, start: i64, captured: &[u8], length: u64, mark: Mark) {
        let start = start.cast_unsigned();
        // Of two segments at the same offset, the longer is kept.
        if self.held.get(&start).is_some_and(|held| held.length >= length) {
            return;
        }
        let held = Held { captured: captured.into(), length, mark };
        self.held_bytes += captured.len() + size_of::<Held>();
        if let Some(old) = self.held.insert(start, held) {
            self.held_bytes -= old.captured.len() + size_of::<Held>();
        }
    }

    /// Delivers held segments up to the next hole; their time is not before that of `filled`, which filled the hole.
    fn release(&mut self, filled: Mark, sink: &mut impl Sink) {
        while let Some(entry) = self.held.first_entry() {
            if *entry.key() > self.offset {
                break;
            }
            let (start, held) = entry.remove_entry();
            self.held_bytes -= held.captured.len() + size_of::<Held>();
            let Some(rest) = (start + held.length).checked_sub(self.offset).filter(|&rest| rest > 0) else {
                continue;
            };
            let passed = (held.length - rest) as usize;
            let captured = held.captured.get(passed..).unwrap_or_default();
            let late = if filled.packet > held.mark.packet { filled } else { held.mark };
            let mark = Mark { peer_acknowledged: held.mark.peer_acknowledged, ..late };
            self.deliver(captured, rest, mark, sink);
        }
        if let Some(held) = self.held.first_entry() {
            self.hole_since_ns = self.hole_since_ns.max(held.get().mark.time_ns);
        }
    }

    /// Reports the first hole as missing.
    fn give_up_hole(&mut self, sink: &mut impl Sink) {
        let Some(entry) = self.held.first_entry() else { return };
        let (start, mark) = (*entry.key(), entry.get().mark);
        let hole = start.saturating_sub(self.offset);
        if hole > 0 {
            self.miss(self.offset, hole, mark, sink);
            self.advance(hole);
        }
        // Held segments keep their own time, because no segment filled the hole.
        self.release(Mark { packet: 0, ..mark }, sink);
    }
}

#[cfg(test)]
mod tests;
