//! The core's errors as Python exceptions, each with one clear line.

use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use shakedown_stacks::SetupError;
use shakedown_stacks::measure::MeasureError;
use shakedown_trace::driver::DriveError;
use std::sync::OnceLock;

pyo3::create_exception!(_core, CoreError, pyo3::exceptions::PyException, "Base of the core's errors.");
pyo3::create_exception!(_core, HandshakeFailed, CoreError, "A handshake ended without a connection.");
pyo3::create_exception!(_core, CaptureError, CoreError, "A capture that cannot be read or written.");

/// An exception that is a `CoreError` and a `ValueError`.
macro_rules! value_error {
    ($name:ident, $doc:literal) => {
        pub struct $name;

        impl $name {
            fn type_object(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
                static TYPE: OnceLock<Py<PyType>> = OnceLock::new();
                if let Some(known) = TYPE.get() {
                    return Ok(known.bind(py).clone());
                }
                let bases = PyTuple::new(py, [CoreError::type_object(py), PyValueError::type_object(py)])?;
                let fields = PyDict::new(py);
                fields.set_item("__module__", "shakedown._core")?;
                fields.set_item("__doc__", $doc)?;
                let made = py.get_type::<PyType>().call1((stringify!($name), bases, fields))?;
                let made = made.cast_into::<PyType>()?.unbind();
                Ok(TYPE.get_or_init(|| made).bind(py).clone())
            }

            /// An exception with its message of one line.
            pub fn new_err(message: String) -> PyErr {
                Python::attach(|py| match Self::type_object(py) {
                    Ok(kind) => PyErr::from_type(kind, message),
                    Err(error) => error,
                })
            }
        }
    };
}

value_error!(InvalidSuite, "A malformed or impossible suite name.");
value_error!(
    InvalidOption,
    "An option that cannot be: a certificate profile that is not there, for example."
);
value_error!(Unsupported, "A valid suite name that its stack cannot run; the line says why.");

/// Adds the exceptions to the module.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("CoreError", CoreError::type_object(py))?;
    module.add("HandshakeFailed", HandshakeFailed::type_object(py))?;
    module.add("CaptureError", CaptureError::type_object(py))?;
    module.add("InvalidSuite", InvalidSuite::type_object(py)?)?;
    module.add("InvalidOption", InvalidOption::type_object(py)?)?;
    module.add("Unsupported", Unsupported::type_object(py)?)
}

/// The exception for a failed measurement.
pub fn to_python(error: MeasureError) -> PyErr {
    let message = error.to_string();
    match error {
        MeasureError::Setup(SetupError::Unsupported(_)) => Unsupported::new_err(message),
        MeasureError::Setup(setup) if setup.is_input() => InvalidOption::new_err(message),
        MeasureError::Repetitions { .. } => InvalidOption::new_err(message),
        MeasureError::Handshake { error, .. } => handshake_failed(&message, &error),
        MeasureError::Interrupted => PyKeyboardInterrupt::new_err(message),
        _ => CoreError::new_err(message),
    }
}

fn handshake_failed(message: &str, error: &DriveError) -> PyErr {
    let (side, state, alert) = match error {
        DriveError::Failed(failure) => (failure.side.as_str(), failure.state.clone(), failure.alert.clone()),
        DriveError::Ended { side } => (side.as_str(), "closed".to_owned(), None),
        DriveError::TooManyRounds { client, .. } | DriveError::Deadlock { client, .. } => {
            ("client", client.clone(), None)
        }
    };
    let raised = HandshakeFailed::new_err(message.to_owned());
    Python::attach(|py| {
        let value = raised.value(py);
        let set = value
            .setattr("side", side)
            .and_then(|()| value.setattr("state", state))
            .and_then(|()| value.setattr("alert", alert));
        set.map_or_else(|error| error, |()| raised.clone_ref(py))
    })
}
