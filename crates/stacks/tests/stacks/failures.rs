//! A failed handshake reports the side that detected the failure, its state, and the alert.

use super::common::{self, settings, suite};
use shakedown_pki::Profile;
use shakedown_stacks::{Settings, prepare};
use shakedown_trace::driver::{DriveError, Handshake, Loopback};
use shakedown_trace::endpoint::{Time, Transport};
use shakedown_trace::{Endpoint, Event, Failure, Side, WriteError};

fn client(name: &str, settings: &Settings) -> Box<dyn Endpoint> {
    prepare(&suite(name), settings).unwrap().pair().unwrap().client
}

fn server(name: &str, settings: &Settings) -> Box<dyn Endpoint> {
    prepare(&suite(name), settings).unwrap().pair().unwrap().server
}

fn run(client: &mut dyn Endpoint, server: &mut dyn Endpoint) -> Result<Handshake, DriveError> {
    Loopback::new().handshake(client, server, &mut ())
}

/// The failure of a client and a server with different settings.
fn failure(mut client: Box<dyn Endpoint>, mut server: Box<dyn Endpoint>) -> Failure {
    match run(client.as_mut(), server.as_mut()) {
        Err(DriveError::Failed(failure)) => failure,
        other => panic!("not a failed handshake: {other:?}"),
    }
}

#[track_caller]
fn assert_failure(found: &Failure, side: Side, alert: &str, reason: &str) {
    assert_eq!((found.side, found.alert.as_deref()), (side, Some(alert)), "{found}");
    assert!(found.reason.contains(reason), "{found}");
    assert!(!found.state.is_empty(), "{found}");
    // One line for the user.
    let text = found.to_string();
    assert!(text.contains(side.as_str()) && text.contains(alert) && !text.contains('\n'), "{text}");
}

const NOW: i64 = 1_767_225_600;
const DAY_S: i64 = 86_400;

fn with_profile(change: impl FnOnce(&mut Profile)) -> Settings {
    let mut settings = settings();
    settings.profile.name = "changed".into();
    change(&mut settings.profile);
    settings
}

/// The server's certificates have expired, or are not valid yet, by the client's clock.
#[test]
fn expired_or_future_certificate_is_refused() {
    let _shared = common::shared();
    let short = with_profile(|profile| {
        profile.not_before = "2025-12-01".into();
        profile.days = 60;
    });
    let later = Settings { now_unix_s: NOW + 90 * DAY_S, ..settings() };
    for (name, state) in [("tls1.2/rsa/rsa1024/server", "error"), ("tls1.3/x25519/p256/server", "error")] {
        let found = failure(client(name, &later), server(name, &short));
        assert_failure(&found, Side::Client, "certificate_expired", "certificate has expired");
        assert_eq!(found.state, state);
    }
    let before = Settings { now_unix_s: NOW - 90 * DAY_S, ..settings() };
    let found =
        failure(client("tls1.3/x25519/p256/server", &before), server("tls1.3/x25519/p256/server", &short));
    assert_failure(&found, Side::Client, "bad_certificate", "not yet valid");
}

/// Certificates are rejected before a handshake starts if the time is outside their validity.
#[test]
fn certificates_outside_their_validity_are_not_provided() {
    let _shared = common::shared();
    let late = Settings { now_unix_s: 4_102_444_800, ..settings() };
    let error = prepare(&suite("tls1.3/x25519/p256/server"), &late).err().unwrap().to_string();
    assert!(error.contains("server.shakedown.test") && error.contains("2100"), "{error}");
}

#[test]
fn wrong_server_name_is_refused() {
    let _shared = common::shared();
    let other = with_profile(|profile| {
        profile.server.subject = vec!["CN=other.shakedown.test".into()];
        profile.server.subject_alternative_names = vec!["dns:other.shakedown.test".into()];
    });
    for name in ["tls1.0/rsa/rsa1024/server", "tls1.3/x25519/p256/server"] {
        let found = failure(client(name, &settings()), server(name, &other));
        assert_failure(&found, Side::Client, "bad_certificate", "hostname mismatch");
    }
}

/// Another cache folder contains other keys, so another root.
#[test]
fn unknown_root_is_refused() {
    let _shared = common::shared();
    let stranger = Settings { cache: Some(common::cache().join("stranger")), ..settings() };
    let name = "tls1.3/x25519/p256/mutual";
    let found = failure(client(name, &settings()), server(name, &stranger));
    assert_eq!(found.side, Side::Client);
    assert!(
        matches!(found.alert.as_deref(), Some("unknown_ca" | "decrypt_error" | "bad_certificate")),
        "{found}"
    );
    assert!(found.reason.contains("certificate"), "{found}");
    // A root with another name: the client does not find the issuer.
    let named = with_profile(|profile| profile.root.subject = vec!["CN=Another Root".into()]);
    let found = failure(client(name, &settings()), server(name, &named));
    assert_failure(&found, Side::Client, "unknown_ca", "unable to get");
}

