//! What a connection reports to its owner.

use crate::alert::Alert;
use crate::certificate::PeerIdentity;
use crate::crypto::KeyKind;
use crate::error::Error;
use crate::numbers::{CipherSuite, KeyExchangeSuite};
use crate::session::SessionId;

/// How a connection came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HandshakeMode {
    /// With a key exchange of its own.
    Full,
    Resumed,
    /// With a client certificate that the server held beforehand.
    Optimised,
    /// From a shared secret, or from none at all.
    Abbreviated,
}

/// A handshake that both sides have finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Established {
    pub mode: HandshakeMode,
    /// How the master secret came about, in this or the resumed handshake.
    pub key_exchange: KeyExchangeSuite,
    /// The key that the secret was exchanged with, where there was one in this handshake.
    pub exchanged: Option<KeyKind>,
    pub cipher_suite: CipherSuite,
    /// The session; none if it can't be resumed.
    pub session_id: SessionId,
    /// Who the peer is, if it was authenticated, in this or the resumed handshake.
    pub peer: Option<PeerIdentity>,
    /// All handshake messages in order, Finished included: the same bytes on both sides. A hash of
    /// them ties something else to this connection.
    pub transcript: Vec<u8>,
}

/// Why a connection is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CloseReason {
    Local,
    Peer,
    /// The peer sent a critical or fatal alert.
    Alert(Alert),
    /// What the peer sent was not acceptable, and nothing better came in its place.
    Failed(Error),
    /// The peer did not answer.
    TimedOut,
    /// Nothing was received for too long ([`Limits::idle`](crate::Limits::idle)).
    Idle,
    /// Others needed the room ([`Limits`](crate::Limits)).
    Evicted,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The handshake is over; data can be sent.
    Established(Box<Established>),
    Data(Vec<u8>),
    AlertSent(Alert),
    /// The peer sent an alert. One in clear text may be anybody's who saw the peer's records; it ends
    /// nothing by itself.
    AlertReceived(Alert),
    /// A flight of a handshake was not accepted. As anybody could have sent it, the handshake goes on
    /// until its time is up; if nothing better comes, this is why it failed.
    Rejected(Error),
    /// The connection, or the attempt at one, is over. Nothing else follows.
    Closed(CloseReason),
}
