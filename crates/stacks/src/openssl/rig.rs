//! Client and server contexts of a suite, and the session to resume.

use super::context::{self, Identities};
use super::endpoint::TlsEndpoint;
use crate::rig::{Rig, Settings, SetupError, Subject};
use foreign_types::ForeignType;
use openssl::ssl::{SslContext, SslSession};
use shakedown_ossl::memory::{self, Account};
use shakedown_trace::driver::Wire;
use shakedown_trace::suite::Protocol;
use shakedown_trace::{Side, Suite};
use std::rc::Rc;

/// What connections of one suite are made from.
pub struct OpensslRig {
    suite: Rc<Suite>,
    client: SslContext,
    server: SslContext,
    /// What the client checks.
    server_name: Option<String>,
    session: Option<SslSession>,
}

impl OpensslRig {
    /// Makes keys and certificates where they are not cached, contexts, and the session to resume.
    ///
    /// # Errors
    /// [`SetupError`] where OpenSSL or the store refuses.
    pub fn new(suite: &Suite, settings: &Settings) -> Result<Self, SetupError> {
        let identities = Identities::of(suite, settings)?;
        let build =
            |side, account| memory::on(account, || context::build(side, suite, settings, &identities));
        let mut rig = Self {
            suite: Rc::new(suite.clone()),
            client: build(Side::Client, Account::ClientContext)?,
            server: build(Side::Server, Account::ServerContext)?,
            server_name: identities.server.map(|identity| identity.subject),
            session: None,
        };
        if suite.is_resumption() {
            rig.session = Some(rig.make_session()?);
            if suite.protocol == Protocol::Tls13 {
                // SAFETY: the context is live, and no connection of it is at work.
                unsafe { shakedown_ossl::ffi::SSL_CTX_set_num_tickets(rig.server.as_ptr(), 0) };
            }
        }
        Ok(rig)
    }

    fn endpoint(&self, side: Side) -> Result<TlsEndpoint, SetupError> {
        let (context, peer_name) = match side {
            Side::Client => (&self.client, self.server_name.as_deref()),
            Side::Server => (&self.server, None),
        };
        TlsEndpoint::new(context, side, Rc::clone(&self.suite), peer_name)
    }

    /// Runs the full handshake whose session is then resumed.
    fn make_session(&self) -> Result<SslSession, SetupError> {
        let (mut client, mut server) = (self.endpoint(Side::Client)?, self.endpoint(Side::Server)?);
        Wire::new()
            .handshake(&mut client, &mut server, &mut ())
            .map_err(|error| SetupError::NoSession { reason: error.to_string() })?;
        client.session().ok_or_else(|| SetupError::NoSession { reason: "the server gave none".into() })
    }
}

impl Rig for OpensslRig {
    fn stack(&self) -> (&'static str, String) {
        ("openssl", shakedown_ossl::version().to_owned())
    }

    fn client(&mut self) -> Result<Box<dyn Subject>, SetupError> {
        let mut client = self.endpoint(Side::Client)?;
        if let Some(session) = &self.session {
            // SAFETY: the session was made by a client of the same context.
            unsafe { client.offer(session) }?;
        }
        Ok(Box::new(client))
    }

    fn server(&mut self) -> Result<Box<dyn Subject>, SetupError> {
        Ok(Box::new(self.endpoint(Side::Server)?))
    }
}
