//! One connection over a stream: an endpoint, its socket, and the unsent output between them.

use super::config::{Config, PayloadWhen};
use super::exchange::Exchange;
use super::tally::{Queued, Tally, cause, lock};
use super::timers::Deadline;
use super::traces::Sampled;
use crate::maybe_recorded::MaybeRecorded;
use crate::stamped;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use shakedown_trace::endpoint::{Event, Time};
use shakedown_trace::{CloseReason, Negotiated};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

/// Limit of unsent output. Beyond it the server neither reads from the peer nor produces output for it. One more unit
/// may be added: a stack's flight, or a chunk of payload.
const MAX_WAITING_BYTES: usize = 64 * 1024;
/// Payload passed to the stack in one call: a full record.
const CHUNK_BYTES: usize = 16 * 1024;
/// Limit of reads and chunks in one turn; then the worker processes another connection.
const STEPS_PER_TURN: usize = 8;
/// How long a closing connection waits until the peer closes its side. If the socket were closed earlier, the system
/// could discard the last output.
pub const LINGER: Duration = Duration::from_secs(2);
/// Time that a stopping server allows for the first request of a connection.
const FIRST_REQUEST: Duration = Duration::from_secs(1);
/// Limit of the bytes that a closing connection reads and discards.
const MAX_LINGER_BYTES: usize = 256 * 1024;

/// A chunk of the payload, which is sent repeatedly.
static PAYLOAD: [u8; CHUNK_BYTES] = [b'.'; CHUNK_BYTES];

/// The worker's resources, which a connection uses in its turn.
pub struct WorkerContext<'a> {
    pub epoch: Instant,
    pub config: &'a Config,
    pub tally: &'a Tally,
    /// The poll's registry of sockets.
    pub registry: &'a Registry,
    pub input: &'a mut [u8],
    pub output: &'a mut Vec<u8>,
    pub draining: bool,
}

impl WorkerContext<'_> {
    fn now(&self) -> Time {
        self.epoch.elapsed()
    }
}

/// The state of a connection after its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The connection waits for its socket or its deadline.
    Wait,
    /// It has more work, and needs another turn.
    Again,
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Handshaking,
    Established,
    /// Sends the remaining output, then waits until the peer closes its side.
    Closing,
    Lingering,
}

pub struct Connection {
    stream: TcpStream,
    token: Token,
    /// None when the connection is closing and the endpoint has no more output.
    endpoint: Option<MaybeRecorded<Sampled>>,
    phase: Phase,
    started: Time,
    /// Its place in the order of handshakes in progress.
    pub place: u64,
    /// The time of its next turn, if its socket is not ready earlier.
    pub deadline: Deadline,
    pub due: Time,
    pub queued: bool,
    /// The socket may have input.
    pub readable: bool,
    /// The peer has closed its side, or the connection is broken: after the remaining input nothing follows.
    pub ending: bool,
    /// Whether it is registered for writability too.
    watches_writable: bool,
    /// Output that did not fit into the socket's buffer, and the number of its bytes that have been sent since.
    waiting: Vec<u8>,
    sent: usize,
    exchange: Exchange,
    /// Whether the last output was part of a response; else the stack answered something that is no request.
    responds: bool,
    /// State of the response in progress.
    payload_left_bytes: u64,
    close_after: bool,
    /// Whether a request has been answered.
    answered: bool,
    discarded: usize,
    /// The stack's processing time for the handshake.
    busy: Duration,
    /// Queue waits of its messages, if these are measured.
    queued_times: Queued,
    /// Whether its handshake has succeeded.
    completed: bool,
}

impl Connection {
    pub fn new(
        stream: TcpStream,
        token: Token,
        endpoint: MaybeRecorded<Sampled>,
        now: Time,
        config: &Config,
    ) -> Self {
        Self {
            stream,
            token,
            endpoint: Some(endpoint),
            phase: Phase::Handshaking,
            started: now,
            place: 0,
            deadline: Deadline::default(),
            due: now + config.handshake_timeout,
            queued: false,
            readable: false,
            ending: false,
            watches_writable: false,
            waiting: Vec::new(),
            sent: 0,
            exchange: Exchange::default(),
            responds: false,
            payload_left_bytes: 0,
            close_after: false,
            answered: false,
            discarded: 0,
            busy: Duration::ZERO,
            queued_times: Queued::default(),
            completed: false,
        }
    }

