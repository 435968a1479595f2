//! One handshake over a path, repeated until its percentiles are precise enough; without arrivals and queue.
//!
//! If a handshake loses none of the packets that it sends on a path without loss, it proceeds as without loss; if
//! nothing else is random, one replay then gives its times. The number of these packets gives the probability.
//! Handshakes are therefore drawn from two strata, weighted by their probabilities: with and without a loss of such a
//! packet. Replays end when the 95 % interval of the 99th percentile is narrow enough, or when a budget is used up. The
//! budget counts events and draws, not time, so a seed gives the same result on every machine.

mod run;
mod sample;

use crate::checked::{check_tcp, class};
use crate::error::ScenarioError;
use crate::handshake::HandshakeSpec;
use crate::scenario::ClassSpec;
use crate::tcp::TcpConfig;
use run::{HandshakeResult, Replayer};
pub use sample::Times;
use sample::{Stratum, weighted};
use serde::{Deserialize, Serialize};
use shakedown_link::{BearerSpec, Ns};

/// The description of a replay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The handshake, with the work of both sides.
    pub handshake: HandshakeSpec,
    /// The path.
    pub bearer: BearerSpec,
    /// The TCP settings of both hosts.
    #[serde(default)]
    pub tcp: TcpConfig,
    /// The seed.
    pub seed: u64,
    /// A first answer: with a fortieth of the maximum work, and a twentieth of the minimum number of handshakes.
    #[serde(default)]
    pub coarse: bool,
}

/// The result of a replay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replayed {
    /// Times until the client may send application data, of the handshakes that reach this state.
    pub ready: Times,
    /// Times until both sides have finished, including tickets, of the handshakes that reach this state.
    pub done: Times,
    /// The share of handshakes that fail before the client is ready.
    pub failed: f64,
    /// Mean bytes on the link from and to the client, including the link's overhead.
    pub link_bytes: [f64; 2],
    /// Mean time in which the radio was set up, of the handshakes in `done`.
    pub setup_s: f64,
    /// The 95 % interval of the 99th percentile of `ready`; both ends are equal if it is exact.
    pub p99_interval_s: [f64; 2],
    /// The number of replayed handshakes.
    pub handshakes: u64,
    /// How many of them are in `done`; `None` if all handshakes without loss are equal and complete, so that one
    /// stands for all.
    pub completed: Option<u64>,
    /// The largest share of all handshakes, failed ones included, beyond which five replayed ones become ready.
    pub highest_share: f64,
}

/// Why a handshake cannot be replayed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReplayError {
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    #[error("TCP sends the same packets again without end: the path is slower than its timers")]
    Jammed,
}

/// The minimum number of handshakes of a stratum, so that its 99th percentile has an interval.
const MIN_HANDSHAKES: usize = 1000;
/// The maximum width of the intervals of the 99th percentile and of the mean, relative to their values.
const ACCURACY: f64 = 0.02;
/// Limits of the work: with packet loss, about 0.3 s; if only delays or work vary. An event counts [`EVENT_WORK`], and
/// a draw that decides the stratum of a handshake counts 1.
const WORK: [u64; 2] = [40_000_000, 10_000_000];
const EVENT_WORK: u64 = 16;
/// A coarse answer has this fraction of the work, and this minimum number of handshakes of a stratum.
const COARSE_PART: u64 = 40;
const MIN_COARSE_HANDSHAKES: usize = 50;
/// Replays without loss that determine the maximum number of packets, if handshakes vary.
const TRIALS: u64 = 32;
/// A quantile of `ready` is determined if at least this number of replayed handshakes is beyond it.
const BEYOND: usize = 5;
/// If handshakes without loss are less probable than this, all handshakes are drawn from one stratum.
const MIN_SHARE: f64 = 0.05;
/// The first numbers of the handshakes of the two strata and of those without loss; no two ranges overlap.
const FIRST: [u64; 3] = [1 << 40, 2 << 40, 3 << 40];

