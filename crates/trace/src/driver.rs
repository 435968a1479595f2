//! The one loop that runs two endpoints against each other in memory, over a link.
//!
//! It never names a stack and knows nothing of instrumentation: a [`Recorded`](crate::Recorded) endpoint keeps its own
//! log. What the driver itself does (handing bytes over), and what lies between the endpoints, is nobody's time.

use crate::endpoint::{CloseReason, Endpoint, Event, Failure, Negotiated, Side, Time, Transport};
use shakedown_link::{Direction, Fate, Link, Ns, Path, Unit};

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

/// What lies between a client and a server.
pub trait Medium {
    /// Takes a unit from one side.
    fn offer(&mut self, from: Side, at: Ns, unit: Unit) -> Fate;

    /// When the next unit arrives, if any is on its way.
    fn next(&self) -> Option<Ns>;

    /// The next unit that has arrived by then, who sent it, and when it arrived.
    fn take(&mut self, until: Ns) -> Option<(Ns, Side, Unit)>;
}

/// A link from the client and one to it.
impl<U: Link, D: Link> Medium for (U, D) {
    fn offer(&mut self, from: Side, at: Ns, unit: Unit) -> Fate {
        match from {
            Side::Client => self.0.offer(at, unit),
            Side::Server => self.1.offer(at, unit),
        }
    }

    fn next(&self) -> Option<Ns> {
        [self.0.next(), self.1.next()].into_iter().flatten().min()
    }

    fn take(&mut self, until: Ns) -> Option<(Ns, Side, Unit)> {
        let client_first = match (self.0.next(), self.1.next()) {
            (Some(up), Some(down)) => up <= down,
            (up, _) => up.is_some(),
        };
        let take = |this: &mut Self, from| {
            let taken = if from == Side::Client { this.0.take(until) } else { this.1.take(until) };
            taken.map(|(at, unit)| (at, from, unit))
        };
        let first = if client_first { Side::Client } else { Side::Server };
        take(self, first).or_else(|| take(self, first.peer()))
    }
}

/// Both directions of a bearer.
impl Medium for Path {
    fn offer(&mut self, from: Side, at: Ns, unit: Unit) -> Fate {
        let direction = if from == Side::Client { Direction::Up } else { Direction::Down };
        Self::offer(self, direction, at, unit)
    }

    fn next(&self) -> Option<Ns> {
        Self::next(self).map(|(at, _)| at)
    }

