//! Builds captures packet by packet, and reads them with tshark.
#![allow(clippy::unwrap_used, dead_code)]

use shakedown_capture::inspect::{Inspector, Limits};
use shakedown_capture::report::{Connection, Summary};
use shakedown_capture::tls::keylog::KeyLog;
use std::process::Command;

pub const CLIENT: ([u8; 4], u16) = ([10, 0, 0, 1], 50_000);
pub const SERVER: ([u8; 4], u16) = ([10, 0, 0, 2], 443);
pub const SYN: u8 = 2;
pub const FIN: u8 = 1;
pub const ACK: u8 = 16;
pub const RST: u8 = 4;

type End = ([u8; 4], u16);

/// An IPv4 packet of any protocol.
pub fn ip(protocol: u8, from: [u8; 4], to: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let length = (20 + payload.len() as u16).to_be_bytes();
    let head = [0x45, 0, length[0], length[1], 0, 0, 0x40, 0, 64, protocol, 0, 0];
    [&head[..], &from, &to, payload].concat()
}

pub fn segment(from: End, to: End, sequence: u32, ack: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut tcp = [from.1.to_be_bytes(), to.1.to_be_bytes()].concat();
    tcp.extend(sequence.to_be_bytes());
    tcp.extend(ack.to_be_bytes());
    tcp.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    ip(6, from.0, to.0, &[&tcp, payload].concat())
}

pub fn datagram(from: End, to: End, payload: &[u8]) -> Vec<u8> {
    let length = (8 + payload.len() as u16).to_be_bytes();
    let udp = [&from.1.to_be_bytes()[..], &to.1.to_be_bytes(), &length, &[0, 0], payload].concat();
    ip(17, from.0, to.0, &udp)
}

/// A classic capture of raw IP, times in milliseconds.
pub fn pcap(packets: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut out = [&0xa1b2_c3d4_u32.to_le_bytes()[..], &[2, 0, 4, 0], &[0; 8], &[0, 0, 4, 0]].concat();
    out.extend(101_u32.to_le_bytes());
    for (time_ms, packet) in packets {
        let length = packet.len() as u32;
        for word in [time_ms / 1000, time_ms % 1000 * 1000, length, length] {
            out.extend(word.to_le_bytes());
        }
        out.extend(packet);
    }
    out
}

pub fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    body.resize(body.len().next_multiple_of(4), 0);
    let length = (12 + body.len() as u32).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, &body, &length].concat()
}

/// A pcapng interface of this link type.
pub fn interface(link: u16) -> Vec<u8> {
    block(1, &[&link.to_le_bytes()[..], &[0; 6]].concat())
}

/// A pcapng section with interfaces of these link types, followed by `blocks`.
pub fn pcapng(links: &[u16], blocks: &[Vec<u8>]) -> Vec<u8> {
    let section = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
    let mut out = block(0x0a0d_0d0a, &section);
    for &link in links {
        out.extend(interface(link));
    }
    out.extend(blocks.concat());
    out
}

pub fn enhanced_packet(interface: u32, time_ms: u32, packet: &[u8]) -> Vec<u8> {
    let length = packet.len() as u32;
    let words = [interface, 0, time_ms * 1000, length, length];
    block(6, &[&words.map(u32::to_le_bytes).concat()[..], packet].concat())
}

pub fn secrets(text: &str) -> Vec<u8> {
    let head = [0x544c_534b_u32.to_le_bytes(), (text.len() as u32).to_le_bytes()].concat();
    block(10, &[&head[..], text.as_bytes()].concat())
}

pub fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind, 3, 3][..], &(body.len() as u16).to_be_bytes(), body].concat()
}

pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32).to_be_bytes();
    [&[kind][..], &length[1..], body].concat()
}

pub fn handshake(kind: u8, body: &[u8]) -> Vec<u8> {
    record(22, &message(kind, body))
}

pub fn client_hello() -> Vec<u8> {
    handshake(1, &[&[3, 3][..], &[7; 32], &[0, 0, 2, 0, 0x2f, 1, 0]].concat())
}

pub fn server_hello() -> Vec<u8> {
    handshake(2, &[&[3, 3][..], &[9; 32], &[0, 0, 0x2f, 0]].concat())
}

