//! The loop that runs two endpoints against each other in memory, without a link between them.
//!
//! It depends on no stack and contains no instrumentation: a [`Recorded`](crate::Recorded) endpoint keeps its own
//! log. The driver's own work (moving bytes) is attributed to neither endpoint.

use crate::endpoint::{CloseReason, Endpoint, Event, Failure, Negotiated, Side, Time, Transport};

/// Observes every unit that is sent; for captures.
pub trait Tap {
    /// `from` has sent `bytes`.
    fn unit(&mut self, from: Side, bytes: &[u8]);
}

/// Records nothing.
impl Tap for () {
    fn unit(&mut self, _: Side, _: &[u8]) {}
}

/// Records every unit with its sender.
impl Tap for Vec<(Side, Vec<u8>)> {
    fn unit(&mut self, from: Side, bytes: &[u8]) {
        self.push((from, bytes.to_vec()));
    }
}

/// The bytes that each side sent, and the number of rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transferred {
    pub client_to_server: u64,
    pub server_to_client: u64,
    /// How often the driver polled both sides for output.
    pub rounds: u32,
}

impl Transferred {
    /// Bytes of both directions.
    pub fn total(&self) -> u64 {
        self.client_to_server + self.server_to_client
    }
}

/// A handshake that both sides have finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshake {
    pub transferred: Transferred,
    pub client: Box<Negotiated>,
    pub server: Box<Negotiated>,
    /// Application data received during the handshake: by the client, by the server.
    pub data: [Vec<u8>; 2],
    pub now: Time,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DriveError {
    #[error(transparent)]
    Failed(#[from] Failure),
    #[error("the {side} ended the connection before it was established")]
    Ended { side: Side },
    #[error("no connection after {rounds} rounds: client in state {client}, server in state {server}")]
    TooManyRounds { rounds: u32, client: String, server: String },
    #[error("both sides wait for each other: client in state {client}, server in state {server}")]
    Deadlock { client: String, server: String },
}

/// Limit of rounds in a handshake. The longest handshake has four flights, each of which may wait for several timers.
const MAX_ROUNDS: u32 = 4096;
/// Limit of units that a side sends before it receives one; the longest flight has far fewer.
const MAX_UNITS: u32 = 4096;

/// The driver's send buffers, kept between handshakes so that no allocation is measured.
#[derive(Default)]
pub struct Loopback {
    spare: Vec<Vec<u8>>,
}

impl Loopback {
    /// Buffers that hold the largest flight without growing.
    pub fn new() -> Self {
        let buffer = || Vec::with_capacity(128 * 1024);
        Self { spare: vec![buffer(), buffer()] }
    }

    /// Runs a handshake until both sides are established and have nothing left to send.
    ///
    /// Units are passed on without a copy. The code between two calls is kept short, because it evicts the endpoints'
    /// code and data from the caches.
    ///
    /// # Errors
    /// [`DriveError::Failed`] with the failure of the side that failed first, after its alert was delivered to the
    /// other side.
    pub fn handshake(
        &mut self,
        client: &mut dyn Endpoint,
        server: &mut dyn Endpoint,
        tap: &mut dyn Tap,
    ) -> Result<Handshake, DriveError> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        let mut run = Run {
            spare: &mut self.spare,
            client,
            server,
            tap,
            transferred: Transferred::default(),
            established: [None, None],
            data: [vec![], vec![]],
            now: Time::ZERO,
        };
        let outcome = run.finish(&mut buffer);
        self.spare.push(buffer);
        outcome
    }
}

/// A handshake in progress.
struct Run<'a> {
    spare: &'a mut Vec<Vec<u8>>,
    client: &'a mut dyn Endpoint,
    server: &'a mut dyn Endpoint,
    tap: &'a mut dyn Tap,
    transferred: Transferred,
    established: [Option<Box<Negotiated>>; 2],
    data: [Vec<u8>; 2],
    now: Time,
}

