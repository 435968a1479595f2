//! Serialisation of units at a rate, behind a bounded queue.

use crate::{Drop, Fate, Link, Ns, Payload, Unit};
use std::collections::VecDeque;

/// A rate, exact to a thousandth of a bit per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateValue {
    millibits_per_s: u64,
}

impl RateValue {
    /// `None` if the rate is not above 0, not finite, or 9 Pbit/s or more.
    pub fn from_bits_per_s(rate: f64) -> Option<Self> {
        let millibits_per_s = (rate * 1e3 + 0.5) as u64;
        (rate.is_finite() && millibits_per_s > 0 && rate < 9e15).then_some(Self { millibits_per_s })
    }

    /// The transmission time of `bytes` bytes, rounded down to nanoseconds.
    pub fn time_of(self, bytes: u32) -> Ns {
        let work = u128::from(bytes) * 8 * u128::from(PER_BIT);
        Ns(u64::try_from(work / u128::from(self.millibits_per_s)).unwrap_or(u64::MAX))
    }
}

#[derive(Clone, Debug)]
enum Speed {
    /// Transmission takes no time.
    Unlimited,
    Constant(RateValue),
}

/// Silence that a sender keeps after each unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Silence {
    /// Share of the time that may be spent sending.
    pub duty_cycle: f64,
    /// An additional pause.
    pub pause: Ns,
}

impl Silence {
    /// Length of the silence after a unit that took `sending`.
    #[inline]
    pub fn after(self, sending: Ns) -> Ns {
        self.pause + Ns::from_secs_f64(sending.as_secs_f64() * (1.0 / self.duty_cycle - 1.0))
    }
}

/// A sender that serialises units one after another: `free_at = max(free_at, at) + length / rate`. The remainder of
/// the division is carried to the next unit while there is no pause. Without a bound, the queue is unlimited.
#[derive(Clone, Debug)]
pub struct Rate<L> {
    /// The next link.
    pub inner: L,
    speed: Speed,
    free_at: Ns,
    /// Remainder of the last division, in units of 10⁻¹² bits.
    carried: u64,
    busy: Ns,
    sent_bytes: u64,
    silence: Option<Silence>,
    queue: Option<Queue>,
    interleaved: Option<Box<Interleaved>>,
}

/// Transmissions on a medium that each direction uses in the silences of the other: when each begins and ends.
type Transmissions = VecDeque<(Ns, Ns)>;

#[derive(Clone, Debug, Default)]
struct Interleaved {
    own: Transmissions,
    /// Those of the other direction, in order.
    other: Transmissions,
}

#[derive(Clone, Debug)]
struct Queue {
    /// Limit of `bytes`, including the unit in service.
    limit: u64,
    bytes: u64,
    departures: VecDeque<(Ns, u32)>,
}

/// Units of 10⁻¹² bits per bit: the unit of a rate in 10⁻³ bit/s times a time in nanoseconds.
const PER_BIT: u64 = 1_000_000_000_000;

impl<L> Rate<L> {
    /// An unlimited rate: units neither wait nor take time.
    pub fn unlimited(inner: L) -> Self {
        Self::with(Speed::Unlimited, inner)
    }

    pub fn new(rate: RateValue, inner: L) -> Self {
        Self::with(Speed::Constant(rate), inner)
    }

    fn with(speed: Speed, inner: L) -> Self {
        Self {
            inner,
            speed,
            free_at: Ns::ZERO,
            carried: 0,
            busy: Ns::ZERO,
            sent_bytes: 0,
            silence: None,
            queue: None,
            interleaved: None,
        }
    }

    /// Reads part of the state that the next unit needs; see [`Path::touch`](crate::Path::touch).
    #[inline]
    pub(crate) fn touch(&self) -> u64 {
        let waiting = |queue: &Queue| queue.departures.front().map_or(queue.bytes, |(at, _)| at.0);
        self.free_at.0 ^ self.sent_bytes ^ self.queue.as_ref().map_or(0, waiting)
    }

    /// Resets to the state before the first unit, without allocating.
    pub(crate) fn renew(&mut self) {
        (self.free_at, self.busy) = (Ns::ZERO, Ns::ZERO);
        (self.carried, self.sent_bytes) = (0, 0);
        if let Some(queue) = &mut self.queue {
            queue.bytes = 0;
            queue.departures.clear();
        }
        if let Some(Interleaved { own, other }) = self.interleaved.as_deref_mut() {
            own.clear();
            other.clear();
        }
    }

    /// Drops arriving units for which the queue has no room; `None`: there is always room.
    #[must_use]
    pub fn bounded(mut self, bytes: Option<u64>) -> Self {
        self.queue = bytes.map(|limit| Queue { limit, bytes: 0, departures: VecDeque::new() });
        self
    }

