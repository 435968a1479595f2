//! Summaries of repeated readings.

use serde::Serialize;

/// A summary of `n` readings, in the unit of the readings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    pub median: f64,
    pub mean: f64,
    /// Sample standard deviation; 0 for a single reading.
    pub sd: f64,
    pub min: f64,
    pub max: f64,
    pub n: usize,
}

/// A summary, and the readings in the order in which they were taken.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sampled {
    #[serde(flatten)]
    pub summary: Summary,
    pub samples: Vec<f64>,
}

impl Sampled {
    /// Summarises times in nanoseconds, as microseconds.
    #[allow(clippy::cast_precision_loss)] // times of a handshake are far below 2^53
    pub fn of_ns(times: &[u64]) -> Self {
        let samples: Vec<f64> = times.iter().map(|ns| *ns as f64 / 1000.0).collect();
        Self { summary: Summary::of(&samples), samples }
    }
}

impl Summary {
    /// Summarises readings; all values are zero if there are none.
    pub fn of(readings: &[f64]) -> Self {
        if readings.is_empty() {
            return Self { median: 0.0, mean: 0.0, sd: 0.0, min: 0.0, max: 0.0, n: 0 };
        }
        let mut sorted = readings.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let n = sorted.len();
        #[allow(clippy::cast_precision_loss)] // counts are far below 2^53
        let count = n as f64;
        let mean = sorted.iter().sum::<f64>() / count;
        let squares: f64 = sorted.iter().map(|reading| (reading - mean).powi(2)).sum();
        let sd = if n > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
        Self { median: median_of_sorted(&sorted), mean, sd, min: sorted[0], max: sorted[n - 1], n }
    }
}

/// The middle reading, or the mean of the two in the middle.
fn median_of_sorted(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::float_cmp)] // exact in binary
    fn summary_of_known_readings_is_correct() {
        let summary = Summary::of(&[4.0, 1.0, 2.0, 3.0]);
        assert_eq!(
            (summary.median, summary.mean, summary.min, summary.max, summary.n),
            (2.5, 2.5, 1.0, 4.0, 4)
        );
        assert!((summary.sd - (5.0_f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(Summary::of(&[7.0]).sd, 0.0);
    }
}
