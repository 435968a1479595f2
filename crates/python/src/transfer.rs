//! Bulk transfers after a handshake.

use crate::errors::{InvalidOption, to_python};
use crate::options::{for_suite, whole};
use crate::with_progress;
use pyo3::prelude::*;
use pythonize::pythonize;
use shakedown_stacks::measure::MAX_REPEAT;
use shakedown_stacks::transfer::{self, LINKS, MAX_BYTES};

const DEFAULT_REPEAT: usize = 30;

/// Measures transfers of each size over connections of a suite; `link` is `open`, `wep` or `ccmp`.
#[pyfunction]
#[pyo3(signature = (suite, sizes_bytes, *, link = "open", repeat = None, options = None))]
pub fn transfers<'py>(
    py: Python<'py>,
    suite: &str,
    sizes_bytes: Vec<Bound<'py, PyAny>>,
    link: &str,
    repeat: Option<Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let repeat = repeat.map_or(Ok(DEFAULT_REPEAT), |repeat| whole(&repeat, "repetitions", 1, MAX_REPEAT))?;
    let Some((_, encryption)) = LINKS.into_iter().find(|row| row.0 == link) else {
        let accepted = LINKS.map(|row| row.0).join(", ");
        return Err(InvalidOption::new_err(format!("unknown link '{link}'; accepted: {accepted}")));
    };
    let sizes: Vec<usize> = sizes_bytes
        .iter()
        .map(|bytes| whole(bytes, "a transfer's bytes", 1, MAX_BYTES))
        .collect::<PyResult<_>>()?;
    let (suite, settings, _) = for_suite(py, options, &crate::parse(suite)?)?;
    let found = with_progress(py, None, |step| {
        transfer::measure(&suite, &sizes, encryption, repeat, &settings, step)
    });
    crate::notices::keep(&settings.notices);
    Ok(pythonize(py, &found?.map_err(to_python)?)?)
}
