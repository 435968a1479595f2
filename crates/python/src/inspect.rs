//! Captures: connections in the order in which they end, a summary of the file, and traces for predictions.

use crate::errors::{CaptureError, CoreError};
use crate::{POLL_INTERVAL, with_progress};
use pyo3::prelude::*;
use pythonize::pythonize;
use shakedown_capture::CaptureError as Reason;
use shakedown_capture::inspect::{Inspector, Limits, Step};
use shakedown_capture::report::Connection;
use shakedown_capture::tls::keylog::KeyLog;
use shakedown_capture::trace::{self, CapturedTrace, NoTrace};
use shakedown_pki::input::Input;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Number of packets that are read between two checks of the time.
const STRIDE_PACKETS: usize = 1024;

/// The exception that a signal handler raised.
type Raised = Arc<Mutex<Option<PyErr>>>;

fn take(raised: &Raised) -> PyResult<()> {
    raised.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
}

/// A file or a pipe. Signals are handled while a pipe has no data.
type Heedful = Input<Box<dyn FnMut() -> bool + Send>>;

fn open(path: &Path, raised: &Raised) -> io::Result<Heedful> {
    let raised = Arc::clone(raised);
    Input::open(
        path,
        Box::new(move || match Python::attach(|py| py.check_signals()) {
            Ok(()) => true,
            Err(error) => {
                raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                false
            }
        }),
    )
}

/// A connection and its trace.
#[pyclass(frozen, module = "shakedown._core")]
pub struct Inspected {
    connection: Connection,
    trace: Result<CapturedTrace, NoTrace>,
}

#[pymethods]
impl Inspected {
    /// The connection's fields.
    #[getter]
    fn connection<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(pythonize(py, &self.connection)?)
    }

    /// The same as one line of JSON.
    #[getter]
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&self.connection).map_err(|error| CoreError::new_err(error.to_string()))
    }

    /// The trace for predictions, or None.
    #[getter]
    fn trace<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.trace.as_ref().ok().map(|trace| pythonize(py, trace)).transpose()?)
    }

    /// Why there is no trace, or None.
    #[getter]
    fn refused(&self) -> Option<String> {
        self.trace.as_ref().err().map(ToString::to_string)
    }
}

/// Reads a capture: an iterator of connections, in the order in which they end.
#[pyclass(frozen, module = "shakedown._core")]
pub struct Inspection {
    inspector: Mutex<Inspector<Heedful>>,
    raised: Raised,
    progress: Option<Py<PyAny>>,
}

impl Inspection {
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Inspector<Heedful>) -> T + Send) -> T {
        // The interpreter lock is released during the wait, because the holder of this lock may need it.
        py.detach(|| work(&mut self.inspector.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

#[pymethods]
impl Inspection {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Inspected>> {
        loop {
            let (step, bytes) = self.with(py, |inspector| {
                let begun = Instant::now();
                loop {
                    match inspector.step(STRIDE_PACKETS) {
                        Step::NoneYet if begun.elapsed() < POLL_INTERVAL => {}
                        step => return (step, inspector.bytes_read()),
                    }
                }
            });
            take(&self.raised)?;
            py.check_signals()?;
            if let Some(progress) = &self.progress {
                progress.call1(py, (bytes,))?;
            }
            match step {
                Step::Connection(connection) => {
                    let trace = trace::of(&connection);
                    return Ok(Some(Inspected { connection: *connection, trace }));
                }
                Step::NoneYet => {}
                Step::End => return Ok(None),
            }
        }
    }

    /// Summary of the file so far; complete once the iterator has ended.
    #[getter]
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(pythonize(py, &self.with(py, |inspector| inspector.summary()))?)
    }

    /// Why reading ended before the end of the file, or None.
    #[getter]
    fn problem(&self, py: Python<'_>) -> Option<String> {
        self.with(py, |inspector| inspector.error().map(ToString::to_string))
    }
}

/// Opens a capture, with a key log if there is one. `progress` is called with the number of bytes read.
#[pyfunction]
#[pyo3(signature = (path, keylog = None, *, progress = None))]
pub fn inspect(
    py: Python<'_>,
    path: PathBuf,
    keylog: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Inspection> {
    let raised = Raised::default();
    let opened = with_progress(py, None, |step| {
        let mut keys = KeyLog::default();
        if let Some(path) = &keylog {
            let file =
                open(path, &raised).map_err(|source| Reason::OpenKeyLog { path: path.clone(), source })?;
            keys.read_watched(file, &mut || step(0))?;
        }
        let file = open(&path, &raised).map_err(|source| Reason::Open { path: path.clone(), source })?;
        Inspector::new(file, keys, Limits::default())
    })?;
    take(&raised)?;
    let inspector = opened.map_err(|error| input_error(&error, &path, keylog.as_deref()))?;
    Ok(Inspection { inspector: Mutex::new(inspector), raised, progress })
}

/// One line that names the file.
fn input_error(error: &Reason, path: &Path, keylog: Option<&Path>) -> PyErr {
    let file = match error {
        Reason::Open { .. } | Reason::OpenKeyLog { .. } => return CaptureError::new_err(error.to_string()),
        Reason::KeyLog { .. } => keylog.unwrap_or(path),
        _ => path,
    };
    CaptureError::new_err(format!("{}: {error}", file.display()))
}
