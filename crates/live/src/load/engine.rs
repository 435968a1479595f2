//! The event loop: starts connections that are due, advances those with events, ends those that time out.

use super::Progress;
use super::cause;
use super::client::Clients;
use super::config::Config;
use super::connection::{Connection, End, Exchange};
use super::error::LoadError;
use super::outcome::{Counts, Part, Tally};
use super::pace::Pace;
use super::sampling::Sampling;
use super::socket::Socket;
use super::starts::{Alarm, Start, Starts};
use super::target::Target;
use crate::maybe_recorded::MaybeRecorded;
use crate::socket::descriptor_limit;
use mio::{Events, Poll, Token};
use shakedown_link::{Probability, Purpose, Stream};
use shakedown_stacks::processor::thread_cpu;
use shakedown_trace::endpoint::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The alarm's token. A connection's token: its place in the slab (low 32 bits) and the place's generation (high).
const ALARM: Token = Token(usize::MAX);
/// Maximum number of starts between two polls, because each start builds a first flight.
const STARTS_A_TURN: usize = 16;
/// Maximum number of events per poll.
const EVENTS: usize = 1024;
/// Size of a read: a server's flight fits.
const CHUNK_BYTES: usize = 32 * 1024;
/// Maximum number of open connections, if descriptors allow it.
const MAX_OPEN: usize = 20_000;
/// Descriptors that are reserved for other uses.
const OTHER_DESCRIPTORS: u64 = 64;
/// Simultaneous connections while sessions are collected before a run.
const COLLECTING: usize = 8;
const REPORT_EVERY: Duration = Duration::from_millis(100);
/// Maximum sleep, and thus the maximum delay of a stop request.
const MAX_SLEEP: Duration = Duration::from_millis(100);
/// Time between the start of the load and the first connection that can be due.
const HEAD_START: Duration = Duration::from_millis(20);
/// Purpose of the random choice of connections that resume.
const RESUMPTION: Purpose = Purpose(301);

/// A place in the slab. Its generation prevents late events of one connection from reaching its successor.
#[derive(Default)]
struct Slot {
    generation: u32,
    connection: Option<Box<Connection>>,
}

pub struct Engine<'a> {
    config: &'a Config,
    target: &'a Target,
    clients: Clients,
    stopped: &'a AtomicBool,
    exchange: Exchange,
    poll: Poll,
    alarm: Alarm,
    begun: Instant,
    slots: Vec<Slot>,
    free: Vec<usize>,
    open: usize,
    max_open: usize,
    /// Deadlines of connections: time, place, generation.
    deadlines: BinaryHeap<Reverse<(Time, usize, u32)>>,
    buffer: Vec<u8>,
    sampling: Sampling,
    /// Earliest time of the run's first start.
    first_start: Time,
    tally: Tally,
}

fn system(what: &'static str) -> impl Fn(std::io::Error) -> LoadError {
    move |error| LoadError::System { what, error }
}

impl<'a> Engine<'a> {
    pub fn new(
        config: &'a Config,
        target: &'a Target,
        clients: Clients,
        stopped: &'a AtomicBool,
    ) -> Result<Self, LoadError> {
        let refused = system("set up the event loop");
        let poll = Poll::new().map_err(&refused)?;
        let begun = Instant::now();
        let alarm = Alarm::new(poll.registry(), ALARM, begun.elapsed()).map_err(&refused)?;
        // Timers then fire without the default slack of 50 us.
        // SAFETY: sets a number of this thread.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_usize, 0_usize, 0_usize, 0_usize) };
        let exchange = Exchange {
            request: config.request.clone().map(String::into_bytes),
            await_first_byte: config.await_first_byte,
            wants_session: config.resumption > 0.0,
            pace: Pace::new(config.slowdown, config.client_s.map(Duration::from_secs_f64)),
        };
        Ok(Self {
            config,
            target,
            clients,
            stopped,
            exchange,
            poll,
            alarm,
            begun,
            slots: Vec::new(),
            free: Vec::new(),
            open: 0,
            max_open: config.max_open.unwrap_or_else(descriptors).max(1),
            deadlines: BinaryHeap::new(),
            buffer: vec![0; CHUNK_BYTES],
            sampling: Sampling::NONE,
            first_start: Time::ZERO,
            tally: Tally::default(),
        })
    }

