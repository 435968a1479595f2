//! A server that runs in its own threads.

use crate::errors::{CoreError, InvalidOption, Unsupported};
use crate::options::{for_suites, read};
use crate::{notices, parse, with_progress};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pythonize::pythonize;
use shakedown_live::serve::{Config, ServeError, Server as Live};
use shakedown_stacks::SetupError;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A running server. All connections are closed when the object is deleted.
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
        let mut config: Config = read(request, "serve")?;
        config.suites = suites.iter().map(|suite| parse(suite)).collect::<PyResult<_>>()?;
        let clients = config.clients().map_err(to_python)?;
        // The suites, named after the keys of user-supplied certificates.
        let (served, mut settings) = for_suites(py, options, &config.suites)?;
        config.suites = served;
        settings.client_identity = clients.or(settings.client_identity);
        let started = with_progress(py, None, |_| Live::start(config, &settings));
        notices::keep(&settings.notices);
        Ok(Self(Mutex::new(started?.map_err(to_python)?)))
    }

    /// The address on which it listens, as text.
    #[getter]
    fn address(&self, py: Python<'_>) -> String {
        self.with(py, |server| server.address().to_string())
    }

    /// The address of its metrics, as text.
    #[getter]
    fn metrics_address(&self, py: Python<'_>) -> Option<String> {
        self.with(py, |server| server.metrics_address().map(|address| address.to_string()))
    }

    /// Roots that clients must trust, as DER; empty if no suite has X.509 certificates.
    #[getter]
    fn roots<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        let roots = self.with(py, |server| server.roots().to_vec());
        roots.iter().map(|root| PyBytes::new(py, root)).collect()
    }

    /// Name and version of the stack that runs the suites.
    #[getter]
    fn stack<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let stack = self.with(py, |server| server.stack().clone());
        Ok(pythonize(py, &stack)?)
    }

    /// Begins a graceful stop.
    fn stop(&self, py: Python<'_>) {
        self.with(py, |server| server.stop());
    }

    /// Closes all connections immediately.
    fn cut(&self, py: Python<'_>) {
        self.with(py, |server| server.cut());
    }

    /// Waits for the end of the server, at most for `timeout_s`; true if it has ended.
    fn wait(&self, py: Python<'_>, timeout_s: f64) -> PyResult<bool> {
        let timeout = Duration::try_from_secs_f64(timeout_s)
            .map_err(|error| InvalidOption::new_err(format!("a time of {timeout_s} s: {error}")))?;
        self.with(py, |server| server.wait(timeout)).map_err(to_python)
    }

    /// Queue times of messages since the last call. For each message, six little-endian 64-bit integers without sign:
    /// arrival, read, end, the worker's busy time before (ns), number of the handshake, 1 for its first message.
    fn take_queue_traces<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let traces = self.with(py, |server| server.take_queue_traces());
        let bytes: Vec<u8> = traces
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

    /// Counts so far.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let summary = self.with(py, |server| server.summary());
        Ok(pythonize(py, &summary)?)
    }
}

fn to_python(error: ServeError) -> PyErr {
    let message = error.to_string();
    match error {
        ServeError::Setup(SetupError::Unsupported(_)) => Unsupported::new_err(message),
        other if other.is_wrong_input() => InvalidOption::new_err(message),
        _ => CoreError::new_err(message),
    }
}
