//! Circuits: a client occupies a channel until it leaves; a client that finds none free is refused (Erlang 1917).

use super::{Answers, ClientRef, Decision};
use crate::error::{ScenarioError, check};
use serde::{Deserialize, Serialize};
use shakedown_link::Ns;

/// Channels of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CircuitsSpec {
    /// The number of channels of each cell.
    pub channels: u32,
}

impl CircuitsSpec {
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        let channels = f64::from(self.channels);
        check("cell.entry.channels", channels, "1 to 100000", (1..=100_000).contains(&self.channels))
    }
}

/// The channels of one cell.
#[derive(Debug)]
pub(super) struct Circuits {
    free: u32,
}

impl Circuits {
    pub fn new(spec: &CircuitsSpec) -> Self {
        Self { free: spec.channels }
    }

    pub fn request<P>(&mut self, client: ClientRef, answers: &mut Answers<P>) {
        answers.tally.requests += 1;
        if self.free > 0 {
            self.free -= 1;
            answers.tally.admitted.push((Ns::ZERO, 1));
            answers.decisions.push(Decision::Admitted(client));
        } else {
            answers.tally.refused += 1;
            answers.decisions.push(Decision::Refused(client));
        }
    }

    /// A client that had a channel leaves.
    pub fn leave(&mut self) {
        self.free += 1;
    }
}
