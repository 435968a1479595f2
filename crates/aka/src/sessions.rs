//! Which sessions an SGSN resumes (figure 5 of the paper): one that it knows, not resumed too often, and not too long after
//! the last time. Whatever else is offered gets a full handshake and a new session.
//!
//! Anybody can offer a session whose ID he has overheard. So an offer changes nothing: a resumption counts when the mobile
//! has ended the handshake, which takes the session's secret, and before the network accepts the attach. What the
//! thresholds say then is what holds. A session whose last use is in the future is refused and forgotten.

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
    pub imsi: Imsi,
    pub home: Network,
    /// How often it has been resumed.
    pub resumptions: u32,
    /// When it was made or last resumed.
    pub last: Time,
    /// Under what it was made: see [`Sessions::new`].
    pub basis: Basis,
}

/// A digest of what sessions depend on: the suite, and whom the network trusts.
pub type Basis = [u8; 32];

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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscriber {
    pub imsi: Imsi,
    pub home: Network,
    /// The session made or resumed last, by its ID.
    pub session: Option<Vec<u8>>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the state of the SGSN: {0}")]
pub struct StoreError(pub String);

/// Where an SGSN keeps sessions and subscribers. Of each subscriber there is one temporary identity and one session at
/// most, so what is held grows with subscribers and not with attaches.
pub trait Store {
    /// A session by its ID.
    fn session(&mut self, id: &[u8]) -> Result<Option<SessionRecord>, StoreError>;

    /// Keeps a session, in place of any of this ID.
    fn keep_session(&mut self, id: &[u8], record: &SessionRecord) -> Result<(), StoreError>;

    /// Forgets a session.
    fn forget_session(&mut self, id: &[u8]) -> Result<(), StoreError>;

    /// Whose a temporary identity is.
    fn subscriber(&mut self, ptmsi: u32) -> Result<Option<Subscriber>, StoreError>;

    /// Keeps a subscriber under a new temporary identity; older ones, and other sessions of the same subscriber, are
    /// forgotten.
    fn keep_subscriber(&mut self, ptmsi: u32, subscriber: &Subscriber) -> Result<(), StoreError>;

    /// Forgets a subscriber, sessions included.
    fn forget_subscriber(&mut self, ptmsi: u32) -> Result<(), StoreError>;
}

/// A store that is gone when the program ends.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    sessions: HashMap<Vec<u8>, SessionRecord>,
    subscribers: HashMap<u32, Subscriber>,
    held: HashMap<Imsi, Held>,
}

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

shakedown_trace::spelled! {
    /// What was decided on a session that a mobile offered.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Decision {
        Resume = "resume",
        /// It is not known here.
        Unknown = "unknown",
        /// It has been resumed as often as may be.
        TooOften = "too_often",
        /// The last time is too long ago.
        TooOld = "too_old",
        /// The last time is later than now: the clock has been set back since, and the session's age is unknown. It is
        /// forgotten.
        ClockSetBack = "clock_set_back",
        /// It was made for another suite, or under other roots.
        OtherBasis = "other_basis",
        /// It might be resumed, and TLS did not: another cipher, or the session or its certificates have ended.
        Declined = "declined",
    }
}

/// A session that was offered, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offered {
    pub id: Vec<u8>,
    pub decision: Decision,
    /// The session, where it may be resumed.
    pub record: Option<SessionRecord>,
    /// Another SGSN holds it.
    pub is_guest: bool,
}

pub type Identified = (Vec<u8>, SessionRecord);

/// A session that a handshake has just made. It can be resumed once the subscriber is known.
#[derive(Clone, PartialEq, Eq)]
pub struct Fresh {
    pub id: Vec<u8>,
    pub secret: Vec<u8>,
}

/// The sessions of an SGSN. Its TLS stack calls [`put`](Self::put) and [`get`](Self::get) while it handles a handshake;
/// the caller that passed the bytes then learns by [`take_fresh`](Self::take_fresh) and [`take_offered`](Self::take_offered)
/// what it did.
pub struct Sessions {
    store: Box<dyn Store + Send>,
    policy: Policy,
    basis: Basis,
    now: Time,
    guest: Option<Identified>,
    offered: Option<Offered>,
    fresh: Option<Fresh>,
    error: Option<StoreError>,
}

impl Sessions {
    /// Sessions in a store, under a policy. Those that were made under another `basis` are not resumed.
    pub fn new(store: Box<dyn Store + Send>, policy: Policy, basis: Basis) -> Self {
        let (now, guest, offered, fresh, error) = (Time::ZERO, None, None, None, None);
        Self { store, policy, basis, now, guest, offered, fresh, error }
    }

    /// Where they are kept.
    pub fn store(&mut self) -> &mut dyn Store {
        self.store.as_mut()
    }

