//! A mobile's end of an attach.

use crate::frame::Frames;
use crate::message::{Cause, Message, Plane};
use crate::names::{Imsi, Network, Temporary};
use crate::tunnel::Tunnel;
use sha2::{Digest, Sha256};
use shakedown_trace::endpoint::Time;
use shakedown_trace::{Endpoint, Negotiated};
use std::collections::VecDeque;

/// Subscriber data of a mobile that attaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// Sent under protection only.
    pub imsi: Imsi,
    /// Sent in the clear, so that the network knows whose cross-certificate to present.
    pub home: Network,
    /// From the last attach, if there was one.
    pub temporary: Option<Temporary>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttachFailure {
    #[error("the network rejected the attach: {0}")]
    Rejected(Cause),
    #[error("{0}")]
    Handshake(String),
    #[error("the network sent {0}")]
    Protocol(&'static str),
    #[error("the stack exports no keys, or the handshake left none")]
    NoKeys,
    #[error("the connection ended before the attach was complete")]
    Ended,
    #[error("the network did not respond in time")]
    NoAnswer,
}

impl AttachFailure {
    /// Short fixed text of the cause, for counting.
    pub fn cause(&self) -> &'static str {
        match self {
            Self::Rejected(cause) => cause.as_str(),
            Self::Handshake(_) => Cause::Handshake.as_str(),
            Self::Protocol(_) => Cause::Protocol.as_str(),
            Self::NoKeys => "keys",
            Self::Ended => "ended",
            Self::NoAnswer => "no_answer",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MobileEvent {
    Established {
        resumed: bool,
    },
    /// The network has accepted the unaltered request of this mobile; the temporary identity is for the next attach.
    Attached(Temporary),
    Data(Vec<u8>),
    /// The attach has failed. No event follows.
    Failed(AttachFailure),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Handshake,
    Accept,
    Attached,
    Over,
}

pub struct Mobile<E> {
    subscription: Subscription,
    tunnel: Tunnel<E>,
    frames: Frames,
    request: [u8; 32],
    phase: Phase,
    out: Vec<u8>,
    events: VecDeque<MobileEvent>,
}

impl<E: Endpoint> Mobile<E> {
    /// A mobile that has not sent anything yet, with an unused client endpoint.
    pub fn new(endpoint: E, subscription: Subscription) -> Self {
        Self {
            subscription,
            tunnel: Tunnel::new(endpoint),
            frames: Frames::default(),
            request: [0; 32],
            phase: Phase::Idle,
            out: Vec::new(),
            events: VecDeque::new(),
        }
    }

    pub fn endpoint(&self) -> &E {
        &self.tunnel.endpoint
    }

    pub fn negotiated(&self) -> Option<&Negotiated> {
        self.tunnel.negotiated.as_deref()
    }

    /// Number of handshake steps: flights sent, and one more if the peer's flight ended the handshake.
    pub fn steps(&self) -> u32 {
        self.tunnel.steps
    }

    /// TLS bytes of the handshake, sent and received.
    pub fn handshake_bytes(&self) -> [u64; 2] {
        self.tunnel.bytes
    }

    /// Appends output: first the attach request, followed by the ClientHello.
    pub fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> bool {
        if self.phase == Phase::Idle {
            self.phase = Phase::Handshake;
            let Subscription { home, temporary, .. } = self.subscription.clone();
            Message::AttachRequest { home, temporary }.put(&mut self.out);
            self.request = Sha256::digest(&self.out).into();
            self.tunnel.work(now, &mut self.out);
        }
        let any = !self.out.is_empty();
        buffer.append(&mut self.out);
        any
    }

    pub fn poll_event(&mut self) -> Option<MobileEvent> {
        self.events.pop_front()
    }

    pub fn handle_input(&mut self, now: Time, bytes: &[u8]) {
        self.frames.push(bytes);
        while self.phase != Phase::Over
            && let Some((kind, body)) = self.frames.next_frame()
        {
            match Message::read(kind, body) {
                Ok(message) => self.handle(now, message),
                Err(_) => self.fail(AttachFailure::Protocol("data that is not a message")),
            }
        }
    }

    pub fn handle_close(&mut self) {
        if self.phase != Phase::Over {
            self.fail(AttachFailure::Ended);
        }
    }

    /// Sends user data under the derived keys. False if the mobile has not attached, or for more than
    /// [`MAX_DATA_BYTES`](crate::message::MAX_DATA_BYTES).
    pub fn send(&mut self, data: &[u8]) -> bool {
        self.phase == Phase::Attached && self.protect(Plane::User, data)
    }

    fn protect(&mut self, plane: Plane, data: &[u8]) -> bool {
        let sealed = self.tunnel.channel.as_mut().and_then(|channel| channel.seal(plane, data).ok());
        let Some(sealed) = sealed else { return false };
        Message::Protected { plane, sealed }.put(&mut self.out);
        true
    }

    fn fail(&mut self, failure: AttachFailure) {
        self.phase = Phase::Over;
        self.events.push_back(MobileEvent::Failed(failure));
    }

    fn handle(&mut self, now: Time, message: Message) {
        match (self.phase, message) {
            (Phase::Handshake | Phase::Accept | Phase::Attached, Message::Tls(bytes)) => {
                self.tunnel.handle(now, &bytes, &mut self.out);
                self.process_tunnel(now);
            }
            // A plaintext reject is accepted only while the network is not authenticated.
            (Phase::Handshake, Message::Reject(cause)) => self.fail(AttachFailure::Rejected(cause)),
            (Phase::Attached, Message::Protected { plane: Plane::User, sealed }) => {
                let opened =
                    self.tunnel.channel.as_mut().and_then(|channel| channel.open(Plane::User, &sealed).ok());
                match opened {
                    Some(data) => self.events.push_back(MobileEvent::Data(data)),
                    None => self.fail(AttachFailure::Protocol("data that the derived keys do not decrypt")),
                }
            }
            _ => self.fail(AttachFailure::Protocol("an unexpected message")),
        }
    }

    fn process_tunnel(&mut self, now: Time) {
        if self.phase == Phase::Handshake
            && let Some(resumed) = self.negotiated().map(|negotiated| negotiated.resumed)
        {
            if self.tunnel.channel.is_none() {
                return self.fail(AttachFailure::NoKeys);
            }
            self.events.push_back(MobileEvent::Established { resumed });
            self.phase = Phase::Accept;
            if !resumed {
                // Not earlier: only now is the network authenticated.
                let identity = Message::Identity(self.subscription.imsi.clone());
                self.tunnel.send(now, &identity, &mut self.out);
            }
            // The network accepts the attach only if the request arrived unaltered.
            let request = self.request;
            self.protect(Plane::Signalling, &request);
        }
        while let Some((kind, body)) = self.tunnel.inner.next_frame() {
            match Message::read(kind, body) {
                Ok(Message::AttachAccept(temporary)) if self.phase == Phase::Accept => {
                    self.phase = Phase::Attached;
                    self.events.push_back(MobileEvent::Attached(temporary));
                }
                Ok(Message::Reject(cause)) if self.phase == Phase::Accept => {
                    return self.fail(AttachFailure::Rejected(cause));
                }
                _ => return self.fail(AttachFailure::Protocol("an unexpected message inside TLS")),
            }
        }
        if self.tunnel.closed.is_some() && self.phase != Phase::Over {
            let failure = match self.phase {
                // The network has closed the connection after the attach.
                Phase::Attached => AttachFailure::Ended,
                _ => AttachFailure::Handshake(self.tunnel.failure()),
            };
            self.fail(failure);
        }
    }
}
