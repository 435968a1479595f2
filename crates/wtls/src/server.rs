//! The server.
//!
//! A handshake begins with a ClientHello ([`attempt`]). Then the client's flight is processed as a whole
//! ([`crate::flight`]):
//!
//! | sent | expected | then |
//! | --- | --- | --- |
//! | ServerHello … ServerHelloDone (`FullHandshake`) | the client's flight | the server's Finished, the connection |
//! | ServerHello … Finished (`ServerFinished`) | ChangeCipherSpec, Finished | the connection |
//!
//! A flight is authenticated only when its Finished is verified; until then the state does not change. An attacker
//! may therefore send any number of flights, and the client can still complete its handshake.

mod answer;
mod attempt;
mod exchange;
mod finish;
mod peer;
mod plan;

pub use peer::ConnectionId;
pub(crate) use peer::{Change, Peer, Shared, no_connection_alert};

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
/// It is for transports on which only the peer can send: in memory, or behind a layer that authenticates senders.
/// As in a [`Listener`](crate::Listener), data that was made without a handshake's keys does not affect the handshake,
/// but there is only one connection at a time. The peer may begin a new handshake at any time, for example after it
/// lost its state. The new connection replaces the old one when its Finished is verified.
pub struct ServerConnection<P: Provider> {
    peer: Peer<P>,
    next_id: u64,
    closed: bool,
}

impl<P: Provider> ServerConnection<P> {
    /// A server without a peer.
    pub fn new(config: Arc<ServerConfig<P>>) -> Self {
        Self { peer: Peer::new(config, 1), next_id: 0, closed: false }
    }

    /// Processes a datagram from the peer.
    pub fn handle_input(&mut self, cx: &mut Context<'_, P>, datagram: &[u8]) {
        let mut shared = Shared { next_id: &mut self.next_id, operations: None };
        self.peer.handle_input(cx, &mut shared, datagram);
        self.settle();
    }

    /// Updates `closed` from the changes, and discards them.
    fn settle(&mut self) {
        for change in self.peer.changes.drain(..) {
            match change {
                Change::AttemptBegun(_) | Change::ConnectionOpened(_) => self.closed = false,
                Change::AttemptEnded(_) | Change::ConnectionClosed(_) => self.closed = true,
                Change::AttemptSucceeded(..) => {}
            }
        }
    }

    /// Must be called at the time of [`poll_timeout`](Self::poll_timeout). An earlier call has no effect.
    pub fn handle_timeout(&mut self, cx: &mut Context<'_, P>) {
        self.peer.handle_timeout(cx.now.elapsed);
        self.settle();
    }

    /// The next datagram for the peer.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.peer.datagrams.pop_front()
    }

    /// The time at which to call [`handle_timeout`](Self::handle_timeout), on the clock of
    /// [`Time::elapsed`](crate::Time::elapsed). An attempt is kept until its deadline even if it has succeeded.
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.peer.poll_timeout()
    }

    /// The next event. When a new connection replaces an old one, only [`Event::Established`] is reported.
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

    /// Closes the connection, or ends the handshake if there is no connection yet, and notifies the peer.
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

    /// Whether the last connection or handshake has ended. A new ClientHello begins another.
    pub fn is_closed(&self) -> bool {
        self.closed && !self.is_open() && !self.peer.is_waiting()
    }

    /// Whether there is neither a handshake nor a connection.
    pub fn is_idle(&self) -> bool {
        self.peer.is_idle()
    }

    /// The session, if the connection has one that can be resumed.
    pub fn session(&self) -> Option<&Session> {
        let (_, connection) = self.peer.current()?;
        connection.session.as_ref()
    }
}
