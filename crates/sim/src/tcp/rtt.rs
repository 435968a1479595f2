//! Round trips and the retransmission timeout.

/// Smoothed round-trip time and its deviation, in microseconds, scaled as in Linux: RFC 6298's gains, a minimum
/// deviation instead of a minimum timeout, and a slower growth of the deviation when round trips become shorter.
#[derive(Clone, Copy, Debug)]
pub struct Rtt {
    /// Eight times the smoothed round trip; 0 before the first sample.
    smoothed_8: u64,
    /// Four times the mean deviation.
    deviation_4: u64,
    /// The largest deviation in this round trip.
    max_deviation_4: u64,
    /// The deviation that the timeout uses.
    variation: u64,
    /// The sequence number whose acknowledgement ends this round trip.
    round_ends: u32,
    /// The minimum round-trip time.
    min_us: u64,
}

/// The minimum deviation: 200 ms.
pub const MIN_TIMEOUT_US: u64 = 200_000;

impl Default for Rtt {
    fn default() -> Self {
        Self {
            smoothed_8: 0,
            deviation_4: 0,
            max_deviation_4: 0,
            variation: 0,
            round_ends: 0,
            min_us: u64::MAX,
        }
    }
}

impl Rtt {
    /// Takes a sample. `acknowledged` and `sent`: sequence numbers up to which data was acknowledged and sent.
    pub fn sample(&mut self, us: u64, acknowledged: u32, sent: u32) {
        if self.smoothed_8 == 0 {
            self.smoothed_8 = (us * 8).max(1);
            self.deviation_4 = us * 2;
            self.variation = self.deviation_4.max(MIN_TIMEOUT_US);
            self.max_deviation_4 = self.variation;
            self.round_ends = sent;
            return;
        }
        let error = us as i64 - (self.smoothed_8 / 8) as i64;
        self.smoothed_8 = (self.smoothed_8 as i64 + error).max(1) as u64;
        let mut change = error.abs() - (self.deviation_4 / 4) as i64;
        if error < 0 && change > 0 {
            change /= 8;
        }
        self.deviation_4 = (self.deviation_4 as i64 + change).max(0) as u64;
        if self.deviation_4 > self.max_deviation_4 {
            self.max_deviation_4 = self.deviation_4;
            self.variation = self.variation.max(self.max_deviation_4);
        }
        if acknowledged > self.round_ends {
            if self.max_deviation_4 < self.variation {
                self.variation -= (self.variation - self.max_deviation_4) / 4;
            }
            self.round_ends = sent;
            self.max_deviation_4 = MIN_TIMEOUT_US;
        }
    }

    /// Takes a sample for the minimum round-trip time.
    pub fn sample_min(&mut self, us: u64) {
        self.min_us = self.min_us.min(us.max(1));
    }

    /// The smoothed round-trip time, if there was a sample.
    #[inline]
    #[must_use]
    pub fn smoothed_us(&self) -> Option<u64> {
        (self.smoothed_8 > 0).then_some(self.smoothed_8 / 8)
    }

    /// Twice the smoothed round-trip time, without loss of precision.
    #[must_use]
    pub fn twice_us(&self) -> Option<u64> {
        (self.smoothed_8 > 0).then_some(self.smoothed_8 / 4)
    }

    /// The minimum round-trip time, if there was a sample.
    #[must_use]
    pub fn min_us(&self) -> Option<u64> {
        (self.min_us < u64::MAX).then_some(self.min_us)
    }

    /// The retransmission timeout, if there was a sample.
    #[must_use]
    pub fn timeout_us(&self) -> Option<u64> {
        (self.smoothed_8 > 0).then_some(self.smoothed_8 / 8 + self.variation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_timeout_is_three_round_trips_or_200_ms_more() {
        for (us, timeout) in [(195_600, 586_800), (70_000, 270_000), (100_000, 300_000), (1_000, 201_000)] {
            let mut rtt = Rtt::default();
            assert_eq!(rtt.timeout_us(), None);
            rtt.sample(us, 0, 0);
            assert_eq!(rtt.timeout_us(), Some(timeout));
        }
    }

    #[test]
    fn the_deviation_grows_at_an_eighth_of_the_gain_when_round_trips_fall() {
        let after = |second| {
            let mut rtt = Rtt::default();
            rtt.sample(400_000, 0, 10);
            // Forty equal samples first reduce the deviation.
            for number in 0..40 {
                rtt.sample(400_000, number * 2, number * 2 + 10);
            }
            rtt.sample(second, 100, 110);
            rtt.deviation_4
        };
        let (same, longer, shorter) = (after(400_000), after(700_000), after(100_000));
        assert!(longer - same > 7 * (shorter - same) && shorter > same, "{same} {longer} {shorter}");
    }
}
