//! An SGSN: the shared state of its attaches ([`Node`]), and one attach ([`Attach`]).

use crate::core::{Answer, Query, Unanswered};
use crate::frame::Frames;
use crate::message::{Cause, Message, Plane};
use crate::names::{Imsi, Network, NodeName, Temporary};
use crate::sessions::{Decision, Fresh, Identified, Offered, SessionRecord, Sessions, StoreError};
use crate::tunnel::Tunnel;
use serde::Serialize;
use sha2::{Digest, Sha256};
use shakedown_trace::endpoint::Time;
use shakedown_trace::{Endpoint, Negotiated};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotAdmitted(pub String);

/// Creates endpoints and random numbers for a node.
pub trait Environment {
    /// Type of the TLS endpoints.
    type Endpoint: Endpoint;

    /// A server endpoint for a subscriber of a home network, which presents that network's cross-certificate and uses
    /// the node's [`Sessions`]; `None` before [`admit`](Self::admit).
    fn accept(&mut self, home: &Network) -> Option<Self::Endpoint>;

    /// Validates and stores a home network's cross-certificate for this network's authority, DER.
    fn admit(&mut self, home: &Network, cross_certificate: &[u8]) -> Result<(), NotAdmitted>;

    /// Fills `bytes` with unpredictable random numbers.
    fn random(&mut self, bytes: &mut [u8]);
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    pub full: u64,
    pub resumed: u64,
    pub rejected: BTreeMap<&'static str, u64>,
    /// Sessions that were offered and not resumed, by decision.
    pub not_resumed: BTreeMap<&'static str, u64>,
    /// Subscribers that moved to another SGSN.
    pub handed_over: u64,
    pub taken_over: u64,
}

/// The shared state of an SGSN's attaches.
pub struct Node<V> {
    name: NodeName,
    network: Network,
    environment: V,
    sessions: Arc<Mutex<Sessions>>,
    tally: Tally,
}

impl<V: Environment> Node<V> {
    /// A node. `sessions` are those that the endpoints of `environment` use.
    pub fn new(name: NodeName, network: Network, environment: V, sessions: Arc<Mutex<Sessions>>) -> Self {
        Self { name, network, environment, sessions, tally: Tally::default() }
    }

    pub fn name(&self) -> &NodeName {
        &self.name
    }

    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    pub fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a query of another SGSN.
    pub fn answer(&mut self, query: &Query) -> Result<Answer, StoreError> {
        let (ptmsi, claimer) = match query {
            Query::Context { ptmsi } => (ptmsi, None),
            Query::Claim { ptmsi, imsi } => (ptmsi, Some(imsi)),
            _ => return Ok(Answer::Refused(Cause::Protocol)),
        };
        let found = self.sessions().context(*ptmsi)?;
        let found = found.filter(|(subscriber, _)| claimer.is_none_or(|imsi| *imsi == subscriber.imsi));
        let Some((subscriber, session)) = found else { return Ok(Answer::UnknownContext) };
        if claimer.is_some() {
            self.sessions().release(*ptmsi)?;
            self.tally.handed_over += 1;
        }
        Ok(Answer::Context { imsi: subscriber.imsi, home: subscriber.home, session })
    }

