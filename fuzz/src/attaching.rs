//! An endpoint without cryptography for SSL-based AKA, which resumes sessions, and what an SGSN is made of around it.

use shakedown_aka::core::{Answer, Query};
use shakedown_aka::message::{Cause, Message};
use shakedown_aka::names::{Imsi, Network, NodeName, Temporary};
use shakedown_aka::sessions::{MemoryStore, SessionRecord, Sessions};
use shakedown_aka::sgsn::{self, NotAdmitted};
use shakedown_trace::endpoint::{Time, Transport};
use shakedown_trace::suite::Protocol;
use shakedown_trace::{CloseReason, Endpoint, Event, ExportError, Negotiated, Side, WriteError};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// The sessions of an SGSN, shared with its endpoints.
pub type Shared = Arc<Mutex<Sessions<MemoryStore>>>;

/// Bytes of a session's ID.
const ID_BYTES: usize = 4;
/// First bytes of the flights.
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
const FINISHED: u8 = 3;

/// Says what a handshake says, a byte a message: hello, hello, finished and, after a full one, finished. Then data pass as they
/// are.
pub struct Handshaker {
    side: Side,
    sessions: Option<Shared>,
    /// What is offered, or was made or resumed.
    id: Option<[u8; ID_BYTES]>,
    /// For the session that a full handshake makes.
    fresh: [u8; ID_BYTES],
    step: u8,
    resumed: bool,
    established: bool,
    output: Vec<u8>,
    events: VecDeque<Event>,
}

impl Handshaker {
    /// A mobile's end, which offers a session.
    pub fn client(id: Option<[u8; ID_BYTES]>) -> Self {
        let offered = id.unwrap_or_default();
        let output = [&[CLIENT_HELLO, id.is_some().into()], &offered[..]].concat();
        Self { output, ..Self::new(Side::Client, None, id) }
    }

    /// An SGSN's end, which makes a session of an ID if it makes one.
    pub fn server(sessions: Shared, fresh: [u8; ID_BYTES]) -> Self {
        Self { fresh, ..Self::new(Side::Server, Some(sessions), None) }
    }

    fn new(side: Side, sessions: Option<Shared>, id: Option<[u8; ID_BYTES]>) -> Self {
        let (output, events) = (Vec::new(), VecDeque::new());
        let fresh = [0; ID_BYTES];
        Self { side, sessions, id, fresh, step: 0, resumed: false, established: false, output, events }
    }

    /// The session that was made or resumed.
    pub fn id(&self) -> Option<[u8; ID_BYTES]> {
        self.id.filter(|_| self.established)
    }

    fn establish(&mut self) {
        self.established = true;
        self.events.push_back(Event::Established(Box::new(Negotiated {
            protocol: Protocol::Tls12,
            key_exchange: None,
            cipher: None,
            cipher_suite: "none",
            group: None,
            resumed: self.resumed,
            optimized: false,
        })));
    }

    /// A server's answer to a ClientHello.
    fn answer(&mut self, offered: Option<[u8; ID_BYTES]>) {
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
        self.output.extend([SERVER_HELLO, self.resumed.into()]);
        self.output.extend(id);
    }

    fn flight(&mut self, bytes: &[u8]) -> Option<()> {
        let id = |bytes: &[u8]| bytes.get(2..2 + ID_BYTES).and_then(|id| id.try_into().ok());
        match (self.side, self.step, bytes.first().copied()?) {
            (Side::Server, 0, CLIENT_HELLO) => {
                let offered = if bytes.get(1)? == &1 { Some(id(bytes)?) } else { None };
                self.answer(offered);
            }
            (Side::Client, 0, SERVER_HELLO) => {
                self.resumed = bytes.get(1)? == &1;
                // Nobody resumes what was not offered.
                let same = self.id == Some(id(bytes)?);
                (!self.resumed || same).then_some(())?;
                self.id = Some(id(bytes)?);
                self.output.push(FINISHED);
                if self.resumed {
                    self.establish();
                }
            }
            (Side::Server, 1, FINISHED) => {
                if !self.resumed {
                    self.output.push(FINISHED);
                }
                self.establish();
            }
            (Side::Client, 1, FINISHED) if !self.resumed => self.establish(),
            _ => return None,
        }
        self.step += 1;
        Some(())
    }
}

impl Endpoint for Handshaker {
    fn side(&self) -> Side {
        self.side
    }

    fn transport(&self) -> Transport {
        Transport::Stream
    }

    fn handle_input(&mut self, _: Time, bytes: &[u8]) {
        if self.established {
            self.events.push_back(Event::Data(bytes.to_vec()));
        } else if self.flight(bytes).is_none() {
            self.events.push_back(Event::Closed(CloseReason::Truncated));
        }
    }

    fn handle_close(&mut self, _: Time) {}

    fn write(&mut self, _: Time, data: &[u8]) -> Result<(), WriteError> {
        self.output.extend(data);
        Ok(())
    }

    fn close(&mut self, _: Time) {}

    fn poll_transmit(&mut self, _: Time, buffer: &mut Vec<u8>) -> bool {
        let any = !self.output.is_empty();
        buffer.append(&mut self.output);
        any
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn state(&self) -> String {
        "handshaker".into()
    }

    fn peer_certificates(&self) -> Vec<Vec<u8>> {
        vec![b"leaf".to_vec()]
    }

    fn export_keying_material(&self, _: &mut [u8], _: &str, _: Option<&[u8]>) -> Result<(), ExportError> {
        Ok(())
    }
}

/// What an SGSN is made of: partners of any network but those that end with 9, and numbers in turn.
pub struct Environment {
    sessions: Shared,
    admitted: Vec<Network>,
    next: u32,
}

impl Environment {
    /// One that has admitted nobody.
    pub fn new(sessions: Shared) -> Self {
        Self { sessions, admitted: Vec::new(), next: 0 }
    }
}

impl sgsn::Environment for Environment {
    type Endpoint = Handshaker;

    fn accept(&mut self, home: &Network) -> Option<Handshaker> {
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

/// One of each message, as they stand on a stream.
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
        Query::Claim { ptmsi: 7 },
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
