//! A server of many peers, with a bound on what those who have proved nothing can make it hold.
//!
//! WTLS has no cookies: a server must remember a peer from its first datagram on, and anybody can
//! send first datagrams from addresses that are not theirs. So the peers in a handshake, the
//! *half-open* ones, live in a table of fixed size ([`Limits::half_open`]) in order of arrival. When
//! it is full, the oldest is forgotten. A client that answers within the time in which the table
//! fills gets in, however long the flood has lasted: with the default of 4,096 places, within 400 ms
//! under 10,000 first datagrams a second. One that is too slow may try again.
//!
//! * A half-open peer is forgotten after [`ServerConfig::handshake_timeout`], whatever it sends.
//! * First datagrams longer than [`Limits::hello_bytes`] are dropped unread.
//! * Hence half-open peers hold at most [`Listener::half_open_bound_bytes`].
//! * Established peers have a table of their own ([`Limits::established`]): a flood of beginners
//!   throws none of them out, and a client that holds its session is not kept waiting by them.
//!   When that one is full, the peer that was silent longest is forgotten.

use crate::config::ServerConfig;
use crate::connection::{Close, EARLY_BYTES};
use crate::context::Context;
use crate::crypto::Provider;
use crate::error::SendError;
use crate::event::Event;
use crate::inbox::HELD_BYTES;
use crate::record::Records;
use crate::server::{ServerConnection, answer_stranger, leading_hello};
use core::hash::Hash;
use core::time::Duration;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

/// How much a listener holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Peers in a handshake.
    pub half_open: usize,
    /// The longest datagram that begins a handshake.
    pub hello_bytes: usize,
    /// Peers with a connection.
    pub established: usize,
    /// How long a connection may be silent.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { half_open: 4_096, hello_bytes: 1_024, established: 65_536, idle: Duration::from_secs(30 * 60) }
    }
}

/// A server of many peers, who are told apart by their address `A`.
pub struct Listener<A, P: Provider> {
    config: Arc<ServerConfig<P>>,
    limits: Limits,
    peers: HashMap<A, Peer<P>>,
    /// Half-open peers by the order in which they came.
    half_open: BTreeMap<u64, A>,
    /// Established peers by the order in which they were last heard.
    established: BTreeMap<u64, A>,
    next_order: u64,
    outgoing: VecDeque<(A, Vec<u8>)>,
    events: VecDeque<(A, Event)>,
}

struct Peer<P: Provider> {
    connection: ServerConnection<P>,
    standing: Standing,
    order: u64,
    heard: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    HalfOpen,
    Established,
}

