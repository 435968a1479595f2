//! The server against clients of this program's stacks, full handshakes and resumed ones, over TCP and UDP.
#![allow(clippy::unwrap_used)]

#[path = "serve/client.rs"]
mod client;
#[path = "serve/injections.rs"]
mod injections;
#[path = "../../stacks/tests/stacks/stranger.rs"]
mod stranger;

use client::{Client, Outcome};
use shakedown_live::serve::{Config, PayloadWhen, Server};
use shakedown_stacks::Settings;
use shakedown_trace::Suite;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(300);

fn suite(name: &str) -> Suite {
    name.parse().unwrap()
}

fn config(name: &str) -> Config {
    Config::new(vec![suite(name)], "127.0.0.1:0".parse().unwrap())
}

fn start(config: Config) -> Server {
    Server::start(config, &Settings::default()).unwrap()
}

/// Stops a server gracefully and returns its summary.
fn stop(mut server: Server) -> shakedown_live::serve::Summary {
    server.stop();
    assert!(server.wait(LONG).unwrap());
    server.summary()
}

/// A full handshake with a server of the same suite and, if the suite resumes, a resumed one.
fn meets(name: &str, stack: Option<&str>) {
    let config = Config { payload_bytes: 3_000, ..config(name) };
    let settings = Settings { server_stack: stack.map(Into::into), ..Settings::default() };
    let server = Server::start(config, &settings).unwrap();
    let client = Client::new(&suite(name), &settings);
    let Outcome { negotiated, session, answer } = client.connect(server.address(), None, b"\x01", 3_000);
    assert!(!negotiated.resumed, "{name}");
    assert_eq!(answer, vec![b'.'; 3_000], "{name}");
    let resumes = suite(name).is_resumption();
    if resumes {
        let again = client.connect(server.address(), session, b"\x01", 3_000);
        assert_eq!(again.negotiated.difference(&suite(name)), None, "{name}");
    }
    let counted = stop(server);
    let expected = (1, u64::from(resumes), true);
    let handshakes = &counted.handshakes;
    assert_eq!((handshakes.full, handshakes.resumed, handshakes.failed.is_empty()), expected, "{name}");
}

#[test]
fn tls_is_served_in_every_version_and_mode() {
    for name in [
        "ssl3/rsa/rsa1024/server",
        "tls1.0/dhe_dss+dh1024/dsa1024/mutual",
        "tls1.0/rsa/rsa1024/server/resumed",
        "tls1.2/psk",
        "tls1.2/dh_anon+dh512",
        "tls1.2/ecdhe_ecdsa+x25519/p256/mutual",
        "tls1.2/ecdhe_rsa+x25519/rsa2048/server/resumed",
        "tls1.2/ecdhe_rsa+x25519/rsa2048/server/ticket",
        "tls1.3/psk_dhe+x25519",
        "tls1.3/x25519/p256/requested",
        "tls1.3/x25519/p256/server/resumed",
        "tls1.3/x25519mlkem768/mldsa65/mutual",
    ] {
        meets(name, None);
    }
}

#[test]
fn tls_is_served_by_rustls() {
    for name in [
        "tls1.3/x25519/p256/mutual",
        "tls1.3/x25519/p256/server/resumed",
        "tls1.2/ecdhe_ecdsa+x25519/p256/server/resumed",
        "tls1.2/ecdhe_ecdsa+x25519/p256/server/ticket",
    ] {
        meets(name, Some("rustls"));
    }
}

#[test]
fn wtls_is_served_with_every_key_exchange() {
    for name in [
        "wtls/rsa/rsa1024/server",
        "wtls/rsa_anon/rsa1024",
        "wtls/dh_anon+dh768",
        "wtls/ecdh_anon+163k",
        "wtls/ecdh_ecdsa/163k/mutual",
        "wtls/ecdh_ecdsa/163k/server/resumed",
        "wtls/shared_secret",
    ] {
        meets(name, None);
    }
}

