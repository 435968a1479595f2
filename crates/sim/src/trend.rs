//! The trend of clients' times over a run, which determines the warm-up: MSER-5 (K. P. White, "An effective truncation
//! heuristic for bias reduction in simulation output", Simulation 69, 1997).

use serde::{Deserialize, Serialize};

/// Batches of clients' times, in the order in which the clients finished. They are used to determine the warm-up. A
/// batch has five clients, or five times a power of two, so that the number of batches is limited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trend {
    /// Number of values in a batch; 0 if no values are kept.
    batch: u64,
    /// Sums of the batches, in microseconds, over all replications; the last may not be full.
    sums_us: Vec<u64>,
    last_count: u64,
    replications: u64,
}

/// Maximum number of batches.
const MAX_BATCHES: usize = 2048;

/// The warm-up that the data require.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cut {
    pub clients: u64,
    /// Change of the mean by this warm-up in place of the present one, as a share of the mean.
    pub shift: f64,
}

impl Trend {
    /// An empty trend of one replication.
    pub(crate) fn begin() -> Self {
        Self { batch: 5, sums_us: Vec::new(), last_count: 5, replications: 1 }
    }

    /// Adds the next value, if values are kept.
    #[inline]
    pub(crate) fn record(&mut self, value_ns: u64) {
        if self.batch == 0 {
            return;
        }
        if self.last_count == self.batch {
            if self.sums_us.len() == MAX_BATCHES {
                self.halve();
            }
            self.sums_us.push(0);
            self.last_count = 0;
        }
        self.last_count += 1;
        if let Some(sum_us) = self.sums_us.last_mut() {
            *sum_us += value_ns / 1000;
        }
    }

    /// Joins pairs of batches. The last batch must be full.
    fn halve(&mut self) {
        self.sums_us = self.sums_us.chunks(2).map(|pair| pair.iter().sum()).collect();
        self.batch *= 2;
    }

    /// Adds the values of other replications, batch by batch. Only full batches that all replications have are kept.
    pub(crate) fn merge(&mut self, other: &Self) {
        if self.batch == 0 || other.batch == 0 {
            *self = Self::default();
            return;
        }
        let (mut own, mut more) = (self.whole(), other.whole());
        while own.batch < more.batch {
            own.halve();
            own = own.whole();
        }
        while more.batch < own.batch {
            more.halve();
            more = more.whole();
        }
        let sums = own.sums_us.iter().zip(&more.sums_us).map(|(one, two)| one + two);
        *self = Self { sums_us: sums.collect(), replications: own.replications + more.replications, ..own };
    }

    /// A copy without an incomplete last batch, and with an even number of batches, so that pairs can be joined.
    fn whole(&self) -> Self {
        let full = self.sums_us.len() - usize::from(self.last_count < self.batch && !self.sums_us.is_empty());
        let kept = full - full % 2;
        Self { sums_us: self.sums_us[..kept].to_vec(), last_count: self.batch, ..self.clone() }
    }

    /// The cut by MSER: the initial part (at most half of all batches) without which the mean of the rest has the
    /// smallest standard error.
    pub(crate) fn cut(&self, warmup: u64) -> Option<Cut> {
        let whole = self.whole();
        let values: Vec<f64> = whole.sums_us.iter().map(|sum| *sum as f64).collect();
        let begins = (warmup / whole.batch.max(1)) as usize;
        let n = values.len();
        if n < 20 || begins >= n {
            return None;
        }
        let (mut sum, mut squares) = (0.0, 0.0);
        let mut best = (f64::INFINITY, 0);
        let mut means = vec![0.0; n];
        let scale = values.iter().sum::<f64>() / n as f64;
        for (index, value) in values.iter().enumerate().rev() {
            sum += value;
            // Relative to the mean, to avoid cancellation.
            squares += (value - scale) * (value - scale);
            let count = (n - index) as f64;
            means[index] = sum / count;
            let about = means[index] - scale;
            let error = (squares / count - about * about) / count;
            if index <= n / 2 && error <= best.0 {
                best = (error, index);
            }
        }
        let at = best.1.max(begins);
        let before = means[begins];
        let shift = if before > 0.0 { means[at] / before - 1.0 } else { 0.0 };
        Some(Cut { clients: best.1 as u64 * whole.batch, shift })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn trend(values: &[u64]) -> Trend {
        let mut trend = Trend::begin();
        values.iter().for_each(|value| trend.record(*value));
        trend
    }

    #[test]
    fn mser_removes_the_initial_transient() {
        // 1,000 of 20,000 values rise from 0 to 1 s; to all, 0 to 0.2 s are added, in no order.
        let values: Vec<u64> = (0..20_000_u64)
            .map(|n| n.min(1000) * 1_000_000 + n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 200_000_000)
            .collect();
        let cut = trend(&values).cut(0).expect("long enough");
        assert!((800..2000).contains(&cut.clients), "{cut:?}");
        assert!(cut.shift > 0.02, "{cut:?}");
        let after = trend(&values).cut(2000).expect("long enough");
        assert!(after.shift.abs() < 0.002, "{after:?}");
    }

    #[test]
    fn batches_are_merged_without_loss() {
        let values = vec![3_000; 5 * MAX_BATCHES * 3];
        let kept = trend(&values);
        assert_eq!((kept.batch, kept.sums_us.len()), (20, 5 * MAX_BATCHES * 3 / 20));
        assert!(kept.sums_us.iter().all(|sum| *sum == 3 * 20));
    }

    proptest! {
        #[test]
        fn trends_merge_in_any_order(lengths in prop::collection::vec(0_usize..40_000, 3)) {
            let all: Vec<Trend> =
                lengths.iter().map(|n| trend(&(0..*n as u64).map(|k| k * 1000).collect::<Vec<_>>())).collect();
            let merged = |order: [usize; 3]| {
                let mut sum = all[order[0]].clone();
                sum.merge(&all[order[1]]);
                sum.merge(&all[order[2]]);
                sum
            };
            let mut later = all[1].clone();
            later.merge(&all[2]);
            let mut nested = all[0].clone();
            nested.merge(&later);
            for order in [[1, 0, 2], [2, 1, 0], [1, 2, 0]] {
                prop_assert_eq!(merged([0, 1, 2]), merged(order));
            }
            prop_assert_eq!(merged([0, 1, 2]), nested);
        }
    }
}