    pub fn register(&mut self, registry: &Registry) -> io::Result<()> {
        registry.register(&mut self.stream, self.token, Interest::READABLE)
    }

    /// True until the handshake has succeeded or failed.
    pub fn is_handshaking(&self) -> bool {
        self.phase == Phase::Handshaking
    }

    /// True if neither a request nor a response is in progress.
    pub fn is_idle(&self) -> bool {
        self.phase == Phase::Established
            && self.waiting.is_empty()
            && self.payload_left_bytes == 0
            && !self.exchange.is_midway()
    }

    /// True from the end of its handshake until it begins to close.
    pub fn is_established(&self) -> bool {
        self.phase == Phase::Established
    }

    pub fn turn(&mut self, context: &mut WorkerContext<'_>) -> Progress {
        for _ in 0..STEPS_PER_TURN {
            if !self.flush(context) {
                return Progress::Over;
            }
            if self.waiting_bytes() > 0 {
                // The connection must wait until the socket is writable.
                return Progress::Wait;
            }
            match self.phase {
                Phase::Closing => {
                    self.endpoint = None;
                    if self.ending && !self.readable || self.stream.shutdown(Shutdown::Write).is_err() {
                        return Progress::Over;
                    }
                    self.phase = Phase::Lingering;
                    self.due = context.now() + LINGER;
                }
                Phase::Lingering => {
                    if !self.discard(context) {
                        return Progress::Over;
                    }
                    if !self.readable {
                        return Progress::Wait;
                    }
                }
                Phase::Handshaking | Phase::Established => {
                    if self.produce_response(context) {
                        continue;
                    }
                    if !self.readable {
                        return Progress::Wait;
                    }
                    if !self.receive(context) {
                        return Progress::Over;
                    }
                }
            }
        }
        Progress::Again
    }

    /// The server is stopping: closes a connection between two requests, and shortens the time for a first request.
    pub fn drain(&mut self, context: &mut WorkerContext<'_>) -> Progress {
        if self.is_idle() && self.answered {
            return self.close(context);
        }
        if self.phase == Phase::Established && !self.answered {
            self.due = self.due.min(context.now() + FIRST_REQUEST);
        }
        Progress::Wait
    }

    /// Closes an established connection with an alert, and any other connection immediately.
    pub fn close(&mut self, context: &mut WorkerContext<'_>) -> Progress {
        if self.phase != Phase::Established {
            return Progress::Over;
        }
        self.close_endpoint(context);
        self.turn(context)
    }

    fn waiting_bytes(&self) -> usize {
        self.waiting.len() - self.sent
    }

    /// Writes waiting output to the socket. False if the connection is broken.
    fn flush(&mut self, context: &WorkerContext<'_>) -> bool {
        while self.sent < self.waiting.len() {
            match self.stream.write(&self.waiting[self.sent..]) {
                Ok(0) => return self.broken(context),
                Ok(taken) => {
                    self.sent += taken;
                    context.tally.sent_bytes.add(taken as u64);
                    self.progress(context);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return self.watch_writable(context);
                }
                Err(_) => return self.broken(context),
            }
        }
        if !self.waiting.is_empty() {
            // Frees the buffer, so that connections that wait for their peer use no memory for output.
            self.waiting = Vec::new();
            self.sent = 0;
        }
        true
    }

    fn watch_writable(&mut self, context: &WorkerContext<'_>) -> bool {
        if !std::mem::replace(&mut self.watches_writable, true) {
            let interest = Interest::READABLE | Interest::WRITABLE;
            return context.registry.reregister(&mut self.stream, self.token, interest).is_ok();
        }
        true
    }

    /// Restarts the idle timeout of an established connection that gets a response.
    fn progress(&mut self, context: &WorkerContext<'_>) {
        if self.phase == Phase::Established && self.responds {
            self.due = context.now() + context.config.idle_timeout;
        }
    }

