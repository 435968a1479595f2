//! An endpoint without cryptography for SSL-based AKA, which resumes sessions, and the environment of an SGSN.

use crate::scripted::{End, Script, Scripted};
use shakedown_aka::core::{Answer, Query};
use shakedown_aka::message::{Cause, Message};
use shakedown_aka::names::{Imsi, Network, NodeName, Temporary};
use shakedown_aka::sessions::{SessionRecord, Sessions};
use shakedown_aka::sgsn::{self, NotAdmitted};
use shakedown_trace::endpoint::Time;
use shakedown_trace::suite::Protocol;
use shakedown_trace::{CloseReason, Event, Side};
use std::sync::{Arc, Mutex, PoisonError};

/// The sessions of an SGSN, shared with its endpoints.
pub type Shared = Arc<Mutex<Sessions>>;

/// Bytes of a session's ID.
const ID_BYTES: usize = 4;
/// First bytes of the flights.
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
const FINISHED: u8 = 3;

/// A handshake with one byte per message: hello, hello, finished and, in a full handshake, finished. Later data is
/// sent unchanged.
pub struct Handshaker {
    sessions: Option<Shared>,
    /// ID of the session that is offered, or was created or resumed.
    id: Option<[u8; ID_BYTES]>,
    /// ID for the session that a full handshake creates.
    fresh: [u8; ID_BYTES],
    step: u8,
    resumed: bool,
    established: bool,
}

impl Handshaker {
    /// The endpoint of a mobile, which may offer a session.
    pub fn client(id: Option<[u8; ID_BYTES]>) -> Scripted<Self> {
        let offered = id.unwrap_or_default();
        let output = [&[CLIENT_HELLO, id.is_some().into()], &offered[..]].concat();
        Scripted::new(Side::Client, output, Self::new(None, id, [0; ID_BYTES]))
    }

    /// The endpoint of an SGSN; a session that it creates gets the ID `fresh`.
    pub fn server(sessions: Shared, fresh: [u8; ID_BYTES]) -> Scripted<Self> {
        Scripted::new(Side::Server, Vec::new(), Self::new(Some(sessions), None, fresh))
    }

    fn new(sessions: Option<Shared>, id: Option<[u8; ID_BYTES]>, fresh: [u8; ID_BYTES]) -> Self {
        Self { sessions, id, fresh, step: 0, resumed: false, established: false }
    }

    /// ID of the session that was created or resumed.
    pub fn id(&self) -> Option<[u8; ID_BYTES]> {
        self.id.filter(|_| self.established)
    }

    fn establish(&mut self, end: &mut End) {
        self.established = true;
        end.establish(Protocol::Tls12, self.resumed);
    }

    /// The server's response to a ClientHello.
    fn answer(&mut self, end: &mut End, offered: Option<[u8; ID_BYTES]>) {
        let Some(sessions) = &self.sessions else { return };
        let mut sessions = sessions.lock().unwrap_or_else(PoisonError::into_inner);
        self.resumed = offered.is_some_and(|id| sessions.get(&id).is_some());
        let id = match offered.filter(|_| self.resumed) {
            Some(id) => id,
            None => {
                sessions.put(&self.fresh, b"secret".to_vec());
                self.fresh
            }
        };
        drop(sessions);
        self.id = Some(id);
        end.output.extend([SERVER_HELLO, self.resumed.into()]);
        end.output.extend(id);
    }

    fn flight(&mut self, end: &mut End, bytes: &[u8]) -> Option<()> {
        let id = |bytes: &[u8]| bytes.get(2..2 + ID_BYTES).and_then(|id| id.try_into().ok());
        match (end.side, self.step, bytes.first().copied()?) {
            (Side::Server, 0, CLIENT_HELLO) => {
                let offered = if bytes.get(1)? == &1 { Some(id(bytes)?) } else { None };
                self.answer(end, offered);
            }
            (Side::Client, 0, SERVER_HELLO) => {
                self.resumed = bytes.get(1)? == &1;
                // Only the offered session can be resumed.
                let same = self.id == Some(id(bytes)?);
                (!self.resumed || same).then_some(())?;
                self.id = Some(id(bytes)?);
                end.output.push(FINISHED);
                if self.resumed {
                    self.establish(end);
                }
            }
            (Side::Server, 1, FINISHED) => {
                if !self.resumed {
                    end.output.push(FINISHED);
                }
                self.establish(end);
            }
            (Side::Client, 1, FINISHED) if !self.resumed => self.establish(end),
            _ => return None,
        }
        self.step += 1;
        Some(())
    }
}

