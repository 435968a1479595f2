//! A server of many peers, which limits the memory, traffic and work that unproven peers can cause.
//!
//! WTLS has no cookies: a server must keep state for each ClientHello, and a ClientHello can be sent with a forged
//! address. The cost of such senders is therefore limited ([`Limits`]), in memory, bytes and public-key operations:
//!
//! * *Memory.* Handshakes in progress (*half-open*) are kept in a table of fixed size, in order of arrival. When it is
//!   full, the oldest is dropped; those that have led to a connection are dropped first. During a flood, a client can
//!   therefore connect if it responds before the flood fills the table once: with the default of 4,096 places and
//!   10,000 first datagrams per second, within 400 ms. A slower client may retry. A handshake is dropped after
//!   [`ServerConfig::handshake_timeout`]; first datagrams longer than [`Limits::hello_bytes`] are dropped unread.
//!   Half-open peers therefore use at most [`Listener::half_open_bound_bytes`].
//! * *Bytes.* An address is *proven* by a Finished, which shows that its owner receives datagrams. To an unproven
//!   address the server sends three times the bytes received from it, and further bytes only from the budget
//!   [`Limits::reflection`]. When a client finishes, its bytes are returned to the budget, so any number of ordinary
//!   clients get immediate responses. During a flood the budget is empty. A response of more than three times the
//!   ClientHello is then sent only when the client repeats its ClientHello, because the bytes of both count.
//! * *Operations.* Public-key operations that a ClientHello causes (anonymous suites with temporary keys, clients whose
//!   certificate is stored) are taken from the budget [`Limits::operations`], and returned when the client finishes. If
//!   the budget is used up, the ClientHello is dropped.
//!
//! Connections have a separate table ([`Limits::established`]), so handshakes in progress never displace a connection.
//! When a completed handshake exceeds this limit, or that of its address, the connection that was idle longest is
//! dropped. Only records made with a connection's keys end its idle time.
//!
//! An address may have several connections. A new one does not end an older one, because another host may have made it
//! with the same address. A [`ConnectionId`] identifies each.

use crate::config::ServerConfig;
use crate::connection::Close;
use crate::context::Context;
use crate::crypto::Provider;
use crate::error::WriteError;
use crate::event::{CloseReason, Event};
use crate::flight::{EARLY_BYTES, HELD_BYTES, leading_hello};
use crate::limiter::{Bucket, Budget};
use crate::record::Records;
use crate::server::{Change, ConnectionId, Peer, Shared, no_connection_alert};
use core::hash::Hash;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

/// The bytes that may be sent to an unproven address, as a multiple of the bytes received from it.
const AMPLIFICATION: u64 = 3;

/// Limit of the connections of one address at a time.
const CONNECTIONS_PER_PEER: usize = 4;

/// The limits of a listener's state, and of its work for unproven peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub half_open: usize,
    /// Limit of the length of a datagram that begins a handshake.
    pub hello_bytes: usize,
    pub established: usize,
    /// How long a connection may be idle.
    pub idle: Duration,
    /// Bytes sent to unproven addresses beyond three times the bytes received from them. With an empty budget, a longer
    /// first flight is sent only when the client repeats its ClientHello.
    pub reflection: Budget,
    /// Public-key operations that ClientHellos of unproven clients cause.
    pub operations: Budget,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            half_open: 4_096,
            hello_bytes: 1_024,
            established: 65_536,
            idle: Duration::from_secs(30 * 60),
            reflection: Budget::per_second(2 * 1024 * 1024, 64 * 1024),
            operations: Budget::per_second(1_024, 128),
        }
    }
}

/// An event of a connection, or of a handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenerEvent<A> {
    pub address: A,
    /// The connection. Before [`Event::Established`] it names the handshake.
    pub connection: ConnectionId,
    pub event: Event,
}

/// Counts of requests that a listener did not serve because a budget was used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Withheld {
    /// Datagrams that were not sent ([`Limits::reflection`]).
    pub datagrams: u64,
    /// ClientHellos that were dropped ([`Limits::operations`]).
    pub hellos: u64,
}

