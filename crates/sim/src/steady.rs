//! Steady loads: how long a run has to be, and how well its figures are known.
//!
//! Replications begin with an empty server, so the clients of a warm-up are not counted. A client loads the server only
//! after its messages have crossed the network. The warm-up therefore lasts at least as long as a handshake, and after
//! the counted clients others arrive for the same time (the *cool-down*). Intervals come from the spread over
//! replications (Student's t), which are independent. Warm-up and intervals are valid if a replication is long
//! compared with the relaxation time of the queue. Near saturation this time is 4ρ / (1 - ρ)² services (J. Abate, W.
//! Whitt, "Transient behavior of regulated Brownian motion, I", 1987). The [`Trend`](crate::trend::Trend) of the data,
//! averaged over the replications, also shows whether the warm-up was long enough.

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
/// The margin of a wait is compared with at least this share of the mean time until ready, because a shorter wait is a
/// negligible part of that time.
const SMALL_WAIT: f64 = 0.01;
/// Maximum change of the mean if the warm-up that the data require replaced the present one, as a share of the
/// precision.
const MAX_SHIFT: f64 = 0.25;
/// The share of clients whose handshakes must not be longer than the warm-up and the cool-down, and the share for which
/// the next run is planned.
const MOST_IN_TRANSIT: f64 = 0.95;
const PLANNED_IN_TRANSIT: f64 = 0.99;
/// Limits of the factor by which the next run is longer. The upper limit is smaller if the previous run was too short
/// for a reliable width of the interval.
const MIN_GROWTH: f64 = 1.25;
const MAX_GROWTH: f64 = 32.0;
const MAX_GROWTH_UNSETTLED: f64 = 8.0;
/// The width of an interval is itself only estimated. An interval that is narrow by chance contains the mean less
/// often, and a rule that stops at narrow intervals selects these (D. I. Singham, L. W. Schruben, "Finite-sample
/// performance of absolute precision stopping rules", INFORMS Journal on Computing 24, 2012). Therefore the length of a
/// run is determined without its results: by theory ([`Steady::by_theory`]), and by the run before, which is
/// independent (C. Stein, "A two-sample test for a linear hypothesis whose power is independent of the variance",
/// Annals of Mathematical Statistics 16, 1945), with this factor in reserve. With normally distributed values, 19 of 20
/// such runs are precise enough (the 95th percentile of F with 24 and 24 degrees of freedom); with queues near
/// saturation, whose values are skewed, 9 of 10. A shorter run does not count as precise, even if its intervals are
/// narrow.
const RESERVE: f64 = 2.0;

/// How well the figures of a steady load are known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Precision {
    /// The required precision: maximum half-width of the 95 % interval of each figure, as a share of the figure.
    pub asked: f64,
    /// The half-width of the widest interval, as a share of its figure; `None` with fewer than two replications.
    pub reached: Option<f64>,
    /// The name of the figure with the widest interval.
    pub widest: String,
    /// Warm-up and replications are long compared with the relaxation time, and data after the warm-up have no trend.
    pub is_settled: bool,
    /// The run is as long as theory and the run before it require.
    pub is_long_enough: bool,
    /// All intervals are as narrow as required, and both conditions above are true.
    pub is_met: bool,
}

impl Steady {
    /// Number of clients that arrive in the longest relaxation time: of the server's queue or of the cells' queues.
    /// `None` if the queues of the cells grow without limit.
    ///
    /// The time for which a client uses a channel is known only from an outcome. The relaxation time of a channel is
    /// that of an M/D/1 queue, by the formula in the module's description.
    fn memory(&self, outcome: &Outcome) -> Option<u64> {
        outcome.access.media.iter().try_fold(self.memory_clients, |longest, medium| {
            let Some((_, load)) = medium.offered(outcome.arrived) else { return Some(longest) };
            let idle = 1.0 - load;
            let clients = medium.channels as f64 * load * (1.0 + 2.0 * load / (idle * idle)) / medium.share();
            (idle > 0.0).then(|| longest.max(libm::ceil(clients) as u64))
        })
    }

    /// Number of clients that arrive while one of them performs its handshake; a share `upto` of the clients is faster.
    fn transit(&self, outcome: &Outcome, upto: f64) -> u64 {
        let done_s = outcome.done.quantile(upto).unwrap_or(0.0) * 1e-9;
        libm::ceil(done_s * self.rate_e9 as f64 * 1e-9) as u64
    }

    /// With at most this number of clients in transit, the lower load at the start and the end of a replication affects
    /// the means of `counted` clients too little to matter.
    fn negligible(&self, counted: u64) -> u64 {
        (MAX_SHIFT * self.asked_e9 as f64 * 1e-9 * counted as f64) as u64
    }

    /// By theory: number of clients that each replication must count, so that the mean wait has the required precision.
    ///
    /// The average of regulated Brownian motion over m relaxation times has the standard deviation 1 / √m, as a share
    /// of its mean (W. Whitt, "Planning queueing simulations", Management Science 35, 1989).
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

