//! What came out of a simulation: what merges exactly, and the summary that is read.

use crate::metrics::{Histogram, Interval, Series, Summary};
use crate::scenario::{ArrivalSpec, Scenario};
use serde::{Deserialize, Serialize};
use shakedown_link::{Drop, Ns};
use std::collections::{BTreeMap, BTreeSet};

/// Why an attempt, or a client, failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// The client's time for an attempt was over.
    Timeout,
    /// No answer to any SYN.
    Connect,
    /// The transport gave up sending again.
    Transport,
    /// The server had forgotten the connection.
    Reset,
    /// Something was lost and is not sent again.
    Lost,
}

/// Counts, times and traffic of one replication or several. Times are nanoseconds, energies nanojoules.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // the names say it
pub struct Outcome {
    pub seed: u64,
    /// The replications in it.
    pub replications: Vec<Replication>,
    /// Clients that arrived; those counted, after the warm-up.
    pub arrived: u64,
    pub counted: u64,
    /// Of those counted.
    pub completed: u64,
    pub failed: BTreeMap<Cause, u64>,
    /// Attempts of all clients, and why attempts failed.
    pub attempts: u64,
    pub attempt_failures: BTreeMap<Cause, u64>,
    /// From planned arrival to when the transport was open.
    pub connect: Histogram,
    /// From planned arrival to when the client might send data.
    pub ready: Histogram,
    /// From planned arrival to when both sides were through with every message.
    pub done: Histogram,
    /// Of each of the server's jobs: waiting for a worker, and from joining the line to the end of service.
    pub wait: Histogram,
    pub sojourn: Histogram,
    /// A client's waiting for workers, all its jobs together.
    pub client_wait: Histogram,
    /// Processor time of a client and of the server for it.
    pub client_cpu: Histogram,
    pub server_cpu: Histogram,
    /// Energy of the client's radio and processor, their sum, as far as it is known …
    pub radio: Histogram,
    pub processor: Histogram,
    pub energy: Histogram,
    /// … and what is not in it.
    pub energy_missing: BTreeSet<String>,
    /// Time to ready by class.
    pub classes: Vec<ClassOutcome>,
    pub traffic: TrafficOutcome,
    pub series: Series,
    /// The most clients that were in flight at once, in any replication.
    pub peak_in_flight: u64,
    /// The longest run's virtual time, and when its last client was ready.
    pub virtual_ns: u64,
    pub last_ready_ns: u64,
    /// Changes of state that were simulated.
    pub events: u64,
    /// Worker time used and worker time there was, while clients arrived.
    #[serde(with = "decimal")]
    pub busy_ns: u128,
    #[serde(with = "decimal")]
    pub capacity_ns: u128,
    /// Server time that the scenario asks for per second and worker, on average; `None` where there is no rate. In
    /// thousand-millionths.
    pub offered_e9: Option<u64>,
}

/// A class's part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // the names say it
pub struct ClassOutcome {
    pub name: String,
    pub counted: u64,
    pub failed: u64,
    pub ready: Histogram,
}

/// What went over all links.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // the names say it
pub struct TrafficOutcome {
    pub packets: u64,
    /// With IP headers, without the links' own.
    pub up_bytes: u64,
    pub down_bytes: u64,
    /// Segments and datagrams sent again by the transports.
    pub retransmissions: u64,
    /// Packets that links did not deliver, by cause.
    pub dropped: BTreeMap<String, u64>,
}

/// The figures of one replication whose spread over replications gives intervals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // the names say it
pub struct Replication {
    pub number: u32,
    pub ready: Moments,
    pub wait: Moments,
    pub sojourn: Moments,
}

/// Count and exact sum of a replication's values, and their 95th percentile; whole numbers, so that they are read as
/// they were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)] // the names say it
pub struct Moments {
    pub n: u64,
    #[serde(with = "decimal")]
    pub sum_ns: u128,
    pub p95_ns: u64,
}

/// When clients arrived, each time with the workers' busy time up to then.
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    /// The first that counts.
    pub first: Option<(Ns, u128)>,
    /// The last of all.
    pub last: (Ns, u128),
}

/// Numbers of more digits than a JSON number keeps.
mod decimal {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(number: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(number)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|_| D::Error::custom("an outcome's sum is no whole number"))
    }
}

