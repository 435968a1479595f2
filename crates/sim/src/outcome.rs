//! The outcome of a simulation. Outcomes of several replications can be merged without loss of precision.
//! [`crate::report`] is the summary.

use crate::access::Uncrossed;
use crate::access::outcome::AccessOutcome;
use crate::histogram::{Histogram, decimal};
use crate::limiter::Admissions;
use crate::records::RecordsOutcome;
use crate::scaling::ScalingOutcome;
use crate::scenario::{ArrivalSpec, Part, PrecisionSpec, Scenario};
use crate::series::Series;
use crate::trend::Trend;
use serde::{Deserialize, Serialize};
use shakedown_link::{Drop, Ns};
use std::collections::BTreeMap;

/// Why an attempt, or a client, failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// The client's timeout for an attempt expired.
    Timeout,
    /// No answer to any SYN.
    Connect,
    /// The transport reached its limit of retransmissions.
    Transport,
    /// The server no longer had the connection.
    Reset,
    /// The server refused it, because it limits the rate of new connections.
    Refused,
    /// A packet was lost and is not sent again.
    Lost,
}

/// Counts, times and traffic of one replication or several. Times are nanoseconds, energies nanojoules.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub seed: u64,
    /// The replications in it.
    pub replications: Vec<Replication>,
    /// The parts of an incomplete replication that are in this outcome.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// Clients that arrived; the part of them that is counted; and those that arrived later, in the cool-down.
    pub arrived: u64,
    pub counted: u64,
    pub cooldown: u64,
    /// Counted clients that became ready, and that failed by cause.
    pub completed: u64,
    pub failed: BTreeMap<Cause, u64>,
    /// Attempts of all clients, and why attempts failed.
    pub attempts: u64,
    pub attempt_failures: BTreeMap<Cause, u64>,
    /// From planned arrival to when the transport was open.
    pub connect: Histogram,
    /// From planned arrival to when the client might send data.
    pub ready: Histogram,
    /// From planned arrival until both sides had processed every message.
    pub done: Histogram,
    /// Times of each job at the server: waiting for a worker, and from arrival in the queue to the end of service.
    pub wait: Histogram,
    pub sojourn: Histogram,
    /// The total time for which a client's jobs waited for workers.
    pub client_wait: Histogram,
    /// Energy of the client's radio and processor; unknown parts are not included.
    pub energy: Histogram,
    /// Time to ready by class.
    pub classes: Vec<ClassOutcome>,
    pub traffic: TrafficOutcome,
    pub access: AccessOutcome,
    /// Connections that servers admitted and refused; `None` without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admissions: Option<Admissions>,
    /// Servers that started and stopped; `None` if their number is fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaling: Option<ScalingOutcome>,
    /// Records that clients sent after their handshakes; `None` if they send none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<RecordsOutcome>,
    pub series: Series,
    /// Maximum number of clients in progress at a time, over all replications.
    pub peak_in_flight: u64,
    /// The longest run's virtual time, and when its last client was ready.
    pub virtual_ns: u64,
    pub last_ready_ns: u64,
    /// Changes of state that were simulated.
    pub events: u64,
    /// Busy time of the workers, and the total time of the workers, while clients arrived.
    #[serde(with = "decimal")]
    pub busy_ns: u128,
    #[serde(with = "decimal")]
    pub capacity_ns: u128,
    /// Server time that the scenario needs per second and worker, on average, times 10⁹; `None` if there is no rate.
    pub offered_e9: Option<u64>,
    /// The required and the reached precision; `None` if none is required or there is no steady state.
    pub steady: Option<Steady>,
    pub trend: Trend,
}

/// The outcome of one class of clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassOutcome {
    pub name: String,
    pub counted: u64,
    pub failed: u64,
    pub ready: Histogram,
}

/// The precision that a scenario requires. The fields are integers, so that a saved value is read without rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steady {
    /// The required relative precision, times 10⁹.
    pub asked_e9: u64,
    /// Clients that arrive in a relaxation time of the server's queue.
    pub memory_clients: u64,
    /// Number of clients that each replication must count to meet the precision.
    pub least_counted: u64,
    /// Clients that arrive in 10⁹ s.
    pub rate_e9: u64,
}

