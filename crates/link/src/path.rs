//! Both directions between a client and what it talks to, and what they share.

use crate::bearer::OneWay;
use crate::{Fate, Link, Ns, Payload, Unit};
use serde::{Deserialize, Serialize};

/// Which way a unit goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the client.
    Up,
    /// To the client.
    Down,
}

impl Direction {
    /// The other way.
    #[inline]
    #[must_use]
    pub fn reverse(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Down => Self::Up,
        }
    }
}

/// The state of a client's radio: idle until somebody sends, then set up, and idle again some time after the last unit.
#[derive(Clone, Copy, Debug)]
pub struct Radio {
    setup: Ns,
    idle_after: Option<Ns>,
    /// When it is, or will be, set up; `None` before the first unit.
    ready_at: Option<Ns>,
    last_activity: Ns,
    setting_up: Ns,
    setups: u32,
    connected: Ns,
}

impl Radio {
    /// An idle radio, which needs `setup` before a unit can go, and falls idle `idle_after` the last one, if ever.
    #[must_use]
    pub fn new(setup: Ns, idle_after: Option<Ns>) -> Self {
        let zero = Ns::ZERO;
        Self {
            setup,
            idle_after,
            ready_at: None,
            last_activity: zero,
            setting_up: zero,
            setups: 0,
            connected: zero,
        }
    }

    /// From now on it takes so long to be set up.
    pub(crate) fn takes(&mut self, setup: Ns) {
        self.setup = setup;
    }

    /// Since when it has been connected and, if it falls idle before `now`, when that was.
    fn session(&self, now: Ns) -> Option<(Ns, Option<Ns>)> {
        let ready_at = self.ready_at?;
        let idle_at = self.idle_after.map(|after| self.last_activity.max(ready_at) + after);
        Some((ready_at, idle_at.filter(|idle| *idle <= now)))
    }

    /// When a unit offered at `at` can go; sets the radio up where it is idle.
    fn ready(&mut self, at: Ns) -> Ns {
        match self.session(at) {
            Some((ready_at, None)) => ready_at,
            session => {
                if let Some((ready_at, Some(idle_at))) = session {
                    self.connected += idle_at - ready_at;
                }
                self.setting_up += self.setup;
                self.setups += 1;
                let ready_at = at + self.setup;
                self.ready_at = Some(ready_at);
                ready_at
            }
        }
    }

    /// Seconds set up and connected (sending and receiving included), up to `until`.
    fn times(&self, until: Ns) -> (Ns, Ns) {
        let open = self
            .session(until)
            .map_or(Ns::ZERO, |(ready_at, idle_at)| idle_at.unwrap_or(until).since(ready_at));
        (self.setting_up, self.connected + open)
    }
}

/// How long a client's radio was in which state, and how many bytes it moved; from which energy is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RadioTimes {
    /// Sending.
    pub sending: Ns,
    /// Receiving.
    pub receiving: Ns,
    /// Being set up.
    pub setting_up: Ns,
    /// How often it was set up.
    pub setups: u32,
    /// Set up, but neither sending nor receiving.
    pub waiting: Ns,
    /// Idle.
    pub idle: Ns,
    /// Bytes sent, with all that the link adds.
    pub sent_bytes: u64,
    /// Bytes received, with all that the link adds.
    pub received_bytes: u64,
}

/// Both directions of a bearer.
#[derive(Debug)]
pub struct Path<P: Payload = Vec<u8>> {
    up: OneWay<P>,
    down: OneWay<P>,
    shared: Option<Box<Shared>>,
}

/// What both directions depend on; most paths have nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shared {
    pub(crate) radio: Option<Radio>,
    /// One medium for both directions, and the time it takes to turn around.
    pub(crate) half_duplex: Option<Ns>,
    pub(crate) last: Option<Direction>,
}

impl<P: Payload> Path<P> {
    pub(crate) fn new(up: OneWay<P>, down: OneWay<P>, shared: Option<Shared>) -> Self {
        Self { up, down, shared: shared.map(Box::new) }
    }

