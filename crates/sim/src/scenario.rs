//! What is simulated, as plain data.

use crate::access::CellSpec;
use crate::handshake::{HandshakeError, PricedHandshake};
use crate::limiter::AdmissionSpec;
use crate::records::RecordsSpec;
use crate::scaling::ScalingSpec;
use crate::tcp::TcpConfig;
use serde::{Deserialize, Serialize};
use shakedown_link::{BearerError, BearerSpec};

/// When clients arrive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum ArrivalSpec {
    /// Independent of each other.
    Poisson {
        /// Clients a second.
        per_s: f64,
    },
    /// At equal distances.
    Deterministic {
        /// Clients a second.
        per_s: f64,
    },
    /// Several at once, the bursts independent of each other.
    Bursts {
        /// Bursts a second.
        per_s: f64,
        /// Clients a burst.
        size: u32,
    },
    /// All within a time, each anywhere in it; 0: all at once.
    Storm {
        /// The time.
        within_s: f64,
    },
    /// Independent of each other, at a rate that changes: on straight lines between points of a curve, from the first to
    /// the last.
    Curve {
        /// (Seconds from the start, clients a second), the seconds rising from 0.
        points: Vec<(f64, f64)>,
    },
    /// At given times, in rising order; as many clients as there are times.
    Times {
        /// Seconds from the start.
        at_s: Vec<f64>,
    },
}

/// Whether and when a client tries again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetrySpec {
    /// Attempts in all.
    pub attempts: u32,
    /// The first pause.
    pub delay_s: f64,
    /// What each pause is of the one before.
    #[serde(default = "one")]
    pub factor: f64,
    /// The longest pause.
    #[serde(default = "hour")]
    pub maximum_s: f64,
    /// The share of a pause that is drawn: 0 for none, 1 for anything from nothing to all of it.
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
    /// All at once, each with an equal share of the workers, but never more than one.
    Ps,
}

/// When a side sends what it has made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Flush {
    /// A flight at a time, when its last message is made.
    #[default]
    Flight,
    /// Each message when it is made.
    Message,
}

/// Which server a connection goes to, where there are several. What balances them costs no time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Balance {
    /// The next in turn.
    #[default]
    RoundRobin,
    /// The one with the fewest connections that are under way; of several, the next in turn.
    LeastConnections,
    /// Always the same for a client, as good as random among clients.
    Hash,
    /// That of the client's cell; cells are dealt out to servers in turn.
    Cell,
}

/// Some of a scenario's servers, with their clients and cells: server `s` belongs to part `s % of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Which part.
    pub number: u32,
    /// Of how many.
    pub of: u32,
}

/// The server, or several alike.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerSpec {
    /// Servers; what follows is of each.
    pub servers: u32,
    /// Which of them a connection goes to.
    pub balance: Balance,
    /// Processors.
    pub workers: u32,
    /// Order of service.
    pub discipline: Discipline,
    /// Handshakes that it works on at once; `None`: any number.
    pub max_handshakes: Option<u32>,
    /// Connections that wait to be accepted meanwhile (datagrams: none do); `None`: any number.
    pub accept_queue: Option<u32>,
    /// Connections that it begins in a time; `None`: any number.
    pub admission: Option<AdmissionSpec>,
    /// When servers start and stop; `None`: their number is fixed.
    pub scaling: Option<ScalingSpec>,
}

impl ServerSpec {
    /// Servers at most.
    #[must_use]
    pub fn most_servers(&self) -> u32 {
        self.scaling.map_or(self.servers, |scaling| scaling.max_servers)
    }

    /// Processors of all servers that there may be.
    #[must_use]
    pub fn all_workers(&self) -> u32 {
        self.most_servers() * self.workers
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

/// How well the figures of a steady load are to be known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrecisionSpec {
    /// Half the width of each figure's 95 % interval, as a share of the figure.
    pub relative: f64,
    /// Runs are made longer until then, as long as all together stay within so many events; the first is run in any case.
    pub max_events: u64,
}

/// A kind of client: what it speaks, and over what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassSpec {
    /// How many of the clients are of this kind, against the others' weights.
    #[serde(default = "one")]
    pub weight: f64,
    /// Its full handshake.
    pub handshake: PricedHandshake,
    /// Its resumed handshake.
    #[serde(default)]
    pub resumed: Option<PricedHandshake>,
    /// The share of clients that resume.
    #[serde(default)]
    pub resumption: f64,
    /// The shares from these times on, in seconds; `resumption` is then their mean over all clients.
    #[serde(default)]
    pub resumption_steps: Vec<(f64, f64)>,
    /// Its network.
    pub bearer: BearerSpec,
    /// The cells that it shares; `None`: each client has a link of its own.
    #[serde(default)]
    pub cell: Option<CellSpec>,
    /// The server's work on a record that a client sends after its handshake.
    #[serde(default)]
    pub record_work_s: f64,
}

