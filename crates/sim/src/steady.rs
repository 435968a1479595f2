//! Steady loads: how long a run has to be, and how well its figures are known.
//!
//! Replications begin with an empty server, so the clients of a warm-up are not counted; intervals come from the spread over
//! replications (Student's t), which are independent. Both hold where a replication is long beside the queue's memory: near
//! saturation that is 4ρ / (1 - ρ)² services (J. Abate, W. Whitt, "Transient behavior of regulated Brownian motion, I",
//! 1987). Whether the warm-up was long enough the data tell, too, by MSER-5 (K. P. White, "An effective truncation heuristic
//! for bias reduction in simulation output", Simulation 69, 1997) on the average over replications.

use crate::checked::Setup;
use crate::outcome::{Moments, Outcome, Replication};
use crate::report::margin;
use crate::scenario::{ArrivalSpec, Scenario};
use crate::{Simulation, fleet};
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

/// The warm-up in relaxation times. It reduces the bias of a mean, caused by the empty server at the start, to less
/// than 1 %.
const WARMUP_MEMORIES: u64 = 5;
/// The counted part of a replication, in relaxation times.
const COUNTED_MEMORIES: u64 = 20;
/// A wait counts as known where its margin is small beside the time that it is a part of.
const SMALL_WAIT: f64 = 0.01;
/// What the data's own warm-up would change in the mean, as a share of the precision.
const MAX_SHIFT: f64 = 0.25;
/// A longer run is that much longer at least, and that much at most: less where the run before was too short to tell how
/// wide an interval is.
const MIN_GROWTH: f64 = 1.25;
const MAX_GROWTH: f64 = 32.0;
const MAX_GROWTH_UNSETTLED: f64 = 8.0;
/// The interval's width is itself only estimated. Runs are made longer than it asks for, so that few are repeated for their
/// width: to keep those that happen to look narrow would keep too many whose mean is low.
const RESERVE: f64 = 1.3;

/// What a scenario says of its precision; whole numbers, so that they are read as they were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steady {
    /// The relative precision that is asked for, in thousand-millionths.
    pub asked_e9: u64,
    /// Clients that arrive in a relaxation time of the server's queue.
    pub memory_clients: u64,
}

/// How well the figures of a steady load are known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Precision {
    /// Half the width of a 95 % interval that each figure should have at most, as a share of the figure.
    pub asked: f64,
    /// The widest of them; `None` with fewer than two replications.
    pub reached: Option<f64>,
    /// Which figure has it.
    pub widest: String,
    /// Warm-up and replications are long beside the queue's memory, and the data show no trend beyond the warm-up.
    pub is_settled: bool,
    /// All are as narrow as asked for, and settled.
    pub is_met: bool,
}

impl Steady {
    /// Of a scenario with a precision and a steady state.
    pub(crate) fn of(scenario: &Scenario, setup: &Setup) -> Option<Self> {
        // Servers that come and go have no queue whose memory is known.
        let precision = scenario.precision.filter(|_| scenario.server.scaling.is_none())?;
        let (rate, admitted) = (scenario.arrivals.rate_per_s()?, scenario.admitted_per_s()?);
        let idle = 1.0 - fleet::offered(scenario, setup)?;
        if idle <= 0.0 {
            return None;
        }
        let size = match scenario.arrivals {
            ArrivalSpec::Bursts { size, .. } => f64::from(size),
            _ => 1.0,
        };
        let (mean_s, square_s2) = (setup.server_mean_s, setup.server_square_s2);
        let (servers, workers) = (f64::from(scenario.server.servers), f64::from(scenario.server.workers));
        // Variance a second of the work that arrives at each server; its queue forgets in twice that over its drift's square, in light traffic
        // with its services.
        let burst_s2 = (size - 1.0) * mean_s * mean_s;
        let spread_s = admitted / servers * (square_s2 + burst_s2 + size * setup.records_square_s2);
        let service_s = if mean_s > 0.0 { square_s2 / mean_s } else { 0.0 };
        let memory_s = 2.0 * spread_s / (workers * idle).powi(2) + service_s;
        Some(Self {
            asked_e9: (precision.relative * 1e9 + 0.5) as u64,
            memory_clients: libm::ceil(rate * memory_s) as u64,
        })
    }

