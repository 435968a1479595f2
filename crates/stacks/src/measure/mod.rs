//! Measuring a suite: repetitions, set apart where they were preempted, kept and summarised.

pub(crate) mod error;
mod repetition;
mod result;
mod statistics;

pub use error::{MAX_REPEAT, MeasureError};
pub use result::{Accounting, Bytes, Measurement, MessageFigures, OperationFigures, PerSide, Unattributed};
pub use statistics::{Sampled, Summary};

use crate::carried::Exchanged;
use crate::machine::Machine;
use crate::peers::{Peers, prepare};
use crate::processor::Pinned;
use crate::settings::Settings;
use repetition::{Buffers, Repetition, repeat_once};
use shakedown_trace::{Carrier, Samples, Suite};
use std::ops::ControlFlow;

/// Handshakes that are run before the first that counts: they fill caches and blind private keys.
const WARM_UP: usize = 5;
/// Tries for each repetition asked for, before preempted ones are accepted as too many.
const TRIES: usize = 10;

/// The suites of a device's profile, and their tickets: together they have every kind of message of every protocol, and
/// every key family.
pub fn profile_suites() -> impl Iterator<Item = (&'static str, u32)> {
    include_str!("suites.txt").lines().map(|line| match line.split_once(' ') {
        Some((name, tickets)) => (name, tickets.parse().unwrap_or_default()),
        None => (line, 0),
    })
}

/// Told how much is done; may stop the work.
pub type Step<'a> = &'a mut dyn FnMut(usize) -> ControlFlow<()>;

/// Measures a suite `repeat` times.
///
/// `progress` is told how many repetitions are done, and may stop the work.
///
/// # Errors
/// [`MeasureError`]; a failed handshake ends the measurement.
pub fn measure(
    suite: &Suite,
    repeat: usize,
    settings: &Settings,
    progress: Step<'_>,
) -> Result<Measurement, MeasureError> {
    if !(1..=MAX_REPEAT).contains(&repeat) {
        return Err(MeasureError::Repetitions { suite: suite.to_string(), repeat });
    }
    let peers = prepare(suite, settings)?;
    let mut measurement = measure_peers(repeat, &peers, progress)?;
    // What a connection holds inside EAP is not what it holds by itself, and is not counted.
    if settings.carrier == Carrier::Bare {
        measurement.memory = crate::memory::measure(suite, settings)?;
    }
    Ok(measurement)
}

/// Measures whatever two peers run.
pub fn measure_peers(repeat: usize, peers: &Peers, progress: Step<'_>) -> Result<Measurement, MeasureError> {
    // Before pinning, after which this thread sees one processor only.
    let machine = Machine::detect();
    let _pinned = Pinned::to_current_processor();
    let mut buffers = Buffers::new(peers.counter);
    for _ in 0..WARM_UP {
        repeat_once(peers, &mut buffers)?;
    }
    let mut kept = Kept::new(peers);
    let mut preempted = Kept::new(peers);
    while kept.samples.len() < repeat
        && kept.samples.len() + preempted.samples.len() < repeat.saturating_mul(TRIES)
    {
        let repetition = repeat_once(peers, &mut buffers)?;
        let list = if repetition.preempted { &mut preempted } else { &mut kept };
        list.push(&repetition)?;
        if progress(kept.samples.len()).is_break() {
            return Err(MeasureError::Interrupted);
        }
    }
    let discarded = preempted.samples.len();
    // Figures with a warning are better than none.
    let used = if kept.samples.is_empty() { preempted } else { kept };
    let mut measurement =
        result::summarise(repeat, discarded, machine, &used.samples, used.spent, peers.seed);
    measurement.eap = used.exchanged();
    Ok(measurement)
}

/// Repetitions of one kind.
struct Kept {
    samples: Samples,
    spent: u64,
    exchanged: Vec<Exchanged>,
}

impl Kept {
    fn new(peers: &Peers) -> Self {
        let samples = Samples::new(peers.id.clone(), peers.counter);
        Self { samples, spent: 0, exchanged: Vec::new() }
    }

    /// What EAP carried in the median repetition by bytes; signatures in DER vary by a byte or two.
    fn exchanged(mut self) -> Option<Exchanged> {
        self.exchanged.sort_by_key(|one| one.eap_bytes);
        self.exchanged.get(self.exchanged.len().saturating_sub(1) / 2).copied()
    }

    fn push(&mut self, repetition: &Repetition) -> Result<(), MeasureError> {
        self.spent += repetition.spent;
        self.exchanged.extend(repetition.exchanged);
        let pushed = self.samples.push(&repetition.trace);
        pushed.map_err(|error| {
            let suite = self.samples.id.suite.to_string();
            MeasureError::Accounting { suite, error }
        })
    }
}
