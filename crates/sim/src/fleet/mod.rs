//! One replication: clients, links and the server in virtual time.

mod account;
mod admission;
mod departure;
mod open;
mod recorders;
mod service;
mod turn;

use crate::access::Cells;
use crate::arrivals::Arrivals;
use crate::checked::Setup;
use crate::client::{ARRIVAL, CLOCK, Client, DrawnAhead, Shared, Spare, Traffic};
use crate::limiter::Admissions;
use crate::outcome::{ClassOutcome, Outcome, Steady, Window};
use crate::queue::EventQueue;
use crate::scaling::Scaler;
use crate::scenario::{Discipline, Part, Scenario};
use crate::series::{Series, Stages};
use crate::server::{Jobs, Server};
use crate::tcp::Jiffies;
use crate::trend::Trend;
use account::Load;
use admission::Arrival;
use open::OpenConnections;
use recorders::Recorders;
use shakedown_link::{Ns, Stream};
use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};

/// Numbers of the event queue's entities, in this order: the source of arrivals, autoscaling, the records of open
/// connections, the servers (processor sharing), their workers (first come, first served), the cells, the clients.
const SOURCE: u32 = 0;
const SCALING: u32 = 1;
const RECORDS: u32 = 2;
const FIRST_SHARING: u32 = 3;

/// With more clients in flight than this, their state does not fit into a processor's cache, so the memory of
/// the clients that act next is prefetched.
const MANY: u64 = 500;
/// Clients whose memory is prefetched together.
const TOGETHER: usize = 16;

/// The number of turns between two reports of progress. In a turn one entity (a client, a worker, a cell)
/// acts.
const PROGRESS_TURNS: u32 = 4096;

/// The state of a run.
///
/// Without `NETWORK` the run is only the server's queue: no link and no transport takes time, so messages arrive when
/// they are sent.
pub(crate) struct Fleet<'a, const NETWORK: bool> {
    scenario: &'a Scenario,
    setup: &'a Setup,
    /// The part of the scenario that is simulated; `None`: all of it.
    part: Option<Part>,
    seed: u64,
    arrivals: Arrivals<'a>,
    next_arrival: Option<Arrival>,
    queue: EventQueue,
    clients: Vec<Client<'a>>,
    /// Free slots of `clients`, separate for each part. A client's slot, which determines the order of events at one
    /// time, therefore does not depend on the clients of other parts.
    free: Vec<Vec<u32>>,
    /// Server times that are drawn before their clients arrive; only without a network.
    ahead: Option<DrawnAhead<'a>>,
    servers: Vec<Server>,
    jobs: Jobs,
    /// Servers whose next job may start.
    may_start: Vec<u32>,
    /// Round robin: the server of the next connection.
    in_turn: u32,
    /// Starts and stops servers; `None`: all are in service.
    scaler: Option<Scaler>,
    /// Open connections after their handshakes; `None`: clients send no data after the handshake.
    open: Option<Box<OpenConnections<'a>>>,
    shared: Shared<'a>,
    first_worker: u32,
    first_cell: u32,
    first_client: u32,
    load: Load,
    outcome: Outcome,
    /// The number of clients in each stage, for the time series.
    stages: Stages,
    recorders: Recorders,
    /// Clients that have arrived, including those of other parts.
    numbered: u64,
    /// The numbers of the counted clients.
    counted: Range<u64>,
    /// Total time of all clients in flight, for the check of Little's law.
    flight_ns: u128,
    /// Total time of all jobs at the servers, waiting and in service, for the same check.
    sojourn_ns: u128,
    /// Changes of state so far: arrivals, deliveries, timers, ends of work.
    events: u64,
    /// The first counted arrival and the last arrival, with the workers' time used until each.
    window: Window,
    now: Ns,
}

