//! Super-packets: several segments handed to the link as one (TSO, GSO).

use super::{JOINED, LAST, LOST, RESENT, SACKED, Tcp};
use shakedown_link::SuperPackets;

/// The maximum size of a super-packet, less room for headers (`sk_gso_max_size`).
const MAX_BYTES: u64 = 65_536 - 321;
/// A packet contains 1/2^10 of the bytes per second of the pacing rate, about a millisecond (`sk_pacing_shift`).
const PACING_SHIFT: u32 = 10;
/// The maximum size is added, halved for each 2^9 µs of the minimum round-trip time (`tcp_tso_rtt_log`).
const ROUND_TRIP_SHIFT: u32 = 9;
/// `tcp_min_tso_segs`.
const MIN_SEGMENTS: u32 = 2;

impl Tcp {
    /// The maximum number of segments of a packet (`tcp_tso_autosize`): a millisecond at a rate of twice the window per
    /// round trip (1.2 times from half of the threshold on), and more if the round-trip time is short.
    pub(super) fn packet_segments(&self) -> u32 {
        if self.super_packets == SuperPackets::None {
            return 1;
        }
        let segment_bytes = u64::from(self.segment_bytes);
        let most = (MAX_BYTES / segment_bytes).clamp(1, u64::from(u8::MAX));
        let Some(round_trip_us) = self.rtt.smoothed_us() else { return most as u32 };
        if let Some(bbr) = &self.bbr {
            let (per_s, least) = bbr.pacing();
            return self.segments_of(per_s, least, most);
        }
        let percent = if self.window.segments < self.window.threshold / 2 { 200 } else { 120 };
        let window_bytes = u64::from(self.window.segments.max(self.sent)) * segment_bytes;
        let per_s = window_bytes * percent * 10_000 / round_trip_us.max(1);
        self.segments_of(per_s, MIN_SEGMENTS, most)
    }

    /// The segments of a millisecond at a rate, and more if the round-trip time is short, from `least` to `most`.
    fn segments_of(&self, per_s: u64, least: u32, most: u64) -> u32 {
        let halvings = self.rtt.min_us().unwrap_or(u64::MAX) >> ROUND_TRIP_SHIFT;
        let near_bytes = if halvings < 32 { MAX_BYTES >> halvings } else { 0 };
        let segments = ((per_s >> PACING_SHIFT) + near_bytes) / u64::from(self.segment_bytes);
        (segments.min(most) as u32).max(least)
    }

    /// The number of unsent segments from `index` on that are sent in one packet, at most `most`; all but the last are
    /// full.
    pub(super) fn sent_together(&self, index: usize, most: u32) -> usize {
        let mut count = 1;
        while count < most as usize {
            let before = &self.queue[index + count - 1];
            let Some(next) = self.queue.get(index + count) else { break };
            if before.end - before.seq < self.segment_bytes || next.is(LAST) {
                break;
            }
            count += 1;
        }
        count
    }

    /// The number of lost segments from `index` on that are retransmitted in one packet, at most `most`: those that
    /// were sent in one packet.
    pub(super) fn resent_together(&self, index: usize, most: u32) -> usize {
        let follows = |count: &usize| {
            let next = index + count;
            next < self.sent as usize && {
                let segment = &self.queue[next];
                segment.is(JOINED) && segment.is(LOST) && !segment.is(SACKED | RESENT)
            }
        };
        (1..most.max(1) as usize).take_while(follows).count() + 1
    }

    /// Marks segments as sent in one packet, without the segments before and after them.
    pub(super) fn join(&mut self, index: usize, count: usize) {
        for place in index..=index + count {
            let Some(segment) = self.queue.get_mut(place).filter(|_| place < self.sent as usize) else {
                break;
            };
            segment.flags &= !JOINED;
            if place > index && place < index + count {
                segment.flags |= JOINED;
            }
        }
    }
}
