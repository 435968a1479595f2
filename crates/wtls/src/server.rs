//! The server.
//!
//! A handshake is a ClientHello ([`attempt`]), and then a flight of the client that is read whole
//! ([`crate::flight`]):
//!
//! | what has been sent | what is read | what follows |
//! | --- | --- | --- |
//! | ServerHello … ServerHelloDone (`FullHandshake`) | the client's second flight | our Finished, and the connection |
//! | ServerHello … Finished (`ServerFinished`) | ChangeCipherSpec, Finished | the connection |
//!
//! Before Finished is verified nothing proves where a flight comes from, so until then nothing changes:
//! a handshake can be answered by anybody, any number of times, and still be finished by its client.

mod answer;
mod attempt;
mod exchange;
mod finish;
mod peer;
mod plan;

pub use peer::ConnectionId;
pub(crate) use peer::{Change, Peer, Shared, answer_stranger};

use crate::config::ServerConfig;
use crate::connection::Close;
use crate::context::Context;
use crate::crypto::Provider;
use crate::error::WriteError;
use crate::event::{CloseReason, Event};
use crate::session::Session;
use core::time::Duration;
use std::sync::Arc;

/// A server's connection with one peer: see the crate's documentation for how to drive it.
///
/// It is for a transport that keeps strangers out, as in memory or behind something that has proved
/// where datagrams come from. Handshakes in progress survive all that is not made with their keys, as
/// in a [`Listener`](crate::Listener); but there is one connection at a time. A peer may begin again
/// at any time, having forgotten the connection that we still have: the new one takes the place of the
/// old when its Finished is verified, and not before.
pub struct ServerConnection<P: Provider> {
    peer: Peer<P>,
    next_id: u64,
    closed: bool,
}

impl<P: Provider> ServerConnection<P> {
    /// Waits for a peer.
    pub fn new(config: Arc<ServerConfig<P>>) -> Self {
        Self { peer: Peer::new(config, 1), next_id: 0, closed: false }
    }

    /// Takes a datagram from the peer.
    pub fn handle_input(&mut self, cx: &mut Context<'_, P>, datagram: &[u8]) {
        let mut shared = Shared { next_id: &mut self.next_id, operations: None };
        self.peer.handle_input(cx, &mut shared, datagram);
        self.settle();
    }

    /// Notes what has begun or ended, and forgets the changes.
    fn settle(&mut self) {
        for change in self.peer.changes.drain(..) {
            match change {
                Change::AttemptBegun(_) | Change::ConnectionOpened(_) => self.closed = false,
                Change::AttemptEnded(_) | Change::ConnectionClosed(_) => self.closed = true,
                Change::AttemptSucceeded(..) => {}
            }
        }
    }

    /// To be called when the time of [`poll_timeout`](Self::poll_timeout) has come. Too early does
    /// no harm.
    pub fn handle_timeout(&mut self, cx: &mut Context<'_, P>) {
        self.peer.handle_timeout(cx.now.elapsed);
        self.settle();
    }

    /// The next datagram for the peer.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.peer.datagrams.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called, on the clock of
    /// [`Time::elapsed`](crate::Time::elapsed). An attempt is kept until then even if it has succeeded.
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.peer.poll_timeout()
    }

    /// The next thing that happened. That a connection makes room for the next one is not reported:
    /// the next one is.
    pub fn poll_event(&mut self) -> Option<Event> {
        let mut events = std::iter::from_fn(|| self.peer.events.pop_front()).map(|(_, event)| event);
        events.find(|event| *event != Event::Closed(CloseReason::Evicted))
    }

    /// Sends data. Each call is one record in one datagram, which may get lost.
    pub fn write(&mut self, cx: &mut Context<'_, P>, data: &[u8]) -> Result<(), WriteError> {
        let (id, _) = self.peer.current().ok_or(WriteError::NotOpen)?;
        let written = self.peer.write(cx, id, data);
        self.settle();
        written
    }

    /// Tells the peer that this is the end, of the handshake if there is no connection yet.
    pub fn close(&mut self, cx: &mut Context<'_, P>, close: Close) {
        match self.peer.current() {
            Some((id, _)) => self.peer.close(cx, id, close),
            None => self.peer.abandon(cx, close),
        }
        self.settle();
    }

    /// Whether data can be sent.
    pub fn is_open(&self) -> bool {
        self.peer.has_connections()
    }

    /// Whether there was a connection or handshake and it is over. A new hello begins another.
    pub fn is_closed(&self) -> bool {
        self.closed && !self.is_open() && !self.peer.is_waiting()
    }

    /// Whether nothing has been received that is worth an answer, or nothing is left of it.
    pub fn is_idle(&self) -> bool {
        self.peer.is_idle()
    }

    /// The session, if the connection has one that can be resumed.
    pub fn session(&self) -> Option<&Session> {
        let (_, connection) = self.peer.current()?;
        connection.session.as_ref()
    }
}
