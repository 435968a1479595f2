//! Clients: their identities, trusted certificates and sessions.

use super::config::Config;
use super::error::LoadError;
use super::target::Target;
use serde::{Deserialize, Serialize};
use shakedown_certs::supplied::AnyIdentity;
use shakedown_pki::input;
use shakedown_stacks::openssl::{ForeignClient, read_roots};
use shakedown_stacks::{Connector, Exposure, Identities, Settings, Setup, SetupError};
use shakedown_trace::suite::Authentication;
use shakedown_trace::{Endpoint, Session, Side, StackId, Suite};
use std::sync::Arc;

/// Trusted certificates against which the server's certificate is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Checked {
    No,
    /// Certificates that the user supplied.
    Ca,
    Generated,
}

struct Client {
    connector: Arc<dyn Connector>,
    /// Replaces `connector` if the server does not present a generated certificate.
    unchecked: Option<Arc<dyn Connector>>,
    /// The latest session that the server issued, for resumption.
    session: Option<Session>,
}

pub struct Clients {
    clients: Vec<Client>,
    pub checked: Checked,
    pub stack: StackId,
    /// The suites that clients offer; empty if the stack chooses them.
    pub suites: Vec<String>,
}

/// Maximum size of a file of trusted certificates.
const MAX_ROOTS_BYTES: u64 = 16 << 20;

pub fn given_roots(config: &Config) -> Result<Vec<Vec<u8>>, LoadError> {
    let Some(path) = &config.ca else { return Ok(Vec::new()) };
    let path_text = || path.display().to_string();
    let read = input::read(path, MAX_ROOTS_BYTES).map_err(|error| LoadError::File {
        what: "certificates to trust",
        path: path_text(),
        error,
    })?;
    let Some(read) = read else {
        let reason = format!("longer than {} MiB; accepted: certificates", MAX_ROOTS_BYTES >> 20);
        return Err(LoadError::Certificates { path: path_text(), reason });
    };
    read_roots(&read)
        .map_err(|error| LoadError::Certificates { path: path_text(), reason: error.to_string() })
}

impl Clients {
    pub fn make(
        config: &Config,
        suite: Option<&Suite>,
        settings: &Settings,
        target: &Target,
        roots: Vec<Vec<u8>>,
    ) -> Result<Self, LoadError> {
        let name = config.server_name.clone().unwrap_or_else(|| target.host.clone());
        let instrumented = config.trace_count > 0;
        let foreign = ForeignClient { server_name: Some(name), instrumented, ..ForeignClient::default() };
        let Some(suite) = suite else {
            let checked = if roots.is_empty() { Checked::No } else { Checked::Ca };
            let connector = ForeignClient { roots, ..foreign }.connector()?;
            let stack = settings.registry.get("openssl")?.id();
            return Ok(Self::alike(connector, None, config.clients, checked, stack, Vec::new()));
        };
        let settings = Settings { instrumented, exposure: Exposure::Network, ..settings.clone() };
        let stack = settings.registry.choose(suite, Side::Client, settings.client_stack.as_deref())?;
        let id = stack.id();
        let name = id.name.clone();
        let suites = vec![suite.to_string()];
        let identities = settings.identities(suite, stack.as_ref(), stack.as_ref())?;
        let setup = settings.setup(suite, identities);
        if name != "openssl" {
            if config.ca.is_some() {
                let accepted = "clients of the stack openssl, or no certificates to trust".into();
                return Err(LoadError::Option {
                    what: "ca",
                    given: format!("for the stack {name}"),
                    accepted,
                });
            }
            let checked = if setup.identities.server.is_some() { Checked::Generated } else { Checked::No };
            return Ok(Self::alike(stack.client(&setup)?, None, config.clients, checked, id, suites));
        }
        let generated = match setup.identities.server.clone() {
            Some(AnyIdentity::X509(server)) if roots.is_empty() && config.check => Some(server),
            _ => None,
        };
        let checked = match (&generated, roots.is_empty()) {
            (Some(_), _) => Checked::Generated,
            (None, false) => Checked::Ca,
            (None, true) => Checked::No,
        };
        // The connector and, if it trusts only the generated root, a second one that does not check certificates.
        let pair = |identity: Option<AnyIdentity>| -> Result<_, SetupError> {
            let identities = Identities { client: identity, ..setup.identities.clone() };
            let setup = Setup { identities, ..setup.clone() };
            let plain = ForeignClient { setup: Some(setup), roots: roots.clone(), ..foreign.clone() };
            let Some(server) = &generated else { return Ok((plain.connector()?, None)) };
            let unchecked = plain.connector()?;
            let checking = ForeignClient {
                roots: vec![server.root.clone()],
                certificate_name: Some(server.subject.clone()),
                laboratory_unix_s: Some(settings.now_unix_s),
                ..plain
            };
            Ok((checking.connector()?, Some(unchecked)))
        };
        if suite.authentication != Some(Authentication::Mutual) || settings.client_identity.is_some() {
            let (connector, unchecked) = pair(setup.identities.client.clone())?;
            return Ok(Self::alike(connector, unchecked, config.clients, checked, id, suites));
        }
        let store = settings.store().map_err(SetupError::from)?;
        let identities = store.clients(&suite.keys, &settings.profile, settings.now_unix_s, config.clients);
        let clients = identities.map_err(SetupError::from)?.into_iter().map(|identity| {
            let (connector, unchecked) = pair(Some(AnyIdentity::X509(identity)))?;
            Ok(Client { connector, unchecked, session: None })
        });
        Ok(Self { clients: clients.collect::<Result<_, SetupError>>()?, checked, stack: id, suites })
    }

    /// Clients that differ only in their sessions.
    fn alike(
        connector: Arc<dyn Connector>,
        unchecked: Option<Arc<dyn Connector>>,
        count: usize,
        checked: Checked,
        stack: StackId,
        suites: Vec<String>,
    ) -> Self {
        let client =
            || Client { connector: Arc::clone(&connector), unchecked: unchecked.clone(), session: None };
        Self { clients: (0..count).map(|_| client()).collect(), checked, stack, suites }
    }

    pub fn count(&self) -> usize {
        self.clients.len()
    }

    /// Creates the endpoint of a client's next connection; true if it offers a session.
    pub fn connect(&self, client: usize, resume: bool) -> Result<(Box<dyn Endpoint>, bool), SetupError> {
        let client = &self.clients[client];
        let session = client.session.as_ref().filter(|_| resume);
        match client.connector.connect(session) {
            Err(SetupError::SpentSession) => Ok((client.connector.connect(None)?, false)),
            other => Ok((other?, session.is_some())),
        }
    }

    pub fn keep(&mut self, client: usize, session: Session) {
        self.clients[client].session = Some(session);
    }

    /// Stops checking certificates against the generated root. False if no connector without this check is left.
    pub fn stop_checking(&mut self) -> bool {
        let mut changed = false;
        for client in &mut self.clients {
            if let Some(unchecked) = client.unchecked.take() {
                client.connector = unchecked;
                changed = true;
            }
        }
        if changed {
            self.checked = Checked::No;
        }
        changed
    }
}
