//! Discrete-event simulation of handshakes: virtual time over links, transports and a server's queue.
//!
//! A [`Scenario`] describes the arrivals, the handshakes ([`HandshakeSpec`]: messages in order, with the costs of
//! generating and processing each), the network ([`shakedown_link::BearerSpec`]) and the servers. A [`Simulation`] runs
//! it in replications, each with its own random numbers. Their [`Outcome`]s merge exactly: the same seed gives the same
//! bytes, in one process or on many machines, in any order. The crate has no wall clock, no I/O, and no threads other
//! than those of [`Simulation::run_on`].
//!
//! | module | what it is |
//! | --- | --- |
//! | [`scenario`] | the input: servers, classes of clients, retries, precision |
//! | [`handshake`] | the input: messages and their costs |
//! | [`arrivals`] | when clients arrive |
//! | `checked` | a checked scenario, ready to be simulated |
//! | [`queue`] | the event queue |
//! | [`access`] | media that the clients of a cell share, and how clients access them |
//! | [`limiter`] | the rate at which a server accepts connections, and how it refuses others |
//! | [`tcp`] | Linux's TCP, sans-IO |
//! | `datagram` | flights over datagrams, retransmitted as in DTLS and WTLS |
//! | `client` | a client and both ends of its connection |
//! | `server` | a server's workers, and jobs and connections that wait |
//! | `fleet` | one replication |
//! | [`records`] | records that clients send after their handshakes |
//! | [`scaling`] | autoscaling of servers |
//! | [`energy`] | the energy of handshakes |
//! | [`histogram`], [`series`], [`outcome`], [`report`] | results that merge exactly, and their summary |
//! | [`replay`] | one handshake, repeated until its percentiles are precise, without arrivals and queue |
//! | `threads` | replications on several threads |
//! | [`steady`] | duration and precision of the simulation of a steady load |
//! | [`trend`] | the number of first clients to exclude as warm-up, from the trend of the times of clients |

#![forbid(unsafe_code)]

pub mod access;
pub mod arrivals;
mod checked;
mod client;
mod datagram;
pub mod energy;
mod error;
mod fleet;
pub mod handshake;
pub mod histogram;
pub mod limiter;
pub mod outcome;
pub mod queue;
pub mod records;
pub mod replay;
pub mod report;
pub mod scaling;
pub mod scenario;
pub mod series;
mod server;
pub mod steady;
pub mod tcp;
mod threads;
pub mod trend;

pub use error::ScenarioError;
pub use handshake::{HandshakeSpec, MessageSpec, Retransmission, Sender, TransportKind, written};
pub use limiter::{AdmissionSpec, Refusal};
pub use outcome::{Merger, Outcome};
pub use records::RecordsSpec;
pub use replay::{Replay, ReplayError, Replayed};
pub use report::Report;
pub use scaling::ScalingSpec;
pub use scenario::{
    ArrivalSpec, Balance, ClassSpec, Discipline, Part, PrecisionSpec, RetrySpec, Scenario, ServerSpec,
};

use checked::Setup;
use shakedown_link::Stream;
use std::ops::ControlFlow;

/// Parts per thread, over all replications; more than one, so that slower threads can process fewer parts.
const PARTS_A_THREAD: usize = 2;
/// The maximum number of clients of a part that arrive within [`HOUR_S`], if there are enough servers. The state of
/// this many clients in flight fits into 200 MB.
const PART_CLIENTS: u64 = 50_000;
/// Limit of the parts that are made to save memory: every part draws the arrivals of all clients, about 40 ns per
/// client. For comparison, the simulation of a handshake over LTE takes 9 µs.
const MAX_PARTS: u64 = 256;
/// For the choice of parts, clients that arrived earlier than this count as finished.
const HOUR_S: f64 = 3600.0;

