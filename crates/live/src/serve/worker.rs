//! A thread that serves streams: one poll, one table of connections, and limits of the state and work that peers can
//! cause.
//!
//! Readiness is reported once (epoll's edge trigger), so a connection stays in the queue until it would block. Each
//! iteration of the loop accepts and processes a limited number of connections, then checks sockets and deadlines
//! again. Only the poll blocks.

use super::connection::{Connection, Progress, WorkerContext};
use super::parts::{Parts, ShutdownSignal};
use super::tally::cause;
use super::timers::Timers;
use crate::maybe_recorded::MaybeRecorded;
use crate::stamped;
use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token, Waker};
use shakedown_ossl::memory;
use shakedown_stacks::Acceptor;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

const LISTENER: Token = Token(0);
const WAKER: Token = Token(1);
/// Tokens of connections begin here.
const FIRST: usize = 2;

/// Events read from the system at once.
const EVENTS: usize = 1_024;
/// Connections accepted, and connections processed, in one iteration of the loop.
const ACCEPTS_PER_TURN: usize = 16;
const TURNS_PER_TURN: usize = 64;
/// When the table is full, the oldest handshake in progress is dropped only if at least one connection in
/// `HANDSHAKES_SHARE` is a handshake in progress.
const HANDSHAKES_SHARE: usize = 4;
const INPUT_BYTES: usize = 32 * 1024;
/// After a burst of at least `BURST` connections, free memory is returned to the system when 1 / `BURST_SHARE` of them
/// are left.
const BURST: usize = 256;
const BURST_SHARE: usize = 4;
/// How long accepting pauses when there are no descriptors or no memory, unless a connection ends earlier.
const PAUSE: Duration = Duration::from_millis(100);

pub struct Worker {
    parts: Parts,
    acceptor: Arc<dyn Acceptor>,
    max_connections: usize,
    poll: Poll,
    listener: Option<TcpListener>,
    connections: Slots,
    ready: VecDeque<usize>,
    timers: Timers,
    /// Handshakes in progress in the order in which they began.
    handshakes: BTreeMap<u64, usize>,
    next_place: u64,
    accept: Accept,
    input: Vec<u8>,
    output: Vec<u8>,
    /// When the remaining connections are closed, after a shutdown request.
    drain_until: Option<Duration>,
    /// The largest number of open connections since memory was last returned to the system.
    most_connections: usize,
}

/// Whether there may be connections to accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accept {
    /// The system has to report a connection first.
    Wait,
    /// A connection may wait to be accepted.
    Ready,
    /// A connection may wait, but the table is full until another one ends; checked again at this time.
    Paused(Duration),
}

/// Connections by number; numbers are reused.
#[derive(Default)]
struct Slots {
    slots: Vec<Option<Box<Connection>>>,
    free: Vec<usize>,
}

impl Slots {
    fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The number that the next connection gets.
    fn next(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        })
    }

    fn put(&mut self, key: usize, connection: Connection) {
        self.slots[key] = Some(Box::new(connection));
    }

    /// Frees a number, and returns its connection.
    fn remove(&mut self, key: usize) -> Option<Box<Connection>> {
        let connection = self.slots.get_mut(key)?.take();
        self.free.push(key);
        connection
    }

    fn get(&mut self, key: usize) -> Option<&mut Connection> {
        self.slots.get_mut(key)?.as_deref_mut()
    }

    fn keys(&self) -> Vec<usize> {
        let taken = |(key, slot): (usize, &Option<_>)| slot.is_some().then_some(key);
        self.slots.iter().enumerate().filter_map(taken).collect()
    }
}

impl Worker {
    /// A worker of a listening socket, and its waker.
    pub fn new(
        parts: Parts,
        acceptor: Arc<dyn Acceptor>,
        max_connections: usize,
        mut listener: TcpListener,
    ) -> io::Result<(Self, Waker)> {
        let poll = Poll::new()?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        if parts.config.queue_times {
            stamped::enable(&listener)?;
        }
        let worker = Self {
            parts,
            acceptor,
            max_connections,
            poll,
            listener: Some(listener),
            connections: Slots::default(),
            ready: VecDeque::new(),
            timers: Timers::default(),
            handshakes: BTreeMap::new(),
            next_place: 0,
            accept: Accept::Ready,
            input: vec![0; INPUT_BYTES],
            output: Vec::new(),
            drain_until: None,
            most_connections: 0,
        };
        Ok((worker, waker))
    }

