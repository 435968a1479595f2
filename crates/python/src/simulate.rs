//! Simulations: from a scenario in JSON to its report and exact outcome.

use crate::{with_progress, with_progress_of};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;
use shakedown_sim::{Merger, Outcome, Replay, Report, Scenario, Simulation};
use std::fmt::Display;
use std::num::NonZeroUsize;

#[derive(Serialize)]
struct Answer<'a> {
    report: Report,
    outcome: &'a Outcome,
}

fn answer(outcome: &Outcome) -> PyResult<String> {
    let answer = Answer { report: outcome.report(), outcome };
    serde_json::to_string(&answer).map_err(|error| wrong(&error))
}

fn wrong(error: &dyn Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// There is no outcome, although neither progress nor a signal handler has raised an exception.
pub fn broken_off() -> PyErr {
    PyValueError::new_err("the simulation was interrupted")
}

fn read(spec: &str) -> PyResult<Scenario> {
    serde_json::from_str(spec).map_err(|error| wrong(&error))
}

fn checked(scenario: Scenario) -> PyResult<Simulation> {
    Simulation::new(scenario).map_err(|error| wrong(&error))
}

/// Simulates a scenario. `progress` is called with (completed clients, all clients); its exceptions and Ctrl-C stop the
/// simulation. Replications share `threads` threads; default: one per processor.
#[pyfunction]
#[pyo3(signature = (spec, progress = None, threads = None))]
pub fn simulate(
    py: Python<'_>,
    spec: &str,
    progress: Option<Py<PyAny>>,
    threads: Option<usize>,
) -> PyResult<String> {
    let simulation = checked(read(spec)?)?;
    let scenario = simulation.scenario();
    let total = scenario.expected_clients() * u64::from(scenario.replications);
    let threads = match threads {
        Some(count) => NonZeroUsize::new(count)
            .ok_or_else(|| PyValueError::new_err("threads is 0; accepted: 1 or more"))?,
        None => std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
    };
    let outcome = with_progress_of(py, progress, total, |step| simulation.run_on(threads, step))?;
    answer(&outcome.ok_or_else(broken_off)?)
}

/// Replays one handshake over a path until its percentiles are precise enough, up to about 0.3 s; JSON in and out.
#[pyfunction]
pub fn replay(py: Python<'_>, spec: &str) -> PyResult<String> {
    let replay: Replay = serde_json::from_str(spec).map_err(|error| wrong(&error))?;
    let replayed = py.detach(|| replay.run()).map_err(|error| wrong(&error))?;
    serde_json::to_string(&replayed).map_err(|error| wrong(&error))
}

/// Merges outcomes of one scenario's replications, in any order.
#[pyfunction]
pub fn simulate_merge(py: Python<'_>, outcomes: Vec<String>) -> PyResult<String> {
    py.detach(|| {
        let mut all = Merger::default();
        for text in &outcomes {
            // One at a time, because a histogram in memory is many times larger than its text.
            let outcome = serde_json::from_str(text).map_err(|error| wrong(&error))?;
            all.add(outcome).map_err(|error| wrong(&error))?;
        }
        let all = all.end().map_err(|error| wrong(&error))?;
        let all =
            all.ok_or_else(|| PyValueError::new_err("there are no outcomes; accepted: at least one"))?;
        answer(&all)
    })
}

/// Simulates one replication, or a part of it (its number, number of parts); returns the outcome for `simulate_merge`.
#[pyfunction]
#[pyo3(signature = (spec, replication, part = None))]
pub fn simulate_piece(
    py: Python<'_>,
    spec: &str,
    replication: u32,
    part: Option<(u32, u32)>,
) -> PyResult<String> {
    let simulation = checked(read(spec)?)?;
    let part = part.map(|(number, of)| simulation.scenario().part(number, of)).transpose();
    let part = part.map_err(|error| wrong(&error))?;
    let outcome =
        with_progress(py, None, |step| simulation.replication(replication, part, &mut |_| step(0)))?;
    serde_json::to_string(&outcome.ok_or_else(broken_off)?).map_err(|error| wrong(&error))
}

/// The first of a scenario's replications, their number, and the number of parts of each for N threads.
#[pyfunction]
pub fn simulate_pieces(spec: &str, threads: usize) -> PyResult<(u32, u32, u32)> {
    let simulation = checked(read(spec)?)?;
    let scenario = simulation.scenario();
    Ok((scenario.first_replication, scenario.replications, simulation.parts(threads)))
}

/// The scenario to simulate after an outcome of `spec`; `spent` is the number of all events so far. None if the outcome
/// is precise enough, or the remaining events do not suffice.
#[pyfunction]
pub fn simulate_longer(spec: &str, outcome: &str, spent: u64) -> PyResult<Option<String>> {
    let outcome: Outcome = serde_json::from_str(outcome).map_err(|error| wrong(&error))?;
    let longer = checked(read(spec)?)?.longer(&outcome, spent);
    longer.map(|scenario| serde_json::to_string(&scenario).map_err(|error| wrong(&error))).transpose()
}