    /// Connects once to check the server, and collects sessions to resume. These connections are not counted.
    pub fn prepare(&mut self) -> Result<(), LoadError> {
        let mut met = self.visit(0..1)?;
        if met.completed == 0
            && met.failed.first().is_some_and(|cause| cause.starts_with(cause::CERTIFICATE))
            && self.clients.stop_checking()
        {
            met = self.visit(0..1)?;
        }
        if let (0, Some(cause)) = (met.completed, met.failed.first()) {
            let target = self.target.text.clone();
            return Err(LoadError::Unreachable { target, cause: cause.to_owned() });
        }
        let mut first = 1;
        while self.exchange.wants_session && first < self.clients.count() && !self.is_stopped() {
            let next = (first + COLLECTING).min(self.clients.count());
            self.visit(first..next)?;
            first = next;
        }
        Ok(())
    }

    /// Performs one full handshake with each of the clients.
    fn visit(&mut self, clients: std::ops::Range<usize>) -> Result<Counts, LoadError> {
        let now = self.now();
        let mut starts = Starts::closed(clients, now, now + Duration::from_nanos(1));
        self.turn_until_done(&mut starts, &mut || false, None, &mut |_| {})?;
        Ok(std::mem::take(&mut self.tally).counts)
    }

    #[allow(clippy::cast_precision_loss)] // starts are far fewer than 2^53
    pub fn load(mut self, report: &mut dyn FnMut(Progress)) -> Result<Part, LoadError> {
        let config = self.config;
        let planned = config.rate_per_s.map(|rate| rate * config.duration_s);
        let limit = config.max_starts.map(|most| most as f64);
        let expected = match (planned, limit) {
            (Some(planned), Some(limit)) => Some(planned.min(limit)),
            (planned, limit) => planned.or(limit),
        };
        self.sampling = Sampling::new(config.trace_count, expected, config.duration());
        let cpu_before = thread_cpu();
        let begun = self.now() + HEAD_START;
        self.first_start = begun;
        let mut starts = Starts::of(config, begun);
        let mut choices = Stream::of(config.seed, 0, RESUMPTION);
        let share = Probability::new(config.resumption).unwrap_or(Probability::NEVER);
        let mut resumes = || !share.is_never() && share.happens(&mut choices);
        self.turn_until_done(&mut starts, &mut resumes, Some(begun), report)?;
        let cpu = thread_cpu().saturating_sub(cpu_before);
        let elapsed = self.now().saturating_sub(begun);
        // A completed schedule counts with its full duration, including the time after its last start.
        let limited = config.max_starts.is_some_and(|most| self.tally.counts.planned >= most);
        let scheduled = config.rate_per_s.filter(|_| !limited && !self.is_stopped());
        let elapsed = scheduled.map_or(elapsed, |_| elapsed.max(config.duration()));
        let (elapsed_s, generator_cpu_s) = (elapsed.as_secs_f64(), cpu.as_secs_f64());
        Ok(Part {
            rate_per_s: config.rate_per_s,
            elapsed_s,
            generator_cpu_s,
            saturated_by: self.tally.saturated_by(elapsed_s, generator_cpu_s),
            checked: self.clients.checked,
            interrupted: self.is_stopped(),
            slowdown: self.exchange.pace.factor(),
            traces: self.tally.lines(&self.clients.suites, &self.clients.stack),
            counts: self.tally.counts,
        })
    }

    /// Runs the loop until all connections have been started and have ended.
    fn turn_until_done(
        &mut self,
        starts: &mut Starts,
        resumes: &mut dyn FnMut() -> bool,
        begun: Option<Time>,
        report: &mut dyn FnMut(Progress),
    ) -> Result<(), LoadError> {
        let mut events = Events::with_capacity(EVENTS);
        let mut reported = self.now();
        let last_start = begun.map(|begun| begun + self.config.duration());
        loop {
            let now = self.now();
            if self.is_stopped() {
                self.abandon();
                return Ok(());
            }
            let limit = self.config.max_starts.filter(|_| begun.is_some());
            let more = self.start_due(starts, resumes, limit, now)?;
            self.end_overdue(starts);
            let give_up = last_start.is_some_and(|last| now > last + self.config.timeout());
            if starts.next_at().is_none() && self.open == 0 || give_up {
                self.count_unstarted(starts, now);
                return Ok(());
            }
            let next_start = starts.next_at().filter(|_| self.open < self.max_open);
            // A slowed client's next step must not be rounded to the poll's milliseconds.
            let next_step =
                self.exchange.pace.factor().and_then(|_| self.deadlines.peek().map(|next| next.0.0));
            let wake_at = [next_start, next_step].into_iter().flatten().min();
            self.alarm.set(wake_at).map_err(system("set a timer"))?;
            let sleep = if more { Duration::ZERO } else { self.sleep() };
            match self.poll.poll(&mut events, Some(sleep)) {
                Err(error) if error.kind() != std::io::ErrorKind::Interrupted => {
                    return Err(LoadError::System { what: "wait for sockets", error });
                }
                _ => {}
            }
            for event in &events {
                if event.token() != ALARM {
                    let (place, generation) = places(event.token());
                    self.advance(place, generation, event.is_read_closed() || event.is_error(), starts);
                }
            }
            if let Some(begun) = begun.filter(|_| self.now() >= reported + REPORT_EVERY) {
                reported = self.now();
                report(self.progress(begun));
            }
        }
    }

