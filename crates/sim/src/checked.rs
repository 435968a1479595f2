//! A scenario that was checked, with its classes ready to be simulated.

use crate::access::{CellOf, MediumPlan};
use crate::error::{ScenarioError, check};
use crate::handshake::{HandshakeSpec, Plan, TransportKind};
use crate::limiter::Refusal;
use crate::scenario::{ArrivalSpec, Balance, ClassSpec, MAX_CLIENTS, Scenario};
use crate::tcp::TcpConfig;
use shakedown_link::{Bearer, EnergySpec, MAX_SECONDS, Ns, Probability};

/// A kind of client, ready to be simulated.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub full: Plan,
    pub resumed: Option<Plan>,
    /// The share of clients that resume, and the time from which the share applies; the first time is 0.
    pub resumption: Vec<(Ns, Probability)>,
    pub bearer: Bearer,
    /// True if the class's links have no delay and no loss, so that they are not simulated.
    pub is_instant: bool,
    pub cell: Option<CellOf>,
    pub energy: EnergySpec,
    pub segment_bytes: u32,
}

impl Class {
    /// True if links or a transport have to be simulated.
    fn needs_network(&self) -> bool {
        let plans = [Some(&self.full), self.resumed.as_ref()];
        !self.is_instant || plans.into_iter().flatten().any(|plan| plan.transport != TransportKind::Ideal)
    }

    /// The share of resumptions among clients that arrive at this time.
    #[inline]
    pub fn resumption(&self, at: Ns) -> Probability {
        let passed = self.resumption.partition_point(|(from, _)| *from <= at);
        self.resumption[passed.saturating_sub(1)].1
    }

    /// True if no client resumes.
    #[inline]
    pub fn never_resumes(&self) -> bool {
        self.resumption.len() == 1 && self.resumption[0].1.is_never()
    }

    /// The handshake of a client of this class.
    #[inline]
    pub fn plan(&self, resumes: bool) -> &Plan {
        match &self.resumed {
            Some(resumed) if resumes => resumed,
            _ => &self.full,
        }
    }
}

/// A checked scenario.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub classes: Vec<Class>,
    /// The media that the clients of the classes share.
    pub media: Vec<MediumPlan>,
    /// Cumulative weights of the classes, as shares of the total weight.
    pub shares: Vec<f64>,
    /// False if no network is simulated: messages arrive immediately.
    pub network: bool,
    /// The number of its parts ([`Scenario::parts`]).
    pub parts: u32,
    /// The admitted arrivals, if at first more clients arrive than are admitted.
    pub admitted: Option<ArrivalSpec>,
    pub timeout: Option<Ns>,
    pub series: Ns,
    /// The offered load per worker, in units of 10⁻⁹; `None` if arrivals have no rate.
    pub offered_e9: Option<u64>,
    /// Clients that arrive in a relaxation time of the server's queue; `None` without a steady state.
    pub memory_clients: Option<u64>,
}

/// The mean work that a client causes at its server.
#[derive(Default)]
struct Work {
    /// Seconds for a handshake, and the mean of their square.
    mean_s: f64,
    square_s2: f64,
    /// The same for all records of a client, which are separate jobs: sums of their work and of its square.
    records_mean_s: f64,
    records_square_s2: f64,
}

impl Work {
    /// The offered load: worker time required per second and worker.
    fn offered(&self, scenario: &Scenario) -> Option<f64> {
        let per_s = scenario.admitted_per_s()?;
        Some(per_s * (self.mean_s + self.records_mean_s) / f64::from(scenario.server.all_workers()))
    }

    /// Clients that arrive in a relaxation time of the server's queue; `None` without a steady state.
    fn memory_clients(&self, scenario: &Scenario) -> Option<u64> {
        // With autoscaling the relaxation time of the queues is not known.
        if scenario.server.scaling.is_some() {
            return None;
        }
        let (rate, admitted) = (scenario.arrivals.rate_per_s()?, scenario.admitted_per_s()?);
        let idle = 1.0 - self.offered(scenario)?;
        if idle <= 0.0 {
            return None;
        }
        let size = match scenario.arrivals {
            ArrivalSpec::Bursts { size, .. } => f64::from(size),
            _ => 1.0,
        };
        let (mean_s, square_s2) = (self.mean_s, self.square_s2);
        let (servers, workers) = (f64::from(scenario.server.servers), f64::from(scenario.server.workers));
        // `spread_s`: variance per second of the work that arrives at each server. The relaxation time of the queue is
        // twice this variance divided by the square of the drift, plus a service time, which dominates in light
        // traffic.
        let burst_s2 = (size - 1.0) * mean_s * mean_s;
        let spread_s = admitted / servers * (square_s2 + burst_s2 + size * self.records_square_s2);
        let service_s = if mean_s > 0.0 { square_s2 / mean_s } else { 0.0 };
        let memory_s = 2.0 * spread_s / (workers * idle).powi(2) + service_s;
        Some(libm::ceil(rate * memory_s) as u64)
    }
}

