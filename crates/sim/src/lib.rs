//! Discrete-event simulation of handshakes: virtual time over links, transports and a server's queue.
//!
//! A [`Scenario`] says who arrives when, what they speak ([`PricedHandshake`]: messages in order, with what each costs its
//! sender and its receiver), over what ([`shakedown_link::BearerSpec`]) and what serves them. A [`Simulation`] runs it in
//! replications, each with numbers of its own, whose [`Outcome`]s merge exactly: in one process or on many machines, in
//! whatever order, the same seed gives the same bytes. There is no wall clock and no I/O in here, and no thread but those
//! that [`Simulation::run_on`] gives whole replications.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`queue`] | who is due next |
//! | [`access`] | what clients of a cell share, and how they get in |
//! | [`limiter`] | how many connections a server begins in a time, and how it refuses others |
//! | [`tcp`] | TCP as Linux does it, sans-IO |
//! | `datagram` | flights on datagrams, sent again as DTLS and WTLS do |
//! | `client`, `server`, `fleet` | clients and their connections; workers and jobs; one replication of it all |
//! | [`records`] | what clients send after their handshakes |
//! | [`scaling`] | how many servers there are, where that follows the load |
//! | [`histogram`], [`series`], [`outcome`], [`report`] | what merges exactly, and what came out; the summary of it |
//! | [`replay`] | one handshake, as often as its percentiles need, without arrivals and queue |
//! | `threads` | replications on several processors |
//! | [`steady`], [`trend`] | how long a steady load is simulated, and how well its figures are known; its warm-up |

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
pub use handshake::{PricedHandshake, PricedMessage, Retransmission, Sender, TransportKind, written};
pub use limiter::{AdmissionSpec, Refusal};
pub use outcome::{Merger, Outcome};
pub use records::RecordsSpec;
pub use replay::{Replay, ReplayError, Replayed};
pub use report::Report;
pub use scaling::ScalingSpec;
pub use scenario::{
    ArrivalSpec, Balance, ClassSpec, Discipline, Flush, Part, PrecisionSpec, RetrySpec, Scenario, ServerSpec,
};

use checked::Setup;
use shakedown_link::Stream;
use std::ops::ControlFlow;

/// Parts for each thread that a replication has to itself, so that a slower one is given fewer.
const PARTS_A_THREAD: usize = 2;
/// The maximum number of clients of a part that arrive within [`HOUR_S`], if there are enough servers: their state in
/// flight fits into 200 MB.
const PART_CLIENTS: u64 = 50_000;
/// Parts that clients in flight are a reason for: each draws the arrivals of all, about 40 ns each where a handshake over LTE
/// takes 9 µs.
const MOST_PARTS: u64 = 256;
/// For the choice of parts, clients that arrived earlier than this count as finished.
const HOUR_S: f64 = 3600.0;

/// The seed of a replication; the first has the scenario's own.
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
    /// [`ScenarioError`] with what is wrong and what is accepted.
    pub fn new(scenario: Scenario) -> Result<Self, ScenarioError> {
        let setup = Setup::new(&scenario)?;
        Ok(Self { scenario, setup })
    }

    /// The scenario.
    #[must_use]
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// What a class has to do with its cells; `None`: each client has a link of its own.
    #[must_use]
    pub fn cell(&self, class: usize) -> Option<&access::CellOf> {
        self.setup.classes.get(class)?.cell.as_ref()
    }

    /// The cells of one replication, by its seed.
    #[must_use]
    pub fn cells<P>(&self, seed: u64) -> access::Cells<P> {
        access::Cells::new(&self.setup.media, seed)
    }

    /// Server time that it asks for per second and worker, on average, in thousand-millionths; `None` where there is no
    /// rate.
    #[must_use]
    pub fn offered_e9(&self) -> Option<u64> {
        self.setup.offered_e9
    }

    /// The number of parts of each replication for N threads: enough parts to use all threads, and few enough clients
    /// each to be held in memory together. What comes out does not depend on it.
    #[must_use]
    pub fn parts(&self, threads: usize) -> u32 {
        let busy = (PARTS_A_THREAD * threads).div_ceil(self.scenario.replications as usize) as u64;
        let within_s = self.scenario.arrivals.span_s().max(HOUR_S);
        let together = (self.scenario.expected_clients() as f64 * (HOUR_S / within_s)) as u64;
        let held = together.div_ceil(PART_CLIENTS).min(MOST_PARTS);
        let wanted = if threads > 1 { busy.max(held) } else { held };
        wanted.clamp(1, u64::from(self.scenario.parts())) as u32
    }

    /// Runs one replication, of whatever number, or a part of it. Outcomes of different numbers and parts merge.
    ///
    /// `progress` is told now and then how many clients are through; `None` where it breaks the run off.
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

    /// Runs all replications, one after another. `progress` is told of clients over all replications.
    #[must_use]
    pub fn run(&self, progress: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Option<Outcome> {
        let (mut all, mut before) = (Merger::default(), 0);
        for number in 0..self.pieces(1) {
            let outcome = self.piece(number, 1, &mut |through| progress(before + through))?;
            before += outcome.arrived;
            // Of one scenario and of different numbers, so nothing keeps them from merging.
            all.add(outcome).ok()?;
        }
        all.end().ok()?
    }

    /// Replications and their parts, for N threads.
    pub(crate) fn pieces(&self, threads: usize) -> u32 {
        self.scenario.replications * self.parts(threads)
    }

    /// One of them.
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