    /// Clients that arrive in a relaxation time of the queue that forgets last: the server's, or the cells'. `None`
    /// where the cells' queues grow without end.
    ///
    /// What a client takes of a channel is known from the outcome alone. A channel's relaxation time is that of an M/D/1
    /// queue, as the server's above.
    fn memory(&self, outcome: &Outcome) -> Option<u64> {
        outcome.access.media.iter().try_fold(self.memory_clients, |longest, medium| {
            let Some((_, load)) = medium.offered(outcome.arrived) else { return Some(longest) };
            let idle = 1.0 - load;
            let clients = medium.channels as f64 * load * (1.0 + 2.0 * load / (idle * idle)) / medium.share();
            (idle > 0.0).then(|| longest.max(libm::ceil(clients) as u64))
        })
    }

    /// What an outcome comes to.
    pub(crate) fn judge(&self, outcome: &Outcome) -> Precision {
        let asked = self.asked_e9 as f64 * 1e-9;
        let mut widest: Option<(f64, String)> = None;
        for (name, value, margin) in figures(outcome) {
            let relative = margin / value;
            if relative.is_finite() && widest.as_ref().is_none_or(|(most, _)| relative > *most) {
                widest = Some((relative, name));
            }
        }
        let replications = outcome.replications.len().max(1) as u64;
        let warmup = (outcome.arrived - outcome.counted) / replications;
        let is_settled =
            self.memory(outcome).is_some_and(|memory| {
                warmup >= WARMUP_MEMORIES.saturating_mul(memory)
                    && outcome.counted / replications >= COUNTED_MEMORIES.saturating_mul(memory)
            }) && outcome.trend.cut(warmup).is_none_or(|cut| cut.shift.abs() <= MAX_SHIFT * asked);
        let reached = widest.as_ref().map(|(most, _)| *most);
        Precision {
            asked,
            reached,
            widest: widest.map(|(_, name)| name).unwrap_or_default(),
            is_settled,
            is_met: is_settled && reached.is_some_and(|reached| reached <= asked),
        }
    }
}

/// The figures whose precision is asked for: name, value in its unit, and half the width of its interval.
fn figures(outcome: &Outcome) -> Vec<(String, f64, f64)> {
    let mut found = Vec::new();
    let mut add = |name: String, of: &dyn Fn(&Replication) -> Option<f64>, least: f64| {
        let values: Vec<f64> = outcome.replications.iter().filter_map(of).collect();
        if let Some(margin) = margin(&values) {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            found.push((name, mean.max(least), margin));
        }
    };
    let mut times = |prefix: &str, of: &dyn Fn(&Replication) -> Option<Moments>| {
        add(format!("{prefix}mean"), &|one| of(one)?.mean_s(), 0.0);
        for (name, nth) in [("median", 0), ("p95", 2), ("p99", 3)] {
            add(format!("{prefix}{name}"), &|one| Some(of(one)?.percentile_s(nth)), 0.0);
        }
    };
    times("", &|one| Some(one.ready));
    if outcome.classes.len() > 1 {
        for (number, class) in outcome.classes.iter().enumerate() {
            times(&format!("{}, ", class.name), &|one| one.classes.get(number).copied());
        }
    }
    let ready_s = outcome.ready.mean().unwrap_or(0.0) * 1e-9;
    add("queue wait".into(), &|one| one.client_wait.mean_s(), SMALL_WAIT * ready_s);
    add("utilisation".into(), &Replication::utilisation, 0.0);
    found
}