    /// A stack is about to be given bytes. `guest` is a session of another SGSN's that this mobile may resume.
    pub fn begin(&mut self, now: Time, guest: Option<&Identified>) {
        self.now = now;
        self.guest = guest.cloned();
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

    /// The store's error during a call of the stack, which ignores it.
    pub fn take_error(&mut self) -> Option<StoreError> {
        self.error.take()
    }

    /// The stack has made a session.
    pub fn put(&mut self, id: &[u8], secret: Vec<u8>) {
        self.fresh = Some(Fresh { id: id.to_vec(), secret });
    }

    /// Somebody offers a session: its secret where it may be resumed.
    pub fn get(&mut self, id: &[u8]) -> Option<Vec<u8>> {
        let offered = self.offer(id).unwrap_or_else(|error| {
            self.error = Some(error);
            Offered { id: id.to_vec(), decision: Decision::Unknown, record: None, is_guest: false }
        });
        let secret = offered.record.as_ref().map(|record| record.secret.clone());
        self.offered = Some(offered);
        secret
    }

    fn offer(&mut self, id: &[u8]) -> Result<Offered, StoreError> {
        let held = self.store.session(id)?;
        let guest = self.guest.as_ref().filter(|guest| held.is_none() && guest.0 == id);
        let (is_guest, record) = (guest.is_some(), guest.map(|guest| guest.1.clone()).or(held));
        let decision = record.as_ref().map_or(Decision::Unknown, |record| self.decide(record, self.now));
        if !is_guest {
            self.forget_if_set_back(id, decision)?;
        }
        let record = record.filter(|_| decision == Decision::Resume);
        Ok(Offered { id: id.to_vec(), decision, record, is_guest })
    }

    /// The age of such a session is unknown; when the clock has caught up with it, it would seem young.
    fn forget_if_set_back(&mut self, id: &[u8], decision: Decision) -> Result<(), StoreError> {
        if decision == Decision::ClockSetBack { self.store.forget_session(id) } else { Ok(()) }
    }

    fn decide(&self, record: &SessionRecord, now: Time) -> Decision {
        if record.basis != self.basis {
            Decision::OtherBasis
        } else if record.resumptions >= self.policy.max_resumptions {
            Decision::TooOften
        } else if record.last > now {
            Decision::ClockSetBack
        } else if now.saturating_sub(record.last) >= self.policy.max_age {
            Decision::TooOld
        } else {
            Decision::Resume
        }
    }

    /// A mobile has ended a handshake by a session: the resumption counts, if it may still be one. `guest` is what the SGSN
    /// that held it has let go.
    pub fn resume(
        &mut self,
        now: Time,
        id: &[u8],
        guest: Option<SessionRecord>,
    ) -> Result<Decision, StoreError> {
        let record = match guest {
            Some(record) => Some(record),
            None => self.store.session(id)?,
        };
        let Some(mut record) = record else { return Ok(Decision::Unknown) };
        let decision = self.decide(&record, now);
        if decision == Decision::Resume {
            record.resumptions += 1;
            record.last = now;
            self.store.keep_session(id, &record)?;
        }
        self.forget_if_set_back(id, decision)?;
        Ok(decision)
    }

    /// A subscriber has attached, under a temporary identity: by a session made just now, or by one resumed.
    pub fn attached(
        &mut self,
        now: Time,
        ptmsi: u32,
        (imsi, home): (&Imsi, &Network),
        made: Option<Fresh>,
        resumed: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        let session = made.as_ref().map(|made| made.id.clone()).or(resumed.map(<[u8]>::to_vec));
        if let Some(Fresh { id, secret }) = made {
            let (imsi, home, basis) = (imsi.clone(), home.clone(), self.basis);
            let record = SessionRecord { secret, imsi, home, resumptions: 0, last: now, basis };
            self.store.keep_session(&id, &record)?;
        }
        let subscriber = Subscriber { imsi: imsi.clone(), home: home.clone(), session };
        self.store.keep_subscriber(ptmsi, &subscriber)
    }

    /// Who holds a temporary identity, and the session by which the subscriber last attached.
    pub fn context(&mut self, ptmsi: u32) -> Result<Option<(Subscriber, Option<Identified>)>, StoreError> {
        let Some(subscriber) = self.store.subscriber(ptmsi)? else { return Ok(None) };
        let session = match &subscriber.session {
            Some(id) => self.store.session(id)?.map(|record| (id.clone(), record)),
            None => None,
        };
        Ok(Some((subscriber, session)))
    }

    /// A subscriber has moved to another SGSN: removes his session here.
    pub fn let_go(&mut self, ptmsi: u32) -> Result<(), StoreError> {
        self.store.forget_subscriber(ptmsi)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const BASIS: Basis = [1; 32];

    fn at(seconds: u64) -> Time {
        Time::from_secs(seconds)
    }

    fn record(resumptions: u32, last_s: u64, basis: Basis) -> SessionRecord {
        let (imsi, home) = (Imsi::new("202010000000000").unwrap(), Network::new("20201").unwrap());
        SessionRecord { secret: vec![7; 48], imsi, home, resumptions, last: at(last_s), basis }
    }

    fn sessions() -> Sessions {
        let policy = Policy { max_resumptions: 2, max_age: at(100) };
        Sessions::new(Box::new(MemoryStore::default()), policy, BASIS)
    }

    /// What is decided on a session that is offered at 1000 s.
    fn decided(held: SessionRecord) -> (Decision, bool) {
        let mut sessions = sessions();
        sessions.store().keep_session(b"id", &held).unwrap();
        sessions.begin(at(1000), None);
        let given = sessions.get(b"id").is_some();
        (sessions.take_offered().unwrap().decision, given)
    }

    #[test]
    fn a_session_is_given_where_every_rule_lets_it_and_nowhere_else() {
        assert_eq!(decided(record(1, 901, BASIS)), (Decision::Resume, true));
        assert_eq!(decided(record(1, 1000, BASIS)), (Decision::Resume, true));
        assert_eq!(decided(record(2, 1000, BASIS)), (Decision::TooOften, false));
        assert_eq!(decided(record(0, 900, BASIS)), (Decision::TooOld, false));
        assert_eq!(decided(record(0, 1001, BASIS)), (Decision::ClockSetBack, false));
        assert_eq!(decided(record(0, 1000, [2; 32])), (Decision::OtherBasis, false));
        let mut empty = sessions();
        empty.begin(at(1), None);
        assert_eq!(empty.get(b"id"), None);
        assert_eq!(empty.take_offered().unwrap().decision, Decision::Unknown);
    }

    #[test]
    fn an_offer_changes_nothing_and_a_resumption_counts() {
        let mut sessions = sessions();
        sessions.store().keep_session(b"id", &record(0, 1000, BASIS)).unwrap();
        for _ in 0..9 {
            sessions.begin(at(1001), None);
            assert!(sessions.get(b"id").is_some());
        }
        for (resumptions, decision) in [(1, Decision::Resume), (2, Decision::Resume), (2, Decision::TooOften)]
        {
            assert_eq!(sessions.resume(at(1002), b"id", None).unwrap(), decision);
            let kept = sessions.store().session(b"id").unwrap().unwrap();
            assert_eq!((kept.resumptions, kept.last), (resumptions, at(1002)));
        }
        assert_eq!(sessions.resume(at(1003), b"other", None).unwrap(), Decision::Unknown);
    }

    #[test]
    fn a_session_from_a_time_to_come_is_forgotten_and_not_young_when_that_time_has_come() {
        // Refused where it is offered, and where it was offered before the clock was set back.
        for is_offered in [true, false] {
            let mut sessions = sessions();
            sessions.store().keep_session(b"id", &record(0, 1000, BASIS)).unwrap();
            if is_offered {
                sessions.begin(at(500), None);
                assert_eq!(sessions.get(b"id"), None);
                assert_eq!(sessions.take_offered().unwrap().decision, Decision::ClockSetBack);
            } else {
                assert_eq!(sessions.resume(at(500), b"id", None).unwrap(), Decision::ClockSetBack);
            }
            sessions.begin(at(1001), None);
            assert_eq!(sessions.get(b"id"), None);
            assert_eq!(sessions.take_offered().unwrap().decision, Decision::Unknown);
        }
        // What another SGSN holds is not this one's to forget.
        let mut sessions = sessions();
        let guest = (b"guest".to_vec(), record(1, 1000, BASIS));
        sessions.begin(at(500), Some(&guest));
        assert_eq!(sessions.get(b"guest"), None);
        sessions.begin(at(1000), Some(&guest));
        assert!(sessions.get(b"guest").is_some());
    }

    #[test]
    fn a_guest_is_given_to_its_own_mobile_and_kept_when_it_was_let_go() {
        let mut sessions = sessions();
        let guest = (b"guest".to_vec(), record(1, 1000, BASIS));
        sessions.begin(at(1000), Some(&guest));
        assert!(sessions.get(b"guest").is_some());
        assert!(sessions.take_offered().unwrap().is_guest);
        assert_eq!(sessions.store().session(b"guest").unwrap(), None);
        sessions.begin(at(1000), None);
        assert_eq!(sessions.get(b"guest"), None, "another mobile's");
        // What counts is what it was when it was let go.
        let claimed = Some(record(2, 1000, BASIS));
        assert_eq!(sessions.resume(at(1000), b"guest", claimed).unwrap(), Decision::TooOften);
        assert_eq!(sessions.resume(at(1000), b"guest", Some(guest.1)).unwrap(), Decision::Resume);
        assert_eq!(sessions.store().session(b"guest").unwrap().unwrap().resumptions, 2);
    }
}
