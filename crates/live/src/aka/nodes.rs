//! SGSN and HSS as processes on TCP sockets, with the same state machines as in virtual time.

use super::AkaError;
use super::admission::{Limits, Refusals, Standing};
use super::credentials::{Cache, SgsnEnvironment, basis};
use super::files::{self, HssFile, SgsnFile};
use super::node_queries::NodeQueries;
use super::sockets::{Link, Port, Serve, accept_all, locked, read};
use serde::Serialize;
use shakedown_aka::core::{Answer, Query, Unanswered};
use shakedown_aka::frame::Frames;
use shakedown_aka::names::{Network, NodeName};
use shakedown_aka::sessions::{Policy, Sessions, Store};
use shakedown_aka::sgsn::{Attach, AttachEvent, Node, Tally};
use shakedown_stacks::{Exposure, Settings};
use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[derive(Clone, Debug)]
pub struct HssOptions {
    pub listen: SocketAddr,
    /// File that `aka provision` wrote.
    pub file: PathBuf,
    /// Limits of the connections of SGSNs.
    pub limits: Limits,
}

#[derive(Clone, Debug)]
pub struct SgsnOptions {
    pub listen: SocketAddr,
    /// Address for other SGSNs; `None` if there are none.
    pub core: Option<SocketAddr>,
    /// File that `aka provision` wrote.
    pub file: PathBuf,
    pub homes: BTreeMap<Network, SocketAddr>,
    pub neighbours: BTreeMap<NodeName, SocketAddr>,
    pub policy: Policy,
    /// Limits of the connections of mobiles and of other SGSNs.
    pub limits: Limits,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct HssSummary {
    pub granted: u64,
    pub refused: BTreeMap<String, u64>,
    /// Connections that were not served.
    pub connections: Refusals,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct SgsnSummary {
    #[serde(flatten)]
    pub tally: Tally,
    /// Message of the first rejection of each cause.
    pub reasons: BTreeMap<String, String>,
    /// Mobiles' connections that were not served.
    pub connections: Refusals,
    /// The same for other SGSNs, if `core` is set.
    pub core_connections: Option<Refusals>,
    /// Times from sending ServerHello to sending the attach accept, of full handshakes.
    pub scrt_full_s: Vec<f64>,
    /// The same for resumed handshakes.
    pub scrt_resumed_s: Vec<f64>,
}

/// Maximum duration of an attach, and of silence afterwards.
const MAX_ATTACH: Duration = Duration::from_secs(120);
const MAX_SAMPLES: usize = 100_000;

/// Time since 1970, because sessions age across restarts.
fn wall() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

pub(super) fn settings() -> Settings {
    let now = i64::try_from(wall().as_secs()).unwrap_or(i64::MAX);
    Settings { now_unix_s: now, instrumented: false, exposure: Exposure::Network, ..Settings::default() }
}

/// Answers another node's queries on one connection, until none arrives within the timeout.
fn answer_all(link: &Link<'_>, answer: &dyn Fn(&Query) -> Option<Answer>) {
    let mut stream = link.stream();
    let (mut frames, mut buffer) = (Frames::default(), [0; 4096]);
    let (mut until, mut asked) = (Instant::now() + link.timeout, false);
    loop {
        let Some(length) = read(stream, &mut buffer) else { return };
        frames.push(&buffer[..length]);
        while let Some((kind, body)) = frames.next_frame() {
            let Some(found) = Query::read(kind, &body).ok().and_then(|query| answer(&query)) else { return };
            if stream.write_all(&found.to_bytes()).is_err() {
                return;
            }
            link.raise(Standing::Asked);
            (until, asked) = (Instant::now() + link.timeout, true);
        }
        if Instant::now() > until {
            if !asked {
                link.give_up();
            }
            return;
        }
    }
}

/// Serves a register until `step` stops it; `listening` gets the address.
pub fn serve_hss(
    options: &HssOptions,
    listening: &mut dyn FnMut(SocketAddr) -> ControlFlow<()>,
    step: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<HssSummary, AkaError> {
    let register: HssFile = files::read(&options.file)?;
    let hss = Mutex::new(register.hss(&options.file)?);
    let summary = Mutex::new(HssSummary::default());
    let port = Port::open(options.listen, options.limits.of_nodes())?;
    if listening(port.address(options.listen)).is_break() {
        return Ok(HssSummary::default());
    }
    let serve = |link: &Link<'_>| {
        answer_all(link, &|query| {
            let answer = locked(&hss).answer(query);
            let mut summary = locked(&summary);
            match &answer {
                Answer::Refused(cause) => *summary.refused.entry(cause.as_str().into()).or_default() += 1,
                _ => summary.granted += 1,
            }
            Some(answer)
        });
    };
    accept_all(&[(&port, &serve)], step);
    let found = locked(&summary).clone();
    Ok(HssSummary { connections: port.refusals(), ..found })
}

/// Raises the standing of a mobile to that of its attach.
fn raise(link: &Link<'_>, attach: &Attach<SgsnEnvironment>, standing: &mut Standing) {
    let shown = match (attach.negotiated(), attach.is_asked()) {
        // Both sides authenticate in every handshake, full or resumed.
        (Some(_), _) => Standing::Proved,
        (None, true) => Standing::Asked,
        (None, false) => Standing::Silent,
    };
    if shown > *standing {
        *standing = shown;
        link.raise(shown);
    }
}

/// Store of an SGSN's sessions and subscribers.
pub type Kept = Box<dyn Store + Send>;

struct Serving<'a> {
    node: Mutex<Node<SgsnEnvironment>>,
    options: &'a SgsnOptions,
    summary: Mutex<SgsnSummary>,
    queries: NodeQueries,
}

/// Serves mobiles until `step` stops it. `store` keeps sessions and subscribers; `listening` gets the addresses for
/// mobiles and for other SGSNs.
pub fn serve_sgsn(
    options: &SgsnOptions,
    store: Kept,
    listening: &mut dyn FnMut(SocketAddr, Option<SocketAddr>) -> ControlFlow<()>,
    step: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<SgsnSummary, AkaError> {
    let file: SgsnFile = files::read(&options.file)?;
    let (name, network, suite, certificates) = file.parts(&options.file)?;
    if options.neighbours.contains_key(&name) {
        return Err(AkaError::Option {
            option: "neighbour",
            given: name.to_string(),
            accepted: "another SGSN than this one".into(),
        });
    }
    let basis = basis(&suite, &network, &certificates);
    let sessions = Arc::new(Mutex::new(Sessions::new(store, options.policy, basis)));
    let cache = Arc::new(Cache(Arc::clone(&sessions)));
    let environment = SgsnEnvironment::new(&suite, &network, certificates, &settings(), cache)?;
    let serving = Serving {
        node: Mutex::new(Node::new(name, network, environment, sessions)),
        options,
        summary: Mutex::default(),
        queries: NodeQueries::default(),
    };
    let mobiles = Port::open(options.listen, options.limits)?;
    let core = options.core.map(|address| Port::open(address, options.limits.of_nodes())).transpose()?;
    let core_address = core.as_ref().zip(options.core).map(|(port, asked)| port.address(asked));
    if listening(mobiles.address(options.listen), core_address).is_break() {
        return Ok(SgsnSummary::default());
    }
    let mobile = |link: &Link<'_>| serving.mobile(link);
    let other = |link: &Link<'_>| answer_all(link, &|query| locked(&serving.node).answer(query).ok());
    let mut ports: Vec<(&Port, Serve<'_>)> = vec![(&mobiles, &mobile)];
    if let Some(core) = &core {
        ports.push((core, &other));
    }
    accept_all(&ports, step);
    Ok(SgsnSummary {
        connections: mobiles.refusals(),
        core_connections: core.as_ref().map(Port::refusals),
        ..serving.summary()
    })
}

impl Serving<'_> {
    fn summary(&self) -> SgsnSummary {
        let tally = locked(&self.node).tally().clone();
        SgsnSummary { tally, ..locked(&self.summary).clone() }
    }

    fn ask(
        &self,
        attach: &Attach<SgsnEnvironment>,
        network: &Network,
        query: &Query,
        link: &Link<'_>,
    ) -> Result<Answer, Unanswered> {
        let address = match query {
            _ if query.is_for_sgsn() => {
                attach.temporary().and_then(|given| self.options.neighbours.get(&given.node))
            }
            _ => self.options.homes.get(network),
        };
        let address = *address.ok_or(Unanswered::Unknown)?;
        self.queries.ask(address, query, &|| link.is_over()).ok_or(Unanswered::Silent)
    }

    fn mobile(&self, link: &Link<'_>) {
        let mut stream = link.stream();
        let mut attach = Attach::default();
        let mut buffer = vec![0; 16_384];
        let first_message = Instant::now() + link.timeout;
        let mut until = Instant::now() + MAX_ATTACH;
        let mut standing = Standing::Silent;
        let (mut hello, mut answered) = (None, false);
        loop {
            let read = read(stream, &mut buffer);
            let now = Instant::now();
            if !attach.is_asked() && read.is_some() && now > first_message {
                return link.give_up();
            }
            match read.filter(|_| now <= until && !attach.is_over()) {
                None => return attach.handle_close(&mut *locked(&self.node)),
                Some(0) => continue,
                Some(length) => {
                    // The time is read while the node is locked, so that it never decreases between attaches.
                    let mut node = locked(&self.node);
                    attach.handle_input(&mut *node, wall(), &buffer[..length]);
                }
            }
            // Before queries to other nodes, which may take long.
            raise(link, &attach, &mut standing);
            while let Some((network, query)) = attach.poll_query() {
                // The node is not locked during the query, so other attaches continue.
                let answer = self.ask(&attach, &network, &query, link);
                if link.is_over() {
                    return attach.handle_close(&mut *locked(&self.node));
                }
                let mut node = locked(&self.node);
                attach.handle_answer(&mut *node, wall(), answer);
            }
            while let Some(event) = attach.poll_event() {
                match event {
                    AttachEvent::Attached { .. } => until = Instant::now() + MAX_ATTACH,
                    // There is no network behind this SGSN, so data is echoed.
                    AttachEvent::Data(data) => {
                        attach.send(&data);
                        until = Instant::now() + MAX_ATTACH;
                    }
                    AttachEvent::Rejected { cause, reason } => {
                        locked(&self.summary).reasons.entry(cause.as_str().into()).or_insert(reason);
                    }
                }
            }
            raise(link, &attach, &mut standing);
            let mut out = Vec::new();
            if attach.poll_transmit(&mut out) && stream.write_all(&out).is_err() {
                return attach.handle_close(&mut *locked(&self.node));
            }
            if attach.steps() > 0 {
                let sent = *hello.get_or_insert_with(Instant::now);
                if attach.is_attached() && !answered {
                    answered = true;
                    self.served(&attach, sent.elapsed());
                }
            }
        }
    }

    fn served(&self, attach: &Attach<SgsnEnvironment>, took: Duration) {
        let resumed = attach.negotiated().is_some_and(|negotiated| negotiated.resumed);
        let mut summary = locked(&self.summary);
        let samples = if resumed { &mut summary.scrt_resumed_s } else { &mut summary.scrt_full_s };
        if samples.len() < MAX_SAMPLES {
            samples.push(took.as_secs_f64());
        }
    }
}
