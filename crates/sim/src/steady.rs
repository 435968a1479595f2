//! Steady loads: how long a run has to be, and how well its figures are known.
//!
//! Replications begin with an empty server, so the clients of a warm-up are not counted; intervals come from the spread over
//! replications (Student's t), which are independent. Both hold where a replication is long beside the queue's memory: near
//! saturation that is 4ρ / (1 - ρ)² services (J. Abate, W. Whitt, "Transient behavior of regulated Brownian motion, I",
//! 1987). Whether the warm-up was long enough the data tell, too, by their [`Trend`](crate::trend::Trend) on the average over
//! replications.

use crate::Simulation;
use crate::outcome::{Moments, Outcome, Replication, Steady};
use crate::scenario::{PrecisionSpec, Scenario};
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
/// The width of an interval is itself only estimated. An interval that is narrow by chance contains the mean less often, and
/// a rule that stops at it selects it (D. I. Singham, L. W. Schruben, "Finite-sample performance of absolute precision
/// stopping rules", INFORMS Journal on Computing 24, 2012). Therefore the length of a run is determined without its results:
/// by theory ([`Steady::by_theory`]), and by the run before, which is independent (C. Stein, "A two-sample test for a linear
/// hypothesis whose power is independent of the variance", Annals of Mathematical Statistics 16, 1945), with this factor in
/// reserve. Of normal values, 19 of 20 runs are then narrow enough at once (the 95th percentile of F with 24 and 24 degrees of
/// freedom); of queues near saturation, whose values are skewed, 9 of 10. A shorter run does not count as precise, however
/// narrow its intervals are.
const RESERVE: f64 = 2.0;

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
    /// The run is as long as theory and the run before it ask for.
    pub is_long_enough: bool,
    /// All are as narrow as asked for, settled, and from a run that is long enough.
    pub is_met: bool,
}

impl Steady {
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

    /// Clients that each replication has to count for the mean wait to be as precise as asked, by theory.
    ///
    /// The average of regulated Brownian motion over m relaxation times has the standard deviation 1 / √m, as a share of
    /// its mean (W. Whitt, "Planning queueing simulations", Management Science 35, 1989).
    fn by_theory(&self, outcome: &Outcome) -> u64 {
        let replications = outcome.replications.len();
        let wait = outcome.client_wait.mean().unwrap_or(0.0);
        let small = SMALL_WAIT * outcome.ready.mean().unwrap_or(0.0);
        if replications < 2 || wait <= 0.0 {
            return 0;
        }
        let deviations = student(replications - 1) / (self.asked_e9 as f64 * 1e-9) * wait / wait.max(small);
        let memories = RESERVE * deviations * deviations / replications as f64;
        libm::ceil(memories * self.memory_clients as f64) as u64
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
        let counted = outcome.counted / replications;
        let is_long_enough = counted >= self.least_counted.max(self.by_theory(outcome));
        let is_settled =
            self.memory(outcome).is_some_and(|memory| {
                warmup >= WARMUP_MEMORIES.saturating_mul(memory)
                    && counted >= COUNTED_MEMORIES.saturating_mul(memory)
            }) && outcome.trend.cut(warmup).is_none_or(|cut| cut.shift.abs() <= MAX_SHIFT * asked);
        let reached = widest.as_ref().map(|(most, _)| *most);
        Precision {
            asked,
            reached,
            widest: widest.map(|(_, name)| name).unwrap_or_default(),
            is_settled,
            is_long_enough,
            is_met: is_settled && is_long_enough && reached.is_some_and(|reached| reached <= asked),
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
        let precision = self.scenario.precision?;
        let left = precision.max_events.saturating_sub(spent);
        let length = longer(&self.scenario, found, &found.steady?, left)?;
        let mut next = self.scenario.clone();
        next.clients = Some(length.counted + length.warmup);
        next.warmup_clients = length.warmup;
        next.precision = Some(PrecisionSpec { least_counted: length.least_counted, ..precision });
        // Numbers of its own: what was seen of the run before has no part in it.
        next.first_replication += next.replications;
        Some(next)
    }
}

/// Clients of a replication of the next run.
struct Length {
    counted: u64,
    warmup: u64,
    /// How many have to be counted for the precision that is asked for.
    least_counted: u64,
}

/// How long the next run is; `None` where no other run is needed, or the events that are left do not last for one that
/// would tell more.
fn longer(scenario: &Scenario, found: &Outcome, steady: &Steady, left: u64) -> Option<Length> {
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
    let counted = (wanted as u64).max(COUNTED_MEMORIES.saturating_mul(memory)).max(steady.by_theory(found));
    let by_data = found.trend.cut(warmup_now).map_or(0, |cut| cut.clients);
    let warmup = warmup_now.max(WARMUP_MEMORIES.saturating_mul(memory)).max(by_data);
    let events_each = (found.events / found.arrived.max(1)).max(1);
    let affordable = left / events_each / u64::from(scenario.replications);
    let least = (clients as f64 * MIN_GROWTH) as u64;
    let asked = counted.saturating_add(warmup).max(least);
    let least_counted = asked - warmup;
    if affordable >= asked {
        return Some(Length { counted: least_counted, warmup, least_counted });
    }
    // The last run, with what is left.
    let warmup = warmup.min(affordable / 5);
    let length = Length { counted: affordable - warmup, warmup, least_counted };
    (affordable >= least && warmup >= warmup_now).then_some(length)
}

/// Half the width of the 95 % interval of independent values' mean.
pub(crate) fn margin(means: &[f64]) -> Option<f64> {
    if means.len() < 2 {
        return None;
    }
    let n = means.len() as f64;
    let mean = means.iter().sum::<f64>() / n;
    let variance = means.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (n - 1.0);
    Some(student(means.len() - 1) * libm::sqrt(variance / n))
}

/// The 97.5th percentile of Student's t.
fn student(freedom: usize) -> f64 {
    const TABLE: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    // Beyond ten degrees of freedom Fisher's expansion about the normal quantile is good to three digits.
    let z = 1.959_963_984_540_054_f64;
    let n = freedom as f64;
    let square = z * z;
    let first = z * (square + 1.0) / 4.0;
    let second = z * ((5.0 * square + 16.0) * square + 3.0) / 96.0;
    let third = z * (((3.0 * square + 19.0) * square + 17.0) * square - 15.0) / 384.0;
    let expanded = z + (first + (second + third / n) / n) / n;
    TABLE.get(freedom.wrapping_sub(1)).copied().unwrap_or(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn students_t_matches_the_tables() {
        for (freedom, value) in [(1, 12.706), (9, 2.262), (11, 2.201), (19, 2.093), (29, 2.045), (99, 1.984)]
        {
            assert!((student(freedom) - value).abs() < 0.002, "{freedom}: {}", student(freedom));
        }
    }
}