/// The seed of a replication; the first replication uses the scenario's seed.
#[must_use]
pub fn replication_seed(seed: u64, replication: u32) -> u64 {
    if replication == 0 { seed } else { Stream::of(seed, u64::from(replication), client::REPLICATION).next() }
}

/// A checked scenario, ready to run.
#[derive(Clone, Debug)]
pub struct Simulation {
    scenario: Scenario,
    setup: Setup,
}

impl Simulation {
    /// Checks a scenario.
    ///
    /// # Errors
    /// [`ScenarioError`] with the invalid value and the accepted values.
    pub fn new(scenario: Scenario) -> Result<Self, ScenarioError> {
        let setup = Setup::new(&scenario)?;
        Ok(Self { scenario, setup })
    }

    /// The scenario.
    #[must_use]
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The cell settings of a class (a kind of clients). `None` if each client has its own link, or without
    /// such a class.
    #[must_use]
    pub fn cell(&self, class: usize) -> Option<&access::CellOf> {
        self.setup.classes.get(class)?.cell.as_ref()
    }

    /// The cells of the replication with this seed.
    #[must_use]
    pub fn cells<P>(&self, seed: u64) -> access::Cells<P> {
        access::Cells::new(&self.setup.media, seed)
    }

    /// The offered load: mean worker time required per second and worker, in units of 10⁻⁹; `None` if arrivals have no
    /// rate.
    #[must_use]
    pub fn offered_e9(&self) -> Option<u64> {
        self.setup.offered_e9
    }

    /// The number of parts of each replication for N threads. It is enough to use all threads and to limit
    /// the memory of each part. The outcome does not depend on it.
    #[must_use]
    pub fn parts(&self, threads: usize) -> u32 {
        let busy = (PARTS_A_THREAD * threads).div_ceil(self.scenario.replications as usize) as u64;
        let within_s = self.scenario.arrivals.span_s().max(HOUR_S);
        let concurrent = (self.scenario.expected_clients() as f64 * (HOUR_S / within_s)) as u64;
        let held = concurrent.div_ceil(PART_CLIENTS).min(MAX_PARTS);
        let wanted = if threads > 1 { busy.max(held) } else { held };
        wanted.clamp(1, u64::from(self.scenario.parts())) as u32
    }

    /// Runs replication `number`, or a part of it. Outcomes of different replications and parts can be merged.
    ///
    /// Calls `progress` regularly with the number of clients that are ready or have failed; `None` if it stops the run.
    #[must_use]
    pub fn replication(
        &self,
        number: u32,
        part: Option<Part>,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Option<Outcome> {
        if self.setup.network {
            fleet::Fleet::<true>::new(&self.scenario, &self.setup, number, part).run(number, progress)
        } else {
            fleet::Fleet::<false>::new(&self.scenario, &self.setup, number, part).run(number, progress)
        }
    }

    /// Runs all replications once, one after another. [`run_on`](Self::run_on) also runs longer replications,
    /// until the scenario's precision is reached. `progress` counts the clients of all replications.
    #[must_use]
    pub fn run(&self, progress: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Option<Outcome> {
        let (mut all, mut before) = (Merger::default(), 0);
        for number in 0..self.pieces(1) {
            let outcome = self.piece(number, 1, &mut |through| progress(before + through))?;
            before += outcome.arrived;
            // Outcomes of one scenario with different numbers always merge.
            all.add(outcome).ok()?;
        }
        all.end().ok()?
    }

    /// The number of pieces for N threads. A piece is one part of one replication.
    pub(crate) fn pieces(&self, threads: usize) -> u32 {
        self.scenario.replications * self.parts(threads)
    }

    /// Runs one piece; pieces are numbered over all replications.
    pub(crate) fn piece(
        &self,
        piece: u32,
        threads: usize,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Option<Outcome> {
        let of = self.parts(threads);
        let part = (of > 1).then_some(Part { number: piece % of, of });
        self.replication(self.scenario.first_replication + piece / of, part, progress)
    }
}
