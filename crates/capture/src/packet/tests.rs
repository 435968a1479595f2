#![allow(clippy::unwrap_used)]

use super::internet::Fragment;
use super::*;

/// An IPv4 packet with a payload and the matching total length.
fn version_4(protocol: u8, field: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend_from_slice(&(20 + payload.len() as u16).to_be_bytes());
    packet.extend_from_slice(&[0, 7]);
    packet.extend_from_slice(&field.to_be_bytes());
    packet.extend_from_slice(&[64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend_from_slice(payload);
    packet
}

fn version_6(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend_from_slice(&(payload.len() as u16).to_be_bytes());
    packet.extend_from_slice(&[next, 64]);
    packet.extend_from_slice(&[0x20; 16]);
    packet.extend_from_slice(&[0x30; 16]);
    packet.extend_from_slice(payload);
    packet
}

#[test]
fn padding_and_snap_length_are_distinguished() {
    let mut packet = version_4(PROTOCOL_UDP, 0, b"payload");
    packet.extend_from_slice(&[0; 20]);
    let whole = decode_internet(&packet, packet.len()).unwrap();
    assert_eq!((whole.payload, whole.payload_bytes), (&b"payload"[..], 7));
    let cut = decode_internet(&packet[..23], packet.len()).unwrap();
    assert_eq!((cut.payload, cut.payload_bytes), (&b"pay"[..], 7));
    // Segmentation offload: the length is zero.
    packet[2..4].fill(0);
    assert_eq!(decode_internet(&packet, packet.len()).unwrap().payload_bytes, 27);
}

#[test]
fn extension_headers_are_skipped() {
    let hop_by_hop = [60, 0, 0, 0, 0, 0, 0, 0];
    let destination = [PROTOCOL_TCP, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let packet = version_6(0, &[&hop_by_hop[..], &destination, b"tcp"].concat());
    let decoded = decode_internet(&packet, packet.len()).unwrap();
    assert_eq!((decoded.protocol, decoded.payload, decoded.fragment), (PROTOCOL_TCP, &b"tcp"[..], None));
    let fragment = [PROTOCOL_UDP, 0, 0, 0x11, 0, 0, 0, 9];
    let packet = version_6(44, &[&fragment[..], b"piece"].concat());
    let decoded = decode_internet(&packet, packet.len()).unwrap();
    assert_eq!(decoded.fragment, Some(Fragment { identification: 9, offset: 16, more: true }));
    for length in 0..packet.len() {
        let _ = decode_internet(&packet[..length], packet.len());
    }
}

#[test]
fn fragments_join_once_in_any_order() {
    let pieces = [(0x2000, &b"01234567"[..]), (0x2001, b"abcdefgh"), (2, b"end")];
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for order in orders {
        let mut reassembler = Reassembler::default();
        let mut whole = Vec::new();
        for index in order {
            let packet = version_4(PROTOCOL_UDP, pieces[index].0, pieces[index].1);
            // Each piece twice: the duplicate changes nothing.
            let decoded = decode_internet(&packet, packet.len()).unwrap();
            whole.extend(reassembler.add(&decoded));
            if index != order[2] {
                whole.extend(reassembler.add(&decoded));
            }
        }
        assert_eq!(whole.len(), 1, "{order:?}");
        assert_eq!(whole[0].payload, b"01234567abcdefghend");
        assert_eq!(reassembler.incomplete(), 0);
    }
}

#[test]
fn the_oldest_incomplete_packets_are_dropped_and_counted() {
    let mut reassembler = Reassembler::default();
    for identification in 0..1000u16 {
        let mut packet = version_4(PROTOCOL_UDP, 0x2000, b"01234567");
        packet[4..6].copy_from_slice(&identification.to_be_bytes());
        assert!(reassembler.add(&decode_internet(&packet, packet.len()).unwrap()).is_none());
    }
    assert_eq!(reassembler.incomplete(), 1000);
    let mut completes = |identification: u16| {
        let mut packet = version_4(PROTOCOL_UDP, 1, b"end");
        packet[4..6].copy_from_slice(&identification.to_be_bytes());
        reassembler.add(&decode_internet(&packet, packet.len()).unwrap()).is_some()
    };
    assert!(completes(999));
    assert!(!completes(0));
}

#[test]
fn transport_headers_are_read_from_truncated_packets() {
    let mut segment = vec![0; 20];
    segment[..4].copy_from_slice(&[0, 80, 1, 0]);
    segment[7] = 9;
    segment[12] = 0x60;
    segment[13] = 0x12;
    segment.extend_from_slice(b"\x01\x01\x01\x01data");
    let read = tcp(&segment, segment.len()).unwrap();
    assert_eq!((read.source_port, read.destination_port, read.sequence), (80, 256, 9));
    assert_eq!((read.syn, read.acknowledgement, read.payload), (true, Some(0), &b"data"[..]));
    assert_eq!(tcp(&segment[..22], 28).unwrap().payload_bytes, 4);
    assert_eq!(tcp(&segment[..19], 28), None);
    let datagram = [0, 1, 0, 2, 0, 11, 0, 0, b'a', b'b', b'c', 0, 0];
    assert_eq!(udp(&datagram, datagram.len()).unwrap().payload, b"abc");
    assert_eq!(udp(&datagram[..9], 13).unwrap().payload_bytes, 3);
    assert_eq!(udp(&datagram[..7], 13), None);
}
