//! Endpoints that exchange flights of given lengths, without cryptography.
#![allow(clippy::unwrap_used, dead_code)]

use shakedown_eap::client::{Authentication, Next};
use shakedown_eap::peer::Peer;
use shakedown_eap::radius::Secret;
use shakedown_eap::service::{Environment, Limits, Service};
use shakedown_trace::endpoint::{Time, Transport};
use shakedown_trace::suite::Protocol;
use shakedown_trace::{CloseReason, Endpoint, Event, ExportError, Failure, Negotiated, Side, WriteError};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

/// Bytes of a handshake's flights, the client's first.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    pub protocol: Protocol,
    pub flights: [usize; 4],
    /// The server fails instead of sending its second flight.
    pub server_fails: bool,
    /// What the server sends instead of its success indication.
    pub says: Option<u8>,
}

impl Script {
    pub fn tls12(flights: [usize; 4]) -> Self {
        Self { protocol: Protocol::Tls12, flights, server_fails: false, says: None }
    }

    /// The server's second flight is a ticket.
    pub fn tls13(flights: [usize; 4]) -> Self {
        Self { protocol: Protocol::Tls13, ..Self::tls12(flights) }
    }
}

pub struct Scripted {
    side: Side,
    script: Script,
    /// Flights sent and received so far.
    turn: usize,
    received: usize,
    output: Vec<u8>,
    events: VecDeque<Event>,
    established: bool,
}

/// A byte of flight `turn`, chosen so that a lost or moved byte is detected.
fn content(turn: usize, place: usize) -> u8 {
    u8::try_from((place * 7 + turn * 31) % 251).unwrap()
}

const TICKET: usize = 3;
const ALERT: [u8; 7] = [21, 3, 3, 0, 2, 2, 48];

impl Scripted {
    pub fn new(side: Side, script: Script) -> Self {
        let mut one = Self {
            side,
            script,
            turn: 0,
            received: 0,
            output: Vec::new(),
            events: VecDeque::new(),
            established: false,
        };
        if side == Side::Client {
            one.send();
        }
        one
    }

    fn last(&self) -> usize {
        if self.script.protocol == Protocol::Tls13 { 2 } else { 3 }
    }

    fn send(&mut self) {
        let turn = self.turn;
        self.output.extend((0..self.script.flights[turn]).map(|place| content(turn, place)));
        self.next();
    }

    fn next(&mut self) {
        let over = self.turn == self.last() || self.turn == 2 && self.script.protocol == Protocol::Tls13;
        self.turn += 1;
        if over && !self.established {
            self.established = true;
            self.events.push_back(Event::Established(Box::new(Negotiated {
                protocol: self.script.protocol,
                key_exchange: None,
                cipher: None,
                cipher_suite: "scripted",
                group: None,
                resumed: false,
                optimized: false,
            })));
        }
    }

    fn fail(&mut self) {
        let failure = Failure {
            side: self.side,
            state: "scripted".into(),
            alert: Some("unknown_ca".into()),
            reason: "told to".into(),
        };
        self.events.push_back(Event::Closed(CloseReason::Failed(failure)));
    }

    fn sends(&self, turn: usize) -> bool {
        turn.is_multiple_of(2) == (self.side == Side::Client)
    }
}

impl Endpoint for Scripted {
    fn side(&self) -> Side {
        self.side
    }

    fn transport(&self) -> Transport {
        Transport::Stream
    }

    fn handle_input(&mut self, _: Time, bytes: &[u8]) {
        if bytes == ALERT {
            return self.fail();
        }
        for byte in bytes {
            if self.turn > self.last() && self.side == Side::Client && self.received == self.ticket_bytes() {
                self.events.push_back(Event::Data(vec![*byte]));
                continue;
            }
            assert!(self.turn < 4 && !self.sends(self.turn), "a flight out of turn");
            assert_eq!(
                *byte,
                content(self.turn, self.received),
                "byte {} of flight {}",
                self.received,
                self.turn
            );
            self.received += 1;
            if self.received == self.script.flights[self.turn] && self.turn < TICKET.max(self.last()) + 1 {
                if self.turn == TICKET && self.script.protocol == Protocol::Tls13 {
                    continue;
                }
                self.received = 0;
                self.next();
                if self.turn < 4 && self.sends(self.turn) {
                    if self.script.server_fails && self.turn == 3 {
                        self.output.extend(ALERT);
                        self.fail();
                    } else {
                        self.send();
                    }
                }
            }
        }
    }

