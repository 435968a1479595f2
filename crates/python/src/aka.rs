//! SSL-based AKA: runs in virtual time, and the processes.

use crate::errors::{CoreError, InvalidOption, Unsupported};
use crate::options::{address, read};
use crate::{serve_with_callbacks, with_progress};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pythonize::pythonize;
use serde::Deserialize;
use shakedown_aka::names::{Imsi, Network, NodeName};
use shakedown_aka::run::{Plan, PlanError};
use shakedown_aka::sessions::{MemoryStore, Policy, SessionRecord, Store, StoreError, Subscriber};
use shakedown_live::aka::{self, AkaError, HssOptions, Kept, Limits, MobileOptions, SgsnOptions, Site};
use shakedown_stacks::SetupError;
use shakedown_trace::Suite;
use shakedown_trace::suite::Mode;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Port of the example in an error about an address.
const PORT: u16 = 7000;

/// A Python object with the methods of `Store`; that of `shakedown.live.sgsn_state` uses SQLite.
struct PythonStore(Py<PyAny>);

fn failed(error: PyErr) -> StoreError {
    StoreError(Python::attach(|py| error.value(py).to_string()))
}

fn names(imsi: &str, home: &str) -> Option<(Imsi, Network)> {
    Imsi::new(imsi).ok().zip(Network::new(home).ok())
}

fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

impl PythonStore {
    fn ask<T>(
        &self,
        work: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Result<T, StoreError> {
        Python::attach(|py| work(py, self.0.bind(py))).map_err(failed)
    }
}

impl Store for PythonStore {
    fn session(&mut self, id: &[u8]) -> Result<Option<SessionRecord>, StoreError> {
        self.ask(|py, store| {
            let found = store.call_method1("session", (PyBytes::new(py, id),))?;
            // An invalid row counts as an unknown session: the mobile performs a full handshake.
            let Ok(Some((secret, imsi, home, resumptions, last_ns, basis))) =
                found.extract::<Option<(Vec<u8>, String, String, u32, u64, [u8; 32])>>()
            else {
                return Ok(None);
            };
            let Some((imsi, home)) = names(&imsi, &home) else { return Ok(None) };
            let last = Duration::from_nanos(last_ns);
            Ok(Some(SessionRecord { secret, imsi, home, resumptions, last, basis }))
        })
    }

    fn keep_session(&mut self, id: &[u8], record: &SessionRecord) -> Result<(), StoreError> {
        self.ask(|py, store| {
            let values = (
                PyBytes::new(py, id),
                PyBytes::new(py, &record.secret),
                record.imsi.as_str(),
                record.home.as_str(),
                record.resumptions,
                nanoseconds(record.last),
                PyBytes::new(py, &record.basis),
            );
            store.call_method1("keep_session", values).map(drop)
        })
    }

    fn forget_session(&mut self, id: &[u8]) -> Result<(), StoreError> {
        self.ask(|py, store| store.call_method1("forget_session", (PyBytes::new(py, id),)).map(drop))
    }

    fn subscriber(&mut self, ptmsi: u32) -> Result<Option<Subscriber>, StoreError> {
        self.ask(|_, store| {
            let found = store.call_method1("subscriber", (ptmsi,))?;
            let Ok(Some((imsi, home, session))) =
                found.extract::<Option<(String, String, Option<Vec<u8>>)>>()
            else {
                return Ok(None);
            };
            let Some((imsi, home)) = names(&imsi, &home) else { return Ok(None) };
            Ok(Some(Subscriber { imsi, home, session }))
        })
    }

    fn keep_subscriber(&mut self, ptmsi: u32, subscriber: &Subscriber) -> Result<(), StoreError> {
        self.ask(|py, store| {
            let session = subscriber.session.as_deref().map(|id| PyBytes::new(py, id));
            let values = (ptmsi, subscriber.imsi.as_str(), subscriber.home.as_str(), session);
            store.call_method1("keep_subscriber", values).map(drop)
        })
    }

    fn forget_subscriber(&mut self, ptmsi: u32) -> Result<(), StoreError> {
        self.ask(|_, store| store.call_method1("forget_subscriber", (ptmsi,)).map(drop))
    }
}

fn to_python(error: AkaError) -> PyErr {
    let message = error.to_string();
    match error {
        AkaError::Suite { .. } | AkaError::Setup(SetupError::Unsupported(_)) => Unsupported::new_err(message),
        AkaError::Interrupted | AkaError::Plan(PlanError::Interrupted) => {
            PyKeyboardInterrupt::new_err(message)
        }
        error if error.is_usage() => InvalidOption::new_err(message),
        _ => CoreError::new_err(message),
    }
}

fn seconds(option: &str, value: f64) -> PyResult<Duration> {
    let accepted = || InvalidOption::new_err(format!("{option}: {value}; accepted: 0 to 1e9 seconds"));
    if !(0.0..=1e9).contains(&value) {
        return Err(accepted());
    }
    Duration::try_from_secs_f64(value).map_err(|_| accepted())
}

/// The suite that attaches use, and the suite of their resumptions.
#[pyfunction]
pub fn aka_suites(suite: &str) -> PyResult<(String, String)> {
    let full = aka::suite_of(&crate::parse(suite)?).map_err(to_python)?;
    let resumed = Suite { mode: Mode::Resumed, ..full.clone() };
    Ok((full.to_string(), resumed.to_string()))
}

/// Runs attaches in virtual time. The plan is `Plan` of `crates/aka/src/run/plan.rs` in JSON.
#[pyfunction]
#[pyo3(signature = (suite, plan, progress = None))]
pub fn aka_run<'py>(
    py: Python<'py>,
    suite: &str,
    plan: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let suite = crate::parse(suite)?;
    let plan: Plan =
        serde_json::from_str(plan).map_err(|error| InvalidOption::new_err(format!("plan: {error}")))?;
    let found = with_progress(py, progress, |step| aka::simulate(&suite, &plan, step))?;
    Ok(pythonize(py, &found.map_err(to_python)?)?)
}

