//! The sans-IO face of a protocol stack.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Which end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The end that speaks first.
    Client,
    /// The end that answers.
    Server,
}

impl Side {
    /// The other end.
    #[must_use]
    pub fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// The word used in files and on screen.
    #[must_use]
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

/// What the endpoint's bytes travel on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// An ordered, reliable stream of bytes; chunk boundaries mean nothing.
    Stream,
    /// Datagrams, which may be lost, doubled and reordered; each unit is one.
    Datagram,
}

/// Why a handshake ended without a connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{side} failed in state {state}{}: {reason}", alert_text(.alert))]
pub struct Failure {
    /// The side that noticed.
    pub side: Side,
    /// The state it was in, in the stack's own words.
    pub state: String,
    /// The alert that it sent or received, by its RFC name.
    pub alert: Option<String>,
    /// What went wrong, in one line.
    pub reason: String,
}

fn alert_text(alert: &Option<String>) -> String {
    alert.as_ref().map(|name| format!(" (alert {name})")).unwrap_or_default()
}

/// One end of one connection: takes bytes and a time, gives bytes and its next deadline.
///
/// The contract, in the order in which a driver uses it:
///
/// 1. [`start`](Self::start) once; the client's first flight is then waiting to be transmitted.
/// 2. [`transmit`](Self::transmit) until it says there is nothing more.
/// 3. [`receive`](Self::receive) for each unit that arrives, then transmit again.
/// 4. [`timeout`](Self::timeout) when [`deadline`](Self::deadline) has come.
///
/// After a [`Failure`] the endpoint may still have an alert to transmit; nothing else is asked of it.
/// No implementation opens a socket, reads a clock or sleeps; times passed in never go backwards.
pub trait Endpoint {
    /// Which end this is.
    fn side(&self) -> Side;

    /// What its bytes travel on.
    fn transport(&self) -> Transport;

    /// Begins: a client builds its first flight, a server gets ready.
    ///
    /// # Errors
    /// The [`Failure`] that ended the handshake.
    fn start(&mut self, now: Time) -> Result<(), Failure>;

    /// Hands over what arrived: a chunk of the stream, or one datagram.
    ///
    /// # Errors
    /// The [`Failure`] that ended the handshake.
    fn receive(&mut self, now: Time, bytes: &[u8]) -> Result<(), Failure>;

    /// Appends the next unit to send to `buffer` (all pending bytes of a stream, or one datagram).
    /// False: nothing to send, and the buffer is as it was.
    fn transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> bool;

    /// When [`timeout`](Self::timeout) wants to be called, if ever.
    fn deadline(&self) -> Option<Time> {
        None
    }

    /// The deadline has come: retransmit, or give up.
    ///
    /// # Errors
    /// The [`Failure`] that ended the handshake.
    fn timeout(&mut self, now: Time) -> Result<(), Failure> {
        let _ = now;
        Ok(())
    }

    /// True once this side may send application data.
    fn is_established(&self) -> bool;

    /// True where the handshake resumed an earlier session.
    fn is_resumed(&self) -> bool;

    /// The state it is in, in the stack's own words; for error messages.
    fn state(&self) -> String;

    /// Queues application data.
    ///
    /// # Errors
    /// The [`Failure`] that ended the connection.
    fn send(&mut self, now: Time, data: &[u8]) -> Result<(), Failure>;

    /// Appends application data that has arrived to `buffer`; false where there is none.
    ///
    /// # Errors
    /// The [`Failure`] that ended the connection.
    fn take_received(&mut self, now: Time, buffer: &mut Vec<u8>) -> Result<bool, Failure>;
}
