//! Times and counts of many authentications, in memory that does not grow with their number.

use serde::Serialize;
use shakedown_sim::histogram::Histogram;
use std::collections::BTreeMap;

/// Times in seconds, from when an authentication was due to its end. Percentiles have a relative error of at most
/// 1/2000.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Times {
    pub mean: f64,
    pub p50: f64,
    /// `None`, like `p99`, if there are too few times.
    pub p95: Option<f64>,
    pub p99: Option<f64>,
    pub max: f64,
}

impl Times {
    /// From times in nanoseconds; `None` if there are none.
    pub fn of(times: &Histogram) -> Option<Self> {
        let summary = times.summary(1e9);
        Some(Self {
            mean: summary.mean?,
            p50: summary.p50?,
            p95: summary.p95,
            p99: summary.p99,
            max: summary.max?,
        })
    }
}

/// Exact counts of a few different values.
#[derive(Default)]
pub struct Counts(BTreeMap<u64, u64>);

impl Counts {
    pub fn record(&mut self, value: u64) {
        *self.0.entry(value).or_default() += 1;
    }

    /// The median; of an even number of values, the lower of the two in the middle.
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
    use super::*;

    #[test]
    fn median_of_an_even_count_is_the_lower_middle_value() {
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
