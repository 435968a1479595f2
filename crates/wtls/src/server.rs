//! The server of one peer.
//!
//! The states of its handshake, in the order of the flows of §10.3, each with what it takes:
//!
//! | state | takes | then |
//! | --- | --- | --- |
//! | `ExpectClientHello` | ClientHello; answers with its first flight | by the plan, one of the next |
//! | `ExpectCertificate` | Certificate | `ExpectKeyExchange`, or on (ECDH certificates) |
//! | `ExpectKeyExchange` | ClientKeyExchange | `ExpectCertificateVerify`, or on |
//! | `ExpectCertificateVerify` | CertificateVerify | `ExpectChangeCipherSpec` |
//! | `ExpectChangeCipherSpec` | ChangeCipherSpec | `ExpectFinished` |
//! | `ExpectFinished` | Finished; answers with its own if the client's came first | `Open` |

mod answer;
mod exchange;
mod finish;
mod plan;

use crate::config::ServerConfig;
use crate::connection::{Close, Connection, Input, State};
use crate::context::Context;
use crate::crypto::Provider;
use crate::error::{Error, SendError};
use crate::event::Event;
use crate::link::{Link, no_connection};
use crate::message::HEADER_BYTES;
use crate::numbers::{ContentType, HandshakeType};
use crate::record::{Record, Records};
use crate::session::Session;
use answer::Answer;
use core::time::Duration;
use exchange::{ExpectCertificate, ExpectCertificateVerify, ExpectKeyExchange};
use finish::{Conclude, ExpectChangeCipherSpec, ExpectFinished};
use plan::ExpectClientHello;
use std::sync::Arc;

/// A server's connection with one peer: see the crate's documentation for how to drive it.
///
/// A peer may begin anew at any time, having forgotten the connection that we still have. Anybody
/// could pretend to be such a peer, so the old connection stays until the new handshake is over.
pub struct ServerConnection<P: Provider> {
    config: Arc<ServerConfig<P>>,
    current: Option<Box<Association<P>>>,
    /// A handshake beside an open connection.
    successor: Option<Box<Association<P>>>,
    /// What was left to be sent or told by associations that are no more.
    leftover: Leftover,
}

type Leftover = (std::collections::VecDeque<Vec<u8>>, std::collections::VecDeque<Event>);

/// One handshake and what comes of it.
struct Association<P: Provider> {
    connection: Connection<ServerState<P>>,
    /// The record with the ClientHello that began it.
    hello: Vec<u8>,
}

/// The hello record in front of a datagram, if it begins with one in clear text.
pub(crate) fn leading_hello(datagram: &[u8]) -> Option<Record<'_>> {
    let record = Records::new(datagram).next()?.ok()?;
    let is_hello = !record.record_type.is_protected()
        && record.record_type.content() == Some(ContentType::Handshake)
        && record.fragment.len() >= HEADER_BYTES
        && record.fragment[0] == HandshakeType::ClientHello.number();
    is_hello.then_some(record)
}

impl<P: Provider> Association<P> {
    fn new(config: &Arc<ServerConfig<P>>, cx: &Context<'_, P>, hello: &Record<'_>) -> Box<Self> {
        let state = ExpectClientHello { config: Arc::clone(config) };
        let state = ServerState::ExpectClientHello(Box::new(state));
        let deadline = cx.now.elapsed.saturating_add(config.handshake_timeout);
        Box::new(Self {
            connection: Connection::new(config.settings, state).with_deadline(deadline),
            hello: hello.raw.to_vec(),
        })
    }
}

impl<P: Provider> ServerConnection<P> {
    /// What a peer in a handshake takes whatever its messages are, rounded up: the association, its
    /// state, and the least that lists are allocated for.
    pub(crate) const FIXED_BYTES: usize = size_of::<Association<P>>() + 1_536;

    /// Waits for a peer.
    pub fn new(config: Arc<ServerConfig<P>>) -> Self {
        Self { config, current: None, successor: None, leftover: Leftover::default() }
    }

    /// Takes a datagram from the peer.
    pub fn handle_datagram(&mut self, cx: &mut Context<'_, P>, datagram: &[u8]) {
        match leading_hello(datagram) {
            Some(hello) => self.handle_hello(cx, &hello, datagram),
            None => self.handle_other(cx, datagram),
        }
        self.settle();
    }

