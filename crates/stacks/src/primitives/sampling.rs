//! Repeats a workload until its results are precise enough.

use super::timing::{Spread, Timing, median_interval};
use super::{CacheDisturbingHandshake, Failure, Workload};
use crate::processor::context_switches;
use shakedown_trace::recorder::Event;
use shakedown_trace::{Counter, Primitive, Recording};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

const WARM_UP: usize = 3;
/// The minimum number of rounds, unless they take more than [`MAX_OVERRUN`] times the budget.
const MIN_ROUNDS: usize = 25;
const MAX_OVERRUN: u32 = 6;
/// Rounds after which a workload may end before its time, if every median is known to within [`GOOD_ENOUGH`] of itself.
/// Signatures by rejection sampling need more rounds, for the tail of their distribution.
const ENOUGH: usize = 300;
const ENOUGH_FOR_A_TAIL: usize = 1500;
const GOOD_ENOUGH: f64 = 0.002;
/// Symmetric work is timed with few and with many bytes; the difference is the cost of the bytes.
const FEW_BYTES: usize = 64;
const MANY_BYTES: usize = FEW_BYTES + 4096;

/// Readings of the primitives of one workload, in microseconds, each the mean of a round.
pub struct Readings {
    primitives: Vec<Primitive>,
    /// Of public-key calls, or of symmetric work on few bytes.
    few: Lists,
    /// Of symmetric work on many bytes.
    many: Lists,
}

#[derive(Default)]
struct Lists {
    quiet: Vec<Vec<f64>>,
    /// From rounds in which the thread was preempted.
    preempted: Vec<Vec<f64>>,
    preempted_rounds: usize,
}

impl Lists {
    fn new(primitives: usize) -> Self {
        Self {
            quiet: vec![Vec::new(); primitives],
            preempted: vec![Vec::new(); primitives],
            preempted_rounds: 0,
        }
    }

    #[allow(clippy::cast_precision_loss)] // nanoseconds of a round are far below 2^53
    fn enter(&mut self, primitives: &[Primitive], recording: &Recording, switched: bool) {
        self.preempted_rounds += usize::from(switched);
        let lists = if switched { &mut self.preempted } else { &mut self.quiet };
        for (primitive, list) in primitives.iter().zip(lists) {
            let (ns, count) = total(recording, *primitive);
            if count > 0 {
                list.push(ns as f64 / 1000.0 / count as f64);
            }
        }
    }

    fn rounds(&self) -> usize {
        self.quiet.iter().map(Vec::len).min().unwrap_or(0)
    }

    /// The spread of each primitive's readings. If too few rounds were not preempted, all count: a preemption lengthens
    /// only one call of a round, so the medians of the others remain valid.
    fn spreads(self) -> Vec<Spread> {
        let few = self.rounds() < MIN_ROUNDS;
        let lists = self.quiet.into_iter().zip(self.preempted);
        lists
            .map(|(mut quiet, preempted)| {
                if few {
                    quiet.extend(preempted);
                }
                Spread::of(&quiet, self.preempted_rounds)
            })
            .collect()
    }
}

/// Sum of one primitive's times in a recording, in nanoseconds, and its number of completed calls.
fn total(recording: &Recording, wanted: Primitive) -> (u64, u64) {
    let at = |ticks| recording.counter().convert(ticks);
    recording.events().iter().fold((0, 0), |(ns, count), event| match event {
        Event::Operation { primitive, start, end, counts, .. } if **primitive == wanted => {
            (ns + (at(*end) - at(*start)), count + u64::from(*counts))
        }
        _ => (ns, count),
    })
}

#[cfg(test)]
pub fn completed(recording: &Recording) -> Vec<Primitive> {
    let mut found = Vec::new();
    for event in recording.events() {
        if let Event::Operation { primitive, counts: true, .. } = event
            && !found.contains(*primitive)
        {
            found.push(**primitive);
        }
    }
    found
}

