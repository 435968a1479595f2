//! Autoscaling: servers start if those in service are busy, and stop if they are not.
//!
//! After every interval, the utilisation of the servers in service and the waiting jobs per server are compared with
//! thresholds, as in cloud providers' step scaling. A started server serves after a delay. A stopped server accepts no
//! new connections and finishes those that it has.

use crate::error::{ScenarioError, check};
use crate::series::Series;
use serde::{Deserialize, Serialize};
use shakedown_link::{MAX_SECONDS, Ns};
use std::collections::VecDeque;

/// When servers start and stop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScalingSpec {
    /// The maximum number of servers; the scenario's number is the initial and the minimum number.
    pub max_servers: u32,
    /// The interval between two comparisons.
    pub interval_s: f64,
    /// Servers start at this utilisation or above.
    pub up: f64,
    /// Servers also start at this number of waiting jobs per server; `None`: waiting jobs do not matter.
    #[serde(default)]
    pub up_waiting: Option<f64>,
    /// The number of servers that start or stop together.
    pub step: u32,
    /// Time from the start of a server until it serves.
    pub startup_s: f64,
    /// Servers stop if the utilisation was below this for `cooldown_s`.
    pub down: f64,
    /// The time of low utilisation, without a start or a stop, after which servers stop.
    pub cooldown_s: f64,
}

impl ScalingSpec {
    /// Checks the settings, for the initial number of servers and their workers.
    pub(crate) fn check(&self, servers: u32, workers: u32) -> Result<(), ScenarioError> {
        let most = f64::from(self.max_servers);
        let within = (servers..=10_000).contains(&self.max_servers);
        check("server.scaling.max_servers", most, "servers to 10000", within)?;
        let all = most * f64::from(workers);
        check("server.scaling.max_servers × server.workers", all, "1000000 at most", all <= 1e6)?;
        let seconds = |s: f64| (0.0..=MAX_SECONDS).contains(&s);
        let interval = (1e-6..=MAX_SECONDS).contains(&self.interval_s);
        check("server.scaling.interval_s", self.interval_s, "1e-6 to 1e9", interval)?;
        check("server.scaling.startup_s", self.startup_s, "0 to 1e9", seconds(self.startup_s))?;
        check("server.scaling.cooldown_s", self.cooldown_s, "0 to 1e9", seconds(self.cooldown_s))?;
        check("server.scaling.up", self.up, "above 0, at most 1", self.up > 0.0 && self.up <= 1.0)?;
        let below = (0.0..self.up).contains(&self.down);
        check("server.scaling.down", self.down, "0 or more, below server.scaling.up", below)?;
        let waiting = self.up_waiting.unwrap_or(1.0);
        check("server.scaling.up_waiting", waiting, "above 0", waiting > 0.0)?;
        let step = (1..=10_000).contains(&self.step);
        check("server.scaling.step", f64::from(self.step), "1 to 10000", step)
    }
}

/// Results of autoscaling. Times are in nanoseconds, over all replications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScalingOutcome {
    /// The maximum number in service at once.
    pub peak: u64,
    pub started: u64,
    pub stopped: u64,
    /// Time of servers in service, including stopped ones that finish their connections, and of starting servers.
    #[serde(with = "crate::histogram::decimal")]
    pub serving_ns: u128,
    #[serde(with = "crate::histogram::decimal")]
    pub starting_ns: u128,
}

impl ScalingOutcome {
    /// Adds another replication.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.peak = self.peak.max(other.peak);
        self.started += other.started;
        self.stopped += other.stopped;
        self.serving_ns += other.serving_ns;
        self.starting_ns += other.starting_ns;
    }
}

/// The numbers of servers from a time on.
#[derive(Clone, Copy, Debug)]
struct Count {
    at: Ns,
    serving: u32,
    starting: u32,
}

/// Decides when servers start and stop.
#[derive(Debug)]
pub(crate) struct Scaler {
    spec: ScalingSpec,
    workers: u32,
    least: u32,
    /// The number of servers that accept connections: the first ones.
    pub in_service: u32,
    /// When starting servers will begin to serve.
    starting: VecDeque<Ns>,
    next_comparison: Ns,
    /// The time of the last comparison, and the workers' busy time until then.
    last_comparison: (Ns, u128),
    /// The time since which the utilisation is low and the number of servers has not changed.
    quiet_since: Ns,
    history: Vec<Count>,
    outcome: ScalingOutcome,
}

