//! What is simulated, as plain data.

use crate::handshake::{HandshakeError, Plan, PricedHandshake, TransportKind};
use crate::tcp::TcpConfig;
use serde::{Deserialize, Serialize};
use shakedown_link::{Bearer, BearerError, BearerSpec, EnergySpec, MAX_SECONDS, Ns, Probability};

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

/// The server.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerSpec {
    /// Processors.
    pub workers: u32,
    /// Order of service.
    pub discipline: Discipline,
    /// Handshakes that it works on at once; `None`: any number.
    pub max_handshakes: Option<u32>,
    /// Connections that wait to be accepted meanwhile (datagrams: none do); `None`: any number.
    pub accept_queue: Option<u32>,
}

impl Default for ServerSpec {
    fn default() -> Self {
        Self { workers: 1, discipline: Discipline::Fifo, max_handshakes: None, accept_queue: None }
    }
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
    /// Its network.
    pub bearer: BearerSpec,
    /// Paths that all clients of the kind share; `None`: each has its own.
    #[serde(default)]
    pub cells: Option<u32>,
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

    /// How many clients a replication has, roughly where only a duration is given.
    #[must_use]
    pub fn expected_clients(&self) -> u64 {
        let limit = self.client_limit();
        match (self.duration_s, self.arrivals.rate_per_s()) {
            (Some(s), Some(per_s)) => limit.min((s * per_s) as u64),
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
            Self::Storm { .. } | Self::Times { .. } => None,
        }
    }
}

fn once() -> u32 {
    1
}

/// Why a scenario makes no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs)] // the messages say it
pub enum ScenarioError {
    #[error("{key} is {value}; accepted: {accepted}")]
    Value { key: &'static str, value: f64, accepted: &'static str },
    #[error("clients and duration_s are both missing; accepted: one of them, or both")]
    Endless,
    #[error("duration_s is {0} and arrivals are {1}; accepted with poisson, deterministic and bursts")]
    Duration(f64, &'static str),
    #[error("there are no classes; accepted: at least one")]
    NoClasses,
    #[error("the weights of all classes are 0; accepted: at least one above 0")]
    NoWeight,
    #[error("arrivals.at_s has {given} times for {clients} clients; accepted: as many times as clients")]
    Times { given: usize, clients: u64 },
    #[error("arrivals.at_s goes back at its time {index}; accepted: rising order")]
    Order { index: usize },
    #[error("resumption is {0} and there is no resumed handshake; accepted: 0, or a resumed handshake")]
    NoResumed(f64),
    #[error("class {class}: {error}")]
    Bearer { class: usize, error: BearerError },
    #[error(
        "class {class}: packets of {mtu} bytes have no room beside {header_bytes} bytes of headers; accepted: larger packets"
    )]
    Headers { class: usize, mtu: u32, header_bytes: u32 },
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
}

/// A kind of client, ready to be simulated.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub full: Plan,
    pub resumed: Option<Plan>,
    pub resumption: Probability,
    pub bearer: Bearer,
    /// What the clients of a cell share.
    pub cell: Bearer,
    /// Its links take no time and lose nothing, so there is no need for any.
    pub is_instant: bool,
    pub cells: u32,
    pub energy: EnergySpec,
    pub segment_bytes: u32,
}

impl Class {
    /// True where anything has to be brought, by links or by a transport.
    fn needs_network(&self) -> bool {
        let plans = [Some(&self.full), self.resumed.as_ref()];
        !self.is_instant || plans.into_iter().flatten().any(|plan| plan.transport != TransportKind::Ideal)
    }

    /// What a client of the class speaks.
    #[inline]
    pub fn plan(&self, resumes: bool) -> &Plan {
        match &self.resumed {
            Some(resumed) if resumes => resumed,
            _ => &self.full,
        }
    }
}

/// A scenario, checked.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub classes: Vec<Class>,
    /// Sums of the weights up to and including each class, in shares of all.
    pub shares: Vec<f64>,
    /// False where all that is sent is there at once.
    pub network: bool,
    pub timeout: Option<Ns>,
    pub series: Ns,
    /// Seconds of server per client, on average.
    pub server_mean_s: f64,
}