    /// A hello that is known is a repetition; any other one begins anew.
    fn handle_hello(&mut self, cx: &mut Context<'_, P>, hello: &Record<'_>, datagram: &[u8]) {
        let known = self.associations().find(|known| known.hello == hello.raw);
        if let Some(association) = known {
            return association.connection.handle_datagram(cx, datagram);
        }
        let mut association = Association::new(&self.config, cx, hello);
        association.connection.handle_datagram(cx, datagram);
        let open = self.current.as_ref().is_some_and(|current| current.connection.is_open());
        *(if open { &mut self.successor } else { &mut self.current }) = Some(association);
    }

    /// Anything else goes to the handshake beside an open connection if it is in clear text or if
    /// that handshake has keys to read it with, otherwise to the open connection.
    fn handle_other(&mut self, cx: &mut Context<'_, P>, datagram: &[u8]) {
        let Some(Ok(first)) = Records::new(datagram).next() else { return };
        let protected = first.record_type.is_protected();
        let for_successor =
            |successor: &&mut Box<Association<P>>| !protected || successor.connection.link.opener.is_some();
        let association = match self.successor.as_mut().filter(for_successor) {
            Some(successor) => Some(successor),
            None => self.current.as_mut(),
        };
        match association {
            Some(association) => association.connection.handle_datagram(cx, datagram),
            None => self.leftover.0.extend(answer_stranger(&first)),
        }
    }

    /// Lets a new connection take the place of the old one, and drops what is over.
    fn settle(&mut self) {
        if self.successor.as_ref().is_some_and(|successor| successor.connection.is_open())
            && let Some(old) = core::mem::replace(&mut self.current, self.successor.take())
        {
            self.keep_leftover(old, false);
        }
        if let Some(over) = self.successor.take_if(|next| next.connection.is_closed()) {
            // The failure of a handshake beside an open connection is not the connection's.
            self.keep_leftover(over, true);
        }
    }

    fn keep_leftover(&mut self, association: Box<Association<P>>, datagrams: bool) {
        let Link { outgoing, events, .. } = association.connection.link;
        if datagrams {
            self.leftover.0.extend(outgoing);
        } else {
            let data = events.into_iter().filter(|event| matches!(event, Event::Data(_)));
            self.leftover.1.extend(data);
        }
    }

    fn associations(&mut self) -> impl Iterator<Item = &mut Association<P>> {
        [&mut self.current, &mut self.successor].into_iter().flatten().map(Box::as_mut)
    }

    /// To be called when the time of [`poll_timeout`](Self::poll_timeout) has come. Too early does
    /// no harm.
    pub fn handle_timeout(&mut self, cx: &mut Context<'_, P>) {
        for association in self.associations() {
            association.connection.handle_timeout(cx);
        }
        self.settle();
    }

    /// The next datagram for the peer.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        if let Some(datagram) = self.leftover.0.pop_front() {
            return Some(datagram);
        }
        self.associations().find_map(|association| association.connection.poll_transmit())
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called, on the clock of
    /// [`Time::elapsed`](crate::Time::elapsed).
    pub fn poll_timeout(&self) -> Option<Duration> {
        let slots = [&self.current, &self.successor].into_iter().flatten();
        slots.filter_map(|association| association.connection.poll_timeout()).min()
    }

    /// The next thing that happened. Handshakes beside an open connection are not reported until
    /// they succeed and take its place.
    pub fn poll_event(&mut self) -> Option<Event> {
        if let Some(event) = self.leftover.1.pop_front() {
            return Some(event);
        }
        self.current.as_mut()?.connection.poll_event()
    }

    /// Sends data. Each call is one record in one datagram, which may get lost.
    pub fn send(&mut self, cx: &mut Context<'_, P>, data: &[u8]) -> Result<(), SendError> {
        match &mut self.current {
            Some(association) => association.connection.send(cx, data),
            None => Err(SendError::NotOpen),
        }
    }

    /// Tells the peer that this is the end.
    pub fn close(&mut self, cx: &mut Context<'_, P>, close: Close) {
        if let Some(association) = &mut self.current {
            association.connection.close(cx, close);
        }
    }

    /// Whether data can be sent.
    pub fn is_open(&self) -> bool {
        self.current.as_ref().is_some_and(|association| association.connection.is_open())
    }

    /// Whether there was a connection or handshake and it is over. A new hello begins another.
    pub fn is_closed(&self) -> bool {
        self.current.as_ref().is_some_and(|association| association.connection.is_closed())
    }

    /// Whether nothing has been heard of the peer that is worth an answer.
    pub fn is_idle(&self) -> bool {
        self.current.is_none()
    }

    /// The session, if the connection has one that can be resumed.
    pub fn session(&self) -> Option<&Session> {
        self.current.as_ref()?.connection.link.session.as_ref()
    }

    /// Bytes held for the peer, to within what the allocator adds.
    pub fn memory_bytes(&self) -> usize {
        let heap = |association: &Association<P>| {
            let state = association.connection.state_heap_bytes(ServerState::heap_bytes);
            let own = size_of::<Association<P>>() + association.hello.len();
            own + association.connection.heap_bytes() + state
        };
        let slots = [&self.current, &self.successor].into_iter().filter_map(|slot| slot.as_deref());
        size_of::<Self>() + slots.map(heap).sum::<usize>()
    }
}

