//! The stack's entry in the registry: configurations of a suite, and their connections.

use super::config;
use super::endpoint::{Environment, WtlsEndpoint};
use super::listener::Peers;
use super::provider::Timed;
use crate::stack::{Acceptor, Connector, ListenLimits, Listener, Setup, SetupError, Stack};
use shakedown_certs::CertsError;
use shakedown_certs::supplied::AnyIdentity;
use shakedown_certs::wtls as certs;
use shakedown_pki::{Profile, Store};
use shakedown_trace::suite::{KeyType, Protocol};
use shakedown_trace::{Endpoint, Session, Side, StackId, Suite};
use shakedown_wtls::{ClientConfig, ServerConfig};
use std::sync::Arc;

/// A form that certificates of a WTLS suite can have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CertificateForm {
    /// WTLS's own: short, SHA-1.
    #[default]
    Wtls,
    /// X.509, according to the certificate profile.
    X509,
}

/// Options of this stack only.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The form of generated certificates; user-supplied ones keep theirs.
    pub certificate_form: CertificateForm,
    /// Uses private numbers for curves that have none, for message sizes like those of the Nokia thesis.
    pub private_curves: bool,
    /// Sends different alerts for a wrong MAC and wrong padding, as specified; this is insecure.
    pub distinguish_record_errors: bool,
}

pub struct Wtls {
    options: Options,
}

impl Wtls {
    pub fn new(options: Options) -> Self {
        Self { options }
    }
}

impl Stack for Wtls {
    fn id(&self) -> StackId {
        StackId::new(super::NAME, env!("CARGO_PKG_VERSION"))
    }

    fn supports(&self, suite: &Suite, _: Side) -> Result<(), String> {
        if suite.protocol != Protocol::Wtls {
            return Err(format!("the stack {} runs wtls only", super::NAME));
        }
        // The specification forbids ECDSA with SHA-1 on curves below 160 bits (WAP-261, remark on table 8).
        let small = |key: &KeyType| matches!(key, KeyType::Ec(curve) if curve.field_bits() < 160);
        if suite.keys.iter().skip(1).any(small) {
            return Err(
                "WTLS forbids ECDSA on curves below 160 bits; name an issuer on a larger curve".into()
            );
        }
        Ok(())
    }

    fn client(&self, setup: &Setup) -> Result<Arc<dyn Connector>, SetupError> {
        let environment = environment(setup)?;
        let config = config::client(&environment.provider, setup, self.options)?;
        Ok(Arc::new(Client { environment, config: Arc::new(config) }))
    }

    fn server(&self, setup: &Setup) -> Result<Arc<dyn Acceptor>, SetupError> {
        setup.without_session_cache(super::NAME)?;
        let environment = environment(setup)?;
        let config = config::server(&environment.provider, setup, self.options)?;
        Ok(Arc::new(Server { environment, config: Arc::new(config) }))
    }

    fn generate(
        &self,
        suite: &Suite,
        side: Side,
        profile: &Profile,
        now_unix_s: i64,
        store: &Store,
    ) -> Result<AnyIdentity, SetupError> {
        let keys = &suite.keys;
        Ok(match self.options.certificate_form {
            CertificateForm::X509 => AnyIdentity::X509(store.identity(keys, side, profile, now_unix_s)?),
            CertificateForm::Wtls => {
                let private_curves = self.options.private_curves;
                AnyIdentity::Wtls(certs::identity(store, keys, side, profile, now_unix_s, private_curves)?)
            }
        })
    }
}

fn environment(setup: &Setup) -> Result<Arc<Environment>, SetupError> {
    let provider = Timed::new().map_err(|error| SetupError::Certs(CertsError::Crypto(error)))?;
    let epoch_unix_s = u64::try_from(setup.now_unix_s).unwrap_or(0);
    Ok(Arc::new(Environment { suite: setup.suite.clone(), provider, epoch_unix_s }))
}

struct Client {
    environment: Arc<Environment>,
    config: Arc<ClientConfig<Timed>>,
}

impl Connector for Client {
    fn connect(&self, session: Option<&Session>) -> Result<Box<dyn Endpoint>, SetupError> {
        let session = match session {
            None => None,
            Some(session) => {
                let foreign = SetupError::ForeignSession { stack: super::NAME };
                Some(session.get::<shakedown_wtls::Session>().ok_or(foreign)?.clone())
            }
        };
        let (environment, config) = (Arc::clone(&self.environment), Arc::clone(&self.config));
        Ok(Box::new(WtlsEndpoint::client(environment, config, session)))
    }
}

struct Server {
    environment: Arc<Environment>,
    config: Arc<ServerConfig<Timed>>,
}

impl Acceptor for Server {
    fn accept(&self) -> Result<Box<dyn Endpoint>, SetupError> {
        Ok(Box::new(WtlsEndpoint::server(Arc::clone(&self.environment), Arc::clone(&self.config))))
    }

    fn listen(&self, limits: ListenLimits) -> Option<Box<dyn Listener>> {
        Some(Box::new(Peers::new(Arc::clone(&self.environment), Arc::clone(&self.config), limits)))
    }
}
