//! The lifetime of sessions of a server on a network: at most that of the certificates of their full handshake, and at
//! most a week after it, even if they are renewed many times.

use crate::common::{cache, suite};
use openssl::asn1::Asn1Time;
use openssl::bn::BigNum;
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{PKey, Private};
use openssl::ssl::SslSession;
use openssl::x509::extension::BasicConstraints;
use openssl::x509::{X509, X509NameBuilder};
use shakedown_certs::supplied::AnyIdentity;
use shakedown_pki::Identity;
use shakedown_stacks::{Acceptor, Connector, Exposure, Identities, SessionCache, Settings, Stack};
use shakedown_trace::endpoint::{CloseReason, Event, Time};
use shakedown_trace::{Endpoint, Session, Side};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const TLS12: &str = "tls1.2/ecdhe_ecdsa+p256/p256/mutual/resumed";
const TLS13: &str = "tls1.3/x25519/p256/mutual/resumed";
const WEEK_S: i64 = 7 * 24 * 3600;
const DAY_S: i64 = 24 * 3600;

fn now_s() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

/// Waits for a time of the system's clock, by which certificates and sessions expire.
fn wait_until_s(unix_s: i64) {
    while now_s() < unix_s {
        std::thread::sleep(Duration::from_millis(20));
    }
}

struct Issued {
    certificate: X509,
    key: PKey<Private>,
}

/// A certificate with a new key that expires at `until_s`.
fn issue(name: &str, issuer: Option<&Issued>, until_s: i64) -> Issued {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
    let key = PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap();
    let mut subject = X509NameBuilder::new().unwrap();
    subject.append_entry_by_text("CN", name).unwrap();
    let subject = subject.build();
    let mut builder = X509::builder().unwrap();
    builder.set_version(2).unwrap();
    let serial = BigNum::from_u32(u32::from(name.len() as u16)).unwrap().to_asn1_integer().unwrap();
    builder.set_serial_number(&serial).unwrap();
    builder.set_subject_name(&subject).unwrap();
    builder.set_issuer_name(issuer.map_or(&subject, |one| one.certificate.subject_name())).unwrap();
    builder.set_pubkey(&key).unwrap();
    builder.set_not_before(&Asn1Time::from_unix(now_s() - 60).unwrap()).unwrap();
    builder.set_not_after(&Asn1Time::from_unix(until_s).unwrap()).unwrap();
    if name.contains("authority") {
        builder.append_extension(BasicConstraints::new().critical().ca().build().unwrap()).unwrap();
    }
    builder.sign(issuer.map_or(&key, |one| &one.key), MessageDigest::sha256()).unwrap();
    Issued { certificate: builder.build(), key }
}

fn identity(chain: &[&Issued], root: &Issued) -> AnyIdentity {
    let der = |one: &Issued| one.certificate.to_der().unwrap();
    AnyIdentity::X509(Identity {
        chain: chain.iter().map(|one| der(one)).collect(),
        root: der(root),
        key: chain[0].key.private_key_to_pkcs8().unwrap(),
        subject: String::new(),
    })
}

/// The client's certificate that expires first, and its time.
#[derive(Clone, Copy, Debug)]
enum Ends {
    Leaf(i64),
    Intermediate(i64),
}

fn identities(ends: Ends) -> Identities {
    let late_s = now_s() + 300 * DAY_S;
    let root = issue("root authority", None, late_s);
    let server = issue("server", Some(&root), late_s);
    let (leaf_s, intermediate_s) = match ends {
        Ends::Leaf(until_s) => (until_s, late_s),
        Ends::Intermediate(until_s) => (late_s, until_s),
    };
    let between = issue("another authority", Some(&root), intermediate_s);
    let client = issue("client", Some(&between), leaf_s);
    Identities {
        server: Some(identity(&[&server], &root)),
        client: Some(identity(&[&client, &between], &root)),
        temporary_key: None,
    }
}

/// An external session cache, with the times that it was given.
#[derive(Default)]
struct Kept {
    sessions: Mutex<HashMap<Vec<u8>, Vec<u8>>>,
    made: Mutex<Vec<(i64, Vec<u8>)>>,
}

