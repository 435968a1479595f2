//! Python bindings: conversion, signals, the interpreter lock. No logic lives here, and nothing imports it.

mod aka;
mod bearer;
mod certs;
mod eap;
mod endpoints;
mod errors;
mod inspect;
mod load;
mod notices;
mod options;
mod other_libssl;
mod primitives;
mod serve;
mod simulate;
mod transfer;

use errors::to_python;
use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use pythonize::pythonize;
use serde::Serialize;
use shakedown_pki::cancellation::cancellable;
use shakedown_sim::histogram::LEAST_VALUES;
use shakedown_stacks::machine::{BUILD_PROFILE, Machine};
use shakedown_stacks::measure;
use shakedown_stacks::{Registry, capture as captures, catalogue};
use shakedown_trace::Suite;
use shakedown_trace::suite::{CurveFamily, ExpectedOperation, Group, KeyFamily};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Rust's own allocations are counted beside OpenSSL's.
#[global_allocator]
static ALLOCATOR: shakedown_ossl::memory::Counting = shakedown_ossl::memory::Counting;

/// How often a long computation looks for Ctrl-C and tells its progress.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

fn parse(suite: &str) -> PyResult<Suite> {
    suite
        .parse()
        .map_err(|error: shakedown_trace::suite::SuiteError| errors::InvalidSuite::new_err(error.to_string()))
}

/// The canonical spelling of a suite's name.
#[pyfunction]
fn canonical(suite: &str) -> PyResult<String> {
    Ok(parse(suite)?.to_string())
}

/// The parts of a suite.
#[pyfunction]
fn describe<'py>(py: Python<'py>, suite: &str) -> PyResult<Bound<'py, PyAny>> {
    let suite = parse(suite)?;
    let parts = PyDict::new(py);
    let protocol = suite.protocol;
    parts.set_item("suite", suite.to_string())?;
    parts.set_item("protocol", protocol.as_str())?;
    parts.set_item("key_exchange", suite.key_exchange.as_str())?;
    parts.set_item("group", suite.group.map(|group| group.name(protocol)))?;
    parts.set_item("keys", suite.keys.iter().map(|key| key.name(protocol)).collect::<Vec<_>>())?;
    parts.set_item("authentication", suite.authentication.map(|authentication| authentication.as_str()))?;
    parts.set_item("mode", suite.mode.as_str())?;
    parts.set_item("cipher", suite.cipher.name())?;
    let stack = Registry::default().supports(&suite).ok().map(|stack| stack.id().name.into_owned());
    parts.set_item("stack", stack)?;
    parts.set_item("transport", pythonize(py, &suite.transport())?)?;
    parts.set_item("is_resumption", suite.is_resumption())?;
    parts.set_item("full", suite.full().to_string())?;
    parts
        .set_item("sent_keys", suite.sent_keys().iter().map(|key| key.name(protocol)).collect::<Vec<_>>())?;
    parts.set_item("key_family", suite.key_family().map(KeyFamily::as_str))?;
    parts.set_item(
        "key_curve_family",
        suite.keys.first().and_then(|key| key.curve_family()).map(CurveFamily::as_str),
    )?;
    parts.set_item("group_family", suite.group.map(|group| group.family().as_str()))?;
    parts
        .set_item("group_curve_family", suite.group.and_then(Group::curve_family).map(CurveFamily::as_str))?;
    let operations = suite.operations().into_iter().map(|one| operation(py, &one));
    parts.set_item("operations", operations.collect::<PyResult<Vec<_>>>()?)?;
    Ok(parts.into_any())
}

fn operation<'py>(py: Python<'py>, one: &ExpectedOperation) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("side", one.side.as_str())?;
    row.set_item("from", one.from.as_str())?;
    row.set_item("message", one.message.as_str())?;
    row.set_item("operation", one.primitive.operation.as_str())?;
    row.set_item("algorithm", one.primitive.algorithm)?;
    row.set_item("parameters", one.primitive.parameters)?;
    row.set_item("class", one.primitive.operation.class().as_str())?;
    Ok(row)
}

