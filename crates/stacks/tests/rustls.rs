//! rustls and OpenSSL in every pairing: the same handshakes, operation by operation and message by message.
#![allow(clippy::unwrap_used)]

use shakedown_stacks::{Settings, prepare};
use shakedown_trace::driver::Loopback;
use shakedown_trace::suite::Protocol;
use shakedown_trace::{Counter, MessageName, Operation, Primitive, Recorded, Recording, Side, Suite, Trace};
use std::collections::BTreeMap;

const STACKS: [&str; 2] = ["openssl", "rustls"];

const SUITES: [&str; 26] = [
    "tls1.3/x25519/p256/server",
    "tls1.3/x25519/p256/requested",
    "tls1.3/x25519/p256/mutual",
    "tls1.3/p256/rsa2048/server",
    "tls1.3/p384/p384/mutual",
    "tls1.3/x25519/p521/server",
    "tls1.3/x25519/ed25519/mutual",
    "tls1.3/x25519mlkem768/p256/server",
    "tls1.3/secp256r1mlkem768/p256/server",
    "tls1.3/mlkem768/rsa3072/mutual",
    "tls1.3/mlkem1024/p256/server",
    "tls1.3/x25519/p256@p384@rsa4096/mutual",
    "tls1.3/x25519/p256/server/aes256-gcm",
    "tls1.3/x25519/p256/mutual/chacha20",
    "tls1.3/x25519/p256/server/resumed",
    "tls1.3/x25519mlkem768/p256/server/resumed",
    "tls1.2/ecdhe_ecdsa+x25519/p256/server",
    "tls1.2/ecdhe_ecdsa+p384/p384/mutual",
    "tls1.2/ecdhe_rsa+x25519/rsa2048/server",
    "tls1.2/ecdhe_rsa+p256/rsa2048@p256/requested",
    "tls1.2/ecdhe_rsa+p256/rsa2048/mutual",
    "tls1.2/ecdhe_ecdsa+x25519/p256/mutual/aes256-gcm",
    "tls1.2/ecdhe_ecdsa+x25519/p256/server/chacha20",
    "tls1.2/ecdhe_rsa+x25519/rsa2048/server/resumed",
    "tls1.2/ecdhe_ecdsa+x25519/p256/server/ticket",
    "tls1.2/ecdhe_rsa+x25519/rsa2048/mutual/ticket",
];

fn suite(name: &str) -> Suite {
    name.parse().unwrap()
}

/// Runs one handshake between two stacks.
fn run(suite: &Suite, client: &str, server: &str) -> Trace {
    let settings = Settings {
        client_stack: Some(client.into()),
        server_stack: Some(server.into()),
        ..Settings::default()
    };
    let peers =
        prepare(suite, &settings).unwrap_or_else(|error| panic!("{suite}, {client}-{server}: {error}"));
    assert_eq!(peers.id.client_stack.name, client);
    assert_eq!(peers.id.server_stack.name, server);
    let pair = peers.pair().unwrap();
    let mut client = Recorded::new(pair.client, Recording::new(Counter::NANOSECONDS));
    let mut server = Recorded::new(pair.server, Recording::new(Counter::NANOSECONDS));
    let handshake = Loopback::new()
        .handshake(&mut client, &mut server, &mut ())
        .unwrap_or_else(|error| panic!("{}: {error}", peers.id));
    for negotiated in [&handshake.client, &handshake.server] {
        assert_eq!(negotiated.difference(suite), None, "{}", peers.id);
    }
    let trace = Trace::join(&client.half_trace().unwrap(), &server.half_trace().unwrap()).unwrap();
    let counted = trace.bytes_from(Side::Client) + trace.bytes_from(Side::Server);
    assert_eq!(counted, handshake.transferred.total(), "{}: {:#?}", peers.id, trace.messages);
    trace
}

/// Public-key operations of one side, sorted; without imports, which aws-lc-rs performs inside other operations.
fn operations(trace: &Trace, side: Side) -> Vec<Primitive> {
    let public = |operation: Operation| !operation.is_symmetric() && operation != Operation::Import;
    let own = trace.operations.iter().filter(|one| one.side == side && public(one.primitive.operation));
    let mut own: Vec<_> = own.flat_map(|record| vec![record.primitive; record.count as usize]).collect();
    own.sort_unstable();
    own
}

/// Each message of a side with its bytes; signatures in DER vary by a few.
fn messages(trace: &Trace, side: Side) -> Vec<(MessageName, u32)> {
    trace.messages.iter().filter(|message| message.from == side).map(|m| (m.name, m.bytes)).collect()
}

fn pairings(suite: &Suite) -> BTreeMap<(&'static str, &'static str), Trace> {
    let pairs = STACKS.iter().flat_map(|client| STACKS.iter().map(move |server| (*client, *server)));
    pairs.map(|(client, server)| ((client, server), run(suite, client, server))).collect()
}

#[test]
fn every_stack_pairing_performs_the_suite_operations() {
    for name in SUITES {
        let suite = suite(name);
        for ((client, server), trace) in pairings(&suite) {
            for side in [Side::Client, Side::Server] {
                let mut expected: Vec<_> = suite
                    .operations()
                    .into_iter()
                    .filter(|row| row.side == side)
                    .map(|row| row.primitive)
                    .collect();
                expected.sort_unstable();
                assert_eq!(operations(&trace, side), expected, "{name}, {client} against {server}, {side}");
            }
        }
    }
}