    /// Serves until the stop signal, and until all connections have ended after it.
    pub fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS);
        let timed = self.parts.config.queue_times;
        loop {
            let timeout = self.poll_timeout();
            if timed && timeout != Some(Duration::ZERO) {
                self.parts.tally.sleeps(self.parts.epoch.elapsed());
            }
            match self.poll.poll(&mut events, timeout) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            if timed {
                self.parts.tally.wakes(self.parts.epoch.elapsed());
            }
            for event in &events {
                match event.token() {
                    LISTENER => {
                        if self.accept == Accept::Wait {
                            self.accept = Accept::Ready;
                        }
                    }
                    WAKER => {}
                    Token(token) => {
                        let key = token - FIRST;
                        let Some(connection) = self.connections.get(key) else { continue };
                        connection.readable |= event.is_readable() || event.is_read_closed();
                        connection.ending |= event.is_read_closed() || event.is_error();
                        self.enqueue(key);
                    }
                }
            }
            self.begin_shutdown();
            self.accept();
            for _ in 0..TURNS_PER_TURN.min(self.ready.len()) {
                if let Some(key) = self.ready.pop_front() {
                    self.turn(key);
                }
            }
            self.expire();
            self.release_memory();
            if self.is_done() {
                break;
            }
        }
        for key in self.connections.keys() {
            let handshaking = self.connections.get(key).is_some_and(|connection| connection.is_handshaking());
            let established = self.connections.get(key).is_some_and(|connection| connection.is_established());
            if handshaking {
                self.parts.tally.fail(cause::STOPPED);
            } else if established {
                self.parts.tally.cut.add(1);
            }
            self.remove(key);
        }
        Ok(())
    }

    /// Returns memory to the system after a burst; the allocator itself would keep it.
    fn release_memory(&mut self) {
        let open = self.connections.len();
        self.most_connections = self.most_connections.max(open);
        if self.most_connections >= BURST && open <= self.most_connections / BURST_SHARE {
            memory::release_free();
            self.most_connections = open;
        }
    }

    /// How long the poll may wait.
    fn poll_timeout(&self) -> Option<Duration> {
        if !self.ready.is_empty() || self.accept == Accept::Ready {
            return Some(Duration::ZERO);
        }
        let paused = match self.accept {
            Accept::Paused(until) => Some(until),
            _ => None,
        };
        let next = [self.timers.next(), paused, self.drain_until].into_iter().flatten().min()?;
        Some(next.saturating_sub(self.parts.epoch.elapsed()))
    }

    fn is_done(&self) -> bool {
        match self.drain_until {
            _ if self.parts.shutdown.get() >= ShutdownSignal::STOP => true,
            None => false,
            Some(until) => {
                self.connections.len() == 0 && self.listener.is_none() || self.parts.epoch.elapsed() >= until
            }
        }
    }

    /// Begins the shutdown if it was requested and has not begun.
    fn begin_shutdown(&mut self) {
        if self.parts.shutdown.get() < ShutdownSignal::DRAIN || self.drain_until.is_some() {
            return;
        }
        self.drain_until = Some(self.parts.epoch.elapsed() + self.parts.config.drain_timeout);
        // Clients in the accept queue already have a connection.
        self.accept = Accept::Ready;
        for key in self.connections.keys() {
            self.with(key, |connection, context| connection.drain(context));
        }
    }

    fn enqueue(&mut self, key: usize) {
        if let Some(connection) = self.connections.get(key)
            && !std::mem::replace(&mut connection.queued, true)
        {
            self.ready.push_back(key);
        }
    }

    fn accept(&mut self) {
        if let Accept::Paused(until) = self.accept
            && self.parts.epoch.elapsed() >= until
        {
            self.accept = Accept::Ready;
        }
        for _ in 0..ACCEPTS_PER_TURN {
            if self.accept != Accept::Ready {
                return;
            }
            if self.connections.len() >= self.max_connections && !self.make_room() {
                self.pause();
                return;
            }
            match self.listener.as_ref().map(TcpListener::accept) {
                Some(Ok((stream, peer))) => self.admit(stream, peer),
                Some(Err(error)) => self.refused(&error),
                None => self.accept = Accept::Wait,
            }
        }
    }

    fn refused(&mut self, error: &io::Error) {
        match error.kind() {
            io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => {}
            io::ErrorKind::WouldBlock => {
                self.accept = Accept::Wait;
                if self.drain_until.is_some() {
                    self.listener = None;
                }
            }
            // No file descriptors or no memory: a connection has to end first.
            _ => {
                if !self.make_room() {
                    self.pause();
                }
            }
        }
    }

    fn pause(&mut self) {
        self.parts.tally.pauses.add(1);
        self.accept = Accept::Paused(self.parts.epoch.elapsed() + PAUSE);
    }

    /// Drops the oldest handshake in progress if handshakes in progress are a large part of the table. Returns false
    /// otherwise: then the few handshakes in progress may continue.
    fn make_room(&mut self) -> bool {
        if self.handshakes.len() < self.connections.len().div_ceil(HANDSHAKES_SHARE) {
            return false;
        }
        self.give_up_oldest()
    }

    fn give_up_oldest(&mut self) -> bool {
        let Some(key) = self.handshakes.first_key_value().map(|(_, key)| *key) else { return false };
        self.parts.tally.fail(cause::TOO_MANY_HANDSHAKES);
        self.remove(key);
        true
    }

    fn admit(&mut self, stream: mio::net::TcpStream, peer: SocketAddr) {
        self.parts.tally.accepted.add(1);
        while self.handshakes.len() >= self.parts.max_handshakes && self.give_up_oldest() {}
        let Ok(endpoint) = self.acceptor.accept() else {
            self.parts.tally.fail(cause::NO_ENDPOINT);
            return;
        };
        let sampler = self.parts.sampler.as_ref().filter(|sampler| sampler.samples_next());
        let endpoint = MaybeRecorded::new(endpoint, sampler.map(|sampler| (Arc::clone(sampler), peer)));
        let now = self.parts.epoch.elapsed();
        let key = self.connections.next();
        let mut connection = Connection::new(stream, Token(FIRST + key), endpoint, now, &self.parts.config);
        if connection.register(self.poll.registry()).is_err() {
            self.connections.remove(key);
            self.parts.tally.fail(cause::NO_ENDPOINT);
            return;
        }
        connection.place = self.next_place;
        self.handshakes.insert(self.next_place, key);
        self.next_place += 1;
        let due = connection.due;
        self.timers.set(key, &mut connection.deadline, due);
        self.connections.put(key, connection);
        self.parts.tally.open.add(1);
        self.parts.tally.handshaking.add(1);
    }

    fn turn(&mut self, key: usize) {
        self.with(key, |connection, context| {
            connection.queued = false;
            connection.turn(context)
        });
    }

    fn close(&mut self, key: usize) {
        self.with(key, |connection, context| connection.close(context));
    }

    fn with(&mut self, key: usize, work: impl FnOnce(&mut Connection, &mut WorkerContext<'_>) -> Progress) {
        let Some(connection) = self.connections.get(key) else { return };
        let mut context = WorkerContext {
            epoch: self.parts.epoch,
            config: &self.parts.config,
            tally: &self.parts.tally,
            registry: self.poll.registry(),
            input: &mut self.input,
            output: &mut self.output,
            draining: self.drain_until.is_some(),
        };
        let handshaking = connection.is_handshaking();
        let progress = work(connection, &mut context);
        if handshaking && !connection.is_handshaking() {
            self.handshakes.remove(&connection.place);
            self.parts.tally.handshaking.remove();
        }
        let due = connection.due;
        self.timers.set(key, &mut connection.deadline, due);
        match progress {
            Progress::Wait => {}
            Progress::Again => self.enqueue(key),
            Progress::Over => self.remove(key),
        }
    }

    fn remove(&mut self, key: usize) {
        let Some(connection) = self.connections.remove(key) else { return };
        if connection.is_handshaking() {
            self.handshakes.remove(&connection.place);
            self.parts.tally.handshaking.remove();
        }
        self.parts.tally.open.remove();
        if matches!(self.accept, Accept::Paused(_)) {
            self.accept = Accept::Ready;
        }
    }

    /// Ends connections whose deadline has passed.
    fn expire(&mut self) {
        let now = self.parts.epoch.elapsed();
        while let Some(entry) = self.timers.pop(now) {
            let Some(connection) = self.connections.get(entry.1) else { continue };
            if !self.timers.check(entry, &mut connection.deadline, now) {
                continue;
            }
            if connection.is_handshaking() {
                self.parts.tally.fail(cause::TIMEOUT);
                self.remove(entry.1);
            } else if connection.is_idle() {
                self.parts.tally.idle_closed.add(1);
                self.close(entry.1);
            } else {
                // The peer does not read a response, complete its request, or close its side.
                if connection.is_established() {
                    self.parts.tally.idle_closed.add(1);
                }
                self.remove(entry.1);
            }
        }
    }
}
