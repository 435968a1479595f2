//! Measures a suite: repeats its handshake, discards preempted repetitions, and summarises the others.

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

/// Handshakes that run before the first counted one: they fill caches and create the blinding of private keys.
const WARM_UP: usize = 5;
/// Limit of all repetitions, preempted ones included, as a multiple of the requested number.
const TRIES: usize = 10;

/// The suites that are measured for a device's profile, and their tickets: together they contain every kind of message
/// of every protocol, and every key family.
pub fn profile_suites() -> impl Iterator<Item = (&'static str, u32)> {
    include_str!("suites.txt").lines().map(|line| match line.split_once(' ') {
        Some((name, tickets)) => (name, tickets.parse().unwrap_or_default()),
        None => (line, 0),
    })
}

/// Is called with the progress, and may stop the work.
pub type Step<'a> = &'a mut dyn FnMut(usize) -> ControlFlow<()>;

/// Measures a suite `repeat` times.
///
/// `progress` is called with the number of completed repetitions, and may stop the work.
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
    // Inside EAP a connection needs another amount of memory, which is not counted.
    if settings.carrier == Carrier::Bare {
        measurement.memory = crate::memory::measure(suite, settings)?;
    }
    Ok(measurement)
}

/// Measures the handshake of two peers.
pub fn measure_peers(repeat: usize, peers: &Peers, progress: Step<'_>) -> Result<Measurement, MeasureError> {
    // Must precede pinning: a pinned thread sees only one processor.
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
    // If every repetition was preempted, their figures are used; `discarded` shows this.
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

    /// The round trips, fragments and bytes of EAP in the repetition with the median number of bytes. (DER signatures
    /// vary in length by a byte or two.)
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
