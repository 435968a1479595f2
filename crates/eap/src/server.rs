//! The server: sends requests, one at a time (RFC 5216 section 2.1, RFC 9190 section 2.1).

use crate::eap::{self, Code, Packet, kind};
use crate::peer::PROTECTED_SUCCESS;
use crate::tls::{Message, Reaction, Tunnel, Violation};
use shakedown_trace::endpoint::Time;
use shakedown_trace::suite::Protocol;
use shakedown_trace::{CloseReason, Endpoint, Failure};

/// Maximum number of requests in a session: a flight of 64 KiB in fragments of 500 bytes needs 132.
pub const MAX_ROUNDS: u32 = 300;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerFailure {
    #[error("the TLS handshake failed: {0}")]
    Handshake(Failure),
    #[error("the peer ended the TLS connection")]
    Ended,
    #[error("the peer declined EAP-TLS")]
    Nak,
    #[error("the peer answers with EAP type {kind} instead of EAP-TLS")]
    Kind { kind: u8 },
    #[error("the peer violates EAP-TLS: {0}")]
    Violation(#[from] Violation),
    #[error("no end after {MAX_ROUNDS} requests")]
    TooManyRounds,
}

impl ServerFailure {
    /// A short cause without variable parts, for counting.
    pub fn cause(&self) -> String {
        match self {
            Self::Handshake(Failure { alert: Some(alert), .. }) => format!("tls_{alert}"),
            Self::Handshake(_) | Self::Ended => "tls".into(),
            Self::Nak | Self::Kind { .. } => "method".into(),
            Self::Violation(_) => "protocol".into(),
            Self::TooManyRounds => "too_many_rounds".into(),
        }
    }
}

/// The server's reaction to a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    Request(Vec<u8>),
    /// EAP-Success; the tunnel has the MSK.
    Success(Vec<u8>),
    Failure(Vec<u8>, ServerFailure),
    /// Not a response to the pending request; discarded silently.
    Ignored,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Identity,
    Handshake,
    /// The last flight has been sent; the peer's acknowledgement is missing.
    Finished,
    /// An alert has been sent; the session ends with any response.
    Failing(ServerFailure),
    Over,
}

pub struct Server<E> {
    tunnel: Tunnel<E>,
    state: State,
    /// The identifier of the pending request.
    identifier: u8,
    rounds: u32,
    identity: Vec<u8>,
}

impl<E: Endpoint> Server<E> {
    pub fn new(endpoint: E, fragment_bytes: usize) -> Self {
        Self {
            tunnel: Tunnel::new(endpoint, fragment_bytes),
            state: State::Identity,
            identifier: 0,
            rounds: 0,
            identity: Vec::new(),
        }
    }

    pub fn tunnel(&self) -> &Tunnel<E> {
        &self.tunnel
    }

    pub fn into_endpoint(self) -> E {
        self.tunnel.into_endpoint()
    }

    /// Reduces the size of the next fragments.
    pub fn limit_fragments(&mut self, bytes: usize) {
        self.tunnel.limit(bytes);
    }

    /// The response to an empty EAP-Message, with which an access point starts a session (RFC 3579 section 2.1).
    pub fn ask_identity(&mut self) -> Vec<u8> {
        self.identifier = self.identifier.wrapping_add(1);
        eap::packet(Code::Request, self.identifier, kind::IDENTITY, &[])
    }

    pub fn handle(&mut self, now: Time, bytes: &[u8]) -> Output {
        let Ok(packet) = Packet::parse(bytes) else { return Output::Ignored };
        if packet.code != Code::Response {
            return Output::Ignored;
        }
        if self.state == State::Identity {
            return self.identified(&packet);
        }
        if packet.identifier != self.identifier || self.state == State::Over {
            return Output::Ignored;
        }
        if let State::Failing(failure) = &self.state {
            let failure = failure.clone();
            return self.fail(failure);
        }
        match packet.kind {
            kind::TLS => self.tls(now, packet.data).unwrap_or_else(|violation| self.fail(violation.into())),
            kind::NAK => self.fail(ServerFailure::Nak),
            kind => self.fail(ServerFailure::Kind { kind }),
        }
    }

    fn identified(&mut self, packet: &Packet<'_>) -> Output {
        if packet.kind != kind::IDENTITY {
            return Output::Ignored;
        }
        self.identity = packet.data.get(..eap::MAX_IDENTITY_BYTES).unwrap_or(packet.data).to_vec();
        self.identifier = packet.identifier;
        self.state = State::Handshake;
        self.request(&Message::START.to_bytes())
    }

    fn tls(&mut self, now: Time, data: &[u8]) -> Result<Output, Violation> {
        let message = Message::parse(data)?;
        let reaction = self.tunnel.handle(now, &message)?;
        match reaction {
            Reaction::Acknowledge => return Ok(self.request(&Message::ACKNOWLEDGEMENT.to_bytes())),
            Reaction::Continue => return Ok(self.next_fragment()),
            Reaction::Acknowledged if self.state == State::Finished => return Ok(self.succeed()),
            // The peer has no reply to an alert, or to a flight that it does not understand.
            Reaction::Acknowledged => return Err(Violation::NothingToAcknowledge),
            Reaction::Handled => {}
        }
        if !self.tunnel.data().is_empty() {
            return Err(Violation::ApplicationData { bytes: self.tunnel.data().len() });
        }
        if let Some(reason) = self.tunnel.closed() {
            let failure = match reason {
                CloseReason::Failed(failure) => ServerFailure::Handshake(failure.clone()),
                _ => ServerFailure::Ended,
            };
            if self.tunnel.is_sent() {
                return Ok(self.fail(failure));
            }
            self.state = State::Failing(failure);
            return Ok(self.next_fragment());
        }
        let Some(protocol) = self.tunnel.negotiated().map(|negotiated| negotiated.protocol) else {
            return Ok(self.next_fragment());
        };
        self.state = State::Finished;
        if protocol == Protocol::Tls13 {
            // The ticket and the indication are sent in the same message.
            self.tunnel.write(now, &PROTECTED_SUCCESS)?;
        }
        // Resumed sessions up to TLS 1.2 end with the peer's flight.
        Ok(if self.tunnel.is_sent() { self.succeed() } else { self.next_fragment() })
    }

    fn next_fragment(&mut self) -> Output {
        let data = self.tunnel.next_message().to_bytes();
        self.request(&data)
    }

    fn request(&mut self, data: &[u8]) -> Output {
        if self.rounds == MAX_ROUNDS {
            return self.fail(ServerFailure::TooManyRounds);
        }
        self.rounds += 1;
        self.identifier = self.identifier.wrapping_add(1);
        Output::Request(eap::packet(Code::Request, self.identifier, kind::TLS, data))
    }

    fn succeed(&mut self) -> Output {
        self.state = State::Over;
        Output::Success(eap::result(Code::Success, self.identifier))
    }

    fn fail(&mut self, failure: ServerFailure) -> Output {
        self.state = State::Over;
        Output::Failure(eap::result(Code::Failure, self.identifier), failure)
    }
}
