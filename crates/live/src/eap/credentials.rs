//! Certificates that a side presents and trusts, and the suite that follows from them.

use super::EapError;
use shakedown_certs::supplied::AnyIdentity;
use shakedown_pki::Identity;
use shakedown_stacks::{
    Acceptor, Connector, Exposure, Identities, SessionCache, Settings, Setup, SetupError,
};
use shakedown_trace::suite::{Authentication, Mode};
use shakedown_trace::{Carrier, Side, Suite};
use std::path::PathBuf;
use std::sync::Arc;

/// User-supplied files. Without them, generated certificates are used.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// The chain that this side presents, leaf first.
    pub chain: Option<PathBuf>,
    /// Its key, if the chain's file does not contain it.
    pub key: Option<PathBuf>,
    /// The root that this side trusts.
    pub ca: Option<PathBuf>,
    pub password: Option<String>,
}

impl Files {
    /// The suite that is used: whatever its short name says, authentication is mutual for a peer with a certificate and
    /// for a server with a root for its peers.
    pub fn suite(&self, suite: &Suite, role: Side, resume: bool) -> Result<Suite, EapError> {
        if let (None, Some(key)) = (&self.chain, &self.key) {
            return Err(EapError::KeyWithoutChain(key.clone()));
        }
        shakedown_stacks::carried::check(suite)?;
        let mut suite = suite.clone();
        let mutual = match role {
            Side::Client => self.chain.is_some(),
            Side::Server => self.ca.is_some(),
        };
        if mutual && suite.authentication.is_some() {
            suite.authentication = Some(Authentication::Mutual);
        }
        if resume && suite.mode == Mode::Full {
            suite.mode = Mode::Resumed;
        }
        Ok(suite)
    }

    fn identities(&self, suite: &Suite, role: Side, settings: &Settings) -> Result<Identities, EapError> {
        let stack = settings.registry.choose(suite, role, None)?;
        let store = settings.store().map_err(SetupError::from)?;
        let generate = |side| stack.generate(suite, side, &settings.profile, settings.now_unix_s, &store);
        let password = self.password.as_deref();
        let own = match &self.chain {
            Some(chain) => AnyIdentity::X509(Identity::presented(chain, self.key.as_deref(), password)?),
            None => generate(role)?,
        };
        let peer = match &self.ca {
            Some(ca) => AnyIdentity::X509(Identity::trusted(ca, password)?),
            None => generate(role.peer())?,
        };
        settings.collect_notices(&store);
        let asks = matches!(suite.authentication, Some(Authentication::Requested | Authentication::Mutual));
        let (server, client) = if role == Side::Server { (own, peer) } else { (peer, own) };
        Ok(Identities { server: Some(server), client: asks.then_some(client), temporary_key: None })
    }

    fn setup(&self, suite: &Suite, role: Side, settings: &Settings) -> Result<Setup, EapError> {
        let identities = self.identities(suite, role, settings)?;
        let mut setup = settings.setup(suite, identities);
        setup.instrumented = false;
        setup.carrier = Carrier::Eap;
        setup.exposure = Exposure::Network;
        Ok(setup)
    }

    pub fn connector(&self, suite: &Suite, settings: &Settings) -> Result<Arc<dyn Connector>, EapError> {
        let setup = self.setup(suite, Side::Client, settings)?;
        Ok(settings.registry.choose(suite, Side::Client, settings.client_stack.as_deref())?.client(&setup)?)
    }

    /// The acceptor of a server. `sessions` creates the session cache for a digest of the suite, the certificates that
    /// this side presents and the root that it trusts.
    pub fn acceptor(
        &self,
        suite: &Suite,
        settings: &Settings,
        sessions: Option<&dyn Fn([u8; 32]) -> Arc<dyn SessionCache>>,
    ) -> Result<Arc<dyn Acceptor>, EapError> {
        let mut setup = self.setup(suite, Side::Server, settings)?;
        if let Some(sessions) = sessions {
            setup.session_cache = Some(sessions(bound_to(&setup)));
        }
        Ok(settings.registry.choose(suite, Side::Server, settings.server_stack.as_deref())?.server(&setup)?)
    }
}

/// Digest of everything that sessions depend on: a peer that was admitted under another root or with another suite
/// cannot resume.
fn bound_to(setup: &Setup) -> [u8; 32] {
    let mut hash = openssl::sha::Sha256::new();
    let mut add = |bytes: &[u8]| {
        hash.update(&(bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    };
    add(setup.suite.to_string().as_bytes());
    for identity in [&setup.identities.server, &setup.identities.client] {
        if let Some(AnyIdentity::X509(identity)) = identity {
            add(&identity.root);
            identity.chain.iter().for_each(|certificate| add(certificate));
        }
    }
    hash.finish()
}