impl Run<'_> {
    fn end(&mut self, side: Side) -> &mut dyn Endpoint {
        match side {
            Side::Client => &mut *self.client,
            Side::Server => &mut *self.server,
        }
    }

    fn finish(&mut self, buffer: &mut Vec<u8>) -> Result<Handshake, DriveError> {
        loop {
            let mut moved = self.pass(Side::Client, buffer)?;
            moved |= self.pass(Side::Server, buffer)?;
            self.transferred.rounds += 1;
            if !moved {
                if let Some(handshake) = self.finished() {
                    return Ok(handshake);
                }
                self.wait()?;
            }
            if self.transferred.rounds == MAX_ROUNDS {
                let (client, server) = (self.client.state(), self.server.state());
                return Err(DriveError::TooManyRounds { rounds: MAX_ROUNDS, client, server });
            }
        }
    }

    /// Passes all pending output of a side to the other. True if there was any.
    fn pass(&mut self, from: Side, buffer: &mut Vec<u8>) -> Result<bool, DriveError> {
        let now = self.now;
        for units in 0..MAX_UNITS {
            buffer.clear();
            if !self.end(from).poll_transmit(now, buffer) {
                // A client's first call builds its first flight, and may fail.
                if self.transferred.rounds == 0 {
                    self.collect(from)?;
                }
                return Ok(units > 0);
            }
            self.leaves(from, buffer);
            self.end(from.peer()).handle_input(now, buffer);
            self.collect(from.peer())?;
            if self.end(from).transport() == Transport::Stream {
                return Ok(true);
            }
        }
        Ok(true)
    }

    /// Counts a sent unit and passes it to the tap.
    fn leaves(&mut self, from: Side, unit: &[u8]) {
        match from {
            Side::Client => self.transferred.client_to_server += unit.len() as u64,
            Side::Server => self.transferred.server_to_client += unit.len() as u64,
        }
        self.tap.unit(from, unit);
    }

    /// Advances the time to the next timer, when neither side has output.
    fn wait(&mut self) -> Result<(), DriveError> {
        let due = [self.client.poll_timeout(), self.server.poll_timeout()].into_iter().flatten().min();
        let Some(due) = due else {
            return Err(DriveError::Deadlock { client: self.client.state(), server: self.server.state() });
        };
        self.now = self.now.max(due);
        let now = self.now;
        for side in Side::BOTH {
            if self.end(side).poll_timeout().is_some_and(|deadline| deadline <= now) {
                self.end(side).handle_timeout(now);
                self.collect(side)?;
            }
        }
        Ok(())
    }

    /// Processes a side's events. If its connection ended, its alert is delivered to the other side; the other side's
    /// reaction is ignored, because the first failure is the cause.
    fn collect(&mut self, side: Side) -> Result<(), DriveError> {
        while let Some(event) = self.end(side).poll_event() {
            match event {
                Event::Established(negotiated) => self.established[side as usize] = Some(negotiated),
                Event::Data(mut data) => self.data[side as usize].append(&mut data),
                // Only the two endpoints send, so a rejected unit came from the other endpoint.
                Event::Rejected(failure) => {
                    self.hand_over_alert(side);
                    return Err(DriveError::Failed(failure));
                }
                Event::Closed(reason) => {
                    self.hand_over_alert(side);
                    return Err(match reason {
                        CloseReason::Failed(failure) => DriveError::Failed(failure),
                        CloseReason::Local => DriveError::Ended { side },
                        CloseReason::Peer | CloseReason::Truncated => DriveError::Ended { side: side.peer() },
                    });
                }
            }
        }
        Ok(())
    }

    fn hand_over_alert(&mut self, from: Side) {
        let now = self.now;
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        if self.end(from).poll_transmit(now, &mut buffer) {
            self.tap.unit(from, &buffer);
            self.end(from.peer()).handle_input(now, &buffer);
        }
        self.spare.push(buffer);
    }

    fn finished(&mut self) -> Option<Handshake> {
        let [Some(_), Some(_)] = &self.established else { return None };
        let (client, server) = (self.established[0].take()?, self.established[1].take()?);
        let data = std::mem::take(&mut self.data);
        Some(Handshake { transferred: self.transferred, client, server, data, now: self.now })
    }
}
