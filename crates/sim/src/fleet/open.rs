//! Connections after their handshake, and the records that their clients send.

use super::{Fleet, RECORDS};
use crate::arrivals::Arrivals;
use crate::client::{EARLIER, LET_IN};
use crate::metrics::Recorder;
use crate::records::{RecordsOutcome, RecordsSpec};
use crate::scenario::{ArrivalSpec, Balance, Scenario};
use crate::server::Job;
use shakedown_link::{Ns, Stream};
use std::collections::VecDeque;

/// A connection whose client is ready.
#[derive(Clone, Copy, Debug)]
struct Connection {
    /// When its next record comes.
    next: Ns,
    server: u32,
    /// Records that are yet to come.
    left: u32,
    class: u16,
}

/// All that are open.
#[derive(Debug)]
pub(super) struct OpenConnections {
    spec: RecordsSpec,
    interval: Ns,
    /// The server's work on a record, by class.
    work: Vec<Ns>,
    /// By their next records. All have one interval, so whichever has sent a record, and whichever is new, is the last.
    line: VecDeque<Connection>,
    /// Those from before the run have joined.
    has_earlier: bool,
    /// Worker time of the records that are finished.
    pub work_ns: u128,
    pub wait: Recorder,
    peak: usize,
}

impl OpenConnections {
    /// Of a scenario with records.
    pub fn of(scenario: &Scenario) -> Option<Self> {
        let spec = scenario.records?;
        let work = scenario.classes.iter().map(|class| Ns::from_secs_f64(class.record_work_s));
        Some(Self {
            spec,
            interval: spec.interval(),
            work: work.collect(),
            line: VecDeque::new(),
            has_earlier: false,
            work_ns: 0,
            wait: Recorder::default(),
            peak: 0,
        })
    }

    fn push(&mut self, connection: Connection) {
        self.line.push_back(connection);
        self.peak = self.peak.max(self.line.len());
    }

    /// What they come to; the work is that of the whole run.
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
        self.join_earlier(now);
        if let Some(open) = &mut self.open {
            let left = open.spec.count;
            open.push(Connection { next: now + open.interval, server, left, class });
        }
        self.next_record(now);
    }

    /// When the next record comes. There is none once no client is on its way in, or will come: whatever open connections would
    /// still send delays no handshake, and the run ends.
    pub(super) fn next_record(&mut self, now: Ns) {
        let is_over = self.load.in_flight == 0 && self.next_arrival.is_none();
        let Some(open) = &mut self.open else { return };
        if is_over {
            open.line.clear();
        }
        match open.line.front() {
            Some(first) => self.queue.set(RECORDS, first.next.max(now)),
            None => self.queue.clear(RECORDS),
        }
    }

    /// Clients whose time has come send a record each.
    pub(super) fn send_records(&mut self, now: Ns) {
        if self.queue.is_empty() {
            // Nothing will happen to any client that is left.
            self.now = self.load.at;
            return;
        }
        self.advance(now);
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
            let id = self.jobs.add(Job::record(now, work));
            self.at_server(first.server, |server| server.enqueue(id));
            self.may_start.push(first.server);
            self.load.in_system += 1;
            self.events += 1;
        }
        self.next_record(now);
    }

    /// Connections that are open from before the run, where clients come at a rate: as many as a steady state has, each as
    /// old as those that came before then. They join when the first client of the run is ready, so that no time is
    /// missing between them and that client.
    fn join_earlier(&mut self, now: Ns) {
        let Some(open) = &mut self.open else { return };
        if std::mem::replace(&mut open.has_earlier, true) {
            return;
        }
        let (interval, count, lifetime) = (open.interval, open.spec.count, open.spec.lifetime());
        let rate = self.scenario.arrivals.first_per_s();
        if rate <= 0.0 {
            return;
        }
        let arrivals = match &self.scenario.arrivals {
            // A rate that changes is taken to have been the first before.
            ArrivalSpec::Curve { .. } => ArrivalSpec::Poisson { per_s: rate },
            other => other.clone(),
        };
        let let_in = self.scenario.let_in_per_s().min(rate) / rate;
        // Backwards in time these processes are the same, and their times are ages.
        let ages = Arrivals::of(&arrivals, u64::MAX, lifetime, Stream::of(self.seed, 0, EARLIER));
        let mut draws = Stream::of(self.seed, 0, LET_IN);
        // With room for those of the run, which come as fast as these go, so that the list is never copied.
        let expected = rate * let_in * lifetime.as_secs_f64();
        let mut earlier = Vec::new();
        let _ = earlier.try_reserve_exact((expected + 10.0 * expected.sqrt()) as usize + 64); // else it grows, and is copied
        for (index, age) in ages.enumerate() {
            let is_open = age > Ns::ZERO && age < lifetime && (let_in >= 1.0 || draws.uniform() < let_in);
            if !is_open {
                continue;
            }
            // No client of the run has such a number.
            let number = u64::MAX - index as u64;
            let class = self.kind(number).0;
            let sent = age.0 / interval.0;
            let next = now + interval - Ns(age.0 % interval.0);
            // Of at most as many records as one sends.
            let left = count - sent as u32;
            earlier.push(Connection { next, server: self.earlier_server(number, class, index), left, class });
        }
        earlier.sort_unstable_by_key(|one| (one.next, one.server, one.left, one.class));
        for one in &earlier {
            self.servers[one.server as usize].connections += 1;
        }
        if let Some(open) = &mut self.open {
            // No other connection is open yet.
            open.line = earlier.into();
            open.peak = open.line.len();
        }
    }

    /// Where a balancer has put a connection from before the run.
    fn earlier_server(&self, number: u64, class: u16, index: usize) -> u32 {
        let count = self.scenario.server.servers;
        match self.scenario.server.balance {
            Balance::Hash | Balance::Cell if count > 1 => self.fixed_server(number, class),
            _ => (index as u64 % u64::from(count)) as u32,
        }
    }
}
