//! One connection: a socket, an endpoint, and the times that count.

use super::cause::{self, Activity};
use super::pace::Pace;
use super::sampling::Sample;
use super::socket::Socket;
use crate::watched::Watched;
use shakedown_stacks::processor::thread_cpu;
use shakedown_trace::endpoint::{Event, Time, Transport};
use shakedown_trace::suite::Protocol;
use shakedown_trace::{Endpoint, Failure, Negotiated};
use std::collections::VecDeque;
use std::time::SystemTime;

/// The longest wait for a session after everything else is done.
const SESSION_WAIT: Time = Time::from_millis(300);

/// What a connection is asked to do once its handshake is over.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    /// Sent at once.
    pub request: Option<Vec<u8>>,
    /// The server's first byte is waited for.
    pub await_first_byte: bool,
    pub wants_session: bool,
    /// How many times as long each step of a handshake takes, as if the client were slower by that.
    pub pace: Pace,
}

/// What an endpoint works on.
enum Input<'a> {
    /// Its first flight.
    Nothing,
    Bytes(&'a [u8]),
    Close,
    Timeout,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Completed,
    Failed(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Connecting,
    Handshaking,
    AwaitingByte,
    AwaitingSession,
    Done,
}

pub struct Connection {
    socket: Socket,
    pub endpoint: Watched<i64>,
    /// Bytes that the socket has not taken yet, from `sent` on.
    unsent: Vec<u8>,
    sent: usize,
    /// Where datagrams in `unsent` end.
    ends: VecDeque<usize>,
    phase: Phase,
    /// The endpoint has worked, and its result has not been read.
    worked: bool,
    /// Until when a slower client would be at work: nothing leaves it and it takes nothing.
    pub held: Option<Time>,
    /// How many times as long its steps take.
    pub slowdown: Option<f64>,
    /// What its steps took this machine's processor; known of slowed ones.
    pub client_work: Time,
    /// The server has ended its side.
    peer_closed: bool,
    /// The last flight has left.
    answered: bool,
    pub client: usize,
    pub resume: bool,
    pub offered: bool,
    pub planned: Time,
    pub started: Time,
    /// When it fails for want of progress.
    pub deadline: Time,
    /// When it stops waiting for a session.
    pub session_deadline: Option<Time>,
    /// The latest unit that was refused before its sender was authenticated.
    rejected: Option<Failure>,
    /// The deadline that the loop knows of, besides `deadline`.
    pub noted: Option<Time>,
    pub connected: Option<Time>,
    pub established: Option<Time>,
    pub first_byte: Option<Time>,
    pub negotiated: Option<Box<Negotiated>>,
    /// The record of its handshake, where that is sampled.
    pub sample: Option<Box<Sample>>,
}

impl Connection {
    pub fn new(
        socket: Socket,
        endpoint: Watched<i64>,
        client: usize,
        planned: Time,
        started: Time,
        deadline: Time,
    ) -> Self {
        Self {
            socket,
            endpoint,
            unsent: Vec::new(),
            sent: 0,
            ends: VecDeque::new(),
            phase: Phase::Connecting,
            worked: false,
            held: None,
            slowdown: None,
            client_work: Time::ZERO,
            peer_closed: false,
            answered: false,
            client,
            resume: false,
            offered: false,
            planned,
            started,
            deadline,
            session_deadline: None,
            rejected: None,
            noted: None,
            connected: None,
            established: None,
            first_byte: None,
            negotiated: None,
            sample: None,
        }
    }

    pub fn activity(&self) -> Activity {
        match self.phase {
            Phase::Connecting => Activity::Connecting,
            Phase::Handshaking => Activity::Handshaking,
            Phase::AwaitingByte | Phase::AwaitingSession | Phase::Done => Activity::Awaiting,
        }
    }

    /// Goes on as far as the socket lets it. `clock` is read where a time counts. `None`: there is more to come.
    pub fn advance(
        &mut self,
        clock: &dyn Fn() -> Time,
        exchange: &Exchange,
        buffer: &mut [u8],
        peer_closed: bool,
    ) -> Option<End> {
        self.peer_closed |= peer_closed;
        if self.phase == Phase::Done {
            return self.finish(clock());
        }
        if self.phase == Phase::Connecting {
            match self.socket.is_connected() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(self.failed(&error)),
            }
            self.connected = Some(clock());
            self.phase = Phase::Handshaking;
            self.work(clock, exchange, Input::Nothing);
        }
        let mut emptied = false;
        loop {
            if self.is_held(clock) {
                return None;
            }
            if std::mem::take(&mut self.worked)
                && let Some(end) = self.collect(clock, exchange)
            {
                return Some(end);
            }
            // What did not fill the buffer was all there was: more makes the poll speak again.
            if emptied && !self.peer_closed {
                return None;
            }
            let received = match self.socket.receive(buffer) {
                Ok(received) => received,
                Err(error) => return Some(self.failed(&error)),
            };
            let input = match received {
                None => {
                    return match self.transmit(clock()) {
                        Ok(_) => None,
                        Err(error) => Some(self.failed(&error)),
                    };
                }
                Some(0) if self.is_stream() => {
                    // Sent once; a client that goes on gets no more answers.
                    self.peer_closed = false;
                    Input::Close
                }
                Some(length) => Input::Bytes(&buffer[..length]),
            };
            if self.phase == Phase::AwaitingSession {
                // Whatever comes after the handshake: tickets come first.
                self.phase = Phase::Done;
            }
            self.work(clock, exchange, input);
            emptied = self.is_stream() && received.is_some_and(|length| length < buffer.len());
        }
    }

    /// Why it has taken too long, as far as it knows.
    pub fn timed_out(&self) -> String {
        match &self.rejected {
            Some(failure) if self.phase == Phase::Handshaking => {
                format!("{}; rejected: {}", cause::timeout(self.activity()), failure.reason)
            }
            _ => cause::timeout(self.activity()),
        }
    }

    pub fn handle_timeout(&mut self, clock: &dyn Fn() -> Time, exchange: &Exchange) -> Option<End> {
        self.work(clock, exchange, Input::Timeout);
        if self.is_held(clock) {
            return None;
        }
        self.worked = false;
        self.collect(clock, exchange)
    }

    /// Lets the endpoint work; what it makes of its input waits in `unsent` and among its events.
    fn work(&mut self, clock: &dyn Fn() -> Time, exchange: &Exchange, input: Input<'_>) {
        let now = clock();
        let slowdown = exchange.pace.factor().filter(|_| self.established.is_none());
        // One handshake's steps are all as slow.
        let slowdown = slowdown.map(|factor| *self.slowdown.get_or_insert(factor));
        let before = slowdown.map(|_| thread_cpu());
        let Self { endpoint, unsent, ends, .. } = self;
        endpoint.during(|endpoint| {
            match input {
                Input::Nothing => {}
                Input::Bytes(bytes) => endpoint.handle_input(now, bytes),
                Input::Close => endpoint.handle_close(now),
                Input::Timeout => endpoint.handle_timeout(now),
            }
            gather(endpoint, now, unsent, ends);
        });
        if let (Some(slowdown), Some(before)) = (slowdown, before) {
            let worked = thread_cpu().saturating_sub(before);
            self.client_work += worked;
            self.held = Some(now + worked.mul_f64(slowdown));
        }
        self.worked = true;
    }

    /// Whether a slower client would still be at work.
    fn is_held(&mut self, clock: &dyn Fn() -> Time) -> bool {
        if self.held.is_some_and(|until| clock() >= until) {
            self.held = None;
        }
        self.held.is_some()
    }

    /// Takes what the endpoint's work came to, and answers.
    fn collect(&mut self, clock: &dyn Fn() -> Time, exchange: &Exchange) -> Option<End> {
        let mut end = None;
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Established(negotiated) => {
                    let now = clock();
                    self.established = Some(now);
                    self.keep_sample();
                    self.go_on(now, exchange, &negotiated);
                    self.negotiated = Some(negotiated);
                }
                Event::Data(_) => {
                    self.first_byte.get_or_insert_with(clock);
                    if self.phase == Phase::AwaitingByte {
                        self.phase = Phase::Done;
                    }
                }
                // Anyone may have sent it: the right datagram may still arrive.
                Event::Rejected(failure) => self.rejected = Some(failure),
                Event::Closed(_) if self.phase == Phase::Done => {}
                Event::Closed(reason) => end = Some(End::Failed(cause::of_close(&reason, self.activity()))),
            }
        }
        let now = clock();
        if end.is_none() && self.phase == Phase::Done {
            return self.finish(now);
        }
        match self.transmit(now) {
            Ok(_) => end,
            Err(error) => end.or_else(|| Some(self.failed(&error))),
        }
    }

    /// The handshake is over: keeps its record, where there is one.
    fn keep_sample(&mut self) {
        let Some((recording, preemptions)) = self.endpoint.finish() else { return };
        let connected = self.connected.unwrap_or(self.started);
        self.sample = Some(Box::new(Sample {
            recording,
            preemptions,
            ended: SystemTime::now(),
            slowdown: self.slowdown,
            address: self.socket.local_address(),
            connect: connected.saturating_sub(self.started),
        }));
    }

    /// The handshake is over: on to whatever else is asked.
    fn go_on(&mut self, now: Time, exchange: &Exchange, negotiated: &Negotiated) {
        if let Some(request) = &exchange.request {
            // It leaves with the last flight. What can't be written shows as the end of the connection.
            let _ = self.endpoint.write(now, request);
        }
        let tickets_follow = negotiated.protocol == Protocol::Tls13;
        self.phase = if exchange.request.is_some() || exchange.await_first_byte {
            Phase::AwaitingByte
        } else if exchange.wants_session && tickets_follow && self.endpoint.session().is_none() {
            // Some servers, as Go's, send their tickets in the first flight: then it is there already.
            self.session_deadline = Some(now + SESSION_WAIT);
            Phase::AwaitingSession
        } else {
            Phase::Done
        };
    }

    /// All is done: says goodbye, in the same write as the last flight where that is still to be sent.
    pub fn finish(&mut self, now: Time) -> Option<End> {
        self.phase = Phase::Done;
        self.endpoint.close(now);
        match self.transmit(now) {
            Ok(true) => Some(End::Completed),
            Ok(false) => None,
            // The server has all of the handshake; a goodbye that is not received does no harm.
            Err(_) if self.answered => Some(End::Completed),
            Err(error) => Some(self.failed(&error)),
        }
    }

    /// Passes on what the endpoint has to send; false: the socket does not take all of it for now.
    fn transmit(&mut self, now: Time) -> std::io::Result<bool> {
        let Self { endpoint, unsent, ends, .. } = self;
        gather(&mut **endpoint, now, unsent, ends);
        while self.sent < self.unsent.len() {
            if self.is_stream() {
                match self.socket.send(&self.unsent[self.sent..])? {
                    Some(count) => self.sent += count,
                    None => return Ok(false),
                }
            } else {
                let end = self.ends.pop_front().unwrap_or(self.unsent.len());
                // A datagram goes whole, or not at all and is lost, as datagrams are.
                self.socket.send(&self.unsent[self.sent..end])?;
                self.sent = end;
            }
        }
        self.unsent.clear();
        self.sent = 0;
        self.answered |= self.established.is_some();
        Ok(true)
    }

    fn is_stream(&self) -> bool {
        matches!(self.socket, Socket::Tcp(_))
    }

    fn failed(&self, error: &std::io::Error) -> End {
        End::Failed(cause::of_io(error, self.activity()))
    }
}

/// Takes all that an endpoint has to send.
fn gather(endpoint: &mut dyn Endpoint, now: Time, unsent: &mut Vec<u8>, ends: &mut VecDeque<usize>) {
    while endpoint.poll_transmit(now, unsent) {
        if endpoint.transport() == Transport::Datagram {
            ends.push_back(unsent.len());
        }
    }
}