impl Steady {
    /// Creates the value for a scenario; `None` without a required precision or without a steady state.
    pub(crate) fn of(scenario: &Scenario, memory_clients: Option<u64>) -> Option<Self> {
        let PrecisionSpec { relative, least_counted, .. } = scenario.precision?;
        let asked_e9 = (relative * 1e9 + 0.5) as u64;
        let rate_e9 = (scenario.arrivals.first_per_s() * 1e9 + 0.5) as u64;
        Some(Self { asked_e9, memory_clients: memory_clients?, least_counted, rate_e9 })
    }
}

/// The traffic on all links.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrafficOutcome {
    pub packets: u64,
    /// Including IP headers, without the headers of the links.
    pub up_bytes: u64,
    pub down_bytes: u64,
    /// Segments and datagrams sent again by the transports.
    pub retransmissions: u64,
    /// Packets that links did not deliver, by cause.
    pub dropped: BTreeMap<String, u64>,
}

/// The figures of one replication whose spread over replications gives intervals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Replication {
    pub number: u32,
    pub ready: Moments,
    pub done: Moments,
    pub client_wait: Moments,
    pub wait: Moments,
    pub sojourn: Moments,
    /// Time to ready by class.
    pub classes: Vec<Moments>,
    #[serde(with = "decimal")]
    pub busy_ns: u128,
    #[serde(with = "decimal")]
    pub capacity_ns: u128,
}

impl Replication {
    /// Busy time of the workers as a share of their total time.
    pub(crate) fn utilisation(&self) -> Option<f64> {
        (self.capacity_ns > 0).then(|| self.busy_ns as f64 / self.capacity_ns as f64)
    }
}

/// Number, exact sum and percentiles ([`MARGINS`]) of a replication's values. The fields are integers, so that a saved
/// value is read without rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moments {
    pub n: u64,
    #[serde(with = "decimal")]
    pub sum_ns: u128,
    pub percentiles_ns: [u64; 4],
}

/// The percentiles that have margins.
pub const MARGINS: [f64; 4] = [0.5, 0.9, 0.95, 0.99];

/// The period in which counted clients arrived.
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    /// Arrival of the first counted client.
    pub first: Option<Mark>,
    /// Arrival of the last client.
    pub last: Mark,
}

/// A time, the workers' busy time until then, and the part of it that was used for records finished by then.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mark {
    pub at: Ns,
    pub busy_ns: u128,
    pub records_ns: u128,
}

impl Moments {
    /// The moments of a histogram of times.
    #[must_use]
    pub fn of(histogram: &Histogram) -> Self {
        Self {
            n: histogram.count(),
            sum_ns: histogram.sum(),
            percentiles_ns: MARGINS.map(|share| histogram.quantile(share).unwrap_or(0.0) as u64),
        }
    }

    /// The percentile with this index in [`MARGINS`].
    #[must_use]
    pub fn percentile_s(&self, nth: usize) -> f64 {
        self.percentiles_ns[nth] as f64 * 1e-9
    }

    /// The mean, if there are values.
    #[must_use]
    pub fn mean_s(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum_ns as f64 / self.n as f64 * 1e-9)
    }
}

/// Why outcomes do not merge.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    #[error("outcomes of seeds {0} and {1} do not merge")]
    Seed(u64, u64),
    #[error("outcomes of different scenarios do not merge: their {0} differ")]
    Scenario(&'static str),
    #[error("replication {0} is in both outcomes")]
    Twice(u32),
    #[error("of replication {replication}'s {of} parts, {there} are there; accepted: each once")]
    Parts { replication: u32, of: u32, there: usize },
}