impl<'a, const NETWORK: bool> Fleet<'a, NETWORK> {
    pub fn new(scenario: &'a Scenario, setup: &'a Setup, replication: u32, part: Option<Part>) -> Self {
        let seed = crate::replication_seed(scenario.seed, replication);
        let workers =
            if scenario.server.discipline == Discipline::Fifo { scenario.server.all_workers() } else { 0 };
        let first_worker = FIRST_SHARING + scenario.server.max_servers();
        let first_cell = first_worker + workers;
        let cells = Cells::new(&setup.media, seed);
        let first_client = first_cell + cells.count();
        let stream = Stream::of(seed, 0, ARRIVAL);
        let classes = setup
            .classes
            .iter()
            .map(|class| ClassOutcome { name: class.full.name.clone(), ..ClassOutcome::default() });
        let mut fleet = Self {
            scenario,
            setup,
            part,
            seed,
            arrivals: Arrivals::new(scenario, stream),
            next_arrival: None,
            queue: EventQueue::new(),
            clients: Vec::new(),
            free: vec![Vec::new(); setup.parts as usize],
            ahead: if NETWORK || part.is_some() { None } else { DrawnAhead::of(setup, seed) },
            servers: (0..scenario.server.max_servers()).map(|_| Server::new(&scenario.server)).collect(),
            jobs: Jobs::default(),
            may_start: Vec::new(),
            in_turn: 0,
            scaler: scenario
                .server
                .scaling
                .map(|spec| Scaler::new(spec, scenario.server.servers, scenario.server.workers)),
            open: OpenConnections::of(scenario).map(Box::new),
            shared: Shared {
                seed,
                tcp: &scenario.tcp,
                server_clock: Jiffies::drawn(scenario.tcp.hz, Stream::of(seed, u64::MAX, CLOCK)),
                classes: &setup.classes,
                cells,
                traffic: Traffic::default(),
                spare: Spare::default(),
                out: Vec::new(),
                instant: VecDeque::new(),
                handed: Vec::new(),
            },
            first_worker,
            first_cell,
            first_client,
            load: Load::default(),
            outcome: Outcome {
                seed: scenario.seed,
                classes: classes.collect(),
                admissions: scenario.server.admission.map(|_| Admissions::default()),
                series: Series::new(setup.series, setup.classes.len()),
                offered_e9: setup.offered_e9,
                steady: Steady::of(scenario, setup.memory_clients),
                trend: if scenario.precision.is_some() { Trend::begin() } else { Trend::default() },
                ..Outcome::default()
            },
            stages: Stages::of(setup.classes.len()),
            recorders: Recorders::of(setup.classes.len()),
            numbered: 0,
            counted: scenario.counted(),
            flight_ns: 0,
            sojourn_ns: 0,
            events: 0,
            window: Window::default(),
            now: Ns::ZERO,
        };
        fleet.next_arrival = fleet.next_own();
        if let Some(scaler) = &fleet.scaler {
            fleet.queue.set(SCALING, scaler.next());
        }
        fleet.open_earlier_connections();
        fleet
    }

    /// Runs to the end. Calls `progress` with the number of clients that are ready or have failed. Returns `None` if
    /// `progress` stops the run.
    pub fn run(
        mut self,
        replication: u32,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Option<Outcome> {
        let mut turns = 0_u32;
        let mut fetched = 0;
        while let Some((now, entity)) = self.next_event() {
            assert!(now >= self.now, "time goes back from {} to {now} at entity {entity}", self.now);
            self.now = now;
            turns = turns.wrapping_add(1);
            if turns.is_multiple_of(PROGRESS_TURNS) {
                let through = self.outcome.arrived - self.load.in_flight;
                if progress(through).is_break() {
                    return None;
                }
            }
            if fetched > 0 {
                fetched -= 1;
            } else if NETWORK && self.load.in_flight > MANY {
                fetched = self.fetch();
            }
            if entity >= self.first_client {
                self.act(now, entity - self.first_client);
            } else if entity >= self.first_cell {
                self.cell(now, entity - self.first_cell);
            } else if entity >= self.first_worker {
                self.worker(now, entity - self.first_worker);
            } else if entity >= FIRST_SHARING {
                self.shared_service(now, entity - FIRST_SHARING);
            } else if entity == SCALING {
                self.scale(now);
            } else if entity == RECORDS {
                self.send_records(now);
            } else {
                self.arrive(now);
            }
            self.start_jobs(now);
            if NETWORK {
                // A client that left may still have packets in its cell.
                self.schedule_cells();
            }
        }
        self.end(replication);
        Some(self.outcome)
    }

    /// The next entity to act, and when. Arrivals are ordered and known in advance, so they bypass the queue.
    #[inline]
    fn next_event(&mut self) -> Option<(Ns, u32)> {
        let Some(arrival) = self.next_arrival else { return self.queue.pop() };
        let before = self.queue.pop_before(arrival.at);
        Some(before.unwrap_or((arrival.at.max(self.now), SOURCE)))
    }

    /// Whether no arrival and no event remains.
    fn is_over(&self) -> bool {
        self.next_arrival.is_none() && self.queue.is_empty()
    }

    /// Prefetches the memory of the next clients, and returns their number.
    fn fetch(&self) -> usize {
        let mut count = 0;
        let mut sum = 0;
        for entity in self.queue.upcoming(TOGETHER) {
            count += 1;
            if let Some(slot) = entity.checked_sub(self.first_client) {
                sum ^= self.clients[slot as usize].touch();
            }
        }
        std::hint::black_box(sum);
        count
    }

    fn client(&mut self, slot: u32) -> &mut Client<'a> {
        &mut self.clients[slot as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn work() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(json!({"kind": "constant", "s": 0.0})),
            Just(json!({"kind": "constant", "s": 0.25})),
            Just(json!({"kind": "exponential", "minimum_s": 0.1, "mean_s": 0.4})),
        ]
    }