    /// Starts connections that are due, up to `STARTS_A_TURN`; true if more may be due.
    fn start_due(
        &mut self,
        starts: &mut Starts,
        resumes: &mut dyn FnMut() -> bool,
        limit: Option<u64>,
        now: Time,
    ) -> Result<bool, LoadError> {
        for _ in 0..STARTS_A_TURN {
            if starts.next_at().is_none_or(|at| at > now) {
                return Ok(false);
            }
            if self.open >= self.max_open {
                self.tally.capped = true;
                return Ok(false);
            }
            if limit.is_some_and(|limit| self.tally.counts.planned >= limit) {
                *starts = Starts::closed(0..0, now, now);
                return Ok(false);
            }
            let Some(start) = starts.take(now) else { return Ok(false) };
            self.tally.counts.planned += 1;
            let resume = resumes();
            self.start(start, resume, starts)?;
        }
        Ok(true)
    }

    fn start(&mut self, start: Start, resume: bool, starts: &mut Starts) -> Result<(), LoadError> {
        let begun = self.now();
        self.tally.counts.lateness.record_time(begun.saturating_sub(start.planned));
        let traced =
            self.sampling.takes(self.tally.counts.planned - 1, begun.saturating_sub(self.first_start));
        let (endpoint, offered) = self.clients.connect(start.client, resume)?;
        let mut socket = match Socket::connect(self.target.transport, self.target.address) {
            Ok(socket) => socket,
            Err(error) => {
                let cause = cause::of_io(&error, cause::Activity::Connecting);
                self.tally.counts.failed.add(&cause, 1);
                starts.ended(start.client, self.now(), true);
                return Ok(());
            }
        };
        self.tally.counts.started += 1;
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() - 1
        });
        let generation = self.slots[place].generation;
        socket.register(self.poll.registry(), token(place, generation)).map_err(system("watch a socket"))?;
        let deadline = begun + self.config.timeout();
        let endpoint = MaybeRecorded::new(endpoint, traced.then_some(0));
        let mut connection = Connection::new(socket, endpoint, start.client, start.planned, begun, deadline);
        (connection.resume, connection.offered) = (resume, offered);
        self.slots[place].connection = Some(Box::new(connection));
        self.open += 1;
        self.deadlines.push(Reverse((deadline, place, generation)));
        // On a short path, the server has accepted already.
        self.advance(place, generation, false, starts);
        Ok(())
    }

    /// Advances a connection, if it still exists.
    fn advance(&mut self, place: usize, generation: u32, peer_closed: bool, starts: &mut Starts) {
        let Some(slot) = self.slots.get_mut(place).filter(|slot| slot.generation == generation) else {
            return;
        };
        let Some(connection) = slot.connection.as_deref_mut() else { return };
        let clock = || self.begun.elapsed();
        let end = connection.advance(&clock, &self.exchange, &mut self.buffer, peer_closed);
        self.settle(place, end, starts);
    }

    /// Stores a connection's next deadline, or handles its end.
    fn settle(&mut self, place: usize, end: Option<End>, starts: &mut Starts) {
        let slot = &mut self.slots[place];
        let Some(connection) = slot.connection.as_deref_mut() else { return };
        let Some(end) = end else {
            // While a client is held, it has no other deadline.
            let next = connection.held.or_else(|| {
                let next = [connection.endpoint.poll_timeout(), connection.session_deadline];
                next.into_iter().flatten().min()
            });
            if next.is_some() && next != connection.noted {
                connection.noted = next;
                self.deadlines.extend(next.map(|at| Reverse((at, place, slot.generation))));
            }
            return;
        };
        slot.generation = slot.generation.wrapping_add(1);
        let Some(mut connection) = slot.connection.take() else { return };
        self.free.push(place);
        self.open -= 1;
        let failed = matches!(end, End::Failed(_));
        self.count(&mut connection, end);
        if self.exchange.wants_session
            && connection.established.is_some()
            && let Some(session) = connection.endpoint.session()
        {
            self.clients.keep(connection.client, session);
        }
        starts.ended(connection.client, self.begun.elapsed(), failed);
    }

    fn count(&mut self, connection: &mut Connection, end: End) {
        let counts = &mut self.tally.counts;
        // Every attempt that reached the server counts, also a failed one: a server may abort all resumptions.
        if connection.resume && connection.connected.is_some() {
            let resumed = connection.negotiated.as_ref().is_some_and(|negotiated| negotiated.resumed);
            counts.resumed.asked += 1;
            counts.resumed.confirmed += u64::from(resumed);
            counts.resumed.without_session += u64::from(!connection.offered);
        }
        if let End::Failed(cause) = end {
            return counts.failed.add(&cause, 1);
        }
        counts.completed += 1;
        let since = |at: Time| at.saturating_sub(connection.planned);
        for (at, histogram) in [
            (connection.connected, &mut counts.connect),
            (connection.established, &mut counts.handshake),
            (connection.first_byte, &mut counts.first_byte),
        ] {
            if let Some(at) = at {
                histogram.record_time(since(at));
            }
        }
        let Some(negotiated) = connection.negotiated.take() else { return };
        counts.negotiate(&negotiated);
        if !negotiated.resumed {
            self.exchange.pace.learn(connection.client_work);
        }
        if let Some(sample) = connection.sample.take() {
            if sample.preemptions > 0 {
                // Its times include those of other threads.
                self.sampling.replace();
            }
            self.tally.samples.push((sample, negotiated));
        }
    }

    /// Handles the deadlines that have passed.
    fn end_overdue(&mut self, starts: &mut Starts) {
        while let Some(Reverse((at, place, generation))) = self.deadlines.peek().copied() {
            let now = self.now();
            if at > now {
                return;
            }
            self.deadlines.pop();
            let slot = &mut self.slots[place];
            if slot.generation != generation {
                continue;
            }
            let Some(connection) = slot.connection.as_deref_mut() else { continue };
            connection.noted = None;
            let clock = || self.begun.elapsed();
            let end = if now >= connection.deadline {
                Some(End::Failed(connection.timed_out()))
            } else if connection.session_deadline.is_some_and(|at| now >= at) {
                connection.session_deadline = None;
                connection.finish(now)
            } else if let Some(until) = connection.held {
                if now < until {
                    // The heap still contains the entry for the end of the hold.
                    continue;
                }
                connection.advance(&clock, &self.exchange, &mut self.buffer, false)
            } else if connection.endpoint.poll_timeout().is_some_and(|at| now >= at) {
                connection.handle_timeout(&clock, &self.exchange)
            } else {
                None
            };
            self.settle(place, end, starts);
        }
    }

    /// Time until the next deadline; the alarm handles the next start.
    fn sleep(&self) -> Duration {
        let next = self.deadlines.peek().map_or(MAX_SLEEP, |next| next.0.0.saturating_sub(self.now()));
        next.min(MAX_SLEEP)
    }

    /// Counts connections that were due and not started, and ends the open ones as timed out.
    fn count_unstarted(&mut self, starts: &mut Starts, now: Time) {
        let mut unstarted = 0;
        if let Starts::Open { .. } = starts {
            while starts.take(now).is_some() {
                unstarted += 1;
            }
        }
        self.tally.counts.planned += unstarted;
        self.tally.counts.failed.add(cause::NOT_STARTED, unstarted);
        self.close_all(&mut |connection| connection.timed_out());
    }

    /// Ends all open connections after a stop request.
    fn abandon(&mut self) {
        self.close_all(&mut |_| "interrupted".into());
    }

    fn close_all(&mut self, cause: &mut dyn FnMut(&Connection) -> String) {
        for slot in &mut self.slots {
            if let Some(connection) = slot.connection.take() {
                slot.generation = slot.generation.wrapping_add(1);
                self.tally.counts.failed.add(&cause(&connection), 1);
            }
        }
        self.open = 0;
        self.free = (0..self.slots.len()).collect();
    }

    fn progress(&self, begun: Time) -> Progress {
        Progress {
            elapsed_s: self.now().saturating_sub(begun).as_secs_f64(),
            planned: self.tally.counts.planned,
            started: self.tally.counts.started,
            completed: self.tally.counts.completed,
            failed: self.tally.counts.failed.total(),
            open: self.open,
            handshake_s: (&self.tally.counts.handshake).into(),
        }
    }

    fn now(&self) -> Time {
        self.begun.elapsed()
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

fn token(place: usize, generation: u32) -> Token {
    Token(place | (generation as usize) << 32)
}

fn places(token: Token) -> (usize, u32) {
    (token.0 & 0xffff_ffff, (token.0 >> 32) as u32)
}

/// Number of connections that the descriptor limit allows; the soft limit is raised to the hard one.
fn descriptors() -> usize {
    let Some(limit) = descriptor_limit(u64::MAX) else { return COLLECTING };
    usize::try_from(limit.saturating_sub(OTHER_DESCRIPTORS)).unwrap_or(MAX_OPEN).min(MAX_OPEN)
}