impl SessionCache for Kept {
    fn put(&self, id: &[u8], session: Vec<u8>, made_unix_s: i64) {
        self.made.lock().unwrap().push((made_unix_s, session.clone()));
        self.sessions.lock().unwrap().insert(id.to_vec(), session);
    }

    fn get(&self, id: &[u8]) -> Option<Vec<u8>> {
        self.sessions.lock().unwrap().get(id).cloned()
    }
}

/// Both sides of a suite, on a network.
struct Site {
    connector: Arc<dyn Connector>,
    acceptor: Arc<dyn Acceptor>,
}

impl Site {
    fn new(name: &str, ends: Ends, kept: Option<Arc<Kept>>) -> Self {
        let suite = suite(name);
        let settings = Settings {
            cache: Some(cache()),
            exposure: Exposure::Network,
            instrumented: false,
            now_unix_s: now_s(),
            ..Settings::default()
        };
        let mut setup = settings.setup(&suite, identities(ends));
        let stack =
            |side| -> Arc<dyn Stack> { Arc::clone(settings.registry.choose(&suite, side, None).unwrap()) };
        let connector = stack(Side::Client).client(&setup).unwrap();
        setup.session_cache = kept.map(|kept| kept as Arc<dyn SessionCache>);
        let acceptor = stack(Side::Server).server(&setup).unwrap();
        Self { connector, acceptor }
    }

    /// A handshake and the messages after it: whether it resumed, and the client's session; or the alert that ended it.
    fn meet(&self, session: Option<&Session>) -> Result<(bool, Session), String> {
        let mut client = self.connector.connect(session).unwrap();
        let mut server = self.acceptor.accept().unwrap();
        let mut resumed = None;
        let mut quiet = false;
        while !quiet {
            quiet = true;
            for side in [Side::Client, Side::Server] {
                let (from, to) = match side {
                    Side::Client => (&mut client, &mut server),
                    Side::Server => (&mut server, &mut client),
                };
                let mut bytes = Vec::new();
                while from.poll_transmit(Time::ZERO, &mut bytes) {}
                if !bytes.is_empty() {
                    quiet = false;
                    to.handle_input(Time::ZERO, &bytes);
                }
            }
            while let Some(event) = server.poll_event() {
                match event {
                    Event::Established(negotiated) => resumed = Some(negotiated.resumed),
                    Event::Rejected(failure) => panic!("{failure}"),
                    Event::Closed(CloseReason::Failed(failure)) => {
                        return Err(failure.alert.unwrap_or(failure.reason));
                    }
                    _ => {}
                }
            }
        }
        Ok((resumed.ok_or("no end")?, client.session().ok_or("no session")?))
    }
}

