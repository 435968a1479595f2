//! What a stack must offer to be measured.

use crate::openssl::OpensslRig;
use crate::wtls::WtlsRig;
use shakedown_certs::CertsError;
use shakedown_certs::own::OwnIdentity;
use shakedown_pki::{PkiError, Profile, Store};
use shakedown_trace::suite::Protocol;
use shakedown_trace::{Endpoint, Suite};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Lines of a key log, shared with whoever writes them to a file.
pub type KeyLog = Arc<Mutex<Vec<String>>>;

/// Remarks that a user should read, gathered while rigs are made.
pub type Notices = Arc<Mutex<Vec<String>>>;

/// A form that certificates of a WTLS suite can have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CertificateForm {
    /// WTLS's own: short, SHA-1.
    #[default]
    Wtls,
    /// X.509, as a profile has it.
    X509,
}

/// What a rig is to be like, besides its suite.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Time at which certificates must be valid, in seconds since 1970-01-01 00:00 UTC.
    pub now_unix_s: i64,
    /// Tickets that the server issues after full handshakes.
    pub tickets: u32,
    /// What is in certificates besides keys.
    pub profile: Profile,
    /// Where keys and certificates are kept between runs; `None`: where the store puts them by itself.
    pub cache: Option<PathBuf>,
    /// Times primitives and marks messages; without, the stack runs as if nobody watched.
    pub instrumented: bool,
    /// Where to put what was found damaged among kept keys and certificates, and made again.
    pub notices: Notices,
    /// Where to log secrets for captures.
    pub key_log: Option<KeyLog>,
    /// What the server shows instead of what the store has.
    pub own_server: Option<OwnIdentity>,
    /// What the client shows instead.
    pub own_client: Option<OwnIdentity>,
    /// WTLS: the form of certificates that are made; a user's own travel in their own.
    pub certificate_form: CertificateForm,
    /// WTLS: private numbers stand for curves that have none, for sizes like the Nokia thesis's.
    pub private_curves: bool,
    /// WTLS: two alerts for a wrong MAC and wrong padding, as the specification has it and security has not.
    pub distinguish_record_errors: bool,
}

impl Settings {
    /// The store of keys and certificates.
    ///
    /// # Errors
    /// [`PkiError::NoCacheDirectory`].
    pub fn store(&self) -> Result<Store, PkiError> {
        Ok(match &self.cache {
            Some(folder) => Store::open(folder),
            None => Store::open(&Store::default_dir()?),
        })
    }

    /// Keeps what the store has to say.
    pub fn hear(&self, store: &Store) {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).extend(store.take_notices());
    }
}

impl Default for Settings {
    /// 2026-01-01, no tickets, instrumented.
    fn default() -> Self {
        Self {
            now_unix_s: 1_767_225_600,
            tickets: 0,
            profile: Profile::default(),
            cache: None,
            instrumented: true,
            notices: Notices::default(),
            key_log: None,
            own_server: None,
            own_client: None,
            certificate_form: CertificateForm::default(),
            private_curves: false,
            distinguish_record_errors: false,
        }
    }
}

/// A stack can't run a suite, though its name is sound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{suite}: {reason}")]
pub struct Unsupported {
    /// Canonical name.
    pub suite: String,
    /// Why not.
    pub reason: String,
}

/// Why a rig could not be made.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // the messages say it
pub enum SetupError {
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    #[error(transparent)]
    Pki(#[from] PkiError),
    #[error(transparent)]
    Certs(#[from] CertsError),
    #[error(transparent)]
    Library(#[from] shakedown_ossl::LibraryError),
    #[error("OpenSSL refused to {what}: {stack}")]
    OpenSsl { what: &'static str, stack: ::openssl::error::ErrorStack },
    #[error("no session to resume: {reason}")]
    NoSession { reason: String },
}

/// An endpoint that can say whether what it ran is what was asked for.
pub trait Subject: Endpoint {
    /// Checks protocol, cipher, group and resumption after a handshake.
    ///
    /// # Errors
    /// What differs, in one line.
    fn confirm(&self) -> Result<(), String>;
}

/// A client and a server that have not met yet.
pub struct Pair {
    /// The side that speaks first.
    pub client: Box<dyn Subject>,
    /// The side that answers.
    pub server: Box<dyn Subject>,
}

/// Everything that endpoints of one suite need, made before any clock starts.
pub trait Rig {
    /// Name and version of the stack.
    fn stack(&self) -> (&'static str, String);

    /// A fresh client.
    ///
    /// # Errors
    /// [`SetupError`] where the stack refuses.
    fn client(&mut self) -> Result<Box<dyn Subject>, SetupError>;

    /// A fresh server.
    ///
    /// # Errors
    /// [`SetupError`] where the stack refuses.
    fn server(&mut self) -> Result<Box<dyn Subject>, SetupError>;

    /// Both, to run against each other.
    ///
    /// # Errors
    /// [`SetupError`] where the stack refuses.
    fn pair(&mut self) -> Result<Pair, SetupError> {
        Ok(Pair { client: self.client()?, server: self.server()? })
    }
}

/// Says whether some stack can run a suite, and which.
///
/// # Errors
/// [`Unsupported`] with the reason.
pub fn supports(suite: &Suite) -> Result<&'static str, Unsupported> {
    let refuse = |reason: &str| Unsupported { suite: suite.to_string(), reason: reason.into() };
    match suite.protocol {
        Protocol::Dtls12 => Err(refuse("DTLS 1.2 comes with the sockets; no stack runs it in memory yet")),
        Protocol::Wtls => crate::wtls::supports(suite).map(|()| "wtls"),
        _ => crate::openssl::supports(suite).map(|()| "openssl"),
    }
}

/// Makes the rig of a suite, on the stack that can run it.
///
/// # Errors
/// [`SetupError`], of which [`SetupError::Unsupported`] is the user's to mend.
pub fn prepare(suite: &Suite, settings: &Settings) -> Result<Box<dyn Rig>, SetupError> {
    supports(suite)?;
    Ok(match suite.protocol {
        Protocol::Wtls => Box::new(WtlsRig::new(suite, settings)?),
        _ => Box::new(OpensslRig::new(suite, settings)?),
    })
}