impl Outcome {
    /// Adds other replications of the same scenario. The order of merging does not matter.
    ///
    /// # Errors
    /// [`MergeError`] if they belong to another scenario; nothing is added then.
    pub fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        self.whole()?;
        other.whole()?;
        let own: Vec<u32> = self.replications.iter().map(|replication| replication.number).collect();
        if let Some(twice) = other.replications.iter().find(|replication| own.contains(&replication.number)) {
            return Err(MergeError::Twice(twice.number));
        }
        self.add(other)?;
        self.replications.extend(other.replications.iter().cloned());
        self.replications.sort_by_key(|replication| replication.number);
        self.capacity_ns += other.capacity_ns;
        Ok(())
    }

    /// Adds another part of the same replication. With all parts, this is the outcome of the whole replication.
    fn join(&mut self, other: &Self) -> Result<(), MergeError> {
        let (Some(of), Some(replication)) =
            (self.parts.first().map(|part| part.of), self.replications.first())
        else {
            return self.merge(other);
        };
        let number = replication.number;
        let is_fellow = |part: &Part| part.of == of && !self.parts.contains(part);
        if other.parts.is_empty() || !other.parts.iter().all(is_fellow) {
            return Err(MergeError::Parts { replication: number, of, there: self.parts.len() });
        }
        self.add(other)?;
        self.parts.extend_from_slice(&other.parts);
        // The time of all workers, from the arrival of the first client to the end of the longest part.
        self.capacity_ns = self.capacity_ns.max(other.capacity_ns);
        if self.parts.len() == of as usize {
            self.parts.clear();
            self.peak_in_flight = self.series.peak_in_flight();
            self.replications = vec![self.replication(number)];
        }
        Ok(())
    }

    fn whole(&self) -> Result<(), MergeError> {
        match (self.parts.first(), self.replications.first()) {
            (Some(part), Some(replication)) => Err(MergeError::Parts {
                replication: replication.number,
                of: part.of,
                there: self.parts.len(),
            }),
            _ => Ok(()),
        }
    }

    /// Adds the additive fields of another part or replication.
    fn add(&mut self, other: &Self) -> Result<(), MergeError> {
        if self.seed != other.seed {
            return Err(MergeError::Seed(self.seed, other.seed));
        }
        let names =
            |outcome: &Self| outcome.classes.iter().map(|class| class.name.clone()).collect::<Vec<_>>();
        if names(self) != names(other) {
            return Err(MergeError::Scenario("classes"));
        }
        if (self.offered_e9, self.steady) != (other.offered_e9, other.steady) {
            return Err(MergeError::Scenario("offered loads"));
        }
        if !self.series.merge(&other.series) {
            return Err(MergeError::Scenario("intervals"));
        }
        self.trend.merge(&other.trend);
        self.arrived += other.arrived;
        self.counted += other.counted;
        self.cooldown += other.cooldown;
        self.completed += other.completed;
        self.attempts += other.attempts;
        add(&mut self.failed, &other.failed);
        add(&mut self.attempt_failures, &other.attempt_failures);
        for (own, more) in [
            (&mut self.connect, &other.connect),
            (&mut self.ready, &other.ready),
            (&mut self.done, &other.done),
            (&mut self.wait, &other.wait),
            (&mut self.sojourn, &other.sojourn),
            (&mut self.client_wait, &other.client_wait),
            (&mut self.energy, &other.energy),
        ] {
            own.merge(more);
        }
        for (own, more) in self.classes.iter_mut().zip(&other.classes) {
            own.counted += more.counted;
            own.failed += more.failed;
            own.ready.merge(&more.ready);
        }
        self.traffic.packets += other.traffic.packets;
        self.traffic.up_bytes += other.traffic.up_bytes;
        self.traffic.down_bytes += other.traffic.down_bytes;
        self.traffic.retransmissions += other.traffic.retransmissions;
        add(&mut self.traffic.dropped, &other.traffic.dropped);
        self.access.merge(&other.access);
        if let (Some(own), Some(more)) = (&mut self.admissions, &other.admissions) {
            own.admitted += more.admitted;
            own.refused += more.refused;
        }
        if let (Some(own), Some(more)) = (&mut self.scaling, &other.scaling) {
            own.merge(more);
        }
        if let (Some(own), Some(more)) = (&mut self.records, &other.records) {
            own.merge(more);
        }
        self.peak_in_flight = self.peak_in_flight.max(other.peak_in_flight);
        self.virtual_ns = self.virtual_ns.max(other.virtual_ns);
        self.last_ready_ns = self.last_ready_ns.max(other.last_ready_ns);
        self.events += other.events;
        self.busy_ns += other.busy_ns;
        Ok(())
    }

    /// Ends the accounting of a replication at a time, with the workers' busy time until then. `worker_ns` returns the
    /// workers' total time until a time.
    pub fn end(
        &mut self,
        number: u32,
        scenario: &Scenario,
        window: Window,
        now: Mark,
        worker_ns: &dyn Fn(Ns) -> u128,
    ) {
        let from = window.first.unwrap_or_default();
        // The load of a storm lasts longer than its arrivals, so all of it counts; a steady load counts only during the
        // arrivals.
        let steady = !matches!(scenario.arrivals, ArrivalSpec::Storm { .. });
        let to = if steady && window.last.at > from.at { window.last } else { now };
        self.virtual_ns = now.at.0;
        self.busy_ns = to.busy_ns - from.busy_ns;
        self.capacity_ns = worker_ns(to.at) - worker_ns(from.at);
        if let Some(records) = &mut self.records {
            records.work_ns = to.records_ns - from.records_ns;
        }
        self.replications.push(self.replication(number));
    }

    /// The figures of a replication from everything that has been counted so far.
    fn replication(&self, number: u32) -> Replication {
        Replication {
            number,
            ready: Moments::of(&self.ready),
            done: Moments::of(&self.done),
            client_wait: Moments::of(&self.client_wait),
            wait: Moments::of(&self.wait),
            sojourn: Moments::of(&self.sojourn),
            classes: self.classes.iter().map(|class| Moments::of(&class.ready)).collect(),
            busy_ns: self.busy_ns,
            capacity_ns: self.capacity_ns,
        }
    }

    /// Adds packets that links did not deliver, in the order of [`Drop::ALL`], packets that did not cross their cell,
    /// and packets that servers ignored.
    pub fn count_dropped(&mut self, links: [u64; 4], cells: Uncrossed, ignored: u64) {
        let links = Drop::ALL.iter().map(|cause| cause.as_str()).zip(links);
        let others = [
            ("no-access", cells.refused),
            ("collided", cells.collided),
            ("channel-busy", cells.channel_busy),
            ("server-full", ignored),
        ];
        for (cause, count) in links.chain(others).filter(|(_, count)| *count > 0) {
            *self.traffic.dropped.entry(cause.into()).or_default() += count;
        }
    }
}

