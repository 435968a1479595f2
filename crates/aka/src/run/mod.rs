//! Attaches in virtual time: real messages and real handshakes over TCP on a bearer; computing times are drawn from
//! the estimated costs of handshakes.
//!
//! | time | from … to, at the mobile unless stated otherwise |
//! | --- | --- |
//! | NRT | the connection is requested … the connection is established |
//! | RPT | the connection is requested … the mobile is prepared for the handshake |
//! | THT | the ClientHello is begun … the handshake has ended |
//! | TST | RPT + THT |
//! | SCRT | at the SGSN: the ServerHello is sent … the attach accept is sent |
//! | attach | the connection is requested … the mobile has processed the attach accept |
//!
//! Work for messages outside the handshake (protection of one record each) has no estimated cost and takes no time.

mod costs;
mod plan;
mod server;

pub use costs::{Steps, Work};
pub use plan::{Outcome, Plan, PlanError};
pub use server::Server;

use crate::core::{Answer, Query, Unanswered};
use crate::hss::Hss;
use crate::mobile::{Mobile, MobileEvent};
use crate::names::Network;
use crate::sgsn::{Attach, Environment, Node};
use serde::Serialize;
use shakedown_link::{Bearer, Distribution, Ns, Purpose, Stream};
use shakedown_sim::tcp::{Jiffies, TcpConfig};
use shakedown_trace::endpoint::Transport;
use shakedown_trace::{Endpoint, Side};
use shakedown_virtual::wire::{Hosts, Wire};
use std::collections::{BTreeMap, HashMap};

/// The bearer of attaches, and their costs.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Between mobile and SGSN.
    pub bearer: Bearer,
    /// At both ends of the bearer.
    pub hosts: Hosts,
    pub full: Work,
    pub resumed: Work,
    /// Time of a mobile's preparation between connection and handshake.
    pub preparation: Distribution,
    /// From a node's query to the other node's answer.
    pub core_round_trip: Ns,
    pub timeout: Ns,
    pub seed: u64,
}

/// Results of one attach. Times in seconds; `None` if the end of a time was not reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Measured {
    /// Cause of a failure; `None` if the attach succeeded.
    pub failure: Option<String>,
    /// Message of the failure.
    pub reason: Option<String>,
    pub resumed: bool,
    /// The SGSN's decision on the offered session.
    pub decision: Option<&'static str>,
    pub nrt_s: Option<f64>,
    pub rpt_s: Option<f64>,
    pub tht_s: Option<f64>,
    pub tst_s: Option<f64>,
    pub scrt_s: Option<f64>,
    pub attach_s: Option<f64>,
    pub handshake_bytes: [u64; 2],
    /// Bytes that the mobile sent and received over the bearer, headers included.
    pub wire_bytes: [u64; 2],
    pub retransmissions: u32,
    /// Number of the SGSN's queries to other nodes.
    pub queries: u32,
    pub sending_s: f64,
    pub receiving_s: f64,
    pub length_s: f64,
}

enum Action {
    Prepared,
    MobileSends(Vec<u8>),
    SgsnSends(Vec<u8>),
    Answered(Result<Answer, Unanswered>),
}

/// The network to which a mobile attaches.
pub struct Access<'a, V> {
    pub nodes: &'a mut [Node<V>],
    /// Index of the node that serves the mobile's cell.
    pub serving: usize,
    pub homes: &'a mut HashMap<Network, Hss>,
}

/// Runs attaches sequentially; its clock continues between them.
pub struct Runner {
    setting: Setting,
    server: Server,
    now: Ns,
    attaches: u64,
    stream: Stream,
}

/// Numbers below 100 belong to the links.
const WORK: Purpose = Purpose(100);
const OTHERS: Purpose = Purpose(101);

impl Runner {
    /// A runner with its clock at zero. The SGSNs' processors also serve requests of other mobiles, `background_per_s`.
    pub fn new(setting: Setting, workers: usize, background_per_s: f64) -> Self {
        let others = Stream::of(setting.seed, 0, OTHERS);
        let server = Server::new(workers, background_per_s, setting.full.sgsn.clone(), others);
        let stream = Stream::of(setting.seed, 0, WORK);
        Self { setting, server, now: Ns::ZERO, attaches: 0, stream }
    }

