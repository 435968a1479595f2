//! The summary of a simulation: seconds, joules and shares, with intervals over replications.

use crate::access::outcome::AccessReport;
use crate::histogram::{Histogram, Summary};
use crate::limiter::Admissions;
use crate::outcome::{Cause, Moments, Outcome, Replication, TrafficOutcome};
use crate::records::RecordsReport;
use crate::scaling::ScalingOutcome;
use crate::series::ClassInterval;
use crate::steady::{Precision, margin};
use serde::{Deserialize, Serialize};
use shakedown_link::Ns;
use std::collections::BTreeMap;

/// A simulation's summary. Percentiles are precise to a thousandth; means are exact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    pub energy_j: Summary,
    pub utilisation: f64,
    pub offered: Option<f64>,
    pub unstable: bool,
    pub classes: Vec<ClassReport>,
    pub traffic: TrafficOutcome,
    pub access: Option<AccessReport>,
    pub admissions: Option<Admissions>,
    pub scaling: Option<ScalingReport>,
    /// `None` if clients send nothing after their handshakes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<RecordsReport>,
    pub peak_in_flight: u64,
    pub events: u64,
    pub virtual_s: f64,
    pub last_ready_s: f64,
    pub series_s: f64,
    pub series: Vec<IntervalReport>,
    pub replications: usize,
    pub warmup_clients: u64,
    pub cooldown_clients: u64,
    pub precision: Option<Precision>,
    pub seed: u64,
}

/// A class's part of the summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassReport {
    pub name: String,
    pub clients: u64,
    pub failed: u64,
    pub handshake_s: Summary,
    pub series: Vec<ClassIntervalReport>,
}

/// An interval of the summary: counts of all replications, averages over time and replications.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IntervalReport {
    #[serde(flatten)]
    pub clients: ClassIntervalReport,
    pub retries: u64,
    pub refused: u64,
    pub busy_workers: f64,
    pub waiting: f64,
    /// Servers in service and starting; `None` if their number is fixed.
    pub servers: Option<f64>,
    pub starting: Option<f64>,
}

/// The clients of a class, or all clients, in an interval: counts, and mean numbers in flight, in total and by stage.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassIntervalReport {
    pub arrived: u64,
    pub completed: u64,
    pub failed: u64,
    pub in_flight: f64,
    pub pausing: f64,
    pub seeking: f64,
    pub at_server: f64,
    pub under_way: f64,
}

/// Results of autoscaling; times are means over replications.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalingReport {
    pub peak: u64,
    pub started: u64,
    pub stopped: u64,
    pub server_s: f64,
    pub starting_s: f64,
}