impl Scaler {
    /// Begins with the minimum number of servers.
    pub fn new(spec: ScalingSpec, least: u32, workers: u32) -> Self {
        Self {
            spec,
            workers,
            least,
            in_service: least,
            starting: VecDeque::new(),
            next_comparison: Ns::from_secs_f64(spec.interval_s),
            last_comparison: (Ns::ZERO, 0),
            quiet_since: Ns::ZERO,
            history: vec![Count { at: Ns::ZERO, serving: least, starting: 0 }],
            outcome: ScalingOutcome { peak: u64::from(least), ..ScalingOutcome::default() },
        }
    }

    /// The time of its next action.
    pub fn next(&self) -> Ns {
        self.starting.front().map_or(self.next_comparison, |ready| self.next_comparison.min(*ready))
    }

    /// Puts started servers into service, and compares if that is due. `busy_ns`: the workers' busy time so far;
    /// `waiting`: the waiting jobs; `ending`: the servers after the first N that still have connections.
    pub fn act(&mut self, now: Ns, busy_ns: u128, waiting: u64, ending: impl Fn(u32) -> u32) {
        while self.starting.front().is_some_and(|ready| *ready <= now) {
            self.starting.pop_front();
            self.in_service += 1;
            self.quiet_since = now;
        }
        if self.next_comparison <= now {
            self.compare(now, busy_ns, waiting);
            self.next_comparison = now + Ns::from_secs_f64(self.spec.interval_s);
        }
        let count = Count {
            at: now,
            serving: self.in_service + ending(self.in_service),
            starting: self.starting.len() as u32,
        };
        self.outcome.peak = self.outcome.peak.max(u64::from(count.serving));
        if self
            .history
            .last()
            .is_none_or(|last| (last.serving, last.starting) != (count.serving, count.starting))
        {
            self.history.push(count);
        }
    }

    fn compare(&mut self, now: Ns, busy_ns: u128, waiting: u64) {
        let (before, busy_before) = self.last_comparison;
        let there_ns = self.worker_ns(now) - self.worker_ns(before);
        let utilisation = (busy_ns - busy_before) as f64 / there_ns.max(1) as f64;
        self.last_comparison = (now, busy_ns);
        let queued =
            self.spec.up_waiting.is_some_and(|most| waiting as f64 >= most * f64::from(self.in_service));
        if utilisation >= self.spec.up || queued {
            let coming = self.in_service + self.starting.len() as u32;
            let more = self.spec.step.min(self.spec.max_servers - coming);
            let ready = now + Ns::from_secs_f64(self.spec.startup_s);
            self.starting.extend((0..more).map(|_| ready));
            self.outcome.started += u64::from(more);
            self.quiet_since = now;
        } else if utilisation >= self.spec.down {
            self.quiet_since = now;
        } else if now - self.quiet_since >= Ns::from_secs_f64(self.spec.cooldown_s)
            && self.in_service > self.least
        {
            let fewer = self.spec.step.min(self.in_service - self.least);
            self.in_service -= fewer;
            self.outcome.stopped += u64::from(fewer);
            self.quiet_since = now;
        }
    }

    /// Periods with constant numbers of servers: start, end (at most `end`), numbers.
    fn spans(&self, end: Ns) -> impl Iterator<Item = (Ns, Ns, Count)> {
        let ends = self.history.iter().skip(1).map(|next| next.at).chain([Ns::MAX]);
        let spans =
            self.history.iter().zip(ends).map(move |(count, until)| (count.at, until.min(end), *count));
        // Several changes may have one time.
        spans.take_while(move |(from, ..)| *from < end).filter(|(from, until, _)| from < until)
    }

    /// The time of the workers of servers in service, until a time.
    pub fn worker_ns(&self, end: Ns) -> u128 {
        let each = self
            .spans(end)
            .map(|(from, until, count)| u128::from((until - from).0) * u128::from(count.serving));
        each.sum::<u128>() * u128::from(self.workers)
    }

    /// The results until the end.
    pub fn end(&self, end: Ns, series: &mut Series) -> ScalingOutcome {
        let mut outcome = self.outcome;
        for (from, until, count) in self.spans(end) {
            let span = u128::from((until - from).0);
            outcome.serving_ns += span * u128::from(count.serving);
            outcome.starting_ns += span * u128::from(count.starting);
            series.hold_servers((from, until), u64::from(count.serving), u64::from(count.starting));
        }
        outcome
    }
}
