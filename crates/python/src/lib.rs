//! Python bindings: conversion, signals, the interpreter lock. They contain no logic, and no crate uses them.

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
use pyo3::types::IntoPyDict;
use pythonize::pythonize;
use serde::Serialize;
use serde_json::json;
use shakedown_pki::cancellation::cancellable;
use shakedown_sim::histogram::MIN_VALUES;
use shakedown_stacks::machine::{BUILD_PROFILE, Machine};
use shakedown_stacks::measure;
use shakedown_stacks::{Registry, capture as captures, catalogue};
use shakedown_trace::Suite;
use shakedown_trace::suite::{CurveFamily, ExpectedOperation, Group, KeyFamily, KeyType};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Counts Rust's allocations as well as OpenSSL's.
#[global_allocator]
static ALLOCATOR: shakedown_ossl::memory::Counting = shakedown_ossl::memory::Counting;

/// Interval at which a long computation checks for Ctrl-C and reports progress.
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
    let protocol = suite.protocol;
    let names = |keys: &[KeyType]| keys.iter().map(|key| key.name(protocol)).collect::<Vec<_>>();
    let operation = |one: ExpectedOperation| {
        json!({
            "side": one.side.as_str(),
            "from": one.from.as_str(),
            "message": one.message.as_str(),
            "operation": one.primitive.operation.as_str(),
            "algorithm": one.primitive.algorithm,
            "parameters": one.primitive.parameters,
            "class": one.primitive.operation.class().as_str(),
        })
    };
    let parts = json!({
        "suite": suite.to_string(),
        "protocol": protocol.as_str(),
        "key_exchange": suite.key_exchange.as_str(),
        "group": suite.group.map(|group| group.name(protocol)),
        "keys": names(&suite.keys),
        "authentication": suite.authentication.map(|authentication| authentication.as_str()),
        "mode": suite.mode.as_str(),
        "cipher": suite.cipher.name(),
        "stack": Registry::default().supports(&suite).ok().map(|stack| stack.id().name.into_owned()),
        "transport": suite.transport(),
        "is_resumption": suite.is_resumption(),
        "full": suite.full().to_string(),
        "sent_keys": names(suite.sent_keys()),
        "key_family": suite.key_family().map(KeyFamily::as_str),
        "key_curve_family": suite.keys.first().and_then(|key| key.curve_family()).map(CurveFamily::as_str),
        "group_family": suite.group.map(|group| group.family().as_str()),
        "group_curve_family": suite.group.and_then(Group::curve_family).map(CurveFamily::as_str),
        "operations": suite.operations().into_iter().map(operation).collect::<Vec<_>>(),
    });
    Ok(pythonize(py, &parts)?)
}

