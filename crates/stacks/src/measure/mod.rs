//! Measures a suite: repeats its handshake, discards preempted repetitions, and summarises the others.

pub(crate) mod error;
mod repetition;
mod result;
mod samples;
mod statistics;

pub use error::{MAX_REPEAT, MeasureError};
pub use result::{Accounting, Bytes, Measurement, MessageFigures, OperationFigures, PerSide, Unattributed};
pub use statistics::{Sampled, Summary};

use crate::machine::Machine;
use crate::peers::{Peers, prepare};
use crate::processor::Pinned;
use crate::settings::Settings;
use repetition::{Buffers, repeat_once};
use samples::Samples;
use shakedown_trace::{Carrier, Suite};
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

/// A callback that gets the progress, and may stop the work.
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
    // Inside EAP a connection needs a different amount of memory, which is not counted.
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
    let (mut kept, mut preempted) = (Samples::default(), Samples::default());
    while kept.len() < repeat && kept.len() + preempted.len() < repeat.saturating_mul(TRIES) {
        let repetition = repeat_once(peers, &mut buffers)?;
        let list = if repetition.preempted { &mut preempted } else { &mut kept };
        list.push(&repetition).map_err(|error| {
            let suite = peers.id.suite.to_string();
            MeasureError::Accounting { suite, error }
        })?;
        if progress(kept.len()).is_break() {
            return Err(MeasureError::Interrupted);
        }
    }
    let discarded = preempted.len();
    // If every repetition was preempted, their figures are used; `discarded` shows this.
    let used = if kept.is_empty() { preempted } else { kept };
    Ok(result::summarise(&used, peers, repeat, discarded, machine))
}
