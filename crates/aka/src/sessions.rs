//! Which sessions an SGSN resumes (figure 5 of the paper): one that it knows, not resumed too often, and not too long after
//! the last time. Whatever else is offered gets a full handshake and a new session.

use crate::names::{Imsi, Network};
use shakedown_trace::endpoint::Time;
use std::collections::HashMap;

/// The two thresholds. The paper has them set by SGSN or AAA server, and gives no values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How often a session is resumed.
    pub max_resumptions: u32,
    /// How long after the handshake that made it, or after the last resumption.
    pub max_age: Time,
}

impl Default for Policy {
    /// Ten resumptions, none more than an hour after the last.
    fn default() -> Self {
        Self { max_resumptions: 10, max_age: Time::from_secs(3600) }
    }
}

/// A session that may be resumed.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// As the TLS stack writes it: what both sides share, the subscriber's certificate.
    pub secret: Vec<u8>,
    /// Whose it is.
    pub imsi: Imsi,
    /// Of which network.
    pub home: Network,
    /// How often it has been resumed.
    pub resumptions: u32,
    /// When it was made or last resumed.
    pub last: Time,
}

impl std::fmt::Debug for SessionRecord {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The secret stays out of logs.
        formatter
            .debug_struct("SessionRecord")
            .field("resumptions", &self.resumptions)
            .field("last", &self.last)
            .finish()
    }
}

/// A subscriber who has attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscriber {
    /// Who.
    pub imsi: Imsi,
    /// Of which network.
    pub home: Network,
    /// The session made or resumed last, by its ID.
    pub session: Option<Vec<u8>>,
}

/// What is kept could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the state of the SGSN: {0}")]
pub struct StoreError(pub String);

/// Where an SGSN keeps sessions and subscribers. Of each subscriber there is one temporary identity and one session at
/// most, so what is held grows with subscribers and not with attaches.
pub trait Store {
    /// A session by its ID.
    ///
    /// # Errors
    /// [`StoreError`].
    fn session(&mut self, id: &[u8]) -> Result<Option<SessionRecord>, StoreError>;

    /// Keeps a session, in place of any of this ID.
    ///
    /// # Errors
    /// [`StoreError`].
    fn keep_session(&mut self, id: &[u8], record: &SessionRecord) -> Result<(), StoreError>;

    /// Forgets a session.
    ///
    /// # Errors
    /// [`StoreError`].
    fn forget_session(&mut self, id: &[u8]) -> Result<(), StoreError>;

    /// Whose a temporary identity is.
    ///
    /// # Errors
    /// [`StoreError`].
    fn subscriber(&mut self, ptmsi: u32) -> Result<Option<Subscriber>, StoreError>;

    /// Keeps a subscriber under a new temporary identity; older ones, and other sessions of the same subscriber, are
    /// forgotten.
    ///
    /// # Errors
    /// [`StoreError`].
    fn keep_subscriber(&mut self, ptmsi: u32, subscriber: &Subscriber) -> Result<(), StoreError>;

    /// Forgets a subscriber, sessions included.
    ///
    /// # Errors
    /// [`StoreError`].
    fn forget_subscriber(&mut self, ptmsi: u32) -> Result<(), StoreError>;
}

impl<S: Store + ?Sized> Store for Box<S> {
    fn session(&mut self, id: &[u8]) -> Result<Option<SessionRecord>, StoreError> {
        (**self).session(id)
    }

    fn keep_session(&mut self, id: &[u8], record: &SessionRecord) -> Result<(), StoreError> {
        (**self).keep_session(id, record)
    }

    fn forget_session(&mut self, id: &[u8]) -> Result<(), StoreError> {
        (**self).forget_session(id)
    }

    fn subscriber(&mut self, ptmsi: u32) -> Result<Option<Subscriber>, StoreError> {
        (**self).subscriber(ptmsi)
    }

    fn keep_subscriber(&mut self, ptmsi: u32, subscriber: &Subscriber) -> Result<(), StoreError> {
        (**self).keep_subscriber(ptmsi, subscriber)
    }

