//! Another libssl than the built-in one: handshakes and keys through it.

use crate::errors::CoreError;
use crate::options::read;
use pyo3::prelude::*;
use shakedown_stacks::other_libssl::{OtherLibssl, OtherLibsslError, Plan};
use std::path::PathBuf;

fn refused(error: OtherLibsslError) -> PyErr {
    CoreError::new_err(error.to_string())
}

/// A shared libssl.
#[pyclass(frozen, module = "shakedown._core", name = "OtherLibssl")]
pub struct Loaded(OtherLibssl);

#[pymethods]
impl Loaded {
    #[new]
    fn open(path: PathBuf) -> PyResult<Self> {
        OtherLibssl::open(&path).map(Self).map_err(refused)
    }

    /// Microseconds for a key of a key exchange; None if the library does not make such keys.
    fn keygen(&self, py: Python<'_>, kind: &str, curve: Option<&str>) -> PyResult<Option<f64>> {
        py.detach(|| self.0.keygen(kind, curve)).map_err(refused)
    }

    /// Microseconds of the client's and of the server's calls, medians of `count` handshakes; the plan's fields are
    /// those of `crates/stacks/src/other_libssl.rs`.
    fn handshakes(&self, py: Python<'_>, count: usize, plan: &Bound<'_, PyAny>) -> PyResult<(f64, f64)> {
        let plan: Plan = read(plan, "plan")?;
        py.detach(|| self.0.handshakes(&plan, count)).map_err(refused)
    }
}
