//! Which sessions an SGSN resumes (figure 5 of the paper): sessions that it knows, that have not been resumed too
//! often, and whose last use is not too long ago. For any other offer the handshake is a full one and creates a new
//! session.
//!
//! Anyone who overheard a session's ID can offer the session, so an offer changes no state. A resumption counts when
//! the mobile has finished the handshake, which needs the session's secret. Then, before the network accepts the
//! attach, the thresholds are checked again, and this check decides. A session whose last use is in the future is
//! refused and removed.

use crate::names::{Imsi, Network};
use shakedown_trace::endpoint::Time;
use std::collections::HashMap;

/// The two thresholds. In the paper the SGSN or an AAA server sets them; it gives no values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Limit of a session's resumptions.
    pub max_resumptions: u32,
    /// Limit of the time since a session's full handshake, or since its last resumption.
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
    /// The session as the TLS stack encodes it: its secret and the subscriber's certificate.
    pub secret: Vec<u8>,
    pub imsi: Imsi,
    pub home: Network,
    /// Number of its resumptions.
    pub resumptions: u32,
    /// The time of its creation, or of its last resumption.
    pub last: Time,
    /// The basis on which it was created: see [`Sessions::new`].
    pub basis: Basis,
}

/// A digest of the parameters on which sessions depend: the suite, and the roots that the network trusts.
pub type Basis = [u8; 32];

impl std::fmt::Debug for SessionRecord {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Logs must not contain the secret.
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
    /// The ID of the session that was created or resumed last.
    pub session: Option<Vec<u8>>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the state of the SGSN: {0}")]
pub struct StoreError(pub String);

/// An SGSN's store of sessions and subscribers. Each subscriber has at most one temporary identity and one session, so
/// the store grows with the number of subscribers, not with the number of attaches.
pub trait Store {
    fn session(&mut self, id: &[u8]) -> Result<Option<SessionRecord>, StoreError>;

    /// Stores a session; replaces one with the same ID.
    fn keep_session(&mut self, id: &[u8], record: &SessionRecord) -> Result<(), StoreError>;

    /// Removes a session.
    fn forget_session(&mut self, id: &[u8]) -> Result<(), StoreError>;

    /// The subscriber with a temporary identity.
    fn subscriber(&mut self, ptmsi: u32) -> Result<Option<Subscriber>, StoreError>;

    /// Stores a subscriber under a new temporary identity, and removes the subscriber's older identities and other
    /// sessions.
    fn keep_subscriber(&mut self, ptmsi: u32, subscriber: &Subscriber) -> Result<(), StoreError>;

    /// Removes a subscriber, including its sessions.
    fn forget_subscriber(&mut self, ptmsi: u32) -> Result<(), StoreError>;
}

/// A store in memory.
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
    /// The decision about a session that a mobile offered.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Decision {
        Resume = "resume",
        /// The SGSN does not know it.
        Unknown = "unknown",
        /// It has reached the limit of resumptions.
        TooOften = "too_often",
        /// Its last use is too long ago.
        TooOld = "too_old",
        /// Its last use is later than the present time: the clock has been set back since, so the session's age is
        /// unknown. The session is removed.
        ClockSetBack = "clock_set_back",
        /// It was created for another suite, or with other roots.
        OtherBasis = "other_basis",
        /// The SGSN allowed the resumption, but TLS did not resume it: another cipher was negotiated, or the session or
        /// its certificates have expired.
        Declined = "declined",
    }
}

/// An offered session, and the decision about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offered {
    pub id: Vec<u8>,
    pub decision: Decision,
    /// The session, if it may be resumed.
    pub record: Option<SessionRecord>,
    /// Whether another SGSN stores it.
    pub is_guest: bool,
}

pub type Identified = (Vec<u8>, SessionRecord);

/// A session that the present handshake created. It can be resumed once the subscriber is known.
#[derive(Clone, PartialEq, Eq)]
pub struct Fresh {
    pub id: Vec<u8>,
    pub secret: Vec<u8>,
}

