//! Clients for servers of other programs.

use super::names::Expected;
use super::stack::Contexts;
use super::{context, security};
use crate::stack::{Connector, Identities, Setup, SetupError, refused};
use openssl::ssl::SslVerifyMode;
use openssl::x509::X509;
use shakedown_trace::{Side, Suite};
use std::net::IpAddr;
use std::sync::Arc;

/// Configuration of a client for a server of another program.
#[derive(Clone, Debug, Default)]
pub struct ForeignClient {
    /// What the client offers and presents; `None`: libssl's defaults. The server's entry in `identities` is not used.
    pub setup: Option<Setup>,
    /// DER certificates to trust. Empty: the server's certificate is not verified.
    pub roots: Vec<Vec<u8>>,
    /// Host name or IP address of the server: a name is sent as SNI, and both are verified if there are roots.
    pub server_name: Option<String>,
    /// The name that the certificate must have, if it is another.
    pub certificate_name: Option<String>,
    /// For generated certificates: validates at this time (seconds since 1970), and permits weak keys in the chain.
    pub laboratory_unix_s: Option<i64>,
    /// Without a `setup`: times primitives and reports messages to the recorder.
    pub instrumented: bool,
}

impl ForeignClient {
    /// Creates the state that its connections share.
    pub fn connector(&self) -> Result<Arc<dyn Connector>, SetupError> {
        let (mut builder, expected, instrumented) = match &self.setup {
            Some(setup) => {
                let identities = Identities { server: None, ..setup.identities.clone() };
                let setup = Setup { identities, ..setup.clone() };
                let policy = security::policy(&setup.suite, setup.exposure);
                let builder = context::begin(policy, Side::Client, &setup)?;
                (builder, Expected::of(&setup.suite), setup.instrumented)
            }
            None => {
                let builder = context::build_default_client(self.instrumented)?;
                (builder, Expected::any(&stand_in()?), self.instrumented)
            }
        };
        let library = context::library(instrumented)?;
        for root in &self.roots {
            context::trust(library, &mut builder, root, self.laboratory_unix_s)?;
        }
        let checked = !self.roots.is_empty();
        builder.set_verify(if checked { SslVerifyMode::PEER } else { SslVerifyMode::NONE });
        let name = self.server_name.clone();
        Ok(Arc::new(Contexts {
            side: Side::Client,
            context: builder.build(),
            expected: Arc::new([expected]),
            resumption_tickets: None,
            server_name: self.certificate_name.clone().or_else(|| name.clone()).filter(|_| checked),
            requested_name: name.filter(|name| name.parse::<IpAddr>().is_err()),
            hellos: Arc::default(),
            later_groups: None,
        }))
    }
}

/// A placeholder for the suite that will be negotiated.
fn stand_in() -> Result<Suite, SetupError> {
    "tls1.3/x25519/p256/server".parse().map_err(|error: shakedown_trace::suite::SuiteError| {
        SetupError::Stack { stack: super::NAME, what: "name a suite", reason: error.to_string() }
    })
}

/// The certificates of a file, PEM or DER, as DER.
pub fn read_roots(content: &[u8]) -> Result<Vec<Vec<u8>>, SetupError> {
    let what = "read certificates to trust";
    let refused = refused(what);
    let found = match X509::from_der(content) {
        Ok(certificate) => vec![certificate],
        Err(_) => X509::stack_from_pem(content).map_err(&refused)?,
    };
    if found.is_empty() {
        let reason = "there are none; accepted: PEM or DER".to_owned();
        return Err(SetupError::Stack { stack: super::NAME, what, reason });
    }
    found.iter().map(|certificate| certificate.to_der().map_err(&refused)).collect()
}