/// What is answered to a record of somebody who has no connection: that there is none, except to an
/// alert, lest two strangers tell each other so for ever.
pub(crate) fn answer_stranger(record: &Record<'_>) -> Option<Vec<u8>> {
    match record.record_type.content() {
        Some(ContentType::Alert) | None => None,
        Some(_) => Some(no_connection(record.raw)),
    }
}

pub(crate) enum ServerState<P: Provider> {
    ExpectClientHello(Box<ExpectClientHello<P>>),
    Answer(Box<Answer<P>>),
    ExpectCertificate(Box<ExpectCertificate<P>>),
    ExpectKeyExchange(Box<ExpectKeyExchange<P>>),
    ExpectCertificateVerify(Box<ExpectCertificateVerify<P>>),
    ExpectChangeCipherSpec(Box<ExpectChangeCipherSpec<P>>),
    ExpectFinished(Box<ExpectFinished<P>>),
    Conclude(Box<Conclude<P>>),
    Open(Arc<ServerConfig<P>>),
}

impl<P: Provider> ServerState<P> {
    fn heap_bytes(&self) -> usize {
        match self {
            Self::ExpectClientHello(state) => size_of_val(&**state),
            Self::Answer(state) => size_of_val(&**state),
            Self::ExpectCertificate(state) => size_of_val(&**state) + state.transcript_bytes(),
            Self::ExpectKeyExchange(state) => size_of_val(&**state) + state.transcript_bytes(),
            Self::ExpectCertificateVerify(state) => size_of_val(&**state) + state.transcript_bytes(),
            Self::ExpectChangeCipherSpec(state) => size_of_val(&**state) + state.transcript_bytes(),
            Self::ExpectFinished(state) => size_of_val(&**state) + state.transcript_bytes(),
            Self::Conclude(state) => size_of_val(&**state),
            Self::Open(_) => 0,
        }
    }
}

impl<P: Provider> State for ServerState<P> {
    type Provider = P;
    const OWNS_RETRANSMISSION: bool = false;

    fn handle(self, input: Input<'_>, link: &mut Link, cx: &mut Context<'_, P>) -> Result<Self, Error> {
        match self {
            Self::ExpectClientHello(state) => state.handle(&input, cx),
            Self::ExpectCertificate(state) => state.handle(&input, cx),
            Self::ExpectKeyExchange(state) => state.handle(&input, cx),
            Self::ExpectCertificateVerify(state) => state.handle(&input, cx),
            Self::ExpectChangeCipherSpec(state) => state.handle(input, link, cx),
            Self::ExpectFinished(state) => state.handle(&input, cx),
            Self::Answer(_) | Self::Conclude(_) | Self::Open(_) => Err(input.unexpected("nothing")),
        }
    }

    fn respond(self, link: &mut Link, cx: &mut Context<'_, P>) -> Result<Self, Error> {
        match self {
            Self::Answer(state) => state.respond(link, cx),
            Self::Conclude(state) => state.respond(link, cx),
            other => Ok(other),
        }
    }

    fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }

    fn forget_session(&self, link: &mut Link) {
        if let (Self::Open(config), Some(session)) = (self, &link.session) {
            config.sessions.remove(&session.id);
        }
    }
}
