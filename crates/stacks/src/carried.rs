//! Handshakes inside EAP-TLS, in memory: flights in acknowledged fragments between a peer and a server, without RADIUS.

use crate::stack::{SetupError, Unsupported};
use serde::Serialize;
use shakedown_eap::peer::{Peer, PeerFailure, Reply};
use shakedown_eap::server::{Output, Server};
use shakedown_trace::endpoint::{Time, Transport};
use shakedown_trace::suite::Protocol;
use shakedown_trace::{CloseReason, Endpoint, Event, Negotiated, Suite, Wrapper};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Exchanged {
    /// Maximum number of TLS bytes in a fragment, for both sides.
    pub fragment_bytes: usize,
    /// Number of the peer's responses, including the identity. Over RADIUS each response needs one Access-Request.
    pub round_trips: u32,
    /// EAP packets with TLS bytes, both directions.
    pub fragments: u32,
    /// Bytes of all EAP packets, both directions.
    pub eap_bytes: u64,
}

/// A handshake inside EAP.
pub struct Carried<E> {
    /// The peer's TLS end.
    pub client: E,
    pub server: E,
    /// The negotiated parameters that each side reports.
    pub negotiated: [Box<Negotiated>; 2],
    pub exchanged: Exchanged,
    /// TLS bytes of the handshake, both directions.
    pub handshake_bytes: u64,
}

/// Whether EAP-TLS carries a suite.
pub fn check(suite: &Suite) -> Result<(), SetupError> {
    let refuse = |reason: &str| Unsupported { suite: suite.to_string(), reason: reason.to_owned() }.into();
    if suite.protocol < Protocol::Tls10 || suite.transport() != Transport::Stream {
        return Err(refuse("EAP-TLS carries TLS 1.0 to 1.3"));
    }
    if suite.has_certificates() { Ok(()) } else { Err(refuse("EAP-TLS authenticates by certificates")) }
}

/// An endpoint that counts the bytes of its handshake.
struct Counted<E> {
    inner: E,
    sent: u64,
    established: bool,
}

impl<E: Endpoint> Wrapper for Counted<E> {
    type Inner = E;

    fn inner(&self) -> &E {
        &self.inner
    }

    fn inner_mut(&mut self) -> &mut E {
        &mut self.inner
    }

    fn take_event(&mut self) -> Option<Event> {
        let event = self.inner.poll_event();
        self.established |= matches!(event, Some(Event::Established(_)));
        event
    }

    fn unit_leaves(&mut self, unit: &[u8]) {
        if !self.established {
            self.sent += unit.len() as u64;
        }
    }
}

/// The identity that the peer sends unencrypted; it has the same length as that of `eap peer`.
const IDENTITY: &str = "anonymous@shakedown.test";

/// Runs one handshake inside EAP, from the identity to EAP-Success, until both ends have the same keys.
pub fn handshake<E: Endpoint>(client: E, server: E, fragment_bytes: usize) -> Result<Carried<E>, String> {
    let counted = |inner| Counted { inner, sent: 0, established: false };
    let mut peer = Peer::new(counted(client), IDENTITY, fragment_bytes);
    let mut authenticator = Server::new(counted(server), fragment_bytes);
    let now = Time::ZERO;
    let mut exchanged = Exchanged { fragment_bytes, round_trips: 0, fragments: 0, eap_bytes: 0 };
    // An access point asks for the identity itself: the first packet to the server is the response.
    let mut request = authenticator.ask_identity();
    loop {
        match peer.handle(now, &request) {
            Reply::Response(response) => {
                exchanged.round_trips += 1;
                exchanged.eap_bytes += response.len() as u64;
                match authenticator.handle(now, &response) {
                    Output::Request(next) | Output::Success(next) => {
                        exchanged.eap_bytes += next.len() as u64;
                        request = next;
                    }
                    Output::Failure(_, reason) => return Err(reason.to_string()),
                    Output::Ignored => return Err("the server ignored a response".into()),
                }
            }
            Reply::Success => break,
            Reply::Failure(PeerFailure::Rejected) => return Err("the server rejected the peer".into()),
            Reply::Failure(failure) => return Err(failure.to_string()),
            Reply::Ignored => return Err("the peer ignored a request".into()),
        }
    }
    exchanged.fragments = peer.tunnel().fragments();
    if peer.tunnel().msk() != authenticator.tunnel().msk() {
        return Err("the two ends derived different keys".into());
    }
    if let Some(CloseReason::Failed(failure)) = peer.tunnel().closed().or(authenticator.tunnel().closed()) {
        return Err(failure.to_string());
    }
    let (Some(one), Some(other)) =
        (peer.tunnel().negotiated().cloned(), authenticator.tunnel().negotiated().cloned())
    else {
        return Err("EAP-Success came before the handshake was over".into());
    };
    let (client, server) = (peer.into_endpoint(), authenticator.into_endpoint());
    Ok(Carried {
        handshake_bytes: client.sent + server.sent,
        client: client.inner,
        server: server.inner,
        negotiated: [Box::new(one), Box::new(other)],
        exchanged,
    })
}
