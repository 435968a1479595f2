//! One replication: clients, links and the server in virtual time.

use crate::arrivals::Arrivals;
use crate::client::{
    ARRIVAL, Accepted, Admits, BACKOFF, CLOCK, Client, KIND, Parcel, Shared, Traffic, Transport, side,
};
use crate::handshake::Plan;
use crate::metrics::Series;
use crate::outcome::{Cause, ClassOutcome, Moments, Outcome, Replication, TrafficOutcome};
use crate::queue::EventQueue;
use crate::scenario::{ArrivalSpec, Class, Discipline, Scenario, Setup};
use crate::server::{JobId, Server};
use crate::tcp::Jiffies;
use shakedown_link::{Direction, EnergySpec, Ns, RadioTimes, Stream};
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// Entities: the source of arrivals, the server's sharing, its workers, the cells, the clients.
const SOURCE: u32 = 0;
const SHARING: u32 = 1;
const FIRST_WORKER: u32 = 2;

/// How many events between two calls of whoever wants to know.
const PROGRESS_EVENTS: u32 = 4096;

/// Time integrals of what there is of something, exact.
#[derive(Debug, Default)]
struct Load {
    at: Ns,
    in_flight: u64,
    in_system: u64,
    in_flight_ns: u128,
    in_system_ns: u128,
    busy_ns: u128,
    peak: u64,
}

/// Everything of a run.
pub(crate) struct Fleet<'a> {
    scenario: &'a Scenario,
    setup: &'a Setup,
    seed: u64,
    arrivals: Arrivals<'a>,
    next_arrival: Option<Ns>,
    queue: EventQueue,
    clients: Vec<Client>,
    free: Vec<u32>,
    server: Server,
    /// Handshakes that the application works on, and those that wait to be accepted.
    handshakes: u32,
    acceptable: VecDeque<(u32, u32)>,
    shared: Shared<'a>,
    first_cell: u32,
    first_client: u32,
    /// The first cell of each class.
    cells_of: Vec<u32>,
    load: Load,
    outcome: Outcome,
    arrived: u64,
    /// Sums of what Little's law is checked against.
    flight_ns: u128,
    sojourn_ns: u128,
    /// Worker time used until the first counted client arrived, and when that was.
    window: Option<(Ns, u128)>,
    window_end: (Ns, u128),
    now: Ns,
}

impl<'a> Fleet<'a> {
    pub fn new(scenario: &'a Scenario, setup: &'a Setup, replication: u32) -> Self {
        // The first replication has the scenario's own seed.
        let seed = if replication == 0 {
            scenario.seed
        } else {
            Stream::of(scenario.seed, u64::from(replication), ARRIVAL).next()
        };
        let clock_of = |entity| {
            // Where in a wheel's coarser levels a host's timers fall is as good as random.
            let phase = Stream::of(seed, entity, CLOCK).below(1 << 34);
            Jiffies::new(scenario.tcp.hz, Ns(phase))
        };
        let workers =
            if scenario.server.discipline == Discipline::Fifo { scenario.server.workers } else { 0 };
        let first_cell = FIRST_WORKER + workers;
        let mut cells = Vec::new();
        let mut cells_of = Vec::new();
        for (number, class) in setup.classes.iter().enumerate() {
            cells_of.push(cells.len() as u32);
            for cell in 0..class.cells {
                let entity = u64::MAX - ((number as u64) << 32 | u64::from(cell));
                cells.push(class.bearer.path(seed, entity));
            }
        }
        let first_client = first_cell + cells.len() as u32;
        let stream = Stream::of(seed, 0, ARRIVAL);
        let classes = setup
            .classes
            .iter()
            .map(|class| ClassOutcome { name: class.full.name.clone(), ..ClassOutcome::default() });
        let mut fleet = Self {
            scenario,
            setup,
            seed,
            arrivals: Arrivals::new(&scenario.arrivals, scenario.clients, stream),
            next_arrival: None,
            queue: EventQueue::new(),
            clients: Vec::new(),
            free: Vec::new(),
            server: Server::new(&scenario.server),
            handshakes: 0,
            acceptable: VecDeque::new(),
            shared: Shared {
                seed,
                tcp: &scenario.tcp,
                flush: scenario.flush,
                server_clock: clock_of(u64::MAX),
                cells,
                traffic: Traffic::default(),
                out: Vec::new(),
                instant: VecDeque::new(),
                touched_cells: Vec::new(),
            },
            first_cell,
            first_client,
            cells_of,
            load: Load::default(),
            outcome: Outcome {
                seed: scenario.seed,
                classes: classes.collect(),
                series: Series::new(setup.series),
                offered: offered(scenario, setup),
                ..Outcome::default()
            },
            arrived: 0,
            flight_ns: 0,
            sojourn_ns: 0,
            window: None,
            window_end: (Ns::ZERO, 0),
            now: Ns::ZERO,
        };
        fleet.next_arrival = fleet.arrivals.next();
        if let Some(first) = fleet.next_arrival {
            fleet.queue.set(SOURCE, first);
        }
        fleet
    }