/// A server that requires a certificate, and a client that has none.
#[test]
fn missing_client_certificate_is_refused() {
    let _shared = common::shared();
    for (name, alert) in
        [("tls1.2/rsa/rsa1024", "handshake_failure"), ("tls1.3/x25519/p256", "certificate_required")]
    {
        let client = client(&format!("{name}/server"), &settings());
        let server = server(&format!("{name}/mutual"), &settings());
        let found = failure(client, server);
        assert_failure(&found, Side::Server, alert, "peer did not return a certificate");
    }
}

#[test]
fn no_common_cipher_fails_with_an_alert() {
    let _shared = common::shared();
    let pairs = [
        ("tls1.2/rsa/rsa1024/server", "tls1.2/rsa/rsa1024/server/aes256-gcm"),
        ("tls1.0/rsa/rsa1024/server/rc4-md5", "tls1.0/rsa/rsa1024/server/3des-sha"),
        ("tls1.3/x25519/p256/server", "tls1.3/x25519/p256/server/chacha20"),
        ("tls1.2/psk", "tls1.2/rsa/rsa1024/server"),
    ];
    for (ours, theirs) in pairs {
        let found = failure(client(ours, &settings()), server(theirs, &settings()));
        assert_failure(&found, Side::Server, "handshake_failure", "no shared cipher");
    }
}

#[test]
fn no_common_group_fails_with_an_alert() {
    let _shared = common::shared();
    let found = failure(client("tls1.3/x25519", &settings()), server("tls1.3/p384", &settings()));
    assert_failure(&found, Side::Server, "handshake_failure", "no suitable key share");
}

#[test]
fn no_common_protocol_fails_with_an_alert() {
    let _shared = common::shared();
    let found =
        failure(client("tls1.3/x25519/p256/server", &settings()), server("tls1.2/ecdhe_ecdsa", &settings()));
    assert_failure(&found, Side::Server, "protocol_version", "unsupported protocol");
    let found = failure(client("tls1.1/rsa/rsa1024", &settings()), server("tls1.2/rsa/rsa1024", &settings()));
    assert_failure(&found, Side::Server, "protocol_version", "unsupported protocol");
}

/// Changes a unit in transit.
type Meddle = Box<dyn FnMut(&mut Vec<u8>) + Send>;

/// Changes the output of an endpoint.
struct Meddled {
    inner: Box<dyn Endpoint>,
    meddle: Meddle,
}

impl Endpoint for Meddled {
    fn side(&self) -> Side {
        self.inner.side()
    }
    fn transport(&self) -> Transport {
        self.inner.transport()
    }
    fn handle_input(&mut self, now: Time, bytes: &[u8]) {
        self.inner.handle_input(now, bytes);
    }
    fn handle_close(&mut self, now: Time) {
        self.inner.handle_close(now);
    }
    fn write(&mut self, now: Time, data: &[u8]) -> Result<(), WriteError> {
        self.inner.write(now, data)
    }
    fn close(&mut self, now: Time) {
        self.inner.close(now);
    }
    fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> bool {
        let sent = self.inner.poll_transmit(now, buffer);
        if sent {
            (self.meddle)(buffer);
        }
        sent && !buffer.is_empty()
    }
    fn poll_event(&mut self) -> Option<Event> {
        self.inner.poll_event()
    }
    fn state(&self) -> String {
        self.inner.state()
    }
}

fn meddled(inner: Box<dyn Endpoint>, meddle: impl FnMut(&mut Vec<u8>) + Send + 'static) -> Meddled {
    Meddled { inner, meddle: Box::new(meddle) }
}

/// The client sends an identity that the server does not know.
#[test]
fn unknown_psk_identity_is_refused() {
    let _shared = common::shared();
    let rename = |bytes: &mut Vec<u8>| {
        let name = b"Client_identity";
        if let Some(start) = bytes.windows(name.len()).position(|window| window == name) {
            bytes[start] = b'X';
        }
    };
    for name in ["tls1.2/psk", "tls1.0/dhe_psk+dh1024", "tls1.2/rsa_psk/rsa1024", "tls1.2/ecdhe_psk"] {
        let mut client = meddled(client(name, &settings()), rename);
        let mut server = server(name, &settings());
        let Err(DriveError::Failed(found)) = run(&mut client, server.as_mut()) else {
            panic!("{name} did not fail")
        };
        assert_failure(&found, Side::Server, "unknown_psk_identity", "psk identity not found");
    }
    // TLS 1.3 continues without the key, and has nothing else to offer.
    let mut client = meddled(client("tls1.3/psk", &settings()), rename);
    let mut server = server("tls1.3/psk", &settings());
    let Err(DriveError::Failed(found)) = run(&mut client, server.as_mut()) else { panic!("did not fail") };
    assert_eq!(found.side, Side::Server, "{found}");
    assert!(found.alert.is_some(), "{found}");
}

