//! Captures that are easily misread, compared with tshark's output where possible.
#![allow(clippy::unwrap_used)]

mod support;

use shakedown_capture::CaptureError;
use support::{
    ACK, CLIENT, FIN, SERVER, SYN, Talk, block, client_hello, conversation, datagram, enhanced_packet,
    handshake, inspector, interface, ip, names, pcap, pcapng, read, record, secrets, tshark, whole,
};

const MESSAGES: usize = 9;

/// Handshake types as tshark lists them, in the order of packets.
fn types(capture: &[u8], extension: &str) -> Option<Vec<String>> {
    let rows = tshark(capture, extension, "tls.handshake.type", &["tls.handshake.type"])?;
    Some(rows.concat().iter().flat_map(|cell| cell.split(',').map(str::to_owned)).collect())
}

/// A SYN-ACK is repeated with another initial sequence number; the client acknowledges either of the two.
#[test]
fn acknowledged_one_of_two_initial_sequence_numbers_is_used() {
    for acknowledged in [0, 1] {
        for (loses_acknowledgement, server_first) in [(false, false), (true, false), (true, true)] {
            let mut talk = Talk::new(0, CLIENT);
            talk.send(true, SYN, &[]);
            let numbers = [900_000, 5_000_000_u32];
            for number in numbers {
                talk.next[1] = number;
                talk.send(false, SYN | ACK, &[]);
            }
            talk.next[1] = numbers[acknowledged] + 1;
            if !loses_acknowledgement {
                talk.send(true, ACK, &[]);
            }
            if server_first {
                // The ClientHello was acknowledged but not captured.
                talk.next[0] += client_hello().len() as u32;
                talk.say(&conversation()[1..]);
            } else {
                talk.say(&conversation());
            }
            talk.close();
            let capture = pcap(&talk.packets);
            let (told, summary) = read(&capture);
            let what = format!("{acknowledged} {loses_acknowledgement} {server_first}");
            assert_eq!((told.len(), summary.other_flows), (1, 0), "{what}");
            let expected = if server_first { MESSAGES - 1 } else { MESSAGES };
            assert_eq!(names(&told[0]).len(), expected, "{what}: {:?}", names(&told[0]));
            let gaps = if server_first { client_hello().len() as u64 } else { 0 };
            assert_eq!(told[0].gaps.server_to_client.bytes, 0, "{what}");
            assert_eq!(told[0].gaps.client_to_server.bytes, gaps, "{what}");
        }
    }
}

/// Another initial sequence number has no effect after the stream has begun.
#[test]
fn late_syn_ack_does_not_change_the_stream() {
    let mut talk = whole(0, CLIENT);
    let late = support::segment(SERVER, CLIENT, 7_000_000, 1001, SYN | ACK, &[]);
    talk.packets.insert(5, (5, late));
    let (told, _) = read(&pcap(&talk.packets));
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].messages.len(), told[0].complete), (MESSAGES, true));
}

/// Alerts and FINs that either side retransmits long after the end.
#[test]
fn retransmissions_after_the_end_are_not_a_connection() {
    for wait_ms in [100, 2500, 60_000] {
        let mut talk = Talk::new(0, CLIENT);
        talk.open();
        talk.say(&conversation());
        let alert = record(21, &[1, 0]);
        let (client, server) = (talk.next[0], talk.next[1]);
        talk.send(false, ACK, &alert);
        talk.send(true, ACK, &alert);
        talk.close();
        // Another connection advances the time of the capture.
        let mut packets = talk.packets.clone();
        let other = whole(wait_ms + 500, ([10, 0, 0, 9], 50_001));
        for (offset, packet) in [
            support::segment(SERVER, CLIENT, server, client, ACK, &alert),
            support::segment(CLIENT, SERVER, client, server, ACK | FIN, &alert),
            support::segment(SERVER, CLIENT, server, client, ACK | FIN, &alert),
        ]
        .into_iter()
        .enumerate()
        {
            packets.push((wait_ms + 600 + offset as u32, packet));
        }
        packets.extend(other.packets);
        packets.sort_by_key(|packet| packet.0);
        let capture = pcap(&packets);
        let (told, summary) = read(&capture);
        let counts = (told.len(), summary.connections, summary.handshakes, summary.other_flows);
        assert_eq!(counts, (2, 2, 2, 0), "{wait_ms}");
        let first = &told[0];
        assert_eq!((&*first.client, &*first.server), ("10.0.0.1:50000", "10.0.0.2:443"));
        assert!(first.complete);
        if let Some(rows) = tshark(&capture, "pcap", "tcp", &["tcp.stream"]) {
            let streams: std::collections::BTreeSet<_> = rows.concat().into_iter().collect();
            assert_eq!(streams.len(), told.len());
        }
    }
}

