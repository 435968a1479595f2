//! Certificates: one request in, one answer out.

use crate::errors::CoreError;
use crate::options::for_suite;
use crate::with_progress;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pythonize::{depythonize, pythonize};
use shakedown_certs::CertsError;
use shakedown_certs::request::{self, Request};
use std::io::ErrorKind;

/// Linux's number for a full disk.
const ENOSPC: i32 = 28;

/// Makes, issues or describes certificates; what a request may hold is `shakedown_certs::request::Request`'s to say.
#[pyfunction]
pub fn certs<'py>(py: Python<'py>, request: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let request: Request =
        depythonize(request).map_err(|error| CoreError::new_err(format!("certs: {error}")))?;
    let response = with_progress(py, None, |_| request::run(&request))?.map_err(refused)?;
    Ok(pythonize(py, &response)?)
}

/// A disk that has no room is the machine's trouble; everything else is wrong input.
fn refused(error: CertsError) -> PyErr {
    match error {
        CertsError::File { path, source, .. } if is_full(source.kind()) => {
            let number = source.raw_os_error().unwrap_or(ENOSPC);
            PyOSError::new_err((number, "No space left on device", path))
        }
        error => CoreError::new_err(error.to_string()),
    }
}

fn is_full(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}

/// What a suite is called with the user-supplied certificates that the options name, and what the user should know.
#[pyfunction]
pub fn named_by_chain(
    py: Python<'_>,
    suite: &str,
    options: &Bound<'_, PyAny>,
) -> PyResult<(String, Vec<String>)> {
    let (suite, _, notes) = for_suite(py, Some(options), &crate::parse(suite)?)?;
    Ok((suite.to_string(), notes))
}