    fn handshake() -> impl Strategy<Value = Value> {
        let message = (any::<bool>(), 1_u32..3, work(), work()).prop_map(|(up, flight, generate, process)| {
            json!({"from": if up { "client" } else { "server" }, "name": "Finished", "bytes": 7, "flight": flight,
                   "unit": 0, "generate": generate, "process": process})
        });
        prop::collection::vec(message, 1..6).prop_map(|mut messages| {
            messages[0]["from"] = json!("client");
            json!({"name": "customer", "transport": "ideal", "messages": messages, "client_cpu_w": 2.0})
        })
    }

    /// Scenarios whose network takes no time, with all other options.
    fn scenario() -> impl Strategy<Value = Value> {
        let arrivals = prop_oneof![
            Just(json!({"kind": "poisson", "per_s": 2.0})),
            Just(json!({"kind": "deterministic", "per_s": 4.0})),
            Just(json!({"kind": "bursts", "per_s": 0.5, "size": 5})),
            Just(json!({"kind": "storm", "within_s": 2.0})),
        ];
        let retry = prop::option::of((0.0..2.0_f64, 0.0..=1.0_f64).prop_map(
            |(delay, jitter)| json!({"attempts": 3, "delay_s": delay, "factor": 2.0, "jitter": jitter}),
        ));
        let room = (prop::option::of(1_u32..4), prop::option::of(0_u32..3));
        let server = (1_u32..3, any::<bool>(), room).prop_map(|(workers, shares, (handshakes, queue))| {
            json!({"workers": workers, "discipline": if shares { "ps" } else { "fifo" },
                   "max_handshakes": handshakes, "accept_queue": queue})
        });
        let timeout = prop::option::of(prop::sample::select(&[0.25, 0.5, 1.0, 5.0][..]));
        let classes = ((handshake(), handshake()), handshake(), 0.0..=1.0_f64);
        let records = prop::option::of((0.1..2.0_f64, 1_u32..5));
        let run = (server, records, 0_u64..1000);
        (classes, arrivals, (retry, timeout), run).prop_map(
            |(((full, resumed), other, resumption), arrivals, (retry, timeout), (server, records, seed))| {
                let records = records.map(|(s, count)| json!({"interval_s": s, "count": count}));
                let bearer = json!({"up_bits_per_s": null, "down_bits_per_s": null, "traversal_s": 0.0});
                json!({"classes": [
                           {"handshake": full, "resumed": resumed, "resumption": resumption, "bearer": bearer,
                            "record_work_s": 0.05},
                           {"handshake": other, "bearer": bearer}],
                       "records": records,
                       "clients": 60, "warmup_clients": 5, "arrivals": arrivals, "retry": retry, "timeout_s": timeout,
                       "server": server, "series_s": 0.5, "seed": seed})
            },
        )
    }

    proptest! {
        /// Without a network the outcome is the same, byte for byte, as over a network that takes no time.
        #[test]
        fn zero_delay_network_gives_the_same_outcome_as_none(spec in scenario()) {
            let scenario: Scenario = serde_json::from_value(spec).expect("a scenario");
            let setup = Setup::new(&scenario).expect("valid");
            prop_assert!(!setup.network);
            let go = &mut |_| ControlFlow::Continue(());
            let with = Fleet::<true>::new(&scenario, &setup, 0, None).run(0, go).expect("not broken off");
            let without = Fleet::<false>::new(&scenario, &setup, 0, None).run(0, go).expect("not broken off");
            let text = |outcome: &Outcome| serde_json::to_string(outcome).expect("serialises");
            prop_assert_eq!(text(&with), text(&without));
        }
    }
}
