//! Streams whose openings and resets are easily misread, compared with tshark's output where possible.
#![allow(clippy::unwrap_used)]

mod support;

use shakedown_capture::report::{Connection, Summary};
use support::{
    ACK, CLIENT, RST, SERVER, SYN, Talk, client_hello, conversation, names, pcap, read, segment, tshark,
};

const MESSAGES: usize = 9;

/// Inspects the capture with other traffic every half second, which advances its time.
fn inspect_among_others(talk: &Talk) -> (Vec<u8>, Vec<Connection>, Summary) {
    let mut packets = talk.packets.clone();
    let (from, to) = (([9, 9, 9, 9], 1234), ([9, 9, 9, 8], 80));
    for half in 0..=talk.time_ms / 500 + 6 {
        packets.push((half * 500, segment(from, to, 1 + half, 1, ACK, b"x")));
    }
    packets.sort_by_key(|packet| packet.0);
    let capture = pcap(&packets);
    let (told, summary) = read(&capture);
    (capture, told, summary)
}

/// Asserts that there is one connection with every message, and that tshark finds at least `packets` handshake
/// packets, all in one stream.
fn assert_whole(talk: &Talk, what: &str, packets: usize) {
    let (capture, told, summary) = inspect_among_others(talk);
    assert_eq!((told.len(), summary.other_flows), (1, 1), "{what}");
    assert_eq!(names(&told[0]).len(), MESSAGES, "{what}: {:?}", names(&told[0]));
    assert!(told[0].complete, "{what}");
    let missing = told[0].gaps.client_to_server.bytes + told[0].gaps.server_to_client.bytes;
    assert_eq!((missing, &*told[0].problems), (0, &[][..]), "{what}");
    if let Some(rows) = tshark(&capture, "pcap", "tls.handshake", &["tcp.stream"]) {
        assert!(rows.len() >= packets && rows.iter().all(|row| *row == rows[0]), "{what}: {rows:?}");
    }
}

/// Sends the conversation with `gap_ms` before each flight.
fn say_slowly(talk: &mut Talk, gap_ms: u32) {
    for one in conversation() {
        talk.time_ms += gap_ms;
        talk.say(&[one]);
    }
    talk.close();
}

fn push(talk: &mut Talk, packet: Vec<u8>) {
    talk.packets.push((talk.time_ms, packet));
    talk.time_ms += 1;
}

/// A response of an earlier connection arrives after a new SYN: the client resets the earlier connection and opens
/// again (RFC 9293 section 3.5.1).
#[test]
fn reset_of_a_stale_response_ends_no_connection() {
    let stale_answers = [
        segment(SERVER, CLIENT, 555, 1001, SYN | ACK, &[]),
        segment(SERVER, CLIENT, 555, 77_777, ACK, &[]),
        segment(SERVER, CLIENT, 555, 5_000_000, SYN | ACK, &[]),
    ];
    for (stale, reset) in stale_answers.into_iter().zip([1001, 77_777, 5_000_000]) {
        let mut talk = Talk::new(0, CLIENT);
        talk.send(true, SYN, &[]);
        talk.time_ms += 600;
        push(&mut talk, stale);
        push(&mut talk, segment(CLIENT, SERVER, reset, 0, RST, &[]));
        talk.time_ms += 1000;
        talk.next[0] = 1000;
        talk.open();
        say_slowly(&mut talk, 700);
        assert_whole(&talk, &format!("reset at {reset}"), 3);
    }
}

/// A receiver ignores a reset with an unexpected sequence number (RFC 9293 section 3.5.3).
#[test]
fn reset_outside_the_window_is_ignored() {
    for (ahead, acknowledgement) in [(5_000_000_u32, None), (5_000_000_u32.wrapping_neg(), Some(1))] {
        let mut talk = Talk::new(0, CLIENT);
        talk.open();
        let flags = RST | acknowledgement.map_or(0, |_| ACK);
        let number = talk.next[1].wrapping_add(ahead);
        push(&mut talk, segment(SERVER, CLIENT, number, acknowledgement.unwrap_or(0), flags, &[]));
        say_slowly(&mut talk, 700);
        // tshark follows the number of the reset, and therefore loses data of its sender.
        assert_whole(&talk, &format!("{ahead} ahead"), 2);
    }
}

/// If both sides continue, a reset with any number did not end the connection.
#[test]
fn data_after_an_ignored_reset_is_decoded() {
    let mut talk = Talk::new(0, CLIENT);
    talk.open();
    let forged = segment(SERVER, CLIENT, talk.next[1], 0, RST, &[]);
    push(&mut talk, forged);
    say_slowly(&mut talk, 1500);
    assert_whole(&talk, "forged", 3);
}

/// An accepted reset ends the connection: later packets between the same ends belong to another one.
#[test]
fn accepted_reset_ends_the_connection() {
    for from_client in [true, false] {
        let mut talk = Talk::new(0, CLIENT);
        talk.open();
        talk.say(&conversation());
        talk.send(from_client, RST | ACK, &[]);
        let mut again = Talk::new(10_000, CLIENT);
        again.next = talk.next;
        again.say(&conversation());
        talk.packets.extend(again.packets);
        talk.time_ms = again.time_ms;
        let (_, told, _) = inspect_among_others(&talk);
        assert_eq!(told.len(), 2, "by the client: {from_client}");
        assert!(told.iter().all(|one| one.messages.len() == MESSAGES));
    }
}

