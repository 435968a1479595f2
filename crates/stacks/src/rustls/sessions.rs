//! Sessions that a measurement resumes repeatedly.
//!
//! rustls removes a server's session when it is resumed. All repetitions must have the same conditions, so the server's
//! store here keeps it. A TLS 1.3 ticket is used once (RFC 8446 appendix C.4), always so by rustls's client: a session
//! contains all tickets that the server issued, and reports when they are spent.

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;
use rustls::server::{ProducesTickets, StoresServerSessions};
use shakedown_trace::{Operation, Primitive, recorder};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A session that a client can resume.
#[derive(Clone, Debug)]
pub enum Resumable {
    /// By session ID or ticket, any number of times.
    Tls12(Tls12ClientSessionValue),
    /// By pre-shared key: unused tickets. Clones share them.
    Tls13(Arc<Mutex<Vec<Tls13ClientSessionValue>>>),
}

impl Resumable {
    /// True if no ticket is left.
    pub fn is_spent(&self) -> bool {
        match self {
            Self::Tls12(_) => false,
            Self::Tls13(tickets) => lock(tickets).is_empty(),
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One connection's store: the session that it offers, and the one that it receives.
#[derive(Debug, Default)]
pub struct OneSession {
    offered: Option<Resumable>,
    given: Mutex<Option<Resumable>>,
}

impl OneSession {
    pub fn new(offered: Option<Resumable>) -> Arc<Self> {
        Arc::new(Self { offered, given: Mutex::default() })
    }

    /// The session that the server has issued, if any.
    pub fn given(&self) -> Option<Resumable> {
        lock(&self.given).clone()
    }
}

impl ClientSessionStore for OneSession {
    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_tls12_session(&self, _: ServerName<'static>, session: Tls12ClientSessionValue) {
        *lock(&self.given) = Some(Resumable::Tls12(session));
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        match &self.offered {
            Some(Resumable::Tls12(session)) => Some(session.clone()),
            _ => None,
        }
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, _: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        let mut given = lock(&self.given);
        match given.as_ref() {
            Some(Resumable::Tls13(tickets)) => lock(tickets).push(ticket),
            _ => *given = Some(Resumable::Tls13(Arc::new(Mutex::new(vec![ticket])))),
        }
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        match &self.offered {
            Some(Resumable::Tls13(tickets)) => lock(tickets).pop(),
            _ => None,
        }
    }
}

/// Maximum number of a server's sessions; beyond it the oldest are removed.
const MAX_SESSIONS: usize = 10_000;

/// A server's sessions, which remain after a resumption.
#[derive(Debug, Default)]
pub struct KeptSessions {
    sessions: Mutex<HashMap<Vec<u8>, Vec<u8>>>,
}

impl StoresServerSessions for KeptSessions {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        let mut sessions = lock(&self.sessions);
        let room = sessions.len() < MAX_SESSIONS;
        if room {
            sessions.insert(key, value);
        }
        room
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        lock(&self.sessions).get(key).cloned()
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.get(key)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

/// Tickets as aws-lc-rs encrypts them (AES-256-CBC and HMAC-SHA256, RFC 5077 section 4), timed.
#[derive(Debug)]
pub struct TimedTickets {
    pub inner: Arc<dyn ProducesTickets>,
}

const SEALING: Primitive = Primitive::new(Operation::Cipher, "aes-256-cbc-hmac-sha256", "");

impl ProducesTickets for TimedTickets {
    fn enabled(&self) -> bool {
        self.inner.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.inner.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        recorder::timed(SEALING, u32::try_from(plain.len()).unwrap_or(u32::MAX), || self.inner.encrypt(plain))
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        recorder::timed(SEALING, u32::try_from(cipher.len()).unwrap_or(u32::MAX), || {
            self.inner.decrypt(cipher)
        })
    }
}
