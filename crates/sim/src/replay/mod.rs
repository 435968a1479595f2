//! One handshake over a path, replayed as often as its percentiles need: no arrivals, no queue.
//!
//! A handshake that loses none of the packets that it sends where nothing is lost is as it is without loss: where nothing else
//! varies, one replay says how that is. How probable it is follows from the number of these packets. So handshakes are
//! drawn from two strata, those that lose one of these packets and those that lose none, each with its probability as
//! weight. Replays go on until the interval (95 %) of the 99th percentile is narrow enough, or a budget of work is spent:
//! of events and draws, not of time, so the same seed gives the same answer on every machine.

mod run;
mod sample;

use crate::checked::{check_tcp, class};
use crate::error::ScenarioError;
use crate::handshake::PricedHandshake;
use crate::scenario::{ClassSpec, Flush};
use crate::tcp::TcpConfig;
use run::{One, Replayer};
pub use sample::Times;
use sample::{Stratum, weighted};
use serde::{Deserialize, Serialize};
use shakedown_link::{BearerSpec, Ns};

/// The description of a replay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The handshake, with the work of both sides.
    pub handshake: PricedHandshake,
    /// The path.
    pub bearer: BearerSpec,
    /// How both hosts do TCP.
    #[serde(default)]
    pub tcp: TcpConfig,
    /// When a side sends what it has made.
    #[serde(default)]
    pub flush: Flush,
    /// The seed.
    pub seed: u64,
    /// A first answer: a twentieth of the work at most, and of the handshakes at least.
    #[serde(default)]
    pub coarse: bool,
}

/// The result of a replay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replayed {
    /// Until the client may send application data; of the handshakes that get there.
    pub ready: Times,
    /// Until both sides are through, tickets included; of those that get there.
    pub done: Times,
    /// The share that gives up before the client is ready.
    pub failed: f64,
    /// Mean bytes on the link from and to the client, with all that it adds to packets.
    pub link_bytes: [f64; 2],
    /// Mean time in which the radio was set up; of those that get to `done`.
    pub setup_s: f64,
    /// Between which times the 99th percentile of `ready` lies (95 %); both the same where it is exact.
    pub p99_interval_s: [f64; 2],
    /// How many handshakes were replayed.
    pub handshakes: u64,
}

/// Why a handshake cannot be replayed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReplayError {
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    #[error("TCP sends the same packets again without end: the path is slower than its timers")]
    Jammed,
}

/// Handshakes of a stratum at least, so that its 99th percentile has an interval.
const MIN_HANDSHAKES: usize = 1000;
/// How wide the interval of the 99th percentile may be, and that of the mean.
const ACCURACY: f64 = 0.02;
/// Work in all where packets are lost, about 0.3 s, and where only delays or work vary: an event counts [`EVENT_WORK`], a
/// draw that decides of which stratum a handshake is counts 1.
const WORK: [u64; 2] = [40_000_000, 10_000_000];
const EVENT_WORK: u64 = 16;
/// A coarse answer has this part of that work, and at least so many handshakes of a stratum.
const COARSE_PART: u64 = 40;
const MIN_COARSE_HANDSHAKES: usize = 50;
/// A handshake without loss is replayed so often, where it varies, to find out how many packets it sends at most.
const TRIALS: u64 = 32;
/// Less probable strata are not told apart: all handshakes are drawn alike.
const MIN_SHARE: f64 = 0.05;
/// Where the random numbers of the strata begin: no two share a handshake.
const FIRST: [u64; 3] = [1 << 40, 2 << 40, 3 << 40];

impl Replay {
    /// Replays.
    ///
    /// # Errors
    /// [`ReplayError`] with what is wrong and what is accepted.
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
        let mut replayer = Replayer::new(&class, &self.tcp, self.flush, self.seed);
        let clear = class.bearer.without_loss();
        let first = replayer.run(&clear, FIRST[2])?;
        let varies = first.had_timer || !class.bearer.is_constant() || !class.full.is_constant();
        let loses = class.bearer.survival([1, 1]) < 1.0;
        if !varies && !loses {
            return Ok(Replayed::exactly(&first));
        }
        let mut units = first.units;
        for trial in 1..if varies && loses { TRIALS } else { 1 } {
            let one = replayer.run(&clear, FIRST[2] + trial)?;
            units = [0, 1].map(|way| units[way].max(one.units[way]));
        }
        let survives = class.bearer.survival(units);
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

    /// Adds handshakes to the strata until percentiles are accurate or the work is done.
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
    fn exactly(one: &One) -> Self {
        let exact = |at: Option<Ns>| Times::exactly(at.map(Ns::as_secs_f64));
        let ready = exact(one.ready);
        let at = one.ready.map_or(0.0, Ns::as_secs_f64);
        Self {
            ready,
            done: exact(one.done),
            failed: if one.ready.is_some() { 0.0 } else { 1.0 },
            link_bytes: one.bytes.map(|bytes| bytes as f64),
            setup_s: one.setting_up.as_secs_f64(),
            p99_interval_s: [at, at],
            handshakes: 1,
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
        Self {
            failed: mean(&|stratum| stratum.failed as f64 / stratum.handshakes() as f64),
            link_bytes: [0, 1]
                .map(|way| mean(&|stratum| stratum.bytes[way] as f64 / stratum.handshakes() as f64)),
            setup_s: sample::mean_setup_s(strata),
            p99_interval_s: sample::p99_interval_s(strata, &ready),
            handshakes: strata.iter().map(|stratum| stratum.handshakes() as u64).sum(),
            ready: Times::compacted(&ready),
            done: Times::compacted(&done),
        }
    }
}
