//! A thread that serves datagrams: one socket, and the stack's listener, which limits the state of peers.

use super::config::PayloadWhen;
use super::parts::{Parts, ShutdownSignal};
use super::tally::{Queued, cause, lock};
use super::traces::HandshakeRecording;
use crate::stamped::{self, Stamped};
use mio::net::UdpSocket;
use mio::{Events, Interest, Poll, Token, Waker};
use shakedown_stacks::Listener;
use shakedown_trace::endpoint::{CloseReason, Event, Negotiated};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

const SOCKET: Token = Token(0);
const WAKER: Token = Token(1);

const READS_PER_TURN: usize = 64;
/// Longer than any UDP datagram.
const INPUT_BYTES: usize = 65_536;
const CHUNK_BYTES: u64 = 1_024;

static PAYLOAD: [u8; 1_024] = [b'.'; 1_024];

/// A handshake in progress; an attacker can begin any number of them.
struct Begun {
    place: u64,
    at: Duration,
    busy: Duration,
    queued: Queued,
    recording: Option<HandshakeRecording>,
}

pub struct DatagramWorker {
    parts: Parts,
    listener: Box<dyn Listener>,
    poll: Poll,
    socket: UdpSocket,
    readable: bool,
    /// A datagram that the socket has not accepted yet.
    unsent: Option<(SocketAddr, Vec<u8>)>,
    watches_writable: bool,
    begun: HashMap<SocketAddr, Begun>,
    /// The peers of `begun` in the order in which their handshakes began.
    order: BTreeMap<u64, SocketAddr>,
    next_place: u64,
    established: HashSet<SocketAddr>,
    /// The peer whose handshake the latest datagram completed.
    completed: Option<SocketAddr>,
    input: Vec<u8>,
    drain_until: Option<Duration>,
}

impl DatagramWorker {
    /// A worker of a socket, and its waker.
    pub fn new(
        parts: Parts,
        listener: Box<dyn Listener>,
        mut socket: UdpSocket,
    ) -> io::Result<(Self, Waker)> {
        let poll = Poll::new()?;
        poll.registry().register(&mut socket, SOCKET, Interest::READABLE)?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        if parts.config.queue_times {
            stamped::enable(&socket)?;
        }
        let worker = Self {
            parts,
            listener,
            poll,
            socket,
            readable: true,
            unsent: None,
            watches_writable: false,
            begun: HashMap::new(),
            order: BTreeMap::new(),
            next_place: 0,
            established: HashSet::new(),
            completed: None,
            input: vec![0; INPUT_BYTES],
            drain_until: None,
        };
        Ok((worker, waker))
    }

