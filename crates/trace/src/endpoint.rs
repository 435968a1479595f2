//! The sans-IO face of a protocol stack.

use crate::suite::{Cipher, Group, KeyExchange, Protocol, Suite};
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Which end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The end that speaks first.
    Client,
    Server,
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

    /// The word used in files and on screen.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// Time of a driver: since an epoch of its own, virtual or real. It never goes backwards.
pub type Time = std::time::Duration;

/// What carries the endpoint's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// An ordered, reliable stream of bytes; chunk boundaries mean nothing.
    Stream,
    /// Datagrams, which may be lost, doubled and reordered; each unit is one.
    Datagram,
}

/// The largest datagram that an endpoint makes unless it is told another size: what an Ethernet frame carries of UDP
/// over IPv6.
pub const DEFAULT_LARGEST_DATAGRAM_BYTES: usize = 1500 - 40 - 8;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{side} failed in state {state}{}: {reason}", alert_text(.alert))]
pub struct Failure {
    pub side: Side,
    pub state: String,
    /// The alert that it sent or received, by its RFC name.
    pub alert: Option<String>,
    /// What went wrong, in one line.
    pub reason: String,
}

fn alert_text(alert: &Option<String>) -> String {
    alert.as_ref().map(|name| format!(" (alert {name})")).unwrap_or_default()
}

/// Why a connection is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseReason {
    Local,
    Peer,
    /// The transport ended without a word from the peer.
    Truncated,
    /// Something went wrong; the peer has been told where the protocol has an alert for it.
    Failed(Failure),
}

/// What a finished handshake came to, as the stack itself reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Negotiated {
    pub protocol: Protocol,
    /// How the secret was agreed on; `None` where the stack cannot tell.
    pub key_exchange: Option<KeyExchange>,
    /// How records are protected; `None` where suite names have no word for it.
    pub cipher: Option<Cipher>,
    pub cipher_suite: &'static str,
    /// The group of the exchange; `None` where there was none or the stack does not tell.
    pub group: Option<Group>,
    /// An earlier session was resumed. A pre-shared key that was not negotiated before is no session.
    pub resumed: bool,
    /// The server used a client certificate that it held beforehand (WTLS).
    pub optimized: bool,
}

impl Negotiated {
    /// What differs from the suite that was asked for, in one line; `None` where this is that suite.
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

/// Something that happened to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is over; application data can be sent. At most once.
    Established(Box<Negotiated>),
    Data(Vec<u8>),
    /// A datagram was refused before anything authenticated its sender. Over a network the handshake goes on, as anyone
    /// may have sent it; what ends a handshake is [`Event::Closed`].
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

/// What a later connection of the same stack can resume. Opaque to everybody else.
#[derive(Clone)]
pub struct Session(Arc<dyn Any + Send + Sync>);

impl Session {
    /// Wraps a stack's own session.
    pub fn new(session: impl Any + Send + Sync) -> Self {
        Self(Arc::new(session))
    }

    /// The stack's own session; `None` where another stack made it.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Session")
    }
}

/// One end of one connection: bytes and times go in, bytes, events and the next deadline come out.
///
/// Whatever happens outside goes in by [`handle_input`](Self::handle_input),
/// [`handle_timeout`](Self::handle_timeout), [`handle_close`](Self::handle_close), [`write`](Self::write) and
/// [`close`](Self::close). After any of them, and once at the beginning, the driver takes all that there is:
///
/// 1. [`poll_transmit`](Self::poll_transmit) until it says that there is nothing more. A client's first call builds
///    its first flight;
/// 2. [`poll_event`](Self::poll_event) until it is empty: `Established` once, `Data` after it, `Closed` last;
/// 3. [`poll_timeout`](Self::poll_timeout): when to call `handle_timeout` if nothing else happens first.
///
/// After `Closed` the endpoint may still have an alert to transmit; nothing else is asked of it. An endpoint opens no
/// socket, reads no clock for the protocol and does not sleep. Times passed in never go backwards. The largest datagram
/// is reported by the endpoint's constructor.
pub trait Endpoint: Send {
    fn side(&self) -> Side;

    /// What carries its bytes.
    fn transport(&self) -> Transport;

    /// Takes what arrived: a chunk of the stream, or one datagram.
    fn handle_input(&mut self, now: Time, bytes: &[u8]);

    /// The time of [`poll_timeout`](Self::poll_timeout) has come: sends again, or gives up. Too early does no harm.
    fn handle_timeout(&mut self, now: Time) {
        let _ = now;
    }

    /// The transport has ended: nothing more will arrive, and nothing can be sent.
    fn handle_close(&mut self, now: Time);

    /// Takes application data; over datagrams each call makes one.
    ///
    /// # Errors
    /// [`WriteError`]; nothing has been taken then.
    fn write(&mut self, now: Time, data: &[u8]) -> Result<(), WriteError>;

    /// Tells the peer that this is the end.
    fn close(&mut self, now: Time);

    /// Appends the next unit to send to `buffer`: all pending bytes of a stream, or one datagram.
    /// False: there is nothing to send, and the buffer is as it was.
    fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> bool;

    /// When [`handle_timeout`](Self::handle_timeout) is to be called, if ever.
    fn poll_timeout(&self) -> Option<Time> {
        None
    }

    /// The next thing that happened.
    fn poll_event(&mut self) -> Option<Event>;

    /// The state it is in, in the stack's own words; for error messages.
    fn state(&self) -> String;

    /// The session that a later connection can resume, as far as this one has made one.
    fn session(&self) -> Option<Session> {
        None
    }

    /// The chain that the peer presented as DER, leaf first; empty where it presented none, or in another form.
    fn peer_certificates(&self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    /// Fills `output` with a secret that only the two ends of this connection can derive (RFC 5705, RFC 8446
    /// section 7.5). Up to TLS 1.2 no context is another one than an empty context.
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
