//! Samples of strata, combined with their weights.

use super::run::HandshakeResult;
use serde::{Deserialize, Serialize};
use shakedown_link::Ns;

/// The standard normal quantile of 0.975.
const Z95: f64 = 1.959_963_984_540_054;
/// Values whose relative difference is below this are merged into their mean.
const RESOLUTION: f64 = 1.0 / 1024.0;

/// Times in ascending order, and their probabilities; may be empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// Seconds.
    pub values_s: Vec<f64>,
    /// Their probabilities, which sum to 1.
    pub weights: Vec<f64>,
}

impl Times {
    /// One time with probability 1; `None`: no time.
    pub fn exactly(at_s: Option<f64>) -> Self {
        Self { values_s: at_s.into_iter().collect(), weights: at_s.iter().map(|_| 1.0).collect() }
    }

    /// Merges times that percentiles do not need to distinguish.
    pub fn compacted(all: &[(Ns, f64)]) -> Self {
        let total: f64 = all.iter().map(|(_, weight)| weight).sum();
        let mut times = Self::default();
        let mut rest = all;
        while let Some((first, _)) = rest.first() {
            let limit = first.0 + (first.0 as f64 * RESOLUTION) as u64;
            let (near, later) = rest.split_at(rest.partition_point(|(at, _)| at.0 <= limit));
            let weight: f64 = near.iter().map(|(_, weight)| weight).sum();
            // Relative to the first time, so that equal times are not changed by rounding.
            let over: f64 = near.iter().map(|(at, weight)| (*at - *first).as_secs_f64() * weight).sum();
            times.values_s.push(first.as_secs_f64() + over / weight);
            times.weights.push(weight / total);
            rest = later;
        }
        times
    }

    /// The mean.
    #[must_use]
    pub fn mean_s(&self) -> Option<f64> {
        let sum = self.values_s.iter().zip(&self.weights).map(|(value, weight)| value * weight).sum();
        (!self.values_s.is_empty()).then_some(sum)
    }
}

/// The handshakes of one stratum.
#[derive(Debug)]
pub(super) struct Stratum {
    /// The stratum's probability.
    pub weight: f64,
    /// Whether its handshakes lose any of the packets that they send without loss; `None`: either.
    pub loses: Option<bool>,
    /// All of its handshakes are equal.
    pub is_exact: bool,
    entity: u64,
    pub ready: Vec<Ns>,
    pub done: Vec<Ns>,
    pub failed: u64,
    pub bytes: [u128; 2],
    /// Nanoseconds in which radios were set up, of the handshakes in `done`.
    pub setting_up_ns: u128,
}

impl Stratum {
    pub fn new(weight: f64, entity: u64, loses: Option<bool>) -> Self {
        let (ready, done) = (Vec::new(), Vec::new());
        Self {
            weight,
            loses,
            is_exact: false,
            entity,
            ready,
            done,
            failed: 0,
            bytes: [0; 2],
            setting_up_ns: 0,
        }
    }

    pub fn next_entity(&mut self) -> u64 {
        self.entity += 1;
        self.entity
    }

    pub fn add(&mut self, result: &HandshakeResult) {
        match result.ready {
            Some(ready) => self.ready.push(ready),
            None => self.failed += 1,
        }
        if let Some(done) = result.done {
            self.done.push(done);
            self.setting_up_ns += u128::from(result.setting_up.0);
        }
        for (sum, bytes) in self.bytes.iter_mut().zip(result.bytes) {
            *sum += u128::from(bytes);
        }
    }

    pub fn handshakes(&self) -> usize {
        self.ready.len() + self.failed as usize
    }

    /// The variance of the stratum's contribution to the share of times up to `at`.
    fn variance(&self, at: Ns) -> f64 {
        if self.is_exact || self.handshakes() == 0 {
            return 0.0;
        }
        let count = self.handshakes() as f64;
        let below = self.ready.iter().filter(|ready| **ready <= at).count() as f64;
        // Half a handshake is added on either side, because a share of 0 or 1 would have no variance.
        let share = (below + 0.5) / (count + 1.0);
        self.weight * self.weight * share * (1.0 - share) / count
    }