    /// Runs to the end. `None` where `progress`, told of the clients that are through, breaks it off.
    pub fn run(
        mut self,
        replication: u32,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Option<Outcome> {
        let mut events = 0_u32;
        while let Some((now, entity)) = self.queue.pop() {
            assert!(now >= self.now, "time goes back from {} to {now} at entity {entity}", self.now);
            self.now = now;
            events = events.wrapping_add(1);
            if events.is_multiple_of(PROGRESS_EVENTS) {
                let through = self.arrived - self.load.in_flight;
                if progress(through).is_break() {
                    return None;
                }
            }
            if entity >= self.first_client {
                self.act(now, entity - self.first_client);
            } else if entity >= self.first_cell {
                self.cell(now, entity - self.first_cell);
            } else if entity >= FIRST_WORKER {
                self.worker(now, entity - FIRST_WORKER);
            } else if entity == SHARING {
                self.shared_service(now);
            } else {
                self.arrive(now);
            }
            self.start_jobs(now);
        }
        self.end(replication);
        Some(self.outcome)
    }

    fn client(&mut self, slot: u32) -> &mut Client {
        &mut self.clients[slot as usize]
    }

    fn plan(setup: &'a Setup, client: &Client) -> &'a Plan {
        let class = &setup.classes[usize::from(client.class)];
        match &class.resumed {
            Some(resumed) if client.resumes => resumed,
            _ => &class.full,
        }
    }

    /// Brings the integrals up to now, before anything that they are of changes.
    #[inline]
    fn advance(&mut self, now: Ns) {
        let passed = now.since(self.load.at);
        if passed == Ns::ZERO {
            return;
        }
        let busy = u64::from(self.server.busy());
        let load = &mut self.load;
        let span = u128::from(passed.0);
        load.in_flight_ns += u128::from(load.in_flight) * span;
        load.in_system_ns += u128::from(load.in_system) * span;
        load.busy_ns += u128::from(busy) * span;
        if self.setup.series > Ns::ZERO {
            let waiting = self.server.waiting() as u64;
            let series = &mut self.outcome.series;
            series.spread(load.at, now, load.in_flight, |interval, amount| interval.in_flight += amount);
            series.spread(load.at, now, busy, |interval, amount| interval.busy += amount);
            series.spread(load.at, now, waiting, |interval, amount| interval.waiting += amount);
        }
        load.at = now;
    }

    fn arrive(&mut self, now: Ns) {
        self.advance(now);
        while self.next_arrival.is_some_and(|next| next <= now) {
            self.next_arrival = self.arrivals.next();
            self.admit(now);
        }
        if let Some(next) = self.next_arrival {
            self.queue.set(SOURCE, next.max(now));
        }
    }

    fn admit(&mut self, now: Ns) {
        let number = self.arrived;
        self.arrived += 1;
        let counted = number >= self.scenario.warmup_clients;
        if counted {
            self.window.get_or_insert((now, self.load.busy_ns));
            self.outcome.counted += 1;
        }
        self.window_end = (now, self.load.busy_ns);
        let (class, resumes) = self.kind(number);
        let slot = self.free.pop().unwrap_or_else(|| {
            let slot = self.clients.len() as u32;
            self.clients.push(Client::new(slot, self.shared.server_clock));
            slot
        });
        let setup = self.setup;
        let of = &setup.classes[usize::from(class)];
        let cell =
            (of.cells > 0).then(|| self.cells_of[usize::from(class)] + (number % u64::from(of.cells)) as u32);
        let seed = self.seed;
        let hz = self.scenario.tcp.hz;
        let timed = !of.is_instant;
        let client = self.client(slot);
        client.number = number;
        client.class = class;
        client.resumes = resumes;
        client.counted = counted;
        client.is_active = true;
        client.attempt = 0;
        client.planned = now;
        client.ready = None;
        client.waited = Ns::ZERO;
        client.sides = Default::default();
        client.cell = cell;
        client.path = (timed && cell.is_none()).then(|| Box::new(of.bearer.path(seed, number)));
        if timed {
            client.clock = Jiffies::new(hz, Ns(Stream::of(seed, number, CLOCK).below(1 << 34)));
        }
        self.load.in_flight += 1;
        self.load.peak = self.load.peak.max(self.load.in_flight);
        self.outcome.arrived += 1;
        if counted {
            self.outcome.classes[usize::from(class)].counted += 1;
        }
        if let Some(interval) = self.outcome.series.at(now) {
            interval.arrived += 1;
        }
        self.begin(now, slot);
        self.act(now, slot);
    }

    fn kind(&self, number: u64) -> (u16, bool) {
        let classes = &self.setup.classes;
        if classes.len() == 1 && classes[0].resumption.is_never() {
            return (0, false);
        }
        let mut stream = Stream::of(self.seed, number, KIND);
        let share = stream.uniform();
        let class = self.setup.shares.iter().position(|upto| share < *upto).unwrap_or(classes.len() - 1);
        (class as u16, classes[class].resumption.happens(&mut stream))
    }

    fn begin(&mut self, now: Ns, slot: u32) {
        let setup = self.setup;
        let client = &mut self.clients[slot as usize];
        let plan = Self::plan(setup, client);
        let segment = setup.classes[usize::from(client.class)].segment_bytes;
        client.begin(now, plan, segment, &mut self.shared);
        client.gives_up = setup.timeout.map(|timeout| now + timeout);
        self.outcome.attempts += 1;
        if client.attempt > 1
            && let Some(interval) = self.outcome.series.at(now)
        {
            interval.retries += 1;
        }
    }

    /// Whatever of a client is due.
    fn act(&mut self, now: Ns, slot: u32) {
        let setup = self.setup;
        loop {
            let client = &mut self.clients[slot as usize];
            if !client.is_active {
                return;
            }
            let plan = Self::plan(setup, client);
            if client.resumes_at.is_some_and(|at| at <= now) {
                self.begin(now, slot);
                continue;
            }
            if let Some((_, direction, unit)) = client.path.as_mut().and_then(|path| path.take(now)) {
                if let Some(parcel) = unit.payload {
                    self.deliver(now, direction, &parcel);
                }
                continue;
            }
            if client.next().is_some_and(|next| next <= now) {
                if client.computes_until.is_some_and(|until| until <= now) {
                    client.computes_until = None;
                    client.finish(now, Direction::Up, plan, &mut self.shared);
                    if usize::from(client.sides[0].at) >= plan.ready_after && client.ready.is_none() {
                        self.ready(now, slot);
                    }
                } else if client.gives_up.is_some_and(|at| at <= now) {
                    self.fail(now, slot, Cause::Timeout);
                } else if let Err(cause) = client.expire(now, plan, &mut self.shared) {
                    self.fail(now, slot, cause);
                }
                continue;
            }
            if let Some((direction, parcel)) = self.shared.instant.pop_front() {
                self.deliver(now, direction, &parcel);
                continue;
            }
            if !self.think(now, slot) {
                break;
            }
        }
        self.settle(now, slot);
    }

    /// Puts the client's processor to work, and the server's in line for it. True where something happened at once.
    fn think(&mut self, now: Ns, slot: u32) -> bool {
        let setup = self.setup;
        let client = &mut self.clients[slot as usize];
        let plan = Self::plan(setup, client);
        if client.computes_until.is_none()
            && let Some(work) = client.work(now, Direction::Up, plan, &mut self.shared)
        {
            client.computes_until = Some(now + work.takes);
            return true;
        }
        if client.is_acceptable() {
            client.accepted = Accepted::Waiting;
            let generation = client.generation;
            self.acceptable.push_back((slot, generation));
            self.accept();
            return true;
        }
        if client.job.is_none() && client.has_work(Direction::Down, plan) {
            let generation = client.generation;
            self.advance(now);
            let id = self.server.enqueue(slot, generation, now);
            self.load.in_system += 1;
            self.client(slot).job = Some(id);
        }
        false
    }

    /// The application accepts what it has room for.
    fn accept(&mut self) {
        while self.scenario.server.max_handshakes.is_none_or(|most| self.handshakes < most) {
            let Some((slot, generation)) = self.acceptable.pop_front() else { return };
            let client = &mut self.clients[slot as usize];
            if client.is_active && client.generation == generation && client.accepted == Accepted::Waiting {
                client.accepted = Accepted::Yes;
                self.handshakes += 1;
                // It may have work waiting; its own turn will find it.
                let entity = self.first_client + slot;
                self.queue.set(entity, self.now);
            }
        }
    }

    fn admits(&self) -> Admits {
        let room = self.scenario.server.max_handshakes.is_none_or(|most| self.handshakes < most);
        let queue = self.scenario.server.accept_queue;
        let connection = room || queue.is_none_or(|most| (self.acceptable.len() as u64) < u64::from(most));
        Admits { connection, handshake: room }
    }

    fn deliver(&mut self, now: Ns, direction: Direction, parcel: &Parcel) {
        let admits = self.admits();
        let client = &mut self.clients[parcel.slot as usize];
        let plan = Self::plan(self.setup, client);
        let delivered = client.deliver(now, direction, parcel, plan, admits, &mut self.shared);
        if let Err(cause) = delivered {
            self.fail(now, parcel.slot, cause);
        }
    }

    /// A cell has something for somebody.
    fn cell(&mut self, now: Ns, cell: u32) {
        while let Some((_, direction, unit)) = self.shared.cells[cell as usize].take(now) {
            if let Some(parcel) = unit.payload {
                self.deliver(now, direction, &parcel);
                self.act(now, parcel.slot);
            }
        }
        self.shared.touched_cells.push(cell);
        self.schedule_cells();
    }

    fn schedule_cells(&mut self) {
        while let Some(cell) = self.shared.touched_cells.pop() {
            if let Some((due, _)) = self.shared.cells[cell as usize].next() {
                self.queue.set(self.first_cell + cell, due);
            }
        }
    }

    /// After anything that happened to a client: is it through, and if not, when will it act next?
    fn settle(&mut self, now: Ns, slot: u32) {
        self.schedule_cells();
        let setup = self.setup;
        let client = &mut self.clients[slot as usize];
        let plan = Self::plan(setup, client);
        let entity = self.first_client + slot;
        let over = client.is_over(plan);
        if client.accepted == Accepted::Yes
            && usize::from(client.sides[1].at) == plan.steps.len()
            && !client.sides[1].busy
        {
            client.accepted = Accepted::Over;
            self.handshakes -= 1;
            self.accept();
        }
        let client = &mut self.clients[slot as usize];
        if over && client.ready.is_some() {
            self.done(now, slot);
            return;
        }
        match client.next() {
            Some(next) => self.queue.set(entity, next.max(now)),
            None if client.ready.is_some() && client.job.is_none() && client.cell.is_none() => {
                // Nothing will bring what is missing; the client does not need it.
                self.retire(now, slot);
            }
            None => self.queue.clear(entity),
        }
    }

    fn ready(&mut self, now: Ns, slot: u32) {
        self.advance(now);
        self.load.in_flight -= 1;
        let client = &mut self.clients[slot as usize];
        client.ready = Some(now);
        client.gives_up = None;
        let took = now - client.planned;
        self.flight_ns += u128::from(took.0);
        self.outcome.last_ready_ns = self.outcome.last_ready_ns.max(now.0);
        if let Some(interval) = self.outcome.series.at(now) {
            interval.completed += 1;
        }
        if client.counted {
            self.outcome.completed += 1;
            self.outcome.ready.record_time(took);
            self.outcome.classes[usize::from(client.class)].ready.record_time(took);
            if let Some(connected) = client.connected {
                self.outcome.connect.record_time(connected - client.planned);
            }
        }
    }

    /// Both sides are through.
    fn done(&mut self, now: Ns, slot: u32) {
        let client = &self.clients[slot as usize];
        if client.counted {
            self.outcome.done.record_time(now - client.planned);
        }
        self.retire(now, slot);
    }

    /// The client leaves; its place is free for another.
    fn retire(&mut self, now: Ns, slot: u32) {
        let setup = self.setup;
        let client = &mut self.clients[slot as usize];
        self.shared.traffic.resent += client.retransmissions();
        if client.counted {
            self.outcome.client_wait.record_time(client.waited);
            self.outcome.client_cpu.record_time(client.sides[0].cpu);
            self.outcome.server_cpu.record_time(client.sides[1].cpu);
            let class = &setup.classes[usize::from(client.class)];
            let plan = Self::plan(setup, client);
            if let Some(energy) = client_energy_nj(client, class, plan, now) {
                self.outcome.energy.record(energy);
            }
        }
        client.is_active = false;
        client.transport = Transport::None;
        client.path = None;
        client.generation = client.generation.wrapping_add(1);
        self.queue.clear(self.first_client + slot);
        self.free.push(slot);
    }

    /// An attempt has failed.
    fn fail(&mut self, now: Ns, slot: u32, cause: Cause) {
        if self.clients[slot as usize].ready.is_some() {
            // The client got what it wanted; what is left is the server's.
            self.abandon(now, slot);
            self.retire(now, slot);
            return;
        }
        *self.outcome.attempt_failures.entry(cause).or_default() += 1;
        self.abandon(now, slot);
        let client = &mut self.clients[slot as usize];
        self.shared.traffic.resent += client.retransmissions();
        client.transport = Transport::None;
        client.generation = client.generation.wrapping_add(1);
        client.gives_up = None;
        client.computes_until = None;
        client.connected = None;
        for progress in &mut client.sides {
            progress.busy = false;
        }
        if let Some(retry) = self.scenario.retry.filter(|retry| client.attempt < retry.attempts) {
            let power = i32::try_from(client.attempt - 1).unwrap_or(i32::MAX);
            let pause = (retry.delay_s * libm::pow(retry.factor, f64::from(power))).min(retry.maximum_s);
            let entity = client.number << 16 | u64::from(client.attempt);
            let drawn = Stream::of(self.seed, entity, BACKOFF).uniform();
            let pause = pause * (1.0 - retry.jitter * drawn);
            client.resumes_at = Some(now + Ns::from_secs_f64(pause));
            return;
        }
        self.advance(now);
        self.load.in_flight -= 1;
        let client = &self.clients[slot as usize];
        self.flight_ns += u128::from((now - client.planned).0);
        if let Some(interval) = self.outcome.series.at(now) {
            interval.failed += 1;
        }
        if client.counted {
            *self.outcome.failed.entry(cause).or_default() += 1;
            self.outcome.classes[usize::from(client.class)].failed += 1;
        }
        self.retire(now, slot);
    }

    /// The client is gone, but the server does not know: what has come it works on all the same.
    fn abandon(&mut self, now: Ns, slot: u32) {
        let setup = self.setup;
        let client = &mut self.clients[slot as usize];
        let plan = Self::plan(setup, client);
        if client.accepted == Accepted::Yes {
            self.handshakes -= 1;
        }
        let Some(id) = client.job.take() else {
            client.accepted = Accepted::No;
            self.accept();
            return;
        };
        if client.sides[1].busy {
            // In service: its worker finds out when it is done with this piece.
            client.accepted = Accepted::No;
            self.accept();
            return;
        }
        let mut left = Ns::ZERO;
        while let Some(work) = client.work(now, Direction::Down, plan, &mut self.shared) {
            left += work.takes;
            client.sides[1].busy = false;
        }
        client.accepted = Accepted::No;
        self.server.job(id).orphaned = Some(left);
        self.accept();
    }

    /// Starts what can be started.
    fn start_jobs(&mut self, now: Ns) {
        while let Some(id) = self.server.next_to_start() {
            self.advance(now);
            let job = *self.server.job(id);
            let waited = now - job.since;
            let counts = self.counts(&job);
            if self.scenario.server.discipline == Discipline::Fifo {
                if counts {
                    self.outcome.wait.record_time(waited);
                }
                if job.orphaned.is_none() {
                    self.client(job.slot).waited += waited;
                }
            }
            match self.next_piece(now, id) {
                Some(takes) if self.scenario.server.discipline == Discipline::Fifo => {
                    let worker = self.server.assign(id);
                    self.queue.set(FIRST_WORKER + worker, now + takes);
                }
                Some(takes) => {
                    self.server.share(now, id, takes);
                    self.schedule_sharing(now);
                }
                None => self.job_over(now, id),
            }
        }
    }

    /// True where a job is of a client that counts.
    fn counts(&self, job: &crate::server::Job) -> bool {
        let client = &self.clients[job.slot as usize];
        if client.generation == job.generation { client.counted } else { self.window.is_some() }
    }

    /// How long a job's next piece takes, if there is one.
    fn next_piece(&mut self, now: Ns, id: JobId) -> Option<Ns> {
        let job = *self.server.job(id);
        if let Some(left) = job.orphaned {
            // Once; then nothing is left.
            self.server.job(id).orphaned = Some(Ns::ZERO);
            if left == Ns::ZERO {
                return None;
            }
            self.server.job(id).served += left;
            return Some(left);
        }
        let setup = self.setup;
        let client = &mut self.clients[job.slot as usize];
        if client.generation != job.generation || !client.is_active {
            return None;
        }
        let plan = Self::plan(setup, client);
        let work = client.work(now, Direction::Down, plan, &mut self.shared)?;
        self.server.job(id).served += work.takes;
        Some(work.takes)
    }

    /// A piece of a job is done.
    fn piece_done(&mut self, now: Ns, id: JobId) -> Option<Ns> {
        let job = *self.server.job(id);
        let setup = self.setup;
        let client = &mut self.clients[job.slot as usize];
        let is_there = job.orphaned.is_none() && client.is_active && client.generation == job.generation;
        if is_there {
            let plan = Self::plan(setup, client);
            client.finish(now, Direction::Down, plan, &mut self.shared);
        }
        let next = self.next_piece(now, id);
        if next.is_none() {
            self.job_over(now, id);
        }
        if is_there {
            self.act(now, job.slot);
        }
        next
    }

    fn job_over(&mut self, now: Ns, id: JobId) {
        self.advance(now);
        let job = *self.server.job(id);
        let sojourn = now - job.since;
        self.load.in_system -= 1;
        self.sojourn_ns += u128::from(sojourn.0);
        let counts = self.counts(&job);
        if counts {
            self.outcome.sojourn.record_time(sojourn);
        }
        if self.scenario.server.discipline == Discipline::Ps {
            // Under sharing, waiting is what service took longer than alone.
            let waited = sojourn.since(job.served);
            if counts {
                self.outcome.wait.record_time(waited);
            }
            if job.orphaned.is_none() {
                self.client(job.slot).waited += waited;
            }
        }
        let client = self.client(job.slot);
        if client.job == Some(id) {
            client.job = None;
        }
        self.server.forget(id);
    }

    fn worker(&mut self, now: Ns, worker: u32) {
        let Some(id) = self.server.job_of(worker) else { return };
        self.advance(now);
        match self.piece_done(now, id) {
            Some(takes) => self.queue.set(FIRST_WORKER + worker, now + takes),
            None => self.server.release(worker),
        }
    }

    fn shared_service(&mut self, now: Ns) {
        self.advance(now);
        while let Some(id) = self.server.take_shared(now) {
            if let Some(takes) = self.piece_done(now, id) {
                self.server.share(now, id, takes);
            }
        }
        self.schedule_sharing(now);
    }

    fn schedule_sharing(&mut self, now: Ns) {
        match self.server.next_shared(now) {
            Some(next) => self.queue.set(SHARING, next),
            None => self.queue.clear(SHARING),
        }
    }

    /// Nothing is due any more.
    fn end(&mut self, replication: u32) {
        let now = self.now;
        for slot in 0..self.clients.len() as u32 {
            if self.clients[slot as usize].is_active {
                if self.clients[slot as usize].ready.is_none() {
                    *self.outcome.attempt_failures.entry(Cause::Lost).or_default() += 1;
                    self.give_up(now, slot);
                } else {
                    self.retire(now, slot);
                }
            }
        }
        self.advance(now);
        let load = &self.load;
        assert_eq!(load.in_flight_ns, self.flight_ns, "Little's law fails for clients");
        assert_eq!(load.in_system_ns, self.sojourn_ns, "Little's law fails for the server's jobs");
        assert_eq!((load.in_flight, load.in_system), (0, 0), "somebody is still there");
        let outcome = &mut self.outcome;
        let traffic = self.shared.traffic;
        outcome.traffic = TrafficOutcome {
            packets: traffic.packets,
            up_bytes: traffic.bytes[0],
            down_bytes: traffic.bytes[1],
            retransmissions: traffic.resent,
            ..TrafficOutcome::default()
        };
        outcome.count_dropped(traffic.dropped);
        outcome.peak_in_flight = load.peak;
        outcome.virtual_ns = now.0;
        let (from, busy_before) = self.window.unwrap_or_default();
        // A storm is over before its load is, so all of it counts; a steady stream only while it lasts.
        let steady = !matches!(self.scenario.arrivals, ArrivalSpec::Storm { .. });
        let (to, busy) =
            if steady && self.window_end.0 > from { self.window_end } else { (now, load.busy_ns) };
        outcome.busy_ns = busy - busy_before;
        outcome.capacity_ns = u128::from((to - from).0) * u128::from(self.scenario.server.workers);
        outcome.replications.push(Replication {
            number: replication,
            ready: Moments::of(&outcome.ready),
            wait: Moments::of(&outcome.wait),
            sojourn: Moments::of(&outcome.sojourn),
        });
    }

    /// A client for which nothing more will happen.
    fn give_up(&mut self, now: Ns, slot: u32) {
        self.advance(now);
        self.load.in_flight -= 1;
        let client = &self.clients[slot as usize];
        self.flight_ns += u128::from((now - client.planned).0);
        if let Some(interval) = self.outcome.series.at(now) {
            interval.failed += 1;
        }
        if client.counted {
            *self.outcome.failed.entry(Cause::Lost).or_default() += 1;
            self.outcome.classes[usize::from(client.class)].failed += 1;
        }
        self.retire(now, slot);
    }
}

/// Server time asked for, per second and worker.
fn offered(scenario: &Scenario, setup: &Setup) -> Option<f64> {
    let per_s = match &scenario.arrivals {
        ArrivalSpec::Poisson { per_s } | ArrivalSpec::Fixed { per_s } => *per_s,
        ArrivalSpec::Bursts { per_s, size } => per_s * f64::from(*size),
        ArrivalSpec::Storm { .. } | ArrivalSpec::Times { .. } => return None,
    };
    Some(per_s * setup.server_mean_s / f64::from(scenario.server.workers))
}

/// What a client's radio and processor took, or `None` where some of it is unknown.
fn client_energy_nj(client: &Client, class: &Class, plan: &Plan, now: Ns) -> Option<u64> {
    let times = client.path.as_ref()?.times(client.planned, now);
    let radio_j = radio_j(&class.energy, &times)?;
    let cpu_j = plan.client_cpu_w? * client.sides[side(Direction::Up)].cpu.as_secs_f64();
    Some(((radio_j + cpu_j) * 1e9 + 0.5) as u64)
}

fn radio_j(energy: &EnergySpec, times: &RadioTimes) -> Option<f64> {
    let part = |power: Option<f64>, time: Ns| {
        if time == Ns::ZERO { Some(0.0) } else { power.map(|watts| watts * time.as_secs_f64()) }
    };
    let active = |power: Option<f64>, time: Ns, per_byte: Option<f64>, bytes: u64| {
        let moved = per_byte.map(|joules| joules * bytes as f64);
        match (part(power, time), moved) {
            (Some(by_time), Some(by_byte)) => Some(by_time + by_byte),
            (by_time, by_byte) => by_time.filter(|_| power.is_some() || bytes == 0).or(by_byte),
        }
    };
    Some(
        active(energy.send_w, times.sending, energy.send_j_per_byte, times.sent_bytes)?
            + active(energy.receive_w, times.receiving, energy.receive_j_per_byte, times.received_bytes)?
            + part(energy.setup_w, times.setting_up)?
            + part(energy.idle_w, times.waiting)?
            + part(energy.sleep_w, times.idle)?,
    )
}
