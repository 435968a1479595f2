//! Configurations of both sides, and the session to resume.

use super::config::{self, Identities};
use super::endpoint::{World, WtlsEndpoint};
use super::provider::Timed;
use crate::rig::{Rig, Settings, SetupError, Subject, Unsupported};
use shakedown_certs::CertsError;
use shakedown_ossl::memory::{self, Account};
use shakedown_trace::Suite;
use shakedown_trace::driver::Wire;
use shakedown_trace::suite::KeyType;
use shakedown_wtls::{ClientConfig, ServerConfig, Session};
use std::rc::Rc;
use std::sync::Arc;

/// What connections of one suite are made from.
pub struct WtlsRig {
    world: Rc<World>,
    client: Arc<ClientConfig<Timed>>,
    server: Arc<ServerConfig<Timed>>,
    session: Option<Session>,
}

/// Says whether the engine can run a suite.
///
/// # Errors
/// [`Unsupported`] with the reason.
pub fn supports(suite: &Suite) -> Result<(), Unsupported> {
    // ECDSA with SHA-1 over curves below 160 bits: the specification forbids it (WAP-261, table 8's remark).
    let small = |key: &KeyType| matches!(key, KeyType::Ec(curve) if curve.field_bits() < 160);
    if suite.keys.iter().skip(1).any(small) {
        let reason = "WTLS forbids ECDSA on curves below 160 bits; name an issuer on a larger curve".into();
        return Err(Unsupported { suite: suite.to_string(), reason });
    }
    Ok(())
}

impl WtlsRig {
    /// Makes keys and certificates where they are not cached, and the session to resume.
    ///
    /// # Errors
    /// [`SetupError`] where the store or the engine refuses.
    pub fn new(suite: &Suite, settings: &Settings) -> Result<Self, SetupError> {
        let provider = Timed::new().map_err(|error| SetupError::Certs(CertsError::Crypto(error)))?;
        let identities = Identities::of(suite, settings)?;
        let client =
            memory::on(Account::ClientContext, || config::client(&provider, suite, settings, &identities))?;
        let server =
            memory::on(Account::ServerContext, || config::server(&provider, suite, settings, &identities))?;
        let epoch_unix_s = u64::try_from(settings.now_unix_s).unwrap_or(0);
        let world = Rc::new(World { suite: suite.clone(), provider, epoch_unix_s });
        let mut rig = Self { world, client: Arc::new(client), server: Arc::new(server), session: None };
        if suite.is_resumption() {
            rig.session = Some(rig.make_session()?);
        }
        Ok(rig)
    }

    /// Runs the full handshake whose session is then resumed.
    fn make_session(&self) -> Result<Session, SetupError> {
        let mut client = WtlsEndpoint::client(Rc::clone(&self.world), Arc::clone(&self.client), None);
        let mut server = WtlsEndpoint::server(Rc::clone(&self.world), Arc::clone(&self.server));
        Wire::new()
            .handshake(&mut client, &mut server, &mut ())
            .map_err(|error| SetupError::NoSession { reason: error.to_string() })?;
        client.session().ok_or_else(|| SetupError::NoSession { reason: "the server gave it no name".into() })
    }
}

impl Rig for WtlsRig {
    fn stack(&self) -> (&'static str, String) {
        ("wtls", env!("CARGO_PKG_VERSION").to_owned())
    }

    fn client(&mut self) -> Result<Box<dyn Subject>, SetupError> {
        let session = self.session.clone();
        Ok(Box::new(WtlsEndpoint::client(Rc::clone(&self.world), Arc::clone(&self.client), session)))
    }

    fn server(&mut self) -> Result<Box<dyn Subject>, SetupError> {
        Ok(Box::new(WtlsEndpoint::server(Rc::clone(&self.world), Arc::clone(&self.server))))
    }
}
