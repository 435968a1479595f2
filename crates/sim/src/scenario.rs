//! The description of a simulation, as plain data.

use crate::access::CellSpec;
use crate::error::ScenarioError;
use crate::handshake::HandshakeSpec;
use crate::limiter::AdmissionSpec;
use crate::records::RecordsSpec;
use crate::scaling::ScalingSpec;
use crate::tcp::TcpConfig;
use serde::{Deserialize, Serialize};
use shakedown_link::BearerSpec;
use std::ops::Range;

/// When clients arrive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum ArrivalSpec {
    /// Independent of each other.
    Poisson {
        /// Clients per second.
        per_s: f64,
    },
    /// At equal intervals.
    Deterministic {
        /// Clients per second.
        per_s: f64,
    },
    /// In bursts that are independent of each other.
    Bursts {
        /// Bursts per second.
        per_s: f64,
        /// Clients per burst.
        size: u32,
    },
    /// All within a period, each at a random time of it; 0: all at once.
    Storm {
        /// The period.
        within_s: f64,
    },
    /// Independent of each other, at a rate that is interpolated linearly between the points of a curve.
    Curve {
        /// Pairs of seconds from the start (ascending, from 0) and clients per second.
        points: Vec<(f64, f64)>,
    },
    /// One client at each of the given times, which are in ascending order.
    Times {
        /// Seconds from the start.
        at_s: Vec<f64>,
    },
}

/// Whether and when a client tries again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetrySpec {
    /// Attempts, the first included.
    pub attempts: u32,
    /// The first pause.
    pub delay_s: f64,
    /// The ratio of each pause to the one before.
    #[serde(default = "one")]
    pub factor: f64,
    /// The longest pause.
    #[serde(default = "hour")]
    pub maximum_s: f64,
    /// The random share of a pause: with 0 the pause is fixed, with 1 it is uniform between zero and its full length.
    #[serde(default)]
    pub jitter: f64,
}

fn one() -> f64 {
    1.0
}

fn hour() -> f64 {
    3600.0
}

/// In which order jobs are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Discipline {
    /// First come, first served; a job keeps its worker.
    #[default]
    Fifo,
    /// Processor sharing: all jobs at once, each with an equal share of the workers, but at most one worker.
    Ps,
}

/// How connections are distributed over several servers. The load balancer itself takes no time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Balance {
    /// The next in turn.
    #[default]
    RoundRobin,
    /// The one with the fewest open connections; among equals, the next in turn.
    LeastConnections,
    /// By a hash of the client's number: always the same for one client, uniform over all clients.
    Hash,
    /// The server of the client's cell; cells are assigned to servers in turn.
    Cell,
}

/// Some of a scenario's servers, with their clients and cells: server `s` belongs to part `s % of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The number of this part.
    pub number: u32,
    /// The number of parts.
    pub of: u32,
}

/// One server, or several identical ones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerSpec {
    /// The number of servers; `workers` and the limits apply to each.
    pub servers: u32,
    /// How connections are distributed over the servers.
    pub balance: Balance,
    /// Processors.
    pub workers: u32,
    /// Order of service.
    pub discipline: Discipline,
    /// Limit of handshakes in progress; `None`: no limit.
    pub max_handshakes: Option<u32>,
    /// Limit of connections that wait to be accepted (not over datagrams); `None`: no limit.
    pub accept_queue: Option<u32>,
    /// Limit of the rate at which connections are accepted; `None`: no limit.
    pub admission: Option<AdmissionSpec>,
    /// When servers start and stop; `None`: their number is fixed.
    pub scaling: Option<ScalingSpec>,
}

impl ServerSpec {
    /// The maximum number of servers.
    #[must_use]
    pub fn max_servers(&self) -> u32 {
        self.scaling.map_or(self.servers, |scaling| scaling.max_servers)
    }

    /// The processors of the maximum number of servers.
    #[must_use]
    pub fn all_workers(&self) -> u32 {
        self.max_servers() * self.workers
    }
}

