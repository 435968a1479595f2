//! Sessions: the data of a connection that are kept after its end, so that the next connection needs fewer messages.

use crate::certificate::PeerIdentity;
use crate::codec::{Codec, DecodeError, EncodeError, Reader, Writer, bounded};
use crate::key_schedule::MasterSecret;
use crate::numbers::{CipherSuite, KeyExchangeSuite};
use crate::policy::PolicyId;
use core::time::Duration;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

/// The greatest length of a session identifier.
pub const SESSION_ID_BYTES: usize = 8;

/// A session identifier, chosen by the server; empty for none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SessionId {
    bytes: [u8; SESSION_ID_BYTES],
    length: u8,
}

impl SessionId {
    pub const NONE: Self = Self { bytes: [0; SESSION_ID_BYTES], length: 0 };

    /// An identifier of full length.
    pub fn new(bytes: [u8; SESSION_ID_BYTES]) -> Self {
        Self { bytes, length: SESSION_ID_BYTES as u8 }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length.into()]
    }

    /// Whether it is empty.
    pub fn is_none(&self) -> bool {
        self.length == 0
    }
}

impl core::fmt::Debug for SessionId {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(formatter, "SessionId({:02x?})", self.as_bytes())
    }
}

impl Codec for SessionId {
    fn encode(&self, to: &mut Writer) -> Result<(), EncodeError> {
        to.v8("session id", self.as_bytes())
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let received = bounded("session id", from.v8("session id")?, 0, SESSION_ID_BYTES)?;
        let mut id = Self { length: received.len() as u8, ..Self::NONE };
        id.bytes[..received.len()].copy_from_slice(received);
        Ok(id)
    }
}

/// A session: its secret, the negotiated parameters, the identity of the peer, and the policy of its use.
#[derive(Debug, Clone)]
pub struct Session {
    pub id: SessionId,
    /// The key exchange that created the secret.
    pub key_exchange: KeyExchangeSuite,
    /// Cipher and MAC, which a resumed connection keeps.
    pub cipher_suite: CipherSuite,
    pub master: MasterSecret,
    /// The authenticated identity of the peer, if there is one.
    pub peer: Option<PeerIdentity>,
    /// The requirements for the peer. With another policy the session is not resumed.
    pub policy: PolicyId,
    /// When its secret was made, in seconds since 1970. A resumption does not change this time.
    pub made_unix_s: u64,
}

impl Session {
    /// Whether the session is too old, or the peer's chain is no longer valid. A session whose time is in the
    /// future has also ended, because it was created with another clock.
    pub fn is_over(&self, lifetime: Duration, now_unix_s: u64) -> bool {
        let age_s = now_unix_s.checked_sub(self.made_unix_s);
        age_s.is_none_or(|age_s| age_s > lifetime.as_secs())
            || self.peer.as_ref().is_some_and(|peer| !peer.is_valid_at(now_unix_s))
    }
}

/// Where a server keeps sessions. Shared by all connections of a server.
pub trait SessionStore: Send + Sync {
    /// Stores a session, unless a session with this identifier exists: an attacker who takes part in another
    /// client's handshake must not be able to replace that client's session.
    fn insert(&self, session: Session);
    fn find(&self, id: &SessionId) -> Option<Session>;
    fn remove(&self, id: &SessionId);
    /// Whether sessions are stored. If not, the server sends empty session identifiers.
    fn keeps_sessions(&self) -> bool {
        true
    }
}

/// Stores no sessions. Clients get an empty identifier, so they do not try to resume.
#[derive(Debug, Default)]
pub struct NoSessions;

impl SessionStore for NoSessions {
    fn insert(&self, _session: Session) {}
    fn find(&self, _id: &SessionId) -> Option<Session> {
        None
    }
    fn remove(&self, _id: &SessionId) {}
    fn keeps_sessions(&self) -> bool {
        false
    }
}

/// Keeps the last N sessions in memory.
#[derive(Debug)]
pub struct MemorySessions {
    capacity: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    sessions: BTreeMap<SessionId, Session>,
    order: VecDeque<SessionId>,
}

impl MemorySessions {
    /// A store for at most `capacity` sessions; when it is full, a new session replaces the oldest.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, kept: Mutex::default() }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        // No code panics while it holds the lock; and a partly changed map would still be usable.
        self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl SessionStore for MemorySessions {
    fn insert(&self, session: Session) {
        let mut kept = self.kept();
        let id = session.id;
        if let Entry::Vacant(place) = kept.sessions.entry(id) {
            place.insert(session);
            kept.order.push_back(id);
        }
        while kept.order.len() > self.capacity {
            if let Some(oldest) = kept.order.pop_front() {
                kept.sessions.remove(&oldest);
            }
        }
    }

    fn find(&self, id: &SessionId) -> Option<Session> {
        self.kept().sessions.get(id).cloned()
    }

    fn remove(&self, id: &SessionId) {
        let mut kept = self.kept();
        if kept.sessions.remove(id).is_some() {
            kept.order.retain(|other| other != id);
        }
    }
}
