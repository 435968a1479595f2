//! Load on a server.

use crate::errors::{CoreError, InvalidOption, to_python};
use crate::options::{for_suite, for_suites, read};
use crate::{emit, with_progress, with_reports};
use pyo3::prelude::*;
use pythonize::pythonize;
use shakedown_live::connection_cost;
use shakedown_live::load::{Config, LoadError, Parts, Progress, merge, run};
use shakedown_stacks::SetupError;
use shakedown_stacks::measure::MeasureError;
use std::time::Duration;

/// Loads a target, and returns its counts for `merge_loads`. `progress` is called about ten times per second with the
/// progress of the run. An exception ends the run: after Ctrl-C, the figures so far are returned as interrupted; after
/// any other exception, they are lost.
#[pyfunction(name = "load")]
#[pyo3(signature = (config, *, suite = None, options = None, progress = None))]
pub fn load<'py>(
    py: Python<'py>,
    config: &Bound<'py, PyAny>,
    suite: Option<&str>,
    options: Option<&Bound<'py, PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let config: Config = read(config, "options")?;
    let (suites, settings) = for_suites(py, options, suite.map(crate::parse).transpose()?.as_slice())?;
    let report = |py: Python<'_>, now: Progress| emit(py, progress.as_ref(), (pythonize(py, &now)?,));
    let (counted, raised) = with_reports(py, Duration::ZERO, report, |step| {
        run(&config, suites.first(), &settings, &mut |now| step(now.clone()))
    });
    crate::notices::keep(&settings.notices);
    if let Some(error) = raised
        // Ctrl-C before the run has figures, for example during the generation of keys, is no failure of the target.
        && (counted.is_err() || !error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py))
    {
        return Err(error);
    }
    Ok(pythonize(py, &counted.map_err(refused)?)?)
}

/// Adds the counts of several generators; None if there are none.
#[pyfunction]
pub fn merge_loads<'py>(py: Python<'py>, parts: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let parts: Vec<Parts> = read(parts, "parts of a load")?;
    Ok(pythonize(py, &merge(parts))?)
}

/// The suites that are served to measure the cost of a connection: names, tickets, and the clients' stack.
#[pyfunction]
pub fn connection_plans() -> Vec<(&'static str, u32, &'static str)> {
    connection_cost::PLANS.map(|(suite, tickets)| (suite, tickets, connection_cost::CLIENT_STACK)).to_vec()
}

/// CPU time per connection of a served suite, by side: of a server on the first of the processors, and of its clients
/// on the last.
#[pyfunction]
#[pyo3(signature = (suite, seconds, processors, *, options = None))]
pub fn connection_served<'py>(
    py: Python<'py>,
    suite: &str,
    seconds: f64,
    processors: Vec<usize>,
    options: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (suite, settings, _) = for_suite(py, options, &crate::parse(suite)?)?;
    let found = with_progress(py, None, |step| {
        connection_cost::served(&suite, &settings, seconds, &processors, &mut || step(0))
    });
    crate::notices::keep(&settings.notices);
    Ok(pythonize(py, &found?.map_err(CoreError::new_err)?)?)
}

/// The server's CPU time per KiB without TLS (us).
#[pyfunction]
pub fn connection_per_kib_us(py: Python<'_>, processors: Vec<usize>) -> PyResult<f64> {
    let found = py.detach(|| connection_cost::per_kib_us(&processors));
    found.map_err(|error| CoreError::new_err(format!("a connection over loopback: {error}")))
}

/// The fixed part of a connection (us), and the relative increase of a handshake's time over that in memory, from
/// points: the time of a handshake in memory and the time of a connection beyond it (us).
#[pyfunction]
pub fn connection_line(points: Vec<(f64, f64)>) -> (f64, f64) {
    connection_cost::line(&points)
}

fn refused(error: LoadError) -> PyErr {
    let input = error.is_input();
    match error {
        LoadError::Setup(error @ (SetupError::Unsupported(_) | SetupError::Pki(_))) => {
            to_python(MeasureError::Setup(error))
        }
        error if input => InvalidOption::new_err(error.to_string()),
        error => CoreError::new_err(error.to_string()),
    }
}