/// Creates two operators and the files of their HSS, SGSNs and subscribers.
#[pyfunction]
pub fn aka_provision<'py>(
    py: Python<'py>,
    folder: PathBuf,
    suite: &str,
    home: &str,
    serving: &str,
    nodes: Vec<String>,
    subscribers: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let (home, serving) = (home.to_owned(), serving.to_owned());
    let site = Site { folder, suite: crate::parse(suite)?, home, serving, nodes, subscribers };
    let made = with_progress(py, None, |step| aka::provision(&site, step))?;
    Ok(pythonize(py, &made.map_err(to_python)?)?)
}

fn limits(first_message_s: f64) -> PyResult<Limits> {
    Ok(Limits { first_message: seconds("time for the first message", first_message_s)?, ..Limits::default() })
}

/// Serves an HSS. `listening` is called once with the address, `stopped` with the summary.
#[pyfunction]
#[pyo3(signature = (listen, file, *, first_message_s, listening, stopped))]
pub fn aka_hss(
    py: Python<'_>,
    listen: &str,
    file: PathBuf,
    first_message_s: f64,
    listening: Py<PyAny>,
    stopped: Py<PyAny>,
) -> PyResult<()> {
    let options = HssOptions { listen: address(listen, PORT)?, file, limits: limits(first_message_s)? };
    serve_with_callbacks(py, &listening, &stopped, to_python, |on_listening, step| {
        aka::serve_hss(&options, &mut |at: SocketAddr| on_listening((at.to_string(),)), &mut || step(0))
    })
}

/// Options of an SGSN.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sgsn {
    listen: String,
    core: Option<String>,
    file: PathBuf,
    homes: BTreeMap<String, String>,
    neighbours: BTreeMap<String, String>,
    max_resumptions: u32,
    max_age_s: f64,
    first_message_s: f64,
}

/// Parses names and their addresses.
fn addresses<T: Ord>(
    all: BTreeMap<String, String>,
    name: impl Fn(&str) -> Result<T, shakedown_aka::names::NameError>,
) -> PyResult<BTreeMap<T, SocketAddr>> {
    let one = |(text, at): (String, String)| {
        let name = name(&text).map_err(|error| InvalidOption::new_err(error.to_string()))?;
        Ok((name, address(&at, PORT)?))
    };
    all.into_iter().map(one).collect()
}

/// Serves an SGSN. `listening` is called once with the addresses for mobiles and for other SGSNs, `stopped` with the
/// summary. `store` keeps its state; None: in memory.
#[pyfunction]
#[pyo3(signature = (options, *, store, listening, stopped))]
pub fn aka_sgsn(
    py: Python<'_>,
    options: &Bound<'_, PyAny>,
    store: Option<Py<PyAny>>,
    listening: Py<PyAny>,
    stopped: Py<PyAny>,
) -> PyResult<()> {
    let given: Sgsn = read(options, "options")?;
    let options = SgsnOptions {
        listen: address(&given.listen, PORT)?,
        core: given.core.as_deref().map(|text| address(text, PORT)).transpose()?,
        file: given.file,
        homes: addresses(given.homes, Network::new)?,
        neighbours: addresses(given.neighbours, NodeName::new)?,
        policy: Policy {
            max_resumptions: given.max_resumptions,
            max_age: seconds("age of sessions", given.max_age_s)?,
        },
        limits: limits(given.first_message_s)?,
    };
    let store: Kept = match store {
        Some(store) => Box::new(PythonStore(store)),
        None => Box::new(MemoryStore::default()),
    };
    serve_with_callbacks(py, &listening, &stopped, to_python, |on_listening, step| {
        let mut emit = |at: SocketAddr, core: Option<SocketAddr>| {
            on_listening((at.to_string(), core.map(|address| address.to_string())))
        };
        aka::serve_sgsn(&options, store, &mut emit, &mut || step(0))
    })
}

/// Options of a mobile.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MobileGiven {
    sgsns: Vec<String>,
    serving: String,
    card: PathBuf,
    attaches: usize,
    gap_s: f64,
    timeout_s: f64,
    data: Option<String>,
}

/// Attaches over sockets; returns the suite and an object for each attach.
#[pyfunction]
#[pyo3(signature = (options, *, progress = None))]
pub fn aka_mobile<'py>(
    py: Python<'py>,
    options: &Bound<'py, PyAny>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let given: MobileGiven = read(options, "options")?;
    let options = MobileOptions {
        sgsns: given.sgsns.iter().map(|text| address(text, PORT)).collect::<PyResult<_>>()?,
        serving: given.serving,
        card: given.card,
        attaches: given.attaches,
        gap: seconds("gap", given.gap_s)?,
        timeout: seconds("timeout", given.timeout_s)?,
        data: given.data.map(String::into_bytes),
    };
    let found = with_progress(py, progress, |step| aka::attach(&options, step))?;
    Ok(pythonize(py, &found.map_err(to_python)?)?)
}