/// Records one round, and replaces the previous recording; true if the thread was preempted.
pub fn record<T>(
    recording: &mut Recording,
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<bool, Failure> {
    recording.clear();
    let before = context_switches();
    let outcome = recording.during(work);
    let switched = context_switches() != before;
    outcome.map(|_| switched)
}

impl Readings {
    /// Repeats a workload for about `budget`.
    pub fn take(
        workload: &mut Workload,
        primitives: Vec<Primitive>,
        budget: Duration,
        between: &mut CacheDisturbingHandshake,
        breathe: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Self, Failure> {
        let lists = || Lists::new(primitives.len());
        let mut readings = Self { few: lists(), many: lists(), primitives };
        let mut recording = Recording::new(Counter::NANOSECONDS);
        for _ in 0..WARM_UP {
            readings.round(workload, between, &mut recording, false)?;
        }
        let start = Instant::now();
        let mut rounds = 0;
        loop {
            readings.round(workload, between, &mut recording, true)?;
            rounds += 1;
            if breathe().is_break() {
                return Err(Failure::Interrupted);
            }
            let spent = start.elapsed();
            let exhausted = spent >= budget * MAX_OVERRUN && rounds >= 3;
            let planned = spent >= budget && readings.few.rounds() >= MIN_ROUNDS;
            if exhausted || planned || (rounds % 100 == 0 && readings.good_enough()) {
                return Ok(readings);
            }
        }
    }

    fn round(
        &mut self,
        workload: &mut Workload,
        between: &mut CacheDisturbingHandshake,
        recording: &mut Recording,
        counts: bool,
    ) -> Result<(), Failure> {
        between.run()?;
        match workload {
            Workload::PublicKey(work) => {
                let switched = record(recording, work)?;
                if counts {
                    self.few.enter(&self.primitives, recording, switched);
                }
            }
            Workload::Symmetric(work) => {
                let switched = record(recording, || work(FEW_BYTES))?;
                if counts {
                    self.few.enter(&self.primitives, recording, switched);
                }
                between.run()?;
                let switched = record(recording, || work(MANY_BYTES))?;
                if counts {
                    self.many.enter(&self.primitives, recording, switched);
                }
            }
        }
        Ok(())
    }

    fn good_enough(&self) -> bool {
        self.primitives.iter().zip(&self.few.quiet).all(|(primitive, list)| {
            let enough = if has_a_tail(*primitive) { ENOUGH_FOR_A_TAIL } else { ENOUGH };
            let mut sorted = list.clone();
            sorted.sort_unstable_by(f64::total_cmp);
            let (low, high) = median_interval(&sorted);
            list.len() >= enough && high - low <= 2.0 * GOOD_ENOUGH * low
        })
    }

    pub fn timings(self) -> Vec<Timing> {
        let rows = self.primitives.into_iter().zip(self.few.spreads().into_iter().zip(self.many.spreads()));
        rows.map(|(primitive, (few, many))| {
            let mut timing = Timing::new(primitive, few);
            if primitive.operation.is_symmetric() {
                let (per_call_us, per_kib_us) = line(few.median, many.median);
                timing.bytes = FEW_BYTES;
                timing.per_call_us = Some(per_call_us);
                timing.per_kib_us = Some(per_kib_us);
            }
            timing
        })
        .collect()
    }
}

/// True for signatures by rejection sampling, whose times have a long tail.
pub fn has_a_tail(primitive: Primitive) -> bool {
    primitive.algorithm == "mldsa" && primitive.operation == shakedown_trace::Operation::Sign
}

/// Cost per call and per KiB from the costs of few and of many bytes; neither is negative.
#[allow(clippy::cast_precision_loss)] // small numbers
fn line(few_us: f64, many_us: f64) -> (f64, f64) {
    let per_kib = ((many_us - few_us) / ((MANY_BYTES - FEW_BYTES) as f64 / 1024.0)).max(0.0);
    ((few_us - per_kib * FEW_BYTES as f64 / 1024.0).max(0.0), per_kib)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::float_cmp)] // exact in binary
    fn line_is_fitted_through_two_points() {
        assert_eq!(line(1.0, 5.0), (1.0 - 1.0 / 16.0, 1.0));
        assert_eq!(line(2.0, 1.0), (2.0, 0.0));
    }

    #[test]
    #[allow(clippy::float_cmp)] // exact in binary
    fn preempted_rounds_are_used_only_if_others_are_too_few() {
        let mut lists = Lists::new(1);
        (lists.quiet[0], lists.preempted[0], lists.preempted_rounds) =
            (vec![1.0; MIN_ROUNDS], vec![9.0; 100], 100);
        let spread = lists.spreads()[0];
        assert_eq!((spread.max, spread.n, spread.preempted), (1.0, MIN_ROUNDS, 100));
        let mut lists = Lists::new(1);
        (lists.quiet[0], lists.preempted[0], lists.preempted_rounds) = (vec![1.0; 2], vec![9.0; 3], 3);
        let spread = lists.spreads()[0];
        assert_eq!((spread.median, spread.n, spread.preempted), (9.0, 5, 3));
    }

    #[test]
    fn recording_is_summed_by_primitive() {
        use shakedown_trace::{Operation, recorder};
        let (one, other) = (
            Primitive::new(Operation::Sign, "rsa", "rsa512"),
            Primitive::new(Operation::Verify, "rsa", "rsa512"),
        );
        let mut recording = Recording::new(Counter::custom("steps", || 0));
        recording.during(|| {
            recorder::operation(one, 0, 5, 0, true);
            recorder::operation(other, 6, 7, 0, false);
            recorder::operation(one, 8, 10, 0, false);
        });
        assert_eq!(total(&recording, one), (7, 1));
        assert_eq!(total(&recording, other), (1, 0));
        assert_eq!(completed(&recording), [one]);
    }
}