    /// Runs an attach to its end, and returns its results and the mobile's events.
    pub fn attach<V: Environment, E: Endpoint>(
        &mut self,
        mobile: &mut Mobile<E>,
        access: &mut Access<'_, V>,
    ) -> (Measured, Vec<MobileEvent>) {
        self.attaches += 1;
        let setting = &self.setting;
        let mut wire = Wire::new(setting.bearer.path(setting.seed, self.attaches));
        let clock = Jiffies::new(TcpConfig::default().hz, Ns(self.attaches % 4_000_000));
        wire.open(self.now, Transport::Stream, clock, &setting.hosts);
        let mut one = One {
            runner: self,
            mobile,
            access,
            attach: Attach::default(),
            wire,
            actions: BTreeMap::new(),
            scheduled: 0,
            start: Ns::ZERO,
            hello: Ns::ZERO,
            mobile_free: Ns::ZERO,
            sgsn_free: Ns::ZERO,
            server_hello: None,
            measured: Measured::default(),
            events: Vec::new(),
            over: false,
        };
        one.start = one.runner.now;
        one.run();
        let (measured, events) = (one.measured, one.events);
        (measured, events)
    }
}

/// An attach in progress.
struct One<'a, 'b, V: Environment, E> {
    runner: &'a mut Runner,
    mobile: &'a mut Mobile<E>,
    access: &'a mut Access<'b, V>,
    attach: Attach<V>,
    wire: Wire,
    actions: BTreeMap<(Ns, u64), Action>,
    scheduled: u64,
    start: Ns,
    hello: Ns,
    mobile_free: Ns,
    sgsn_free: Ns,
    server_hello: Option<Ns>,
    measured: Measured,
    events: Vec<MobileEvent>,
    over: bool,
}

