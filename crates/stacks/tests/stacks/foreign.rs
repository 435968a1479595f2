//! Half traces: our server with a foreign client, our client with a foreign server, over loopback sockets. The foreign
//! side is the system's `openssl`, a build other than ours.

use super::common;
use shakedown_certs::supplied::AnyIdentity;
use shakedown_stacks::prepare;
use shakedown_trace::endpoint::Time;
use shakedown_trace::{
    Counter, Endpoint, Event, HalfTrace, MessageName, Negotiated, Operation, Recorded, Recording, Side,
};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(300);

/// Kills the foreign side at the end of the test, even after a panic.
struct Foreign(Child);

impl Drop for Foreign {
    fn drop(&mut self) {
        // It may already have exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn openssl(arguments: &[&str]) -> Foreign {
    let child = Command::new("openssl")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("openssl, which tools/install-peers installs: {error}"));
    Foreign(child)
}

/// Drives an endpoint over a socket until it is established and has no output. Returns the negotiated parameters, the
/// half trace, and the numbers of sent and received bytes.
fn drive(endpoint: Box<dyn Endpoint>, mut socket: TcpStream) -> (Negotiated, HalfTrace, [u64; 2]) {
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut endpoint = Recorded::new(endpoint, Recording::new(Counter::NANOSECONDS));
    let (mut output, mut input) = (Vec::new(), [0; 16 * 1024]);
    let (mut sent, mut received) = (0, 0);
    loop {
        output.clear();
        while endpoint.poll_transmit(Time::ZERO, &mut output) {}
        sent += output.len() as u64;
        socket.write_all(&output).unwrap();
        match endpoint.poll_event() {
            Some(Event::Established(negotiated)) => {
                return (*negotiated, endpoint.half_trace().unwrap(), [sent, received]);
            }
            Some(other) => panic!("{other:?}"),
            None => {}
        }
        let length = socket.read(&mut input).unwrap();
        assert!(length > 0, "the peer hung up in state {}", endpoint.state());
        received += length as u64;
        endpoint.handle_input(Time::ZERO, &input[..length]);
    }
}

fn names(half: &HalfTrace) -> Vec<(Side, MessageName)> {
    half.messages.iter().map(|message| (message.from, message.name)).collect()
}

fn public_key_operations(half: &HalfTrace) -> Vec<String> {
    let public_key = half.operations.iter().filter(|operation| {
        let operation = operation.primitive.operation;
        !operation.is_symmetric() && operation != Operation::Import
    });
    let mut found: Vec<_> = public_key
        .map(|operation| {
            format!("{} {}", operation.primitive.operation.as_str(), operation.primitive.parameters)
        })
        .collect();
    found.sort();
    found
}

fn check_accounts(half: &HalfTrace, [sent, received]: [u64; 2]) {
    assert_eq!(common::bytes_from(half, half.side), sent);
    assert_eq!(common::bytes_from(half, half.side.peer()), received);
    let spent: u64 = half.messages.iter().map(|message| message.spent).sum();
    assert_eq!(spent + half.unattributed, half.total);
    assert!(half.messages.iter().all(|message| message.unit > 0 && message.bytes > 0), "{half:#?}");
}

use MessageName::{
    Certificate, CertificateVerify, ChangeCipherSpec, ClientHello, ClientKeyExchange, EncryptedExtensions,
    Finished, ServerHello, ServerHelloDone, ServerKeyExchange,
};
use Side::{Client as C, Server as S};

/// Suite, messages, options of the foreign side, our public-key operations.
type Case<T> = (&'static str, &'static [(Side, MessageName)], T, &'static [&'static str]);

const TLS_1_3: [(Side, MessageName); 9] = [
    (C, ClientHello),
    (S, ServerHello),
    (S, ChangeCipherSpec),
    (S, EncryptedExtensions),
    (S, Certificate),
    (S, CertificateVerify),
    (S, Finished),
    (C, ChangeCipherSpec),
    (C, Finished),
];
const TLS_1_2: [(Side, MessageName); 10] = [
    (C, ClientHello),
    (S, ServerHello),
    (S, Certificate),
    (S, ServerKeyExchange),
    (S, ServerHelloDone),
    (C, ClientKeyExchange),
    (C, ChangeCipherSpec),
    (C, Finished),
    (S, ChangeCipherSpec),
    (S, Finished),
];

