//! Times in histograms of a fixed layout, so that any two merge exactly.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The longest time that is told from longer ones.
const MAX: Duration = Duration::from_secs(4 * 3600);
/// Significant digits of a percentile.
const DIGITS: u8 = 3;

/// Times, counted in buckets of 0.1 per cent; count, sum and maximum are exact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "Counts", from = "Counts")]
pub struct Histogram {
    buckets: hdrhistogram::Histogram<u64>,
    sum_ns: u64,
    max_ns: u64,
}

/// A histogram on its way to where it is merged.
#[derive(Serialize, Deserialize)]
struct Counts {
    sum_ns: u64,
    max_ns: u64,
    /// The longest time of each bucket that counts any, and how many.
    buckets: Vec<(u64, u64)>,
}

impl From<Histogram> for Counts {
    fn from(histogram: Histogram) -> Self {
        let recorded = histogram.buckets.iter_recorded();
        Self {
            sum_ns: histogram.sum_ns,
            max_ns: histogram.max_ns,
            buckets: recorded.map(|one| (one.value_iterated_to(), one.count_at_value())).collect(),
        }
    }
}

impl From<Counts> for Histogram {
    fn from(counts: Counts) -> Self {
        let mut histogram = Self { sum_ns: counts.sum_ns, max_ns: counts.max_ns, ..Self::default() };
        for (time_ns, count) in counts.buckets {
            histogram.buckets.saturating_record_n(time_ns, count);
        }
        histogram
    }
}

impl Default for Histogram {
    fn default() -> Self {
        let max_ns = MAX.as_nanos() as u64;
        // Bounds and digits are constants that the layout allows; a test makes one.
        #[allow(clippy::expect_used)]
        let buckets = hdrhistogram::Histogram::new_with_bounds(1, max_ns, DIGITS).expect("a layout");
        Self { buckets, sum_ns: 0, max_ns: 0 }
    }
}

impl Histogram {
    /// Counts a time.
    pub fn record(&mut self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.buckets.saturating_record(ns);
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Adds another's times: the same as if all had been counted here.
    pub fn merge(&mut self, other: &Self) {
        // Both have the same layout, so nothing is out of range.
        let _ = self.buckets.add(&other.buckets);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Times counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.len()
    }

    /// The time that a share of them does not exceed, in seconds.
    #[must_use]
    pub fn quantile_s(&self, share: f64) -> Option<f64> {
        let value = self.buckets.value_at_quantile(share).min(self.max_ns);
        (self.count() > 0).then_some(value as f64 / 1e9)
    }

    /// Mean and percentiles.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let count = self.count();
        let seconds = |share| self.quantile_s(share);
        Figures {
            n: count,
            mean: (count > 0).then(|| self.sum_ns as f64 / count as f64 / 1e9),
            p50: seconds(0.5),
            p90: seconds(0.9),
            p95: seconds(0.95),
            p99: seconds(0.99),
            max: (count > 0).then_some(self.max_ns as f64 / 1e9),
        }
    }
}

/// Of times in seconds; `None` where there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// How many.
    pub n: u64,
    /// Their mean.
    pub mean: Option<f64>,
    /// Percentiles.
    pub p50: Option<f64>,
    /// The 90th.
    pub p90: Option<f64>,
    /// The 95th.
    pub p95: Option<f64>,
    /// The 99th.
    pub p99: Option<f64>,
    /// The longest.
    pub max: Option<f64>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn figures_are_those_of_the_times() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.figures(), Figures::default());
        for ms in 1..=1000 {
            histogram.record(Duration::from_millis(ms));
        }
        let figures = histogram.figures();
        let near = |value: Option<f64>, expected: f64| (value.unwrap() / expected - 1.0).abs() < 1.1e-3;
        assert_eq!((figures.n, figures.max), (1000, Some(1.0)));
        assert!((figures.mean.unwrap() - 0.5005).abs() < 1e-12);
        assert!(near(figures.p50, 0.5) && near(figures.p90, 0.9) && near(figures.p99, 0.99), "{figures:?}");
        histogram.record(Duration::from_secs(100_000));
        assert_eq!(histogram.figures().max, Some(100_000.0));
    }
    #[test]
    fn parts_merge_to_what_one_would_have_counted() {
        let mut whole = Histogram::default();
        let mut parts = vec![Histogram::default(); 3];
        // Spread over eleven orders of magnitude, and beyond the layout.
        for number in 0..30_000_u64 {
            let time = Duration::from_nanos((number * 7_919) % 1_000 * 10_u64.pow((number % 12) as u32));
            whole.record(time);
            parts[number as usize % 3].record(time);
        }
        let mut merged = Histogram::default();
        for part in &parts {
            let sent = serde_json::to_string(part).unwrap();
            merged.merge(&serde_json::from_str(&sent).unwrap());
        }
        assert_eq!(merged, whole);
        assert_eq!(merged.figures(), whole.figures());
    }
}