    /// The precision of an outcome.
    pub(crate) fn precision(&self, outcome: &Outcome) -> Precision {
        let asked = self.asked_e9 as f64 * 1e-9;
        let mut widest: Option<(f64, String)> = None;
        for (name, value, margin) in figures(outcome) {
            let relative = margin / value;
            if relative.is_finite() && widest.as_ref().is_none_or(|(most, _)| relative > *most) {
                widest = Some((relative, name));
            }
        }
        let replications = outcome.replications.len().max(1) as u64;
        let cooldown = outcome.cooldown / replications;
        let warmup = (outcome.arrived - outcome.counted) / replications - cooldown;
        let counted = outcome.counted / replications;
        let transit = self.transit(outcome, MOST_IN_TRANSIT);
        let is_loaded = transit <= warmup.min(cooldown).max(self.negligible(counted));
        let is_long_enough = counted >= self.least_counted.max(self.by_theory(outcome));
        let is_settled = is_loaded
            && self.memory(outcome).is_some_and(|memory| {
                warmup >= WARMUP_MEMORIES.saturating_mul(memory)
                    && counted >= COUNTED_MEMORIES.saturating_mul(memory)
            })
            && outcome.trend.cut(warmup).is_none_or(|cut| cut.shift.abs() <= MAX_SHIFT * asked);
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

/// The figures for which precision is required: name, value in its unit, and half the width of its interval.
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
    /// Runs all replications. If the scenario requires a precision, longer runs follow, until the figures have this
    /// precision or the limit of events is reached. The length of a run depends only on earlier outcomes, so it is the
    /// same with any number of threads.
    ///
    /// `progress` receives the number of finished clients, scaled to the length of the first run. Returns `None` if
    /// `progress` ends the run.
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

    /// The scenario of the next run, from an outcome and the number of events so far. `None` if no other run is needed,
    /// or if the remaining events are too few for a run that improves the precision.
    #[must_use]
    pub fn longer(&self, found: &Outcome, spent: u64) -> Option<Scenario> {
        let precision = self.scenario.precision?;
        let left = precision.max_events.saturating_sub(spent);
        let length = longer(&self.scenario, found, &found.steady?, left)?;
        let mut next = self.scenario.clone();
        next.clients = Some(length.warmup + length.counted + length.cooldown);
        next.warmup_clients = length.warmup;
        next.cooldown_clients = length.cooldown;
        next.precision = Some(PrecisionSpec { least_counted: length.least_counted, ..precision });
        // New replication numbers give new random numbers, so that the run is independent of the previous one.
        next.first_replication += next.replications;
        Some(next)
    }
}

/// Clients of a replication of the next run.
struct Length {
    counted: u64,
    warmup: u64,
    cooldown: u64,
    /// Number of counted clients that the required precision needs.
    least_counted: u64,
}

/// The length of the next run; `None` if no other run is needed, or if the remaining events are too few for a run that
/// improves the precision.
fn longer(scenario: &Scenario, found: &Outcome, steady: &Steady, left: u64) -> Option<Length> {
    let precision = steady.precision(found);
    let (clients, memory) = (scenario.clients?, steady.memory(found)?);
    if precision.is_met || precision.reached.is_none() {
        return None;
    }
    let (warmup_now, cooldown_now) = (scenario.warmup_clients, scenario.cooldown_clients);
    let counted_now = (clients - warmup_now - cooldown_now) as f64;
    let off = precision.reached.map_or(1.0, |reached| reached / precision.asked);
    let most = if precision.is_settled { MAX_GROWTH } else { MAX_GROWTH_UNSETTLED };
    let wanted = counted_now * (off * off * RESERVE).clamp(1.0, most);
    let counted = (wanted as u64).max(COUNTED_MEMORIES.saturating_mul(memory)).max(steady.by_theory(found));
    let by_data = found.trend.cut(warmup_now).map_or(0, |cut| cut.clients);
    let transit = steady.transit(found, PLANNED_IN_TRANSIT);
    let warmup = warmup_now.max(WARMUP_MEMORIES.saturating_mul(memory)).max(by_data).max(transit);
    let cooldown =
        if transit > steady.negligible(counted) { transit.max(cooldown_now) } else { cooldown_now };
    let events_each = (found.events / found.arrived.max(1)).max(1);
    let affordable = left / events_each / u64::from(scenario.replications);
    let least = (clients as f64 * MIN_GROWTH) as u64;
    let wanted_clients = counted.saturating_add(warmup).saturating_add(cooldown).max(least);
    let least_counted = wanted_clients - warmup - cooldown;
    if affordable >= wanted_clients {
        return Some(Length { counted: least_counted, warmup, cooldown, least_counted });
    }
    // The last run, with the remaining events.
    let cooldown = cooldown.min(affordable / 3);
    let warmup = warmup.min((affordable / 5).max(cooldown));
    let length = Length { counted: affordable - warmup - cooldown, warmup, cooldown, least_counted };
    (affordable >= least && warmup >= warmup_now).then_some(length)
}

/// Half-width of the 95 % interval of the mean of independent values.
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
    // With more than ten degrees of freedom, Fisher's expansion about the normal quantile is good to three digits.
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