impl<V: Environment, E: Endpoint> One<'_, '_, V, E> {
    fn run(&mut self) {
        let give_up = self.start + self.runner.setting.timeout;
        while !self.is_done() {
            let action = self.actions.first_key_value().map(|(key, _)| key.0);
            let next = [self.wire.next(), action].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= give_up) else {
                self.runner.now = give_up;
                self.fail("timeout", "the mobile's timeout expired".into());
                break;
            };
            self.runner.now = self.runner.now.max(next);
            self.step();
        }
        let node = &mut self.access.nodes[self.access.serving];
        self.attach.handle_close(node);
        let (start, now) = (self.start, self.runner.now);
        let radio = self.wire.radio(start, now);
        self.wire.abandon();
        let measured = &mut self.measured;
        measured.decision = self.attach.offered().map(|offered| offered.decision.as_str());
        measured.resumed = self.mobile.negotiated().is_some_and(|negotiated| negotiated.resumed);
        measured.tst_s = measured.rpt_s.zip(measured.tht_s).map(|(rpt, tht)| rpt + tht);
        measured.handshake_bytes = self.mobile.handshake_bytes();
        measured.wire_bytes = [radio.sent_bytes, radio.received_bytes];
        measured.retransmissions = u32::try_from(self.wire.traffic.resent).unwrap_or(u32::MAX);
        measured.sending_s = radio.sending.as_secs_f64();
        measured.receiving_s = radio.receiving.as_secs_f64();
        measured.length_s = now.since(start).as_secs_f64();
    }

    /// True if the attach has failed, or both ends have completed it.
    fn is_done(&self) -> bool {
        self.over || (self.attach.is_attached() && self.measured.attach_s.is_some())
    }

    fn fail(&mut self, cause: &str, reason: String) {
        self.measured.failure.get_or_insert_with(|| cause.to_owned());
        self.measured.reason.get_or_insert(reason);
        self.over = true;
    }

    fn schedule(&mut self, at: Ns, action: Action) {
        self.scheduled += 1;
        self.actions.insert((at.max(self.runner.now), self.scheduled), action);
    }

    fn send(&mut self, from: Side, bytes: Vec<u8>) {
        self.wire.send(self.runner.now, from, bytes, &self.runner.setting.hosts);
    }

    fn step(&mut self) {
        let now = self.runner.now;
        while let Some(entry) = self.actions.first_entry().filter(|entry| entry.key().0 <= now) {
            match entry.remove() {
                Action::Prepared => self.begin(),
                Action::MobileSends(bytes) => self.send(Side::Client, bytes),
                Action::SgsnSends(bytes) => self.send(Side::Server, bytes),
                Action::Answered(answer) => {
                    let before = self.attach.steps();
                    let node = &mut self.access.nodes[self.access.serving];
                    self.attach.handle_answer(node, now.into(), answer);
                    self.after_sgsn(before);
                }
            }
        }
        let was_open = self.wire.is_open(Side::Client);
        let hosts = &self.runner.setting.hosts;
        let delivered = self.wire.deliver(now, hosts);
        if delivered.and_then(|_| self.wire.expire(now, hosts)).is_err() {
            return self.fail("transport", "TCP aborted the connection".into());
        }
        let up = self.wire.read(now, Side::Server, hosts).concat();
        let down = self.wire.read(now, Side::Client, hosts).concat();
        if self.wire.is_open(Side::Client) && !was_open {
            self.measured.nrt_s = Some(now.since(self.start).as_secs_f64());
            let preparation = self.runner.setting.preparation.draw(&mut self.runner.stream);
            self.schedule(now + preparation, Action::Prepared);
        }
        if !up.is_empty() {
            let before = self.attach.steps();
            let node = &mut self.access.nodes[self.access.serving];
            self.attach.handle_input(node, now.into(), &up);
            self.after_sgsn(before);
        }
        if !down.is_empty() {
            let before = self.mobile.steps();
            self.mobile.handle_input(now.into(), &down);
            self.after_mobile(before);
        }
    }

    /// The mobile is connected and prepared: it sends the attach request and the ClientHello.
    fn begin(&mut self) {
        let now = self.runner.now;
        self.measured.rpt_s = Some(now.since(self.start).as_secs_f64());
        self.hello = now;
        self.after_mobile(0);
    }

    /// Schedules the mobile's output for the end of its computing time, and handles its events.
    fn after_mobile(&mut self, before: u32) {
        let now = self.runner.now;
        let mut bytes = Vec::new();
        self.mobile.poll_transmit(now.into(), &mut bytes);
        let resumed = self.mobile.negotiated().is_some_and(|negotiated| negotiated.resumed);
        let setting = &self.runner.setting;
        let work = if resumed { &setting.resumed.mobile } else { &setting.full.mobile };
        let stream = &mut self.runner.stream;
        let took =
            (before..self.mobile.steps()).fold(Ns::ZERO, |sum, step| sum + work.draw(step as usize, stream));
        let done = self.mobile_free.max(now) + took;
        self.mobile_free = done;
        if !bytes.is_empty() {
            self.schedule(done, Action::MobileSends(bytes));
        }
        while let Some(event) = self.mobile.poll_event() {
            match &event {
                MobileEvent::Established { .. } => {
                    self.measured.tht_s = Some(done.since(self.hello).as_secs_f64());
                }
                MobileEvent::Attached(_) => {
                    self.measured.attach_s = Some(done.since(self.start).as_secs_f64());
                }
                MobileEvent::Failed(failure) => {
                    self.fail(failure.cause(), failure.to_string());
                }
                MobileEvent::Data(_) => {}
            }
            self.events.push(event);
        }
    }

    /// Schedules the SGSN's output for the end of its computing time, and sends its query.
    fn after_sgsn(&mut self, before: u32) {
        let now = self.runner.now;
        let resumed = self.attach.offered().is_some_and(|offered| offered.record.is_some());
        let setting = &self.runner.setting;
        let work = if resumed { &setting.resumed.sgsn } else { &setting.full.sgsn };
        let stream = &mut self.runner.stream;
        let took =
            (before..self.attach.steps()).fold(Ns::ZERO, |sum, step| sum + work.draw(step as usize, stream));
        // Work without a cost does not queue.
        let done = if took > Ns::ZERO { self.runner.server.submit(now, took) } else { now };
        let done = done.max(self.sgsn_free);
        self.sgsn_free = done;
        let mut bytes = Vec::new();
        if self.attach.poll_transmit(&mut bytes) {
            if self.attach.steps() > 0 {
                self.server_hello.get_or_insert(done);
            }
            self.schedule(done, Action::SgsnSends(bytes));
        }
        if self.attach.is_attached() && self.measured.scrt_s.is_none() {
            self.measured.scrt_s = self.server_hello.map(|sent| done.since(sent).as_secs_f64());
        }
        if let Some((network, query)) = self.attach.poll_query() {
            self.measured.queries += 1;
            let answer = self.ask(&network, &query);
            let at = done + self.runner.setting.core_round_trip;
            self.schedule(at, Action::Answered(answer));
        }
    }

    fn ask(&mut self, network: &Network, query: &Query) -> Result<Answer, Unanswered> {
        if !query.is_for_sgsn() {
            let hss = self.access.homes.get_mut(network).ok_or(Unanswered::Unknown)?;
            return Ok(hss.answer(query));
        }
        let old = &self.attach.temporary().ok_or(Unanswered::Unknown)?.node;
        let node = self.access.nodes.iter_mut().find(|node| node.name() == old).ok_or(Unanswered::Unknown)?;
        node.answer(query).map_err(|_| Unanswered::Silent)
    }
}