impl<A: Clone + Eq + Hash, P: Provider> Listener<A, P> {
    /// Waits for peers.
    pub fn new(config: Arc<ServerConfig<P>>, limits: Limits) -> Self {
        Self {
            config,
            limits,
            peers: HashMap::new(),
            half_open: BTreeMap::new(),
            established: BTreeMap::new(),
            next_order: 0,
            outgoing: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Takes a datagram from `address`.
    pub fn handle_datagram(&mut self, cx: &mut Context<'_, P>, address: A, datagram: &[u8]) {
        let begins = leading_hello(datagram).is_some();
        if begins && datagram.len() > self.limits.hello_bytes {
            return;
        }
        if !self.peers.contains_key(&address) {
            if !begins {
                let first = Records::new(datagram).next().and_then(Result::ok);
                let answer = first.and_then(|record| answer_stranger(&record));
                self.outgoing.extend(answer.map(|datagram| (address, datagram)));
                return;
            }
            self.admit(&address, cx.now.elapsed);
        }
        if let Some(peer) = self.peers.get_mut(&address) {
            peer.connection.handle_datagram(cx, datagram);
            peer.heard = cx.now.elapsed;
            self.collect(&address);
        }
    }

    /// Gives a newcomer the place of the oldest half-open peer, if there is no other.
    fn admit(&mut self, address: &A, now: Duration) {
        while self.half_open.len() >= self.limits.half_open.max(1) {
            let Some((_, oldest)) = self.half_open.pop_first() else { break };
            self.peers.remove(&oldest);
        }
        let order = self.next_order();
        self.half_open.insert(order, address.clone());
        let connection = ServerConnection::new(Arc::clone(&self.config));
        let peer = Peer { connection, standing: Standing::HalfOpen, order, heard: now };
        self.peers.insert(address.clone(), peer);
    }

    fn next_order(&mut self) -> u64 {
        self.next_order += 1;
        self.next_order
    }

    /// Takes what a peer's connection has to say, and puts the peer where it now belongs.
    fn collect(&mut self, address: &A) {
        let order = self.next_order();
        let Some(peer) = self.peers.get_mut(address) else { return };
        while let Some(datagram) = peer.connection.poll_transmit() {
            self.outgoing.push_back((address.clone(), datagram));
        }
        while let Some(event) = peer.connection.poll_event() {
            self.events.push_back((address.clone(), event));
        }
        if peer.connection.is_closed() || peer.connection.is_idle() {
            return self.forget(address);
        }
        if peer.connection.is_open() {
            match peer.standing {
                Standing::HalfOpen => self.half_open.remove(&peer.order),
                Standing::Established => self.established.remove(&peer.order),
            };
            peer.standing = Standing::Established;
            peer.order = order;
            self.established.insert(order, address.clone());
            while self.established.len() > self.limits.established.max(1) {
                let Some((_, silent)) = self.established.pop_first() else { break };
                self.peers.remove(&silent);
            }
        }
    }

    fn forget(&mut self, address: &A) {
        if let Some(peer) = self.peers.remove(address) {
            match peer.standing {
                Standing::HalfOpen => self.half_open.remove(&peer.order),
                Standing::Established => self.established.remove(&peer.order),
            };
        }
    }

    /// To be called when the time of [`poll_timeout`](Self::poll_timeout) has come. Too early does
    /// no harm.
    pub fn handle_timeout(&mut self, cx: &mut Context<'_, P>) {
        let now = cx.now.elapsed;
        // Both tables are in order of time, so only those whose time has come are looked at.
        while let Some((_, address)) = self.half_open.first_key_value() {
            let address = address.clone();
            let Some(peer) = self.peers.get_mut(&address) else { break };
            if peer.connection.poll_timeout().is_none_or(|deadline| deadline > now) {
                break;
            }
            peer.connection.handle_timeout(cx);
            self.collect(&address);
        }
        while let Some((_, address)) = self.established.first_key_value() {
            let address = address.clone();
            let peer = self.peers.get(&address);
            if peer.is_some_and(|peer| now < peer.heard.saturating_add(self.limits.idle)) {
                break;
            }
            self.forget(&address);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called.
    pub fn poll_timeout(&self) -> Option<Duration> {
        let oldest = self
            .half_open
            .first_key_value()
            .and_then(|(_, address)| self.peers.get(address).and_then(|peer| peer.connection.poll_timeout()));
        let silent = self.established.first_key_value().and_then(|(_, address)| {
            self.peers.get(address).map(|peer| peer.heard.saturating_add(self.limits.idle))
        });
        [oldest, silent].into_iter().flatten().min()
    }

    /// The next datagram, and for whom.
    pub fn poll_transmit(&mut self) -> Option<(A, Vec<u8>)> {
        self.outgoing.pop_front()
    }

    /// The next thing that happened, and with whom.
    pub fn poll_event(&mut self) -> Option<(A, Event)> {
        self.events.pop_front()
    }

    /// Sends data to a peer. Each call is one record in one datagram, which may get lost.
    pub fn send(&mut self, cx: &mut Context<'_, P>, address: &A, data: &[u8]) -> Result<(), SendError> {
        let peer = self.peers.get_mut(address).ok_or(SendError::NotOpen)?;
        let sent = peer.connection.send(cx, data);
        self.collect(address);
        sent
    }

    /// Tells a peer that this is the end.
    pub fn close(&mut self, cx: &mut Context<'_, P>, address: &A, close: Close) {
        if let Some(peer) = self.peers.get_mut(address) {
            peer.connection.close(cx, close);
            self.collect(address);
        }
    }

    /// How many peers are in a handshake.
    pub fn half_open(&self) -> usize {
        self.half_open.len()
    }

    /// How many peers have a connection.
    pub fn established(&self) -> usize {
        self.established.len()
    }

    /// Bytes held for half-open peers now, to within what the allocator adds.
    pub fn half_open_bytes(&self) -> usize {
        let peers = self.half_open.values().filter_map(|address| self.peers.get(address));
        peers.map(|peer| peer.connection.memory_bytes() + Self::PEER_BYTES).sum()
    }

    /// The entries of a peer in our own tables.
    const PEER_BYTES: usize = size_of::<(A, Peer<P>)>() + size_of::<(u64, A)>();

    /// The most that half-open peers can hold: each its entry, three copies of its first datagram
    /// (the datagram, its record and the message), two of our flight, and what it may send ahead of
    /// its turn.
    pub fn half_open_bound_bytes(&self) -> usize {
        let flight = 256 + self.config.longest_identity_bytes();
        let early = HELD_BYTES + EARLY_BYTES;
        let peer = Self::PEER_BYTES
            + ServerConnection::<P>::FIXED_BYTES
            + 3 * self.limits.hello_bytes
            + 2 * flight
            + early;
        self.limits.half_open.max(1) * peer
    }
}