    /// The variance of the stratum's contribution to the mean.
    fn mean_variance(&self) -> f64 {
        if self.is_exact || self.ready.len() < 2 {
            return 0.0;
        }
        let count = self.ready.len() as f64;
        let mean = self.ready.iter().map(|ready| ready.as_secs_f64()).sum::<f64>() / count;
        let squares: f64 = self.ready.iter().map(|ready| (ready.as_secs_f64() - mean).powi(2)).sum();
        self.weight * self.weight * squares / (count - 1.0) / count
    }
}

/// The mean time in which radios were set up, of the handshakes in `done`; 0 without any.
pub(super) fn mean_setup_s(strata: &[Stratum]) -> f64 {
    let (mut sum_s, mut share) = (0.0, 0.0);
    for stratum in strata {
        let each = stratum.weight / stratum.handshakes().max(1) as f64;
        sum_s += each * stratum.setting_up_ns as f64 * 1e-9;
        share += each * stratum.done.len() as f64;
    }
    if share > 0.0 { sum_s / share } else { 0.0 }
}

/// Times of all strata in ascending order, each with its probability.
pub(super) fn weighted(strata: &[Stratum], of: impl Fn(&Stratum) -> &Vec<Ns>) -> Vec<(Ns, f64)> {
    let mut all = Vec::new();
    for stratum in strata {
        let each = stratum.weight / stratum.handshakes().max(1) as f64;
        all.extend(of(stratum).iter().map(|at| (*at, each)));
    }
    all.sort_by_key(|(at, _)| *at);
    all
}

/// The smallest time that is not exceeded by this share of all times.
fn quantile(all: &[(Ns, f64)], share: f64) -> Option<Ns> {
    let total: f64 = all.iter().map(|(_, weight)| weight).sum();
    let mut sum = 0.0;
    for (at, weight) in all {
        sum += weight;
        if sum >= share * total * (1.0 - 1e-12) {
            return Some(*at);
        }
    }
    all.last().map(|(at, _)| *at)
}

/// The 95 % interval of the 99th percentile: the quantiles at 0.99 plus and minus 1.96 standard deviations of the share
/// of times up to the percentile (Woodruff, Journal of the American Statistical Association 47, 1952).
pub(super) fn p99_interval_s(strata: &[Stratum], all: &[(Ns, f64)]) -> [f64; 2] {
    let Some(at) = quantile(all, 0.99) else { return [0.0; 2] };
    let off = Z95 * strata.iter().map(|stratum| stratum.variance(at)).sum::<f64>().sqrt();
    [-off, off].map(|off| {
        let end = quantile(all, (0.99 + off).clamp(0.0, 1.0)).unwrap_or(at);
        end.as_secs_f64()
    })
}

/// The stratum in which more handshakes help most; `None` if the intervals of the 99th percentile and of the mean,
/// relative to their values, are narrower than `accuracy`.
pub(super) fn least_certain(strata: &[Stratum], accuracy: f64) -> Option<usize> {
    let all = weighted(strata, |stratum| &stratum.ready);
    let total: f64 = all.iter().map(|(_, weight)| weight).sum();
    let at = quantile(&all, 0.99)?;
    let [low, high] = p99_interval_s(strata, &all);
    let most = |of: &dyn Fn(&Stratum) -> f64| {
        let all = strata.iter().enumerate().filter(|(_, stratum)| !stratum.is_exact);
        all.max_by(|(_, one), (_, other)| of(one).total_cmp(&of(other))).map(|(number, _)| number)
    };
    if high - low > accuracy * at.as_secs_f64() {
        return most(&|stratum| stratum.variance(at));
    }
    let mean = all.iter().map(|(at, weight)| at.as_secs_f64() * weight).sum::<f64>() / total;
    let deviation = strata.iter().map(Stratum::mean_variance).sum::<f64>().sqrt();
    if 2.0 * Z95 * deviation > accuracy * mean {
        return most(&Stratum::mean_variance);
    }
    None
}
