//! Captures: connections, what the file as a whole told, and traces for predictions.

use crate::errors::CaptureError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pythonize::pythonize;
use shakedown_capture::inspect::{Inspector, Limits};
use shakedown_capture::trace::{self, CapturedTrace};
use std::path::PathBuf;

/// Reads a capture: `connections`, `summary`, `traces` of those connections that a prediction can use, `refused`
/// with the reason for the others, and `problem`, which is why reading ended early, or None.
#[pyfunction]
#[pyo3(signature = (path, keylog = None))]
pub fn inspect(py: Python<'_>, path: PathBuf, keylog: Option<PathBuf>) -> PyResult<Bound<'_, PyAny>> {
    let refused = |error: shakedown_capture::CaptureError| CaptureError::new_err(error.to_string());
    let (connections, summary, problem) = py
        .detach(|| {
            let mut inspector = Inspector::open(&path, keylog.as_deref(), Limits::default())?;
            let mut connections: Vec<_> = inspector.by_ref().collect();
            connections.sort_by_key(|connection| connection.index);
            let problem = inspector.error().map(ToString::to_string);
            Ok((connections, inspector.summary(), problem))
        })
        .map_err(refused)?;
    let mut traces: Vec<CapturedTrace> = Vec::new();
    let mut reasons: Vec<String> = Vec::new();
    for connection in &connections {
        match trace::of(connection) {
            Ok(trace) => traces.push(trace),
            Err(reason) => reasons.push(reason.to_string()),
        }
    }
    let found = PyDict::new(py);
    found.set_item("connections", pythonize(py, &connections)?)?;
    found.set_item("summary", pythonize(py, &summary)?)?;
    found.set_item("traces", pythonize(py, &traces)?)?;
    found.set_item("refused", reasons)?;
    found.set_item("problem", problem)?;
    Ok(found.into_any())
}