    /// Keeps silence after each unit.
    #[must_use]
    pub fn silent(mut self, silence: Option<Silence>) -> Self {
        self.silence = silence;
        self
    }

    /// Also sends in the silences of the other direction, if their medium is half duplex.
    #[must_use]
    pub(crate) fn interleaved(mut self, interleaved: bool) -> Self {
        self.interleaved = interleaved.then(Box::default);
        self
    }

    /// Its transmissions that may not be over; `None` if the other direction does not use its silences.
    pub(crate) fn transmissions(&self) -> Option<&Transmissions> {
        self.interleaved.as_deref().map(|interleaved| &interleaved.own)
    }

    /// Units offered from `at` on are sent between these transmissions of the other direction.
    pub(crate) fn avoid(&mut self, at: Ns, transmissions: &Transmissions) {
        let Some(Interleaved { own, other }) = self.interleaved.as_deref_mut() else { return };
        own.retain(|(_, ends)| *ends > at);
        other.clear();
        other.extend(transmissions.iter().filter(|(_, ends)| *ends > at));
    }

    /// End of sending of all accepted units, including the silence after the last.
    #[inline]
    pub fn free_at(&self) -> Ns {
        self.free_at
    }

    /// Total transmission time.
    #[inline]
    pub fn busy(&self) -> Ns {
        self.busy
    }

    /// Total number of sent bytes, including the overhead added by earlier links.
    #[inline]
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// Sends nothing before `time`, because the medium is occupied or the radio is not connected.
    pub fn hold_until(&mut self, time: Ns) {
        if time > self.free_at {
            self.free_at = time;
            self.carried = 0;
        }
    }

    /// Sends a unit from `at` on that is not delivered.
    pub fn spend(&mut self, at: Ns, bytes: u32) {
        self.hold_until(at);
        let start = self.free_at;
        self.serialise(start, bytes);
    }

    /// Sends a unit from `start` on, with the silence after it; returns when it was sent.
    #[inline(always)]
    fn serialise(&mut self, mut start: Ns, bytes: u32) -> Ns {
        let took = self.time_of(bytes);
        if let Some(Interleaved { own, other }) = self.interleaved.as_deref_mut() {
            for (begins, ends) in other {
                if start + took > *begins {
                    start = start.max(*ends);
                }
            }
            own.push_back((start, start + took));
        }
        let sent_at = start + took;
        self.free_at = sent_at;
        self.busy += sent_at - start;
        self.sent_bytes += u64::from(bytes);
        if let Some(silence) = self.silence {
            self.free_at += silence.after(sent_at - start);
        }
        sent_at
    }

    /// How long it takes to send a unit.
    fn time_of(&mut self, bytes: u32) -> Ns {
        match &self.speed {
            Speed::Unlimited => Ns::ZERO,
            Speed::Constant(rate) => {
                let rate = rate.millibits_per_s;
                let took = if bytes < 2_000_000 {
                    // Below 2⁶⁴ up to 2.4 Pbit/s: 1.6·10⁷ bits of 10¹² units, plus a remainder below the rate.
                    let work = u64::from(bytes) * 8 * PER_BIT + self.carried;
                    self.carried = work % rate;
                    work / rate
                } else {
                    let work = u128::from(bytes) * 8 * u128::from(PER_BIT) + u128::from(self.carried);
                    self.carried = (work % u128::from(rate)) as u64;
                    u64::try_from(work / u128::from(rate)).unwrap_or(u64::MAX)
                };
                Ns(took)
            }
        }
    }
}

impl Queue {
    /// True if there is room at that time.
    #[inline]
    fn admits(&mut self, at: Ns, bytes: u32) -> bool {
        while let Some(&(departure, length)) = self.departures.front() {
            if departure > at {
                break;
            }
            self.bytes -= u64::from(length);
            self.departures.pop_front();
        }
        self.bytes + u64::from(bytes) <= self.limit
    }
}

impl<P: Payload, L: Link<P>> Link<P> for Rate<L> {
    #[inline(always)]
    fn offer(&mut self, at: Ns, unit: Unit<P>) -> Fate {
        if self.queue.as_mut().is_some_and(|queue| !queue.admits(at, unit.bytes)) {
            return Fate::Dropped(Drop::QueueFull);
        }
        if at > self.free_at {
            self.free_at = at;
            self.carried = 0;
        }
        let start = self.free_at;
        let sent_at = self.serialise(start, unit.bytes);
        if let Some(queue) = &mut self.queue {
            queue.bytes += u64::from(unit.bytes);
            queue.departures.push_back((sent_at, unit.bytes));
        }
        self.inner.offer(sent_at, unit)
    }

    #[inline]
    fn next(&self) -> Option<Ns> {
        self.inner.next()
    }

    #[inline]
    fn take(&mut self, until: Ns) -> Option<(Ns, Unit<P>)> {
        self.inner.take(until)
    }
}