    fn forget_subscriber(&mut self, ptmsi: u32) -> Result<(), StoreError> {
        (**self).forget_subscriber(ptmsi)
    }
}

/// A store that is gone when the program ends.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    sessions: HashMap<Vec<u8>, SessionRecord>,
    subscribers: HashMap<u32, Subscriber>,
    held: HashMap<Imsi, Held>,
}

/// What is held of one subscriber.
#[derive(Clone, Debug, Default)]
struct Held {
    ptmsi: Option<u32>,
    sessions: Vec<Vec<u8>>,
}

impl Store for MemoryStore {
    fn session(&mut self, id: &[u8]) -> Result<Option<SessionRecord>, StoreError> {
        Ok(self.sessions.get(id).cloned())
    }

    fn keep_session(&mut self, id: &[u8], record: &SessionRecord) -> Result<(), StoreError> {
        let held = self.held.entry(record.imsi.clone()).or_default();
        if !held.sessions.iter().any(|one| one == id) {
            held.sessions.push(id.to_vec());
        }
        self.sessions.insert(id.to_vec(), record.clone());
        Ok(())
    }

    fn forget_session(&mut self, id: &[u8]) -> Result<(), StoreError> {
        if let Some(record) = self.sessions.remove(id)
            && let Some(held) = self.held.get_mut(&record.imsi)
        {
            held.sessions.retain(|one| one != id);
        }
        Ok(())
    }

    fn subscriber(&mut self, ptmsi: u32) -> Result<Option<Subscriber>, StoreError> {
        Ok(self.subscribers.get(&ptmsi).cloned())
    }

    fn keep_subscriber(&mut self, ptmsi: u32, subscriber: &Subscriber) -> Result<(), StoreError> {
        let held = self.held.entry(subscriber.imsi.clone()).or_default();
        if let Some(before) = held.ptmsi.replace(ptmsi) {
            self.subscribers.remove(&before);
        }
        for id in held.sessions.extract_if(.., |id| Some(&*id) != subscriber.session.as_ref()) {
            self.sessions.remove(&id);
        }
        self.subscribers.insert(ptmsi, subscriber.clone());
        Ok(())
    }

    fn forget_subscriber(&mut self, ptmsi: u32) -> Result<(), StoreError> {
        let Some(gone) = self.subscribers.remove(&ptmsi) else { return Ok(()) };
        for id in self.held.remove(&gone.imsi).map(|held| held.sessions).unwrap_or_default() {
            self.sessions.remove(&id);
        }
        Ok(())
    }
}

/// What was decided on a session that a mobile offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decision {
    /// It is resumed.
    Resume,
    /// Nobody here knows it.
    Unknown,
    /// It has been resumed as often as may be.
    TooOften,
    /// The last time is too long ago.
    TooOld,
}

impl Decision {
    /// The word used in files and on screen.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Resume => "resume",
            Self::Unknown => "unknown",
            Self::TooOften => "too_often",
            Self::TooOld => "too_old",
        }
    }
}

/// A session that was offered, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offered {
    /// Its ID.
    pub id: Vec<u8>,
    /// What was decided.
    pub decision: Decision,
    /// The session, where it is resumed.
    pub record: Option<SessionRecord>,
}

/// A session that a handshake has just made. It can be resumed once the subscriber is known.
#[derive(Clone, PartialEq, Eq)]
pub struct Fresh {
    /// Its ID.
    pub id: Vec<u8>,
    /// As the stack writes it.
    pub secret: Vec<u8>,
}

/// The sessions of an SGSN. Its TLS stack calls [`put`](Self::put) and [`get`](Self::get) while it handles a handshake;
/// whoever gave it the bytes then learns by [`take_fresh`](Self::take_fresh) and [`take_offered`](Self::take_offered)
/// what it did.
pub struct Sessions<S> {
    store: S,
    policy: Policy,
    now: Time,
    offered: Option<Offered>,
    fresh: Option<Fresh>,
    error: Option<StoreError>,
}

impl<S: Store> Sessions<S> {
    /// Sessions in a store, under a policy.
    pub fn new(store: S, policy: Policy) -> Self {
        Self { store, policy, now: Time::ZERO, offered: None, fresh: None, error: None }
    }

