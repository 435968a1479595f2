//! Both directions of a client's network path, and the state that they share.

use crate::one_way::OneWay;
use crate::{Fate, Link, Ns, Payload, Unit};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    Up,
    Down,
}

impl Direction {
    #[inline]
    #[must_use]
    pub fn reverse(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Down => Self::Up,
        }
    }
}

/// A client's radio, which is set up when either side sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Radio {
    /// The time that one set-up takes.
    setup: Ns,
    /// When set-up is complete; `None` while idle.
    ready_at: Option<Ns>,
    /// Number of set-ups.
    setups: u32,
    /// Total time connected until the radio was last released, without the tails after that.
    connected: Ns,
}

impl Radio {
    /// An idle radio whose set-up takes `setup` each time.
    pub(crate) fn new(setup: Ns) -> Self {
        Self { setup, ready_at: None, setups: 0, connected: Ns::ZERO }
    }

    /// Makes the radio idle.
    fn release(&mut self, at: Ns) {
        if let Some(ready_at) = self.ready_at.take() {
            self.connected += at.since(ready_at);
        }
    }

    /// When a unit offered at `at` can be sent; sets up an idle radio.
    fn ready(&mut self, at: Ns) -> Ns {
        *self.ready_at.get_or_insert_with(|| {
            self.setups += 1;
            at + self.setup
        })
    }

    /// Time of the first set-up, and time connected (including sending and receiving) until `until`.
    fn times(&self, until: Ns) -> (Ns, Ns) {
        let open = self.ready_at.map_or(Ns::ZERO, |ready_at| until.since(ready_at));
        (if self.setups == 0 { Ns::ZERO } else { self.setup }, self.connected + open)
    }
}

/// Time of a client's radio in each state, and its bytes; energy is computed from these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RadioTimes {
    pub sending: Ns,
    pub receiving: Ns,
    /// The first set-up.
    pub first_setup: Ns,
    /// How often it was set up.
    pub setups: u32,
    /// Set up, but neither sending nor receiving; without the tails that follow a release.
    pub waiting: Ns,
    pub sent_bytes: u64,
    pub received_bytes: u64,
}

/// Both directions of a bearer.
#[derive(Debug)]
pub struct Path<P: Payload = Vec<u8>> {
    up: OneWay<P>,
    down: OneWay<P>,
    shared: Option<Box<Shared>>,
}

/// State that both directions share; most paths have none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shared {
    pub(crate) radio: Option<Radio>,
    /// Both directions share the medium.
    pub(crate) half_duplex: bool,
}

impl<P: Payload> Path<P> {
    pub(crate) fn new(up: OneWay<P>, down: OneWay<P>, shared: Option<Shared>) -> Self {
        Self { up, down, shared: shared.map(Box::new) }
    }

    /// Resets the shared state; the directions themselves are reset separately.
    pub(crate) fn renew(&mut self, shared: Option<Shared>) {
        match (self.shared.as_deref_mut(), shared) {
            (Some(own), Some(fresh)) => *own = fresh,
            (_, fresh) => self.shared = fresh.map(Box::new),
        }
    }

    /// Offers a unit in one direction, like [`Link::offer`]. Sets up an idle radio first, and waits until a
    /// half-duplex medium is free.
    #[inline(always)]
    pub fn offer(&mut self, direction: Direction, at: Ns, unit: Unit<P>) -> Fate {
        if self.shared.is_some() {
            self.hold(direction, at);
        }
        self.way(direction).offer(at, unit)
    }

    /// Sets up the radio if it is idle, and returns when it is connected.
    pub fn set_up(&mut self, at: Ns) -> Ns {
        match self.shared.as_deref_mut().and_then(|shared| shared.radio.as_mut()) {
            Some(radio) => radio.ready(at).max(at),
            None => at,
        }
    }

    /// Occupies the sender from `at` for as long as a unit of `bytes` on the link would. Nothing is received.
    pub fn spend(&mut self, direction: Direction, at: Ns, bytes: u32) {
        self.way(direction).sender_mut().spend(at, bytes);
    }