    /// Sends the endpoint's output. Bytes that do not fit into the socket's buffer wait.
    fn transmit(&mut self, context: &mut WorkerContext<'_>) {
        let now = context.now();
        context.output.clear();
        if let Some(endpoint) = &mut self.endpoint {
            while endpoint.poll_transmit(now, context.output) {}
        }
        self.send(context);
    }

    fn send(&mut self, context: &mut WorkerContext<'_>) {
        let mut taken = 0;
        while self.waiting.is_empty() && taken < context.output.len() {
            match self.stream.write(&context.output[taken..]) {
                Ok(0) => break,
                Ok(bytes) => taken += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The next flush detects a broken connection.
                Err(_) => break,
            }
        }
        context.tally.sent_bytes.add(taken as u64);
        if taken > 0 {
            self.progress(context);
        }
        self.waiting.extend_from_slice(&context.output[taken..]);
        context.output.clear();
    }

    /// Produces the next piece of a response. False if there is none.
    fn produce_response(&mut self, context: &mut WorkerContext<'_>) -> bool {
        if self.phase != Phase::Established {
            return false;
        }
        // The head and the first payload share a record, as in other servers.
        let mut head = Vec::new();
        if self.payload_left_bytes == 0 && !self.close_after {
            let Some(answer) = self.exchange.answer(context.config.payload_bytes, context.draining) else {
                return false;
            };
            context.tally.answers.add(1);
            self.answered = true;
            self.payload_left_bytes = answer.payload_bytes;
            self.close_after = answer.close;
            head = answer.head;
        }
        self.responds = true;
        self.progress(context);
        let mut made = 0;
        while !head.is_empty() || self.payload_left_bytes > 0 && made < MAX_WAITING_BYTES {
            let room = CHUNK_BYTES.saturating_sub(head.len());
            // At most a chunk, which fits a usize.
            let bytes = usize::try_from(self.payload_left_bytes.min(room as u64)).unwrap_or(room);
            let payload = &PAYLOAD[..bytes];
            let written = if head.is_empty() {
                self.write(context, payload)
            } else {
                head.extend_from_slice(payload);
                self.write(context, &std::mem::take(&mut head))
            };
            if !written {
                return true;
            }
            self.payload_left_bytes -= bytes as u64;
            made += bytes;
        }
        if self.payload_left_bytes == 0 && self.close_after {
            self.close_endpoint(context);
        } else {
            self.transmit(context);
        }
        true
    }

    /// Passes application data to the stack. False if the stack rejects it; then the connection begins to close.
    fn write(&mut self, context: &mut WorkerContext<'_>, data: &[u8]) -> bool {
        let now = context.now();
        let taken = self.endpoint.as_mut().is_some_and(|endpoint| endpoint.write(now, data).is_ok());
        if !taken {
            self.transmit(context);
            self.begin_closing(context);
        }
        taken
    }

    /// Reads once, and lets the endpoint process the input. False if the connection has ended.
    fn receive(&mut self, context: &mut WorkerContext<'_>) -> bool {
        if !context.config.queue_times || self.phase != Phase::Handshaking {
            let received = self.stream.read(context.input);
            return self.handle_read(context, received);
        }
        let begun = Instant::now();
        let (received, waited) = match stamped::receive_chunk(&self.stream, context.input) {
            Ok(received) => (Ok(received.bytes), received.waited.filter(|_| received.bytes > 0)),
            Err(error) => (Err(error), None),
        };
        let goes_on = self.handle_read(context, received);
        if let Some(waited) = waited {
            let at = begun.duration_since(context.epoch);
            self.queued_times.message(self.place, at, waited, begun.elapsed(), context.tally);
            // The handshake may have ended with these bytes.
            if self.completed {
                self.queued_times.handshake(context.tally);
            }
        }
        goes_on
    }