impl Setup {
    /// The handshake of all clients, if there is only one.
    pub fn only_plan(&self) -> Option<&Plan> {
        match self.classes.as_slice() {
            [class] if class.never_resumes() => Some(&class.full),
            _ => None,
        }
    }

    pub fn new(scenario: &Scenario) -> Result<Self, ScenarioError> {
        check_numbers(scenario)?;
        check_arrivals(scenario)?;
        let mut classes = Vec::with_capacity(scenario.classes.len());
        let mut media = Vec::new();
        for (number, spec) in scenario.classes.iter().enumerate() {
            let cell = spec.cell.as_ref().map(|cell| CellOf::new(number, cell, &spec.bearer, &mut media));
            classes.push(class(number, spec, cell.transpose()?, &scenario.tcp)?);
        }
        if scenario.server.admission.is_some_and(|one| one.refusal == Refusal::Alert) {
            for class in &mut classes {
                class.full.refuse();
                if let Some(plan) = &mut class.resumed {
                    plan.refuse();
                }
            }
        }
        let total: f64 = scenario.classes.iter().map(|class| class.weight).sum();
        if total <= 0.0 {
            return Err(if classes.is_empty() { ScenarioError::NoClasses } else { ScenarioError::NoWeight });
        }
        let mut sum = 0.0;
        let mut work = Work::default();
        let records = scenario.records.map_or(0.0, |records| f64::from(records.count));
        let mut shares = Vec::with_capacity(classes.len());
        for (spec, class) in scenario.classes.iter().zip(&classes) {
            sum += spec.weight;
            shares.push(sum / total);
            let mut add = |plan: &Plan, share: f64| {
                work.mean_s += plan.server_mean_s * share * spec.weight / total;
                work.square_s2 += plan.server_square_s2 * share * spec.weight / total;
            };
            add(&class.full, 1.0 - spec.resumption);
            if let Some(plan) = &class.resumed {
                add(plan, spec.resumption);
            }
            work.records_mean_s += records * spec.record_work_s * spec.weight / total;
            work.records_square_s2 += records * spec.record_work_s * spec.record_work_s * spec.weight / total;
        }
        if let Some(per_s) = scenario.arrivals.rate_per_s() {
            for (number, medium) in media.iter_mut().enumerate() {
                let own = scenario.classes.iter().zip(&classes);
                let own =
                    own.filter(|(_, class)| class.cell.as_ref().is_some_and(|cell| cell.medium == number));
                let share = own.map(|(spec, _)| spec.weight).sum::<f64>() / total;
                medium.steady = Some((per_s * share, share));
            }
        }
        Ok(Self {
            network: classes.iter().any(Class::needs_network),
            parts: scenario.parts(),
            classes,
            media,
            shares,
            admitted: (scenario.admission_limit_per_s() < scenario.arrivals.first_per_s())
                .then(|| ArrivalSpec::Poisson { per_s: scenario.admission_limit_per_s() }),
            timeout: scenario.timeout_s.map(Ns::from_secs_f64),
            series: Ns::from_secs_f64(scenario.series_s),
            offered_e9: work.offered(scenario).map(|offered| (offered * 1e9 + 0.5) as u64),
            memory_clients: work.memory_clients(scenario),
        })
    }
}