fn check(key: &'static str, value: f64, accepted: &'static str, holds: bool) -> Result<(), ScenarioError> {
    if holds && value.is_finite() { Ok(()) } else { Err(ScenarioError::Value { key, value, accepted }) }
}

impl Setup {
    pub fn new(scenario: &Scenario) -> Result<Self, ScenarioError> {
        check_numbers(scenario)?;
        check_arrivals(scenario)?;
        let mut classes = Vec::with_capacity(scenario.classes.len());
        for (number, spec) in scenario.classes.iter().enumerate() {
            classes.push(class(number, spec, &scenario.tcp)?);
        }
        let total: f64 = scenario.classes.iter().map(|class| class.weight).sum();
        if total <= 0.0 {
            return Err(if classes.is_empty() { ScenarioError::NoClasses } else { ScenarioError::NoWeight });
        }
        let mut sum = 0.0;
        let mut server_mean_s = 0.0;
        let mut shares = Vec::with_capacity(classes.len());
        for (spec, class) in scenario.classes.iter().zip(&classes) {
            sum += spec.weight;
            shares.push(sum / total);
            let resumed = class.resumed.as_ref().map_or(0.0, |plan| plan.server_mean_s);
            let mean = resumed * spec.resumption + class.full.server_mean_s * (1.0 - spec.resumption);
            server_mean_s += mean * spec.weight / total;
        }
        Ok(Self {
            network: classes.iter().any(Class::needs_network),
            classes,
            shares,
            timeout: scenario.timeout_s.map(Ns::from_secs_f64),
            series: Ns::from_secs_f64(scenario.series_s),
            server_mean_s,
        })
    }
}

fn check_numbers(scenario: &Scenario) -> Result<(), ScenarioError> {
    if let Some(clients) = scenario.clients {
        check("clients", clients as f64, "1 to 10^12", (1..=MAX_CLIENTS).contains(&clients))?;
    }
    let warmup = scenario.warmup_clients;
    check("warmup_clients", warmup as f64, "fewer than clients", warmup < scenario.client_limit())?;
    let replications = f64::from(scenario.replications);
    let accepted = "1 to 1000000";
    check("replications", replications, accepted, (1..=1_000_000).contains(&scenario.replications))?;
    let first = f64::from(scenario.first_replication);
    check("first_replication", first, "0 to 1000000000", scenario.first_replication <= 1_000_000_000)?;
    let workers = f64::from(scenario.server.workers);
    check("server.workers", workers, "1 to 100000", (1..=100_000).contains(&scenario.server.workers))?;
    if let Some(number) = scenario.server.max_handshakes {
        check("server.max_handshakes", f64::from(number), "1 or more", number > 0)?;
    }
    if let Some(s) = scenario.timeout_s {
        check("timeout_s", s, "1e-9 to 1e9", (1e-9..=MAX_SECONDS).contains(&s))?;
    }
    check("series_s", scenario.series_s, "0 to 1e9", (0.0..=MAX_SECONDS).contains(&scenario.series_s))?;
    check_tcp(&scenario.tcp)?;
    if let Some(retry) = &scenario.retry {
        let attempts = f64::from(retry.attempts);
        check("retry.attempts", attempts, "1 to 1000000", (1..=1_000_000).contains(&retry.attempts))?;
        check("retry.delay_s", retry.delay_s, "0 to 1e9", (0.0..=MAX_SECONDS).contains(&retry.delay_s))?;
        check("retry.factor", retry.factor, "1 or more", retry.factor >= 1.0)?;
        let within = (0.0..=MAX_SECONDS).contains(&retry.maximum_s);
        check("retry.maximum_s", retry.maximum_s, "0 to 1e9", within)?;
        check("retry.jitter", retry.jitter, "0 to 1", (0.0..=1.0).contains(&retry.jitter))?;
    }
    Ok(())
}

pub(crate) fn check_tcp(tcp: &TcpConfig) -> Result<(), ScenarioError> {
    check("tcp.hz", f64::from(tcp.hz), "1 to 1000000", (1..=1_000_000).contains(&tcp.hz))?;
    let window = f64::from(tcp.initial_window);
    check("tcp.initial_window", window, "1 to 1000", (1..=1000).contains(&tcp.initial_window))?;
    for (key, count) in [
        ("tcp.syn_linear_timeouts", tcp.syn_linear_timeouts),
        ("tcp.syn_retries", tcp.syn_retries),
        ("tcp.synack_retries", tcp.synack_retries),
        ("tcp.retries", tcp.retries),
    ] {
        check(key, f64::from(count), "0 to 255", count <= 255)?;
    }
    Ok(())
}

