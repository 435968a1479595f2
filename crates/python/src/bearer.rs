//! Emulated bearers: running a command behind one, and measuring one.

use crate::errors::CoreError;
use crate::with_progress;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pythonize::{depythonize, pythonize};
use shakedown_live::bearer;

/// Runs a command behind a bearer; returns its exit status and the bearer's report. The plan is `RunPlan` of
/// `crates/live/src/bearer/run.rs`.
#[pyfunction]
pub fn bearer_run<'py>(py: Python<'py>, plan: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let plan: bearer::RunPlan = depythonize(plan)?;
    let outcome = py.detach(|| bearer::run(&plan)).map_err(|error| failed(py, &error))?;
    let answer = PyDict::new(py);
    answer.set_item("status", outcome.status)?;
    answer.set_item("report", pythonize(py, &outcome.report)?)?;
    Ok(answer.into_any())
}

/// Measures a bearer with probe packets. The plan is `CheckPlan` of `crates/live/src/bearer/check.rs`.
#[pyfunction]
pub fn bearer_check<'py>(py: Python<'py>, plan: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let plan: bearer::CheckPlan = depythonize(plan)?;
    let checked = with_progress(py, None, |step| bearer::check(&plan, &mut || step(0)))?;
    let checked = checked.map_err(|error| failed(py, &error))?;
    Ok(pythonize(py, &checked)?)
}

/// The exception, with the exit status for this error.
fn failed(py: Python<'_>, error: &bearer::BearerRunError) -> PyErr {
    let raised = CoreError::new_err(error.to_string());
    let set = raised.value(py).setattr("exit_status", error.exit_status());
    set.map_or_else(|error| error, |()| raised)
}
