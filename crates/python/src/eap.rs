//! EAP-TLS over RADIUS: peers, and a server.

use crate::errors::{CoreError, InvalidOption, Unsupported};
use crate::options::{address, read, whole};
use crate::{serve_with_callbacks, with_progress};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use pythonize::pythonize;
use serde::Deserialize;
use shakedown_eap::radius::Secret;
use shakedown_eap::service::Limits;
use shakedown_eap::tls::{DEFAULT_FRAGMENT_BYTES, MAX_FRAGMENT_BYTES};
use shakedown_live::eap::{EapError, Files, PeerOptions, ServerOptions, authenticate, serve};
use shakedown_stacks::{SessionCache, Settings, SetupError};
use shakedown_trace::Side;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Options of both ends.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Common {
    address: String,
    secret: String,
    suite: String,
    #[serde(default)]
    chain: Option<PathBuf>,
    #[serde(default)]
    key: Option<PathBuf>,
    #[serde(default)]
    ca: Option<PathBuf>,
    #[serde(default)]
    password: Option<String>,
    /// Folder for generated keys and certificates.
    #[serde(default)]
    cache: Option<PathBuf>,
    #[serde(default)]
    fragment: Option<i64>,
}

/// Maximum length of a User-Name (RFC 2865 section 5.1; RFC 7542 allows no more).
const MAX_IDENTITY_BYTES: usize = 253;
const MAX_COUNT: usize = 100_000_000;
const MAX_IN_FLIGHT: usize = 16_384;

impl Common {
    fn address(&self) -> PyResult<SocketAddr> {
        address(&self.address, 1812)
    }

    fn secret(&self) -> PyResult<Secret> {
        if self.secret.is_empty() {
            return Err(InvalidOption::new_err("the secret is empty; accepted: one byte or more".into()));
        }
        Ok(Secret::new(self.secret.as_bytes()))
    }

    fn fragment(&self) -> PyResult<usize> {
        let given = self.fragment.unwrap_or(DEFAULT_FRAGMENT_BYTES as i64);
        let found = usize::try_from(given).ok().filter(|bytes| (1..=MAX_FRAGMENT_BYTES).contains(bytes));
        found.ok_or_else(|| {
            InvalidOption::new_err(format!(
                "fragment: {given}; accepted: whole numbers from 1 to {MAX_FRAGMENT_BYTES} (TLS bytes)"
            ))
        })
    }

    fn files(&self) -> Files {
        Files {
            chain: self.chain.clone(),
            key: self.key.clone(),
            ca: self.ca.clone(),
            password: self.password.clone(),
        }
    }

    /// Certificates must be valid at the present time, because a real peer checks this.
    fn settings(&self) -> Settings {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Settings {
            now_unix_s: i64::try_from(now.as_secs()).unwrap_or(i64::MAX),
            cache: self.cache.clone(),
            ..Settings::default()
        }
    }
}

/// Authenticates against a RADIUS server `count` times; returns the results and the suite.
#[pyfunction]
#[pyo3(signature = (
    options, *, count, rate_per_s = None, identity = "", max_in_flight = None, resume = false, timeout_s, progress = None
))]
#[allow(clippy::too_many_arguments)] // keywords in Python
pub fn eap_peer<'py>(
    py: Python<'py>,
    options: &Bound<'py, PyAny>,
    count: &Bound<'py, PyAny>,
    rate_per_s: Option<f64>,
    identity: &str,
    max_in_flight: Option<Bound<'py, PyAny>>,
    resume: bool,
    timeout_s: f64,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let common: Common = read(options, "options")?;
    let files = common.files();
    let suite = crate::parse(&common.suite)?;
    let suite = files.suite(&suite, Side::Client, resume).map_err(to_python)?;
    let settings = common.settings();
    if identity.len() > MAX_IDENTITY_BYTES || identity.chars().any(char::is_control) {
        return Err(InvalidOption::new_err(format!(
            "the identity {:?} is not a name; accepted: up to {MAX_IDENTITY_BYTES} bytes, no control characters",
            identity.chars().take(60).collect::<String>()
        )));
    }
    let in_flight = match max_in_flight {
        Some(given) => whole(&given, "authentications in flight", 1, MAX_IN_FLIGHT)?,
        None if rate_per_s.is_some() => MAX_IN_FLIGHT,
        None => 1,
    };
    let options = PeerOptions {
        server: common.address()?,
        secret: common.secret()?,
        identity: identity.to_owned(),
        fragment_bytes: common.fragment()?,
        count: whole(count, "authentications", 1, MAX_COUNT)?,
        rate_per_s: rate_per_s.filter(|rate| rate.is_finite() && *rate > 0.0),
        max_in_flight: in_flight,
        resume: suite.is_resumption(),
        timeout: Duration::try_from_secs_f64(timeout_s).unwrap_or(Duration::MAX / 4),
    };
    let found = with_progress(py, progress, |step| {
        let connector = files.connector(&suite, &settings)?;
        authenticate(&options, connector.as_ref(), step)
    })?;
    crate::notices::keep(&settings.notices);
    let found = pythonize(py, &found.map_err(to_python)?)?;
    found.cast::<PyDict>()?.set_item("suite", suite.to_string())?;
    Ok(found)
}

