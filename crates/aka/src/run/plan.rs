//! A plan of attaches, and its run: mobiles attach in turn, with gaps, and move between two SGSNs.

use super::{Measured, Runner, Setting, Work};
use crate::sessions::Policy;
use crate::sgsn::Tally;
use serde::{Deserialize, Serialize};
use shakedown_link::{
    Bearer, BearerError, BearerSpec, Distribution, DistributionError, DistributionSpec, Ns, Probability,
    Purpose, Stream,
};
use shakedown_sim::HandshakeSpec;
use shakedown_sim::tcp::{Jiffies, TcpConfig};
use shakedown_virtual::wire::Hosts;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Between mobile and SGSN.
    pub bearer: BearerSpec,
    pub full: HandshakeSpec,
    pub resumed: HandshakeSpec,
    /// Number of attaches, one after the other.
    pub attaches: usize,
    /// Number of mobiles, which attach in turn.
    pub mobiles: usize,
    /// Mean of the exponential time between two attaches.
    pub gap_s: f64,
    /// Whether the mobiles' home network is another than the serving network.
    pub roaming: bool,
    /// Share of the attaches that go to another SGSN than the mobile's last.
    pub moves: f64,
    /// Requests of other mobiles to the SGSNs' processors per second.
    pub background_per_s: f64,
    pub workers: usize,
    /// Limit of a session's resumptions.
    pub max_resumptions: u32,
    pub max_age_s: f64,
    /// From a node's query to the other node's answer.
    pub core_round_trip_s: f64,
    /// Time of a mobile's preparation before each handshake.
    pub preparation: DistributionSpec,
    pub timeout_s: f64,
    pub seed: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Outcome {
    pub attaches: Vec<Measured>,
    /// Sessions that were offered and not resumed, by decision.
    pub not_resumed: BTreeMap<&'static str, u64>,
    /// Subscribers that moved from one SGSN to the other.
    pub handed_over: u64,
    pub background_served: u64,
    /// Duration of the run in virtual time.
    pub length_s: f64,
}

impl Outcome {
    /// Adds a node's counts.
    pub fn count(&mut self, tally: &Tally) {
        self.handed_over += tally.handed_over;
        for (decision, times) in &tally.not_resumed {
            *self.not_resumed.entry(*decision).or_default() += times;
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("the bearer: {0}")]
    Bearer(#[from] BearerError),
    #[error("a time: {0}")]
    Distribution(#[from] DistributionError),
    #[error("{option}: {given}; accepted: {accepted}")]
    Option { option: &'static str, given: f64, accepted: &'static str },
    #[error("interrupted")]
    Interrupted,
}

const GAP: Purpose = Purpose(102);
const MOVE: Purpose = Purpose(103);

fn seconds(option: &'static str, given: f64) -> Result<f64, PlanError> {
    let wrong = PlanError::Option { option, given, accepted: "0 to 1e9 seconds" };
    if (0.0..=1e9).contains(&given) { Ok(given) } else { Err(wrong) }
}

impl Plan {
    pub fn policy(&self) -> Result<Policy, PlanError> {
        Ok(Policy {
            max_resumptions: self.max_resumptions,
            max_age: Duration::from_secs_f64(seconds("age of sessions", self.max_age_s)?),
        })
    }

    fn setting(&self) -> Result<Setting, PlanError> {
        let tcp = TcpConfig::default();
        Ok(Setting {
            bearer: Bearer::try_from(&self.bearer)?,
            hosts: Hosts::of(&self.bearer, tcp, None, Jiffies::new(tcp.hz, Ns::ZERO)),
            full: Work::of(&self.full)?,
            resumed: Work::of(&self.resumed)?,
            preparation: Distribution::try_from(&self.preparation)?,
            core_round_trip: Ns::from_secs_f64(seconds("core round trip", self.core_round_trip_s)?),
            timeout: Ns::from_secs_f64(seconds("timeout", self.timeout_s)?),
            seed: self.seed,
        })
    }

    /// Runs the plan. `attach` attaches a mobile at a node; `step` gets the number of ended attaches, and may stop the
    /// run. The nodes' counts are [added](Outcome::count) afterwards.
    ///
    /// # Errors
    /// [`PlanError`], and errors of `attach`; failed attaches are in the outcome.
    pub fn run<E: From<PlanError>>(
        &self,
        attach: &mut dyn FnMut(&mut Runner, usize, usize) -> Result<Measured, E>,
        step: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Outcome, E> {
        let gap_s = seconds("gap", self.gap_s)?;
        let moves = Probability::new(self.moves);
        let moves =
            moves.ok_or(PlanError::Option { option: "moves", given: self.moves, accepted: "0 to 1" })?;
        let mut runner = Runner::new(self.setting()?, self.workers, self.background_per_s);
        let mut gaps = Stream::of(self.seed, 0, GAP);
        let mut moved = Stream::of(self.seed, 0, MOVE);
        let mut at = vec![0; self.mobiles.max(1)];
        let mut attaches = Vec::with_capacity(self.attaches);
        for number in 0..self.attaches {
            if step(number).is_break() {
                return Err(PlanError::Interrupted.into());
            }
            runner.now += Ns::from_secs_f64(gap_s * gaps.exponential());
            let place = number % at.len();
            if number >= at.len() && moves.happens(&mut moved) {
                at[place] = 1 - at[place];
            }
            attaches.push(attach(&mut runner, place, at[place])?);
        }
        let (background_served, length_s) = (runner.server.served, runner.now.as_secs_f64());
        Ok(Outcome { attaches, background_served, length_s, ..Outcome::default() })
    }
}
