//! Measuring a suite: repetitions, set apart where they were disturbed, summarised.

mod repetition;
mod result;
mod statistics;

pub use result::{Books, Bytes, Measurement, MessageFigures, OperationFigures, PerSide, StackName};
pub use statistics::Summary;

use crate::machine::Machine;
use crate::processor::Pinned;
use crate::rig::{Rig, Settings, SetupError, prepare};
use repetition::{Repetition, repeat_once};
use shakedown_trace::Suite;
use shakedown_trace::driver::{DriveError, Wire};
use shakedown_trace::ledger::LedgerError;
use shakedown_trace::recorder::Tape;
use std::ops::ControlFlow;

/// Handshakes that are run before the first that counts: they fill caches and blind private keys.
const WARM_UP: usize = 5;
/// Tries for each repetition asked for, before disturbed ones are accepted as too many.
const TRIES: usize = 10;

/// Why a suite could not be measured.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // the messages say it
pub enum MeasureError {
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error("{suite}: {error}")]
    Handshake { suite: String, error: DriveError },
    #[error("{suite}: not the handshake that was asked for: {difference}")]
    WrongKind { suite: String, difference: String },
    #[error("{suite}: the books of a repetition do not close: {error}")]
    Ledger { suite: String, error: LedgerError },
    #[error("{suite}: messages hold {counted} bytes, but {travelled} travelled")]
    Bytes { suite: String, counted: u64, travelled: u64 },
    #[error("{suite}: repetitions differ in shape: {difference}")]
    Shape { suite: String, difference: String },
    #[error("{suite}: the number of repetitions must be at least 1")]
    NoRepetitions { suite: String },
    #[error("interrupted")]
    Interrupted,
}

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
    progress: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Measurement, MeasureError> {
    if repeat == 0 {
        return Err(MeasureError::NoRepetitions { suite: suite.to_string() });
    }
    let mut rig = prepare(suite, settings)?;
    let mut measurement = measure_rig(suite, repeat, rig.as_mut(), progress)?;
    measurement.memory = crate::memory::measure(suite, settings)?;
    Ok(measurement)
}

/// Measures whatever a rig makes.
///
/// # Errors
/// As [`measure`].
pub fn measure_rig(
    suite: &Suite,
    repeat: usize,
    rig: &mut dyn Rig,
    progress: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Measurement, MeasureError> {
    // Before pinning, after which this thread sees one processor only.
    let machine = Machine::look();
    let _pinned = Pinned::to_current_processor();
    let mut wire = Wire::new();
    let mut tape = Tape::default();
    let mut kept: Vec<Repetition> = Vec::with_capacity(repeat);
    let mut disturbed: Vec<Repetition> = Vec::new();
    for _ in 0..WARM_UP {
        let (_, used) = repeat_once(suite, rig, &mut wire, tape)?;
        tape = used;
    }
    while kept.len() < repeat && kept.len() + disturbed.len() < repeat.saturating_mul(TRIES) {
        let (repetition, used) = repeat_once(suite, rig, &mut wire, tape)?;
        tape = used;
        if repetition.disturbed { &mut disturbed } else { &mut kept }.push(repetition);
        if progress(kept.len()).is_break() {
            return Err(MeasureError::Interrupted);
        }
    }
    let preempted = disturbed.len();
    // Figures with a warning are better than none.
    let used = if kept.is_empty() { disturbed } else { kept };
    result::summarise(suite, repeat, preempted, machine, rig.stack(), &used)
}
