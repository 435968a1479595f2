//! Options of handshakes, from a Python mapping.

use crate::errors::{InvalidOption, Unsupported};
use crate::with_progress;
use pyo3::prelude::*;
use serde::de::DeserializeOwned;
use shakedown_stacks::Settings;
use shakedown_stacks::options::{Options, OptionsError};
use shakedown_trace::Suite;
use std::net::SocketAddr;

/// An integer from Python within bounds; larger and smaller integers of any size are rejected.
pub fn whole(given: &Bound<'_, PyAny>, what: &str, min: usize, max: usize) -> PyResult<usize> {
    let number: Option<i128> = given.extract().ok();
    let number = number.and_then(|number| usize::try_from(number).ok());
    number.filter(|number| (min..=max).contains(number)).ok_or_else(|| {
        let text: String = given.to_string().chars().take(40).collect();
        InvalidOption::new_err(format!("{what}: {text}; accepted: whole numbers from {min} to {max}"))
    })
}

/// Reads a value; an error in it is an invalid option of the caller.
pub fn read<T: DeserializeOwned>(given: &Bound<'_, PyAny>, what: &str) -> PyResult<T> {
    pythonize::depythonize(given).map_err(|error| InvalidOption::new_err(format!("{what}: {error}")))
}

/// A numeric address; `port` is used in the example of the error message.
pub fn address(text: &str, port: u16) -> PyResult<SocketAddr> {
    text.parse().map_err(|_| {
        let text: String = text.chars().take(60).collect();
        InvalidOption::new_err(format!(
            "{text}: not an address; accepted: ADDRESS:PORT in numbers such as 127.0.0.1:{port} or [::1]:{port}"
        ))
    })
}

/// The suite with the keys of user-supplied certificates (if any), its settings, and notes about these certificates for
/// the user.
pub fn for_suite(
    py: Python<'_>,
    given: Option<&Bound<'_, PyAny>>,
    suite: &Suite,
) -> PyResult<(Suite, Settings, Vec<String>)> {
    let options = options(given)?;
    with_progress(py, None, |_| options.for_suite(suite))?.map_err(refused)
}

/// The same for several suites.
pub fn for_suites(
    py: Python<'_>,
    given: Option<&Bound<'_, PyAny>>,
    suites: &[Suite],
) -> PyResult<(Vec<Suite>, Settings)> {
    let options = options(given)?;
    with_progress(py, None, |_| options.for_suites(suites))?.map_err(refused)
}

fn options(given: Option<&Bound<'_, PyAny>>) -> PyResult<Options> {
    given.map_or(Ok(Options::default()), |given| read(given, "options"))
}

fn refused(error: OptionsError) -> PyErr {
    let message = error.to_string();
    match error {
        OptionsError::Unused(_) => Unsupported::new_err(message),
        OptionsError::Invalid(_) => InvalidOption::new_err(message),
    }
}