impl Script for Handshaker {
    fn input(&mut self, end: &mut End, bytes: &[u8]) {
        if self.established {
            end.events.push_back(Event::Data(bytes.to_vec()));
        } else if self.flight(end, bytes).is_none() {
            end.events.push_back(Event::Closed(CloseReason::Truncated));
        }
    }
}

/// The environment of an SGSN: networks are partners unless they end with 9; random numbers are consecutive.
pub struct Environment {
    sessions: Shared,
    admitted: Vec<Network>,
    next: u32,
}

impl Environment {
    /// An environment that has admitted no network.
    pub fn new(sessions: Shared) -> Self {
        Self { sessions, admitted: Vec::new(), next: 0 }
    }
}

impl sgsn::Environment for Environment {
    type Endpoint = Scripted<Handshaker>;

    fn accept(&mut self, home: &Network) -> Option<Scripted<Handshaker>> {
        self.next += 1;
        let fresh = self.next.to_be_bytes();
        self.admitted.contains(home).then(|| Handshaker::server(Arc::clone(&self.sessions), fresh))
    }

    fn admit(&mut self, home: &Network, cross_certificate: &[u8]) -> Result<(), NotAdmitted> {
        if home.as_str().ends_with('9') || cross_certificate != b"certificate" {
            return Err(NotAdmitted("no partner".into()));
        }
        self.admitted.push(home.clone());
        Ok(())
    }

    fn random(&mut self, bytes: &mut [u8]) {
        self.next += 1;
        for (byte, drawn) in bytes.iter_mut().zip(self.next.to_be_bytes()) {
            *byte = drawn;
        }
    }
}

/// Encoded messages of every kind.
pub fn message_seeds() -> Vec<Vec<u8>> {
    let (Ok(home), Ok(node), Ok(imsi)) =
        (Network::new("20201"), NodeName::new("sgsn-1"), Imsi::new("202010000000000"))
    else {
        return Vec::new();
    };
    let temporary = Temporary { node: node.clone(), ptmsi: 7 };
    let record = SessionRecord {
        secret: vec![1; 48],
        imsi: imsi.clone(),
        home: home.clone(),
        resumptions: 1,
        last: Time::from_secs(9),
        basis: [3; 32],
    };
    let messages = [
        Message::AttachRequest { home: home.clone(), temporary: None },
        Message::AttachRequest { home: home.clone(), temporary: Some(temporary.clone()) },
        Message::Tls(vec![22, 3, 3]),
        Message::Identity(imsi.clone()),
        Message::AttachAccept(temporary),
        Message::Reject(Cause::Barred),
    ];
    let queries = [
        Query::CrossCertificate { serving: home.clone() },
        Query::Location { serving: home.clone(), node, imsi: imsi.clone(), certificate: Some(vec![48, 0]) },
        Query::Context { ptmsi: 7 },
        Query::Claim { ptmsi: 7, imsi: imsi.clone() },
    ];
    let answers = [
        Answer::CrossCertificate(b"certificate".to_vec()),
        Answer::Located,
        Answer::Context { imsi, home, session: Some((vec![1; 32], record)) },
        Answer::UnknownContext,
        Answer::Refused(Cause::UnknownSubscriber),
    ];
    let mut seeds: Vec<_> = messages.iter().map(Message::to_bytes).collect();
    seeds.extend(queries.iter().map(Query::to_bytes));
    seeds.extend(answers.iter().map(Answer::to_bytes));
    seeds
}