impl Default for ServerSpec {
    fn default() -> Self {
        Self {
            servers: 1,
            balance: Balance::RoundRobin,
            workers: 1,
            discipline: Discipline::Fifo,
            max_handshakes: None,
            accept_queue: None,
            admission: None,
            scaling: None,
        }
    }
}

/// The required precision of the figures of a steady load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrecisionSpec {
    /// Half the width of each figure's 95 % interval, as a share of the figure.
    pub relative: f64,
    /// Limit of the events of all runs together. Runs are prolonged until the precision is reached, within this limit;
    /// the first run is always completed.
    pub max_events: u64,
    /// The minimum number of clients that each replication counts, as the previous run requires; 0: no minimum.
    #[serde(default)]
    pub least_counted: u64,
}

/// A kind of client: its handshakes and its network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassSpec {
    /// The share of this kind among the clients, relative to the weights of the other kinds.
    #[serde(default = "one")]
    pub weight: f64,
    /// Its full handshake.
    pub handshake: HandshakeSpec,
    /// Its resumed handshake.
    #[serde(default)]
    pub resumed: Option<HandshakeSpec>,
    /// The share of clients that resume.
    #[serde(default)]
    pub resumption: f64,
    /// Shares that change with time: pairs of a time in seconds and the share from then on. `resumption` is then their
    /// mean over all clients.
    #[serde(default)]
    pub resumption_steps: Vec<(f64, f64)>,
    /// Its network.
    pub bearer: BearerSpec,
    /// The cells that its clients share; `None`: each client has its own link.
    #[serde(default)]
    pub cell: Option<CellSpec>,
    /// The server's work on a record that a client sends after its handshake.
    #[serde(default)]
    pub record_work_s: f64,
}

/// The description of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Kinds of clients.
    pub classes: Vec<ClassSpec>,
    /// The number of clients; `None`: all that arrive on a curve, or one for each of the given times.
    #[serde(default)]
    pub clients: Option<u64>,
    /// When they arrive.
    pub arrivals: ArrivalSpec,
    /// The server.
    #[serde(default)]
    pub server: ServerSpec,
    /// The TCP settings of both hosts.
    #[serde(default)]
    pub tcp: TcpConfig,
    /// Timeout of an attempt, until the client is ready; `None`: the transport's own timeout.
    #[serde(default)]
    pub timeout_s: Option<f64>,
    /// When clients retry; `None`: never.
    #[serde(default)]
    pub retry: Option<RetrySpec>,
    /// The first clients, which load the server but are not counted, so that the counted clients find a steady state.
    #[serde(default)]
    pub warmup_clients: u64,
    /// The last clients, which are not counted either: they load the server until the counted clients are done.
    #[serde(default)]
    pub cooldown_clients: u64,
    /// Records that clients send after their handshakes; `None`: none.
    #[serde(default)]
    pub records: Option<RecordsSpec>,
    /// The required precision, for arrivals at a rate; `None`: the number of clients is fixed.
    #[serde(default)]
    pub precision: Option<PrecisionSpec>,
    /// Length of the intervals of the time series; 0: no time series.
    #[serde(default)]
    pub series_s: f64,
    /// The seed.
    pub seed: u64,
    /// The number of simulations, each with its own random numbers.
    #[serde(default = "once")]
    pub replications: u32,
    /// The number of the first replication, if a run is split.
    #[serde(default)]
    pub first_replication: u32,
}

/// The maximum number of clients of a replication.
pub const MAX_CLIENTS: u64 = 1_000_000_000_000;

impl Scenario {
    /// The maximum number of clients that arrive.
    #[must_use]
    pub fn client_limit(&self) -> u64 {
        self.clients.unwrap_or(match &self.arrivals {
            ArrivalSpec::Times { at_s } => at_s.len() as u64,
            _ => MAX_CLIENTS,
        })
    }

