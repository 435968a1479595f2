//! The one loop that runs two endpoints against each other in memory, over a link.
//!
//! It never names a stack and knows nothing of instrumentation: a [`Recorded`](crate::Recorded) endpoint keeps its own
//! log. What the driver itself does (handing bytes over), and what lies between the endpoints, is attributed to neither.

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

impl Loopback {
    /// Buffers that hold the largest flight without growing.
    #[must_use]
    pub fn new() -> Self {
        let buffer = || Vec::with_capacity(128 * 1024);
        Self { spare: vec![buffer(), buffer()] }
    }

    /// Runs a handshake to its end over the null link: both sides established and nothing left to send.
    ///
    /// Units are handed over directly. What runs between two calls is attributed to neither side, so it is kept short: after each call
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
        let mut buffer = self.spare.pop().unwrap_or_default();
        let outcome = Run::new(&mut self.spare, client, server, tap).over_nothing(&mut buffer);
        self.spare.push(buffer);
        outcome
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
        Run::new(&mut self.spare, client, server, tap).over(medium)
    }
}

/// A handshake under way: who runs it, who looks on, and what has become of it so far.
struct Run<'a> {
    spare: &'a mut Vec<Vec<u8>>,
    client: &'a mut dyn Endpoint,
    server: &'a mut dyn Endpoint,
    tap: &'a mut dyn Tap,
    transferred: Transferred,
    established: [Option<Box<Negotiated>>; 2],
    data: [Vec<u8>; 2],
    now: Ns,
}

impl<'a> Run<'a> {
    fn new(
        spare: &'a mut Vec<Vec<u8>>,
        client: &'a mut dyn Endpoint,
        server: &'a mut dyn Endpoint,
        tap: &'a mut dyn Tap,
    ) -> Self {
        let (transferred, now) = (Transferred::default(), Ns::ZERO);
        Self {
            spare,
            client,
            server,
            tap,
            transferred,
            established: [None, None],
            data: [vec![], vec![]],
            now,
        }
    }

    fn end(&mut self, side: Side) -> &mut dyn Endpoint {
        match side {
            Side::Client => &mut *self.client,
            Side::Server => &mut *self.server,
        }
    }

    fn over_nothing(&mut self, buffer: &mut Vec<u8>) -> Result<Handshake, DriveError> {
        loop {
            let mut moved = self.pass(Side::Client, buffer)?;
            moved |= self.pass(Side::Server, buffer)?;
            if let Some(handshake) = self.round(moved, None)? {
                return Ok(handshake);
            }
        }
    }

    fn over(&mut self, medium: &mut dyn Medium) -> Result<Handshake, DriveError> {
        loop {
            let mut moved = false;
            for side in Side::BOTH {
                moved |= self.send(medium, side)?;
                moved |= self.deliver(medium)?;
            }
            if let Some(handshake) = self.round(moved, medium.next())? {
                return Ok(handshake);
            }
        }
    }

    /// Ends a round; `arrival` is when the next unit is due. The handshake, once both sides have finished it.
    fn round(&mut self, moved: bool, arrival: Option<Ns>) -> Result<Option<Handshake>, DriveError> {
        self.transferred.rounds += 1;
        if !moved {
            if arrival.is_none()
                && let Some(handshake) = self.finished()
            {
                return Ok(Some(handshake));
            }
            self.wait(arrival)?;
        }
        if self.transferred.rounds < MAX_ROUNDS {
            return Ok(None);
        }
        let (client, server) = (self.client.state(), self.server.state());
        Err(DriveError::TooManyRounds { rounds: self.transferred.rounds, client, server })
    }

    /// Hands all that a side has to send straight to the other. True if there was anything.
    fn pass(&mut self, from: Side, buffer: &mut Vec<u8>) -> Result<bool, DriveError> {
        let now = self.now.into();
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

    /// Counts a unit on its way.
    fn leaves(&mut self, from: Side, unit: &[u8]) {
        match from {
            Side::Client => self.transferred.client_to_server += unit.len() as u64,
            Side::Server => self.transferred.server_to_client += unit.len() as u64,
        }
        self.tap.unit(from, unit);
    }

    /// Puts all that a side has to send on its way. True if there was anything.
    fn send(&mut self, medium: &mut dyn Medium, side: Side) -> Result<bool, DriveError> {
        let now = self.now.into();
        for units in 0..MAX_UNITS {
            let mut buffer = self.spare.pop().unwrap_or_default();
            buffer.clear();
            if !self.end(side).poll_transmit(now, &mut buffer) {
                self.spare.push(buffer);
                // The first call builds a client's first flight, and may fail.
                self.collect(side)?;
                return Ok(units > 0);
            }
            self.leaves(side, &buffer);
            let length = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
            let fate = medium.offer(side, self.now, Unit::new(length, buffer));
            if self.end(side).transport() == Transport::Stream {
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
    fn deliver(&mut self, medium: &mut dyn Medium) -> Result<bool, DriveError> {
        let now = self.now.into();
        let mut moved = false;
        while let Some((_, from, unit)) = medium.take(self.now) {
            moved = true;
            let Some(bytes) = unit.payload else { continue };
            self.end(from.peer()).handle_input(now, &bytes);
            self.spare.push(bytes);
            self.collect(from.peer())?;
        }
        Ok(moved)
    }

    /// Nothing arrives now and neither side has anything to send: goes on to the next arrival or timer.
    fn wait(&mut self, arrival: Option<Ns>) -> Result<(), DriveError> {
        let timer = |endpoint: &dyn Endpoint| endpoint.poll_timeout().map(Ns::from);
        let due = [arrival, timer(self.client), timer(self.server)].into_iter().flatten().min();
        let Some(due) = due else {
            return Err(DriveError::Deadlock { client: self.client.state(), server: self.server.state() });
        };
        self.now = self.now.max(due);
        let now = self.now;
        for side in Side::BOTH {
            if self.end(side).poll_timeout().is_some_and(|deadline| Ns::from(deadline) <= now) {
                self.end(side).handle_timeout(now.into());
                self.collect(side)?;
            }
        }
        Ok(())
    }

    /// Takes what happened at a side. Where its connection ended, its alert is handed to the other, whose reaction to that
    /// is not what went wrong.
    fn collect(&mut self, side: Side) -> Result<(), DriveError> {
        while let Some(event) = self.end(side).poll_event() {
            match event {
                Event::Established(negotiated) => self.established[side as usize] = Some(negotiated),
                Event::Data(mut data) => self.data[side as usize].append(&mut data),
                // Only the two endpoints send here, so what one rejects is what the other has sent.
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
        let now = self.now.into();
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
        Some(Handshake { transferred: self.transferred, client, server, data, now: self.now.into() })
    }
}
