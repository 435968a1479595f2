//! The sans-IO interface of a protocol stack.

use crate::spelled;
pub use crate::suite::Transport;
use crate::suite::{Cipher, Group, KeyExchange, Protocol, Suite};
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::sync::Arc;

spelled! {
    /// An end of a connection.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Side {
        /// The end that sends first.
        Client = "client",
        Server = "server",
    }
}

impl Side {
    /// Both, the client first.
    pub const BOTH: [Self; 2] = [Self::Client, Self::Server];

    #[must_use]
    pub fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// Time since the driver's epoch, virtual or real. It never decreases.
pub type Time = std::time::Duration;

/// Default size of the largest datagram that an endpoint sends: the payload of UDP over IPv6 in an Ethernet frame.
pub const DEFAULT_LARGEST_DATAGRAM_BYTES: usize = 1500 - 40 - 8;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{side} failed in state {state}{}: {reason}", alert_text(.alert))]
pub struct Failure {
    pub side: Side,
    pub state: String,
    /// The alert that this side sent or received, by its RFC name.
    pub alert: Option<String>,
    /// What went wrong, in one line.
    pub reason: String,
}

fn alert_text(alert: &Option<String>) -> String {
    alert.as_ref().map(|name| format!(" (alert {name})")).unwrap_or_default()
}

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseReason {
    Local,
    Peer,
    /// The transport ended before the peer closed the connection.
    Truncated,
    /// The connection failed. If the protocol has an alert for the failure, it was sent to the peer.
    Failed(Failure),
}

/// The result of a completed handshake, as the stack reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Negotiated {
    pub protocol: Protocol,
    /// `None` if the stack does not report it.
    pub key_exchange: Option<KeyExchange>,
    /// `None` if suite names have no word for the cipher.
    pub cipher: Option<Cipher>,
    pub cipher_suite: &'static str,
    /// `None` if the exchange has no group or the stack does not report it.
    pub group: Option<Group>,
    /// An earlier session was resumed. An external pre-shared key is not a session.
    pub resumed: bool,
    /// The server used a client certificate that it held beforehand (WTLS).
    pub optimized: bool,
}

impl Negotiated {
    /// The first difference from the requested suite, in one line; `None` if there is none.
    pub fn difference(&self, suite: &Suite) -> Option<String> {
        use crate::suite::Mode;
        let asked = |wanted: &str, got: &str| Some(format!("asked for {wanted}, got {got}"));
        if self.protocol != suite.protocol {
            return asked(suite.protocol.as_str(), self.protocol.as_str());
        }
        if self.cipher != Some(suite.cipher) {
            return asked(suite.cipher.name(), self.cipher_suite);
        }
        if let Some(key_exchange) = self.key_exchange
            && key_exchange != suite.key_exchange
        {
            return asked(suite.key_exchange.as_str(), key_exchange.as_str());
        }
        if self.resumed != suite.is_resumption() {
            return Some(format!("the session was {}resumed", if self.resumed { "" } else { "not " }));
        }
        if self.optimized != (suite.mode == Mode::Optimized) {
            return asked(suite.mode.as_str(), if self.optimized { "optimized" } else { "full" });
        }
        let name = |group: Group| group.name(suite.protocol);
        match (self.group, suite.group) {
            (Some(got), Some(wanted)) if got != wanted => asked(name(wanted), name(got)),
            _ => None,
        }
    }
}

/// An event of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is over; application data can be sent. At most once.
    Established(Box<Negotiated>),
    Data(Vec<u8>),
    /// A datagram from an unauthenticated sender was rejected. Over a network the handshake continues, because anyone
    /// may have sent the datagram. Only [`Event::Closed`] ends a handshake.
    Rejected(Failure),
    /// The connection is over. Nothing else follows.
    Closed(CloseReason),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    #[error("the {side} cannot send data before its handshake is over")]
    NotEstablished { side: Side },
    #[error("the {side} cannot send data: its connection is over")]
    Closed { side: Side },
    #[error("{bytes} bytes are more than a datagram carries; accepted: up to {largest}")]
    TooLong { bytes: usize, largest: usize },
    #[error("the {side} could not protect data: {reason}")]
    Refused { side: Side, reason: String },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    #[error("the {side} cannot export keying material before its handshake is over")]
    NotEstablished { side: Side },
    #[error("the stack of the {side} exports no keying material")]
    Unsupported { side: Side },
    #[error("the {side} could not export keying material: {reason}")]
    Refused { side: Side, reason: String },
}

