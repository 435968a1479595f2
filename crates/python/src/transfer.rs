//! Bulk transfers after a handshake.

use crate::errors::{CoreError, to_python};
use crate::options::Options;
use pyo3::prelude::*;
use pythonize::pythonize;
use shakedown_stacks::transfer::{self, Link};

/// Measures transfers of each size over connections of a suite; `link` is `open` or `wep`.
#[pyfunction]
#[pyo3(signature = (suite, sizes_bytes, *, link = "open", repeat = 30, options = None))]
pub fn transfers<'py>(
    py: Python<'py>,
    suite: &str,
    sizes_bytes: Vec<usize>,
    link: &str,
    repeat: usize,
    options: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let link = match link {
        "open" => Link::Open,
        "wep" => Link::Wep,
        other => return Err(CoreError::new_err(format!("unknown link '{other}'; accepted: open wep"))),
    };
    let (suite, settings, _) = Options::read(options)?.for_suite(&crate::parse(suite)?)?;
    let found = py.detach(|| transfer::measure(&suite, &sizes_bytes, link, repeat, &settings));
    crate::notices::keep(&settings.notices);
    Ok(pythonize(py, &found.map_err(to_python)?)?)
}