/// Every suite that can be run; with `all`, also those that can't, with the reason.
#[pyfunction]
#[pyo3(signature = (all = false))]
fn suites(py: Python<'_>, all: bool) -> PyResult<Bound<'_, PyAny>> {
    let offers = py.detach(|| catalogue::suites(&Registry::default(), all));
    Ok(pythonize(py, &offers)?)
}

/// The stacks there are: name, version, and the protocols of which each runs some suite as client and as server.
#[pyfunction]
fn stacks(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let entries = py.detach(|| Registry::default().entries());
    Ok(pythonize(py, &entries)?)
}

/// The suites of a device's profile, and their tickets.
#[pyfunction]
fn profile_suites() -> Vec<(&'static str, u32)> {
    measure::profile_suites().collect()
}

/// What this machine is.
#[pyfunction]
fn machine(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    Ok(pythonize(py, &Machine::detect())?)
}

/// Polls for Ctrl-C and reports progress, every so often; keeps what is raised meanwhile.
struct Interrupts {
    progress: Option<Py<PyAny>>,
    /// Of how much; reported where it is known.
    total: Option<u64>,
    last: Instant,
    raised: Option<PyErr>,
}

impl Interrupts {
    fn new(progress: Option<Py<PyAny>>, total: Option<u64>) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(Self { progress, total, last: Instant::now(), raised: None }))
    }

    /// Polls; reports how much is done where that is known.
    fn poll(&mut self, done: Option<usize>) -> ControlFlow<()> {
        if self.raised.is_some() {
            return ControlFlow::Break(());
        }
        if self.last.elapsed() < POLL_INTERVAL {
            return ControlFlow::Continue(());
        }
        self.last = Instant::now();
        let outcome = Python::attach(|py| {
            py.check_signals()?;
            match (&self.progress, done, self.total) {
                (Some(callback), Some(done), Some(total)) => callback.call1(py, (done, total)).map(drop),
                (Some(callback), Some(done), None) => callback.call1(py, (done,)).map(drop),
                _ => Ok(()),
            }
        });
        match outcome {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.raised = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

/// Serves without the interpreter lock until a signal's handler raises. `listening` is called where `work` tells that it
/// listens, `stopped` with what was done in the end; what any of the three raises is raised again.
fn serve_told<A, S, E>(
    py: Python<'_>,
    listening: &Py<PyAny>,
    stopped: &Py<PyAny>,
    to_python: fn(E) -> PyErr,
    work: impl FnOnce(
        &mut dyn FnMut(A) -> ControlFlow<()>,
        &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<S, E>
    + Send,
) -> PyResult<()>
where
    A: for<'py> PyCallArgs<'py>,
    S: Serialize,
    E: Send,
{
    let mut raised = None;
    let served = with_progress(py, None, |step| {
        let mut tell = |arguments: A| match Python::attach(|py| listening.call1(py, arguments).map(drop)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                raised = Some(error);
                ControlFlow::Break(())
            }
        };
        let done = work(&mut tell, step)?;
        // Also where a signal came while `listening` ran: it served, if only for a moment.
        let said = Python::attach(|py| stopped.call1(py, (pythonize(py, &done)?,)).map(drop));
        raised = raised.take().or(said.err());
        Ok(())
    })?;
    raised.map_or(Ok(()), Err)?;
    served.map_err(to_python)
}

/// Runs `work` without the interpreter lock, but takes it every so often to look for Ctrl-C and to report progress; also
/// while keys are made, which can take long. An exception raised meanwhile ends the work and is raised again.
fn with_progress<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&mut dyn FnMut(usize) -> ControlFlow<()>) -> T + Send,
) -> PyResult<T> {
    with_progress_of(py, progress, None, work)
}

/// The same, and progress is reported with the total.
fn with_progress_of<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    total: Option<u64>,
    work: impl FnOnce(&mut dyn FnMut(usize) -> ControlFlow<()>) -> T + Send,
) -> PyResult<T> {
    py.detach(|| {
        let interrupts = Interrupts::new(progress, total);
        let result =
            interruptible(&interrupts, || work(&mut |done| interrupts.borrow_mut().poll(Some(done))));
        let raised = interrupts.borrow_mut().raised.take();
        raised.map_or(Ok(result), Err)
    })
}

/// Does some work, and polls while keys are made for it.
fn interruptible<T>(interrupts: &Rc<RefCell<Interrupts>>, work: impl FnOnce() -> T) -> T {
    let interrupts = Rc::clone(interrupts);
    cancellable(move || interrupts.borrow_mut().poll(None), work)
}

/// Measures one suite.
#[pyfunction(name = "measure")]
#[pyo3(signature = (suite, repeat, *, options = None, progress = None))]
fn measure_suite<'py>(
    py: Python<'py>,
    suite: &str,
    repeat: &Bound<'py, PyAny>,
    options: Option<&Bound<'py, PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let repeat = options::whole(repeat, "repetitions", 1, measure::MAX_REPEAT)?;
    let (suite, settings, _) = options::for_suite(py, options, &parse(suite)?)?;
    let result = with_progress(py, progress, |step| measure::measure(&suite, repeat, &settings, step))?;
    notices::keep(&settings.notices);
    Ok(pythonize(py, &result.map_err(to_python)?)?)
}