/// What is simulated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Kinds of clients.
    pub classes: Vec<ClassSpec>,
    /// How many clients; `None`: as many as arrive in `duration_s`, or as there are times.
    #[serde(default)]
    pub clients: Option<u64>,
    /// How long clients arrive; `None`: until all have.
    #[serde(default)]
    pub duration_s: Option<f64>,
    /// When they arrive.
    pub arrivals: ArrivalSpec,
    /// The server.
    #[serde(default)]
    pub server: ServerSpec,
    /// How both hosts do TCP.
    #[serde(default)]
    pub tcp: TcpConfig,
    /// When a side sends what it has made.
    #[serde(default)]
    pub flush: Flush,
    /// How long an attempt may take until the client is ready; `None`: as long as its transport bears.
    #[serde(default)]
    pub timeout_s: Option<f64>,
    /// Whether clients try again; `None`: they don't.
    #[serde(default)]
    pub retry: Option<RetrySpec>,
    /// Clients at the start that load the server but are not counted, so that it is found as others find it.
    #[serde(default)]
    pub warmup_clients: u64,
    /// What clients send after their handshakes; `None`: nothing.
    #[serde(default)]
    pub records: Option<RecordsSpec>,
    /// How well the figures are to be known, of arrivals at a rate; `None`: as the clients given come to.
    #[serde(default)]
    pub precision: Option<PrecisionSpec>,
    /// Intervals of a time series; 0: none.
    #[serde(default)]
    pub series_s: f64,
    /// The seed.
    pub seed: u64,
    /// How often all of it is simulated, each time with numbers of its own.
    #[serde(default = "once")]
    pub replications: u32,
    /// The number of the first replication, where a run is split.
    #[serde(default)]
    pub first_replication: u32,
}

/// Clients of a replication at most.
pub const MAX_CLIENTS: u64 = 1_000_000_000_000;

impl Scenario {
    /// How many clients arrive at most.
    #[must_use]
    pub fn client_limit(&self) -> u64 {
        self.clients.unwrap_or(match &self.arrivals {
            ArrivalSpec::Times { at_s } => at_s.len() as u64,
            _ => MAX_CLIENTS,
        })
    }

    /// A part of each of its replications.
    ///
    /// # Errors
    /// [`ScenarioError::Part`] where there is none such.
    pub fn part(&self, number: u32, of: u32) -> Result<Part, ScenarioError> {
        let parts = self.parts();
        if number >= of || of > parts {
            return Err(ScenarioError::Part { number, of, parts });
        }
        Ok(Part { number, of })
    }

    /// Into how many parts it can be cut: as many as there are servers whose clients and cells meet no others, 1 where
    /// there are none such. Parts merge to the whole, whose most clients in flight are then those at the ends of the
    /// series' intervals, for no part knows when others had theirs.
    #[must_use]
    pub fn parts(&self) -> u32 {
        let meets_others = match self.server.balance {
            Balance::RoundRobin | Balance::LeastConnections => true,
            Balance::Hash => self.classes.iter().any(|class| class.cell.is_some()),
            Balance::Cell => false,
        };
        let is_steady = self.arrivals.rate_per_s().is_some();
        // When a run with records ends, and with them the load, all clients together decide.
        let is_one = meets_others || is_steady || self.series_s <= 0.0 || self.records.is_some();
        if is_one { 1 } else { self.server.servers }
    }

    /// How many clients a curve brings on average.
    fn mean_clients(points: &[(f64, f64)]) -> f64 {
        points.windows(2).map(|pair| (pair[1].0 - pair[0].0) * (pair[0].1 + pair[1].1) / 2.0).sum()
    }