/// A later connection may use the same addresses and ports, even if its opening was not captured.
#[test]
fn reused_endpoints_are_another_connection() {
    for loses_opening in [false, true] {
        let first = whole(0, CLIENT);
        let mut again = Talk::new(10_000, CLIENT);
        again.next = [8_000_000, 9_000_000];
        again.open();
        if loses_opening {
            again.packets.clear();
        }
        again.say(&conversation());
        again.close();
        let between = whole(5_000, ([10, 0, 0, 9], 50_001));
        let (told, summary) = read(&pcap(&[first.packets, between.packets, again.packets].concat()));
        assert_eq!((told.len(), summary.handshakes), (3, 3), "{loses_opening}");
        assert!(told.iter().all(|one| one.complete && one.messages.len() == MESSAGES));
    }
}

/// If only data of a connection was captured, it has no handshake.
#[test]
fn connections_without_a_handshake_are_counted_separately() {
    let mut talk = Talk::new(0, CLIENT);
    talk.say(&[(true, record(23, &[5; 300])), (false, record(23, &[6; 300]))]);
    let (told, summary) = read(&pcap(&[talk.packets, whole(50, ([10, 0, 0, 9], 50_001)).packets].concat()));
    assert_eq!(told.iter().filter(|one| one.has_handshake()).count(), 1);
    assert_eq!((summary.connections, summary.handshakes), (2, 1));
}

/// Interfaces of unsupported link types together with supported ones.
#[test]
fn packets_of_unknown_link_types_are_reported() {
    let bluetooth = 201;
    let mut blocks = Vec::new();
    for (time_ms, packet) in whole(0, CLIENT).packets {
        blocks.push(enhanced_packet(0, time_ms, &packet));
        blocks.push(enhanced_packet(1, time_ms, &[1, 2, 3, 4, 5]));
    }
    let capture = pcapng(&[101, bluetooth], &blocks);
    let (told, summary) = read(&capture);
    assert_eq!((told.len(), told[0].messages.len()), (1, MESSAGES));
    let packets = blocks.len() / 2;
    let line = format!("skipped packets of unknown link type 201: {packets}");
    assert_eq!(summary.problems, [line]);
    if let Some(types) = types(&capture, "pcapng") {
        assert_eq!(types.len(), MESSAGES - 2 - 2, "what is encrypted or no handshake record is not listed");
    }
}

/// Packets of unknown link types are skipped anywhere; they are an error only if there are no others.
#[test]
fn packets_of_unknown_link_types_may_come_first() {
    let (usb, raw) = (189, 101);
    let odd = enhanced_packet(0, 1, &[1; 64]);
    let packets = |interface| {
        let packets = whole(0, CLIENT).packets;
        packets.iter().map(|(time, packet)| enhanced_packet(interface, *time, packet)).collect::<Vec<_>>()
    };
    let late_interface =
        [pcapng(&[usb], std::slice::from_ref(&odd)), interface(raw), packets(1).concat()].concat();
    let odd_section = pcapng(&[usb], std::slice::from_ref(&odd));
    let good_section = pcapng(&[raw], &packets(0));
    let cases = [
        (late_interface, 1),
        ([&odd_section[..], &good_section].concat(), 1),
        ([&good_section[..], &odd_section].concat(), 1),
        ([&odd_section[..], &good_section, &odd_section].concat(), 2),
    ];
    for (capture, count) in cases {
        let (told, summary) = read(&capture);
        assert_eq!((told.len(), told[0].messages.len()), (1, MESSAGES));
        let line = format!("skipped packets of unknown link type 189: {count}");
        assert_eq!(summary.problems, [line]);
        if let Some(types) = types(&capture, "pcapng") {
            assert_eq!(
                types.len(),
                MESSAGES - 2 - 2,
                "what is encrypted or no handshake record is not listed"
            );
        }
    }
    let mut inspector = inspector(&odd_section);
    assert!(inspector.next().is_none());
    let error = inspector.error();
    assert!(matches!(error, Some(CaptureError::UnknownLinkType { number: 189 })), "{error:?}");
}

