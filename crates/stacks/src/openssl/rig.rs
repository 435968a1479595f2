//! Client and server contexts of a suite, and the session to resume.

use super::context::{self, Contexts};
use super::endpoint::TlsEndpoint;
use crate::rig::{Pair, Rig, Settings, SetupError};
use openssl::ssl::SslSession;
use shakedown_trace::driver::Wire;
use shakedown_trace::suite::Protocol;
use shakedown_trace::{Side, Suite};
use std::rc::Rc;

/// What connections of one suite are made from.
pub struct OpensslRig {
    suite: Rc<Suite>,
    contexts: Contexts,
    session: Option<SslSession>,
}

impl OpensslRig {
    /// Makes keys and certificates where they are not cached, contexts, and the session to resume.
    ///
    /// # Errors
    /// [`SetupError`] where OpenSSL or the store refuses.
    pub fn new(suite: &Suite, settings: &Settings) -> Result<Self, SetupError> {
        let contexts = context::build(suite, settings)?;
        let mut rig = Self { suite: Rc::new(suite.clone()), contexts, session: None };
        if suite.is_resumption() {
            rig.session = Some(rig.make_session()?);
            if suite.protocol == Protocol::Tls13 {
                // SAFETY: the context is live, and no connection of it is at work.
                unsafe { shakedown_ossl::ffi::SSL_CTX_set_num_tickets(server_context(&rig.contexts), 0) };
            }
        }
        Ok(rig)
    }

    fn endpoints(&self) -> Result<(TlsEndpoint, TlsEndpoint), SetupError> {
        let name = self.contexts.server_name.as_deref();
        let client = TlsEndpoint::new(&self.contexts.client, Side::Client, Rc::clone(&self.suite), name)?;
        let server = TlsEndpoint::new(&self.contexts.server, Side::Server, Rc::clone(&self.suite), None)?;
        Ok((client, server))
    }

    /// Runs the full handshake whose session is then resumed.
    fn make_session(&self) -> Result<SslSession, SetupError> {
        let (mut client, mut server) = self.endpoints()?;
        Wire::new()
            .handshake(&mut client, &mut server, &mut ())
            .map_err(|error| SetupError::NoSession { reason: error.to_string() })?;
        client.session().ok_or_else(|| SetupError::NoSession { reason: "the server gave none".into() })
    }
}

fn server_context(contexts: &Contexts) -> *mut openssl_sys::SSL_CTX {
    use foreign_types::ForeignType;
    contexts.server.as_ptr()
}

impl Rig for OpensslRig {
    fn stack(&self) -> (&'static str, String) {
        ("openssl", shakedown_ossl::version().to_owned())
    }

    fn pair(&mut self) -> Result<Pair, SetupError> {
        let (mut client, server) = self.endpoints()?;
        if let Some(session) = &self.session {
            // SAFETY: the session was made by a client of the same context.
            unsafe { client.offer(session) }?;
        }
        Ok(Pair { client: Box::new(client), server: Box::new(server) })
    }
}
