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
//! | [`tcp`] | TCP as Linux does it, sans-IO |
//! | `datagram` | flights on datagrams, sent again as DTLS and WTLS do |
//! | `client`, `server`, `fleet` | clients and their connections; workers and jobs; one replication of it all |
//! | [`metrics`], [`outcome`] | histograms and series that merge; what came out |
//! | [`replay`] | one handshake, as often as its percentiles need, without arrivals and queue |
//! | `threads` | replications on several processors |

#![forbid(unsafe_code)]

pub mod arrivals;
mod client;
mod datagram;
pub mod energy;
mod fleet;
pub mod handshake;
pub mod metrics;
pub mod outcome;
pub mod queue;
pub mod replay;
pub mod scenario;
mod server;
pub mod tcp;
mod threads;

pub use handshake::{PricedHandshake, PricedMessage, Retransmission, Sender, TransportKind, written};
pub use outcome::{Outcome, Report};
pub use replay::{Replay, ReplayError, Replayed};
pub use scenario::{
    ArrivalSpec, ClassSpec, Discipline, Flush, RetrySpec, Scenario, ScenarioError, ServerSpec,
};

use scenario::Setup;
use shakedown_link::Stream;
use std::ops::ControlFlow;

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

    /// What is simulated.
    #[must_use]
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Server time that it asks for per second and worker, on average, in thousand-millionths; `None` where there is no
    /// rate.
    #[must_use]
    pub fn offered_e9(&self) -> Option<u64> {
        fleet::offered(&self.scenario, &self.setup).map(|offered| (offered * 1e9 + 0.5) as u64)
    }

    /// Runs one replication, of whatever number. Outcomes of different numbers merge.
    ///
    /// `progress` is told now and then how many clients are through; `None` where it breaks the run off.
    #[must_use]
    pub fn replication(
        &self,
        number: u32,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Option<Outcome> {
        if self.setup.network {
            fleet::Fleet::<true>::new(&self.scenario, &self.setup, number).run(number, progress)
        } else {
            fleet::Fleet::<false>::new(&self.scenario, &self.setup, number).run(number, progress)
        }
    }

    /// Runs all replications, one after another. `progress` is told of clients over all replications.
    #[must_use]
    pub fn run(&self, progress: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Option<Outcome> {
        let mut all: Option<Outcome> = None;
        let first = self.scenario.first_replication;
        for number in first..first + self.scenario.replications {
            let before = u64::from(number - first) * self.scenario.expected_clients();
            let outcome = self.replication(number, &mut |through| progress(before + through))?;
            match &mut all {
                None => all = Some(outcome),
                // Of one scenario and of different numbers, so nothing keeps them from merging.
                Some(all) => all.merge(&outcome).ok()?,
            }
        }
        all
    }
}