    fn take(&mut self, until: Ns) -> Option<(Ns, Side, Unit)> {
        let (at, direction, unit) = Self::take(self, until)?;
        Some((at, if direction == Direction::Up { Side::Client } else { Side::Server }, unit))
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
    pub client: Box<Negotiated>,
    /// What the server says it came to.
    pub server: Box<Negotiated>,
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
    #[error("the link dropped a part of the {side}'s stream ({cause}), which nothing here sends again")]
    StreamCut { side: Side, cause: &'static str },
    #[error("no connection after {rounds} rounds: client in state {client}, server in state {server}")]
    TooManyRounds { rounds: u32, client: String, server: String },
    #[error("both sides wait for each other: client in state {client}, server in state {server}")]
    Deadlock { client: String, server: String },
}

/// Rounds that a handshake may take. Over the null link the longest has four flights; over a link that loses datagrams,
/// each may wait for several timers.
const MAX_ROUNDS: u32 = 4096;
/// Units that a side may send without a word from the other; the longest flight has far fewer.
const MAX_UNITS: u32 = 4096;

/// The driver's memory: buffers that units are sent in, so that no allocation falls into what is measured.
#[derive(Default)]
pub struct Loopback {
    spare: Vec<Vec<u8>>,
}

/// What has become of a handshake so far.
#[derive(Default)]
struct Progress {
    transferred: Transferred,
    established: [Option<Box<Negotiated>>; 2],
    data: [Vec<u8>; 2],
    now: Ns,
}

impl Loopback {
    /// Buffers that hold the largest flight without growing.
    #[must_use]
    pub fn new() -> Self {
        let buffer = || Vec::with_capacity(128 * 1024);
        Self { spare: vec![buffer(), buffer()] }
    }

    /// Runs a handshake to its end over the null link: both sides established and nothing left to send.
    ///
    /// Units are handed over directly. What runs between two calls is nobody's time, so it is kept short: after each call
    /// it is found cold.
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
        let mut buffer = self.spare.pop().unwrap_or_default();
        let outcome = self.run_null(client, server, tap, &mut progress, &mut buffer);
        self.spare.push(buffer);
        outcome
    }

    fn run_null(
        &mut self,
        client: &mut dyn Endpoint,
        server: &mut dyn Endpoint,
        tap: &mut dyn Tap,
        progress: &mut Progress,
        buffer: &mut Vec<u8>,
    ) -> Result<Handshake, DriveError> {
        loop {
            let mut moved = self.pass(client, server, tap, progress, buffer)?;
            moved |= self.pass(server, client, tap, progress, buffer)?;
            progress.transferred.rounds += 1;
            if !moved {
                if let Some(handshake) = progress.finished() {
                    return Ok(handshake);
                }
                self.wait(None, client, server, tap, progress)?;
            }
            if progress.transferred.rounds >= MAX_ROUNDS {
                return Err(too_many(progress, client, server));
            }
        }
    }

    /// Hands all that `from` has to send straight to `to`. True if there was anything.
    fn pass(
        &mut self,
        from: &mut dyn Endpoint,
        to: &mut dyn Endpoint,
        tap: &mut dyn Tap,
        progress: &mut Progress,
        buffer: &mut Vec<u8>,
    ) -> Result<bool, DriveError> {
        let now = progress.now.into();
        for units in 0..MAX_UNITS {
            buffer.clear();
            if !from.poll_transmit(now, buffer) {
                // A client's first call builds its first flight, and may fail.
                if progress.transferred.rounds == 0 {
                    self.collect(from, to, tap, progress)?;
                }
                return Ok(units > 0);
            }
            match from.side() {
                Side::Client => progress.transferred.client_to_server += buffer.len() as u64,
                Side::Server => progress.transferred.server_to_client += buffer.len() as u64,
            }
            tap.unit(from.side(), buffer);
            to.handle_input(now, buffer);
            self.collect(to, from, tap, progress)?;
            if from.transport() == Transport::Stream {
                return Ok(true);
            }
        }
        Ok(true)
    }

    /// The same over any medium. A stream's endpoints need one that drops nothing and keeps the order.
    ///
    /// # Errors
    /// As [`handshake`](Self::handshake), and [`DriveError::StreamCut`].
    pub fn handshake_over(
        &mut self,
        medium: &mut dyn Medium,
        client: &mut dyn Endpoint,
        server: &mut dyn Endpoint,
        tap: &mut dyn Tap,
    ) -> Result<Handshake, DriveError> {
        let mut progress = Progress::default();
        loop {
            let mut moved = self.send(medium, client, server, tap, &mut progress)?;
            moved |= self.deliver(medium, client, server, tap, &mut progress)?;
            moved |= self.send(medium, server, client, tap, &mut progress)?;
            moved |= self.deliver(medium, client, server, tap, &mut progress)?;
            progress.transferred.rounds += 1;
            if !moved {
                if medium.next().is_none()
                    && let Some(handshake) = progress.finished()
                {
                    return Ok(handshake);
                }
                self.wait(medium.next(), client, server, tap, &mut progress)?;
            }
            if progress.transferred.rounds >= MAX_ROUNDS {
                return Err(too_many(&progress, client, server));
            }
        }
    }

    /// Puts all that an endpoint has to send on its way. True if there was anything.
    fn send(
        &mut self,
        medium: &mut dyn Medium,
        from: &mut dyn Endpoint,
        to: &mut dyn Endpoint,
        tap: &mut dyn Tap,
        progress: &mut Progress,
    ) -> Result<bool, DriveError> {
        let side = from.side();
        for units in 0..MAX_UNITS {
            let mut buffer = self.spare.pop().unwrap_or_default();
            buffer.clear();
            if !from.poll_transmit(progress.now.into(), &mut buffer) {
                self.spare.push(buffer);
                // The first call builds a client's first flight, and may fail.
                self.collect(from, to, tap, progress)?;
                return Ok(units > 0);
            }
            match side {
                Side::Client => progress.transferred.client_to_server += buffer.len() as u64,
                Side::Server => progress.transferred.server_to_client += buffer.len() as u64,
            }
            tap.unit(side, &buffer);
            let length = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
            let fate = medium.offer(side, progress.now, Unit::new(length, buffer));
            if from.transport() == Transport::Stream {
                // One poll gives all that is pending, and nothing here sends again what a link drops.
                return match fate {
                    Fate::Dropped(cause) => Err(DriveError::StreamCut { side, cause: cause.as_str() }),
                    _ => Ok(true),
                };
            }
        }
        Ok(true)
    }

    /// Hands over what has arrived. True if anything had.
    fn deliver(
        &mut self,
        medium: &mut dyn Medium,
        client: &mut dyn Endpoint,
        server: &mut dyn Endpoint,
        tap: &mut dyn Tap,
        progress: &mut Progress,
    ) -> Result<bool, DriveError> {
        let mut moved = false;
        while let Some((_, from, unit)) = medium.take(progress.now) {
            moved = true;
            let Some(bytes) = unit.payload else { continue };
            match from {
                Side::Client => self.hand_over(bytes, server, client, tap, progress)?,
                Side::Server => self.hand_over(bytes, client, server, tap, progress)?,
            }
        }
        Ok(moved)
    }

    fn hand_over(
        &mut self,
        bytes: Vec<u8>,
        to: &mut dyn Endpoint,
        from: &mut dyn Endpoint,
        tap: &mut dyn Tap,
        progress: &mut Progress,
    ) -> Result<(), DriveError> {
        to.handle_input(progress.now.into(), &bytes);
        self.spare.push(bytes);
        self.collect(to, from, tap, progress)
    }

    /// Nothing arrives now and nobody has anything to send: goes on to the next arrival or timer.
    fn wait(
        &mut self,
        arrival: Option<Ns>,
        client: &mut dyn Endpoint,
        server: &mut dyn Endpoint,
        tap: &mut dyn Tap,
        progress: &mut Progress,
    ) -> Result<(), DriveError> {
        let timer = |endpoint: &dyn Endpoint| endpoint.poll_timeout().map(Ns::from);
        let due = [arrival, timer(client), timer(server)].into_iter().flatten().min();
        let Some(due) = due else {
            return Err(DriveError::Deadlock { client: client.state(), server: server.state() });
        };
        progress.now = progress.now.max(due);
        self.run_timer(client, server, tap, progress)?;
        self.run_timer(server, client, tap, progress)
    }

    fn run_timer(
        &mut self,
        endpoint: &mut dyn Endpoint,
        peer: &mut dyn Endpoint,
        tap: &mut dyn Tap,
        progress: &mut Progress,
    ) -> Result<(), DriveError> {
        if endpoint.poll_timeout().is_some_and(|deadline| Ns::from(deadline) <= progress.now) {
            endpoint.handle_timeout(progress.now.into());
            self.collect(endpoint, peer, tap, progress)?;
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
                    let mut buffer = self.spare.pop().unwrap_or_default();
                    buffer.clear();
                    if endpoint.poll_transmit(progress.now.into(), &mut buffer) {
                        tap.unit(side, &buffer);
                        peer.handle_input(progress.now.into(), &buffer);
                    }
                    self.spare.push(buffer);
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

fn too_many(progress: &Progress, client: &dyn Endpoint, server: &dyn Endpoint) -> DriveError {
    let rounds = progress.transferred.rounds;
    DriveError::TooManyRounds { rounds, client: client.state(), server: server.state() }
}

impl Progress {
    /// The handshake, once both sides have finished it.
    fn finished(&mut self) -> Option<Handshake> {
        let [Some(_), Some(_)] = &self.established else { return None };
        let (client, server) = (self.established[0].take()?, self.established[1].take()?);
        let data = std::mem::take(&mut self.data);
        Some(Handshake { transferred: self.transferred, client, server, data, now: self.now.into() })
    }
}