/// Runs each suite once and writes all of them into one capture. `tickets` are by suite, where not those of the options.
#[pyfunction]
#[pyo3(signature = (suites, path, *, keylog = None, options = None, tickets = HashMap::new()))]
fn capture(
    py: Python<'_>,
    suites: Vec<String>,
    path: PathBuf,
    keylog: Option<PathBuf>,
    options: Option<&Bound<'_, PyAny>>,
    tickets: HashMap<String, u32>,
) -> PyResult<()> {
    let named: Vec<Suite> = suites.iter().map(|suite| parse(suite)).collect::<PyResult<_>>()?;
    // Whose own certificates fit one suite of a capture fit all: their names say the same keys.
    let (_, settings) = options::for_suites(py, options, named.get(..1).unwrap_or_default())?;
    let issued = suites.iter().map(|suite| tickets.get(suite).copied().unwrap_or(settings.tickets));
    let suites: Vec<(Suite, u32)> = named.into_iter().zip(issued).collect();
    let written = with_progress(py, None, |step| {
        captures::write_capture(&suites, &settings, &path, keylog.as_deref(), step)
    })?;
    notices::keep(&settings.notices);
    written.map_err(|error| match error {
        captures::CapturingError::Handshake(error) => to_python(error),
        other => errors::CaptureError::new_err(other.to_string()),
    })
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Before OpenSSL allocates anything; else connections' memory can't be counted.
    shakedown_ossl::memory::install();
    errors::add_to(module)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("BUILD_PROFILE", BUILD_PROFILE)?;
    module.add("OPENSSL_VERSION", shakedown_ossl::version())?;
    let least = LEAST_VALUES.map(|(name, _, values)| (name, values));
    module.add("LEAST_VALUES", least.into_py_dict(module.py())?)?;
    module.add_class::<inspect::Inspected>()?;
    module.add_class::<inspect::Inspection>()?;
    module.add_class::<other_libssl::Loaded>()?;
    module.add_class::<serve::Server>()?;
    for function in [
        wrap_pyfunction!(canonical, module)?,
        wrap_pyfunction!(describe, module)?,
        wrap_pyfunction!(suites, module)?,
        wrap_pyfunction!(stacks, module)?,
        wrap_pyfunction!(profile_suites, module)?,
        wrap_pyfunction!(machine, module)?,
        wrap_pyfunction!(measure_suite, module)?,
        wrap_pyfunction!(capture, module)?,
        wrap_pyfunction!(inspect::inspect, module)?,
        wrap_pyfunction!(load::load, module)?,
        wrap_pyfunction!(load::merge_loads, module)?,
        wrap_pyfunction!(load::connection_plans, module)?,
        wrap_pyfunction!(load::connection_served, module)?,
        wrap_pyfunction!(load::connection_per_kib_us, module)?,
        wrap_pyfunction!(load::connection_line, module)?,
        wrap_pyfunction!(transfer::transfers, module)?,
        wrap_pyfunction!(primitives::time, module)?,
        wrap_pyfunction!(primitives::names, module)?,
        wrap_pyfunction!(primitives::device_profile, module)?,
        wrap_pyfunction!(certs::certs, module)?,
        wrap_pyfunction!(certs::named_by_chain, module)?,
        wrap_pyfunction!(aka::aka_suites, module)?,
        wrap_pyfunction!(aka::aka_run, module)?,
        wrap_pyfunction!(aka::aka_provision, module)?,
        wrap_pyfunction!(aka::aka_hss, module)?,
        wrap_pyfunction!(aka::aka_sgsn, module)?,
        wrap_pyfunction!(aka::aka_mobile, module)?,
        wrap_pyfunction!(eap::eap_peer, module)?,
        wrap_pyfunction!(eap::eap_serve, module)?,
        wrap_pyfunction!(notices::take_notices, module)?,
        wrap_pyfunction!(bearer::bearer_run, module)?,
        wrap_pyfunction!(bearer::bearer_check, module)?,
        wrap_pyfunction!(simulate::simulate, module)?,
        wrap_pyfunction!(simulate::replay, module)?,
        wrap_pyfunction!(simulate::simulate_merge, module)?,
        wrap_pyfunction!(simulate::simulate_piece, module)?,
        wrap_pyfunction!(simulate::simulate_pieces, module)?,
        wrap_pyfunction!(simulate::simulate_longer, module)?,
        wrap_pyfunction!(endpoints::simulate_endpoints, module)?,
    ] {
        module.add_function(function)?;
    }
    Ok(())
}
