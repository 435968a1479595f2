//! Options of a measurement, from a Python mapping.

use crate::errors::{InvalidOption, Unsupported};
use pyo3::prelude::*;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use shakedown_certs::CertsError;
use shakedown_certs::supplied::{self, SuppliedFiles};
use shakedown_eap::tls::{DEFAULT_FRAGMENT_BYTES, MAX_FRAGMENT_BYTES};
use shakedown_pki::Profile;
use shakedown_stacks::wtls::{self, CertificateForm};
use shakedown_stacks::{Registry, Settings};
use shakedown_trace::{Carrier, Suite, instructions};
use std::net::SocketAddr;
use std::path::PathBuf;

/// What may be given; anything else is refused by name.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// Time at which certificates must be valid, in seconds since 1970.
    now: Option<i64>,
    /// Tickets after a full handshake.
    tickets: Option<u32>,
    /// A certificate profile.
    profile: Option<PathBuf>,
    /// Where keys and certificates are kept.
    cache: Option<PathBuf>,
    /// The server's user-supplied chain, its key and the root that clients are to trust.
    chain: Option<PathBuf>,
    key: Option<PathBuf>,
    ca: Option<PathBuf>,
    /// The client's.
    client_chain: Option<PathBuf>,
    client_key: Option<PathBuf>,
    client_ca: Option<PathBuf>,
    /// Of these files; the client's may have another.
    password: Option<String>,
    client_password: Option<String>,
    /// Names of stacks: of both sides, or of one.
    stack: Option<String>,
    client_stack: Option<String>,
    server_stack: Option<String>,
    /// WTLS: the form of generated certificates, `wtls` or `x509`.
    certificate_form: Option<CertificateForm>,
    /// WTLS: private numbers for curves that have none.
    private_curves: bool,
    /// From what endpoints draw all randomness.
    seed: Option<u64>,
    /// Count instructions: valgrind, which runs this process, writes its log there.
    instructions_log: Option<PathBuf>,
    /// What carries the handshake, and for EAP how many bytes of TLS go into a packet.
    carrier: Option<Carrier>,
    fragment: Option<usize>,
}

/// The most tickets that a server issues after a handshake.
const MAX_TICKETS: u32 = 16;

/// A whole number from Python within bounds, however large or small it is there.
pub fn whole(given: &Bound<'_, PyAny>, what: &str, min: usize, max: usize) -> PyResult<usize> {
    let number: Option<i128> = given.extract().ok();
    let number = number.and_then(|number| usize::try_from(number).ok());
    number.filter(|number| (min..=max).contains(number)).ok_or_else(|| {
        let text: String = given.to_string().chars().take(40).collect();
        InvalidOption::new_err(format!("{what}: {text}; accepted: whole numbers from {min} to {max}"))
    })
}

/// Reads a value whose fields are the caller's to get right.
pub fn read<T: DeserializeOwned>(given: &Bound<'_, PyAny>, what: &str) -> PyResult<T> {
    pythonize::depythonize(given).map_err(|error| InvalidOption::new_err(format!("{what}: {error}")))
}

/// An address without names in it; `port` is one that would be usual.
pub fn address(text: &str, port: u16) -> PyResult<SocketAddr> {
    text.parse().map_err(|_| {
        let text: String = text.chars().take(60).collect();
        InvalidOption::new_err(format!(
            "{text}: no address; accepted: ADDRESS:PORT in numbers, as 127.0.0.1:{port} or [::1]:{port}"
        ))
    })
}

impl Options {
    /// Reads a mapping; nothing gives the defaults.
    pub fn read(given: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        given.map_or(Ok(Self::default()), |given| read(given, "options"))
    }

    /// The settings of a suite, the suite with the keys of user-supplied certificates where there are any, and what
    /// the user should know about them.
    pub fn for_suite(self, suite: &Suite) -> PyResult<(Suite, Settings, Vec<String>)> {
        let files = |chain: &Option<PathBuf>, key: &Option<PathBuf>, ca: &Option<PathBuf>, password| {
            chain.clone().map(|chain| SuppliedFiles { chain, key: key.clone(), ca: ca.clone(), password })
        };
        let server = files(&self.chain, &self.key, &self.ca, self.password.clone());
        let client_password = self.client_password.clone().or_else(|| self.password.clone());
        let client = files(&self.client_chain, &self.client_key, &self.client_ca, client_password);
        let now_unix_s = self.now.unwrap_or(Settings::default().now_unix_s);
        let loaded = supplied::load(suite, server.as_ref(), client.as_ref(), now_unix_s)
            .map_err(certificates_refused)?;
        let settings =
            Settings { server_identity: loaded.server, client_identity: loaded.client, ..self.settings()? };
        Ok((loaded.suite, settings, loaded.notes))
    }

    /// The settings, user-supplied certificates aside.
    pub fn settings(self) -> PyResult<Settings> {
        let defaults = Settings::default();
        if let Some(tickets) = self.tickets.filter(|tickets| *tickets > MAX_TICKETS) {
            let message = format!("tickets: {tickets}; accepted: whole numbers from 0 to {MAX_TICKETS}");
            return Err(InvalidOption::new_err(message));
        }
        let profile = match &self.profile {
            Some(name) => Profile::find(&name.to_string_lossy())
                .map_err(|error| InvalidOption::new_err(error.to_string()))?,
            None => defaults.profile,
        };
        let registry = Registry::with(wtls::Options {
            certificate_form: self.certificate_form.unwrap_or_default(),
            private_curves: self.private_curves,
            ..wtls::Options::default()
        });
        let named = |name: Option<String>| {
            let name = name.or_else(|| self.stack.clone());
            if let Some(name) = &name {
                registry.get(name).map_err(|error| InvalidOption::new_err(error.to_string()))?;
            }
            Ok::<_, PyErr>(name)
        };
        let (client_stack, server_stack) = (named(self.client_stack)?, named(self.server_stack)?);
        let counter = match &self.instructions_log {
            Some(log) => {
                instructions::start(log).map_err(|error| InvalidOption::new_err(error.to_string()))?
            }
            None => defaults.counter,
        };
        Ok(Settings {
            now_unix_s: self.now.unwrap_or(defaults.now_unix_s),
            tickets: self.tickets.unwrap_or(defaults.tickets),
            profile,
            cache: self.cache.or(defaults.cache),
            seed: self.seed,
            counter,
            carrier: self.carrier.unwrap_or(Carrier::Bare),
            fragment_bytes: self.fragment.unwrap_or(DEFAULT_FRAGMENT_BYTES).clamp(1, MAX_FRAGMENT_BYTES),
            registry,
            client_stack,
            server_stack,
            ..Settings::default()
        })
    }
}

/// `Unsupported` if the certificates are valid but the suite does not use them, `InvalidOption` if they are invalid.
fn certificates_refused(error: CertsError) -> PyErr {
    match error {
        CertsError::Suite(_) | CertsError::NoUse { .. } | CertsError::WrongKind { .. } => {
            Unsupported::new_err(error.to_string())
        }
        // Files that are not there, or not what they should be.
        _ => InvalidOption::new_err(error.to_string()),
    }
}
