//! Endpoints in virtual time: from a scenario in JSON to its report and exact outcome, with a replay of the scenario.

use crate::errors::{CoreError, HandshakeFailed, InvalidOption, to_python};
use crate::options::for_suite;
use crate::simulate::broken_off;
use crate::with_progress_of;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;
use shakedown_link::{Purpose, Stream};
use shakedown_sim::{Outcome, Report, Scenario, Simulation};
use shakedown_stacks::measure::MeasureError;
use shakedown_stacks::{Peers, Settings, SetupError, prepare};
use shakedown_trace::Suite;
use shakedown_virtual::agreement::{critical, distance};
use shakedown_virtual::{EndpointSimulation, Ends, VirtualError};
use std::ops::ControlFlow;

#[derive(Serialize)]
struct Answer<'a> {
    report: Report,
    outcome: &'a Outcome,
    client_stack: &'a str,
    server_stack: &'a str,
    replayed: Report,
    /// Distance between the times of both, and its critical value at [`LEVEL`].
    distance: Option<f64>,
    critical: Option<f64>,
}

/// Purpose of the draw of a connection's seed.
const CONNECTION: Purpose = Purpose(206);
/// Times within 1 % count as equal: the precision of a replay without losses.
const TOLERANCE: f64 = 0.01;
const LEVEL: f64 = 0.01;
/// Minimum number of clients in a replay, so that its sampling error is small compared with that of the endpoints.
const REPLAYED: u64 = 10_000;

/// Runs a suite's endpoints in a scenario, and replays it with other losses. `progress` is called with (completed
/// clients, all clients); its exceptions and Ctrl-C stop the simulation.
#[pyfunction]
#[pyo3(signature = (suite, spec, *, options = None, progress = None))]
pub fn simulate_endpoints(
    py: Python<'_>,
    suite: &str,
    spec: &str,
    options: Option<&Bound<'_, PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let input = |error: &dyn std::fmt::Display| PyValueError::new_err(error.to_string());
    let scenario: Scenario = serde_json::from_str(spec).map_err(|error| input(&error))?;
    let total = scenario.expected_clients() * u64::from(scenario.replications);
    let (suite, settings, _) = for_suite(py, options, &crate::parse(suite)?)?;
    let simulation = EndpointSimulation::new(scenario).map_err(refused)?;
    let settings = fitted(settings, simulation.scenario());
    let found = with_progress_of(py, progress, total, |step| -> PyResult<_> {
        let peers = peers(&suite, &settings)?;
        let names = [&peers.id.client_stack.name, &peers.id.server_stack.name].map(|name| name.clone());
        let outcome = run(&simulation, peers, step)?;
        // The replay's progress is not reported: it is short, unless there are very many clients.
        let done = outcome.as_ref().map(|_| replay(simulation.scenario(), &mut || step(total)));
        Ok((outcome, done.transpose()?.flatten(), names))
    });
    crate::notices::keep(&settings.notices);
    let (Some(outcome), Some(replayed), names) = found?? else {
        return Err(broken_off());
    };
    let counts = [outcome.ready.count(), replayed.ready.count()];
    let answer = Answer {
        report: outcome.report(),
        outcome: &outcome,
        client_stack: &names[0],
        server_stack: &names[1],
        replayed: replayed.report(),
        distance: distance(&outcome.ready, &replayed.ready, TOLERANCE),
        critical: (counts[0] > 0 && counts[1] > 0).then(|| critical(counts[0], counts[1], LEVEL)),
    };
    serde_json::to_string(&answer).map_err(|error| input(&error))
}

/// Limits datagrams to what the bearer carries without fragmentation, and draws from the scenario's seed.
fn fitted(settings: Settings, scenario: &Scenario) -> Settings {
    let room = scenario.classes.first().map_or(usize::MAX, |class| {
        let bearer = &class.bearer;
        bearer.mtu_bytes.saturating_sub(bearer.ip_bytes + bearer.udp_bytes) as usize
    });
    let largest_datagram_bytes = settings.largest_datagram_bytes.min(room);
    Settings { largest_datagram_bytes, seed: Some(scenario.seed), ..settings }
}

/// Stacks that cannot be seeded run without a seed; the lengths of their signatures vary.
fn peers(suite: &Suite, settings: &Settings) -> PyResult<Peers> {
    let found = match prepare(suite, settings) {
        Err(SetupError::Unseedable { .. }) => prepare(suite, &Settings { seed: None, ..settings.clone() }),
        other => other,
    };
    found.map_err(|error| to_python(MeasureError::Setup(error)))
}

fn run(
    simulation: &EndpointSimulation,
    mut peers: Peers,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> PyResult<Option<Outcome>> {
    let seed = peers.seed;
    let mut make = |number: u64| {
        // Each connection has its own seed.
        peers.seed = seed.map(|seed| connection_seed(seed, number));
        let pair = peers.pair().map_err(|error| error.to_string())?;
        Ok(Ends { client: pair.client, server: pair.server })
    };
    simulation.run(&mut make, progress).map_err(refused)
}

fn connection_seed(seed: u64, number: u64) -> u64 {
    Stream::of(seed, number, CONNECTION).next()
}

/// Replays the scenario without endpoints: with the same number of clients, more replications and another seed.
fn replay(scenario: &Scenario, step: &mut dyn FnMut() -> ControlFlow<()>) -> PyResult<Option<Outcome>> {
    let clients = scenario.expected_clients().max(1) * u64::from(scenario.replications);
    let times = u32::try_from(REPLAYED.div_ceil(clients)).unwrap_or(1);
    let other = Scenario {
        seed: scenario.seed.wrapping_add(1),
        replications: scenario.replications.saturating_mul(times).min(1_000_000),
        series_s: 0.0,
        ..scenario.clone()
    };
    let simulation = Simulation::new(other).map_err(|error| refused(error.into()))?;
    Ok(simulation.run(&mut |_| step()))
}

fn refused(error: VirtualError) -> PyErr {
    let message = error.to_string();
    match error {
        VirtualError::Failed { .. } | VirtualError::Ended { .. } => HandshakeFailed::new_err(message),
        VirtualError::Scenario(_) | VirtualError::Bearer(_) | VirtualError::Cost { .. } => {
            PyValueError::new_err(message)
        }
        VirtualError::Unsupported { .. }
        | VirtualError::Transport { .. }
        | VirtualError::OtherMessages { .. }
        | VirtualError::WithoutCost { .. } => InvalidOption::new_err(message),
        _ => CoreError::new_err(message),
    }
}
