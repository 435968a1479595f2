//! An access point with one supplicant: an authentication over RADIUS (RFC 3579 section 2).

use crate::eap::{self, Code, kind};
use crate::keys::Msk;
use crate::peer::{Peer, PeerFailure, Reply};
use crate::radius::{
    Authenticator, AuthenticatorError, BuildError, Builder, MAX_VALUE_BYTES, MppeError, Packet, PacketError,
    Secret, attribute, code, take_msk,
};
use shakedown_trace::Endpoint;
use shakedown_trace::endpoint::Time;
use std::sync::Arc;

/// The MTU that the access point announces; it limits the length of the server's fragments.
pub const FRAMED_MTU: u32 = 1400;

/// First retransmission timeout; it doubles with each transmission (RFC 5080 section 2.2.1).
pub const FIRST_WAIT: Time = Time::from_secs(1);

/// Service-Type Framed, NAS-Port-Type Wireless-802.11.
const FRAMED: [u8; 4] = 2_u32.to_be_bytes();
const WIRELESS: [u8; 4] = 19_u32.to_be_bytes();

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientFailure {
    #[error(transparent)]
    Peer(#[from] PeerFailure),
    #[error("no response to a request that was sent {}", times(*transmissions))]
    NoAnswer { transmissions: u32 },
    #[error("only invalid responses; the last one: {reason}")]
    InvalidResponses { reason: AuthenticatorError },
    #[error("the server answered Access-Accept with other keys than the peer's")]
    Keys,
    #[error("the server answered Access-Accept, but {0}")]
    Mppe(#[from] MppeError),
    #[error("the server rejected the request without EAP")]
    RejectedWithoutEap,
    #[error("the server answered {code} without EAP-Message, or with the wrong one")]
    WrongEap { code: u8 },
    #[error(transparent)]
    Build(#[from] BuildError),
}

fn times(count: u32) -> String {
    match count {
        1 => "once".into(),
        2 => "twice".into(),
        count => format!("{count} times"),
    }
}

impl ClientFailure {
    /// A short cause without variable parts, for counting.
    pub fn cause(&self) -> String {
        match self {
            Self::Peer(failure) => failure.cause(),
            Self::NoAnswer { .. } => "no_answer".into(),
            Self::InvalidResponses { .. } => "bad_authenticator".into(),
            Self::Keys | Self::Mppe(_) => "keys".into(),
            Self::RejectedWithoutEap => "rejected".into(),
            Self::WrongEap { .. } => "protocol".into(),
            Self::Build(_) => "too_large".into(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Discarded {
    #[error(transparent)]
    Packet(#[from] PacketError),
    #[error(transparent)]
    Authenticator(#[from] AuthenticatorError),
    #[error("an unexpected response")]
    Unexpected,
}

/// The caller's next step in an authentication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// [`Authentication::transmit`] the response to the last challenge.
    Transmit,
    /// Both sides have the same keys.
    Success,
    Failure(ClientFailure),
}

/// Transferred packets and bytes, without retransmissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchanged {
    /// Access-Requests with a response.
    pub round_trips: u32,
    /// EAP packets, both directions.
    pub eap_bytes: u64,
    /// RADIUS packets, both directions.
    pub radius_bytes: u64,
}

pub struct Authentication<E> {
    peer: Peer<E>,
    secret: Arc<Secret>,
    state: Option<Vec<u8>>,
    /// The EAP packet for the next request.
    eap: Vec<u8>,
    waiting: Option<Waiting>,
    limit: Time,
    exchanged: Exchanged,
}

/// A request without a response so far.
struct Waiting {
    identifier: u8,
    authenticator: Authenticator,
    packet: Vec<u8>,
    transmissions: u32,
    wait: Time,
    deadline: Time,
    give_up: Time,
    authenticator_error: Option<AuthenticatorError>,
}

impl<E: Endpoint> Authentication<E> {
    /// A new authentication, which fails if a request has no response for `limit`.
    pub fn new(peer: Peer<E>, secret: Arc<Secret>, limit: Time) -> Self {
        let eap = eap::packet(Code::Response, 1, kind::IDENTITY, peer.identity());
        Self { peer, secret, state: None, eap, waiting: None, limit, exchanged: Exchanged::default() }
    }

    pub fn peer(&self) -> &Peer<E> {
        &self.peer
    }

    /// The derived key; available after [`Next::Success`].
    pub fn msk(&self) -> Option<&Msk> {
        self.peer.tunnel().msk()
    }

    pub fn exchanged(&self) -> Exchanged {
        self.exchanged
    }

    /// The next request. No other pending request to the same server may have its identifier and authenticator; the
    /// authenticator is random.
    pub fn transmit(
        &mut self,
        now: Time,
        identifier: u8,
        authenticator: Authenticator,
    ) -> Result<&[u8], ClientFailure> {
        let mut builder = Builder::new(code::ACCESS_REQUEST, identifier);
        let name = self.peer.identity();
        builder.add(attribute::USER_NAME, name.get(..MAX_VALUE_BYTES).unwrap_or(name))?;
        builder.add(attribute::NAS_IDENTIFIER, b"shakedown")?;
        builder.add(attribute::SERVICE_TYPE, &FRAMED)?;
        builder.add(attribute::NAS_PORT_TYPE, &WIRELESS)?;
        builder.add(attribute::FRAMED_MTU, &FRAMED_MTU.to_be_bytes())?;
        builder.add_eap(&self.eap)?;
        if let Some(state) = &self.state {
            builder.add(attribute::STATE, state)?;
        }
        let packet = builder.request(&self.secret, &authenticator);
        self.exchanged.eap_bytes += self.eap.len() as u64;
        self.exchanged.radius_bytes += packet.len() as u64;
        let waiting = self.waiting.insert(Waiting {
            identifier,
            authenticator,
            packet,
            transmissions: 1,
            wait: FIRST_WAIT,
            deadline: now + FIRST_WAIT.min(self.limit),
            give_up: now + self.limit,
            authenticator_error: None,
        });
        Ok(&waiting.packet)
    }

    /// The same request again if its retransmission is due.
    pub fn handle_timeout(&mut self, now: Time) -> Result<Option<&[u8]>, ClientFailure> {
        let Some(waiting) = self.waiting.as_mut().filter(|waiting| waiting.deadline <= now) else {
            return Ok(None);
        };
        if now >= waiting.give_up {
            return Err(match waiting.authenticator_error {
                Some(reason) => ClientFailure::InvalidResponses { reason },
                None => ClientFailure::NoAnswer { transmissions: waiting.transmissions },
            });
        }
        waiting.transmissions += 1;
        waiting.wait *= 2;
        waiting.deadline = (now + waiting.wait).min(waiting.give_up);
        Ok(Some(&waiting.packet))
    }

    /// Processes a datagram from the server. It is ignored unless it is a valid response to the pending request.
    pub fn handle(&mut self, now: Time, datagram: &[u8]) -> Result<Next, Discarded> {
        let packet = Packet::parse(datagram)?;
        let Some(waiting) = self.waiting.as_mut().filter(|waiting| waiting.identifier == packet.identifier())
        else {
            return Err(Discarded::Unexpected);
        };
        if !matches!(packet.code(), code::ACCESS_ACCEPT | code::ACCESS_REJECT | code::ACCESS_CHALLENGE) {
            return Err(Discarded::Unexpected);
        }
        if let Err(reason) = self.secret.check_response(&packet, &waiting.authenticator) {
            waiting.authenticator_error = Some(reason);
            return Err(reason.into());
        }
        if packet.first(attribute::PROXY_STATE).is_some() {
            // The request had none, so a valid response has none (CVE-2024-3596).
            return Err(Discarded::Unexpected);
        }
        let authenticator = waiting.authenticator;
        self.waiting = None;
        Ok(self.answered(now, &packet, &authenticator))
    }

    fn answered(&mut self, now: Time, packet: &Packet<'_>, authenticator: &Authenticator) -> Next {
        let eap = packet.eap_message();
        self.exchanged.round_trips += 1;
        self.exchanged.radius_bytes += packet.as_bytes().len() as u64;
        self.exchanged.eap_bytes += eap.as_ref().map_or(0, Vec::len) as u64;
        let code = packet.code();
        let Some(eap) = eap else {
            return Next::Failure(match code {
                code::ACCESS_REJECT => ClientFailure::RejectedWithoutEap,
                code => ClientFailure::WrongEap { code },
            });
        };
        match (code, self.peer.handle(now, &eap)) {
            (code::ACCESS_CHALLENGE, Reply::Response(response)) => {
                self.eap = response;
                self.state = packet.first(attribute::STATE).map(<[u8]>::to_vec);
                Next::Transmit
            }
            (code::ACCESS_ACCEPT, Reply::Success) => self.accepted(packet, authenticator),
            (_, Reply::Failure(failure)) => Next::Failure(failure.into()),
            (code::ACCESS_REJECT, _) => Next::Failure(PeerFailure::Rejected.into()),
            (code, _) => Next::Failure(ClientFailure::WrongEap { code }),
        }
    }

    fn accepted(&self, packet: &Packet<'_>, authenticator: &Authenticator) -> Next {
        match take_msk(packet, &self.secret, authenticator) {
            Err(error) => Next::Failure(error.into()),
            Ok(msk) if self.msk() == Some(&msk) => Next::Success,
            Ok(_) => Next::Failure(ClientFailure::Keys),
        }
    }
}
