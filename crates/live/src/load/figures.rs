//! Mean and percentiles of the times of a load test.

use serde::Serialize;
use shakedown_sim::histogram::Histogram;

/// Times in seconds; `None` without times, and for percentiles of too few.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    pub n: u64,
    pub mean: Option<f64>,
    pub p50: Option<f64>,
    pub p90: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
    pub max: Option<f64>,
}

impl From<&Histogram> for Figures {
    fn from(times: &Histogram) -> Self {
        let summary = times.summary(1e9);
        Self {
            n: summary.n,
            mean: summary.mean,
            p50: summary.p50,
            p90: summary.p90,
            p95: summary.p95,
            p99: summary.p99,
            max: summary.max,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::time::Duration;

    #[test]
    fn figures_match_the_recorded_times() {
        let mut histogram = Histogram::default();
        assert_eq!(Figures::from(&histogram), Figures::default());
        for ms in 1..=1000 {
            histogram.record_time(Duration::from_millis(ms));
        }
        let figures = Figures::from(&histogram);
        let near = |value: Option<f64>, expected: f64| (value.unwrap() / expected - 1.0).abs() < 1.1e-3;
        assert_eq!((figures.n, figures.max), (1000, Some(1.0)));
        assert!((figures.mean.unwrap() - 0.5005).abs() < 1e-12);
        assert!(near(figures.p50, 0.5) && near(figures.p90, 0.9) && near(figures.p99, 0.99), "{figures:?}");
        histogram.record_time(Duration::from_secs(100_000));
        assert_eq!(Figures::from(&histogram).max, Some(100_000.0));
    }
}