/// Serves EAP-TLS until a signal handler raises. `listening` is called once with the address and the suite, `stopped`
/// at the end with the counts. `sessions` stores sessions for resumption; None: in memory.
#[pyfunction]
#[pyo3(signature = (options, *, resume, sessions = None, listening, stopped))]
pub fn eap_serve(
    py: Python<'_>,
    options: &Bound<'_, PyAny>,
    resume: bool,
    sessions: Option<Py<PyAny>>,
    listening: Py<PyAny>,
    stopped: Py<PyAny>,
) -> PyResult<()> {
    let common: Common = read(options, "options")?;
    let files = common.files();
    let asked = crate::parse(&common.suite)?;
    let suite = files.suite(&asked, Side::Server, resume).map_err(to_python)?;
    let name = files.suite(&asked, Side::Server, false).map_err(to_python)?.to_string();
    let settings = common.settings();
    let options = ServerOptions {
        listen: common.address()?,
        secret: common.secret()?,
        fragment_bytes: common.fragment()?,
        limits: Limits::default(),
    };
    // A signal handler runs in the next Python code, which may be the store's.
    let interruption = Interruption::default();
    let cache = sessions.map(|store| {
        let interruption = Arc::clone(&interruption);
        move |bound| -> Arc<dyn SessionCache> {
            let store = Python::attach(|py| store.clone_ref(py));
            Arc::new(PythonSessions { bound, store, interruption: Arc::clone(&interruption) })
        }
    });
    let interrupted = || interruption.lock().unwrap_or_else(PoisonError::into_inner).is_some();
    let served = serve_with_callbacks(py, &listening, &stopped, to_python, |on_listening, step| {
        let sessions = cache.as_ref().map(|cache| cache as &dyn Fn([u8; 32]) -> Arc<dyn SessionCache>);
        let acceptor = files.acceptor(&suite, &settings, sessions)?;
        let mut emit = |at: SocketAddr| on_listening((at.to_string(), name.clone()));
        let mut step = |over| if interrupted() { ControlFlow::Break(()) } else { step(over) };
        serve(&options, acceptor, &mut emit, &mut step)
    });
    crate::notices::keep(&settings.notices);
    served?;
    let interruption = interruption.lock().unwrap_or_else(PoisonError::into_inner).take();
    interruption.map_or(Ok(()), Err)
}

/// The exception that a call of a store raised.
type Interruption = Arc<Mutex<Option<PyErr>>>;

/// A Python object with the methods `put` and `get`; that of `shakedown.live.eap_sessions` uses SQLite and raises no
/// exceptions of its own. If it cannot store or find a session, the peer authenticates by a full handshake.
struct PythonSessions {
    /// Digest of what its sessions depend on.
    bound: [u8; 32],
    store: Py<PyAny>,
    interruption: Interruption,
}

impl PythonSessions {
    /// Calls the store again if a signal handler raised in the first call: the store was not at fault, and the peer
    /// must not be affected.
    fn ask<T>(&self, work: impl Fn(Python<'_>, &Bound<'_, PyAny>) -> PyResult<T>) -> Option<T> {
        self.ask_once(&work).or_else(|| self.ask_once(&work))
    }

    fn ask_once<T>(&self, work: impl Fn(Python<'_>, &Bound<'_, PyAny>) -> PyResult<T>) -> Option<T> {
        Python::attach(|py| work(py, self.store.bind(py)))
            .map_err(|error| {
                self.interruption.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            })
            .ok()
    }
}

impl SessionCache for PythonSessions {
    fn put(&self, id: &[u8], session: Vec<u8>, made_unix_s: i64) {
        self.ask(|py, store| {
            let (id, bound) = (PyBytes::new(py, id), PyBytes::new(py, &self.bound));
            let values = (id, bound, PyBytes::new(py, &session), made_unix_s);
            store.call_method1("put", values).map(drop)
        });
    }

    fn get(&self, id: &[u8]) -> Option<Vec<u8>> {
        self.ask(|py, store| {
            let values = (PyBytes::new(py, id), PyBytes::new(py, &self.bound));
            store.call_method1("get", values)?.extract::<Option<Vec<u8>>>()
        })
        .flatten()
    }
}

fn to_python(error: EapError) -> PyErr {
    let message = error.to_string();
    match error {
        EapError::Setup(SetupError::Unsupported(_)) => Unsupported::new_err(message),
        EapError::User(_) | EapError::Listen { .. } | EapError::KeyWithoutChain(_) => {
            InvalidOption::new_err(message)
        }
        EapError::Interrupted => PyKeyboardInterrupt::new_err(message),
        _ => CoreError::new_err(message),
    }
}