/// The four ways in which a server stores sessions.
fn every_way() -> [(&'static str, bool); 4] {
    [(TLS12, false), (TLS12, true), (TLS13, false), (TLS13, true)]
}

/// A site, a session that it resumed, a description, and the certificate that expires first.
type Waiting = (Site, Session, String, Ends);

/// Sites for every kind of storage and expiry, each with a resumed session; `None` if this took until the expiry.
fn sites_with_sessions(until_s: i64) -> Option<Vec<Waiting>> {
    let mut waiting = Vec::new();
    for (name, elsewhere) in every_way() {
        for ends in [Ends::Leaf(until_s), Ends::Intermediate(until_s), Ends::Leaf(until_s + DAY_S)] {
            let site = Site::new(name, ends, elsewhere.then(Arc::default));
            let mut sessions = None;
            for resumes in [false, true] {
                let found = site.meet(sessions.as_ref());
                if now_s() >= until_s {
                    return None;
                }
                let (resumed, session) = found.unwrap();
                assert_eq!(resumed, resumes, "{name}, kept elsewhere: {elsewhere}");
                sessions = Some(session);
            }
            waiting.push((site, sessions?, format!("{name}, {ends:?}, kept elsewhere: {elsewhere}"), ends));
        }
    }
    Some(waiting)
}

#[test]
fn renewed_sessions_never_outlive_the_original_certificates() {
    // A busy machine needs more time.
    let (until_s, waiting) = [4, 8, 16, 32, 64, 128, 256]
        .into_iter()
        .find_map(|lead_s| {
            let until_s = now_s() + lead_s;
            Some((until_s, sites_with_sessions(until_s)?))
        })
        .unwrap();
    wait_until_s(until_s + 2);
    for (site, session, what, ends) in waiting {
        let found = site.meet(Some(&session)).map(|(resumed, _)| resumed);
        match ends {
            Ends::Leaf(end_s) if end_s > until_s => assert_eq!(found, Ok(true), "{what}"),
            // The offered session is not resumed, and the full handshake detects the expired certificate.
            _ => assert_eq!(found, Err("certificate_expired".into()), "{what}"),
        }
    }
}

unsafe extern "C" {
    fn SSL_SESSION_get_ticket_lifetime_hint(session: *const openssl_sys::SSL_SESSION) -> libc::c_ulong;
}

/// The lifetime in a ticket's message, in seconds.
fn hint_s(session: &Session) -> i64 {
    let session = session.get::<SslSession>().unwrap();
    // SAFETY: the session is live.
    let hint = unsafe {
        SSL_SESSION_get_ticket_lifetime_hint(foreign_types::ForeignType::as_ptr(session).cast_const())
    };
    i64::try_from(hint).unwrap()
}

#[test]
fn renewed_session_ends_with_the_first_session() {
    for (elsewhere, end_s) in [(false, 300 * DAY_S), (false, DAY_S), (true, 300 * DAY_S), (true, DAY_S)] {
        let kept = Arc::new(Kept::default());
        let before_s = now_s();
        let site = Site::new(TLS13, Ends::Leaf(before_s + end_s), elsewhere.then(|| Arc::clone(&kept)));
        let (_, mut session) = site.meet(None).unwrap();
        let made_s = now_s();
        let first_s = hint_s(&session);
        let lifetime_s = end_s.min(WEEK_S);
        let passed_s = made_s - before_s;
        assert!((lifetime_s - passed_s..=lifetime_s).contains(&first_s), "{first_s} of {lifetime_s}");
        for _ in 0..2 {
            wait_until_s(now_s() + 1);
            let (resumed, next) = site.meet(Some(&session)).unwrap();
            assert!(resumed);
            session = next;
        }
        assert!(hint_s(&session) <= first_s - 2, "{} after {first_s}", hint_s(&session));
        let puts = kept.made.lock().unwrap();
        assert_eq!(puts.len(), if elsewhere { 3 } else { 0 });
        for (put_s, der) in puts.iter() {
            assert!((before_s..=made_s).contains(put_s), "{put_s}");
            assert_eq!(*put_s, puts[0].0, "the time of the full handshake");
            let written = SslSession::from_der(der).unwrap();
            let until_s = written.time() + written.timeout();
            let first = SslSession::from_der(&puts[0].1).unwrap();
            assert_eq!(until_s, first.time() + first.timeout());
        }
    }
}

#[test]
fn externally_stored_session_without_a_time_is_not_resumed() {
    let late = Ends::Leaf(now_s() + 300 * DAY_S);
    for name in [TLS12, TLS13] {
        let kept = Arc::new(Kept::default());
        let site = Site::new(name, late, Some(Arc::clone(&kept)));
        let (_, session) = site.meet(None).unwrap();
        for der in kept.sessions.lock().unwrap().values_mut() {
            let written = SslSession::from_der(der).unwrap();
            // SAFETY: the session is live and no other code uses it.
            unsafe {
                SSL_SESSION_set1_ticket_appdata(
                    foreign_types::ForeignType::as_ptr(&written),
                    std::ptr::null(),
                    0,
                );
            }
            *der = written.to_der().unwrap();
        }
        assert!(!site.meet(Some(&session)).unwrap().0, "{name}");
    }
}

unsafe extern "C" {
    fn SSL_SESSION_set1_ticket_appdata(
        session: *mut openssl_sys::SSL_SESSION,
        data: *const libc::c_void,
        length: usize,
    ) -> libc::c_int;
}
