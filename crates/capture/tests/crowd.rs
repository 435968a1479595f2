//! Captures with more open connections than the memory limit allows.
#![allow(clippy::unwrap_used)]

use shakedown_capture::inspect::{Inspector, Limits};
use shakedown_capture::report::{Connection, Summary};
use shakedown_capture::tls::keylog::KeyLog;
use shakedown_capture::write::{Chunk, Conversation, Writer};
use shakedown_trace::Side;
use shakedown_trace::endpoint::Transport;
use std::collections::HashSet;
use std::sync::LazyLock;
use std::time::Duration;

const CONNECTIONS: u64 = 300;
const CLOSING_PACKETS: usize = 4;
const MESSAGES: usize = 9;

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u16).to_be_bytes();
    let record = ((body.len() + 4) as u16).to_be_bytes();
    [&[22, 3, 3][..], &record, &[kind, 0], &length, body].concat()
}

fn hello(kind: u8, number: u64) -> Vec<u8> {
    let random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().repeat(4);
    let rest: &[u8] = if kind == 1 { &[0, 0, 2, 0, 0x2f, 1, 0] } else { &[0, 0, 0x2f, 0] };
    message(kind, &[&[3, 3][..], &random, rest].concat())
}

/// TLS 1.2 handshakes with RSA and some data; all connections end after the last one has begun.
static CAPTURE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let path = std::env::temp_dir().join(format!("shakedown-crowd-{}.pcap", std::process::id()));
    let mut writer = Writer::create(&path).unwrap();
    let finish = [&[20, 3, 3, 0, 1, 1][..], &[22, 3, 3, 0, 40], &[0x5a; 40]].concat();
    let data = [&[23, 3, 3, 1, 0][..], &[0xa5; 256]].concat();
    for number in 0..CONNECTIONS {
        let flight = [hello(2, !number), message(11, &[0x30; 900]), message(14, &[])].concat();
        let answer = [message(16, &[2; 66]), finish.clone()].concat();
        let chunks =
            [(Side::Client, hello(1, number)), (Side::Server, flight), (Side::Client, answer)].to_vec();
        let chunks = [chunks, vec![(Side::Server, finish.clone()), (Side::Client, data.clone())]].concat();
        let chunks: Vec<Chunk<'_>> =
            chunks.iter().map(|(from, bytes)| Chunk { from: *from, time: Duration::ZERO, bytes }).collect();
        let (client, server) = writer.addresses(443);
        let (transport, start) = (Transport::Stream, Duration::from_micros(number));
        writer.connection(&Conversation { transport, client, server, start, chunks: &chunks }).unwrap();
    }
    writer.finish().unwrap();
    let written = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let (header, mut rest) = written.split_at(24);
    let mut packets = Vec::new();
    while !rest.is_empty() {
        let size = 16 + u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        let (packet, after) = rest.split_at(size);
        packets.push(packet);
        rest = after;
    }
    let each = packets.len() / CONNECTIONS as usize;
    let (mut talk, mut closing) = (header.to_vec(), Vec::new());
    for connection in packets.chunks(each) {
        let (first, last) = connection.split_at(each - CLOSING_PACKETS);
        talk.extend(first.concat());
        closing.extend(last.concat());
    }
    [talk, closing].concat()
});

fn read(capture: &[u8], limits: Limits) -> (Vec<Connection>, Summary) {
    let mut inspector = Inspector::new(capture, KeyLog::default(), limits).unwrap();
    let connections = inspector.by_ref().collect();
    assert!(inspector.error().is_none());
    (connections, inspector.summary())
}

#[test]
fn limited_memory_reports_the_same_connections_once() {
    let capture = &CAPTURE;
    let (whole, summary) = read(capture, Limits::default());
    assert_eq!((whole.len() as u64, summary.evicted, summary.other_flows), (CONNECTIONS, 0, 0));
    let (early, summary) = read(capture, Limits { total_bytes: 1 << 17, ..Limits::default() });
    assert!(summary.evicted > CONNECTIONS / 2, "{summary:?}");
    assert_eq!((summary.connections, summary.other_flows), (CONNECTIONS, 0));
    let clients: HashSet<&str> = early.iter().map(|connection| &*connection.client).collect();
    assert_eq!(clients.len() as u64, CONNECTIONS);
    for connection in &early {
        let other = whole.iter().find(|other| other.client == connection.client).unwrap();
        assert_eq!(connection.messages.len(), MESSAGES);
        assert_eq!((&connection.messages, connection.complete), (&other.messages, true));
        assert!(connection.problems.iter().all(|problem| problem.starts_with("reported before its end")));
    }
    assert_eq!(
        early.iter().filter(|connection| !connection.problems.is_empty()).count() as u64,
        summary.evicted
    );
}

#[test]
fn connections_are_reported_as_they_end_and_open_ones_by_index() {
    let capture = &CAPTURE;
    // The closing packets of the last few connections are missing.
    let cut = &capture[..capture.len() - CLOSING_PACKETS * 70 * 5];
    let indices = |bytes| -> Vec<u64> {
        read(bytes, Limits::default()).0.iter().map(|connection| connection.index).collect()
    };
    let told = indices(cut);
    assert_eq!(told.len() as u64, CONNECTIONS);
    assert!(told.is_sorted());
    // The last connection closes first.
    let at = capture.len() - CLOSING_PACKETS * 70 * CONNECTIONS as usize;
    let reversed: Vec<u8> = capture[at..].chunks(CLOSING_PACKETS * 70).rev().flatten().copied().collect();
    let mut later = [&capture[..at], &reversed].concat();
    // A time two seconds later: ended connections are emitted before the end of the capture.
    let seconds = later.len() - 70;
    later[seconds] = 9;
    let told = indices(&later);
    assert_eq!(told[0], CONNECTIONS - 1);
    assert!(told[..told.len() - 1].iter().rev().is_sorted());
}
