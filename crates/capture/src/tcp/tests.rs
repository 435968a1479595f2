#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

/// The delivered bytes (`None` for missing ones) and the packet of each.
#[derive(Default)]
struct Stream {
    bytes: Vec<Option<u8>>,
    packets: Vec<u64>,
}

impl Sink for Stream {
    fn bytes(&mut self, offset: u64, bytes: &[u8], mark: Mark) {
        assert_eq!(offset, self.bytes.len() as u64);
        self.bytes.extend(bytes.iter().copied().map(Some));
        self.packets.extend(vec![mark.packet; bytes.len()]);
    }

    fn missing(&mut self, offset: u64, count: u64, mark: Mark) {
        assert_eq!(offset, self.bytes.len() as u64);
        self.bytes.extend(vec![None; count as usize]);
        self.packets.extend(vec![mark.packet; count as usize]);
    }
}

fn mark(packet: u64) -> Mark {
    Mark { packet, time_ns: packet * 1000, peer_acknowledged: 0 }
}

/// Segments of "0123456789" from the given start, as (start, end) pairs.
fn run(pieces: &[(usize, usize)], room: usize) -> (Stream, HalfStream) {
    let data = b"0123456789";
    let mut half = HalfStream::default();
    half.place(u32::MAX - 4);
    let mut stream = Stream::default();
    for (index, &(start, end)) in pieces.iter().enumerate() {
        let payload = Payload {
            sequence: (u32::MAX - 4).wrapping_add(start as u32),
            captured: &data[start..end],
            length: end - start,
            fin: end == data.len(),
        };
        half.segment(payload, mark(index as u64 + 1), room, &mut stream);
    }
    (stream, half)
}

fn text(stream: &Stream) -> String {
    stream.bytes.iter().map(|byte| byte.map_or('.', char::from)).collect()
}

#[test]
fn segments_are_in_order_across_sequence_number_wrap() {
    let (stream, half) = run(&[(0, 3), (3, 7), (7, 10)], 1 << 16);
    assert_eq!(text(&stream), "0123456789");
    assert!(half.is_complete());
    assert_eq!(half.counts, Counts { segments: 3, payload_bytes: 10, ..Counts::default() });
}

#[test]
fn late_segment_sets_the_time_of_data_behind_it() {
    let (stream, half) = run(&[(0, 2), (5, 10), (2, 5)], 1 << 16);
    assert_eq!(text(&stream), "0123456789");
    assert_eq!(stream.packets, [1, 1, 3, 3, 3, 3, 3, 3, 3, 3]);
    assert_eq!(half.counts.out_of_order_segments, 1);
    assert_eq!(half.counts.retransmitted_segments, 0);
}

#[test]
fn repetitions_and_overlaps_are_delivered_once_and_counted() {
    let (stream, half) = run(&[(0, 4), (0, 4), (2, 6), (6, 10), (5, 7)], 1 << 16);
    assert_eq!(text(&stream), "0123456789");
    assert_eq!(half.counts.retransmitted_segments, 3);
    assert_eq!(half.counts.retransmitted_bytes, 4 + 2 + 2);
}

#[test]
fn permanent_gap_is_reported_with_times_of_following_data() {
    let (mut stream, mut half) = run(&[(0, 2), (4, 6), (8, 10)], 1 << 16);
    assert_eq!(text(&stream), "01");
    half.finish(mark(9), &mut stream);
    assert_eq!(text(&stream), "01..45..89");
    assert_eq!(stream.packets[4..6], [2, 2]);
    assert_eq!(stream.packets[8..], [3, 3]);
    assert_eq!((half.counts.gaps, half.counts.gap_bytes), (2, 4));
    assert!(half.is_complete());
}

#[test]
fn acknowledged_but_uncaptured_bytes_are_missing() {
    let (mut stream, mut half) = run(&[(0, 2)], 1 << 16);
    half.acknowledge((u32::MAX - 4).wrapping_add(6));
    half.finish(mark(9), &mut stream);
    assert_eq!(text(&stream), "01...");
    let (mut stream, mut half) = run(&[(0, 2), (10, 10)], 1 << 16);
    half.finish(mark(9), &mut stream);
    assert_eq!(text(&stream), "01........");
}

#[test]
fn without_buffer_space_gaps_are_not_waited_for() {
    let (stream, half) = run(&[(0, 2), (4, 6), (2, 4)], 0);
    assert_eq!(text(&stream), "01..45");
    assert_eq!(half.held_bytes(), 0);
}

#[test]
fn bytes_beyond_the_snap_length_are_missing() {
    let mut half = HalfStream::default();
    let mut stream = Stream::default();
    half.segment(Payload { sequence: 7, captured: b"ab", length: 5, fin: false }, mark(1), 0, &mut stream);
    half.segment(Payload { sequence: 12, captured: b"f", length: 1, fin: true }, mark(2), 0, &mut stream);
    assert_eq!(text(&stream), "ab...f");
    assert!(half.is_complete());
}

#[test]
fn keep_alive_is_not_a_retransmission() {
    let (_, half) = run(&[(0, 4), (3, 4)], 1 << 16);
    assert_eq!(half.counts.retransmitted_segments, 0);
}

proptest! {
    /// A stream that is split, shuffled and repeated is delivered completely, once and in order.
    #[test]
    fn segments_in_any_order_give_the_same_stream(
        data in proptest::collection::vec(any::<u8>(), 1..400),
        cuts in proptest::collection::vec(0usize..400, 0..40),
        repeats in proptest::collection::vec((0usize..400, 0usize..400), 0..20),
        order in any::<u64>(),
        start in any::<u32>(),
    ) {
        let mut edges: Vec<usize> = cuts.iter().map(|cut| cut % data.len()).chain([0, data.len()]).collect();
        edges.sort_unstable();
        edges.dedup();
        let mut pieces: Vec<(usize, usize)> = edges.windows(2).map(|pair| (pair[0], pair[1])).collect();
        pieces.extend(repeats.iter().map(|&(one, other)| {
            let (one, other) = (one % data.len(), other % data.len());
            (one.min(other), one.max(other) + 1)
        }));
        // A shuffle with a small generator.
        let mut state = order | 1;
        for index in (1..pieces.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            pieces.swap(index, (state >> 33) as usize % (index + 1));
        }
        let mut half = HalfStream::default();
        half.place(start);
        let mut stream = Stream::default();
        for (index, &(from, to)) in pieces.iter().enumerate() {
            let payload = Payload {
                sequence: start.wrapping_add(from as u32),
                captured: &data[from..to],
                length: to - from,
                fin: to == data.len(),
            };
            half.segment(payload, mark(index as u64 + 1), 1 << 20, &mut stream);
        }
        let delivered: Vec<u8> = stream.bytes.iter().copied().flatten().collect();
        prop_assert_eq!(delivered, data);
        prop_assert!(half.is_complete());
        prop_assert_eq!(half.held_bytes(), 0);
    }
}
