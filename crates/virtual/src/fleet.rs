//! One replication: endpoints, links and the server's workers in virtual time.

use crate::Maker;
use crate::client::{ARRIVAL, BACKOFF, CLOCK, Client, Common};
use crate::costs::{Charge, message_costs};
use crate::error::VirtualError;
use crate::wire::{Hosts, InFlight, Wire};
use crate::workers::{Job, Workers};
use shakedown_link::{Bearer, Ns, Stream};
use shakedown_sim::access::{At, CellOf, Cells, Member, Uncrossed};
use shakedown_sim::arrivals::Arrivals;
use shakedown_sim::energy::{ClientUse, nanojoules};
use shakedown_sim::outcome::{Cause, ClassOutcome, Mark, Outcome, Window};
use shakedown_sim::queue::EventQueue;
use shakedown_sim::series::{Series, Stages};
use shakedown_sim::tcp::Jiffies;
use shakedown_sim::{ClassSpec, Scenario, Simulation, TransportKind, replication_seed};
use shakedown_trace::Side;
use shakedown_trace::endpoint::Transport;
use std::ops::ControlFlow;
use std::rc::Rc;

/// Entities: the source of arrivals, the workers, the cells, the clients.
const SOURCE: u32 = 0;
const FIRST_WORKER: u32 = 1;

/// The number of events between two reports of progress.
const PROGRESS_TURNS: u32 = 256;

/// Clients in progress, their maximum, and the time integral of busy workers.
#[derive(Default)]
struct Load {
    at: Ns,
    in_flight: u64,
    busy_ns: u128,
    peak: u64,
}

pub(crate) struct Fleet<'a, 'b> {
    scenario: &'a Scenario,
    class: &'a ClassSpec,
    common: Common,
    bearer: Bearer,
    make: &'a mut Maker<'b>,
    arrivals: Arrivals<'a>,
    next_arrival: Option<Ns>,
    queue: EventQueue,
    clients: Vec<Option<Client>>,
    free: Vec<u32>,
    /// Number of the latest attempt; identifies jobs.
    generation: u32,
    workers: Workers,
    /// The clients' use of cells; `None` without cells.
    cell: Option<&'a CellOf>,
    cells: Cells<InFlight>,
    first_cell: u32,
    first_client: u32,
    timeout: Option<Ns>,
    load: Load,
    outcome: Outcome,
    stages: Stages,
    arrived: u64,
    attempts: u64,
    dropped: [u64; 4],
    uncrossed: Uncrossed,
    /// When clients arrived, and the worker time used until then.
    window: Window,
}

impl<'a, 'b> Fleet<'a, 'b> {
    pub fn new(
        simulation: &'a Simulation,
        replication: u32,
        make: &'a mut Maker<'b>,
    ) -> Result<Self, VirtualError> {
        let scenario = simulation.scenario();
        let class = &scenario.classes[0];
        let bearer = Bearer::try_from(&class.bearer)?;
        let handshake = &class.handshake;
        let transport = match handshake.transport {
            TransportKind::Datagram => Transport::Datagram,
            TransportKind::Stream => Transport::Stream,
            TransportKind::Ideal => {
                let accepted = "stream, datagram";
                return Err(VirtualError::Unsupported { key: "handshake.transport", accepted });
            }
        };
        let seed = replication_seed(scenario.seed, replication);
        let of = |side| message_costs(&handshake.messages, side).map(Rc::from);
        let costs = [of(Side::Client)?, of(Side::Server)?];
        let tcp = scenario.tcp;
        let clock = Jiffies::drawn(tcp.hz, Stream::of(seed, u64::MAX, CLOCK));
        let hosts = Hosts::of(&class.bearer, tcp, handshake.write_bytes, clock);
        let name = handshake.name.clone();
        let cells = simulation.cells(seed);
        let first_cell = FIRST_WORKER + scenario.server.workers;
        let mut fleet = Self {
            scenario,
            class,
            common: Common { hosts, transport, costs, seed },
            bearer,
            make,
            arrivals: Arrivals::new(scenario, Stream::of(seed, 0, ARRIVAL)),
            next_arrival: None,
            queue: EventQueue::new(),
            clients: Vec::new(),
            free: Vec::new(),
            generation: 0,
            workers: Workers::new(scenario.server.workers),
            cell: simulation.cell(0),
            first_cell,
            first_client: first_cell + cells.count(),
            cells,
            timeout: scenario.timeout_s.map(Ns::from_secs_f64),
            load: Load::default(),
            outcome: Outcome {
                seed: scenario.seed,
                classes: vec![ClassOutcome { name, ..ClassOutcome::default() }],
                series: Series::new(Ns::from_secs_f64(scenario.series_s), 1),
                offered_e9: simulation.offered_e9(),
                ..Outcome::default()
            },
            stages: Stages::of(1),
            arrived: 0,
            attempts: 0,
            dropped: [0; 4],
            uncrossed: Uncrossed::default(),
            window: Window::default(),
        };
        fleet.next_arrival = fleet.arrivals.next();
        if let Some(first) = fleet.next_arrival {
            fleet.queue.set(SOURCE, first);
        }
        Ok(fleet)
    }