    /// Where they are kept.
    pub fn store(&mut self) -> &mut S {
        &mut self.store
    }

    /// A stack is about to be given bytes. Times never go backwards, not across a restart either.
    pub fn begin(&mut self, now: Time) {
        self.now = self.now.max(now);
        self.offered = None;
        self.fresh = None;
    }

    /// What was offered since [`begin`](Self::begin).
    pub fn take_offered(&mut self) -> Option<Offered> {
        self.offered.take()
    }

    /// What was made since [`begin`](Self::begin).
    pub fn take_fresh(&mut self) -> Option<Fresh> {
        self.fresh.take()
    }

    /// What went wrong with the store in calls of the stack, which has no use for it.
    pub fn take_error(&mut self) -> Option<StoreError> {
        self.error.take()
    }

    /// The stack has made a session.
    pub fn put(&mut self, id: &[u8], secret: Vec<u8>) {
        self.fresh = Some(Fresh { id: id.to_vec(), secret });
    }

    /// A mobile offers a session: its secret where it is to be resumed. That counts at once, whether or not the
    /// handshake then succeeds.
    pub fn get(&mut self, id: &[u8]) -> Option<Vec<u8>> {
        let (decision, record) = self.decide(id).unwrap_or_else(|error| {
            self.error = Some(error);
            (Decision::Unknown, None)
        });
        let secret = record.as_ref().map(|record| record.secret.clone());
        self.offered = Some(Offered { id: id.to_vec(), decision, record });
        secret
    }

    fn decide(&mut self, id: &[u8]) -> Result<(Decision, Option<SessionRecord>), StoreError> {
        let Some(mut record) = self.store.session(id)? else { return Ok((Decision::Unknown, None)) };
        let decision = if record.resumptions >= self.policy.max_resumptions {
            Decision::TooOften
        } else if self.now.saturating_sub(record.last) >= self.policy.max_age {
            Decision::TooOld
        } else {
            record.resumptions += 1;
            record.last = self.now;
            self.store.keep_session(id, &record)?;
            return Ok((Decision::Resume, Some(record)));
        };
        // Never again.
        self.store.forget_session(id)?;
        Ok((decision, None))
    }

    /// A subscriber has attached, under a temporary identity: by a session made just now, or by one resumed.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn attached(
        &mut self,
        ptmsi: u32,
        imsi: &Imsi,
        home: &Network,
        made: Option<Fresh>,
        resumed: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        let session = made.as_ref().map(|made| made.id.clone()).or(resumed.map(<[u8]>::to_vec));
        if let Some(Fresh { id, secret }) = made {
            let (imsi, home) = (imsi.clone(), home.clone());
            let record = SessionRecord { secret, imsi, home, resumptions: 0, last: self.now };
            self.store.keep_session(&id, &record)?;
        }
        let subscriber = Subscriber { imsi: imsi.clone(), home: home.clone(), session };
        self.store.keep_subscriber(ptmsi, &subscriber)
    }

    /// Another SGSN asks for a subscriber who has gone there: subscriber and session, which are not here any more.
    ///
    /// # Errors
    /// [`StoreError`].
    #[allow(clippy::type_complexity)] // a subscriber, and a session by its ID
    pub fn hand_over(
        &mut self,
        ptmsi: u32,
    ) -> Result<Option<(Subscriber, Option<(Vec<u8>, SessionRecord)>)>, StoreError> {
        let Some(subscriber) = self.store.subscriber(ptmsi)? else { return Ok(None) };
        let session = match &subscriber.session {
            Some(id) => self.store.session(id)?.map(|record| (id.clone(), record)),
            None => None,
        };
        self.store.forget_subscriber(ptmsi)?;
        Ok(Some((subscriber, session)))
    }

    /// A session has come from another SGSN; how often and when it was resumed there still counts.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn take_over(&mut self, id: &[u8], record: &SessionRecord) -> Result<(), StoreError> {
        self.store.keep_session(id, record)
    }
}
