#![allow(clippy::unwrap_used)]

use super::packet::{fold, sum};
use super::*;
use std::env::temp_dir;
use std::io::ErrorKind;

fn path(name: &str) -> PathBuf {
    temp_dir().join(format!("shakedown-write-{}-{name}.pcap", std::process::id()))
}

fn written(name: &str, conversation: &Conversation<'_>) -> Vec<u8> {
    let path = path(name);
    let mut writer = Writer::create(&path).unwrap();
    writer.connection(conversation).unwrap();
    writer.finish().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    bytes
}

/// Frames with their times in nanoseconds.
fn frames(file: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let mut at = 24;
    let mut frames = Vec::new();
    while at < file.len() {
        let length = word(at + 8) as usize;
        let time = u64::from(word(at)) * 1_000_000_000 + u64::from(word(at + 4));
        frames.push((time, file[at + 16..at + 16 + length].to_vec()));
        at += 16 + length;
    }
    frames
}

fn conversation<'a>(transport: Transport, chunks: &'a [Chunk<'a>]) -> Conversation<'a> {
    Conversation {
        transport,
        client: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 49_152),
        server: SocketAddrV4::new(SERVER_ADDRESS, 443),
        start: Duration::new(1_000_000_000, 5),
        chunks,
    }
}

/// A correct checksum makes the sum over everything, itself included, all ones.
fn checksums_hold(frame: &[u8]) -> bool {
    let ip = &frame[14..];
    let (protocol, payload) = (ip[9], &ip[20..]);
    let mut total = sum(0, &ip[12..20]) + u64::from(protocol) + payload.len() as u64;
    total = sum(total, payload);
    fold(sum(0, &ip[..20])) == 0 && fold(total) == 0
}

#[test]
fn stream_has_opening_segments_and_closing() {
    let (hello, answer) = (vec![1; 300], (0..5000).map(|n| n as u8).collect::<Vec<_>>());
    let chunks = [
        Chunk { from: Side::Client, time: Duration::from_nanos(7), bytes: &hello },
        Chunk { from: Side::Server, time: Duration::from_micros(3), bytes: &answer },
    ];
    let frames = frames(&written("stream", &conversation(Transport::Stream, &chunks)));
    assert!(frames.iter().all(|(_, frame)| checksums_hold(frame)));
    let from_server: Vec<u8> = frames
        .iter()
        .filter(|(_, frame)| frame[26..30] == SERVER_ADDRESS.octets() && frame[47] & 2 == 0)
        .flat_map(|(_, frame)| frame[34 + 20..].to_vec())
        .collect();
    assert_eq!(from_server, answer);
    assert!(frames.iter().all(|(_, frame)| frame.len() <= 14 + 1500));
    assert_eq!(frames[3].0, 1_000_000_000_000_000_012);
    // SYN, SYN-ACK, ACK, hello, four segments with one acknowledgement between and one behind, FIN, FIN, ACK.
    assert_eq!(frames.len(), 4 + 4 + 2 + 3);
    let sequence = |index: usize| u32::from_be_bytes(frames[index].1[38..42].try_into().unwrap());
    assert_eq!(sequence(3), sequence(0).wrapping_add(1));
    assert_eq!(sequence(frames.len() - 1), sequence(0).wrapping_add(302));
}

#[test]
fn large_datagram_is_written_in_fragments() {
    let bytes: Vec<u8> = (0..4000).map(|n| n as u8).collect();
    let chunks = [Chunk { from: Side::Client, time: Duration::ZERO, bytes: &bytes }];
    let frames = frames(&written("datagram", &conversation(Transport::Datagram, &chunks)));
    let fields: Vec<u16> =
        frames.iter().map(|(_, frame)| u16::from_be_bytes(frame[20..22].try_into().unwrap())).collect();
    assert_eq!(fields, [0x2000, 0x2000 | 185, 370]);
    let joined: Vec<u8> = frames.iter().flat_map(|(_, frame)| frame[34..].to_vec()).collect();
    assert_eq!(joined[8..], bytes);
    let mut whole = frames[0].1[..34].to_vec();
    whole.extend_from_slice(&joined);
    let mut total = sum(0, &whole[26..34]) + 17 + joined.len() as u64;
    total = sum(total, &joined);
    assert_eq!(fold(total), 0);
}

#[test]
fn unfinished_or_failed_capture_has_no_file() {
    let path = path("atomic");
    let mut writer = Writer::create(&path).unwrap();
    let bytes = vec![0; MAXIMUM_DATAGRAM_BYTES + 1];
    let chunks = [Chunk { from: Side::Client, time: Duration::ZERO, bytes: &bytes }];
    let error = writer.connection(&conversation(Transport::Datagram, &chunks)).unwrap_err();
    assert!(matches!(error, WriteError::DatagramTooLarge { bytes: 65_508 }));
    let temporary = writer.file.get_ref().path().to_path_buf();
    assert!(temporary.exists() && !path.exists());
    drop(writer);
    assert!(!temporary.exists() && !path.exists());
}

#[test]
fn missing_folder_and_folder_as_file_are_reported() {
    assert!(matches!(Writer::create(Path::new("/nowhere/at/all.pcap")), Err(WriteError::Create { .. })));
    assert!(matches!(Writer::create(&temp_dir()), Err(WriteError::Create { .. })));
}

#[test]
fn existing_files_are_not_replaced_and_links_not_followed() {
    let folder = temp_dir().join(format!("shakedown-write-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (taken, link, target) = (folder.join("taken"), folder.join("link"), folder.join("target"));
    std::fs::write(&taken, "mine").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    for path in [&taken, &link] {
        let error = Writer::create(path).unwrap_err();
        assert!(
            matches!(&error, WriteError::Create { source, .. } if source.kind() == ErrorKind::AlreadyExists)
        );
    }
    let path = folder.join("new");
    let writer = Writer::create(&path).unwrap();
    // Another file with the name is created before the capture is finished.
    std::fs::write(&path, "later").unwrap();
    assert!(matches!(writer.finish(), Err(WriteError::Write { .. })));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "later");
    assert_eq!(std::fs::read_to_string(&taken).unwrap(), "mine");
    assert!(link.is_symlink() && !target.exists());
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 3);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn time_beyond_the_pcap_range_is_refused() {
    let path = path("late");
    let mut writer = Writer::create(&path).unwrap();
    let chunks = [Chunk { from: Side::Client, time: Duration::ZERO, bytes: &[1] }];
    let mut late = conversation(Transport::Stream, &chunks);
    late.start = Duration::from_secs(1 << 32);
    assert!(matches!(writer.connection(&late), Err(WriteError::TimeTooLate { .. })));
}

#[test]
fn client_addresses_are_unique() {
    let path = path("addresses");
    let mut writer = Writer::create(&path).unwrap();
    let all: std::collections::HashSet<_> = (0..40_000).map(|_| writer.addresses(443).0).collect();
    assert_eq!(all.len(), 40_000);
}
