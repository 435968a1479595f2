//! Sessions: what outlives a connection and lets the next one begin with less.

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

/// A session's name, chosen by the server; empty for none.
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

    /// Whether it names no session.
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

/// A session: its secret, what was negotiated, who the peer is, and what may be made of it.
#[derive(Debug, Clone)]
pub struct Session {
    pub id: SessionId,
    /// How its secret came about.
    pub key_exchange: KeyExchangeSuite,
    /// Cipher and MAC, which a resumed connection keeps.
    pub cipher_suite: CipherSuite,
    pub master: MasterSecret,
    /// Who the peer proved to be, if it did.
    pub peer: Option<PeerIdentity>,
    /// What was asked of the peer. Under any other policy the session is not resumed.
    pub policy: PolicyId,
    /// When its secret was made, in seconds since 1970. Resuming it does not make it younger.
    pub made_unix_s: u64,
}

impl Session {
    /// Whether it is too old, or its peer's chain no longer valid. A session of the future is over
    /// too: the clock that it was made by was not this one.
    pub fn is_over(&self, lifetime: Duration, now_unix_s: u64) -> bool {
        let age_s = now_unix_s.checked_sub(self.made_unix_s);
        age_s.is_none_or(|age_s| age_s > lifetime.as_secs())
            || self.peer.as_ref().is_some_and(|peer| !peer.is_valid_at(now_unix_s))
    }
}

/// Where a server keeps sessions. Shared by all connections of a server.
pub trait SessionStore: Send + Sync {
    /// Keeps a session, unless there is one of its name: a peer that takes part in another
    /// client's handshake must not replace what the owner has made of it.
    fn insert(&self, session: Session);
    fn find(&self, id: &SessionId) -> Option<Session>;
    fn remove(&self, id: &SessionId);
    /// Whether sessions are kept at all; if not, they are not given names.
    fn keeps_sessions(&self) -> bool {
        true
    }
}

/// Keeps no sessions: clients are told that theirs cannot be resumed.
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
    /// Room for `capacity` sessions; the oldest makes room for a new one.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, kept: Mutex::default() }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        // Nothing panics while holding the lock, and a map half-changed would still be a map.
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
