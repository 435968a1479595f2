//! Simulations: a scenario's JSON in, its report and exact outcome out.

use crate::POLL_INTERVAL;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;
use shakedown_sim::{Outcome, Replay, Report, Scenario, Simulation};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::time::Instant;

#[derive(Serialize)]
struct Answer<'a> {
    report: Report,
    outcome: &'a Outcome,
}

fn answer(outcome: &Outcome) -> PyResult<String> {
    let answer = Answer { report: outcome.report(), outcome };
    serde_json::to_string(&answer).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Simulates a scenario. `progress` is reported of (clients through, clients in all) now and then; what it raises, and
/// Ctrl-C, breaks the simulation off. Replications share `threads` threads, by default one a processor.
#[pyfunction]
#[pyo3(signature = (spec, progress = None, threads = None))]
pub fn simulate(
    py: Python<'_>,
    spec: &str,
    progress: Option<Py<PyAny>>,
    threads: Option<usize>,
) -> PyResult<String> {
    let scenario: Scenario =
        serde_json::from_str(spec).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let total = scenario.expected_clients() * u64::from(scenario.replications);
    let simulation = Simulation::new(scenario).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let threads = match threads {
        Some(count) => NonZeroUsize::new(count)
            .ok_or_else(|| PyValueError::new_err("threads is 0; accepted: 1 or more"))?,
        None => std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
    };
    let mut raised = None;
    let mut polled = Instant::now();
    let outcome = py.detach(|| {
        simulation.run_on(threads, &mut |through| {
            if polled.elapsed() < POLL_INTERVAL {
                return ControlFlow::Continue(());
            }
            polled = Instant::now();
            let reported = Python::attach(|py| {
                py.check_signals()?;
                if let Some(progress) = &progress {
                    progress.call1(py, (through, total))?;
                }
                Ok(())
            });
            match reported {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    raised = Some(error);
                    ControlFlow::Break(())
                }
            }
        })
    });
    match (outcome, raised) {
        (_, Some(error)) => Err(error),
        (Some(outcome), None) => answer(&outcome),
        (None, None) => Err(PyValueError::new_err("the simulation was broken off")),
    }
}

/// Replays one handshake over a path until its percentiles are known; JSON in and out. Takes up to about 0.3 s.
#[pyfunction]
pub fn replay(py: Python<'_>, spec: &str) -> PyResult<String> {
    let wrong = |error: &dyn std::fmt::Display| PyValueError::new_err(error.to_string());
    let replay: Replay = serde_json::from_str(spec).map_err(|error| wrong(&error))?;
    let replayed = py.detach(|| replay.run()).map_err(|error| wrong(&error))?;
    serde_json::to_string(&replayed).map_err(|error| wrong(&error))
}

/// Merges outcomes of one scenario's replications, in whatever order.
#[pyfunction]
pub fn simulate_merge(py: Python<'_>, outcomes: Vec<String>) -> PyResult<String> {
    py.detach(|| {
        let mut all: Option<Outcome> = None;
        for text in &outcomes {
            let outcome: Outcome =
                serde_json::from_str(text).map_err(|error| PyValueError::new_err(error.to_string()))?;
            match &mut all {
                None => all = Some(outcome),
                Some(all) => {
                    all.merge(&outcome).map_err(|error| PyValueError::new_err(error.to_string()))?;
                }
            }
        }
        let all =
            all.ok_or_else(|| PyValueError::new_err("there are no outcomes; accepted: at least one"))?;
        answer(&all)
    })
}