impl Moments {
    /// Those of a histogram of times.
    #[must_use]
    pub fn of(histogram: &Histogram) -> Self {
        Self {
            n: histogram.count(),
            sum_ns: histogram.sum(),
            p95_ns: histogram.quantile(0.95).unwrap_or(0.0) as u64,
        }
    }

    /// The mean, if there are values.
    #[must_use]
    pub fn mean_s(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum_ns as f64 / self.n as f64 * 1e-9)
    }
}

/// Why outcomes do not merge.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // the messages say it
pub enum MergeError {
    #[error("outcomes of seeds {0} and {1} do not merge")]
    Seed(u64, u64),
    #[error("outcomes of different scenarios do not merge: their {0} differ")]
    Scenario(&'static str),
    #[error("replication {0} is in both outcomes")]
    Twice(u32),
}

impl Outcome {
    /// Adds other replications of the same scenario. Whatever the order of merging, the result is the same.
    ///
    /// # Errors
    /// [`MergeError`], and nothing is added, where they are of another scenario.
    pub fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        if self.seed != other.seed {
            return Err(MergeError::Seed(self.seed, other.seed));
        }
        let names =
            |outcome: &Self| outcome.classes.iter().map(|class| class.name.clone()).collect::<Vec<_>>();
        if names(self) != names(other) {
            return Err(MergeError::Scenario("classes"));
        }
        if self.offered_e9 != other.offered_e9 {
            return Err(MergeError::Scenario("offered loads"));
        }
        let own: Vec<u32> = self.replications.iter().map(|replication| replication.number).collect();
        if let Some(twice) = other.replications.iter().find(|replication| own.contains(&replication.number)) {
            return Err(MergeError::Twice(twice.number));
        }
        if !self.series.merge(&other.series) {
            return Err(MergeError::Scenario("intervals"));
        }
        self.replications.extend(other.replications.iter().cloned());
        self.replications.sort_by_key(|replication| replication.number);
        self.arrived += other.arrived;
        self.counted += other.counted;
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
            (&mut self.client_cpu, &other.client_cpu),
            (&mut self.server_cpu, &other.server_cpu),
            (&mut self.radio, &other.radio),
            (&mut self.processor, &other.processor),
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
        self.peak_in_flight = self.peak_in_flight.max(other.peak_in_flight);
        self.virtual_ns = self.virtual_ns.max(other.virtual_ns);
        self.last_ready_ns = self.last_ready_ns.max(other.last_ready_ns);
        self.energy_missing.extend(other.energy_missing.iter().cloned());
        self.events += other.events;
        self.busy_ns += other.busy_ns;
        self.capacity_ns += other.capacity_ns;
        Ok(())
    }

    /// What is read: seconds, joules, shares.
    #[must_use]
    pub fn report(&self) -> Report {
        let seconds = |histogram: &Histogram| histogram.summary(1e9);
        let with_margin = |histogram: &Histogram, of: fn(&Replication) -> Moments| {
            let means: Vec<f64> =
                self.replications.iter().filter_map(|replication| of(replication).mean_s()).collect();
            Summary { mean_margin: margin(&means), ..histogram.summary(1e9) }
        };
        let utilisation =
            if self.capacity_ns == 0 { 0.0 } else { self.busy_ns as f64 / self.capacity_ns as f64 };
        Report {
            clients: self.counted,
            completed: self.completed,
            failed: self.failed.clone(),
            attempts: self.attempts,
            attempt_failures: self.attempt_failures.clone(),
            handshake_s: with_margin(&self.ready, |replication| replication.ready),
            connect_s: seconds(&self.connect),
            done_s: seconds(&self.done),
            queue_wait_s: with_margin(&self.wait, |replication| replication.wait),
            server_s: with_margin(&self.sojourn, |replication| replication.sojourn),
            client_wait_s: seconds(&self.client_wait),
            client_cpu_s: seconds(&self.client_cpu),
            server_cpu_s: seconds(&self.server_cpu),
            energy_j: self.energy.summary(1e9),
            radio_j: self.radio.summary(1e9),
            cpu_j: self.processor.summary(1e9),
            energy_missing: self.energy_missing.clone(),
            utilisation,
            offered: self.offered_e9.map(|offered| offered as f64 * 1e-9),
            unstable: self.offered_e9.is_some_and(|offered| offered >= 1_000_000_000),
            classes: self
                .classes
                .iter()
                .map(|class| ClassReport {
                    name: class.name.clone(),
                    clients: class.counted,
                    failed: class.failed,
                    handshake_s: seconds(&class.ready),
                })
                .collect(),
            traffic: self.traffic.clone(),
            peak_in_flight: self.peak_in_flight,
            events: self.events,
            virtual_s: self.virtual_ns as f64 * 1e-9,
            last_ready_s: self.last_ready_ns as f64 * 1e-9,
            series_s: self.series.width.as_secs_f64(),
            series: self.series.intervals.iter().map(|interval| self.interval(interval)).collect(),
            replications: self.replications.len(),
            warmup_clients: self.arrived - self.counted,
            seed: self.seed,
        }
    }