    /// An unused temporary identity that is neither 0 nor all ones (3GPP TS 23.003 section 2.4).
    fn temporary(&mut self) -> Result<u32, StoreError> {
        loop {
            let mut bytes = [0; 4];
            self.environment.random(&mut bytes);
            let ptmsi = u32::from_be_bytes(bytes);
            let taken = self.sessions().store().subscriber(ptmsi)?.is_some();
            if !taken && ptmsi != 0 && ptmsi != u32::MAX {
                return Ok(ptmsi);
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttachEvent {
    /// The mobile has confirmed: both ends have the same keys and saw the same request.
    Attached {
        imsi: Imsi,
        resumed: bool,
    },
    Data(Vec<u8>),
    /// The attach is rejected. No event follows.
    Rejected {
        cause: Cause,
        reason: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Request,
    Context,
    /// Waits for the home network's cross-certificate.
    Certificate,
    Handshake,
    Identity,
    /// Waits for the home network's permission.
    Location,
    /// Waits for the old SGSN to release the subscriber.
    Claim,
    /// Waits for the mobile's confirmation that its request arrived unaltered.
    Confirmation,
    Attached,
    Over,
}

/// Limit of TLS bytes that wait for another node's response; a ClientHello is shorter.
const MAX_HELD_BYTES: usize = 65_536;

/// The SGSN's end of an attach.
pub struct Attach<V: Environment> {
    phase: Phase,
    frames: Frames,
    request: [u8; 32],
    home: Option<Network>,
    temporary: Option<Temporary>,
    imsi: Option<Imsi>,
    /// The subscriber that the old SGSN knows by the temporary identity.
    known_as: Option<Imsi>,
    /// The old SGSN's session of this subscriber.
    guest: Option<Identified>,
    /// The same session, after the old SGSN has released it to the authenticated mobile.
    claimed: Option<SessionRecord>,
    /// The mobile has confirmed under the derived keys that its request arrived unaltered.
    confirmed: bool,
    held: Vec<u8>,
    tunnel: Option<Tunnel<V::Endpoint>>,
    fresh: Option<Fresh>,
    offered: Option<Offered>,
    out: Vec<u8>,
    query: Option<(Network, Query)>,
    events: VecDeque<AttachEvent>,
}

impl<V: Environment> Default for Attach<V> {
    fn default() -> Self {
        Self {
            phase: Phase::Request,
            frames: Frames::default(),
            request: [0; 32],
            home: None,
            temporary: None,
            imsi: None,
            known_as: None,
            guest: None,
            claimed: None,
            confirmed: false,
            held: Vec::new(),
            tunnel: None,
            fresh: None,
            offered: None,
            out: Vec::new(),
            query: None,
            events: VecDeque::new(),
        }
    }
}

/// Why an attach is rejected.
type Stop = (Cause, String);

fn store(error: StoreError) -> Stop {
    (Cause::NetworkFailure, error.to_string())
}

impl<V: Environment> Attach<V> {
    pub fn endpoint(&self) -> Option<&V::Endpoint> {
        self.tunnel.as_ref().map(|tunnel| &tunnel.endpoint)
    }

    pub fn negotiated(&self) -> Option<&Negotiated> {
        self.tunnel.as_ref().and_then(|tunnel| tunnel.negotiated.as_deref())
    }

    /// Number of handshake steps: flights sent, and one more if the peer's flight ended the handshake.
    pub fn steps(&self) -> u32 {
        self.tunnel.as_ref().map_or(0, |tunnel| tunnel.steps)
    }

    /// The session that the mobile offered, and the decision about it.
    pub fn offered(&self) -> Option<&Offered> {
        self.offered.as_ref()
    }

    /// True after a valid request of the mobile, which is not authenticated yet.
    pub fn is_asked(&self) -> bool {
        self.phase != Phase::Request
    }

    /// True after the mobile has confirmed its request and the accept has been sent.
    pub fn is_attached(&self) -> bool {
        self.phase == Phase::Attached
    }

    /// True after the attach was rejected or the connection has ended.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    pub fn poll_transmit(&mut self, buffer: &mut Vec<u8>) -> bool {
        let any = !self.out.is_empty();
        buffer.append(&mut self.out);
        any
    }

    /// The next query, and the network of the node that it is for: the home network's HSS, or the SGSN that
    /// [`temporary`](Self::temporary) names.
    pub fn poll_query(&mut self) -> Option<(Network, Query)> {
        self.query.take()
    }

    pub fn temporary(&self) -> Option<&Temporary> {
        self.temporary.as_ref()
    }

    pub fn poll_event(&mut self) -> Option<AttachEvent> {
        self.events.pop_front()
    }

    /// Sends user data under the derived keys. False if no mobile is attached, or for more than
    /// [`MAX_DATA_BYTES`](crate::message::MAX_DATA_BYTES).
    pub fn send(&mut self, data: &[u8]) -> bool {
        let channel = self.tunnel.as_mut().and_then(|tunnel| tunnel.channel.as_mut());
        let (true, Some(channel)) = (self.phase == Phase::Attached, channel) else { return false };
        let Ok(sealed) = channel.seal(Plane::User, data) else { return false };
        Message::Protected { plane: Plane::User, sealed }.put(&mut self.out);
        true
    }

    pub fn handle_input(&mut self, node: &mut Node<V>, now: Time, bytes: &[u8]) {
        self.frames.push(bytes);
        while self.phase != Phase::Over
            && let Some((kind, body)) = self.frames.next_frame()
        {
            let done = match Message::read(kind, body) {
                Ok(message) => self.handle(node, now, message),
                Err(error) => Err((Cause::Protocol, error.to_string())),
            };
            self.stop_at(node, now, done);
        }
    }

    /// Processes another node's response to the last query, or the reason why there is none.
    pub fn handle_answer(&mut self, node: &mut Node<V>, now: Time, answer: Result<Answer, Unanswered>) {
        if self.phase == Phase::Over {
            return;
        }
        let done = self.answered(node, now, answer);
        self.stop_at(node, now, done);
    }

    /// The transport has ended, or the mobile was silent for too long. This counts as a rejection if an attach was in
    /// progress.
    pub fn handle_close(&mut self, node: &mut Node<V>) {
        if !matches!(self.phase, Phase::Request | Phase::Over | Phase::Attached) {
            *node.tally.rejected.entry("ended").or_default() += 1;
        }
        self.phase = Phase::Over;
    }

    fn stop_at(&mut self, node: &mut Node<V>, now: Time, done: Result<(), Stop>) {
        let Err((cause, reason)) = done else { return };
        let reject = Message::Reject(cause);
        match self.tunnel.as_mut().filter(|tunnel| tunnel.negotiated.is_some()) {
            Some(tunnel) => {
                tunnel.send(now, &reject, &mut self.out);
            }
            // The stack has sent an alert.
            None if cause == Cause::Handshake => {}
            None => reject.put(&mut self.out),
        }
        self.phase = Phase::Over;
        *node.tally.rejected.entry(cause.as_str()).or_default() += 1;
        self.events.push_back(AttachEvent::Rejected { cause, reason });
    }

    fn handle(&mut self, node: &mut Node<V>, now: Time, message: Message) -> Result<(), Stop> {
        match (self.phase, message) {
            (Phase::Request, Message::AttachRequest { home, temporary }) => {
                self.request = Sha256::digest(
                    Message::AttachRequest { home: home.clone(), temporary: temporary.clone() }.to_bytes(),
                )
                .into();
                self.home = Some(home);
                self.temporary = temporary;
                match self.temporary.as_ref().filter(|given| given.node != node.name) {
                    Some(given) => {
                        self.phase = Phase::Context;
                        let query = Query::Context { ptmsi: given.ptmsi };
                        self.query = Some((node.network.clone(), query));
                        Ok(())
                    }
                    None => self.shake_hands(node, now),
                }
            }
            (Phase::Context | Phase::Certificate, Message::Tls(bytes)) => {
                self.held.extend(bytes);
                if self.held.len() > MAX_HELD_BYTES {
                    return Err((Cause::Protocol, "too many bytes before the handshake".into()));
                }
                Ok(())
            }
            (
                Phase::Handshake
                | Phase::Identity
                | Phase::Location
                | Phase::Claim
                | Phase::Confirmation
                | Phase::Attached,
                Message::Tls(bytes),
            ) => self.tls(node, now, &bytes),
            (
                Phase::Location | Phase::Claim | Phase::Confirmation,
                Message::Protected { plane: Plane::Signalling, sealed },
            ) if !self.confirmed => self.confirm(node, now, &sealed),
            (Phase::Attached, Message::Protected { plane: Plane::User, sealed }) => {
                let data = self.open(Plane::User, &sealed)?;
                self.events.push_back(AttachEvent::Data(data));
                Ok(())
            }
            _ => Err((Cause::Protocol, "an unexpected message".into())),
        }
    }

    fn answered(
        &mut self,
        node: &mut Node<V>,
        now: Time,
        answer: Result<Answer, Unanswered>,
    ) -> Result<(), Stop> {
        match (self.phase, answer) {
            (Phase::Context, Ok(Answer::Context { imsi, home, session }))
                if imsi.is_of(&home) && self.home.as_ref() == Some(&home) =>
            {
                self.guest = session.filter(|(_, record)| record.imsi == imsi && record.home == home);
                self.known_as = Some(imsi);
                self.shake_hands(node, now)
            }
            // The mobile authenticates by a full handshake, even if another SGSN rejected it.
            (Phase::Context, _) => self.shake_hands(node, now),
            (Phase::Certificate | Phase::Location, Ok(Answer::Refused(cause))) => {
                Err((cause, "the home network refused".into()))
            }
            (Phase::Certificate, Ok(Answer::CrossCertificate(certificate))) => {
                let home = self.home.as_ref().ok_or_else(not_due)?;
                let admitted = node.environment.admit(home, &certificate);
                admitted.map_err(|error| (Cause::NoRoamingAgreement, error.to_string()))?;
                self.shake_hands(node, now)
            }
            (Phase::Location, Ok(Answer::Located)) => match (&self.temporary, &self.imsi) {
                (Some(given), Some(imsi)) if self.is_known() => {
                    self.phase = Phase::Claim;
                    let query = Query::Claim { ptmsi: given.ptmsi, imsi: imsi.clone() };
                    self.query = Some((node.network.clone(), query));
                    Ok(())
                }
                _ => self.accept(node, now),
            },
            (Phase::Claim, answer) => {
                if let Ok(Answer::Context { imsi, session, .. }) = answer
                    && self.imsi.as_ref() == Some(&imsi)
                {
                    node.tally.taken_over += 1;
                    let offered = self.offered.as_ref().map(|offered| &offered.id);
                    let same = session.filter(|(id, record)| offered == Some(id) && record.imsi == imsi);
                    self.claimed = same.map(|(_, record)| record);
                }
                self.accept(node, now)
            }
            (Phase::Certificate | Phase::Location, Err(Unanswered::Unknown)) => {
                let home = self.home.as_ref().map(Network::as_str).unwrap_or_default();
                Err((Cause::UnknownHome, format!("no HSS of network {home} is known here")))
            }
            (Phase::Certificate | Phase::Location, _) => {
                let home = self.home.as_ref().map(Network::as_str).unwrap_or_default();
                Err((Cause::NetworkFailure, format!("the HSS of network {home} does not respond")))
            }
            _ => Err((Cause::NetworkFailure, "an unexpected response".into())),
        }
    }

    /// Begins the handshake or, if its cross-certificate is missing, queries that first.
    fn shake_hands(&mut self, node: &mut Node<V>, now: Time) -> Result<(), Stop> {
        let home = self.home.as_ref().ok_or_else(not_due)?;
        match node.environment.accept(home) {
            Some(endpoint) => {
                self.tunnel = Some(Tunnel::new(endpoint));
                self.phase = Phase::Handshake;
                let held = std::mem::take(&mut self.held);
                if held.is_empty() { Ok(()) } else { self.tls(node, now, &held) }
            }
            None if self.phase == Phase::Certificate => {
                Err((Cause::NetworkFailure, "no server can be made for this home network".into()))
            }
            None => {
                self.phase = Phase::Certificate;
                let query = Query::CrossCertificate { serving: node.network.clone() };
                self.query = Some((home.clone(), query));
                Ok(())
            }
        }
    }

    fn tls(&mut self, node: &mut Node<V>, now: Time, bytes: &[u8]) -> Result<(), Stop> {
        let Some(tunnel) = &mut self.tunnel else { return Err(not_due()) };
        node.sessions().begin(now, self.guest.as_ref());
        tunnel.handle(now, bytes, &mut self.out);
        let (offered, fresh, error) = {
            let mut sessions = node.sessions();
            (sessions.take_offered(), sessions.take_fresh(), sessions.take_error())
        };
        if let Some(error) = error {
            return Err(store(error));
        }
        if let Some(offered) = offered {
            if offered.record.is_none() {
                *node.tally.not_resumed.entry(offered.decision.as_str()).or_default() += 1;
            }
            self.offered = Some(offered);
        }
        self.fresh = fresh.or(self.fresh.take());
        if tunnel.closed.is_some() {
            if self.phase == Phase::Attached {
                // The mobile has closed the connection after the attach.
                self.phase = Phase::Over;
                return Ok(());
            }
            return Err((Cause::Handshake, tunnel.failure()));
        }
        if self.phase == Phase::Handshake && tunnel.negotiated.is_some() {
            self.established(node, now)?;
        }
        self.inner(node)
    }

    fn established(&mut self, node: &mut Node<V>, now: Time) -> Result<(), Stop> {
        if self.tunnel.as_ref().is_none_or(|tunnel| tunnel.channel.is_none()) {
            return Err((Cause::NetworkFailure, "the handshake left no keys".into()));
        }
        if !self.is_resumed() {
            if self.offered.as_ref().is_some_and(|offered| offered.record.is_some()) {
                *node.tally.not_resumed.entry(Decision::Declined.as_str()).or_default() += 1;
            }
            self.phase = Phase::Identity;
            return Ok(());
        }
        // The stack must resume only sessions that this node allowed.
        let record = self.offered.as_ref().and_then(|offered| offered.record.as_ref());
        let record = record.filter(|record| Some(&record.home) == self.home.as_ref());
        let Some(record) = record else {
            return Err((Cause::Protocol, "a session that must not be resumed".into()));
        };
        self.imsi = Some(record.imsi.clone());
        if self.is_known() {
            return self.locate(node, None);
        }
        self.accept(node, now)
    }

    fn is_resumed(&self) -> bool {
        self.negotiated().is_some_and(|negotiated| negotiated.resumed)
    }

    /// True if the authenticated mobile is the subscriber that the old SGSN knows by the temporary identity. Other
    /// mobiles cannot take that subscriber's session.
    fn is_known(&self) -> bool {
        self.known_as.is_some() && self.known_as == self.imsi
    }

    /// Handles the messages inside TLS.
    fn inner(&mut self, node: &Node<V>) -> Result<(), Stop> {
        while let Some((kind, body)) = self.tunnel.as_mut().and_then(|tunnel| tunnel.inner.next_frame()) {
            match (self.phase, Message::read(kind, body)) {
                (Phase::Identity, Ok(Message::Identity(imsi))) => {
                    if !self.home.as_ref().is_some_and(|home| imsi.is_of(home)) {
                        return Err((Cause::UnknownSubscriber, "the identity is of another network".into()));
                    }
                    let leaf =
                        self.endpoint().and_then(|endpoint| endpoint.peer_certificates().into_iter().next());
                    let Some(leaf) = leaf else {
                        return Err((Cause::UnknownSubscriber, "no certificate was presented".into()));
                    };
                    self.imsi = Some(imsi);
                    self.locate(node, Some(leaf))?;
                }
                _ => return Err((Cause::Protocol, "an unexpected message inside TLS".into())),
            }
        }
        Ok(())
    }

    fn locate(&mut self, node: &Node<V>, certificate: Option<Vec<u8>>) -> Result<(), Stop> {
        let (Some(home), Some(imsi)) = (self.home.clone(), self.imsi.clone()) else { return Err(not_due()) };
        self.phase = Phase::Location;
        let (serving, name) = (node.network.clone(), node.name.clone());
        self.query = Some((home, Query::Location { serving, node: name, imsi, certificate }));
        Ok(())
    }

    fn accept(&mut self, node: &mut Node<V>, now: Time) -> Result<(), Stop> {
        if !self.confirmed {
            self.phase = Phase::Confirmation;
            return Ok(());
        }
        let (Some(home), Some(imsi)) = (&self.home, &self.imsi) else { return Err(not_due()) };
        let ptmsi = node.temporary().map_err(store)?;
        // Counts only if TLS resumed the offered session.
        let resumed = self.offered.as_ref().filter(|_| self.is_resumed());
        let made = self.fresh.take().filter(|_| resumed.is_none());
        if let Some(Offered { id, is_guest, .. }) = resumed {
            // For a session that this node holds itself, its own count applies, not another node's.
            let claimed = self.claimed.take().filter(|_| *is_guest);
            if *is_guest && claimed.is_none() {
                return Err((Cause::NetworkFailure, "the old SGSN does not release the session".into()));
            }
            let decision = node.sessions().resume(now, id, claimed).map_err(store)?;
            if decision != Decision::Resume {
                let reason = format!(
                    "the session was resumed at another SGSN in the meantime ({})",
                    decision.as_str()
                );
                return Err((Cause::NetworkFailure, reason));
            }
        }
        let id = resumed.map(|offered| &*offered.id);
        node.sessions().attached(now, ptmsi, (imsi, home), made, id).map_err(store)?;
        let imsi = imsi.clone();
        let Some(tunnel) = &mut self.tunnel else { return Err(not_due()) };
        let accept = Message::AttachAccept(Temporary { node: node.name.clone(), ptmsi });
        if !tunnel.send(now, &accept, &mut self.out) {
            return Err((Cause::Handshake, tunnel.failure()));
        }
        let resumed = self.is_resumed();
        if resumed {
            node.tally.resumed += 1;
        } else {
            node.tally.full += 1;
        }
        self.phase = Phase::Attached;
        self.events.push_back(AttachEvent::Attached { imsi, resumed });
        Ok(())
    }

    fn open(&mut self, plane: Plane, sealed: &[u8]) -> Result<Vec<u8>, Stop> {
        let channel = self.tunnel.as_mut().and_then(|tunnel| tunnel.channel.as_mut());
        let opened = channel.and_then(|channel| channel.open(plane, sealed).ok());
        opened.ok_or_else(|| (Cause::Protocol, "data that the derived keys do not decrypt".into()))
    }

    /// Compares the mobile's digest of its request, sent under the derived keys, with that of the request that arrived.
    /// The attach is accepted only if they are equal, so an accepted mobile knows that nothing was altered.
    fn confirm(&mut self, node: &mut Node<V>, now: Time, sealed: &[u8]) -> Result<(), Stop> {
        if self.open(Plane::Signalling, sealed)? != self.request {
            return Err((Cause::Protocol, "the attach request was altered in transit".into()));
        }
        self.confirmed = true;
        if self.phase == Phase::Confirmation { self.accept(node, now) } else { Ok(()) }
    }
}

fn not_due() -> Stop {
    (Cause::Protocol, "an unexpected message".into())
}