    /// As before the first unit, but for the ways themselves.
    pub(crate) fn renew(&mut self, shared: Option<Shared>) {
        match (self.shared.as_deref_mut(), shared) {
            (Some(own), Some(fresh)) => *own = fresh,
            (_, fresh) => self.shared = fresh.map(Box::new),
        }
    }

    /// Offers a unit that goes one way.
    #[inline(always)]
    pub fn offer(&mut self, direction: Direction, at: Ns, unit: Unit<P>) -> Fate {
        if self.shared.is_some() {
            self.hold(direction, at);
        }
        let fate = self.way(direction).offer(at, unit);
        if let Some(Shared { radio: Some(radio), .. }) = self.shared.as_deref_mut() {
            let (up, down) = (self.up.sender().free_at(), self.down.sender().free_at());
            radio.last_activity = radio.last_activity.max(match direction {
                Direction::Up => up,
                Direction::Down => down,
            });
        }
        fate
    }

    /// Keeps a direction from sending before radio and medium are there for it.
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
        if let Some(turnaround) = shared.half_duplex {
            let turns = shared.last.is_some_and(|last| last != direction);
            earliest = earliest.max(other.sender().free_at() + if turns { turnaround } else { Ns::ZERO });
            shared.last = Some(direction);
        }
        if earliest > at {
            way.sender_mut().hold_until(earliest);
        }
    }

    /// When the next unit that goes one way is due; [`Ns::MAX`] where none is under way.
    #[inline]
    #[must_use]
    pub fn due(&self, direction: Direction) -> Ns {
        match direction {
            Direction::Up => self.up.due(),
            Direction::Down => self.down.due(),
        }
    }

    /// When the next unit is due, and where.
    #[inline]
    #[must_use]
    pub fn next(&self) -> Option<(Ns, Direction)> {
        match (self.up.next(), self.down.next()) {
            (Some(up), Some(down)) if down < up => Some((down, Direction::Down)),
            (Some(up), _) => Some((up, Direction::Up)),
            (None, down) => down.map(|down| (down, Direction::Down)),
        }
    }

    /// The next unit that is due until then, with its logical time.
    pub fn take(&mut self, until: Ns) -> Option<(Ns, Direction, Unit<P>)> {
        loop {
            let (due, direction) = self.next().filter(|(due, _)| *due <= until)?;
            // Nothing comes where what was due did not verify, or waits for its other fragments.
            if let Some((at, unit)) = self.way(direction).take(due) {
                return Some((at, direction, unit));
            }
        }
    }

    /// Both directions, the client's first.
    pub(crate) fn ways(&self) -> [&OneWay<P>; 2] {
        [&self.up, &self.down]
    }

    /// One direction.
    #[inline]
    pub fn way(&mut self, direction: Direction) -> &mut OneWay<P> {
        match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        }
    }

    /// Units offered to either direction's loss, the client's first.
    #[must_use]
    pub fn units(&self) -> [u32; 2] {
        [self.up.sender().inner.offered(), self.down.sender().inner.offered()]
    }

    /// How long the client's radio was in which state from one time to another, on a path that was not used before.
    #[must_use]
    pub fn times(&self, from: Ns, until: Ns) -> RadioTimes {
        let (up, down) = (self.up.sender(), self.down.sender());
        let radio = self.shared.as_deref().and_then(|shared| shared.radio);
        // Without a radio that must be set up the client is always connected.
        let (setting_up, connected) = radio.map_or((Ns::ZERO, until - from), |radio| radio.times(until));
        RadioTimes {
            sending: up.busy(),
            receiving: down.busy(),
            setting_up,
            setups: radio.map_or(0, |radio| radio.setups),
            waiting: connected.since(up.busy() + down.busy()),
            idle: (until - from).since(setting_up + connected),
            sent_bytes: up.sent_bytes(),
            received_bytes: down.sent_bytes(),
        }
    }
}
