//! A server that runs in threads of its own.

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
        let mut config: Config = read(request, "serve")?;
        config.suites = suites.iter().map(|suite| parse(suite)).collect::<PyResult<_>>()?;
        let clients = config.clients().map_err(to_python)?;
        // Suites with the keys of user-supplied certificates: what is served is what is said.
        let (served, mut settings) = for_suites(py, options, &config.suites)?;
        config.suites = served;
        settings.client_identity = clients.or(settings.client_identity);
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
    fn wait(&self, py: Python<'_>, timeout_s: f64) -> PyResult<bool> {
        let timeout = Duration::try_from_secs_f64(timeout_s)
            .map_err(|error| InvalidOption::new_err(format!("a time of {timeout_s} s: {error}")))?;
        self.with(py, |server| server.wait(timeout)).map_err(to_python)
    }

    /// The ways of messages through the queue since they were taken last: for each, six unsigned numbers of 64 bits, the
    /// first byte the least: arrived, taken up, done, worked before (ns), number of the handshake, 1 where it is its first.
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

    /// What it has counted so far.
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
