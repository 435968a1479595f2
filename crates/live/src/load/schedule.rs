//! When connections are to start.

use serde::{Deserialize, Serialize};
use shakedown_link::{Purpose, Stream};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// Independent of each other: exponential gaps.
    Poisson,
    Deterministic,
    /// Each client starts its next connection when its last is over.
    Closed,
}

const GAPS: Purpose = Purpose(300);

/// Planned starts of an open loop, since its beginning: a function of the seed alone. Each follows from the one before
/// it, never from the clock.
#[derive(Clone, Debug)]
pub struct Schedule {
    arrivals: Arrivals,
    rate_per_s: f64,
    duration_s: f64,
    gaps: Stream,
    count: u64,
    last_s: f64,
}

impl Schedule {
    /// The starts of `duration` at a rate. A closed loop has none.
    pub fn new(arrivals: Arrivals, rate_per_s: f64, duration: Duration, seed: u64) -> Self {
        let gaps = Stream::of(seed, 0, GAPS);
        Self { arrivals, rate_per_s, duration_s: duration.as_secs_f64(), gaps, count: 0, last_s: 0.0 }
    }
}

impl Iterator for Schedule {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let at_s = match self.arrivals {
            Arrivals::Closed => return None,
            // Counted from the beginning, so that nothing adds up.
            Arrivals::Deterministic => self.count as f64 / self.rate_per_s,
            Arrivals::Poisson => self.last_s + self.gaps.exponential() / self.rate_per_s,
        };
        if at_s >= self.duration_s {
            return None;
        }
        self.count += 1;
        self.last_s = at_s;
        Some(Duration::from_secs_f64(at_s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(arrivals: Arrivals, rate_per_s: f64, seconds: u64, seed: u64) -> Vec<f64> {
        let schedule = Schedule::new(arrivals, rate_per_s, Duration::from_secs(seconds), seed);
        schedule.map(|at| at.as_secs_f64()).collect()
    }

    #[test]
    fn deterministic_starts_do_not_drift() {
        let all = starts(Arrivals::Deterministic, 300.0, 1000, 1);
        assert_eq!(all.len(), 300_000);
        assert_eq!(all[0], 0.0);
        assert!((all[299_999] - 299_999.0 / 300.0).abs() < 1e-8);
    }

    #[test]
    fn poisson_gaps_are_exponential() {
        let all = starts(Arrivals::Poisson, 1000.0, 100, 7);
        let n = all.len() as f64;
        // A Poisson count of mean 100,000: five standard deviations.
        assert!((n - 100_000.0).abs() < 5.0 * 316.3, "{n} starts");
        let mut gaps: Vec<f64> = all.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean * 1000.0 - 1.0).abs() < 0.02, "mean {mean}");
        assert!((variance / (mean * mean) - 1.0).abs() < 0.05, "variance {variance}");
        // Kolmogorov and Smirnov against 1 - exp(-x): 1.95/√n is the bound of one error in a thousand.
        gaps.sort_by(f64::total_cmp);
        let count = gaps.len() as f64;
        let distance = gaps.iter().enumerate().map(|(place, gap)| {
            let expected = 1.0 - (-gap * 1000.0).exp();
            (expected - place as f64 / count).abs().max((expected - (place + 1) as f64 / count).abs())
        });
        let distance = distance.fold(0.0, f64::max);
        assert!(distance < 1.95 / count.sqrt(), "distance {distance}");
    }

    #[test]
    fn a_seed_gives_the_same_starts_and_another_seed_others() {
        let of = |seed| starts(Arrivals::Poisson, 100.0, 10, seed);
        assert_eq!(of(3), of(3));
        assert_ne!(of(3), of(4));
        assert_eq!(starts(Arrivals::Closed, 100.0, 10, 3), [] as [f64; 0]);
    }
}
