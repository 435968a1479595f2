//! Certificates: one request and its response.

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

/// Generates, issues or describes certificates. `shakedown_certs::request::Request` defines requests.
#[pyfunction]
pub fn certs<'py>(py: Python<'py>, request: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let request: Request =
        depythonize(request).map_err(|error| CoreError::new_err(format!("certs: {error}")))?;
    let response = with_progress(py, None, |_| request::run(&request))?.map_err(refused)?;
    Ok(pythonize(py, &response)?)
}

/// A full disk raises `OSError`; every other error is invalid input.
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

/// The suite's name with the user-supplied certificates of the options, and notes about these for the user.
#[pyfunction]
pub fn named_by_chain(
    py: Python<'_>,
    suite: &str,
    options: &Bound<'_, PyAny>,
) -> PyResult<(String, Vec<String>)> {
    let (suite, _, notes) = for_suite(py, Some(options), &crate::parse(suite)?)?;
    Ok((suite.to_string(), notes))
}
