#![allow(clippy::unwrap_used)]

use super::*;

fn bytes(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// A ClientHello that offers RSA and ECDH_ECDSA on curve 7, and an abbreviated handshake.
const CLIENT_HELLO: &str = "c30000005b010058013ae5c2a0a0a1a2a3a4a5a6a7a8a9aaab00001a0800000e07fe9ec5d13a439cef91a84802\
    5217e20f59f45b333b001d080001006a1754657374 20526f6f743b2054657374204f72673b205553060303060205030100 0203";
const RESUMING_HELLO: &str =
    "c3000000240100 21013ae5c300101112131415161718191a1b045e55104e0000000002030301000203";
const RESUMING_ANSWER: &str = "c30000001f02001c013ae5c301202122232425262728292a2b045e55104e000303000203c1000100 0101\
    e3000000286825bac2b0ab79f7588bb0109fbba382c1deefe85593f3369cccbaa081952d629f6c8ca3e76ac6b0";
const RESUMING_LAST: &str = "c10001000101e30000002807ace59638b53548b269a43cf7ede5bf10e78434ba4580af7edfb7abafcf7861ed1499ca90b5\
    b7a0e400010020d64c06d88048b5da8053e4b700537641d5c123c2df56fc0e073d8c6e341300c9";

fn mark(packet: u64) -> Mark {
    Mark { packet, time_ns: packet, peer_acknowledged: 0 }
}

#[test]
fn wtls_hello_is_recognised() {
    let hello_of = bytes(CLIENT_HELLO);
    assert!(begins(&hello_of));
    // The same record without a length, as the only one of a datagram.
    let mut short = hello_of.clone();
    short[0] = 0x43;
    short.drain(3..5);
    assert!(begins(&short));
    for length in 0..hello_of.len() {
        assert!(!begins(&hello_of[..length]));
    }
    assert_eq!(hello(first_message(&hello_of).unwrap()).unwrap().1, SessionId::NONE);
}

#[test]
fn abbreviated_handshake_is_decoded_message_by_message() {
    let mut connection = WtlsConnection::default();
    connection.read(0, &bytes(RESUMING_HELLO), 0, mark(1));
    connection.read(1, &bytes(RESUMING_ANSWER), 0, mark(2));
    connection.read(0, &bytes(RESUMING_LAST), 0, mark(3));
    // The client repeats ChangeCipherSpec and Finished before its data until the server answers.
    connection.read(0, &bytes(RESUMING_LAST), 0, mark(4));
    let found: Vec<(usize, String, u64)> =
        connection.seen.iter().map(|seen| (seen.direction, seen.name.text(), seen.bytes)).collect();
    let expected = [
        (0, "ClientHello", 41),
        (1, "ServerHello", 36),
        (1, "ChangeCipherSpec", 6),
        (1, "Finished", 45),
        (0, "ChangeCipherSpec", 6),
        (0, "Finished", 45),
    ];
    assert_eq!(found, expected.map(|(side, name, bytes)| (side, name.to_owned(), bytes)));
    assert!(connection.is_over());
    assert_eq!(connection.is_resumed(), Some(true));
    assert_eq!(connection.cipher().unwrap().name(), "rc5-sha");
    assert_eq!(connection.directions[0].application_bytes, 37);
    assert_eq!(connection.directions[0].counts.retransmitted_segments, 3);
    assert!(connection.is_another(&bytes(CLIENT_HELLO)));
    assert!(!connection.is_another(&bytes(RESUMING_HELLO)));
}

#[test]
fn alerts_have_names() {
    let mut connection = WtlsConnection::default();
    connection.read(1, &bytes("c2ffff0006020542fa49bd"), 0, mark(1));
    let (level, description) = connection.alerts[0].content.unwrap();
    assert_eq!(
        (alert_level(level), alert_description(description)),
        ("critical".into(), "no_connection".into())
    );
}