/// A session that a later connection of the same stack can resume. Opaque to all other code.
#[derive(Clone, Debug)]
pub struct Session(Arc<dyn Any + Send + Sync>);

impl Session {
    /// Wraps a stack's own session.
    pub fn new(session: impl Any + Send + Sync) -> Self {
        Self(Arc::new(session))
    }

    /// The stack's own session; `None` if it belongs to another stack.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

/// One end of one connection: its inputs are bytes and times; its outputs are bytes, events and the next deadline.
///
/// The driver calls [`handle_input`](Self::handle_input), [`handle_timeout`](Self::handle_timeout),
/// [`handle_close`](Self::handle_close), [`write`](Self::write) and [`close`](Self::close). After each call, and once
/// at the beginning, it collects all output:
///
/// 1. [`poll_transmit`](Self::poll_transmit) until it returns false. A client's first call builds its first flight;
/// 2. [`poll_event`](Self::poll_event) until it is empty: `Established` once, `Data` after it, `Closed` last;
/// 3. [`poll_timeout`](Self::poll_timeout): when to call `handle_timeout` if nothing else happens first.
///
/// After `Closed` the endpoint may still have an alert to transmit; the driver calls nothing else. An endpoint opens no
/// socket, reads no clock for the protocol and does not sleep. The times that the driver passes never decrease. The
/// size of the largest datagram is an argument of the endpoint's constructor.
pub trait Endpoint: Send {
    fn side(&self) -> Side;

    /// The transport of its bytes.
    fn transport(&self) -> Transport;

    /// Processes received bytes: a chunk of the stream, or one datagram.
    fn handle_input(&mut self, now: Time, bytes: &[u8]);

    /// The time of [`poll_timeout`](Self::poll_timeout) has come: the endpoint retransmits, or fails. A call before
    /// this time has no effect.
    fn handle_timeout(&mut self, now: Time) {
        let _ = now;
    }

    /// The transport has ended: nothing more will arrive, and nothing can be sent.
    fn handle_close(&mut self, now: Time);

    /// Queues application data; over datagrams each call queues one datagram.
    ///
    /// # Errors
    /// [`WriteError`]; then no data was queued.
    fn write(&mut self, now: Time, data: &[u8]) -> Result<(), WriteError>;

    /// Closes the connection and notifies the peer.
    fn close(&mut self, now: Time);

    /// Appends the next unit to send to `buffer`: all pending bytes of a stream, or one datagram.
    /// Returns false if there is nothing to send; the buffer is then unchanged.
    fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> bool;

    /// The time at which to call [`handle_timeout`](Self::handle_timeout); `None`: never.
    fn poll_timeout(&self) -> Option<Time> {
        None
    }

    /// The next event.
    fn poll_event(&mut self) -> Option<Event>;

    /// The stack's name of the current state; for error messages.
    fn state(&self) -> String;

    /// The session that a later connection can resume, if this connection has established one.
    fn session(&self) -> Option<Session> {
        None
    }

    /// The peer's X.509 chain as DER, leaf first; empty if the peer presented none, or certificates of another form.
    fn peer_certificates(&self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    /// Fills `output` with a secret that only the two ends of this connection can derive (RFC 5705, RFC 8446
    /// section 7.5). Up to TLS 1.2, a missing context and an empty one give different secrets.
    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &str,
        context: Option<&[u8]>,
    ) -> Result<(), ExportError> {
        let _ = (output, label, context);
        Err(ExportError::Unsupported { side: self.side() })
    }
}