fn check_numbers(scenario: &Scenario) -> Result<(), ScenarioError> {
    if let Some(clients) = scenario.clients {
        check("clients", clients as f64, "1 to 10^12", (1..=MAX_CLIENTS).contains(&clients))?;
    }
    let warmup = scenario.warmup_clients;
    check("warmup_clients", warmup as f64, "fewer than clients", warmup < scenario.client_limit())?;
    let (cooldown, left) = (scenario.cooldown_clients, scenario.client_limit() - warmup);
    check("cooldown_clients", cooldown as f64, "fewer than clients after the warm-up", cooldown < left)?;
    let replications = f64::from(scenario.replications);
    let accepted = "1 to 1000000";
    check("replications", replications, accepted, (1..=1_000_000).contains(&scenario.replications))?;
    let first = f64::from(scenario.first_replication);
    check("first_replication", first, "0 to 1000000000", scenario.first_replication <= 1_000_000_000)?;
    let workers = f64::from(scenario.server.workers);
    check("server.workers", workers, "1 to 100000", (1..=100_000).contains(&scenario.server.workers))?;
    let servers = f64::from(scenario.server.servers);
    check("server.servers", servers, "1 to 10000", (1..=10_000).contains(&scenario.server.servers))?;
    let all = f64::from(scenario.server.servers) * f64::from(scenario.server.workers);
    check("server.servers × server.workers", all, "1000000 at most", all <= 1e6)?;
    if let Some(number) = scenario.server.max_handshakes {
        check("server.max_handshakes", f64::from(number), "1 or more", number > 0)?;
    }
    if let Some(s) = scenario.timeout_s {
        check("timeout_s", s, "1e-9 to 1e9", (1e-9..=MAX_SECONDS).contains(&s))?;
    }
    check("series_s", scenario.series_s, "0 to 1e9", (0.0..=MAX_SECONDS).contains(&scenario.series_s))?;
    if let Some(precision) = &scenario.precision {
        let share = precision.relative;
        check("precision.relative", share, "0.001 to 1", (0.001..=1.0).contains(&share))?;
        if scenario.arrivals.rate_per_s().is_none() {
            return Err(ScenarioError::Precision(share));
        }
    }
    let without = scenario.classes.iter().position(|class| class.cell.is_none());
    if let (Balance::Cell, Some(class)) = (scenario.server.balance, without) {
        return Err(ScenarioError::NoCells(class));
    }
    check_admission(scenario)?;
    if let Some(scaling) = &scenario.server.scaling {
        scaling.check(scenario.server.servers, scenario.server.workers)?;
        // They would assign a client to another server whenever the number of servers changes.
        if matches!(scenario.server.balance, Balance::Hash | Balance::Cell) {
            return Err(ScenarioError::Scaling);
        }
    }
    for class in &scenario.classes {
        let work = class.record_work_s;
        check("record_work_s", work, "0 to 1e9", (0.0..=MAX_SECONDS).contains(&work))?;
    }
    if let Some(records) = &scenario.records {
        records.check(scenario.arrivals.first_per_s().min(scenario.admission_limit_per_s()))?;
    }
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

fn check_admission(scenario: &Scenario) -> Result<(), ScenarioError> {
    let Some(admission) = &scenario.server.admission else { return Ok(()) };
    admission.check()?;
    let is_stream = |class: &ClassSpec| {
        let handshakes = [Some(&class.handshake), class.resumed.as_ref()];
        handshakes.into_iter().flatten().all(|handshake| handshake.transport == TransportKind::Stream)
    };
    match scenario.classes.iter().position(|class| !is_stream(class)) {
        Some(class) if admission.refusal != Refusal::Silence => Err(ScenarioError::Refusal(class)),
        _ => Ok(()),
    }
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

fn check_curve(points: &[(f64, f64)]) -> Result<(), ScenarioError> {
    for (at, per_s) in points {
        check("arrivals.points has the time", *at, "0 to 1e9", (0.0..=MAX_SECONDS).contains(at))?;
        check("arrivals.points has the rate", *per_s, "0 to 1e9", (0.0..=1e9).contains(per_s))?;
    }
    if points.len() < 2 || points[0].0 != 0.0 {
        return Err(ScenarioError::Curve("do not begin at 0, or are fewer than two"));
    }
    if points.windows(2).any(|pair| pair[1].0 <= pair[0].0) {
        return Err(ScenarioError::Curve("go back in time"));
    }
    if points.iter().all(|point| point.1 == 0.0) {
        return Err(ScenarioError::Curve("have no rate above 0"));
    }
    Ok(())
}

fn check_arrivals(scenario: &Scenario) -> Result<(), ScenarioError> {
    if scenario.clients.is_none()
        && !matches!(scenario.arrivals, ArrivalSpec::Times { .. } | ArrivalSpec::Curve { .. })
    {
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
        ArrivalSpec::Curve { points } => check_curve(points),
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

fn resumption(spec: &ClassSpec) -> Result<Vec<(Ns, Probability)>, ScenarioError> {
    let share =
        |key, value| Probability::new(value).ok_or(ScenarioError::Value { key, value, accepted: "0 to 1" });
    let mut shares = vec![(Ns::ZERO, share("resumption", spec.resumption)?)];
    for &(from_s, value) in &spec.resumption_steps {
        let key = "resumption_steps";
        check(key, from_s, "0 to 1e9", (0.0..=MAX_SECONDS).contains(&from_s))?;
        shares.push((Ns::from_secs_f64(from_s), share(key, value)?));
    }
    if shares.windows(2).any(|pair| pair[1].0 < pair[0].0) {
        return Err(ScenarioError::ResumptionSteps);
    }
    Ok(shares)
}

pub(crate) fn class(
    number: usize,
    spec: &ClassSpec,
    cell: Option<CellOf>,
    tcp: &TcpConfig,
) -> Result<Class, ScenarioError> {
    check("weight", spec.weight, "0 or more", spec.weight >= 0.0)?;
    let resumption = resumption(spec)?;
    if spec.resumption > 0.0 && spec.resumed.is_none() {
        return Err(ScenarioError::NoResumed(spec.resumption));
    }
    let bearer =
        Bearer::try_from(&spec.bearer).map_err(|error| ScenarioError::Bearer { class: number, error })?;
    let mtu = spec.bearer.mtu_bytes;
    let plan = |handshake: &HandshakeSpec| {
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
        is_instant: cell.is_none() && bearer.is_instant(),
        bearer,
        cell,
        energy: spec.bearer.energy,
        segment_bytes: tcp.segment_bytes(mtu),
    })
}
