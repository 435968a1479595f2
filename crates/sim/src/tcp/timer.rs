//! The expiry of the kernel's timers.

use serde::{Deserialize, Serialize};
use shakedown_link::{Ns, Stream};

/// A host's clock of jiffies.
///
/// Timers are set to whole jiffies and stored in a wheel whose levels become coarser with distance. They are therefore
/// late, never early: timers below 64 jiffies by up to one jiffy, below 512 by up to 8, and so on. At 250 Hz a timer of
/// one second takes 1.000 to 1.032 s, depending on its position in the wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jiffies {
    tick: u64,
    /// The clock's reading at time 0, in nanoseconds.
    phase: u64,
}

/// A level has 64 slots, each 8 times as wide as a slot of the level below.
const SLOTS: u64 = 64;
const WIDER_BITS: u32 = 3;
const LEVELS: u32 = 8;

impl Jiffies {
    /// A clock with N jiffies per second, which started `phase` before time 0.
    #[must_use]
    pub fn new(hz: u32, phase: Ns) -> Self {
        Self { tick: 1_000_000_000 / u64::from(hz.max(1)), phase: phase.0 }
    }

    /// A clock with a random phase: the positions of its timers in the coarser levels of the wheel are not known.
    #[must_use]
    pub fn drawn(hz: u32, mut stream: Stream) -> Self {
        Self::new(hz, Ns(stream.below(1 << 34)))
    }

    /// The clock's reading.
    #[inline]
    #[must_use]
    pub fn at(self, now: Ns) -> u64 {
        now.0.saturating_add(self.phase) / self.tick
    }

    /// The smallest number of whole jiffies that last at least N microseconds.
    #[inline]
    #[must_use]
    pub fn of_us(self, microseconds: u64) -> u64 {
        microseconds.saturating_mul(1_000).div_ceil(self.tick)
    }

    /// The duration of N jiffies in microseconds.
    #[inline]
    #[must_use]
    pub fn as_us(self, jiffies: u64) -> u64 {
        jiffies.saturating_mul(self.tick) / 1_000
    }

    /// When a timer that is set now to N jiffies expires.
    #[must_use]
    pub fn fires(self, now: Ns, jiffies: u64) -> Ns {
        let expires = self.at(now) + jiffies;
        let level = (0..LEVELS).find(|level| jiffies < SLOTS << (WIDER_BITS * level)).unwrap_or(LEVELS - 1);
        let shift = WIDER_BITS * level;
        let slot = ((expires >> shift) + 1) << shift;
        Ns(slot.saturating_mul(self.tick).saturating_sub(self.phase)).max(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_are_late_by_a_slot_of_their_level_and_never_early() {
        for (hz, jiffies, slot) in [
            (250, 10, 1),
            (250, 63, 1),
            (250, 64, 8),
            (250, 250, 8),
            (250, 511, 8),
            (250, 512, 64),
            (1000, 1000, 64),
        ] {
            for step in 0..5000_u64 {
                let now = Ns(step * 777_777);
                let clock = Jiffies::new(hz, Ns(123_456));
                let tick = 1_000_000_000 / u64::from(hz);
                let late = clock.fires(now, jiffies) - now;
                assert!(late.0 >= jiffies * tick, "{jiffies} jiffies took {late}");
                assert!(late.0 <= (jiffies + slot) * tick, "{jiffies} jiffies took {late}");
            }
        }
    }

    #[test]
    fn a_first_syn_times_out_after_1001_to_1032_ms() {
        let clock = Jiffies::new(250, Ns::ZERO);
        let late =
            |ms| (clock.fires(Ns::from_ms(ms), clock.of_us(1_000_000)) - Ns::from_ms(ms)).0 / 1_000_000;
        let all: Vec<u64> = (0..32).map(late).collect();
        assert_eq!((all.iter().min(), all.iter().max()), (Some(&1001), Some(&1032)));
    }
}
