//! rustls over aws-lc-rs, as it is published: TLS 1.2 and 1.3.
//!
//! The stack is not modified. Its `CryptoProvider` is wrapped for timing (`provider`) and its messages are told apart
//! by what the wrappers see (`marks`). What a comparison with OpenSSL must keep in mind:
//!
//! 1. A client checks the server's chain when it reads ServerHelloDone in TLS 1.2, and so with ServerKeyExchange's
//!    signature; in TLS 1.3 when it reads CertificateVerify, but that check is attributed to Certificate here.
//! 2. EncryptedExtensions to Finished (TLS 1.3) and ServerHello to ServerHelloDone (TLS 1.2) leave in one record: its
//!    header and tag, and the time of its protection, are the last message's.
//! 3. aws-lc-rs decodes a peer's key inside derivation and verification: there is no `import`.
//! 4. A resumed TLS 1.3 server derives the early traffic secret even where no early data are sent.
//! 5. A server renews a TLS 1.2 ticket when it is resumed (RFC 5077 section 3.3 allows it): a NewSessionTicket more.
//! 6. Randomness is aws-lc's own, so no seed reaches it.

mod config;
mod endpoint;
mod marks;
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

/// As results and options write it.
const NAME: &str = "rustls";
/// Of the crate that the workspace's lock file pins; a test holds the two together.
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