/// Merges replications of one scenario, and parts of replications, in any order.
#[derive(Debug, Default)]
pub struct Merger {
    all: Option<Outcome>,
    /// Incomplete replications, by number.
    partial: BTreeMap<u32, Outcome>,
}

impl Merger {
    /// Adds an outcome.
    ///
    /// # Errors
    /// [`MergeError`] if it belongs to another scenario, or was added before.
    pub fn add(&mut self, mut outcome: Outcome) -> Result<(), MergeError> {
        let number = outcome.replications.first().map_or(0, |replication| replication.number);
        if let Some(before) = self.partial.remove(&number) {
            outcome.join(&before)?;
        }
        match &mut self.all {
            _ if !outcome.parts.is_empty() => {
                self.partial.insert(number, outcome);
            }
            Some(all) => all.merge(&outcome)?,
            None => self.all = Some(outcome),
        }
        Ok(())
    }

    /// The merged outcome; `None` if there are none.
    ///
    /// # Errors
    /// [`MergeError`] if a part is missing.
    pub fn end(self) -> Result<Option<Outcome>, MergeError> {
        self.partial.values().try_for_each(Outcome::whole)?;
        Ok(self.all)
    }
}

fn add<K: Ord + Clone>(own: &mut BTreeMap<K, u64>, more: &BTreeMap<K, u64>) {
    for (key, count) in more {
        *own.entry(key.clone()).or_default() += count;
    }
}