/// Every suite that can be run; with `all`, also those that cannot, with the reason.
#[pyfunction]
#[pyo3(signature = (all = false))]
fn suites(py: Python<'_>, all: bool) -> PyResult<Bound<'_, PyAny>> {
    let offers = py.detach(|| catalogue::suites(&Registry::default(), all));
    Ok(pythonize(py, &offers)?)
}

/// All stacks: name, version, and the protocols of which each runs some suite as client and as server.
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

/// Description of this machine.
#[pyfunction]
fn machine(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    Ok(pythonize(py, &Machine::detect())?)
}

/// Checks for Ctrl-C, reports progress, and keeps an exception that is raised.
struct Interrupts {
    last: Instant,
    raised: Option<PyErr>,
}

impl Interrupts {
    fn poll(&mut self, every: Duration, report: impl FnOnce(Python<'_>) -> PyResult<()>) -> ControlFlow<()> {
        if self.raised.is_none() && self.last.elapsed() >= every {
            self.last = Instant::now();
            self.raised = Python::attach(|py| py.check_signals().and_then(|()| report(py))).err();
        }
        if self.raised.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Calls Python's callback, if there is one.
fn emit<'py>(py: Python<'py>, progress: Option<&Py<PyAny>>, arguments: impl PyCallArgs<'py>) -> PyResult<()> {
    progress.map_or(Ok(()), |callback| callback.call1(py, arguments).map(drop))
}

/// Runs `work` without the interpreter lock, but takes it at intervals to check for Ctrl-C, also during the generation
/// of keys, and to report the progress of `work`. Returns the exception that was raised, which stops `work`.
fn with_reports<P, T: Send>(
    py: Python<'_>,
    every: Duration,
    report: impl Fn(Python<'_>, P) -> PyResult<()> + Send,
    work: impl FnOnce(&mut dyn FnMut(P) -> ControlFlow<()>) -> T + Send,
) -> (T, Option<PyErr>) {
    py.detach(move || {
        let interrupts = Rc::new(RefCell::new(Interrupts { last: Instant::now(), raised: None }));
        let of_keys = Rc::clone(&interrupts);
        let done = cancellable(
            move || of_keys.borrow_mut().poll(POLL_INTERVAL, |_| Ok(())),
            || work(&mut |state| interrupts.borrow_mut().poll(every, |py| report(py, state))),
        );
        (done, interrupts.borrow_mut().raised.take())
    })
}

/// The same, with a count as progress. An exception that was raised is raised again.
fn with_progress<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&mut dyn FnMut(usize) -> ControlFlow<()>) -> T + Send,
) -> PyResult<T> {
    let (done, raised) =
        with_reports(py, POLL_INTERVAL, |py, done| emit(py, progress.as_ref(), (done,)), work);
    raised.map_or(Ok(done), Err)
}

/// The same, with a count and the total as progress.
fn with_progress_of<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    total: u64,
    work: impl FnOnce(&mut dyn FnMut(u64) -> ControlFlow<()>) -> T + Send,
) -> PyResult<T> {
    let (done, raised) =
        with_reports(py, POLL_INTERVAL, |py, done| emit(py, progress.as_ref(), (done, total)), work);
    raised.map_or(Ok(done), Err)
}

/// Serves without the interpreter lock until a signal handler raises. `listening` is called when `work` reports that it
/// listens, `stopped` with the result of `work`. An exception of the handler or of these functions is raised again.
fn serve_with_callbacks<A, S, E>(
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
        let mut on_listening =
            |arguments: A| match Python::attach(|py| listening.call1(py, arguments).map(drop)) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    raised = Some(error);
                    ControlFlow::Break(())
                }
            };
        let done = work(&mut on_listening, step)?;
        // Called even if a signal arrived during `listening`, because the server has served, if only for a moment.
        let result = Python::attach(|py| stopped.call1(py, (pythonize(py, &done)?,)).map(drop));
        raised = raised.take().or(result.err());
        Ok(())
    })?;
    raised.map_or(Ok(()), Err)?;
    served.map_err(to_python)
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

/// Runs each suite once and writes all of them into one capture. `tickets`: by suite; default: those of the options.
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
    // User-supplied certificates that fit one suite of a capture fit all: the suites' names contain the same keys.
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
mod _core {
    use super::*;

    #[pymodule_export]
    use super::{
        aka::{aka_hss, aka_mobile, aka_provision, aka_run, aka_sgsn, aka_suites},
        bearer::{bearer_check, bearer_run},
        canonical, capture,
        certs::{certs, named_by_chain},
        describe,
        eap::{eap_peer, eap_serve},
        endpoints::simulate_endpoints,
        inspect::{Inspected, Inspection, inspect},
        load::{
            connection_line, connection_per_kib_us, connection_plans, connection_served, load, merge_loads,
        },
        machine, measure_suite,
        notices::take_notices,
        other_libssl::Loaded,
        primitives::{device_profile, names, time},
        profile_suites,
        serve::Server,
        simulate::{replay, simulate, simulate_longer, simulate_merge, simulate_piece, simulate_pieces},
        stacks, suites,
        transfer::transfers,
    };

    #[pymodule_init]
    fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // Before OpenSSL allocates memory; otherwise the memory of connections cannot be counted.
        shakedown_ossl::memory::install();
        errors::add_to(module)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("BUILD_PROFILE", BUILD_PROFILE)?;
        module.add("OPENSSL_VERSION", shakedown_ossl::version())?;
        let minimums = MIN_VALUES.map(|(name, _, values)| (name, values));
        module.add("MIN_VALUES", minimums.into_py_dict(module.py())?)
    }
}