    /// Runs to the end. `progress` gets the number of finished clients; `None` if it stops the run.
    pub fn run(
        mut self,
        replication: u32,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Option<Outcome>, VirtualError> {
        let mut turns = 0_u32;
        let mut last = Ns::ZERO;
        while let Some((now, entity)) = self.queue.pop() {
            assert!(now >= last, "time goes back from {last} to {now} at entity {entity}");
            last = now;
            turns = turns.wrapping_add(1);
            if turns.is_multiple_of(PROGRESS_TURNS) && progress(self.arrived - self.load.in_flight).is_break()
            {
                return Ok(None);
            }
            if entity >= self.first_client {
                self.act(now, entity - self.first_client)?;
            } else if entity >= self.first_cell {
                self.decide(now, entity - self.first_cell)?;
            } else if entity >= FIRST_WORKER {
                self.worker(now, entity - FIRST_WORKER)?;
            } else {
                self.arrive(now)?;
            }
            self.start_jobs(now);
            while let Some((cell, next)) = self.cells.next_touched() {
                self.queue.set(self.first_cell + cell, next.max(now));
            }
        }
        self.end(last, replication)?;
        Ok(Some(self.outcome))
    }

    fn client(&mut self, slot: u32) -> Option<&mut Client> {
        self.clients.get_mut(slot as usize)?.as_mut()
    }

    fn arrive(&mut self, now: Ns) -> Result<(), VirtualError> {
        self.advance(now);
        while self.next_arrival.is_some_and(|next| next <= now) {
            self.next_arrival = self.arrivals.next();
            self.admit(now)?;
        }
        if let Some(next) = self.next_arrival {
            self.queue.set(SOURCE, next.max(now));
        }
        Ok(())
    }

    fn admit(&mut self, now: Ns) -> Result<(), VirtualError> {
        let number = self.arrived;
        self.arrived += 1;
        let counted = self.scenario.counted();
        let (is_late, counted) = (number >= counted.end, counted.contains(&number));
        if counted {
            let mark = self.mark(now);
            self.window.first.get_or_insert(mark);
            self.outcome.counted += 1;
            self.outcome.classes[0].counted += 1;
        }
        if is_late {
            self.outcome.cooldown += 1;
        } else {
            self.window.last = self.mark(now);
        }
        self.outcome.arrived += 1;
        self.load.in_flight += 1;
        self.load.peak = self.load.peak.max(self.load.in_flight);
        if let Some(interval) = self.outcome.series.class_at(0, now) {
            interval.arrived += 1;
        }
        let seed = self.common.seed;
        let cell = self.cell.map(|of| self.cells.cell(of, number));
        let mut wire = Wire::new(self.bearer.path(seed, number));
        if cell.is_some() {
            wire.crosses_cell();
        }
        let client = Client {
            number,
            counted,
            attempt: 0,
            generation: self.generation,
            planned: now,
            gives_up: None,
            resumes_at: None,
            connected: None,
            ready: None,
            computes_until: None,
            has_job: false,
            noted: None,
            waited: Ns::ZERO,
            computed: Ns::ZERO,
            wire,
            cell,
            member: Member::default(),
            clock: match self.scenario.tcp.one_clock {
                true => self.common.hosts.server_clock,
                false => Jiffies::drawn(self.scenario.tcp.hz, Stream::of(seed, number, CLOCK)),
            },
            parties: None,
        };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.clients.push(None);
            (self.clients.len() - 1) as u32
        });
        self.clients[slot as usize] = Some(client);
        self.begin(now, slot)?;
        self.act(now, slot)
    }

    fn begin(&mut self, now: Ns, slot: u32) -> Result<(), VirtualError> {
        let ends = (self.make)(self.attempts).map_err(VirtualError::Endpoints)?;
        self.attempts += 1;
        self.outcome.attempts += 1;
        self.generation += 1;
        let generation = self.generation;
        let gives_up = self.timeout.map(|timeout| now + timeout);
        let Some(client) = self.clients[slot as usize].as_mut() else { return Ok(()) };
        client.generation = generation;
        client.begin(now, ends, &self.common)?;
        client.gives_up = gives_up;
        if client.attempt > 1
            && let Some(interval) = self.outcome.series.at(now)
        {
            interval.retries += 1;
        }
        Ok(())
    }

    /// Processes everything of a client that is due.
    fn act(&mut self, now: Ns, slot: u32) -> Result<(), VirtualError> {
        loop {
            let Some(client) = self.clients.get_mut(slot as usize).and_then(Option::as_mut) else {
                return Ok(());
            };
            if client.resumes_at.is_some_and(|at| at <= now) {
                self.begin(now, slot)?;
                continue;
            }
            let happened = match client.deliver(now, &self.common) {
                Ok(true) => Ok(true),
                Ok(false) if client.computes_until.is_some_and(|until| until <= now) => {
                    client.computes_until = None;
                    client.finish(now, Side::Client, &self.common);
                    Ok(true)
                }
                Ok(false) if client.gives_up.is_some_and(|at| at <= now) => Err(Cause::Timeout),
                Ok(false) => client.expire(now, &self.common),
                Err(cause) => Err(cause),
            };
            let happened = match client.ended()? {
                Some(cause) => Err(cause),
                None => happened,
            };
            match happened {
                Err(cause) => {
                    self.outcome.events += 1;
                    self.fail(now, slot, cause);
                    continue;
                }
                Ok(true) => {
                    self.outcome.events += 1;
                    self.note_ready(now, slot);
                    continue;
                }
                Ok(false) => {}
            }
            if let Some(charge) = client.work(now, Side::Client, &self.common) {
                client.computes_until = Some(now + charge.takes);
                continue;
            }
            break;
        }
        self.settle(now, slot)
    }

    fn note_ready(&mut self, now: Ns, slot: u32) {
        self.advance(now);
        let Some(client) = self.clients[slot as usize].as_mut() else { return };
        if client.ready.is_some() || client.established().is_none() {
            return;
        }
        client.ready = Some(now);
        client.gives_up = None;
        self.load.in_flight -= 1;
        self.outcome.last_ready_ns = self.outcome.last_ready_ns.max(now.0);
        if let Some(interval) = self.outcome.series.class_at(0, now) {
            interval.completed += 1;
        }
        if client.counted {
            self.outcome.completed += 1;
            self.outcome.ready.record_time(now - client.planned);
            self.outcome.classes[0].ready.record_time(now - client.planned);
            if let Some(connected) = client.connected {
                self.outcome.connect.record_time(connected - client.planned);
            }
        }
    }

    /// After any event of a client: retires it if it is done, otherwise schedules its next event.
    fn settle(&mut self, now: Ns, slot: u32) -> Result<(), VirtualError> {
        let entity = self.first_client + slot;
        self.contend(now, slot);
        let Some(client) = self.clients[slot as usize].as_mut() else { return Ok(()) };
        if !client.has_job && client.has_work(Side::Server) {
            client.has_job = true;
            let generation = client.generation;
            self.advance(now);
            self.workers.enqueue(Job { slot, generation, since: now, orphaned: None });
        }
        self.observe(now, slot);
        let Some(client) = self.clients[slot as usize].as_mut() else { return Ok(()) };
        if client.ready.is_some() && client.is_over() {
            if let Some((side, message)) = client.missing() {
                return Err(VirtualError::OtherMessages { side, message: message.to_owned() });
            }
            if client.counted {
                self.outcome.done.record_time(now - client.planned);
            }
            self.retire(now, slot);
            return Ok(());
        }
        match client.next() {
            Some(next) => self.queue.set(entity, next.max(now)),
            // Nothing more will arrive at the server, and the client is ready.
            None if client.ready.is_some() && !client.has_job && client.cell.is_none() => {
                self.retire(now, slot);
            }
            None => self.queue.clear(entity),
        }
        Ok(())
    }

    /// Passes the packets of a client and its server connection to its cell.
    fn contend(&mut self, now: Ns, slot: u32) {
        let Some(client) = self.clients[slot as usize].as_mut() else { return };
        if let Some(at) = place(self.cell, client, slot) {
            client.wire.contend(now, &mut client.member, at, &mut self.cells);
        }
    }

    /// Processes the decisions of a cell.
    fn decide(&mut self, now: Ns, cell: u32) -> Result<(), VirtualError> {
        let width = Ns::from_secs_f64(self.scenario.series_s);
        let mut decisions = self.cells.act(now, cell, width);
        for decision in decisions.drain(..) {
            let target = decision.client();
            let client = self.clients[target.slot as usize].as_mut();
            let Some(client) = client.filter(|client| client.number == target.number) else {
                self.cells.drop_decision(cell, &decision);
                continue;
            };
            let Some(at) = place(self.cell, client, target.slot) else { continue };
            let path = client.wire.path();
            let unsent = client.member.apply(now, at, decision, path, &mut self.cells);
            self.uncrossed += unsent.uncrossed;
            if let Some(cause) = unsent.dropped {
                self.dropped[cause as usize] += 1;
            }
            self.outcome.events += 1;
            self.act(now, target.slot)?;
        }
        self.cells.recycle(cell, decisions);
        Ok(())
    }

    /// Records the client's stage.
    fn observe(&mut self, now: Ns, slot: u32) {
        let Some(client) = self.clients[slot as usize].as_mut() else { return };
        let stage = client.stage();
        if stage != client.noted {
            let change = (std::mem::replace(&mut client.noted, stage), stage);
            self.stages.moves(&mut self.outcome.series, 0, change, now);
        }
    }

    fn fail(&mut self, now: Ns, slot: u32, cause: Cause) {
        self.advance(now);
        let seed = self.common.seed;
        let Some(client) = self.clients[slot as usize].as_mut() else { return };
        if client.ready.is_some() {
            // Only the server's end has failed; the client is not affected.
            self.retire(now, slot);
            return;
        }
        *self.outcome.attempt_failures.entry(cause).or_default() += 1;
        if client.has_job && !client.is_served() {
            // The server still processes input that has arrived.
            let generation = client.generation;
            let charge = client.work(now, Side::Server, &self.common).unwrap_or_default();
            self.workers.orphan(slot, generation, charge.takes);
        }
        client.abandon();
        self.contend(now, slot);
        let Some(client) = self.clients[slot as usize].as_mut() else { return };
        if let Some(retry) =
            self.scenario.retry.filter(|retry| cause != Cause::Lost && client.attempt < retry.attempts)
        {
            let power = i32::try_from(client.attempt - 1).unwrap_or(i32::MAX);
            let pause = (retry.delay_s * libm::pow(retry.factor, f64::from(power))).min(retry.maximum_s);
            let entity = client.number << 16 | u64::from(client.attempt);
            let pause = pause * (1.0 - retry.jitter * Stream::of(seed, entity, BACKOFF).uniform());
            let pause = Ns::from_secs_f64(pause);
            client.resumes_at = Some(now + pause);
            if let Some(at) = place(self.cell, client, slot) {
                client.member.pause(now, pause, at, client.wire.path(), &mut self.cells);
            } else if self.class.bearer.energy.is_idle_in(pause) {
                client.wire.path().release(now);
            }
            return;
        }
        self.load.in_flight -= 1;
        if let Some(interval) = self.outcome.series.class_at(0, now) {
            interval.failed += 1;
        }
        if client.counted {
            *self.outcome.failed.entry(cause).or_default() += 1;
            self.outcome.classes[0].failed += 1;
        }
        self.retire(now, slot);
    }

    /// Removes a client; its slot becomes free.
    fn retire(&mut self, now: Ns, slot: u32) {
        let Some(mut client) = self.clients[slot as usize].take() else { return };
        self.stages.moves(&mut self.outcome.series, 0, (client.noted, None), now);
        client.abandon();
        if let Some(at) = place(self.cell, &client, slot) {
            client.member.leave(at, &mut self.cells);
        }
        let traffic = client.wire.traffic;
        let total = &mut self.outcome.traffic;
        total.packets += traffic.packets;
        total.up_bytes += traffic.bytes[0];
        total.down_bytes += traffic.bytes[1];
        total.retransmissions += traffic.resent;
        for (sum, more) in self.dropped.iter_mut().zip(traffic.dropped) {
            *sum += more;
        }
        if client.counted {
            self.outcome.client_wait.record_time(client.waited);
            let energy_j = ClientUse {
                elapsed: now - client.planned,
                computing: client.computed,
                active_w: self.class.handshake.client_cpu_w,
                idle_w: self.class.handshake.client_idle_w,
                radio: Some(client.wire.radio(client.planned, now)),
            }
            .energy_j(&self.class.bearer.energy);
            if let Some(joules) = energy_j {
                self.outcome.energy.record(nanojoules(joules));
            }
        }
        self.queue.clear(self.first_client + slot);
        self.free.push(slot);
    }

    fn start_jobs(&mut self, now: Ns) {
        while let Some(job) = self.workers.next_to_start() {
            self.advance(now);
            let waited = now - job.since;
            let charge = match job.orphaned {
                Some(takes) => Some(Charge { takes, messages: 1 }),
                None => self.serve(now, &job),
            };
            let counts = self.window.first.is_some();
            if let Some(client) = self.client(job.slot).filter(|client| client.generation == job.generation) {
                client.waited += waited;
            }
            // Input without a complete message is not counted as a job.
            if counts && charge.is_some_and(|charge| charge.messages > 0) {
                self.outcome.wait.record_time(waited);
            }
            match (charge, self.workers.assign(job)) {
                (Some(charge), Some(worker)) => self.queue.set(FIRST_WORKER + worker, now + charge.takes),
                (None, Some(worker)) => {
                    self.over(now, &job);
                    self.workers.release(worker);
                }
                (_, None) => {}
            }
        }
    }

    /// The next part of a job, if there is one.
    fn serve(&mut self, now: Ns, job: &Job) -> Option<Charge> {
        let client = self.clients[job.slot as usize].as_mut()?;
        if client.generation != job.generation {
            return None;
        }
        let charge = client.work(now, Side::Server, &self.common);
        self.contend(now, job.slot);
        charge
    }

    fn over(&mut self, now: Ns, job: &Job) {
        if self.window.first.is_some() {
            self.outcome.sojourn.record_time(now - job.since);
        }
        if let Some(client) = self.client(job.slot).filter(|client| client.generation == job.generation) {
            client.has_job = false;
        }
    }

    /// A worker has finished a part of a job.
    fn worker(&mut self, now: Ns, worker: u32) -> Result<(), VirtualError> {
        let Some(job) = self.workers.job_of(worker) else { return Ok(()) };
        self.advance(now);
        self.outcome.events += 1;
        let Some(client) = self.clients[job.slot as usize].as_mut() else {
            self.over(now, &job);
            self.workers.release(worker);
            return Ok(());
        };
        let is_its = client.generation == job.generation && job.orphaned.is_none();
        if is_its {
            client.finish(now, Side::Server, &self.common);
        }
        match if is_its { self.serve(now, &job) } else { None } {
            Some(charge) => self.queue.set(FIRST_WORKER + worker, now + charge.takes),
            None => {
                self.over(now, &job);
                self.workers.release(worker);
            }
        }
        if is_its {
            self.act(now, job.slot)?;
        }
        Ok(())
    }

    /// Updates the integrals to now, before one of their values changes.
    fn advance(&mut self, now: Ns) {
        let passed = now.since(self.load.at);
        if passed == Ns::ZERO {
            return;
        }
        let busy = u64::from(self.workers.busy());
        let waiting = self.workers.waiting() as u64;
        self.load.busy_ns += u128::from(busy) * u128::from(passed.0);
        self.outcome.series.hold((self.load.at, now), busy, waiting);
        self.load.at = now;
    }

    /// The workers' busy time up to now.
    fn mark(&self, now: Ns) -> Mark {
        Mark { at: now, busy_ns: self.load.busy_ns, records_ns: 0 }
    }

    /// Ends the run: no event is pending.
    fn end(&mut self, now: Ns, replication: u32) -> Result<(), VirtualError> {
        for slot in 0..self.clients.len() as u32 {
            if self.client(slot).is_some() {
                self.fail(now, slot, Cause::Lost);
            }
        }
        self.advance(now);
        debug_assert_eq!((self.load.in_flight, self.workers.left()), (0, 0), "somebody is still there");
        let end = self.mark(now);
        let outcome = &mut self.outcome;
        // A server's limits are not supported here.
        outcome.count_dropped(self.dropped, self.uncrossed, 0);
        outcome.access = self.cells.end();
        outcome.peak_in_flight = self.load.peak;
        outcome.end(replication, self.scenario, self.window, end, &|end| {
            u128::from(end.0) * u128::from(self.scenario.server.workers)
        });
        Ok(())
    }
}

/// A client's place in its cell; `None` without a cell.
fn place<'a>(of: Option<&'a CellOf>, client: &Client, slot: u32) -> Option<At<'a>> {
    Some(At { cell: client.cell?, of: of?, number: client.number, slot })
}