    /// Clients a second that the servers let in at most, where arrivals have a rate.
    #[must_use]
    pub fn admitted_per_s(&self) -> Option<f64> {
        Some(self.arrivals.rate_per_s()?.min(self.let_in_per_s()))
    }

    /// Clients a second that the servers let in at most, however many come.
    #[must_use]
    pub(crate) fn let_in_per_s(&self) -> f64 {
        let admission = self.server.admission.map(|one| one.per_s * f64::from(self.server.most_servers()));
        admission.unwrap_or(f64::INFINITY)
    }

    /// How many clients a replication has, roughly where only a duration is given.
    #[must_use]
    pub fn expected_clients(&self) -> u64 {
        let limit = self.client_limit();
        match (self.duration_s, self.arrivals.rate_per_s(), &self.arrivals) {
            (Some(s), Some(per_s), _) => limit.min((s * per_s) as u64),
            (_, _, ArrivalSpec::Curve { points }) => limit.min(Self::mean_clients(points) as u64),
            _ => limit,
        }
    }
}

impl ArrivalSpec {
    /// Clients a second, where there is a rate.
    #[must_use]
    pub fn rate_per_s(&self) -> Option<f64> {
        match self {
            Self::Poisson { per_s } | Self::Deterministic { per_s } => Some(*per_s),
            Self::Bursts { per_s, size } => Some(per_s * f64::from(*size)),
            Self::Storm { .. } | Self::Curve { .. } | Self::Times { .. } => None,
        }
    }

    /// Clients a second at the start; 0 where there is no rate.
    #[must_use]
    pub fn first_per_s(&self) -> f64 {
        match self {
            Self::Curve { points } => points.first().map_or(0.0, |first| first.1),
            other => other.rate_per_s().unwrap_or(0.0),
        }
    }

    /// Seconds from the start until the last client comes, where that is fixed; else 0.
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

/// Why a scenario makes no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ScenarioError {
    #[error("{key} is {value}; accepted: {accepted}")]
    Value { key: &'static str, value: f64, accepted: &'static str },
    #[error("clients and duration_s are both missing; accepted: one of them, or both")]
    Endless,
    #[error("duration_s is {0} and arrivals are {1}; accepted with poisson, deterministic and bursts")]
    Duration(f64, &'static str),
    #[error("precision is {0} and arrivals have no rate; accepted with poisson, deterministic and bursts")]
    Precision(f64),
    #[error("there are no classes; accepted: at least one")]
    NoClasses,
    #[error("the weights of all classes are 0; accepted: at least one above 0")]
    NoWeight,
    #[error("arrivals.at_s has {given} times for {clients} clients; accepted: as many times as clients")]
    Times { given: usize, clients: u64 },
    #[error("arrivals.at_s goes back at its time {index}; accepted: rising order")]
    Order { index: usize },
    #[error(
        "arrivals.points {0}; accepted: two or more, the seconds rising from 0, no rate below 0 and one above"
    )]
    Curve(&'static str),
    #[error("server.balance is cell and class {0} has no cells; accepted with it: classes with cells")]
    NoCells(usize),
    #[error(
        "part {number} of {of}; accepted: 0 or more, below the number of parts, of which {parts} at most"
    )]
    Part { number: u32, of: u32, parts: u32 },
    #[error("server.admission refuses and class {0} does not go over TCP; accepted without TCP: silence")]
    Refusal(usize),
    #[error(
        "server.balance follows client or cell and server.scaling is given; accepted with it: round-robin, least-connections"
    )]
    Scaling,
    #[error("resumption_steps go back in time; accepted: rising times")]
    ResumptionSteps,
    #[error("resumption is {0} and there is no resumed handshake; accepted: 0, or a resumed handshake")]
    NoResumed(f64),
    #[error(
        "class {class}: its cells and those of the classes before it are both {medium:?}, and differ; accepted: another medium, or the same count, scheduler and access"
    )]
    Medium { class: usize, medium: String },
    #[error("class {class}: {error}")]
    Bearer { class: usize, error: BearerError },
    #[error(
        "class {class}: packets of {mtu} bytes have no room beside {header_bytes} bytes of headers; accepted: larger packets"
    )]
    Headers { class: usize, mtu: u32, header_bytes: u32 },
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
}
