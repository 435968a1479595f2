//! Timing of primitives, and device profiles of the timings.

use crate::errors::CoreError;
use crate::{emit, with_reports};
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pythonize::{depythonize, pythonize};
use shakedown_stacks::machine::Machine;
use shakedown_stacks::primitives::{self, About, DEFAULT_SECONDS, Failure, Options, Timing};
use std::path::PathBuf;
use std::time::Duration;

/// Times every primitive that passes the filter; returns an object for each (operation, algorithm, parameters).
///
/// `progress` is called with the number of completed keys, groups and algorithms, their total number, and the name of
/// the current one; `timed` with the timings of each, except the last, when it is completed.
#[pyfunction(name = "primitives")]
#[pyo3(signature = (
    *, filter = None, seconds = DEFAULT_SECONDS, back_to_back = false, cache = None, progress = None, timed = None
))]
pub fn time<'py>(
    py: Python<'py>,
    filter: Option<Vec<String>>,
    seconds: f64,
    back_to_back: bool,
    cache: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
    timed: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = Options { filter: filter.unwrap_or_default(), seconds, back_to_back, cache };
    type State = (usize, usize, String);
    let report = |py: Python<'_>, (state, finished): (State, Vec<Timing>)| {
        if !finished.is_empty() {
            emit(py, timed.as_ref(), (pythonize(py, &finished)?,))?;
        }
        emit(py, progress.as_ref(), state)
    };
    let (timings, raised) = with_reports(py, Duration::ZERO, report, |step| {
        primitives::time(&options, &mut |state| {
            let name = [state.now.algorithm, state.now.parameters].join(" ");
            step(((state.done, state.total, name.trim_end().to_owned()), state.finished.to_vec()))
        })
    });
    raised.map_or(Ok(()), Err)?;
    Ok(pythonize(py, &timings.map_err(to_python)?)?)
}

/// The names of the primitives that pass the filter, as (operation, algorithm, parameters).
#[pyfunction(name = "primitive_names")]
#[pyo3(signature = (filter = None))]
pub fn names(filter: Option<Vec<String>>) -> Vec<(&'static str, &'static str, &'static str)> {
    let list = primitives::list(&filter.unwrap_or_default());
    list.into_iter().map(|one| (one.operation.as_str(), one.algorithm, one.parameters)).collect()
}

/// Timings of this machine as the text of a device profile.
#[pyfunction]
#[pyo3(signature = (timed, *, name, title, date))]
pub fn device_profile(
    timed: &Bound<'_, PyAny>,
    name: String,
    title: Option<String>,
    date: String,
) -> PyResult<String> {
    let timings: Vec<Timing> =
        depythonize(timed).map_err(|error| PyValueError::new_err(format!("timings: {error}")))?;
    let machine = Machine::detect();
    let title = title.unwrap_or_else(|| machine.cpu.clone());
    let source = format!("shakedown primitives, version {}, on this machine", env!("CARGO_PKG_VERSION"));
    let about = About { name, title, date, source, machine };
    primitives::device_profile(&about, &timings).map_err(CoreError::new_err)
}

fn to_python(error: Failure) -> PyErr {
    let message = error.to_string();
    match error {
        Failure::NoMatch { .. } | Failure::Seconds { .. } => PyValueError::new_err(message),
        Failure::Interrupted => PyKeyboardInterrupt::new_err(message),
        _ => CoreError::new_err(message),
    }
}