    fn interval(&self, interval: &Interval) -> IntervalReport {
        let width = self.series.width.0.max(1) as f64 * self.replications.len().max(1) as f64;
        IntervalReport {
            arrived: interval.arrived,
            completed: interval.completed,
            failed: interval.failed,
            retries: interval.retries,
            busy_workers: interval.busy.0 as f64 / width,
            in_flight: interval.in_flight.0 as f64 / width,
            waiting: interval.waiting.0 as f64 / width,
        }
    }

    /// Ends a replication's account at a time, with the workers' busy time up to then.
    pub fn end(&mut self, number: u32, scenario: &Scenario, window: Window, now: (Ns, u128)) {
        let (from, busy_before) = window.first.unwrap_or_default();
        // A storm is over before its load is, so all of it counts; a steady stream only while it lasts.
        let steady = !matches!(scenario.arrivals, ArrivalSpec::Storm { .. });
        let (to, busy) = if steady && window.last.0 > from { window.last } else { now };
        self.virtual_ns = now.0.0;
        self.busy_ns = busy - busy_before;
        self.capacity_ns = u128::from((to - from).0) * u128::from(scenario.server.workers);
        self.replications.push(Replication {
            number,
            ready: Moments::of(&self.ready),
            wait: Moments::of(&self.wait),
            sojourn: Moments::of(&self.sojourn),
        });
    }

    /// Adds packets that links did not deliver, in the order of [`Drop::ALL`].
    pub fn count_dropped(&mut self, dropped: [u64; 4]) {
        for (cause, count) in Drop::ALL.iter().zip(dropped) {
            if count > 0 {
                *self.traffic.dropped.entry(cause.as_str().into()).or_default() += count;
            }
        }
    }
}

fn add<K: Ord + Clone>(own: &mut BTreeMap<K, u64>, more: &BTreeMap<K, u64>) {
    for (key, count) in more {
        *own.entry(key.clone()).or_default() += count;
    }
}

/// Half the width of a mean's 95 % interval.
fn margin(means: &[f64]) -> Option<f64> {
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

/// A simulation's summary. Percentiles are exact to a thousandth, means exactly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // the names say it
pub struct Report {
    pub clients: u64,
    pub completed: u64,
    pub failed: BTreeMap<Cause, u64>,
    pub attempts: u64,
    pub attempt_failures: BTreeMap<Cause, u64>,
    pub handshake_s: Summary,
    pub connect_s: Summary,
    pub done_s: Summary,
    pub queue_wait_s: Summary,
    pub server_s: Summary,
    pub client_wait_s: Summary,
    pub client_cpu_s: Summary,
    pub server_cpu_s: Summary,
    pub energy_j: Summary,
    pub radio_j: Summary,
    pub cpu_j: Summary,
    pub energy_missing: BTreeSet<String>,
    pub utilisation: f64,
    pub offered: Option<f64>,
    pub unstable: bool,
    pub classes: Vec<ClassReport>,
    pub traffic: TrafficOutcome,
    pub peak_in_flight: u64,
    pub events: u64,
    pub virtual_s: f64,
    pub last_ready_s: f64,
    pub series_s: f64,
    pub series: Vec<IntervalReport>,
    pub replications: usize,
    pub warmup_clients: u64,
    pub seed: u64,
}

/// A class's part of the summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // the names say it
pub struct ClassReport {
    pub name: String,
    pub clients: u64,
    pub failed: u64,
    pub handshake_s: Summary,
}

/// An interval of the summary: counts of all replications, averages over time and replications.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // the names say it
pub struct IntervalReport {
    pub arrived: u64,
    pub completed: u64,
    pub failed: u64,
    pub retries: u64,
    pub busy_workers: f64,
    pub in_flight: f64,
    pub waiting: f64,
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