/// A server that lost its state repeats its SYN-ACK with different numbers; the client acknowledges one of them.
#[test]
fn acknowledged_one_of_many_initial_sequence_numbers_is_used() {
    let numbers = [900_000, 5_000_000, 7_000_000, 90_000_000, 3_000_000_000_u32];
    for count in 3..=numbers.len() {
        for acknowledged in 0..count {
            for loses_first_data in [false, true] {
                let mut talk = Talk::new(0, CLIENT);
                talk.send(true, SYN, &[]);
                for number in &numbers[..count] {
                    talk.time_ms += 400;
                    talk.next = [1001, *number];
                    talk.send(false, SYN | ACK, &[]);
                }
                talk.next[1] = numbers[acknowledged].wrapping_add(1);
                if !loses_first_data {
                    talk.send(true, ACK, &[]);
                    say_slowly(&mut talk, 5);
                    // tshark uses one of the numbers, and loses the server's data if it is another one.
                    assert_whole(&talk, &format!("{acknowledged} of {count}"), 2);
                    continue;
                }
                // Neither the acknowledgement nor the ClientHello was captured: the server's data decide.
                talk.next[0] += client_hello().len() as u32;
                talk.say(&conversation()[1..]);
                talk.close();
                let (_, told, _) = inspect_among_others(&talk);
                let what = format!("{acknowledged} of {count}");
                assert_eq!(told.len(), 1, "{what}");
                assert_eq!(names(&told[0]).len(), MESSAGES - 1, "{what}: {:?}", names(&told[0]));
            }
        }
    }
}

/// With more numbers than are remembered, one side's data is lost, and this is reported.
#[test]
fn lost_side_is_reported() {
    let mut talk = Talk::new(0, CLIENT);
    talk.send(true, SYN, &[]);
    for number in 0..20 {
        talk.next = [1001, 4_000_000_000 - 50_000_000 * number];
        talk.send(false, SYN | ACK, &[]);
    }
    // Precedes all remembered numbers, in the order of sequence numbers.
    talk.next[1] = 2_500_000_001;
    talk.send(true, ACK, &[]);
    talk.say(&conversation());
    talk.close();
    let (_, told, _) = inspect_among_others(&talk);
    let expected =
        "segments of the server that lie outside its stream, as its opening gives it, were not read: 2";
    assert!(told[0].problems.iter().any(|problem| problem == expected), "{:?}", told[0].problems);
    assert_eq!(told[0].retransmissions.server_to_client.segments, 0);
}

fn binary_header(values: usize) -> Vec<u8> {
    let length = (12 + values) as u16;
    [
        &b"\r\n\r\n\0\r\nQUIT\n\x21\x11"[..],
        &length.to_be_bytes(),
        &[192, 0, 2, 1, 10, 0, 0, 2],
        &56324_u16.to_be_bytes(),
        &443_u16.to_be_bytes(),
        &vec![0x16; values],
    ]
    .concat()
}

fn said_behind(headers: &[u8], piece: usize) -> Talk {
    let mut said = conversation();
    said[0].1 = [headers, &said[0].1].concat();
    let mut talk = Talk::new(0, CLIENT);
    talk.open();
    let first = said.remove(0).1;
    for bytes in first.chunks(piece) {
        talk.send(true, ACK, bytes);
    }
    talk.say(&said);
    talk.close();
    talk
}

/// Each load balancer of a chain prepends its header, and a header of version 2 may be long.
#[test]
fn handshake_behind_chained_or_long_proxy_headers_is_decoded() {
    let text = b"PROXY TCP4 192.0.2.7 10.0.0.2 4711 443\r\n".to_vec();
    let long = binary_header(5000);
    let longest = binary_header(65_535 - 12);
    let of_text = format!(
        "{} bytes of PROXY header precede the handshake, which names the client 192.0.2.7:4711",
        text.len()
    );
    let of_binary = |bytes: &[u8]| {
        format!(
            "{} bytes of PROXY header precede the handshake, which names the client 192.0.2.1:56324",
            bytes.len()
        )
    };
    let cases = [
        (text.repeat(2), vec![of_text.clone()]),
        ([&text[..], &long].concat(), vec![of_text.clone(), of_binary(&long)]),
        ([&long[..], &text].concat(), vec![of_binary(&long), of_text]),
        (longest.clone(), vec![of_binary(&longest)]),
    ];
    for (headers, expected) in cases {
        for piece in [60_000, 1460, 50] {
            let what = format!("{} bytes by {piece}", headers.len());
            let talk = said_behind(&headers, piece);
            let (told, summary) = read(&pcap(&talk.packets));
            assert_eq!((told.len(), summary.other_flows), (1, 0), "{what}");
            assert_eq!((told[0].messages.len(), told[0].complete), (MESSAGES, true), "{what}");
            let bytes = conversation().iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>();
            assert_eq!(told[0].bytes.total, bytes, "{what}");
            assert_eq!(told[0].problems, expected, "{what}");
        }
    }
}

/// Missing bytes of a long header do not belong to the handshake.
#[test]
fn handshake_behind_an_incomplete_proxy_header_is_decoded() {
    let mut talk = said_behind(&binary_header(5000), 1460);
    // The second segment of the header, after three packets of the opening and the first segment.
    talk.packets.remove(4);
    let (told, _) = read(&pcap(&talk.packets));
    assert_eq!((told.len(), told[0].messages.len(), told[0].complete), (1, MESSAGES, true));
    assert_eq!(told[0].gaps.client_to_server.bytes, 1460);
}
