//! One connection: a socket, an endpoint, and the times that count.

use super::cause::{self, Doing};
use super::socket::Socket;
use shakedown_trace::endpoint::{Event, Time};
use shakedown_trace::suite::Protocol;
use shakedown_trace::{Endpoint, Negotiated};

/// The longest wait for a session after everything else is done.
const SESSION_WAIT: Time = Time::from_millis(300);

/// What a connection is asked to do once its handshake is over.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    /// Sent at once.
    pub request: Option<Vec<u8>>,
    /// The server's first byte is waited for.
    pub await_first_byte: bool,
    /// A session to resume is waited for.
    pub wants_session: bool,
}

/// What became of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It did all that was asked.
    Completed,
    /// It did not.
    Failed(String),
}

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Connecting,
    Handshaking,
    AwaitingByte,
    AwaitingSession,
    Done,
}

/// A connection under way.
pub struct Connection {
    socket: Socket,
    pub endpoint: Box<dyn Endpoint>,
    /// Bytes that the socket has not taken yet, from `sent` on.
    unsent: Vec<u8>,
    sent: usize,
    phase: Phase,
    /// The last flight has left.
    answered: bool,
    /// Which client's.
    pub client: usize,
    /// It is to resume a session.
    pub resume: bool,
    /// It offered one.
    pub offered: bool,
    /// When it was to start.
    pub planned: Time,
    /// When it fails for want of progress.
    pub deadline: Time,
    /// When it stops waiting for a session.
    pub session_deadline: Option<Time>,
    /// The deadline that the loop knows of, besides `deadline`.
    pub noted: Option<Time>,
    /// When the transport was there.
    pub connected: Option<Time>,
    /// When the handshake was over.
    pub established: Option<Time>,
    /// When the server's first byte came.
    pub first_byte: Option<Time>,
    /// What was negotiated.
    pub negotiated: Option<Box<Negotiated>>,
}

impl Connection {
    /// One that begins now.
    pub fn new(
        socket: Socket,
        endpoint: Box<dyn Endpoint>,
        client: usize,
        planned: Time,
        deadline: Time,
    ) -> Self {
        Self {
            socket,
            endpoint,
            unsent: Vec::new(),
            sent: 0,
            phase: Phase::Connecting,
            answered: false,
            client,
            resume: false,
            offered: false,
            planned,
            deadline,
            session_deadline: None,
            noted: None,
            connected: None,
            established: None,
            first_byte: None,
            negotiated: None,
        }
    }

    /// What it is waiting for.
    pub fn doing(&self) -> Doing {
        match self.phase {
            Phase::Connecting => Doing::Connecting,
            Phase::Handshaking => Doing::Handshaking,
            Phase::AwaitingByte | Phase::AwaitingSession | Phase::Done => Doing::Awaiting,
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
        if self.phase == Phase::Done {
            return self.finish(clock());
        }
        if self.phase == Phase::Connecting {
            match self.socket.is_connected() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(self.failed(&error)),
            }
            let now = clock();
            self.connected = Some(now);
            self.phase = Phase::Handshaking;
            if let Err(error) = self.transmit(now) {
                return Some(self.failed(&error));
            }
        }
        loop {
            let received = match self.socket.receive(buffer) {
                Ok(received) => received,
                Err(error) => return Some(self.failed(&error)),
            };
            let now = clock();
            match received {
                None => {
                    return match self.transmit(now) {
                        Ok(_) => None,
                        Err(error) => Some(self.failed(&error)),
                    };
                }
                Some(0) if self.is_stream() => self.endpoint.handle_close(now),
                Some(length) => self.endpoint.handle_input(now, &buffer[..length]),
            }
            if let Some(end) = self.after_input(clock, exchange) {
                return Some(end);
            }
            // What did not fill the buffer was all there was: more makes the poll speak again.
            let emptied = received.is_some_and(|length| length < buffer.len());
            if self.is_stream() && emptied && !peer_closed {
                return None;
            }
        }
    }

    /// The endpoint's own deadline has come.
    pub fn handle_timeout(&mut self, clock: &dyn Fn() -> Time, exchange: &Exchange) -> Option<End> {
        self.endpoint.handle_timeout(clock());
        self.after_input(clock, exchange)
    }

    /// Takes what an input made of the endpoint, and answers.
    fn after_input(&mut self, clock: &dyn Fn() -> Time, exchange: &Exchange) -> Option<End> {
        if self.phase == Phase::AwaitingSession {
            // Whatever comes after the handshake: tickets come first.
            self.phase = Phase::Done;
        }
        let mut end = None;
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Established(negotiated) => {
                    let now = clock();
                    self.established = Some(now);
                    self.go_on(now, exchange, &negotiated);
                    self.negotiated = Some(negotiated);
                }
                Event::Data(_) => {
                    self.first_byte.get_or_insert_with(clock);
                    if self.phase == Phase::AwaitingByte {
                        self.phase = Phase::Done;
                    }
                }
                Event::Closed(_) if self.phase == Phase::Done => {}
                Event::Closed(reason) => end = Some(End::Failed(cause::of_close(&reason, self.doing()))),
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

    /// The handshake is over: on to whatever else is asked.
    fn go_on(&mut self, now: Time, exchange: &Exchange, negotiated: &Negotiated) {
        if let Some(request) = &exchange.request {
            // It leaves with the last flight. What can't be written shows as the end of the connection.
            let _ = self.endpoint.write(now, request);
        }
        let tickets_follow = negotiated.protocol == Protocol::Tls13;
        self.phase = if exchange.request.is_some() || exchange.await_first_byte {
            Phase::AwaitingByte
        } else if exchange.wants_session && tickets_follow {
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
            // The server has all of the handshake; that nobody hears the goodbye does no harm.
            Err(_) if self.answered => Some(End::Completed),
            Err(error) => Some(self.failed(&error)),
        }
    }

    /// Passes on what the endpoint has to send; false: the socket does not take all of it for now.
    fn transmit(&mut self, now: Time) -> std::io::Result<bool> {
        loop {
            if self.sent == self.unsent.len() {
                self.unsent.clear();
                self.sent = 0;
                if !self.endpoint.poll_transmit(now, &mut self.unsent) {
                    self.answered |= self.established.is_some();
                    return Ok(true);
                }
            }
            match self.socket.send(&self.unsent[self.sent..])? {
                Some(count) if self.is_stream() => self.sent += count,
                None if self.is_stream() => return Ok(false),
                // A datagram goes whole, or not at all and is lost, as datagrams are.
                Some(_) | None => self.sent = self.unsent.len(),
            }
        }
    }

    fn is_stream(&self) -> bool {
        matches!(self.socket, Socket::Tcp(_))
    }

    fn failed(&self, error: &std::io::Error) -> End {
        End::Failed(cause::of_io(error, self.doing()))
    }
}
