//! The events of a connection.

use crate::alert::Alert;
use crate::certificate::PeerIdentity;
use crate::crypto::KeyKind;
use crate::error::Error;
use crate::numbers::{CipherSuite, KeyExchangeSuite};
use crate::session::SessionId;

/// The kind of handshake that established a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HandshakeMode {
    /// With a key exchange.
    Full,
    Resumed,
    /// With a client certificate that the server has stored.
    Optimised,
    /// With a shared secret, or with the suite NULL.
    Abbreviated,
}

/// A handshake that both sides have finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Established {
    pub mode: HandshakeMode,
    /// The key exchange that created the master secret, in this or the resumed handshake.
    pub key_exchange: KeyExchangeSuite,
    /// The server's key in the key exchange; `None` if there was no exchange in this handshake.
    pub exchanged: Option<KeyKind>,
    pub cipher_suite: CipherSuite,
    /// The session identifier; empty if the session cannot be resumed.
    pub session_id: SessionId,
    /// The identity of the peer, if it was authenticated, in this or the resumed handshake.
    pub peer: Option<PeerIdentity>,
    /// All handshake messages in order, Finished included: the same bytes on both sides. Their hash can bind
    /// other data to this connection.
    pub transcript: Vec<u8>,
}

/// Why a connection is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CloseReason {
    Local,
    Peer,
    /// The peer sent a critical or fatal alert.
    Alert(Alert),
    /// A message was rejected and, in a handshake, no valid one arrived in time.
    Failed(Error),
    /// The peer did not respond in time.
    TimedOut,
    /// Nothing was received for too long ([`Limits::idle`](crate::Limits::idle)).
    Idle,
    /// The connection was dropped in favour of others ([`Limits`](crate::Limits)).
    Evicted,
}

/// An event of a connection or handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The handshake is over; data can be sent.
    Established(Box<Established>),
    Data(Vec<u8>),
    AlertSent(Alert),
    /// The peer sent an alert. Any observer of the connection can forge an unencrypted alert, so it ends neither
    /// handshake nor connection.
    AlertReceived(Alert),
    /// A flight of a handshake was rejected. It may be forged, so the handshake continues until its timeout. If the
    /// handshake then fails, this error is the reason.
    Rejected(Error),
    /// The connection or the handshake has ended. It has no further events.
    Closed(CloseReason),
}
