//! The one loop that runs two endpoints against each other in memory.
//!
//! It never names a stack and knows nothing of instrumentation: a [`Recorded`](crate::Recorded) endpoint keeps its own
//! log. What the driver itself does (handing bytes over) is nobody's time.

use crate::endpoint::{CloseReason, Endpoint, Event, Failure, Negotiated, Side, Time};

/// Sees every unit on its way; for captures.
pub trait Tap {
    /// `bytes` are on their way from `from`.
    fn unit(&mut self, from: Side, bytes: &[u8]);
}

/// Looks the other way.
impl Tap for () {
    fn unit(&mut self, _: Side, _: &[u8]) {}
}

/// A list of what was transferred.
impl Tap for Vec<(Side, Vec<u8>)> {
    fn unit(&mut self, from: Side, bytes: &[u8]) {
        self.push((from, bytes.to_vec()));
    }
}

/// Bytes that each side sent, and in how many rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transferred {
    /// From the client.
    pub client_to_server: u64,
    /// From the server.
    pub server_to_client: u64,
    /// How often both sides were asked for what they have to send.
    pub rounds: u32,
}

impl Transferred {
    /// Both directions together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.client_to_server + self.server_to_client
    }
}

/// A handshake that both sides have finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// What was sent.
    pub transferred: Transferred,
    /// What the client says it came to.
    pub client: Negotiated,
    /// What the server says it came to.
    pub server: Negotiated,
    /// Application data that arrived meanwhile: at the client, at the server.
    pub data: [Vec<u8>; 2],
    /// The driver's time at its end.
    pub now: Time,
}

/// Why two endpoints did not come to a connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // the messages say it
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

/// Rounds that a handshake may take; the longest has four flights, each of which may wait for a timer.
const MAX_ROUNDS: u32 = 64;
/// Units that a side may send without a word from the other; the longest flight has far fewer.
const MAX_UNITS: u32 = 4096;

/// A buffer that both directions use in turn, so that no allocation falls into what is measured.
#[derive(Default)]
pub struct Loopback {
    buffer: Vec<u8>,
}

/// What has become of a handshake so far.
#[derive(Default)]
struct Progress {
    transferred: Transferred,
    established: [Option<Box<Negotiated>>; 2],
    data: [Vec<u8>; 2],
    now: Time,
}

impl Loopback {
    /// A buffer that holds the largest flight without growing.
    #[must_use]
    pub fn new() -> Self {
        Self { buffer: Vec::with_capacity(128 * 1024) }
    }

    /// Runs a handshake to its end: both sides established and nothing left to send.
    ///
    /// # Errors
    /// [`DriveError::Failed`] with the failure of the side that noticed first, after its alert has been handed to the
    /// other side.
    pub fn handshake(
        &mut self,
        client: &mut dyn Endpoint,
        server: &mut dyn Endpoint,
        tap: &mut dyn Tap,
    ) -> Result<Handshake, DriveError> {
        let mut progress = Progress::default();
        loop {
            let mut moved = self.pass(client, server, tap, &mut progress)?;
            moved |= self.pass(server, client, tap, &mut progress)?;
            progress.transferred.rounds += 1;
            if !moved {
                progress = match progress.finished() {
                    Ok(handshake) => return Ok(handshake),
                    Err(progress) => progress,
                };
                self.wait(client, server, tap, &mut progress)?;
            }
            let rounds = progress.transferred.rounds;
            if rounds >= MAX_ROUNDS {
                return Err(DriveError::TooManyRounds {
                    rounds,
                    client: client.state(),
                    server: server.state(),
                });
            }
        }
    }

    /// Hands all that `from` has to send over to `to`. True if there was anything.
    fn pass(
        &mut self,
        from: &mut dyn Endpoint,
        to: &mut dyn Endpoint,
        tap: &mut dyn Tap,
        progress: &mut Progress,
    ) -> Result<bool, DriveError> {
        let side = from.side();
        for units in 0..MAX_UNITS {
            self.buffer.clear();
            if !from.poll_transmit(progress.now, &mut self.buffer) {
                // The first call builds a client's first flight, and may fail.
                self.collect(from, to, tap, progress)?;
                return Ok(units > 0);
            }
            let bytes = self.buffer.len() as u64;
            match side {
                Side::Client => progress.transferred.client_to_server += bytes,
                Side::Server => progress.transferred.server_to_client += bytes,
            }
            tap.unit(side, &self.buffer);
            to.handle_input(progress.now, &self.buffer);
            self.collect(to, from, tap, progress)?;
        }
        Ok(true)
    }

    /// Nothing is on its way and nobody is done: lets the earliest timer run.
    fn wait(
        &mut self,
        client: &mut dyn Endpoint,
        server: &mut dyn Endpoint,
        tap: &mut dyn Tap,
        progress: &mut Progress,
    ) -> Result<(), DriveError> {
        let due = [client.poll_timeout(), server.poll_timeout()].into_iter().flatten().min();
        let Some(due) = due else {
            return Err(DriveError::Deadlock { client: client.state(), server: server.state() });
        };
        progress.now = progress.now.max(due);
        if client.poll_timeout().is_some_and(|deadline| deadline <= progress.now) {
            client.handle_timeout(progress.now);
            self.collect(client, server, tap, progress)?;
        }
        if server.poll_timeout().is_some_and(|deadline| deadline <= progress.now) {
            server.handle_timeout(progress.now);
            self.collect(server, client, tap, progress)?;
        }
        Ok(())
    }

    /// Takes what happened at `endpoint`. Where its connection ended, its alert is handed to `peer`, whose reaction to
    /// that is not what went wrong.
    fn collect(
        &mut self,
        endpoint: &mut dyn Endpoint,
        peer: &mut dyn Endpoint,
        tap: &mut dyn Tap,
        progress: &mut Progress,
    ) -> Result<(), DriveError> {
        let side = endpoint.side();
        while let Some(event) = endpoint.poll_event() {
            match event {
                Event::Established(negotiated) => progress.established[side as usize] = Some(negotiated),
                Event::Data(mut data) => progress.data[side as usize].append(&mut data),
                Event::Closed(reason) => {
                    self.buffer.clear();
                    if endpoint.poll_transmit(progress.now, &mut self.buffer) {
                        tap.unit(side, &self.buffer);
                        peer.handle_input(progress.now, &self.buffer);
                    }
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
}

impl Progress {
    /// The finished handshake, or all of this again.
    fn finished(self) -> Result<Handshake, Self> {
        let Self { transferred, established, data, now } = self;
        match established {
            [Some(client), Some(server)] => {
                Ok(Handshake { transferred, client: *client, server: *server, data, now })
            }
            established => Err(Self { transferred, established, data, now }),
        }
    }
}