    fn handle_close(&mut self, _: Time) {}

    fn write(&mut self, _: Time, data: &[u8]) -> Result<(), WriteError> {
        assert!(self.established);
        match self.script.says {
            None => self.output.extend(data),
            Some(byte) => self.output.push(byte),
        }
        Ok(())
    }

    fn close(&mut self, _: Time) {}

    fn poll_transmit(&mut self, _: Time, buffer: &mut Vec<u8>) -> bool {
        buffer.append(&mut self.output);
        false
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn state(&self) -> String {
        format!("flight {}", self.turn)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &str,
        context: Option<&[u8]>,
    ) -> Result<(), ExportError> {
        assert!(self.established && output.len() == 128);
        let expected = match self.script.protocol {
            Protocol::Tls13 => ("EXPORTER_EAP_TLS_Key_Material", Some(&[13][..])),
            _ => ("client EAP encryption", None),
        };
        assert_eq!((label, context), expected);
        output.iter_mut().enumerate().for_each(|(place, byte)| *byte = content(9, place));
        Ok(())
    }
}

impl Scripted {
    fn ticket_bytes(&self) -> usize {
        if self.script.protocol == Protocol::Tls13 { self.script.flights[TICKET] } else { 0 }
    }
}

/// An environment with reproducible random numbers.
pub struct ScriptedEnvironment {
    pub script: Script,
    pub counter: u64,
}

impl Environment for ScriptedEnvironment {
    type Endpoint = Scripted;

    fn endpoint(&mut self) -> Option<Scripted> {
        Some(Scripted::new(Side::Server, self.script))
    }

    fn random(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            self.counter = self.counter.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = (self.counter >> 33) as u8;
        }
    }
}

pub const SECRET: &str = "a secret";

/// A client and a service, and the state of their exchange.
pub struct Conversation {
    pub client: Authentication<Scripted>,
    pub service: Service<ScriptedEnvironment>,
    pub from: SocketAddr,
    identifier: u8,
    authenticator: u64,
}

impl Conversation {
    pub fn new(script: Script, peer_fragment: usize, server_fragment: usize) -> Self {
        let peer = Peer::new(Scripted::new(Side::Client, script), "anonymous", peer_fragment);
        let secret = Secret::new(SECRET);
        let client = Authentication::new(peer, Arc::new(secret.clone()), Time::from_secs(5));
        let service = Service::new(
            ScriptedEnvironment { script, counter: 1 },
            secret,
            server_fragment,
            Limits::default(),
        );
        Self { client, service, from: ([127, 0, 0, 1], 4000).into(), identifier: 0, authenticator: 0 }
    }

    /// The client's next request.
    pub fn request(&mut self, now: Time) -> Vec<u8> {
        self.identifier = self.identifier.wrapping_add(1);
        self.authenticator += 1;
        let mut authenticator = [0; 16];
        authenticator[..8].copy_from_slice(&self.authenticator.to_be_bytes());
        self.client.transmit(now, self.identifier, authenticator).unwrap().to_vec()
    }

    /// Runs the authentication to its end without loss.
    pub fn run(&mut self) -> Next {
        loop {
            let request = self.request(Time::ZERO);
            let reply = self.service.handle(Time::ZERO, self.from, &request).expect("an answer");
            match self.client.handle(Time::ZERO, &reply).expect("an answer that is believed") {
                Next::Transmit => {}
                other => return other,
            }
        }
    }
}