/// The sessions of an SGSN. Its TLS stack calls [`put`](Self::put) and [`get`](Self::get) while it handles a handshake;
/// afterwards, [`take_fresh`](Self::take_fresh) and [`take_offered`](Self::take_offered) return the created and the
/// offered session.
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
    /// Sessions in a store, under a policy. Those that were created with another `basis` are not resumed.
    pub fn new(store: Box<dyn Store + Send>, policy: Policy, basis: Basis) -> Self {
        let (now, guest, offered, fresh, error) = (Time::ZERO, None, None, None, None);
        Self { store, policy, basis, now, guest, offered, fresh, error }
    }

    pub fn store(&mut self) -> &mut dyn Store {
        self.store.as_mut()
    }

    /// Must be called before the stack processes input. `guest`: a session from another SGSN, which this mobile may
    /// resume.
    pub fn begin(&mut self, now: Time, guest: Option<&Identified>) {
        self.now = now;
        self.guest = guest.cloned();
        self.offered = None;
        self.fresh = None;
    }

    /// The session that was offered since [`begin`](Self::begin).
    pub fn take_offered(&mut self) -> Option<Offered> {
        self.offered.take()
    }

    /// The session that was created since [`begin`](Self::begin).
    pub fn take_fresh(&mut self) -> Option<Fresh> {
        self.fresh.take()
    }

    /// The store's error during a call of the stack, which ignores it.
    pub fn take_error(&mut self) -> Option<StoreError> {
        self.error.take()
    }

    /// The stack has created a session.
    pub fn put(&mut self, id: &[u8], secret: Vec<u8>) {
        self.fresh = Some(Fresh { id: id.to_vec(), secret });
    }

    /// A mobile offers a session. Returns the session's secret if it may be resumed.
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

    /// Removes a session from the future: its age is unknown, and would seem small when the clock has caught up.
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

    /// A mobile has finished a resumed handshake: counts the resumption, if it is still allowed. `guest`: the session
    /// that another SGSN has released.
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

    /// A subscriber has attached, and has a temporary identity. `made`: the new session; `resumed`: the resumed
    /// session's ID.
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

    /// The subscriber with a temporary identity, and the session of the subscriber's last attach.
    pub fn context(&mut self, ptmsi: u32) -> Result<Option<(Subscriber, Option<Identified>)>, StoreError> {
        let Some(subscriber) = self.store.subscriber(ptmsi)? else { return Ok(None) };
        let session = match &subscriber.session {
            Some(id) => self.store.session(id)?.map(|record| (id.clone(), record)),
            None => None,
        };
        Ok(Some((subscriber, session)))
    }

    /// A subscriber has moved to another SGSN: removes the subscriber here.
    pub fn release(&mut self, ptmsi: u32) -> Result<(), StoreError> {
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

    /// The decision on a session that is offered at 1000 s, and whether its secret was returned.
    fn decided(held: SessionRecord) -> (Decision, bool) {
        let mut sessions = sessions();
        sessions.store().keep_session(b"id", &held).unwrap();
        sessions.begin(at(1000), None);
        let given = sessions.get(b"id").is_some();
        (sessions.take_offered().unwrap().decision, given)
    }

    #[test]
    fn session_is_resumed_only_if_every_rule_allows_it() {
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
    fn only_resumptions_and_not_offers_are_counted() {
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
    fn session_from_the_future_is_deleted() {
        // Refused if it is offered, and also if it was offered before the clock was set back.
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
        // A session that another SGSN holds is not removed.
        let mut sessions = sessions();
        let guest = (b"guest".to_vec(), record(1, 1000, BASIS));
        sessions.begin(at(500), Some(&guest));
        assert_eq!(sessions.get(b"guest"), None);
        sessions.begin(at(1000), Some(&guest));
        assert!(sessions.get(b"guest").is_some());
    }

    #[test]
    fn guest_session_is_used_by_its_mobile_and_kept_after_release() {
        let mut sessions = sessions();
        let guest = (b"guest".to_vec(), record(1, 1000, BASIS));
        sessions.begin(at(1000), Some(&guest));
        assert!(sessions.get(b"guest").is_some());
        assert!(sessions.take_offered().unwrap().is_guest);
        assert_eq!(sessions.store().session(b"guest").unwrap(), None);
        sessions.begin(at(1000), None);
        assert_eq!(sessions.get(b"guest"), None, "another mobile's");
        // The session's state at its release counts.
        let claimed = Some(record(2, 1000, BASIS));
        assert_eq!(sessions.resume(at(1000), b"guest", claimed).unwrap(), Decision::TooOften);
        assert_eq!(sessions.resume(at(1000), b"guest", Some(guest.1)).unwrap(), Decision::Resume);
        assert_eq!(sessions.store().session(b"guest").unwrap().unwrap().resumptions, 2);
    }
}