/// A capture may contain a key log larger than any packet; its lines are counted across the pieces that are read.
#[test]
fn embedded_key_log_may_be_larger_than_a_packet() {
    let many = format!("# {}\n", "x".repeat(3000)).repeat(6000);
    assert!(many.len() > 17 << 20);
    for (text, problems) in [
        (many.clone(), vec![]),
        (
            many + "nonsense",
            vec![
                "invalid lines in the key logs of the capture: 1; the first: line 6001 has 1 \
                  fields instead of 3",
            ],
        ),
    ] {
        let mut blocks = vec![secrets(&text)];
        blocks
            .extend(whole(0, CLIENT).packets.iter().map(|(time, packet)| enhanced_packet(0, *time, packet)));
        let (told, summary) = read(&pcapng(&[101], &blocks));
        assert_eq!((told.len(), told[0].messages.len()), (1, MESSAGES));
        assert_eq!(summary.problems, problems);
    }
}

/// An unused block may be larger than any packet; a truncated one is reported.
#[test]
fn large_blocks_of_unknown_kinds_are_skipped() {
    let large = block(0x0bad, &vec![7; 20 << 20]);
    let packets = whole(0, CLIENT).packets;
    let mut blocks = vec![large.clone()];
    blocks.extend(packets.iter().map(|(time, packet)| enhanced_packet(0, *time, packet)));
    let capture = pcapng(&[101], &blocks);
    let (told, summary) = read(&capture);
    assert_eq!((told.len(), told[0].messages.len(), summary.problems.len()), (1, MESSAGES, 0));
    if let Some(types) = types(&capture, "pcapng") {
        assert_eq!(types.len(), MESSAGES - 2 - 2);
    }
    blocks.rotate_left(1);
    let capture = pcapng(&[101], &blocks);
    let cut = &capture[..capture.len() - 1000];
    let mut inspector = inspector(cut);
    assert_eq!(inspector.by_ref().count(), 1);
    let expected = (large.len() as u64, large.len() as u64 - 1000);
    match inspector.error() {
        Some(CaptureError::Cut { expected: takes, found, .. }) => assert_eq!((*takes, *found), expected),
        other => panic!("{other:?}"),
    }
}

/// Packets with authentication headers (RFC 4302) are decoded.
#[test]
fn packets_with_authentication_headers_are_decoded() {
    let wrapped = whole(0, CLIENT).packets.into_iter().map(|(time, packet)| {
        // 24 bytes: 12 of header, 12 of check value.
        let header = [&[6, 4, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1][..], &[9; 12], &packet[20..]].concat();
        (time, ip(51, packet[12..16].try_into().unwrap(), packet[16..20].try_into().unwrap(), &header))
    });
    let capture = pcap(&wrapped.collect::<Vec<_>>());
    let (told, summary) = read(&capture);
    assert_eq!((told.len(), told[0].messages.len(), told[0].complete), (1, MESSAGES, true));
    assert_eq!(summary.other_packets, 0);
    if let Some(types) = types(&capture, "pcap") {
        assert_eq!(types.len(), MESSAGES - 2 - 2);
    }
}

/// Drafts 16 to 21 of TLS 1.3 have their version in ServerHello, which has no session identifier.
#[test]
fn tls_1_3_drafts_have_their_cipher_and_name() {
    for draft in [16, 17, 18, 19, 20, 21] {
        // A key share of X25519.
        let share = [&[0, 51, 0, 36, 0, 29, 0, 32][..], &[8; 32]].concat();
        let extensions = [&[0, 40][..], &share].concat();
        let hello = [&[0x7f, draft][..], &[9; 32], &[0x13, 0x01], &extensions].concat();
        let undecrypted =
            |bytes| [&[23, 3, 1][..], &u16::to_be_bytes(bytes), &vec![4; usize::from(bytes)]].concat();
        let flight = [handshake(2, &hello), undecrypted(900)].concat();
        let mut talk = Talk::new(0, CLIENT);
        talk.open();
        talk.say(&[
            (true, client_hello()),
            (false, flight),
            (true, undecrypted(53)),
            (false, undecrypted(200)),
        ]);
        talk.close();
        let capture = pcap(&talk.packets);
        let (told, _) = read(&capture);
        assert_eq!(told[0].protocol, Some(&*format!("tls1.3-draft{draft}")));
        assert_eq!(told[0].cipher.as_deref(), Some("TLS_AES_128_GCM_SHA256"));
        assert_eq!((told[0].suite.as_deref(), told[0].complete), (None, true), "{:?}", told[0]);
        let fields = ["tls.handshake.ciphersuite"];
        if let Some(rows) = tshark(&capture, "pcap", "tls.handshake.type == 2", &fields) {
            assert_eq!(rows, [["0x1301"]], "draft {draft}");
        }
    }
}

