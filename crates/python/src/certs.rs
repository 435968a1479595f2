//! Certificates: one request in, one answer out.

use crate::errors::CoreError;
use crate::options::Options;
use pyo3::prelude::*;
use pythonize::{depythonize, pythonize};
use shakedown_certs::request::{self, Request};

/// Makes, issues or describes certificates; what a request may hold is `shakedown_certs::request::Request`'s to say.
#[pyfunction]
pub fn certs<'py>(py: Python<'py>, request: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let request: Request =
        depythonize(request).map_err(|error| CoreError::new_err(format!("certs: {error}")))?;
    let response =
        py.detach(|| request::run(&request)).map_err(|error| CoreError::new_err(error.to_string()))?;
    Ok(pythonize(py, &response)?)
}

/// What a suite is called with the user-supplied certificates that the options name, and what the user should know.
#[pyfunction]
pub fn named_by_chain(suite: &str, options: &Bound<'_, PyAny>) -> PyResult<(String, Vec<String>)> {
    let (suite, _, notes) = Options::read(Some(options))?.for_suite(&crate::parse(suite)?)?;
    Ok((suite.to_string(), notes))
}