impl Simulation {
    /// Runs all replications; where the scenario asks for a precision, again and longer until its figures have it or its
    /// events are used up. How long depends on outcomes alone, so it is the same on any number of threads.
    ///
    /// `progress` gets the clients over all replications of the first length; `None` where it breaks the run off.
    #[must_use]
    pub fn run_on(
        &self,
        threads: NonZeroUsize,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Option<Outcome> {
        let mut found = self.run_once_on(threads, progress)?;
        let mut spent = found.events;
        let mut run = self.clone();
        while let Some(scenario) = run.longer(&found, spent) {
            run.scenario = scenario;
            let clients = |run: &Self| run.scenario.expected_clients() as f64;
            let times = clients(&run) / clients(self);
            found = run.run_once_on(threads, &mut |through| progress((through as f64 / times) as u64))?;
            spent += found.events;
        }
        Some(found)
    }

    /// The next run after an outcome and the number of all events so far; `None` if no other run is needed, or the
    /// events that are left do not last for one that would tell more.
    #[must_use]
    pub fn longer(&self, found: &Outcome, spent: u64) -> Option<Scenario> {
        let left = self.scenario.precision?.max_events.saturating_sub(spent);
        let (counted, warmup) = longer(&self.scenario, found, &found.steady?, left)?;
        let mut next = self.scenario.clone();
        next.clients = Some(counted + warmup);
        next.warmup_clients = warmup;
        // Numbers of its own: what was seen of the run before has no part in it.
        next.first_replication += next.replications;
        Some(next)
    }
}

/// How many clients a replication of the next run counts, and its warm-up; `None` where no other run is needed, or the
/// events that are left do not last for one that would tell more.
fn longer(scenario: &Scenario, found: &Outcome, steady: &Steady, left: u64) -> Option<(u64, u64)> {
    let precision = steady.judge(found);
    let (clients, memory) = (scenario.clients?, steady.memory(found)?);
    if precision.is_met || precision.reached.is_none() {
        return None;
    }
    let warmup_now = scenario.warmup_clients;
    let counted_now = (clients - warmup_now) as f64;
    let off = precision.reached.map_or(1.0, |reached| reached / precision.asked);
    let most = if precision.is_settled { MAX_GROWTH } else { MAX_GROWTH_UNSETTLED };
    let wanted = counted_now * (off * off * RESERVE).clamp(1.0, most);
    let counted = wanted.max(COUNTED_MEMORIES.saturating_mul(memory) as f64) as u64;
    let by_data = found.trend.cut(warmup_now).map_or(0, |cut| cut.clients);
    let warmup = warmup_now.max(WARMUP_MEMORIES.saturating_mul(memory)).max(by_data);
    let events_each = (found.events / found.arrived.max(1)).max(1);
    let affordable = left / events_each / u64::from(scenario.replications);
    let least = (clients as f64 * MIN_GROWTH) as u64;
    let asked = counted.saturating_add(warmup).max(least);
    if affordable >= asked {
        return Some((asked - warmup, warmup));
    }
    // The last run, with what is left.
    let warmup = warmup.min(affordable / 5);
    (affordable >= least && warmup >= warmup_now).then(|| (affordable - warmup, warmup))
}

/// Batches of clients' times in the order in which they ended, from which a warm-up is read. A batch is of five clients, or
/// of five times a power of two, so that there are never many.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trend {
    /// Values a batch; 0 where nothing is kept.
    batch: u64,
    /// Sums of the batches, in microseconds, over all replications; the last may not be full.
    sums_us: Vec<u64>,
    last_count: u64,
    replications: u64,
}

/// Batches at most.
const MAX_BATCHES: usize = 2048;

/// The warm-up that the data ask for.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cut {
    clients: u64,
    /// How far it moves the mean of what follows the present warm-up, as a share of it.
    shift: f64,
}

impl Trend {
    /// Of one replication, with nothing yet.
    pub(crate) fn begin() -> Self {
        Self { batch: 5, sums_us: Vec::new(), last_count: 5, replications: 1 }
    }

    /// Adds the next value, where any is kept.
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

    /// Two batches to one, where the last is full.
    fn halve(&mut self) {
        self.sums_us = self.sums_us.chunks(2).map(|pair| pair.iter().sum()).collect();
        self.batch *= 2;
    }

    /// Adds other replications', batch by batch. Whole batches that all have are kept.
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

    /// Without a last batch that is not full; in an even number, so that they can be halved.
    fn whole(&self) -> Self {
        let full = self.sums_us.len() - usize::from(self.last_count < self.batch && !self.sums_us.is_empty());
        let kept = full - full % 2;
        Self { sums_us: self.sums_us[..kept].to_vec(), last_count: self.batch, ..self.clone() }
    }

    /// MSER's cut: the start, of at most half of all, without which the mean of the rest is known best.
    fn cut(&self, warmup: u64) -> Option<Cut> {
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
            // About the mean, so that nothing cancels.
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
    fn mser_cuts_a_start_that_is_unlike_the_rest() {
        // 1,000 of 20,000 values rise from nothing; then 1 s ± 10 %, in no order.
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
    fn batches_are_joined_and_none_is_lost() {
        let values = vec![3_000; 5 * MAX_BATCHES * 3];
        let kept = trend(&values);
        assert_eq!((kept.batch, kept.sums_us.len()), (20, 5 * MAX_BATCHES * 3 / 20));
        assert!(kept.sums_us.iter().all(|sum| *sum == 3 * 20));
    }

    proptest! {
        /// Whatever the order of merging, the same comes out.
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
