//! Options of handshakes, as in command lines and Python: the user's certificates, the stacks, and others.

use crate::wtls::{self, CertificateForm};
use crate::{Registry, Settings};
use serde::Deserialize;
use shakedown_certs::CertsError;
use shakedown_certs::supplied::{self, SuppliedFiles};
use shakedown_eap::tls::{DEFAULT_FRAGMENT_BYTES, MAX_FRAGMENT_BYTES};
use shakedown_pki::Profile;
use shakedown_trace::{Carrier, Suite, instructions};
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// The certificates are valid, but the suite does not use them.
    #[error("{0}")]
    Unused(CertsError),
    #[error("{0}")]
    Invalid(String),
}

impl From<CertsError> for OptionsError {
    fn from(error: CertsError) -> Self {
        match error {
            CertsError::Suite(_) | CertsError::NoUse { .. } | CertsError::WrongKind { .. } => {
                Self::Unused(error)
            }
            // Missing or invalid files.
            _ => invalid(error),
        }
    }
}

fn invalid(error: impl std::fmt::Display) -> OptionsError {
    OptionsError::Invalid(error.to_string())
}

/// The accepted options; others are rejected by name.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// Time at which certificates must be valid, in seconds since 1970.
    now: Option<i64>,
    tickets: Option<u32>,
    profile: Option<PathBuf>,
    cache: Option<PathBuf>,
    /// The server's user-supplied chain, its key, and the root that clients trust.
    chain: Option<PathBuf>,
    key: Option<PathBuf>,
    ca: Option<PathBuf>,
    /// The same for the client.
    client_chain: Option<PathBuf>,
    client_key: Option<PathBuf>,
    client_ca: Option<PathBuf>,
    /// Password of the files; `client_password` replaces it for the client's files.
    password: Option<String>,
    client_password: Option<String>,
    /// Names of stacks: for both sides, or for one.
    stack: Option<String>,
    client_stack: Option<String>,
    server_stack: Option<String>,
    /// WTLS: the form of generated certificates, `wtls` or `x509`.
    certificate_form: Option<CertificateForm>,
    /// WTLS: private numbers for curves that have none.
    private_curves: bool,
    seed: Option<u64>,
    /// Counts instructions: the path of the log of valgrind, under which this process runs.
    instructions_log: Option<PathBuf>,
    /// The carrier of the handshake, and for EAP the maximum number of TLS bytes in a packet.
    carrier: Option<Carrier>,
    fragment: Option<usize>,
}

const MAX_TICKETS: u32 = 16;

impl Options {
    /// The settings of suites that are served or loaded together, and the suites, with the keys of user-supplied
    /// certificates.
    pub fn for_suites(self, suites: &[Suite]) -> Result<(Vec<Suite>, Settings), OptionsError> {
        let (mut named, mut settings) = (Vec::new(), None);
        for suite in suites {
            let (suite, found, _) = self.clone().for_suite(suite)?;
            named.push(suite);
            settings.get_or_insert(found);
        }
        Ok((named, settings.map_or_else(|| self.settings(), Ok)?))
    }

    /// The settings of a suite, the suite with the keys of user-supplied certificates, and notices for the user about
    /// these certificates.
    pub fn for_suite(self, suite: &Suite) -> Result<(Suite, Settings, Vec<String>), OptionsError> {
        let files = |chain: &Option<PathBuf>, key: &Option<PathBuf>, ca: &Option<PathBuf>, password| {
            chain.clone().map(|chain| SuppliedFiles { chain, key: key.clone(), ca: ca.clone(), password })
        };
        let server = files(&self.chain, &self.key, &self.ca, self.password.clone());
        let client_password = self.client_password.clone().or_else(|| self.password.clone());
        let client = files(&self.client_chain, &self.client_key, &self.client_ca, client_password);
        let now_unix_s = self.now.unwrap_or(Settings::default().now_unix_s);
        let loaded = supplied::load(suite, server.as_ref(), client.as_ref(), now_unix_s)?;
        let settings =
            Settings { server_identity: loaded.server, client_identity: loaded.client, ..self.settings()? };
        Ok((loaded.suite, settings, loaded.notes))
    }

    /// The settings without user-supplied certificates.
    fn settings(self) -> Result<Settings, OptionsError> {
        let defaults = Settings::default();
        if let Some(tickets) = self.tickets.filter(|tickets| *tickets > MAX_TICKETS) {
            let message = format!("tickets: {tickets}; accepted: whole numbers from 0 to {MAX_TICKETS}");
            return Err(OptionsError::Invalid(message));
        }
        let profile = match &self.profile {
            Some(name) => Profile::find(&name.to_string_lossy()).map_err(invalid)?,
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
                registry.get(name).map_err(invalid)?;
            }
            Ok::<_, OptionsError>(name)
        };
        let (client_stack, server_stack) = (named(self.client_stack)?, named(self.server_stack)?);
        let counter = match &self.instructions_log {
            Some(log) => instructions::start(log).map_err(invalid)?,
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