#[test]
fn stack_sends_the_same_messages_to_either_peer() {
    for name in SUITES {
        let suite = suite(name);
        let traces = pairings(&suite);
        for own in STACKS {
            let as_client = STACKS.map(|peer| messages(&traces[&(own, peer)], Side::Client));
            let as_server = STACKS.map(|peer| messages(&traces[&(peer, own)], Side::Server));
            for [one, other] in [as_client, as_server] {
                let names = |list: &[(MessageName, u32)]| list.iter().map(|row| row.0).collect::<Vec<_>>();
                assert_eq!(names(&one), names(&other), "{name}, {own}");
                for (a, b) in one.iter().zip(&other) {
                    // A server's response depends on the client's offer; a ClientHello does not depend on the server.
                    let depends = matches!(
                        a.0,
                        MessageName::ServerHello
                            | MessageName::EncryptedExtensions
                            | MessageName::NewSessionTicket
                    ) || suite.is_resumption() && a.0 == MessageName::ClientHello;
                    let signature =
                        matches!(a.0, MessageName::CertificateVerify | MessageName::ServerKeyExchange);
                    let allowed = if depends {
                        256
                    } else if signature {
                        8
                    } else {
                        0
                    };
                    assert!(a.1.abs_diff(b.1) <= allowed, "{name}, {own}: {a:?} and {b:?}");
                }
            }
        }
    }
}

#[test]
fn both_stacks_send_the_same_messages_in_the_same_flights() {
    for name in SUITES {
        let suite = suite(name);
        let shape = |trace: &Trace| {
            let row = |message: &shakedown_trace::MessageRecord| (message.flight, message.from, message.name);
            let mut rows: Vec<_> = trace.messages.iter().map(row).collect();
            // Each stack chooses the place of TLS 1.3's compatibility record in a flight.
            if suite.protocol == Protocol::Tls13 {
                rows.retain(|row| row.2 != MessageName::ChangeCipherSpec);
            }
            // A resumed ticket may be renewed (RFC 5077 section 3.3): rustls does, OpenSSL does not.
            if suite.is_resumption() {
                rows.retain(|row| row.2 != MessageName::NewSessionTicket);
            }
            rows
        };
        let traces = pairings(&suite);
        let reference = shape(&traces[&("openssl", "openssl")]);
        for ((client, server), trace) in &traces {
            assert_eq!(shape(trace), reference, "{name}, {client} against {server}");
        }
    }
}

#[test]
fn times_add_up_and_operations_stay_within_their_messages() {
    for name in SUITES {
        let trace = run(&suite(name), "rustls", "rustls");
        for side in [Side::Client, Side::Server] {
            let of_side = |message: &shakedown_trace::MessageRecord| {
                if message.from == side { message.generate } else { message.process }
            };
            let attributed: u64 = trace.messages.iter().map(of_side).sum();
            assert_eq!(attributed + trace.unattributed[side as usize], trace.total[side as usize], "{name}");
            for (index, message) in trace.messages.iter().enumerate() {
                let own =
                    trace.operations.iter().filter(|one| one.side == side && one.message == Some(index));
                let spent: u64 = own.map(|record| record.spent).sum();
                assert!(
                    spent <= of_side(message),
                    "{name}: {side} {}: {spent} of {}",
                    message.name,
                    of_side(message)
                );
            }
        }
    }
}

#[test]
fn session_of_one_stack_is_not_resumed_by_another() {
    let suite = suite("tls1.3/x25519/p256/server/resumed");
    let made = |stack: &str| {
        let settings = Settings {
            client_stack: Some(stack.into()),
            server_stack: Some(stack.into()),
            ..Settings::default()
        };
        prepare(&suite, &settings).unwrap()
    };
    // More connections than a session has tickets: a spent session is replaced.
    let peers = made("rustls");
    for _ in 0..600 {
        let mut pair = peers.pair().unwrap();
        let handshake =
            Loopback::new().handshake(pair.client.as_mut(), pair.server.as_mut(), &mut ()).unwrap();
        assert!(handshake.client.resumed && handshake.server.resumed);
    }
}

#[test]
fn suites_unsupported_by_rustls_are_refused_with_alternatives() {
    let registry = Settings::default().registry;
    let rustls = registry.get("rustls").unwrap();
    for (name, said) in [
        ("tls1.1/rsa/rsa2048/server", "TLS 1.2 and TLS 1.3"),
        ("tls1.2/rsa/rsa2048/server", "accepted: ecdhe_ecdsa ecdhe_rsa"),
        ("tls1.2/ecdhe_ecdsa+x25519/p256/server/aes128-sha", "accepted: aes128-gcm aes256-gcm chacha20"),
        ("tls1.3/x448/p256/server", "accepted: x25519 p256 p384 x25519mlkem768"),
        ("tls1.3/x25519/rsa1024/server", "accepted: rsa2048"),
        ("tls1.3/x25519/mldsa65/server", "accepted: rsa2048"),
        ("wtls/rsa/rsa1024/server", "TLS 1.2 and TLS 1.3"),
    ] {
        let refused = rustls.supports(&suite(name), Side::Client).unwrap_err().to_string();
        assert!(refused.contains(said), "{name}: {refused}");
    }
}

#[test]
fn rustls_version_matches_the_lock_file() {
    let lock = include_str!("../../../Cargo.lock");
    let pinned = lock.split("[[package]]").find(|package| package.contains("\nname = \"rustls\"\n")).unwrap();
    let version = Settings::default().registry.get("rustls").unwrap().id().version.into_owned();
    assert!(pinned.contains(&format!("version = \"{version}\"")), "{pinned}");
}