impl Outcome {
    /// The summary of the outcome.
    #[must_use]
    pub fn report(&self) -> Report {
        let with_margin = |histogram: &Histogram, of: &dyn Fn(&Replication) -> Moments| {
            let all: Vec<Moments> = self.replications.iter().map(of).filter(|one| one.n > 0).collect();
            let means: Vec<f64> = all.iter().filter_map(Moments::mean_s).collect();
            let [p50_margin, p90_margin, p95_margin, p99_margin] = [0, 1, 2, 3]
                .map(|nth| margin(&all.iter().map(|one| one.percentile_s(nth)).collect::<Vec<f64>>()));
            let found = histogram.summary(1e9);
            Summary {
                mean_margin: margin(&means),
                p50_margin,
                p90_margin: p90_margin.filter(|_| found.p90.is_some()),
                p95_margin: p95_margin.filter(|_| found.p95.is_some()),
                p99_margin: p99_margin.filter(|_| found.p99.is_some()),
                ..found
            }
        };
        let utilisation =
            if self.capacity_ns == 0 { 0.0 } else { self.busy_ns as f64 / self.capacity_ns as f64 };
        Report {
            clients: self.counted,
            completed: self.completed,
            failed: self.failed.clone(),
            attempts: self.attempts,
            attempt_failures: self.attempt_failures.clone(),
            handshake_s: with_margin(&self.ready, &|replication| replication.ready),
            connect_s: self.connect.summary(1e9),
            done_s: with_margin(&self.done, &|replication| replication.done),
            queue_wait_s: with_margin(&self.wait, &|replication| replication.wait),
            server_s: with_margin(&self.sojourn, &|replication| replication.sojourn),
            client_wait_s: with_margin(&self.client_wait, &|replication| replication.client_wait),
            energy_j: self.energy.summary(1e9),
            utilisation,
            offered: self.offered_e9.map(|offered| offered as f64 * 1e-9),
            unstable: self.offered_e9.is_some_and(|offered| offered >= 1_000_000_000),
            classes: self
                .classes
                .iter()
                .enumerate()
                .map(|(number, class)| ClassReport {
                    name: class.name.clone(),
                    clients: class.counted,
                    failed: class.failed,
                    handshake_s: with_margin(&class.ready, &|replication| {
                        replication.classes.get(number).copied().unwrap_or_default()
                    }),
                    series: self.series.classes.get(number).map_or_else(Vec::new, |all| {
                        all.iter().map(|interval| self.clients(interval)).collect()
                    }),
                })
                .collect(),
            traffic: self.traffic.clone(),
            access: self.access.report(
                self.arrived,
                self.series.width.as_secs_f64(),
                self.replications.len(),
            ),
            admissions: self.admissions,
            scaling: self.scaling.map(|scaling| self.scaled(&scaling)),
            records: self.records.as_ref().map(|records| records.report(self.capacity_ns)),
            peak_in_flight: self.peak_in_flight,
            events: self.events,
            virtual_s: self.virtual_ns as f64 * 1e-9,
            last_ready_s: self.last_ready_ns as f64 * 1e-9,
            series_s: self.series.width.as_secs_f64(),
            series: (0..self.series.length()).map(|number| self.interval(number)).collect(),
            replications: self.replications.len(),
            warmup_clients: self.arrived - self.counted - self.cooldown,
            cooldown_clients: self.cooldown,
            precision: self.steady.map(|steady| steady.precision(self)),
            seed: self.seed,
        }
    }

    /// The length of an interval, summed over the replications: means are shares of this.
    fn interval_ns(&self) -> f64 {
        self.series.width.0.max(1) as f64 * self.replications.len().max(1) as f64
    }

    fn interval(&self, number: usize) -> IntervalReport {
        let mean = |time: Ns| time.0 as f64 / self.interval_ns();
        let interval = self.series.intervals.get(number).copied().unwrap_or_default();
        IntervalReport {
            clients: self.clients(&self.series.clients(number)),
            retries: interval.retries,
            refused: interval.refused,
            busy_workers: mean(interval.busy),
            waiting: mean(interval.waiting),
            servers: self.scaling.map(|_| mean(interval.servers)),
            starting: self.scaling.map(|_| mean(interval.starting)),
        }
    }

    fn clients(&self, interval: &ClassInterval) -> ClassIntervalReport {
        let mean = |time: Ns| time.0 as f64 / self.interval_ns();
        let [pausing, seeking, at_server, under_way] = interval.stages.map(mean);
        ClassIntervalReport {
            arrived: interval.arrived,
            completed: interval.completed,
            failed: interval.failed,
            in_flight: mean(interval.in_flight()),
            pausing,
            seeking,
            at_server,
            under_way,
        }
    }

    fn scaled(&self, scaling: &ScalingOutcome) -> ScalingReport {
        let mean_s = |time: u128| time as f64 * 1e-9 / self.replications.len().max(1) as f64;
        ScalingReport {
            peak: scaling.peak,
            started: scaling.started,
            stopped: scaling.stopped,
            server_s: mean_s(scaling.serving_ns),
            starting_s: mean_s(scaling.starting_ns),
        }
    }
}