/// All flights of a handshake with RSA key transport; encrypted parts are filler.
pub fn conversation() -> Vec<(bool, Vec<u8>)> {
    let finish = [record(20, &[1]), record(22, &[0x5a; 40])].concat();
    let flight = [server_hello(), handshake(11, &[0, 0, 0]), handshake(14, &[])].concat();
    vec![
        (true, client_hello()),
        (false, flight),
        (true, [handshake(16, &[2; 66]), finish.clone()].concat()),
        (false, finish),
    ]
}

/// A connection whose packets are sent at intervals of one millisecond.
pub struct Talk {
    pub packets: Vec<(u32, Vec<u8>)>,
    pub time_ms: u32,
    pub client: End,
    pub next: [u32; 2],
}

impl Talk {
    pub fn new(start_ms: u32, client: End) -> Self {
        Self { packets: Vec::new(), time_ms: start_ms, client, next: [1000, 900_000] }
    }

    pub fn send(&mut self, from_client: bool, flags: u8, payload: &[u8]) {
        let (from, to) = if from_client { (self.client, SERVER) } else { (SERVER, self.client) };
        let (mine, theirs) = if from_client { (0, 1) } else { (1, 0) };
        let ack = if flags & ACK != 0 { self.next[theirs] } else { 0 };
        self.packets.push((self.time_ms, segment(from, to, self.next[mine], ack, flags, payload)));
        self.time_ms += 1;
        self.next[mine] += payload.len() as u32 + u32::from(flags & (SYN | FIN) != 0);
    }

    pub fn open(&mut self) {
        self.send(true, SYN, &[]);
        self.send(false, SYN | ACK, &[]);
        self.send(true, ACK, &[]);
    }

    pub fn say(&mut self, conversation: &[(bool, Vec<u8>)]) {
        for (from_client, bytes) in conversation {
            self.send(*from_client, ACK, bytes);
        }
    }

    pub fn close(&mut self) {
        self.send(true, FIN | ACK, &[]);
        self.send(false, FIN | ACK, &[]);
        self.send(true, ACK, &[]);
    }
}

pub fn whole(start_ms: u32, client: End) -> Talk {
    let mut talk = Talk::new(start_ms, client);
    talk.open();
    talk.say(&conversation());
    talk.close();
    talk
}

pub fn read(capture: &[u8]) -> (Vec<Connection>, Summary) {
    let mut inspector = inspector(capture);
    let mut connections: Vec<Connection> = inspector.by_ref().collect();
    connections.sort_by_key(|connection| connection.index);
    assert!(inspector.error().is_none(), "{:?}", inspector.error());
    (connections, inspector.summary())
}

pub fn inspector(capture: &[u8]) -> Inspector<&[u8]> {
    Inspector::new(capture, KeyLog::default(), Limits::default()).unwrap()
}

pub fn names(connection: &Connection) -> Vec<String> {
    connection.messages.iter().map(|one| format!("{} {}", one.from, one.name)).collect()
}

/// The values of `fields` that tshark prints for the packets that match `filter`; `None` without tshark.
///
/// # Panics
/// If tshark is missing although it is required (`CI=true`), or cannot read the capture.
pub fn tshark(capture: &[u8], extension: &str, filter: &str, fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let id = format!("{:?}", std::thread::current().id()).replace(|one: char| !one.is_ascii_digit(), "");
    let path = std::env::temp_dir().join(format!("shakedown-{}-{id}.{extension}", std::process::id()));
    std::fs::write(&path, capture).unwrap();
    let mut command = Command::new("tshark");
    command.env("HOME", "/nonexistent").args(["-2", "-r"]).arg(&path);
    command.args([
        "-R",
        filter,
        "-T",
        "fields",
        "-E",
        "separator=|",
        "-d",
        "tcp.port==443,tls",
        "-d",
        "udp.port==4433,dtls",
    ]);
    for field in fields {
        command.args(["-e", field]);
    }
    let done = command.output();
    std::fs::remove_file(&path).unwrap();
    let Ok(done) = done else {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "tshark is not installed");
        return None;
    };
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let text = String::from_utf8(done.stdout).unwrap();
    Some(text.lines().map(|line| line.split('|').map(str::to_owned).collect()).collect())
}