impl Replay {
    /// Runs the replay.
    ///
    /// # Errors
    /// [`ReplayError`] if a value is invalid, or if TCP retransmits without end.
    pub fn run(&self) -> Result<Replayed, ReplayError> {
        check_tcp(&self.tcp)?;
        let spec = ClassSpec {
            weight: 1.0,
            handshake: self.handshake.clone(),
            resumed: None,
            resumption: 0.0,
            resumption_steps: Vec::new(),
            bearer: self.bearer.clone(),
            cell: None,
            record_work_s: 0.0,
        };
        let class = class(0, &spec, None, &self.tcp)?;
        let mut replayer = Replayer::new(&class, &self.tcp, self.seed);
        let clear = class.bearer.without_loss();
        let first = replayer.run(&clear, FIRST[2])?;
        let varies = first.had_timer || !class.bearer.is_constant() || !class.full.is_constant();
        let loses = class.bearer.survival([1, 1]) < 1.0;
        if !varies && !loses {
            return Ok(Replayed::exactly(&first));
        }
        let mut units = first.units;
        for trial in 1..if varies && loses { TRIALS } else { 1 } {
            let result = replayer.run(&clear, FIRST[2] + trial)?;
            units = [0, 1].map(|way| units[way].max(result.units[way]));
        }
        let survives = class.bearer.survival(units);
        // If a full queue drops even the first packet, no packet can be lost, and no handshake would belong to the
        // second stratum.
        let loses = survives < 1.0;
        let mut strata = Vec::new();
        if !loses || survives < MIN_SHARE {
            strata.push(Stratum::new(1.0, FIRST[0], None));
        } else {
            let mut without = Stratum::new(survives, FIRST[0], Some(false));
            if !varies {
                without.add(&first);
                without.is_exact = true;
            }
            strata.push(without);
            strata.push(Stratum::new(1.0 - survives, FIRST[1], Some(true)));
        }
        let most = WORK[usize::from(!loses)] / if self.coarse { COARSE_PART } else { 1 };
        self.draw(&mut replayer, &mut strata, units, most)?;
        Ok(Replayed::of(&mut strata))
    }

    /// Adds handshakes to the strata until percentiles are accurate or the work is used up.
    fn draw(
        &self,
        replayer: &mut Replayer<'_>,
        strata: &mut [Stratum],
        units: [u32; 2],
        most: u64,
    ) -> Result<(), ReplayError> {
        let bearer = replayer.bearer();
        let mut draws = 0;
        let least = if self.coarse { MIN_COARSE_HANDSHAKES } else { MIN_HANDSHAKES };
        let mut wanted: Vec<usize> =
            strata.iter().map(|stratum| if stratum.is_exact { 0 } else { least }).collect();
        loop {
            for (stratum, wanted) in strata.iter_mut().zip(&wanted) {
                while !stratum.is_exact && stratum.handshakes() < *wanted {
                    if replayer.events() * EVENT_WORK + draws > most {
                        return Ok(());
                    }
                    let entity = stratum.next_entity();
                    let belongs = stratum
                        .loses
                        .is_none_or(|loses| loses == bearer.loses_any(self.seed, entity, units, &mut draws));
                    if belongs {
                        stratum.add(&replayer.run(bearer, entity)?);
                    }
                }
            }
            let Some(next) = sample::least_certain(strata, ACCURACY) else { return Ok(()) };
            wanted[next] = strata[next].handshakes() * 3 / 2;
        }
    }
}

impl Replayed {
    fn exactly(result: &HandshakeResult) -> Self {
        let exact = |at: Option<Ns>| Times::exactly(at.map(Ns::as_secs_f64));
        let ready = exact(result.ready);
        let at = result.ready.map_or(0.0, Ns::as_secs_f64);
        Self {
            ready,
            done: exact(result.done),
            failed: if result.ready.is_some() { 0.0 } else { 1.0 },
            link_bytes: result.bytes.map(|bytes| bytes as f64),
            setup_s: result.setting_up.as_secs_f64(),
            p99_interval_s: [at, at],
            handshakes: 1,
            completed: None,
            highest_share: 1.0,
        }
    }

    fn of(strata: &mut [Stratum]) -> Self {
        let ready = weighted(strata, |stratum| &stratum.ready);
        let done = weighted(strata, |stratum| &stratum.done);
        let drawn: f64 = strata.iter().filter(|stratum| stratum.handshakes() > 0).map(|one| one.weight).sum();
        let mean = |of: &dyn Fn(&Stratum) -> f64| {
            let found = strata.iter().filter(|stratum| stratum.handshakes() > 0);
            found.map(|stratum| stratum.weight * of(stratum)).sum::<f64>() / drawn
        };
        let is_exact = strata.iter().any(|stratum| stratum.is_exact && !stratum.done.is_empty());
        let determined = &ready[..ready.len().saturating_sub(BEYOND)];
        Self {
            failed: mean(&|stratum| stratum.failed as f64 / stratum.handshakes() as f64),
            link_bytes: [0, 1]
                .map(|way| mean(&|stratum| stratum.bytes[way] as f64 / stratum.handshakes() as f64)),
            setup_s: sample::mean_setup_s(strata),
            p99_interval_s: sample::p99_interval_s(strata, &ready),
            handshakes: strata.iter().map(|stratum| stratum.handshakes() as u64).sum(),
            completed: (!is_exact).then(|| strata.iter().map(|stratum| stratum.done.len() as u64).sum()),
            highest_share: determined.iter().map(|(_, weight)| weight).sum::<f64>() / drawn,
            ready: Times::compacted(&ready),
            done: Times::compacted(&done),
        }
    }
}
