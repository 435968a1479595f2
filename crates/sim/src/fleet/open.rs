//! Connections after their handshake, and the records that their clients send.

use super::{Fleet, RECORDS};
use crate::arrivals::Arrivals;
use crate::client::EARLIER;
use crate::histogram::Recorder;
use crate::records::{RecordsOutcome, RecordsSpec};
use crate::scenario::{ArrivalSpec, Balance, Scenario};
use crate::server::Job;
use shakedown_link::{Ns, Stream};
use std::collections::VecDeque;

/// A connection whose client is ready.
#[derive(Clone, Copy, Debug)]
struct Connection {
    /// The time of its next record.
    next: Ns,
    server: u32,
    /// Remaining records.
    left: u32,
    class: u16,
}

/// Clients that arrived before the run and become ready during it, at the rate of arrivals, as in a steady state.
#[derive(Debug)]
struct Earlier<'a> {
    arrivals: Arrivals<'a>,
    /// The time at which the next of them is ready.
    next: Ns,
    /// Their number so far, including those whose connections were open at the start of the run.
    count: u64,
}

impl Earlier<'_> {
    /// Advances to the next client; false if there is none.
    fn advance(&mut self) -> bool {
        let next = self.arrivals.by_ref().find(|at| *at > Ns::ZERO);
        self.next = next.unwrap_or(Ns::ZERO);
        next.is_some()
    }
}

/// All open connections.
#[derive(Debug)]
pub(super) struct OpenConnections<'a> {
    spec: RecordsSpec,
    interval: Ns,
    /// The server's work on a record, by class.
    work: Vec<Ns>,
    /// Sorted by their next records. All have the same interval, so a connection that has sent a record, or a new one,
    /// is appended.
    line: VecDeque<Connection>,
    /// Clients from before the run that become ready in it; `None` once a client of the run is ready.
    earlier: Option<Earlier<'a>>,
    /// Worker time of the records that are finished.
    pub work_ns: u128,
    pub wait: Recorder,
    peak: usize,
}

impl OpenConnections<'_> {
    /// `None` if the scenario has no records.
    pub fn of(scenario: &Scenario) -> Option<Self> {
        let spec = scenario.records?;
        let work = scenario.classes.iter().map(|class| Ns::from_secs_f64(class.record_work_s));
        Some(Self {
            spec,
            interval: spec.interval(),
            work: work.collect(),
            line: VecDeque::new(),
            earlier: None,
            work_ns: 0,
            wait: Recorder::default(),
            peak: 0,
        })
    }

    /// Adds a connection whose client is ready now.
    fn push(&mut self, now: Ns, server: u32, class: u16) {
        self.line.push_back(Connection { next: now + self.interval, server, left: self.spec.count, class });
        self.peak = self.peak.max(self.line.len());
    }

    /// The outcome; its work is that of the whole run.
    pub fn end(self) -> RecordsOutcome {
        let peak_open = self.peak as u64;
        RecordsOutcome { wait: self.wait.histogram(), work_ns: self.work_ns, peak_open }
    }
}

