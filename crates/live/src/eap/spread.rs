//! Times and counts of many authentications, in memory that does not grow with their number.

use hdrhistogram::Histogram;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Seconds from when an authentication was due to its end. Percentiles are the least times that so large a share did not
/// exceed, true to one part in ten thousand.
#[derive(Clone, Copy, Debug, Serialize)]
#[allow(missing_docs)] // the names say it
pub struct Times {
    pub mean: f64,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    pub max: f64,
}

/// Of four digits: figures are shown with three, and a figure of three could be one off in its last.
const DIGITS: u8 = 4;

/// Durations; their mean and longest are exact.
pub struct Durations {
    nanoseconds: Histogram<u64>,
    sum: Duration,
    shortest: Duration,
    longest: Duration,
}

impl Default for Durations {
    fn default() -> Self {
        Self {
            // Of any duration: such a histogram can always be made.
            nanoseconds: Histogram::new(DIGITS).unwrap_or_else(|_| unreachable!()),
            sum: Duration::ZERO,
            shortest: Duration::MAX,
            longest: Duration::ZERO,
        }
    }
}

impl Durations {
    /// Counts one.
    pub fn record(&mut self, took: Duration) {
        self.sum += took;
        self.shortest = self.shortest.min(took);
        self.longest = self.longest.max(took);
        // The histogram grows to what it is given.
        let _ = self.nanoseconds.record(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    /// `None` of none.
    pub fn times(&self) -> Option<Times> {
        if self.nanoseconds.is_empty() {
            return None;
        }
        let (shortest, longest) = (self.shortest.as_secs_f64(), self.longest.as_secs_f64());
        let seconds = |share: f64| {
            // A bucket stands for all that is in it by its middle, which may lie beyond the ends of what there is.
            let value = self.nanoseconds.median_equivalent(self.nanoseconds.value_at_quantile(share));
            (value as f64 / 1e9).clamp(shortest, longest)
        };
        Some(Times {
            mean: self.sum.as_secs_f64() / self.nanoseconds.len() as f64,
            p50: seconds(0.50),
            p95: seconds(0.95),
            p99: seconds(0.99),
            max: longest,
        })
    }
}

/// Counts of a few different values, exactly.
#[derive(Default)]
pub struct Counts(BTreeMap<u64, u64>);

impl Counts {
    /// Counts one.
    pub fn record(&mut self, value: u64) {
        *self.0.entry(value).or_default() += 1;
    }

    /// The lower one of the two in the middle, where there are two.
    pub fn median(&self) -> Option<u64> {
        let all: u64 = self.0.values().sum();
        let mut seen = 0;
        self.0.iter().find_map(|(value, times)| {
            seen += times;
            (2 * seen >= all).then_some(*value)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The figure that a share of the sorted values does not exceed, from its definition.
    fn quantile(sorted: &[u64], percent: usize) -> f64 {
        sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1] as f64 / 1e9
    }

    #[test]
    fn percentiles_are_true_to_the_digits_shown() {
        // Times of four decades, drawn from a fixed sequence, in samples of every size up to some thousands.
        let mut state = 7_u64;
        for length in [1, 2, 3, 10, 99, 100, 101, 5000] {
            let mut values: Vec<u64> = (0..length)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let share = (state >> 11) as f64 / (1_u64 << 53) as f64;
                    (1e6 * 1e4_f64.powf(share)) as u64
                })
                .collect();
            let mut durations = Durations::default();
            values.iter().for_each(|value| durations.record(Duration::from_nanos(*value)));
            values.sort_unstable();
            let found = durations.times().unwrap();
            for (percent, one) in [(50, found.p50), (95, found.p95), (99, found.p99), (100, found.max)] {
                let wanted = quantile(&values, percent);
                assert!((one / wanted - 1.0).abs() <= 1e-4, "{percent} % of {length}: {one}, not {wanted}");
            }
            let mean = values.iter().sum::<u64>() as f64 / 1e9 / length as f64;
            assert!((found.mean / mean - 1.0).abs() < 1e-9);
            assert!(found.p50 <= found.p95 && found.p95 <= found.p99 && found.p99 <= found.max);
        }
        assert!(Durations::default().times().is_none());
    }

    #[test]
    fn the_median_of_counts_is_the_lower_of_the_two_in_the_middle() {
        let median = |values: &[u64]| {
            let mut counts = Counts::default();
            values.iter().for_each(|value| counts.record(*value));
            counts.median()
        };
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[4]), Some(4));
        assert_eq!(median(&[9, 4]), Some(4));
        assert_eq!(median(&[9, 4, 5]), Some(5));
        assert_eq!(median(&[3, 3, 7, 7]), Some(3));
        assert_eq!(median(&[3, 7, 7, 7]), Some(7));
    }
}
