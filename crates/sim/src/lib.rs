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
//! | `threads` | replications on several processors |

#![forbid(unsafe_code)]

mod arrivals;
mod client;
mod datagram;
mod energy;
mod fleet;
pub mod handshake;
pub mod metrics;
pub mod outcome;
pub mod queue;
pub mod scenario;
mod server;
pub mod tcp;
mod threads;

pub use handshake::{PricedHandshake, PricedMessage, Retransmission, Sender, TransportKind};
pub use outcome::{Outcome, Report};
pub use scenario::{
    ArrivalSpec, ClassSpec, Discipline, Flush, RetrySpec, Scenario, ScenarioError, ServerSpec,
};

use scenario::Setup;
use std::ops::ControlFlow;

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

    /// Runs one replication, of whatever number. Outcomes of different numbers merge.
    ///
    /// `progress` is told now and then how many clients are through; `None` where it breaks the run off.
    #[must_use]
    pub fn replication(
        &self,
        number: u32,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Option<Outcome> {
        fleet::Fleet::new(&self.scenario, &self.setup, number).run(number, progress)
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