#[test]
fn handshake_behind_a_proxy_header_is_decoded() {
    let text = b"PROXY TCP4 192.0.2.1 10.0.0.2 56324 443\r\n".to_vec();
    let binary = [
        &b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c"[..],
        &[192, 0, 2, 1, 10, 0, 0, 2],
        &56324_u16.to_be_bytes(),
        &443_u16.to_be_bytes(),
    ]
    .concat();
    for header in [text, binary] {
        for cut in 0..=header.len() {
            let mut said = conversation();
            let hello = [&header[..], &said[0].1].concat();
            // In one segment, or split anywhere in the header or at its end.
            said[0].1 = hello[cut..].to_vec();
            let mut talk = Talk::new(0, CLIENT);
            talk.open();
            if cut > 0 {
                talk.send(true, ACK, &hello[..cut]);
            }
            talk.say(&said);
            talk.close();
            let capture = pcap(&talk.packets);
            let (told, summary) = read(&capture);
            assert_eq!((told.len(), summary.other_flows), (1, 0), "cut at {cut}");
            assert_eq!((told[0].messages.len(), told[0].complete), (MESSAGES, true), "cut at {cut}");
            let bytes = conversation().iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>();
            assert_eq!(told[0].bytes.total, bytes, "the header is no handshake");
            let expected = format!(
                "{} bytes of PROXY header precede the handshake, which names the client 192.0.2.1:56324",
                header.len()
            );
            assert_eq!(told[0].problems, [expected], "cut at {cut}");
        }
    }
}

/// Protocols that may contain handshakes but are not decoded are reported by name.
#[test]
fn tunnels_and_quic_are_reported_by_name() {
    let inner = whole(0, CLIENT).packets[3].1.clone();
    let far = ([10, 9, 9, 9], 40_000);
    let to = |port, payload: &[u8]| datagram(far, ([10, 9, 9, 8], port), payload);
    let quic = [&[0xc3, 0, 0, 0, 1, 8][..], &[5; 8], &[0, 0, 0x44, 0x9e], &[6; 1182]].concat();
    let short = [&[0x41][..], &[5; 60]].concat();
    let ethernet = [&[0; 12][..], &[8, 0], &inner].concat();
    let vxlan = [&[8, 0, 0, 0, 0, 0, 7, 0][..], &ethernet].concat();
    let with_policy = [&[0x88, 0, 0, 7, 0, 0, 7, 0][..], &ethernet].concat();
    let generic = [&[0x0c, 0, 0, 3, 0, 0, 7, 0][..], &ethernet].concat();
    let quic_of = |version: u32| [&quic[..1], &version.to_be_bytes(), &quic[5..]].concat();
    let length = (inner.len() as u16).to_be_bytes();
    let gtp = [&[0x30, 0xff, length[0], length[1], 0, 0, 0, 1][..], &inner].concat();
    let version_6 = [&[0x60, 0, 0, 0, 0, 0, 59, 64][..], &[1; 32]].concat();
    let packets = [
        ("QUIC", "quic", vec![to(443, &quic), to(443, &short)]),
        ("VXLAN", "vxlan", vec![to(4789, &vxlan)]),
        ("VXLAN", "vxlan", vec![to(4789, &with_policy)]),
        ("VXLAN-GPE", "vxlan", vec![to(4790, &generic)]),
        ("QUIC", "quic", vec![to(443, &quic_of(0xface_b002))]),
        ("QUIC", "quic", vec![to(443, &quic_of(0x1a2a_3a4a))]),
        ("QUIC", "gquic || quic", vec![to(443, &quic_of(u32::from_be_bytes(*b"Q050")))]),
        ("GTP-U", "gtp", vec![to(2152, &gtp)]),
        ("6in4", "ipv6", vec![ip(41, far.0, [10, 9, 9, 8], &version_6)]),
        ("GRE", "gre", vec![ip(47, far.0, [10, 9, 9, 8], &[&[0, 0, 8, 0][..], &inner].concat())]),
        ("IPv4 in IP", "ip.dst == 10.9.9.8 && tcp", vec![ip(4, far.0, [10, 9, 9, 8], &inner)]),
    ];
    for (name, filter, made) in packets {
        let count = made.len() as u64;
        let capture = pcap(&made.into_iter().map(|packet| (1, packet)).collect::<Vec<_>>());
        let (told, summary) = read(&capture);
        assert!(told.is_empty(), "{name}");
        assert_eq!(summary.unread.iter().collect::<Vec<_>>(), [(&name, &count)]);
        if let Some(rows) = tshark(&capture, "pcap", filter, &["frame.number"]) {
            assert!(!rows.is_empty(), "tshark sees no {name}");
        }
    }
    let (_, summary) = read(&pcap(&[(1, to(53, &[0; 40])), (2, to(4789, b"something else"))]));
    assert!(summary.unread.is_empty(), "{:?}", summary.unread);
}

