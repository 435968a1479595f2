//! The one loop that runs two endpoints against each other in memory.
//!
//! It never names a stack. Every time a side has the processor is framed by [`recorder::enter`] and
//! [`recorder::leave`]; what the driver itself does (handing bytes over) is nobody's time.

use crate::endpoint::{Endpoint, Failure, Side, Time, Transport};
use crate::recorder;

/// Sees every unit that travels; for captures.
pub trait Tap {
    /// `bytes` travel from `from`.
    fn unit(&mut self, from: Side, bytes: &[u8]);
}

/// Looks the other way.
impl Tap for () {
    fn unit(&mut self, _: Side, _: &[u8]) {}
}

/// A list of what travelled.
impl Tap for Vec<(Side, Vec<u8>)> {
    fn unit(&mut self, from: Side, bytes: &[u8]) {
        self.push((from, bytes.to_vec()));
    }
}

/// Bytes that travelled, and in how many turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Travelled {
    /// From the client.
    pub client_to_server: u64,
    /// From the server.
    pub server_to_client: u64,
    /// How often the floor changed.
    pub turns: u32,
}

/// Why two endpoints did not come to a connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // the messages say it
pub enum DriveError {
    #[error(transparent)]
    Failed(#[from] Failure),
    #[error("no connection after {turns} turns: client in state {client}, server in state {server}")]
    TooManyTurns { turns: u32, client: String, server: String },
    #[error("both sides wait for each other: client in state {client}, server in state {server}")]
    Deadlock { client: String, server: String },
}

/// Turns that a handshake may take; the longest has four flights, each of which may wait for a timer.
const MOST_TURNS: u32 = 64;

/// A buffer that both directions use in turn, so that no allocation falls into what is measured.
#[derive(Default)]
pub struct Wire {
    buffer: Vec<u8>,
}

impl Wire {
    /// A buffer that holds the largest flight without growing.
    #[must_use]
    pub fn new() -> Self {
        Self { buffer: Vec::with_capacity(128 * 1024) }
    }

    /// Runs a handshake to its end: both sides established and nothing left to send.
    ///
    /// # Errors
    /// [`DriveError::Failed`] with the failure of the side that noticed first, after the other side has heard
    /// its alert (so that the peer's own words are not lost when they say more).
    pub fn handshake(
        &mut self,
        client: &mut dyn Endpoint,
        server: &mut dyn Endpoint,
        tap: &mut dyn Tap,
    ) -> Result<Travelled, DriveError> {
        let mut travelled = Travelled::default();
        let mut now = Time::ZERO;
        step(Side::Server, || server.start(now))?;
        step(Side::Client, || client.start(now))?;
        loop {
            let mut moved = false;
            moved |= self.pass(now, client, server, tap, &mut travelled)?;
            moved |= self.pass(now, server, client, tap, &mut travelled)?;
            travelled.turns += 1;
            if !moved {
                if client.is_established() && server.is_established() {
                    return Ok(travelled);
                }
                // Nothing travels and nobody is done: let the earliest timer run.
                let due = [client.deadline(), server.deadline()].into_iter().flatten().min();
                let Some(due) = due else {
                    return Err(DriveError::Deadlock { client: client.state(), server: server.state() });
                };
                now = now.max(due);
                if client.deadline().is_some_and(|deadline| deadline <= now) {
                    step(Side::Client, || client.timeout(now))?;
                }
                if server.deadline().is_some_and(|deadline| deadline <= now) {
                    step(Side::Server, || server.timeout(now))?;
                }
            }
            if travelled.turns >= MOST_TURNS {
                return Err(DriveError::TooManyTurns {
                    turns: travelled.turns,
                    client: client.state(),
                    server: server.state(),
                });
            }
        }
    }

    /// Hands all that `from` has to send over to `to`. True if anything travelled.
    ///
    /// # Errors
    /// The failure of the receiving side, once its alert has been delivered.
    pub fn pass(
        &mut self,
        now: Time,
        from: &mut dyn Endpoint,
        to: &mut dyn Endpoint,
        tap: &mut dyn Tap,
        travelled: &mut Travelled,
    ) -> Result<bool, DriveError> {
        let mut moved = false;
        loop {
            self.buffer.clear();
            let side = from.side();
            if !step(side, || from.transmit(now, &mut self.buffer)) {
                return Ok(moved);
            }
            moved = true;
            let bytes = self.buffer.len() as u64;
            match side {
                Side::Client => travelled.client_to_server += bytes,
                Side::Server => travelled.server_to_client += bytes,
            }
            tap.unit(side, &self.buffer);
            if let Err(failure) = step(to.side(), || to.receive(now, &self.buffer)) {
                self.buffer.clear();
                if to.transmit(now, &mut self.buffer) {
                    tap.unit(to.side(), &self.buffer);
                    // The peer's reaction to the alert is not what went wrong.
                    let _ = from.receive(now, &self.buffer);
                }
                return Err(failure.into());
            }
            if from.transport() == Transport::Stream {
                return Ok(moved);
            }
        }
    }
}

/// Runs `work` as time of `side`.
fn step<T>(side: Side, work: impl FnOnce() -> T) -> T {
    recorder::enter(side);
    let result = work();
    recorder::leave(side);
    result
}
