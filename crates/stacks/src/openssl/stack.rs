//! The stack's entry in the registry: contexts of a suite, and their connections.

use super::endpoint::TlsEndpoint;
use super::hello::Budget;
use super::multi_suite;
use super::names::Expected;
use super::{context, security, supported};
use crate::stack::{Acceptor, Connector, Exposure, Setup, SetupError, Stack};
use openssl::ssl::{SslContext, SslSession};
use shakedown_trace::suite::Protocol;
use shakedown_trace::{Endpoint, Session, Side, StackId, Suite};
use std::ffi::CStr;
use std::sync::Arc;

/// libssl of the built-in OpenSSL.
pub struct Openssl;

/// The state that connections of one side of a suite share.
pub struct Contexts {
    pub side: Side,
    pub context: SslContext,
    pub expected: Arc<[Expected]>,
    /// Number of tickets that the server issues in a resumed TLS 1.3 handshake in memory. The full handshake before it
    /// issues the number of the context; `None`: both do.
    pub resumption_tickets: Option<usize>,
    /// The name for which the server's certificate must be valid.
    pub server_name: Option<String>,
    /// The name that the client sends (SNI); only to servers of other programs.
    pub requested_name: Option<String>,
    /// The memory that a server's unfinished handshakes share.
    pub hellos: Arc<Budget>,
    pub later_groups: Option<Arc<CStr>>,
}

impl Openssl {
    fn contexts(side: Side, setup: &Setup) -> Result<Contexts, SetupError> {
        let server_name = match side {
            Side::Client => setup
                .x509(Side::Server, super::NAME)?
                .map(|identity| identity.subject.clone())
                // For a foreign server only the root may be known.
                .filter(|name| !name.is_empty()),
            Side::Server => None,
        };
        let resumes = setup.suite.protocol == Protocol::Tls13 && setup.suite.is_resumption();
        let resumption_tickets =
            (resumes && setup.exposure == Exposure::Laboratory).then_some(setup.tickets as usize);
        let policy = security::policy(&setup.suite, setup.exposure);
        Ok(Contexts {
            side,
            context: context::begin(policy, side, setup)?.build(),
            expected: Arc::new([Expected::of(&setup.suite)]),
            resumption_tickets,
            server_name,
            requested_name: None,
            hellos: Arc::default(),
            later_groups: context::groups_of_clients(std::slice::from_ref(setup))
                .filter(|_| side == Side::Server),
        })
    }
}

impl Contexts {
    fn endpoint(&self) -> Result<TlsEndpoint, SetupError> {
        let (expected, name) = (Arc::clone(&self.expected), self.server_name.as_deref());
        let mut endpoint = TlsEndpoint::new(&self.context, self.side, expected, name)?;
        if self.side == Side::Server {
            endpoint.hold_hellos(Arc::clone(&self.hellos));
            if let Some(groups) = &self.later_groups {
                endpoint.set_groups_later(Arc::clone(groups));
            }
        }
        Ok(endpoint)
    }
}

impl Stack for Openssl {
    fn id(&self) -> StackId {
        StackId::new(super::NAME, shakedown_ossl::version())
    }

    fn supports(&self, suite: &Suite, _: Side) -> Result<(), String> {
        supported::supports(suite)
    }

    fn client(&self, setup: &Setup) -> Result<Arc<dyn Connector>, SetupError> {
        Ok(Arc::new(Self::contexts(Side::Client, setup)?))
    }

    fn server(&self, setup: &Setup) -> Result<Arc<dyn Acceptor>, SetupError> {
        Ok(Arc::new(Self::contexts(Side::Server, setup)?))
    }

    fn server_of(&self, setups: &[Setup]) -> Result<Arc<dyn Acceptor>, SetupError> {
        if let [setup] = setups {
            return self.server(setup);
        }
        Ok(Arc::new(Contexts {
            side: Side::Server,
            context: multi_suite::build(setups)?,
            expected: setups.iter().map(|setup| Expected::of(&setup.suite)).collect(),
            resumption_tickets: None,
            server_name: None,
            requested_name: None,
            hellos: Arc::default(),
            later_groups: context::groups_of_clients(setups),
        }))
    }
}

impl Connector for Contexts {
    fn connect(&self, session: Option<&Session>) -> Result<Box<dyn Endpoint>, SetupError> {
        let mut client = self.endpoint()?;
        if let Some(name) = &self.requested_name {
            client.ask_for(name)?;
        }
        if let Some(session) = session {
            let foreign = SetupError::ForeignSession { stack: super::NAME };
            client.offer(session.get::<SslSession>().ok_or(foreign)?)?;
        }
        Ok(Box::new(client))
    }
}

impl Acceptor for Contexts {
    fn accept(&self) -> Result<Box<dyn Endpoint>, SetupError> {
        let mut server = self.endpoint()?;
        if let Some(tickets) = self.resumption_tickets {
            server.issue_tickets(tickets)?;
        }
        Ok(Box::new(server))
    }

    fn accept_issuing(&self) -> Result<Box<dyn Endpoint>, SetupError> {
        Ok(Box::new(self.endpoint()?))
    }
}
