//! The measured cost of a primitive.

use crate::measure::Summary;
use serde::{Deserialize, Serialize};
use shakedown_trace::{Class, Operation, Primitive};

/// One triple and its cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    pub operation: Operation,
    /// The family or algorithm.
    pub algorithm: String,
    /// The key or group; empty for symmetric work.
    pub parameters: String,
    /// The class in which the operation is counted.
    pub class: Class,
    /// Time of one call in microseconds: of a public-key call, or of symmetric work on `bytes` bytes.
    pub us: Spread,
    /// Number of bytes that `us` refers to; 0 for public-key calls.
    pub bytes: usize,
    /// Symmetric work: time per call in microseconds, independent of its length.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub per_call_us: Option<f64>,
    /// Symmetric work: time per KiB in microseconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub per_kib_us: Option<f64>,
}

/// A distribution of readings, in their unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub median: f64,
    pub mean: f64,
    /// Sample standard deviation.
    pub sd: f64,
    pub min: f64,
    pub max: f64,
    pub n: usize,
    /// Lower end of the 95 % interval of the median.
    pub low: f64,
    pub high: f64,
    pub p05: f64,
    pub p25: f64,
    pub p75: f64,
    pub p95: f64,
    pub p99: f64,
    /// Readings that were discarded because the thread was preempted.
    pub preempted: usize,
}

impl Timing {
    pub fn new(primitive: Primitive, us: Spread) -> Self {
        Self {
            operation: primitive.operation,
            algorithm: primitive.algorithm.to_owned(),
            parameters: primitive.parameters.to_owned(),
            class: primitive.operation.class(),
            us,
            bytes: 0,
            per_call_us: None,
            per_kib_us: None,
        }
    }
}

impl Spread {
    /// Summarises at least one reading; all values are zero if there is none.
    pub fn of(readings: &[f64], preempted: usize) -> Self {
        let summary = Summary::of(readings);
        let mut sorted = readings.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let (low, high) = median_interval(&sorted);
        let at = |share: f64| quantile(&sorted, share);
        Self {
            median: summary.median,
            mean: summary.mean,
            sd: summary.sd,
            min: summary.min,
            max: summary.max,
            n: summary.n,
            low,
            high,
            p05: at(0.05),
            p25: at(0.25),
            p75: at(0.75),
            p95: at(0.95),
            p99: at(0.99),
            preempted,
        }
    }
}

/// A quantile of sorted readings, interpolated (type 7 of Hyndman and Fan 1996).
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // small counts
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = share * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * (place - place.floor())
}

/// The 95 % interval of the median of sorted readings, by order statistics. The number of readings below the median has
/// a binomial distribution, here approximated by a normal one.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // small counts
pub fn median_interval(sorted: &[f64]) -> (f64, f64) {
    let n = sorted.len();
    if n == 0 {
        return (0.0, 0.0);
    }
    let half = 0.98 * (n as f64).sqrt(); // 1.96 √n / 2
    let middle = n as f64 / 2.0;
    let low = (middle - half).floor().max(0.0) as usize;
    let high = ((middle + half).ceil() as usize).min(n - 1);
    (sorted[low], sorted[high])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::float_cmp)] // exact in binary
    fn spread_of_known_readings_is_correct() {
        let readings: Vec<f64> = (0..=100).map(f64::from).collect();
        let spread = Spread::of(&readings, 3);
        assert_eq!(
            (spread.median, spread.p05, spread.p25, spread.p75, spread.p99),
            (50.0, 5.0, 25.0, 75.0, 99.0)
        );
        // Of 101 readings, the 41st and the 62nd (Conover 1999, normal approximation).
        assert_eq!((spread.low, spread.high), (40.0, 61.0));
        assert_eq!((spread.n, spread.preempted), (101, 3));
        let one = Spread::of(&[7.0], 0);
        assert_eq!((one.low, one.median, one.high, one.p99), (7.0, 7.0, 7.0, 7.0));
    }
}