    /// Serves until the stop signal, and until all connections have ended after it.
    pub fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(8);
        let timed = self.parts.config.queue_times;
        loop {
            let timeout = self.poll_timeout();
            if timed && timeout != Some(Duration::ZERO) {
                self.parts.tally.sleeps(self.now());
            }
            match self.poll.poll(&mut events, timeout) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            if timed {
                self.parts.tally.wakes(self.now());
            }
            self.readable |= events.iter().any(|event| event.token() == SOCKET && event.is_readable());
            let shutdown = self.parts.shutdown.get();
            if shutdown >= ShutdownSignal::DRAIN && self.drain_until.is_none() {
                self.drain_until = Some(self.now() + self.parts.config.drain_timeout);
            }
            self.flush();
            for _ in 0..READS_PER_TURN {
                if !self.readable || self.unsent.is_some() {
                    break;
                }
                self.read();
            }
            let now = self.now();
            self.expire(now);
            if self.listener.poll_timeout().is_some_and(|due| due <= now) {
                self.listener.handle_timeout(now);
                self.settle();
            }
            let drained = self.drain_until.is_some_and(|until| self.begun.is_empty() || now >= until);
            if drained || shutdown >= ShutdownSignal::STOP {
                self.end(shutdown);
                return Ok(());
            }
        }
    }

    fn now(&self) -> Duration {
        self.parts.epoch.elapsed()
    }

    fn poll_timeout(&self) -> Option<Duration> {
        if self.readable && self.unsent.is_none() {
            return Some(Duration::ZERO);
        }
        let next = [self.listener.poll_timeout(), self.drain_until].into_iter().flatten().min()?;
        Some(next.saturating_sub(self.now()))
    }

    /// Closes all connections, and counts handshakes in progress as failed.
    fn end(&mut self, shutdown: u8) {
        let now = self.now();
        for _ in 0..self.begun.len() {
            self.parts.tally.fail(cause::STOPPED);
        }
        if shutdown >= ShutdownSignal::STOP {
            self.parts.tally.cut.add(self.established.len() as u64);
        }
        for peer in std::mem::take(&mut self.established) {
            self.listener.close(now, peer);
            self.flush();
        }
    }

    fn read(&mut self) {
        let taken_up = Instant::now();
        self.completed = None;
        let (bytes, peer, waited) = match self.receive() {
            Ok(Stamped { bytes, peer: Some(peer), waited }) => (bytes, peer, waited),
            Ok(Stamped { peer: None, .. }) => return,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.readable = false;
                return;
            }
            // ECONNREFUSED reports that one response could not be delivered; it does not affect the others.
            Err(_) => return,
        };
        self.parts.tally.received_bytes.add(bytes as u64);
        let known = self.begun.contains_key(&peer) || self.established.contains(&peer);
        if self.drain_until.is_some() && !known {
            return;
        }
        if !known {
            self.begin(peer);
        }
        let start = Instant::now();
        let now = start.duration_since(self.parts.epoch);
        let Self { listener, input, begun, .. } = self;
        let handshake = begun.get_mut(&peer);
        let mut work = || listener.handle_input(now, peer, &input[..bytes]);
        match handshake {
            Some(Begun { recording: Some(recording), .. }) => recording.received(bytes, work),
            _ => work(),
        }
        let mut queued = None;
        if let Some(handshake) = begun.get_mut(&peer) {
            handshake.busy += start.elapsed();
            queued = Some((handshake.place, handshake.queued));
        }
        self.settle();
        if let (Some((place, mut queued)), Some(waited)) = (queued, waited) {
            let at = taken_up.duration_since(self.parts.epoch);
            queued.message(place, at, waited, taken_up.elapsed(), &self.parts.tally);
            if let Some(handshake) = self.begun.get_mut(&peer) {
                handshake.queued = queued;
            }
            // The datagram may also have ended the connection, so `established` does not show this.
            if self.completed == Some(peer) {
                queued.handshake(&self.parts.tally);
            }
        }
    }

    fn receive(&mut self) -> io::Result<Stamped> {
        if self.parts.config.queue_times {
            return stamped::receive(&self.socket, &mut self.input);
        }
        let (bytes, peer) = self.socket.recv_from(&mut self.input)?;
        Ok(Stamped { bytes, peer: Some(peer), waited: None })
    }

    /// Adds a peer's handshake. When the limit is reached, the oldest is removed, as in the listener.
    fn begin(&mut self, peer: SocketAddr) {
        while self.begun.len() >= self.parts.max_handshakes {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            self.begun.remove(&oldest);
            self.parts.tally.handshaking.remove();
            self.parts.tally.fail(cause::TOO_MANY_HANDSHAKES);
        }
        let recording = self.parts.sampler.as_ref().and_then(|sampler| sampler.recording());
        let begun = Begun {
            place: self.next_place,
            at: self.now(),
            busy: Duration::ZERO,
            queued: Queued::default(),
            recording,
        };
        self.order.insert(self.next_place, peer);
        self.next_place += 1;
        self.begun.insert(peer, begun);
        self.parts.tally.handshaking.add(1);
    }

    fn forget(&mut self, peer: SocketAddr) -> Option<Begun> {
        let begun = self.begun.remove(&peer)?;
        self.order.remove(&begun.place);
        self.parts.tally.handshaking.remove();
        Some(begun)
    }

    /// Removes what has expired: datagrams that began no handshake, and handshakes that the listener has dropped.
    fn expire(&mut self, now: Duration) {
        while let Some((_, peer)) = self.order.first_key_value() {
            let peer = *peer;
            let begun_at = self.begun.get(&peer).map_or(Duration::ZERO, |begun| begun.at);
            if begun_at + self.parts.config.handshake_timeout > now {
                return;
            }
            self.forget(peer);
        }
    }

    /// Sends the listener's output and handles its events.
    fn settle(&mut self) {
        self.flush();
        while let Some((peer, event)) = self.listener.poll_event() {
            match event {
                Event::Established(negotiated) => self.establish(peer, &negotiated),
                Event::Data(_) => {
                    self.parts.tally.answers.add(1);
                    if self.parts.config.payload_when == PayloadWhen::Request {
                        self.send_payload(peer);
                    }
                }
                // The sender is not authenticated, so a valid datagram may still arrive.
                Event::Rejected(_) => {}
                Event::Closed(reason) => self.closed(peer, &reason),
            }
        }
        self.flush();
    }

    fn establish(&mut self, peer: SocketAddr, negotiated: &Negotiated) {
        let tally = Arc::clone(&self.parts.tally);
        let counter = if negotiated.resumed { &tally.resumed } else { &tally.full };
        counter.add(1);
        tally.accepted.add(1);
        self.completed = Some(peer);
        if self.established.insert(peer) {
            tally.open.add(1);
        }
        if let Some(begun) = self.forget(peer) {
            lock(&tally.handshakes).record(self.now().saturating_sub(begun.at));
            lock(&tally.busy).record(begun.busy);
            if let (Some(recording), Some(sampler)) = (begun.recording, &self.parts.sampler) {
                sampler.keep(recording.recording(), negotiated, peer, &tally);
            }
        }
        if self.parts.config.payload_when == PayloadWhen::Handshake {
            self.send_payload(peer);
        }
    }

    fn closed(&mut self, peer: SocketAddr, reason: &CloseReason) {
        let cause = cause_of(reason);
        let was_open = self.established.remove(&peer);
        if was_open {
            self.parts.tally.open.remove();
        }
        // Only connections are idle. A later connection from the same address may have removed it from `established`.
        if cause == cause::IDLE {
            self.parts.tally.idle_closed.add(1);
        } else if !was_open {
            self.forget(peer);
            self.parts.tally.fail(&cause);
        }
    }

    fn send_payload(&mut self, peer: SocketAddr) {
        let now = self.now();
        let mut left = self.parts.config.payload_bytes;
        while left > 0 {
            let bytes = left.min(CHUNK_BYTES);
            // `bytes` is at most a chunk.
            let chunk = &PAYLOAD[..usize::try_from(bytes).unwrap_or(PAYLOAD.len())];
            if self.listener.write(now, peer, chunk).is_err() {
                return;
            }
            left -= bytes;
            self.flush();
        }
    }

    /// Sends datagrams until there are none, or the socket would block.
    fn flush(&mut self) {
        loop {
            let Some((peer, datagram)) = self.unsent.take().or_else(|| self.next_datagram()) else { return };
            match self.socket.send_to(&datagram, peer) {
                Ok(bytes) => self.parts.tally.sent_bytes.add(bytes as u64),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.unsent = Some((peer, datagram));
                    if !std::mem::replace(&mut self.watches_writable, true) {
                        let interest = Interest::READABLE | Interest::WRITABLE;
                        // If this fails, the next datagram that arrives causes the flush.
                        let _ = self.poll.registry().reregister(&mut self.socket, SOCKET, interest);
                    }
                    return;
                }
                // Datagrams may be lost; those of a handshake are retransmitted.
                Err(_) => {}
            }
        }
    }

    fn next_datagram(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        let mut datagram = Vec::new();
        let now = self.now();
        let peer = self.listener.poll_transmit(now, &mut datagram)?;
        if let Some(Begun { recording: Some(recording), .. }) = self.begun.get_mut(&peer) {
            recording.sent(&datagram);
        }
        Some((peer, datagram))
    }
}

/// Cause of the end of a handshake or a connection.
fn cause_of(reason: &CloseReason) -> String {
    match reason {
        CloseReason::Local | CloseReason::Peer | CloseReason::Truncated => cause::CLOSED.into(),
        CloseReason::Failed(failure) => match failure.reason.as_str() {
            "the peer did not answer" => cause::TIMEOUT.into(),
            "nothing was received for too long" => cause::IDLE.into(),
            "displaced by another connection" => cause::TOO_MANY_HANDSHAKES.into(),
            _ => failure.alert.clone().unwrap_or_else(|| cause::PROTOCOL.into()),
        },
    }
}