impl<const NETWORK: bool> Fleet<'_, NETWORK> {
    /// A client is ready: its connection stays open.
    pub(super) fn opens(&mut self, now: Ns, slot: u32) {
        if self.open.is_none() {
            return;
        }
        let server = self.server_of(slot);
        let class = self.client(slot).class;
        if let Some(open) = &mut self.open {
            open.earlier = None;
            open.push(now, server, class);
        }
        self.next_record(now);
    }

    /// Schedules the next record. If no client is in flight and none will arrive, further records would delay no
    /// handshake: they are not sent, and the run ends.
    pub(super) fn next_record(&mut self, now: Ns) {
        let is_last = self.next_arrival.is_none();
        let is_over = self.load.in_flight == 0 && is_last;
        let Some(open) = &mut self.open else { return };
        if is_over {
            open.line.clear();
        }
        if is_last {
            // Otherwise a run in which all clients fail would never end.
            open.earlier = None;
        }
        let opens = open.earlier.as_ref().map(|earlier| earlier.next);
        match open.line.front().map(|first| first.next).into_iter().chain(opens).min() {
            Some(next) => self.queue.set(RECORDS, next.max(now)),
            None => self.queue.clear(RECORDS),
        }
    }

    /// Sends the records that are due, and opens the connections of earlier clients that are ready now.
    pub(super) fn send_records(&mut self, now: Ns) {
        if self.is_over() {
            // No remaining client has a further event.
            self.now = self.load.at;
            return;
        }
        self.advance(now);
        self.open_earlier(now);
        while let Some(open) = &mut self.open
            && let Some(first) = open.line.front().copied().filter(|first| first.next <= now)
        {
            open.line.pop_front();
            let left = first.left - 1;
            if left > 0 {
                open.line.push_back(Connection { next: first.next + open.interval, left, ..first });
            } else {
                self.servers[first.server as usize].connections -= 1;
            }
            let work = open.work[usize::from(first.class)];
            self.enqueue(first.server, Job::record(now, work));
            self.events += 1;
        }
        self.next_record(now);
    }

    /// If arrivals have a rate, opens the connections that a steady state has at the start of the run, with the ages of
    /// earlier clients' connections. Earlier clients that are still in their handshakes become ready at the same rate
    /// until the first client of the run is ready, so that there is no gap, however long a handshake takes.
    pub(super) fn open_earlier_connections(&mut self) {
        let scenario = self.scenario;
        let rate = scenario.arrivals.first_per_s().min(scenario.admission_limit_per_s());
        let Some(open) = &self.open else { return };
        if rate <= 0.0 {
            return;
        }
        let (interval, count, lifetime) = (open.interval, open.spec.count, open.spec.lifetime());
        let after = self.setup.admitted.as_ref().unwrap_or(&scenario.arrivals);
        let before = match after {
            // Before the run, a changing rate is assumed to have its first value.
            ArrivalSpec::Curve { .. } => ArrivalSpec::Poisson { per_s: rate },
            other => other.clone(),
        };
        // These processes are reversible in time, so their times can be used as ages.
        let ages = Arrivals::of(&before, u64::MAX, lifetime, Stream::of(self.seed, 0, EARLIER));
        // Reserves room for connections of the run, which open as fast as these close, so the list is not copied.
        let expected = rate * lifetime.as_secs_f64();
        let mut joined = Vec::new();
        let _ = joined.try_reserve_exact((expected + 10.0 * expected.sqrt()) as usize + 64); // on failure it grows
        let mut all = 0;
        for age in ages {
            let number = all;
            all += 1;
            if age == Ns::ZERO || age >= lifetime {
                continue;
            }
            let (server, class) = self.earlier_place(number);
            let sent = age.0 / interval.0;
            let next = interval - Ns(age.0 % interval.0);
            // `sent` is less than `count`, because the age is less than the lifetime.
            joined.push(Connection { next, server, left: count - sent as u32, class });
        }
        joined.sort_unstable_by_key(|one| (one.next, one.server, one.left, one.class));
        for one in &joined {
            self.servers[one.server as usize].connections += 1;
        }
        let arrivals = Arrivals::of(after, u64::MAX, Ns::MAX, Stream::of(self.seed, 1, EARLIER));
        let mut earlier = Earlier { arrivals, next: Ns::ZERO, count: all };
        let earlier = earlier.advance().then_some(earlier);
        if let Some(open) = &mut self.open {
            // No other connection is open yet.
            open.line = joined.into();
            open.peak = open.line.len();
            open.earlier = earlier;
        }
        self.next_record(Ns::ZERO);
    }

    /// Opens the connections of earlier clients that are ready now.
    fn open_earlier(&mut self, now: Ns) {
        while let Some(open) = &mut self.open
            && let Some(earlier) = open.earlier.as_mut().filter(|earlier| earlier.next <= now)
        {
            let number = earlier.count;
            earlier.count += 1;
            if !earlier.advance() {
                open.earlier = None;
            }
            let (server, class) = self.earlier_place(number);
            self.servers[server as usize].connections += 1;
            if let Some(open) = &mut self.open {
                open.push(now, server, class);
            }
            self.events += 1;
        }
    }

    /// The server and the class of a connection from before the run.
    fn earlier_place(&self, index: u64) -> (u32, u16) {
        // No client of the run has such a number.
        let number = u64::MAX - index;
        let class = self.kind(number, Ns::ZERO).0;
        (self.earlier_server(number, class, index), class)
    }

    /// The server to which the balancer assigned a connection from before the run.
    fn earlier_server(&self, number: u64, class: u16, index: u64) -> u32 {
        let count = self.scenario.server.servers;
        match self.scenario.server.balance {
            Balance::Hash | Balance::Cell if count > 1 => self.fixed_server(number, class),
            _ => (index % u64::from(count)) as u32,
        }
    }
}