/// A flipped bit at any place in a flight never leads to a connection or a panic.
#[test]
fn flipped_bits_never_connect_or_panic() {
    let _shared = common::shared();
    for name in ["tls1.2/rsa/rsa1024/server", "tls1.3/x25519/p256/server"] {
        for from in [Side::Client, Side::Server] {
            for place in (0..1200).step_by(37) {
                let mut seen = 0;
                let flip = move |bytes: &mut Vec<u8>| {
                    if (seen..seen + bytes.len()).contains(&place) {
                        bytes[place - seen] ^= 0x10;
                    }
                    seen += bytes.len();
                };
                let pair = prepare(&suite(name), &settings()).unwrap().pair().unwrap();
                let (mut client, mut server) = match from {
                    Side::Client => (meddled(pair.client, flip), meddled(pair.server, |_| ())),
                    Side::Server => (meddled(pair.client, |_| ()), meddled(pair.server, flip)),
                };
                match run(&mut client, &mut server) {
                    // A position beyond the side's last byte.
                    Ok(handshake) => {
                        let sent = match from {
                            Side::Client => handshake.transferred.client_to_server,
                            Side::Server => handshake.transferred.server_to_client,
                        };
                        assert!(
                            place as u64 >= sent,
                            "{name}: {from}'s byte {place} of {sent} was not missed"
                        );
                    }
                    // A greater length makes the reader wait for more bytes.
                    Err(DriveError::Deadlock { client, server }) => {
                        assert!(!client.is_empty() && !server.is_empty())
                    }
                    Err(DriveError::Failed(failure)) => {
                        assert!(!failure.state.is_empty() && !failure.reason.is_empty(), "{failure}");
                    }
                    Err(other) => panic!("{name}: {other}"),
                }
            }
        }
    }
}

/// After a truncated flight both sides wait, and the driver reports their states.
#[test]
fn truncated_flight_is_reported_as_deadlock() {
    let _shared = common::shared();
    let name = "tls1.2/rsa/rsa1024/server";
    let mut client = client(name, &settings());
    let mut server =
        meddled(server(name, &settings()), |bytes| bytes.truncate(bytes.len().saturating_sub(10)));
    let error = run(client.as_mut(), &mut server).unwrap_err();
    let DriveError::Deadlock { client, server } = &error else { panic!("{error}") };
    assert!(client.contains("read server") && server.contains("server done"), "{error}");
}

/// A peer that never responds.
#[test]
fn silent_peer_is_reported_as_deadlock() {
    let _shared = common::shared();
    let name = "tls1.3/x25519/p256/server";
    let mut client = client(name, &settings());
    let mut server = meddled(server(name, &settings()), Vec::clear);
    let error = run(client.as_mut(), &mut server).unwrap_err();
    assert!(matches!(error, DriveError::Deadlock { .. }), "{error}");
    assert!(error.to_string().contains("both sides wait"), "{error}");
}

/// Always has output, and never completes the handshake.
struct Chatterbox(Side);

impl Endpoint for Chatterbox {
    fn side(&self) -> Side {
        self.0
    }
    fn transport(&self) -> Transport {
        Transport::Stream
    }
    fn handle_input(&mut self, _: Time, _: &[u8]) {}
    fn handle_close(&mut self, _: Time) {}
    fn write(&mut self, _: Time, _: &[u8]) -> Result<(), WriteError> {
        Ok(())
    }
    fn close(&mut self, _: Time) {}
    fn poll_transmit(&mut self, _: Time, buffer: &mut Vec<u8>) -> bool {
        buffer.push(0);
        true
    }
    fn poll_event(&mut self) -> Option<Event> {
        None
    }
    fn state(&self) -> String {
        "chatting".into()
    }
}

#[test]
fn endless_conversation_is_stopped() {
    let error = run(&mut Chatterbox(Side::Client), &mut Chatterbox(Side::Server)).unwrap_err();
    assert!(matches!(error, DriveError::TooManyRounds { .. }), "{error}");
    assert!(error.to_string().contains("client in state chatting"), "{error}");
}

/// Without instrumentation, the reported failures are the same.
#[test]
fn failures_are_the_same_without_instrumentation() {
    let _shared = common::shared();
    let bare = Settings { instrumented: false, ..settings() };
    let found = failure(
        client("tls1.2/rsa/rsa1024/server", &bare),
        server("tls1.2/rsa/rsa1024/server/aes256-gcm", &bare),
    );
    assert_failure(&found, Side::Server, "handshake_failure", "no shared cipher");
}