/// A server of many peers, which are identified by their address `A`.
pub struct Listener<A, P: Provider> {
    config: Arc<ServerConfig<P>>,
    limits: Limits,
    peers: HashMap<A, Entry<P>>,
    /// Handshakes in progress by age, which is also the order of their deadlines.
    half_open: BTreeMap<ConnectionId, A>,
    succeeded: BTreeSet<ConnectionId>,
    connections: HashMap<ConnectionId, Held<A>>,
    /// Connections by the time at which their idle time may end. At this time the listener checks whether they have
    /// received something since.
    idle: BTreeSet<(Duration, ConnectionId)>,
    next_id: u64,
    reflection: Bucket,
    operations: Bucket,
    withheld: Withheld,
    outgoing: VecDeque<(A, Vec<u8>)>,
    events: VecDeque<ListenerEvent<A>>,
}

struct Entry<P: Provider> {
    peer: Peer<P>,
    /// Whether the address is proven: a peer there receives datagrams.
    proven: bool,
    received_bytes: u64,
    sent_bytes: u64,
    charged_bytes: u64,
}

/// A connection's entry.
struct Held<A> {
    address: A,
    /// Its time in `Listener::idle`.
    due: Duration,
}

impl<A: Clone + Eq + Hash, P: Provider> Listener<A, P> {
    /// A listener without peers.
    pub fn new(config: Arc<ServerConfig<P>>, limits: Limits) -> Self {
        Self {
            config,
            limits,
            peers: HashMap::new(),
            half_open: BTreeMap::new(),
            succeeded: BTreeSet::new(),
            connections: HashMap::new(),
            idle: BTreeSet::new(),
            next_id: 0,
            reflection: Bucket::new(limits.reflection),
            operations: Bucket::new(limits.operations),
            withheld: Withheld::default(),
            outgoing: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Processes a datagram from `address`.
    pub fn handle_input(&mut self, cx: &mut Context<'_, P>, address: A, datagram: &[u8]) {
        let now = cx.now.elapsed;
        let hello = leading_hello(datagram);
        if hello.is_some() && datagram.len() > self.limits.hello_bytes {
            return;
        }
        match (&hello, self.peers.get(&address)) {
            (None, None) => return self.answer_unknown(now, address, datagram),
            (Some(hello), Some(entry)) if entry.peer.knows(hello) => {}
            (Some(_), _) => self.make_room(now),
            (None, Some(_)) => {}
        }
        let entry = self.peers.entry(address.clone()).or_insert_with(|| Entry {
            peer: Peer::new(Arc::clone(&self.config), CONNECTIONS_PER_PEER),
            proven: false,
            received_bytes: 0,
            sent_bytes: 0,
            charged_bytes: 0,
        });
        entry.received_bytes = entry.received_bytes.saturating_add(datagram.len() as u64);
        let operations = Some((&mut self.operations, &mut self.withheld.hellos));
        entry.peer.handle_input(cx, &mut Shared { next_id: &mut self.next_id, operations }, datagram);
        self.collect(now, &address);
    }

    /// Responds to a datagram from an unknown address with the alert no_connection, within the budget of bytes.
    fn answer_unknown(&mut self, now: Duration, address: A, datagram: &[u8]) {
        let first = Records::new(datagram).next().and_then(Result::ok);
        let Some(answer) = first.and_then(|record| no_connection_alert(&record)) else { return };
        let excess = (answer.len() as u64).saturating_sub(AMPLIFICATION * datagram.len() as u64);
        if self.reflection.take(excess, now) {
            self.outgoing.push_back((address, answer));
        } else {
            self.withheld.datagrams += 1;
        }
    }

    /// Makes room for another handshake: drops handshakes that have succeeded, then the oldest.
    fn make_room(&mut self, now: Duration) {
        while self.half_open.len() >= self.limits.half_open.max(1) {
            let oldest = self.half_open.first_key_value().map(|(id, _)| *id);
            let Some(id) = self.succeeded.first().copied().or(oldest) else { break };
            let Some(address) = self.half_open.get(&id).cloned() else { break };
            if let Some(entry) = self.peers.get_mut(&address) {
                entry.peer.drop_attempt(id);
            }
            self.collect(now, &address);
        }
    }

    /// Collects a peer's datagrams and events, and records the changes of its handshakes and connections.
    fn collect(&mut self, now: Duration, address: &A) {
        let Some(entry) = self.peers.get_mut(address) else { return };
        for change in core::mem::take(&mut entry.peer.changes) {
            match change {
                Change::AttemptBegun(id) => {
                    self.half_open.insert(id, address.clone());
                }
                Change::AttemptSucceeded(id, costly) => {
                    self.succeeded.insert(id);
                    self.operations.give_back(costly.into());
                }
                Change::AttemptEnded(id) => {
                    self.half_open.remove(&id);
                    self.succeeded.remove(&id);
                }
                Change::ConnectionOpened(id) => {
                    entry.proven = true;
                    self.reflection.give_back(core::mem::take(&mut entry.charged_bytes));
                    let due = now.saturating_add(self.limits.idle);
                    self.connections.insert(id, Held { address: address.clone(), due });
                    self.idle.insert((due, id));
                }
                Change::ConnectionClosed(id) => {
                    if let Some(held) = self.connections.remove(&id) {
                        self.idle.remove(&(held.due, id));
                    }
                }
            }
        }
        for datagram in entry.peer.datagrams.drain(..) {
            if !entry.proven {
                let bytes = datagram.len() as u64;
                let free = (AMPLIFICATION * entry.received_bytes).saturating_sub(entry.sent_bytes);
                let excess = bytes.saturating_sub(free);
                if !self.reflection.take(excess, now) {
                    self.withheld.datagrams += 1;
                    continue;
                }
                // Bytes from the budget do not count towards the free bytes.
                entry.sent_bytes += bytes - excess;
                entry.charged_bytes += excess;
            }
            self.outgoing.push_back((address.clone(), datagram));
        }
        for (connection, event) in entry.peer.events.drain(..) {
            self.events.push_back(ListenerEvent { address: address.clone(), connection, event });
        }
        if entry.peer.is_idle() {
            self.peers.remove(address);
        }
        while self.connections.len() > self.limits.established.max(1) {
            let Some((due, id)) = self.idle.pop_first() else { break };
            if !self.postpone(due, id) {
                self.drop_connection(now, id, CloseReason::Evicted);
            }
        }
    }

    /// Postpones a due connection if it has received something since its time was set. False if it has not.
    fn postpone(&mut self, due: Duration, id: ConnectionId) -> bool {
        let Some(held) = self.connections.get_mut(&id) else { return true };
        let connection = self.peers.get(&held.address).and_then(|entry| entry.peer.connection(id));
        let last_input_at = connection.map(|connection| connection.last_input_at);
        let next = last_input_at.map_or(due, |last_input_at| last_input_at.saturating_add(self.limits.idle));
        if next > due {
            held.due = next;
            self.idle.insert((next, id));
        }
        next > due
    }

    fn drop_connection(&mut self, now: Duration, id: ConnectionId, reason: CloseReason) {
        let Some(held) = self.connections.remove(&id) else { return };
        if let Some(entry) = self.peers.get_mut(&held.address) {
            entry.peer.drop_connection(id, reason);
        }
        self.collect(now, &held.address);
    }

    /// Must be called at the time of [`poll_timeout`](Self::poll_timeout). An earlier call has no effect.
    pub fn handle_timeout(&mut self, cx: &mut Context<'_, P>) {
        let now = cx.now.elapsed;
        while let Some((_, address)) = self.half_open.first_key_value() {
            let address = address.clone();
            let Some(entry) = self.peers.get_mut(&address) else { break };
            if entry.peer.poll_timeout().is_none_or(|deadline| deadline > now) {
                break;
            }
            entry.peer.handle_timeout(now);
            self.collect(now, &address);
        }
        while let Some((due, id)) = self.idle.first().copied().filter(|(due, _)| *due <= now) {
            self.idle.remove(&(due, id));
            if !self.postpone(due, id) {
                self.drop_connection(now, id, CloseReason::Idle);
            }
        }
    }

    /// The time at which to call [`handle_timeout`](Self::handle_timeout); `None`: never.
    pub fn poll_timeout(&self) -> Option<Duration> {
        let oldest = self
            .half_open
            .first_key_value()
            .and_then(|(_, address)| self.peers.get(address).and_then(|entry| entry.peer.poll_timeout()));
        let silent = self.idle.first().map(|(due, _)| *due);
        [oldest, silent].into_iter().flatten().min()
    }

    /// The next datagram to send, and its receiver.
    pub fn poll_transmit(&mut self) -> Option<(A, Vec<u8>)> {
        self.outgoing.pop_front()
    }

    /// The next event, with its address and connection.
    pub fn poll_event(&mut self) -> Option<ListenerEvent<A>> {
        self.events.pop_front()
    }

    /// Sends data on a connection. Each call is one record in one datagram, which may get lost.
    pub fn write(
        &mut self,
        cx: &mut Context<'_, P>,
        connection: ConnectionId,
        data: &[u8],
    ) -> Result<(), WriteError> {
        let held = self.connections.get(&connection).ok_or(WriteError::NotOpen)?;
        let address = held.address.clone();
        let entry = self.peers.get_mut(&address).ok_or(WriteError::NotOpen)?;
        let written = entry.peer.write(cx, connection, data);
        self.collect(cx.now.elapsed, &address);
        written
    }

    /// Closes a connection, and notifies its peer.
    pub fn close(&mut self, cx: &mut Context<'_, P>, connection: ConnectionId, close: Close) {
        let Some(held) = self.connections.get(&connection) else { return };
        let address = held.address.clone();
        if let Some(entry) = self.peers.get_mut(&address) {
            entry.peer.close(cx, connection, close);
        }
        self.collect(cx.now.elapsed, &address);
    }

    /// The address of a connection's peer.
    pub fn address(&self, connection: ConnectionId) -> Option<&A> {
        self.connections.get(&connection).map(|held| &held.address)
    }

    /// Number of handshakes that are in progress, or kept after they have succeeded.
    pub fn half_open(&self) -> usize {
        self.half_open.len()
    }

    /// Number of connections.
    pub fn established(&self) -> usize {
        self.connections.len()
    }

    /// Counts of what was not served because a budget was used up.
    pub fn withheld(&self) -> Withheld {
        self.withheld
    }

    /// Bytes in use for peers that have handshakes but no connection, without the allocator's overhead.
    pub fn half_open_bytes(&self) -> usize {
        let peers = self.peers.values().filter(|entry| !entry.peer.has_connections());
        peers.map(|entry| entry.peer.memory_bytes() + Self::PEER_BYTES).sum()
    }

    const PEER_BYTES: usize = size_of::<(A, Entry<P>)>() - size_of::<Peer<P>>()
        + size_of::<(ConnectionId, A)>()
        + size_of::<ConnectionId>();

    /// Upper bound of the bytes in use for handshakes in progress. Each has its peer's entry, two copies of its first
    /// datagram (the record and the message), three copies of the server's flight (the datagram, the messages, and the
    /// unsent part), and messages that the peer sends before their turn.
    pub fn half_open_bound_bytes(&self) -> usize {
        let flight = 256 + self.config.longest_identity_bytes();
        let early = HELD_BYTES + EARLY_BYTES;
        let peer =
            Self::PEER_BYTES + Peer::<P>::FIXED_BYTES + 2 * self.limits.hello_bytes + 3 * flight + early;
        self.limits.half_open.max(1) * peer
    }
}
