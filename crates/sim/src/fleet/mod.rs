//! One replication: clients, links and the server in virtual time.

mod account;
mod admission;
mod departure;
mod records;
mod service;
mod turn;

use crate::arrivals::Arrivals;
use crate::client::{ARRIVAL, CLOCK, Client, Shared, Spare, Traffic};
use crate::handshake::Plan;
use crate::metrics::Series;
use crate::outcome::{ClassOutcome, Outcome, Window};
use crate::queue::EventQueue;
use crate::scenario::{Discipline, Scenario, Setup};
use crate::server::Server;
use crate::tcp::Jiffies;
use account::Load;
pub(crate) use account::offered;
use records::Records;
use shakedown_link::{Ns, Stream};
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// Entities: the source of arrivals, the server's sharing, its workers, the cells, the clients.
const SOURCE: u32 = 0;
const SHARING: u32 = 1;
const FIRST_WORKER: u32 = 2;

/// From so many clients in flight on they do not fit a processor's cache, and most of a turn is waiting for memory.
const MANY: u64 = 500;
/// Clients whose memory is waited for together.
const TOGETHER: usize = 16;

/// How many turns between two reports of progress.
const PROGRESS_TURNS: u32 = 4096;

/// Everything of a run.
///
/// Without a `NETWORK` it is a queue and nothing else: every class's links take no time, and what is sent is there.
pub(crate) struct Fleet<'a, const NETWORK: bool> {
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
    records: Records,
    arrived: u64,
    /// Sums of what Little's law is checked against.
    flight_ns: u128,
    sojourn_ns: u128,
    /// Changes of state so far: arrivals, deliveries, timers, ends of work.
    events: u64,
    /// Parts of clients' energy that are not known, by bit.
    energy_missing: u8,
    /// When clients arrived, and the worker time used until then.
    window: Window,
    now: Ns,
}

impl<'a, const NETWORK: bool> Fleet<'a, NETWORK> {
    pub fn new(scenario: &'a Scenario, setup: &'a Setup, replication: u32) -> Self {
        let seed = crate::replication_seed(scenario.seed, replication);
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
                cells.push(class.cell.path(seed, entity));
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
            arrivals: Arrivals::new(scenario, stream),
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
                spare: Spare::default(),
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
                offered_e9: offered(scenario, setup).map(|offered| (offered * 1e9 + 0.5) as u64),
                ..Outcome::default()
            },
            records: Records::of(setup.classes.len()),
            arrived: 0,
            flight_ns: 0,
            sojourn_ns: 0,
            events: 0,
            energy_missing: 0,
            window: Window::default(),
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
        let mut turns = 0_u32;
        let mut fetched = 0;
        while let Some((now, entity)) = self.queue.pop() {
            assert!(now >= self.now, "time goes back from {} to {now} at entity {entity}", self.now);
            self.now = now;
            turns = turns.wrapping_add(1);
            if turns.is_multiple_of(PROGRESS_TURNS) {
                let through = self.arrived - self.load.in_flight;
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
            } else if entity >= FIRST_WORKER {
                self.worker(now, entity - FIRST_WORKER);
            } else if entity == SHARING {
                self.shared_service(now);
            } else {
                self.arrive(now);
            }
            self.start_jobs(now);
            if NETWORK {
                // Also what a client put into its cell that has left since.
                self.schedule_cells();
            }
        }
        self.end(replication);
        Some(self.outcome)
    }

    /// Has the memory of those who are next brought near, and says how many they are.
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

    fn client(&mut self, slot: u32) -> &mut Client {
        &mut self.clients[slot as usize]
    }

    #[inline]
    fn plan(setup: &'a Setup, client: &Client) -> &'a Plan {
        setup.classes[usize::from(client.class)].plan(client.resumes)
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

    /// Scenarios in which all that is sent is there at once, with whatever else there is.
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
        let flush = prop::sample::select(&["flight", "message"][..]);
        let classes = ((handshake(), handshake()), handshake(), 0.0..=1.0_f64);
        (classes, arrivals, (retry, timeout, flush), server, 0_u64..1000).prop_map(
            |(((full, resumed), other, resumption), arrivals, (retry, timeout, flush), server, seed)| {
                let bearer = json!({"up_bits_per_s": null, "down_bits_per_s": null, "traversal_s": 0.0});
                json!({"classes": [
                           {"handshake": full, "resumed": resumed, "resumption": resumption, "bearer": bearer},
                           {"handshake": other, "bearer": bearer}],
                       "clients": 60, "warmup_clients": 5, "arrivals": arrivals, "retry": retry, "timeout_s": timeout,
                       "flush": flush, "server": server, "series_s": 0.5, "seed": seed})
            },
        )
    }

    proptest! {
        /// Without a network the same comes out, to the byte, as over one that takes no time.
        #[test]
        fn a_network_that_takes_no_time_is_none(spec in scenario()) {
            let scenario: Scenario = serde_json::from_value(spec).expect("a scenario");
            let setup = Setup::new(&scenario).expect("valid");
            prop_assert!(!setup.network);
            let go = &mut |_| ControlFlow::Continue(());
            let with = Fleet::<true>::new(&scenario, &setup, 0).run(0, go).expect("not broken off");
            let without = Fleet::<false>::new(&scenario, &setup, 0).run(0, go).expect("not broken off");
            let text = |outcome: &Outcome| serde_json::to_string(outcome).expect("serialises");
            prop_assert_eq!(text(&with), text(&without));
        }
    }
}
