//! A server that runs in threads of its own.

use crate::errors::{CoreError, InvalidOption, Unsupported};
use crate::options::Options;
use crate::{notices, parse, with_progress};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pythonize::pythonize;
use serde::Deserialize;
use shakedown_certs::supplied::AnyIdentity;
use shakedown_live::serve::{Config, PayloadWhen, ServeError, Server as Live};
use shakedown_pki::Identity;
use shakedown_stacks::SetupError;
use shakedown_trace::Suite;
use shakedown_trace::suite::Authentication;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What may be given beside the options of a suite; anything else is refused by name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    listen: SocketAddr,
    metrics: Option<SocketAddr>,
    workers: Option<usize>,
    payload_bytes: Option<u64>,
    payload_when: Option<PayloadWhen>,
    handshake_timeout_s: Option<f64>,
    idle_timeout_s: Option<f64>,
    drain_timeout_s: Option<f64>,
    max_handshakes: Option<usize>,
    max_connections: Option<usize>,
    client_ca: Option<PathBuf>,
    traces_out: Option<PathBuf>,
    sample: Option<u64>,
    queue_times: Option<bool>,
    max_passages: Option<usize>,
}

impl Request {
    fn config(self, suites: Vec<Suite>) -> PyResult<Config> {
        let mut config = Config::new(suites, self.listen);
        let seconds = |given: Option<f64>, default: Duration| match given {
            None => Ok(default),
            Some(seconds) => Duration::try_from_secs_f64(seconds)
                .map_err(|error| InvalidOption::new_err(format!("a time of {seconds} s: {error}"))),
        };
        config.metrics = self.metrics;
        config.workers = self.workers.unwrap_or(config.workers);
        config.payload_bytes = self.payload_bytes.unwrap_or(config.payload_bytes);
        config.payload_when = self.payload_when.unwrap_or(config.payload_when);
        config.handshake_timeout = seconds(self.handshake_timeout_s, config.handshake_timeout)?;
        config.idle_timeout = seconds(self.idle_timeout_s, config.idle_timeout)?;
        config.drain_timeout = seconds(self.drain_timeout_s, config.drain_timeout)?;
        config.max_handshakes = self.max_handshakes.unwrap_or(config.max_handshakes);
        config.max_connections = self.max_connections.unwrap_or(config.max_connections);
        config.traces = self.traces_out;
        config.sample = self.sample.unwrap_or(config.sample);
        config.queue_times = self.queue_times.unwrap_or(config.queue_times);
        config.max_passages = self.max_passages.unwrap_or(config.max_passages);
        Ok(config)
    }
}

/// A running server. It is cut off when the object goes.
#[pyclass(module = "shakedown._core")]
pub struct Server(Mutex<Live>);

impl Server {
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Live) -> T + Send) -> T {
        py.detach(|| work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

#[pymethods]
impl Server {
    /// Binds its addresses and begins to serve.
    #[new]
    #[pyo3(signature = (suites, request, *, options = None))]
    fn new(
        py: Python<'_>,
        suites: Vec<String>,
        request: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let suites: Vec<Suite> = suites.iter().map(|suite| parse(suite)).collect::<PyResult<_>>()?;
        let request: Request = pythonize::depythonize(request)
            .map_err(|error| InvalidOption::new_err(format!("serve: {error}")))?;
        let client_ca = request.client_ca.clone();
        let mut config = request.config(suites)?;
        let options = Options::read(options)?;
        let mut settings = None;
        for suite in &mut config.suites {
            // The suite with the keys of user-supplied certificates: what is served is what is said.
            let (served, found, _) = options.clone().for_suite(suite)?;
            *suite = served;
            settings.get_or_insert(found);
        }
        let mut settings = match settings {
            Some(settings) => settings,
            None => options.settings()?,
        };
        if let Some(path) = client_ca {
            settings.client_identity = Some(clients_root(&path, &config.suites)?);
        }
        let started = with_progress(py, None, |_| Live::start(config, &settings));
        notices::keep(&settings.notices);
        Ok(Self(Mutex::new(started?.map_err(to_python)?)))
    }

    /// Where it listens, as text.
    #[getter]
    fn address(&self, py: Python<'_>) -> String {
        self.with(py, |server| server.address().to_string())
    }

    /// Where its metrics are.
    #[getter]
    fn metrics_address(&self, py: Python<'_>) -> Option<String> {
        self.with(py, |server| server.metrics_address().map(|address| address.to_string()))
    }

    /// The roots that clients are to trust, as DER; none where no suite has X.509 certificates.
    #[getter]
    fn roots<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        let roots = self.with(py, |server| server.roots().to_vec());
        roots.iter().map(|root| PyBytes::new(py, root)).collect()
    }

    /// Name and version of what runs the suites.
    #[getter]
    fn stack<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let stack = self.with(py, |server| server.stack().clone());
        Ok(pythonize(py, &stack)?)
    }

    /// Begins to stop in good order.
    fn stop(&self, py: Python<'_>) {
        self.with(py, |server| server.stop());
    }

    /// Cuts every connection.
    fn cut(&self, py: Python<'_>) {
        self.with(py, |server| server.cut());
    }

    /// Waits at most so long; true once the server is over.
    fn wait(&self, py: Python<'_>, patience_s: f64) -> PyResult<bool> {
        let patience = Duration::try_from_secs_f64(patience_s)
            .map_err(|error| InvalidOption::new_err(format!("a time of {patience_s} s: {error}")))?;
        self.with(py, |server| server.wait(patience)).map_err(to_python)
    }

    /// The ways of messages through the queue since they were taken last: for each, six unsigned numbers of 64 bits, the
    /// first byte the least: arrived, taken up, done, worked before (ns), number of the handshake, 1 where it is its first.
    fn take_passages<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let passages = self.with(py, |server| server.take_passages());
        let bytes: Vec<u8> = passages
            .iter()
            .flat_map(|one| {
                [
                    one.arrived_ns,
                    one.taken_up_ns,
                    one.done_ns,
                    one.worked_ns,
                    one.handshake,
                    u64::from(one.is_first),
                ]
            })
            .flat_map(u64::to_le_bytes)
            .collect();
        PyBytes::new(py, &bytes)
    }

    /// What it has counted so far.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let summary = self.with(py, |server| server.summary());
        Ok(pythonize(py, &summary)?)
    }
}

/// Clients known by their root alone: a server needs no more of them.
fn clients_root(path: &Path, suites: &[Suite]) -> PyResult<AnyIdentity> {
    let asks = |suite: &Suite| {
        matches!(suite.authentication, Some(Authentication::Requested | Authentication::Mutual))
    };
    if !suites.iter().any(asks) {
        let message = "a root of clients goes with suites that ask clients for certificates";
        return Err(InvalidOption::new_err(message.to_owned()));
    }
    let root = Identity::trusted(path, None).map_err(|error| InvalidOption::new_err(error.to_string()))?;
    Ok(AnyIdentity::X509(root))
}

fn to_python(error: ServeError) -> PyErr {
    let message = error.to_string();
    match error {
        ServeError::Setup(SetupError::Unsupported(_)) => Unsupported::new_err(message),
        other if other.is_wrong_input() => InvalidOption::new_err(message),
        _ => CoreError::new_err(message),
    }
}