    /// Ends the time connected at `at`. After its inactivity tail, which is not part of it, the radio is idle: the next
    /// unit sets it up again.
    pub fn release(&mut self, at: Ns) {
        if let Some(radio) = self.shared.as_deref_mut().and_then(|shared| shared.radio.as_mut()) {
            radio.release(at);
        }
    }

    /// Delays a direction until the radio is connected and the medium is free.
    fn hold(&mut self, direction: Direction, at: Ns) {
        let Some(shared) = self.shared.as_deref_mut() else { return };
        let mut earliest = at;
        if let Some(radio) = &mut shared.radio {
            earliest = earliest.max(radio.ready(at));
        }
        let (way, other) = match direction {
            Direction::Up => (&mut self.up, &self.down),
            Direction::Down => (&mut self.down, &self.up),
        };
        if shared.half_duplex {
            match other.sender().transmissions() {
                Some(transmissions) => way.sender_mut().avoid(at, transmissions),
                None => earliest = earliest.max(other.sender().free_at()),
            }
        }
        if earliest > at {
            way.sender_mut().hold_until(earliest);
        }
    }

    /// When the next unit in one direction is due; [`Ns::MAX`] if none is in flight.
    #[inline]
    pub fn due(&self, direction: Direction) -> Ns {
        match direction {
            Direction::Up => self.up.due(),
            Direction::Down => self.down.due(),
        }
    }

    /// When the next unit is due, and its direction.
    #[inline]
    pub fn next(&self) -> Option<(Ns, Direction)> {
        match (self.up.next(), self.down.next()) {
            (Some(up), Some(down)) if down < up => Some((down, Direction::Down)),
            (Some(up), _) => Some((up, Direction::Up)),
            (None, down) => down.map(|down| (down, Direction::Down)),
        }
    }

    /// The next unit that is due no later than `until`, with its logical time, which does not depend on how
    /// late this is called.
    pub fn take(&mut self, until: Ns) -> Option<(Ns, Direction, Unit<P>)> {
        loop {
            let (due, direction) = self.next().filter(|(due, _)| *due <= until)?;
            // Nothing is delivered if decryption failed or fragments are missing.
            if let Some((at, unit)) = self.way(direction).take(due) {
                return Some((at, direction, unit));
            }
        }
    }

    /// Reads part of both directions, so that they are in the processor's cache when they are needed. The result has no
    /// meaning. A simulator touches all paths that it will use next, so that their cache misses overlap.
    pub fn touch(&self) -> u64 {
        let [up, down] = self.ways();
        up.touch_links() ^ down.touch_links()
    }

    /// Both directions, the client's first.
    pub(crate) fn ways(&self) -> [&OneWay<P>; 2] {
        [&self.up, &self.down]
    }

    #[inline]
    pub fn way(&mut self, direction: Direction) -> &mut OneWay<P> {
        match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        }
    }

    /// Number of units offered to the loss process of each direction, the client's first.
    pub fn units(&self) -> [u32; 2] {
        [self.up.sender().inner.offered(), self.down.sender().inner.offered()]
    }

    /// Time of the client's radio in each state from `from` to `until`, on a path that was not used before `from`.
    pub fn times(&self, from: Ns, until: Ns) -> RadioTimes {
        let (up, down) = (self.up.sender(), self.down.sender());
        let radio = self.shared.as_deref().and_then(|shared| shared.radio);
        // Without a radio that must be set up the client is always connected.
        let (first_setup, connected) = radio.map_or((Ns::ZERO, until - from), |radio| radio.times(until));
        RadioTimes {
            sending: up.busy(),
            receiving: down.busy(),
            first_setup,
            setups: radio.map_or(0, |radio| radio.setups),
            waiting: connected.since(up.busy() + down.busy()),
            sent_bytes: up.sent_bytes(),
            received_bytes: down.sent_bytes(),
        }
    }
}