fn check_arrivals(scenario: &Scenario) -> Result<(), ScenarioError> {
    if let Some(s) = scenario.duration_s {
        check("duration_s", s, "above 0, at most 1e9", s > 0.0 && s <= MAX_SECONDS)?;
        match &scenario.arrivals {
            ArrivalSpec::Storm { .. } => return Err(ScenarioError::Duration(s, "a storm")),
            ArrivalSpec::Times { .. } => return Err(ScenarioError::Duration(s, "times")),
            _ => {}
        }
    } else if scenario.clients.is_none() && !matches!(scenario.arrivals, ArrivalSpec::Times { .. }) {
        return Err(ScenarioError::Endless);
    }
    match &scenario.arrivals {
        ArrivalSpec::Poisson { per_s } | ArrivalSpec::Deterministic { per_s } => {
            check("arrivals.per_s", *per_s, "above 0", *per_s > 0.0)
        }
        ArrivalSpec::Bursts { per_s, size } => {
            check("arrivals.per_s", *per_s, "above 0", *per_s > 0.0)?;
            check("arrivals.size", f64::from(*size), "1 or more", *size > 0)
        }
        ArrivalSpec::Storm { within_s } => {
            check("arrivals.within_s", *within_s, "0 to 1e9", (0.0..=MAX_SECONDS).contains(within_s))
        }
        ArrivalSpec::Times { at_s } => {
            if let Some(clients) = scenario.clients.filter(|clients| *clients != at_s.len() as u64) {
                return Err(ScenarioError::Times { given: at_s.len(), clients });
            }
            check("arrivals.at_s has times:", at_s.len() as f64, "1 or more", !at_s.is_empty())?;
            for at in at_s {
                check("arrivals.at_s", *at, "0 to 1e9", (0.0..=MAX_SECONDS).contains(at))?;
            }
            match at_s.windows(2).position(|pair| pair[1] < pair[0]) {
                Some(before) => Err(ScenarioError::Order { index: before + 1 }),
                None => Ok(()),
            }
        }
    }
}

pub(crate) fn class(number: usize, spec: &ClassSpec, tcp: &TcpConfig) -> Result<Class, ScenarioError> {
    check("weight", spec.weight, "0 or more", spec.weight >= 0.0)?;
    let share = "0 to 1";
    let resumption = Probability::new(spec.resumption).ok_or(ScenarioError::Value {
        key: "resumption",
        value: spec.resumption,
        accepted: share,
    })?;
    if spec.resumption > 0.0 && spec.resumed.is_none() {
        return Err(ScenarioError::NoResumed(spec.resumption));
    }
    if let Some(cells) = spec.cells {
        check("cells", f64::from(cells), "1 to 1000000", (1..=1_000_000).contains(&cells))?;
    }
    let bearer =
        Bearer::try_from(&spec.bearer).map_err(|error| ScenarioError::Bearer { class: number, error })?;
    let mtu = spec.bearer.mtu_bytes;
    let plan = |handshake: &PricedHandshake| {
        let header_bytes = match handshake.transport {
            TransportKind::Stream => tcp.header_bytes(),
            TransportKind::Datagram => spec.bearer.ip_bytes + spec.bearer.udp_bytes,
            TransportKind::Ideal => 0,
        };
        if mtu <= header_bytes {
            return Err(ScenarioError::Headers { class: number, mtu, header_bytes });
        }
        Ok(Plan::new(handshake, &spec.bearer)?)
    };
    Ok(Class {
        full: plan(&spec.handshake)?,
        resumed: spec.resumed.as_ref().map(plan).transpose()?,
        resumption,
        is_instant: spec.cells.is_none() && bearer.is_instant(),
        cell: bearer.shared_part(),
        bearer,
        cells: spec.cells.unwrap_or(0),
        energy: spec.bearer.energy,
        segment_bytes: tcp.segment_bytes(mtu),
    })
}
