//! rustls with aws-lc-rs, as published: TLS 1.2 and 1.3.
//!
//! The stack is not modified. Its `CryptoProvider` is wrapped for timing (`provider`), and its messages are detected
//! from the wrappers' calls (`boundaries`). Differences that affect a comparison with OpenSSL:
//!
//! 1. In TLS 1.2 a client verifies the server's chain when it reads ServerHelloDone, together with ServerKeyExchange's
//!    signature; in TLS 1.3 when it reads CertificateVerify, but the time is attributed to Certificate here.
//! 2. EncryptedExtensions to Finished (TLS 1.3) and ServerHello to ServerHelloDone (TLS 1.2) are sent in one record:
//!    its header and tag, and the time of its protection, are attributed to the last message.
//! 3. aws-lc-rs decodes a peer's key inside derivation and verification: there is no `import`.
//! 4. A resumed TLS 1.3 server derives the early traffic secret even if no early data are sent.
//! 5. A server renews a TLS 1.2 ticket at each resumption (RFC 5077 section 3.3 permits it): one more NewSessionTicket.
//! 6. aws-lc has its own random number generator, so seeds have no effect.

mod boundaries;
mod config;
mod endpoint;
mod names;
mod provider;
mod sessions;
mod verifier;

use crate::stack::{Acceptor, Connector, Setup, SetupError, Stack};
use config::Configs;
use endpoint::RustlsEndpoint;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};
use sessions::{OneSession, Resumable};
use shakedown_trace::suite::Protocol;
use shakedown_trace::{Endpoint, Session, Side, StackId, Suite};
use std::sync::Arc;

/// The name in results and options.
const NAME: &str = "rustls";
/// The version of the crate in the workspace's lock file; a test compares both.
const VERSION: &str = "0.23.43";

pub struct Rustls;

impl Stack for Rustls {
    fn id(&self) -> StackId {
        StackId::new(NAME, VERSION)
    }

    fn follows_seeds(&self) -> bool {
        false
    }

    fn supports(&self, suite: &Suite, _: Side) -> Result<(), String> {
        names::supports(suite)
    }

    fn client(&self, setup: &Setup) -> Result<Arc<dyn Connector>, SetupError> {
        let (config, name) = config::client(setup)?;
        Ok(Arc::new(Clients { config, name, setup: setup.clone() }))
    }

    fn server(&self, setup: &Setup) -> Result<Arc<dyn Acceptor>, SetupError> {
        setup.without_session_cache(NAME)?;
        Ok(Arc::new(Servers { configs: config::server(setup)?, protocol: setup.suite.protocol }))
    }
}

struct Clients {
    config: ClientConfig,
    name: ServerName<'static>,
    setup: Setup,
}

impl Connector for Clients {
    fn connect(&self, session: Option<&Session>) -> Result<Box<dyn Endpoint>, SetupError> {
        let session = match session {
            Some(session) => {
                let own = session.get::<Resumable>();
                let own = own.ok_or(SetupError::ForeignSession { stack: NAME })?.clone();
                if own.is_spent() {
                    return Err(SetupError::SpentSession);
                }
                Some(own)
            }
            None => None,
        };
        let sessions = OneSession::new(session);
        let config = Arc::new(config::with_sessions(&self.config, &self.setup, Arc::clone(&sessions)));
        let protocol = self.setup.suite.protocol;
        Ok(Box::new(RustlsEndpoint::client(config, self.name.clone(), protocol, sessions)))
    }
}

struct Servers {
    configs: Configs,
    protocol: Protocol,
}

impl Servers {
    fn endpoint(&self, config: &Arc<ServerConfig>) -> Box<dyn Endpoint> {
        Box::new(RustlsEndpoint::server(Arc::clone(config), self.protocol))
    }
}

impl Acceptor for Servers {
    fn accept(&self) -> Result<Box<dyn Endpoint>, SetupError> {
        Ok(self.endpoint(&self.configs.usual))
    }

    fn accept_issuing(&self) -> Result<Box<dyn Endpoint>, SetupError> {
        Ok(self.endpoint(&self.configs.issuing))
    }
}
