//! One connection: its socket, its endpoint and its times.

use super::cause::{self, Activity};
use super::pace::Pace;
use super::sampling::Sample;
use super::socket::Socket;
use crate::maybe_recorded::MaybeRecorded;
use shakedown_stacks::processor::thread_cpu;
use shakedown_trace::endpoint::{Event, Time, Transport};
use shakedown_trace::suite::Protocol;
use shakedown_trace::{Endpoint, Failure, Negotiated};
use std::collections::VecDeque;
use std::time::SystemTime;

/// Maximum wait for a session after everything else is done.
const SESSION_WAIT: Time = Time::from_millis(300);

/// What a connection does after its handshake.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    /// Sent immediately after the handshake.
    pub request: Option<Vec<u8>>,
    /// Whether to wait for the server's first byte.
    pub await_first_byte: bool,
    pub wants_session: bool,
    /// Slowdown of the handshake's steps, to emulate a slower client.
    pub pace: Pace,
}

/// Input of an endpoint.
enum Input<'a> {
    /// Before its first flight.
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
    pub endpoint: MaybeRecorded<i64>,
    /// Output of the endpoint; the socket has accepted the bytes before `sent`.
    unsent: Vec<u8>,
    sent: usize,
    /// Ends of the datagrams in `unsent`.
    ends: VecDeque<usize>,
    phase: Phase,
    /// The endpoint has processed input, and its events have not been read.
    worked: bool,
    /// End of the emulated processing time; until then the connection neither sends nor receives.
    pub held: Option<Time>,
    /// Slowdown factor of this handshake.
    pub slowdown: Option<f64>,
    /// CPU time of the handshake's steps on this machine, measured if they are slowed down.
    pub client_work: Time,
    /// The server has closed its side.
    peer_closed: bool,
    /// The client's last flight has been sent.
    answered: bool,
    pub client: usize,
    pub resume: bool,
    pub offered: bool,
    pub planned: Time,
    pub started: Time,
    /// Time at which the connection fails if it has not ended.
    pub deadline: Time,
    /// Time at which it stops waiting for a session.
    pub session_deadline: Option<Time>,
    /// The latest failure of a datagram from an unauthenticated sender.
    rejected: Option<Failure>,
    /// The latest deadline that the loop stored, apart from `deadline`.
    pub noted: Option<Time>,
    pub connected: Option<Time>,
    pub established: Option<Time>,
    pub first_byte: Option<Time>,
    pub negotiated: Option<Box<Negotiated>>,
    /// Recording of the handshake, if it is sampled.
    pub sample: Option<Box<Sample>>,
}

impl Connection {
    pub fn new(
        socket: Socket,
        endpoint: MaybeRecorded<i64>,
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

    /// Continues until the socket would block or the connection ends (`Some`).
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
            // A read that did not fill the buffer emptied the socket; the poll reports further input.
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
                    // The endpoint processes the close once; then the loop must not read again.
                    self.peer_closed = false;
                    Input::Close
                }
                Some(length) => Input::Bytes(&buffer[..length]),
            };
            if self.phase == Phase::AwaitingSession {
                // The first input after the handshake contains the tickets.
                self.phase = Phase::Done;
            }
            self.work(clock, exchange, input);
            emptied = self.is_stream() && received.is_some_and(|length| length < buffer.len());
        }
    }

    /// Cause of a timeout, with the latest rejected datagram of the handshake.
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

    /// Passes input to the endpoint. Its output is appended to `unsent`; its events are read later.
    fn work(&mut self, clock: &dyn Fn() -> Time, exchange: &Exchange, input: Input<'_>) {
        let now = clock();
        let slowdown = exchange.pace.factor().filter(|_| self.established.is_none());
        // All steps of a handshake have the same factor.
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

    /// Whether the emulated processing time has not ended yet.
    fn is_held(&mut self, clock: &dyn Fn() -> Time) -> bool {
        if self.held.is_some_and(|until| clock() >= until) {
            self.held = None;
        }
        self.held.is_some()
    }

    /// Handles the endpoint's events and sends its output.
    fn collect(&mut self, clock: &dyn Fn() -> Time, exchange: &Exchange) -> Option<End> {
        let mut end = None;
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Established(negotiated) => {
                    let now = clock();
                    self.established = Some(now);
                    self.keep_sample();
                    self.after_handshake(now, exchange, &negotiated);
                    self.negotiated = Some(negotiated);
                }
                Event::Data(_) => {
                    self.first_byte.get_or_insert_with(clock);
                    if self.phase == Phase::AwaitingByte {
                        self.phase = Phase::Done;
                    }
                }
                // The sender is not authenticated, so a valid datagram may still arrive.
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

    /// Keeps the recording of the completed handshake, if there is one.
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

    /// Starts what follows the handshake.
    fn after_handshake(&mut self, now: Time, exchange: &Exchange, negotiated: &Negotiated) {
        if let Some(request) = &exchange.request {
            // The request is sent with the last flight. If it cannot be written, the connection ends.
            let _ = self.endpoint.write(now, request);
        }
        let tickets_follow = negotiated.protocol == Protocol::Tls13;
        self.phase = if exchange.request.is_some() || exchange.await_first_byte {
            Phase::AwaitingByte
        } else if exchange.wants_session && tickets_follow && self.endpoint.session().is_none() {
            // Some servers, such as Go's, send tickets in their first flight, so a session may exist already.
            self.session_deadline = Some(now + SESSION_WAIT);
            Phase::AwaitingSession
        } else {
            Phase::Done
        };
    }

    /// Closes the connection, in the same write as the last flight if that is still unsent.
    pub fn finish(&mut self, now: Time) -> Option<End> {
        self.phase = Phase::Done;
        self.endpoint.close(now);
        match self.transmit(now) {
            Ok(true) => Some(End::Completed),
            Ok(false) => None,
            // The server has the complete handshake, so an undelivered close alert does no harm.
            Err(_) if self.answered => Some(End::Completed),
            Err(error) => Some(self.failed(&error)),
        }
    }

    /// Sends the endpoint's output; false if the socket does not accept all of it yet.
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
                // A datagram is sent completely, or lost if the socket does not accept it.
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

/// Appends everything that an endpoint has to send.
fn gather(endpoint: &mut dyn Endpoint, now: Time, unsent: &mut Vec<u8>, ends: &mut VecDeque<usize>) {
    while endpoint.poll_transmit(now, unsent) {
        if endpoint.transport() == Transport::Datagram {
            ends.push_back(unsent.len());
        }
    }
}