/// DTLS 1.3 has its version in an extension; later records have unified headers (RFC 9147 section 4).
#[test]
fn dtls_1_3_is_distinguished_from_dtls_1_2() {
    let plain = |number: u8, kind: u8, body: &[u8]| {
        let length = (body.len() as u32).to_be_bytes();
        let fragment = [&[kind][..], &length[1..], &[0, number, 0, 0, 0], &length[1..], body].concat();
        let size = (fragment.len() as u16).to_be_bytes();
        [&[22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, number][..], &size, &fragment].concat()
    };
    let versions = [0, 43, 0, 3, 2, 0xfe, 0xfc];
    let client = [&[0xfe, 0xfd][..], &[7; 32], &[0, 0, 0, 2, 0x13, 1, 1, 0, 0, 7], &versions].concat();
    let share = [&[0, 51, 0, 36, 0, 29, 0, 32][..], &[8; 32]].concat();
    let chosen = [0, 43, 0, 2, 0xfe, 0xfc];
    let extensions = [&[0, 46][..], &chosen, &share].concat();
    let server = [&[0xfe, 0xfd][..], &[9; 32], &[0, 0x13, 1, 0], &extensions].concat();
    let undecrypted = |epoch: u8, bytes: u16| {
        [&[0x2c | epoch, 0x55, 0x66][..], &bytes.to_be_bytes(), &vec![4; usize::from(bytes)]].concat()
    };
    let server_end = ([10, 0, 0, 2], 4433);
    let packets: Vec<(u32, Vec<u8>)> = vec![
        (1, datagram(CLIENT, server_end, &plain(0, 1, &client))),
        (2, datagram(server_end, CLIENT, &[plain(0, 2, &server), undecrypted(2, 600)].concat())),
        (3, datagram(CLIENT, server_end, &undecrypted(2, 60))),
        (4, datagram(server_end, CLIENT, &undecrypted(3, 100))),
    ];
    let capture = pcap(&packets);
    let (told, _) = read(&capture);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].protocol, Some("dtls1.3"), "{:?}", told[0]);
    assert_eq!(told[0].cipher.as_deref(), Some("TLS_AES_128_GCM_SHA256"));
    assert_eq!(told[0].encrypted.server_to_client.bytes, 605);
    assert!(told[0].complete);
    if let Some(rows) = tshark(&capture, "pcap", "dtls.handshake.type == 2", &["dtls.handshake.ciphersuite"])
    {
        assert_eq!(rows, [["0x1301"]]);
    }
}

/// Invalid key log lines in a capture are reported, and the capture is read.
#[test]
fn bad_embedded_key_log_lines_do_not_stop_the_capture() {
    let good = format!("CLIENT_RANDOM {} {}", "07".repeat(32), "01".repeat(48));
    let mut blocks = vec![secrets(&format!("# begin\nCLIENT_RANDOM nonsense\n{good}\nwhat is this\n"))];
    blocks.extend(whole(0, CLIENT).packets.iter().map(|(time, packet)| enhanced_packet(0, *time, packet)));
    let capture = pcapng(&[101], &blocks);
    let (told, summary) = read(&capture);
    assert_eq!((told.len(), told[0].messages.len()), (1, MESSAGES));
    let expected = "invalid lines in the key logs of the capture: 2; the first: line 2 has 2 fields \
                    instead of 3";
    assert_eq!(summary.problems, [expected]);
    if let Some(types) = types(&capture, "pcapng") {
        assert!(!types.is_empty());
    }
}