    /// The numbers of the counted clients, in the order of arrival.
    #[must_use]
    pub fn counted(&self) -> Range<u64> {
        self.warmup_clients..self.client_limit() - self.cooldown_clients
    }

    /// Part `number` of each replication, which is divided into `of` parts.
    ///
    /// # Errors
    /// [`ScenarioError::Part`] if there is no such part.
    pub fn part(&self, number: u32, of: u32) -> Result<Part, ScenarioError> {
        let parts = self.parts();
        if number >= of || of > parts {
            return Err(ScenarioError::Part { number, of, parts });
        }
        Ok(Part { number, of })
    }

    /// The number of parts into which it can be divided: the number of servers, if servers share neither clients nor
    /// cells, else 1. The outcomes of all parts merge to that of the whole. The merged peak of clients in flight is
    /// taken at the ends of the series' intervals, because a part does not know the times of the other parts' peaks.
    #[must_use]
    pub fn parts(&self) -> u32 {
        let meets_others = match self.server.balance {
            Balance::RoundRobin | Balance::LeastConnections => true,
            Balance::Hash => self.classes.iter().any(|class| class.cell.is_some()),
            Balance::Cell => false,
        };
        let is_steady = self.arrivals.rate_per_s().is_some();
        // The end of a run with records depends on all clients together.
        let is_one = meets_others || is_steady || self.series_s <= 0.0 || self.records.is_some();
        if is_one { 1 } else { self.server.servers }
    }

    /// The mean number of clients of a curve.
    fn mean_clients(points: &[(f64, f64)]) -> f64 {
        points.windows(2).map(|pair| (pair[1].0 - pair[0].0) * (pair[0].1 + pair[1].1) / 2.0).sum()
    }

    /// The maximum rate of admitted clients, if arrivals have a rate.
    #[must_use]
    pub fn admitted_per_s(&self) -> Option<f64> {
        Some(self.arrivals.rate_per_s()?.min(self.admission_limit_per_s()))
    }

    /// The maximum rate of admitted clients, for any rate of arrivals.
    #[must_use]
    pub(crate) fn admission_limit_per_s(&self) -> f64 {
        let admission = self.server.admission.map(|one| one.per_s * f64::from(self.server.max_servers()));
        admission.unwrap_or(f64::INFINITY)
    }

    /// The number of clients of a replication; an estimate for a curve.
    #[must_use]
    pub fn expected_clients(&self) -> u64 {
        let limit = self.client_limit();
        match &self.arrivals {
            ArrivalSpec::Curve { points } => limit.min(Self::mean_clients(points) as u64),
            _ => limit,
        }
    }
}

impl ArrivalSpec {
    /// Clients per second, if arrivals have a rate.
    #[must_use]
    pub fn rate_per_s(&self) -> Option<f64> {
        match self {
            Self::Poisson { per_s } | Self::Deterministic { per_s } => Some(*per_s),
            Self::Bursts { per_s, size } => Some(per_s * f64::from(*size)),
            Self::Storm { .. } | Self::Curve { .. } | Self::Times { .. } => None,
        }
    }

    /// Clients per second at the start; 0 if arrivals have no rate.
    #[must_use]
    pub fn first_per_s(&self) -> f64 {
        match self {
            Self::Curve { points } => points.first().map_or(0.0, |first| first.1),
            other => other.rate_per_s().unwrap_or(0.0),
        }
    }

    /// Seconds from the start until the last client arrives, if this is fixed; else 0.
    #[must_use]
    pub fn span_s(&self) -> f64 {
        match self {
            Self::Storm { within_s } => *within_s,
            Self::Curve { points } => points.last().map_or(0.0, |last| last.0),
            Self::Times { at_s } => at_s.last().copied().unwrap_or(0.0),
            Self::Poisson { .. } | Self::Deterministic { .. } | Self::Bursts { .. } => 0.0,
        }
    }
}

fn once() -> u32 {
    1
}
