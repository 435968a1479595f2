//! The peer: responds to requests, one at a time (RFC 3748 section 4, RFC 5216 section 2.1, RFC 9190 section 2.1).

use crate::eap::{self, Code, Packet, kind};
use crate::tls::{Message, Reaction, Tunnel, Violation};
use shakedown_trace::endpoint::Time;
use shakedown_trace::suite::Protocol;
use shakedown_trace::{CloseReason, Endpoint};

/// Limit of requests in an authentication: a flight of 64 KiB in fragments of 500 bytes needs 132.
pub const MAX_ROUNDS: u32 = 300;

/// The protected success indication of a TLS 1.3 server (RFC 9190 section 2.1.1).
pub const PROTECTED_SUCCESS: [u8; 1] = [0];

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerFailure {
    #[error("the TLS handshake failed: {0}")]
    Handshake(shakedown_trace::Failure),
    #[error("the server sent EAP-Failure")]
    Rejected,
    #[error("the server sent EAP-Success before the handshake was over")]
    EarlySuccess,
    #[error("the server of TLS 1.3 sent EAP-Success without a protected success indication")]
    UnprotectedSuccess,
    #[error("the server violates EAP-TLS: {0}")]
    Violation(Violation),
    #[error("no end after {MAX_ROUNDS} requests")]
    TooManyRounds,
}

impl PeerFailure {
    /// A short cause without variable parts, for counting.
    pub fn cause(&self) -> String {
        match self {
            Self::Handshake(failure) => match &failure.alert {
                Some(alert) => format!("tls_{alert}"),
                None => "tls".into(),
            },
            Self::Rejected => "rejected".into(),
            Self::EarlySuccess | Self::UnprotectedSuccess => "unproven_success".into(),
            Self::Violation(_) => "protocol".into(),
            Self::TooManyRounds => "too_many_rounds".into(),
        }
    }
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Response(Vec<u8>),
    /// Authenticated; the tunnel has the MSK.
    Success,
    Failure(PeerFailure),
    /// Not for this peer, or not now; discarded silently.
    Ignored,
}

pub struct Peer<E> {
    tunnel: Tunnel<E>,
    identity: Vec<u8>,
    started: bool,
    /// The last request's identifier, type and length, and the response.
    last: Option<(u8, Vec<u8>, Vec<u8>)>,
    rounds: u32,
    over: Option<PeerFailure>,
}

impl<E: Endpoint> Peer<E> {
    /// A peer that sends `identity` in the clear: an anonymous name such as `@example.org` (RFC 7542), because the
    /// certificate contains the real one.
    pub fn new(endpoint: E, identity: impl Into<Vec<u8>>, fragment_bytes: usize) -> Self {
        Self {
            tunnel: Tunnel::new(endpoint, fragment_bytes),
            identity: identity.into(),
            started: false,
            last: None,
            rounds: 0,
            over: None,
        }
    }

    /// The name that the peer sends in the clear.
    pub fn identity(&self) -> &[u8] {
        &self.identity
    }

    pub fn tunnel(&self) -> &Tunnel<E> {
        &self.tunnel
    }

    pub fn into_endpoint(self) -> E {
        self.tunnel.into_endpoint()
    }

    pub fn handle(&mut self, now: Time, bytes: &[u8]) -> Reply {
        let Ok(packet) = Packet::parse(bytes) else { return Reply::Ignored };
        match packet.code {
            Code::Request => self.request(now, &packet, bytes),
            Code::Success => self.success(),
            Code::Failure => Reply::Failure(self.failed()),
            Code::Response => Reply::Ignored,
        }
    }

    fn request(&mut self, now: Time, packet: &Packet<'_>, bytes: &[u8]) -> Reply {
        if let Some((identifier, request, response)) = &self.last
            && *identifier == packet.identifier
        {
            // A repeated request gets the same response; a different request with its identifier is ignored.
            return if request == bytes { Reply::Response(response.clone()) } else { Reply::Ignored };
        }
        if self.rounds == MAX_ROUNDS {
            return Reply::Failure(PeerFailure::TooManyRounds);
        }
        self.rounds += 1;
        let (kind, data) = match packet.kind {
            kind::IDENTITY if !self.started => (kind::IDENTITY, self.identity.clone()),
            kind::NOTIFICATION => (kind::NOTIFICATION, Vec::new()),
            kind::TLS => match self.tls(now, packet.data) {
                Ok(data) => (kind::TLS, data),
                Err(violation) => return self.fail(PeerFailure::Violation(violation)),
            },
            _ if !self.started => (kind::NAK, vec![kind::TLS]),
            _ => return Reply::Ignored,
        };
        let response = eap::packet(Code::Response, packet.identifier, kind, &data);
        self.last = Some((packet.identifier, bytes.to_vec(), response.clone()));
        Reply::Response(response)
    }

    fn tls(&mut self, now: Time, data: &[u8]) -> Result<Vec<u8>, Violation> {
        let message = Message::parse(data)?;
        if !self.started {
            if !message.start {
                return Err(Violation::NoStart);
            }
            self.started = true;
            self.tunnel.work(now)?;
            return Ok(self.tunnel.next_message().to_bytes());
        }
        Ok(match self.tunnel.handle(now, &message)? {
            Reaction::Continue => self.tunnel.next_message(),
            Reaction::Acknowledge => Message::ACKNOWLEDGEMENT,
            Reaction::Acknowledged => return Err(Violation::NothingToAcknowledge),
            Reaction::Handled => {
                let data = self.tunnel.data();
                if !data.is_empty() && data != PROTECTED_SUCCESS {
                    return Err(Violation::ApplicationData { bytes: data.len() });
                }
                self.tunnel.next_message()
            }
        }
        .to_bytes())
    }

    fn success(&mut self) -> Reply {
        // EAP-Success is not protected: it is accepted only if the handshake confirms it.
        let over = self.tunnel.is_sent() && self.tunnel.msk().is_some() && self.tunnel.closed().is_none();
        match self.tunnel.negotiated().filter(|_| over) {
            None => self.fail(PeerFailure::EarlySuccess),
            Some(negotiated)
                if negotiated.protocol == Protocol::Tls13 && self.tunnel.data() != PROTECTED_SUCCESS =>
            {
                self.fail(PeerFailure::UnprotectedSuccess)
            }
            Some(_) => Reply::Success,
        }
    }

    fn fail(&mut self, failure: PeerFailure) -> Reply {
        self.over = Some(failure.clone());
        Reply::Failure(failure)
    }

    /// The cause of a failure that the server reports without a reason.
    fn failed(&self) -> PeerFailure {
        match (&self.over, self.tunnel.closed()) {
            (Some(failure), _) => failure.clone(),
            (None, Some(CloseReason::Failed(failure))) => PeerFailure::Handshake(failure.clone()),
            _ => PeerFailure::Rejected,
        }
    }
}
