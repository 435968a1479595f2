//! The engine's server of many peers behind the `Listener` trait.

use super::endpoint::{Environment, write_error};
use super::provider::Timed;
use crate::stack::{ListenLimits, Listener};
use shakedown_trace::endpoint::{Event, Time};
use shakedown_trace::{Side, WriteError};
use shakedown_wtls::{Close, ConnectionId, Event as EngineEvent, Limits, ListenerEvent, ServerConfig};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

pub struct Peers {
    environment: Arc<Environment>,
    engine: shakedown_wtls::Listener<SocketAddr, Timed>,
    /// The latest connection of each peer, by use or creation. A client that restarts at its old address has another
    /// connection. So has a client whose flight was repeated in another form; it uses one of the two.
    latest: HashMap<SocketAddr, ConnectionId>,
}

impl Peers {
    pub fn new(
        environment: Arc<Environment>,
        config: Arc<ServerConfig<Timed>>,
        limits: ListenLimits,
    ) -> Self {
        let limits = Limits {
            half_open: limits.handshakes,
            established: limits.connections,
            idle: limits.idle,
            ..Limits::default()
        };
        Self { environment, engine: shakedown_wtls::Listener::new(config, limits), latest: HashMap::new() }
    }
}

impl Listener for Peers {
    fn handle_input(&mut self, now: Time, peer: SocketAddr, bytes: &[u8]) {
        let Self { environment, engine, .. } = self;
        environment.call(now, |context| engine.handle_input(context, peer, bytes));
    }

    fn handle_timeout(&mut self, now: Time) {
        let Self { environment, engine, .. } = self;
        environment.call(now, |context| engine.handle_timeout(context));
    }

    fn write(&mut self, now: Time, peer: SocketAddr, data: &[u8]) -> Result<(), WriteError> {
        let side = Side::Server;
        let connection = *self.latest.get(&peer).ok_or(WriteError::NotEstablished { side })?;
        let Self { environment, engine, .. } = self;
        let sent = environment.call(now, |context| engine.write(context, connection, data));
        sent.map_err(|error| write_error(side, false, &error))
    }

    fn close(&mut self, now: Time, peer: SocketAddr) {
        let Some(connection) = self.latest.get(&peer).copied() else { return };
        let Self { environment, engine, .. } = self;
        environment.call(now, |context| engine.close(context, connection, Close::Connection));
    }

    fn poll_transmit(&mut self, _: Time, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        let (peer, datagram) = self.engine.poll_transmit()?;
        buffer.extend_from_slice(&datagram);
        Some(peer)
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.engine.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<(SocketAddr, Event)> {
        while let Some(ListenerEvent { address, connection, event }) = self.engine.poll_event() {
            match event {
                EngineEvent::Established(_) | EngineEvent::Data(_) => {
                    self.latest.insert(address, connection);
                }
                // The end of an attempt or connection is not reported if the peer's latest connection is another.
                EngineEvent::Closed(_) => match self.latest.get(&address) {
                    Some(latest) if *latest != connection => continue,
                    _ => {
                        self.latest.remove(&address);
                    }
                },
                // Anyone can send an invalid datagram; it does not affect the peer's connection.
                EngineEvent::Rejected(_) => continue,
                _ => {}
            }
            // The engine does not report whether an ended connection was established; the reason is more informative.
            if let Some(event) = self.environment.event(Side::Server, false, event) {
                return Some((address, event));
            }
        }
        None
    }
}