    /// Handles the result of a read. False if the connection has ended.
    fn handle_read(&mut self, context: &mut WorkerContext<'_>, received: io::Result<usize>) -> bool {
        match received {
            Ok(0) => {
                let now = context.now();
                if let Some(endpoint) = &mut self.endpoint {
                    endpoint.handle_close(now);
                }
                self.collect(context);
                if self.phase == Phase::Handshaking {
                    context.tally.fail(cause::DISCONNECTED);
                }
                false
            }
            Ok(bytes) => {
                context.tally.received_bytes.add(bytes as u64);
                if bytes < context.input.len() && !self.ending {
                    // The poll reports new input again, but the end of the stream only once.
                    self.readable = false;
                }
                self.take(context, bytes);
                true
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.readable = false;
                true
            }
            Err(_) => self.broken(context),
        }
    }

    /// Lets the endpoint process input, and sends its output.
    fn take(&mut self, context: &mut WorkerContext<'_>, bytes: usize) {
        let handshaking = self.phase == Phase::Handshaking;
        let begun = Instant::now();
        let now = begun.duration_since(context.epoch);
        context.output.clear();
        if let Some(endpoint) = &mut self.endpoint {
            endpoint.handle_input(now, &context.input[..bytes]);
            while endpoint.poll_transmit(now, context.output) {}
        }
        if handshaking {
            self.busy += begun.elapsed();
        }
        self.responds = false;
        self.send(context);
        self.collect(context);
    }

    /// Handles the endpoint's events.
    fn collect(&mut self, context: &mut WorkerContext<'_>) {
        while let Some(event) = self.endpoint.as_mut().and_then(|endpoint| endpoint.poll_event()) {
            match event {
                Event::Established(negotiated) => self.establish(context, &negotiated),
                Event::Data(data) => self.exchange.take(&data),
                // Only endpoints over datagrams report it.
                Event::Rejected(_) => {}
                Event::Closed(reason) => self.ended(context, &reason),
            }
        }
    }

    fn establish(&mut self, context: &mut WorkerContext<'_>, negotiated: &Negotiated) {
        let now = context.now();
        self.phase = Phase::Established;
        self.completed = true;
        self.due = now + context.config.idle_timeout;
        if context.draining {
            self.due = self.due.min(now + FIRST_REQUEST);
        }
        let tally = context.tally;
        let counter = if negotiated.resumed { &tally.resumed } else { &tally.full };
        counter.add(1);
        lock(&tally.handshakes).record(now.saturating_sub(self.started));
        lock(&tally.busy).record(self.busy);
        if let Some((recording, (sampler, peer))) = self.endpoint.as_mut().and_then(MaybeRecorded::finish) {
            sampler.keep(&recording, negotiated, peer, tally);
        }
        if context.config.payload_when == PayloadWhen::Handshake {
            self.payload_left_bytes = context.config.payload_bytes;
        }
    }

    fn ended(&mut self, context: &mut WorkerContext<'_>, reason: &CloseReason) {
        if self.phase == Phase::Handshaking {
            context.tally.fail(match reason {
                CloseReason::Truncated => cause::DISCONNECTED,
                CloseReason::Peer | CloseReason::Local => cause::CLOSED,
                CloseReason::Failed(failure) => failure.alert.as_deref().unwrap_or(cause::PROTOCOL),
            });
        }
        // `take` has sent its alert.
        self.begin_closing(context);
    }

    fn close_endpoint(&mut self, context: &mut WorkerContext<'_>) {
        let now = context.now();
        if let Some(endpoint) = &mut self.endpoint {
            endpoint.close(now);
        }
        self.transmit(context);
        self.begin_closing(context);
    }

    fn begin_closing(&mut self, context: &WorkerContext<'_>) {
        self.phase = Phase::Closing;
        self.payload_left_bytes = 0;
        self.exchange = Exchange::default();
        self.due = context.now() + LINGER;
    }

    /// Reads and discards input. False if the peer has closed its side, or has sent too much.
    fn discard(&mut self, context: &mut WorkerContext<'_>) -> bool {
        match self.stream.read(context.input) {
            Ok(0) => false,
            Ok(bytes) => {
                self.discarded += bytes;
                self.discarded <= MAX_LINGER_BYTES
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.readable = false;
                true
            }
            Err(_) => false,
        }
    }

    fn broken(&self, context: &WorkerContext<'_>) -> bool {
        if self.phase == Phase::Handshaking {
            context.tally.fail(cause::DISCONNECTED);
        }
        false
    }
}
