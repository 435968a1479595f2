//! Endpoints in virtual time: protocol engines with real cryptography, over the links and the TCP of a simulation.
//!
//! `shakedown-sim` replays recordings: messages of known lengths, each with a cost, under rules that model the
//! protocols. This crate runs the engines themselves, through the same [`Endpoint`] that the in-memory driver and the
//! servers use, so flights, fragments, duplicates, timers and timeouts are those of the engine. Time passes only on
//! links and in processors. The time of a computation is not measured: it is the cost of the messages that were read
//! and written, or zero.
//!
//! The input is the simulator's [`Scenario`] and the output its [`Outcome`], so the two can be compared;
//! [`agreement`] computes their difference.
//!
//! | module | contents |
//! | --- | --- |
//! | [`wire`] | TCP with the bytes that it carries, or datagrams, over one path |
//! | `party` | an endpoint, its clock and its processor |
//! | `costs` | the costs of a party's work |
//! | `client` | one client and the server's end of its connection |
//! | `workers` | the server's workers and their queue |
//! | `fleet` | one replication: arrivals, clients, workers, outcome |
//! | [`agreement`] | the distance of two outcomes |

#![forbid(unsafe_code)]

pub mod agreement;
mod client;
mod costs;
mod error;
mod fleet;
mod party;
pub mod wire;
mod workers;

pub use error::VirtualError;

use shakedown_sim::{ClassSpec, Discipline, Outcome, Scenario, Simulation};
use shakedown_trace::Endpoint;
use std::ops::ControlFlow;

/// The two ends of a new connection.
pub struct Ends {
    /// The side that sends first.
    pub client: Box<dyn Endpoint>,
    pub server: Box<dyn Endpoint>,
}

/// Creates the ends of a connection, given the number of the attempt over all clients and replications, from 0. An
/// error is one line.
pub type Maker<'a> = dyn FnMut(u64) -> Result<Ends, String> + 'a;

/// A checked scenario for endpoints, with the cost of each message to its sender and receiver. Endpoints must be
/// instrumented: their costs follow from the events that they report to the recorder.
#[derive(Clone, Debug)]
pub struct EndpointSimulation {
    simulation: Simulation,
}

impl EndpointSimulation {
    /// Checks a scenario. It must have one class of clients and a first-come, first-served server without limits.
    ///
    /// # Errors
    /// [`VirtualError::Scenario`] for an invalid scenario, [`VirtualError::Unsupported`] for one that needs a replay.
    pub fn new(scenario: Scenario) -> Result<Self, VirtualError> {
        let simulation = Simulation::new(scenario)?;
        let scenario = simulation.scenario();
        let unsupported = |key, accepted| Err(VirtualError::Unsupported { key, accepted });
        let [ClassSpec { resumed: None, .. }] = scenario.classes.as_slice() else {
            return unsupported("classes", "one, without a resumed handshake");
        };
        if scenario.server.discipline != Discipline::Fifo {
            return unsupported("server.discipline", "fifo");
        }
        if scenario.server.servers != 1 {
            return unsupported("server.servers", "1");
        }
        if scenario.server.admission.is_some() || scenario.server.scaling.is_some() {
            return unsupported("server.admission and server.scaling", "none");
        }
        if scenario.server.max_handshakes.is_some() || scenario.server.accept_queue.is_some() {
            return unsupported("server.max_handshakes and server.accept_queue", "none");
        }
        if scenario.classes.iter().any(|class| class.handshake.messages.len() > costs::MAX_MESSAGES) {
            return unsupported("handshake.messages", "at most 128");
        }
        if scenario.records.is_some() {
            return unsupported("records", "none");
        }
        Ok(Self { simulation })
    }

    pub fn scenario(&self) -> &Scenario {
        self.simulation.scenario()
    }

    /// Runs all replications, one after another. `progress` is regularly called with the number of finished clients;
    /// `None` if it stops the run.
    ///
    /// # Errors
    /// [`VirtualError`] if endpoints cannot be created, if a handshake fails for a reason other than the network, or if
    /// its messages are not those with costs.
    pub fn run(
        &self,
        make: &mut Maker<'_>,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Option<Outcome>, VirtualError> {
        let mut all: Option<Outcome> = None;
        let scenario = self.scenario();
        let first = scenario.first_replication;
        let mut made = 0;
        for number in first..first + scenario.replications {
            let before = u64::from(number - first) * scenario.expected_clients();
            let mut numbered = |_| {
                made += 1;
                make(made - 1)
            };
            let fleet = fleet::Fleet::new(&self.simulation, number, &mut numbered)?;
            let Some(outcome) = fleet.run(number, &mut |through| progress(before + through))? else {
                return Ok(None);
            };
            match &mut all {
                None => all = Some(outcome),
                Some(all) => all.merge(&outcome)?,
            }
        }
        Ok(all)
    }
}
