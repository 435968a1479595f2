//! Another libssl than the built-in one: handshakes and keys through it.

use crate::errors::CoreError;
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

    /// Microseconds of the client's and of the server's calls, medians of `count` handshakes.
    #[pyo3(signature = (count, *, tls13, groups, cipher, certificate, key, root, tickets, resumed))]
    #[expect(clippy::too_many_arguments, reason = "each is named where it is called")]
    fn handshakes(
        &self,
        py: Python<'_>,
        count: usize,
        tls13: bool,
        groups: String,
        cipher: String,
        certificate: String,
        key: String,
        root: String,
        tickets: usize,
        resumed: bool,
    ) -> PyResult<(f64, f64)> {
        let plan = Plan { tls13, groups, cipher, certificate, key, root, tickets, resumed };
        py.detach(|| self.0.handshakes(&plan, count)).map_err(refused)
    }
}