#[test]
fn workers_share_a_port() {
    for name in ["tls1.3/x25519/p256/server", "wtls/ecdh_ecdsa/163k/server"] {
        let server = start(Config { workers: 3, payload_bytes: 1, ..config(name) });
        let client = Client::new(&suite(name), &Settings::default());
        for _ in 0..20 {
            client.connect(server.address(), None, b"\x01", 1);
        }
        let counted = stop(server);
        assert_eq!((counted.workers, counted.handshakes.full), (3, 20));
    }
}

#[test]
fn payload_is_sent_without_a_request_if_configured() {
    let payload = PayloadWhen::Handshake;
    let config =
        Config { payload_bytes: 2_500, payload_when: payload, ..config("wtls/ecdh_ecdsa/163k/server") };
    let server = start(config);
    let client = Client::new(&suite("wtls/ecdh_ecdsa/163k/server"), &Settings::default());
    assert_eq!(client.connect(server.address(), None, b"", 2_500).answer.len(), 2_500);
}

fn wait_until(is_so: impl Fn() -> bool) {
    let until = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Unread bytes of the UDP socket, of any process, that is bound to a port of 127.0.0.1: `rx_queue` of proc(5). `None`
/// if the table omits the socket, which happens while other processes open and close sockets.
fn unread_bytes(address: SocketAddr) -> Option<u64> {
    let wanted = format!("0100007F:{:04X}", address.port());
    let table = std::fs::read_to_string("/proc/net/udp").unwrap();
    let row: Vec<&str> =
        table.lines().map(|line| line.split_whitespace().collect()).find(|row: &Vec<_>| row[1] == wanted)?;
    Some(u64::from_str_radix(row[4].split_once(':').unwrap().1, 16).unwrap())
}

#[test]
fn half_open_wtls_clients_do_not_block_others() {
    let name = "wtls/ecdh_ecdsa/163k/server";
    let config = Config { max_handshakes: 500, payload_bytes: 1, ..config(name) };
    let server = start(config);
    let client = Client::new(&suite(name), &Settings::default());
    let hello = client.first_flight();
    let evicted = || server.summary().handshakes.failed.get("too-many-handshakes").copied().unwrap_or(0);
    let mut sockets = Vec::new();
    // No faster than the server reads them, because the kernel drops datagrams that do not fit into its buffer.
    for _ in 0..50 {
        for _ in 0..50 {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.send_to(&hello, server.address()).unwrap();
            sockets.push(socket);
        }
        wait_until(|| unread_bytes(server.address()) == Some(0));
    }
    wait_until(|| evicted() >= 1_000);
    client.connect(server.address(), None, b"\x01", 1);
    drop(sockets);
    let counted = stop(server);
    assert_eq!(counted.handshakes.full, 1);
    let evicted = counted.handshakes.failed.get("too-many-handshakes").copied().unwrap_or(0);
    assert!(evicted >= 1_000, "{:?}", counted.handshakes);
}

#[test]
fn stalled_wtls_handshake_times_out() {
    let name = "wtls/ecdh_ecdsa/163k/server";
    let server = start(Config { handshake_timeout: Duration::from_millis(50), ..config(name) });
    let client = Client::new(&suite(name), &Settings::default());
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(&client.first_flight(), server.address()).unwrap();
    let failed = || server.summary().handshakes.failed.get("timeout").copied();
    wait_until(|| failed().is_some());
    assert_eq!(failed(), Some(1));
}

#[test]
fn server_survives_garbage_over_udp() {
    let name = "wtls/ecdh_ecdsa/163k/server";
    let server = start(Config { payload_bytes: 1, ..config(name) });
    let client = Client::new(&suite(name), &Settings::default());
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let hello = client.first_flight();
    for length in 0..hello.len() {
        socket.send_to(&hello[..length], server.address()).unwrap();
        let mut damaged = hello.clone();
        damaged[length] ^= 0xff;
        socket.send_to(&damaged, server.address()).unwrap();
        socket.send_to(&vec![u8::try_from(length % 256).unwrap(); 1 + length * 7], server.address()).unwrap();
    }
    client.connect(server.address(), None, b"\x01", 1);
    assert_eq!(stop(server).handshakes.full, 1);
}