#[test]
fn our_server_completes_with_an_openssl_client() {
    let _shared = common::shared();
    let cases: [Case<&[&str]>; 2] = [
        (
            "tls1.3/x25519/rsa2048/server",
            &TLS_1_3,
            &["-tls1_3", "-groups", "X25519"],
            &["derive x25519", "keygen x25519", "sign rsa2048"],
        ),
        (
            "tls1.2/ecdhe_rsa+p256/rsa2048/server",
            &TLS_1_2,
            &["-tls1_2", "-groups", "P-256"],
            &["derive p256", "keygen p256", "sign rsa2048"],
        ),
    ];
    for (name, messages, options, operations) in cases {
        let peers = prepare(&common::suite(name), &common::settings()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let _client = openssl(&[&["s_client", "-connect", &address, "-quiet"], options].concat());
        let (socket, _) = listener.accept().unwrap();
        let (negotiated, half, bytes) = drive(peers.server().unwrap(), socket);
        assert_eq!(negotiated.difference(&common::suite(name)), None);
        // TLS 1.3 does not require the compatibility ChangeCipherSpec of clients; OpenSSL's sends it.
        assert_eq!(names(&half), messages, "{name}");
        assert_eq!(public_key_operations(&half), operations, "{name}");
        check_accounts(&half, bytes);
    }
}

#[test]
fn our_client_completes_with_an_openssl_server() {
    let _shared = common::shared();
    let cases: [Case<&str>; 2] = [
        (
            "tls1.3/x25519/rsa2048/server",
            &TLS_1_3,
            "-tls1_3",
            &["derive x25519", "keygen x25519", "verify rsa2048", "verify rsa2048"],
        ),
        (
            "tls1.2/ecdhe_rsa+p256/rsa2048/server",
            &TLS_1_2,
            "-tls1_2",
            &["derive p256", "keygen p256", "verify rsa2048", "verify rsa2048"],
        ),
    ];
    for (name, messages, version, operations) in cases {
        let suite = common::suite(name);
        let settings = common::settings();
        let peers = prepare(&suite, &settings).unwrap();
        let (chain, key) = server_files(name);
        let (_server, socket) = foreign_server(&[
            "-cert",
            chain.to_str().unwrap(),
            "-key",
            key.to_str().unwrap(),
            version,
            "-no_ticket",
            "-num_tickets",
            "0",
            "-quiet",
        ]);
        let (negotiated, half, bytes) = drive(peers.client().unwrap(), socket);
        assert_eq!(negotiated.difference(&suite), None);
        assert_eq!(names(&half), messages, "{name}");
        assert_eq!(public_key_operations(&half), operations, "{name}");
        check_accounts(&half, bytes);
    }
}

/// The chain and key of a suite's server as PEM files.
fn server_files(name: &str) -> (PathBuf, PathBuf) {
    let suite = common::suite(name);
    let settings = common::settings();
    let chosen = settings.registry.supports(&suite).unwrap();
    let identities = settings.identities(&suite, chosen.as_ref(), chosen.as_ref()).unwrap();
    let Some(AnyIdentity::X509(identity)) = identities.server else { panic!("{name} has no certificate") };
    let folder = common::cache().join(format!("foreign-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (chain, key) = (folder.join("chain.pem"), folder.join("key.pem"));
    let certificate = openssl::x509::X509::from_der(&identity.chain[0]).unwrap();
    std::fs::write(&chain, certificate.to_pem().unwrap()).unwrap();
    let private = openssl::pkey::PKey::private_key_from_pkcs8(&identity.key).unwrap();
    std::fs::write(&key, private.private_key_to_pem_pkcs8().unwrap()).unwrap();
    (chain, key)
}

/// Starts the foreign server on a free port and connects to it.
fn foreign_server(options: &[&str]) -> (Foreign, TcpStream) {
    for _ in 0..5 {
        // Another process may take the port in the meantime; then another one is tried.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let mut server = openssl(&[&["s_server", "-accept", &address], options].concat());
        let start = Instant::now();
        while start.elapsed() < TIMEOUT && server.0.try_wait().unwrap().is_none() {
            if let Ok(socket) = TcpStream::connect(&address) {
                return (server, socket);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    panic!("openssl s_server does not start");
}
