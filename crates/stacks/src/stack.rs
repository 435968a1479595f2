//! The interface that every protocol implementation provides.

use ::openssl::error::ErrorStack;
use shakedown_certs::CertsError;
use shakedown_certs::supplied::AnyIdentity;
use shakedown_pki::{Identity, PkiError, Profile, Store};
use shakedown_trace::endpoint::{Event, Time};
use shakedown_trace::{Carrier, Endpoint, Session, Side, StackId, Suite, WriteError};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Lines of a key log, shared with their writer.
pub type KeyLog = Arc<Mutex<Vec<String>>>;

/// A store of the sessions that clients may resume by their ID, used instead of the stack's own cache. A session that
/// the store does not return is not resumed.
pub trait SessionCache: Send + Sync {
    /// Stores a session of a completed handshake; `session` is the stack's encoding. In TLS 1.3 a resumption also
    /// creates a session: `made_unix_s` is the time of the original full handshake, in seconds since 1970.
    fn put(&self, id: &[u8], session: Vec<u8>, made_unix_s: i64);

    /// The stored session that a client offers; `None` if it must not be resumed.
    fn get(&self, id: &[u8]) -> Option<Vec<u8>>;
}

impl std::fmt::Debug for dyn SessionCache {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("SessionCache")
    }
}

/// The suite's name is valid, but no stack runs the suite, or the requested stack does not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{suite}: {reason}")]
pub struct Unsupported {
    pub suite: String,
    pub reason: String,
}

#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("no suite was given")]
    NoSuite,
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    #[error("unknown stack '{name}'; accepted: {accepted}")]
    UnknownStack { name: String, accepted: String },
    #[error(transparent)]
    Pki(#[from] PkiError),
    #[error(transparent)]
    Certs(#[from] CertsError),
    #[error(transparent)]
    Library(#[from] shakedown_ossl::LibraryError),
    #[error("OpenSSL refused to {what}: {stack}")]
    OpenSsl { what: &'static str, stack: ErrorStack },
    #[error("{stack} could not {what}: {reason}")]
    Stack { stack: &'static str, what: &'static str, reason: String },
    #[error("{one} and {other} cannot be served at one address: {reason}")]
    IncompatibleSuites { one: String, other: String, reason: String },
    #[error("no session to resume: {reason}")]
    NoSession { reason: String },
    #[error("a session of another stack cannot be resumed by {stack}")]
    ForeignSession { stack: &'static str },
    #[error("every ticket of the session has been used")]
    SpentSession,
    #[error("the stack {stack} uses its own random numbers, not a seed; accepted: no seed, or another stack")]
    Unseedable { stack: String },
    #[error("{stack} does not accept certificates of this form in {suite}")]
    CertificateForm { stack: &'static str, suite: String },
}

impl SetupError {
    /// True if the user's input caused the error.
    pub fn is_input(&self) -> bool {
        matches!(
            self,
            Self::Unsupported(_)
                | Self::NoSuite
                | Self::IncompatibleSuites { .. }
                | Self::UnknownStack { .. }
                | Self::Unseedable { .. }
                | Self::CertificateForm { .. }
        )
    }
}

/// Creates an error for a failed OpenSSL call.
pub fn refused(what: &'static str) -> impl Fn(ErrorStack) -> SetupError {
    move |stack| SetupError::OpenSsl { what, stack }
}

/// The certificates that both sides present, with their private keys. A client presents its own and trusts the server's
/// root; a server presents its own and trusts the client's root.
#[derive(Clone, Debug, Default)]
pub struct Identities {
    /// The server's, if the key exchange has certificates.
    pub server: Option<AnyIdentity>,
    /// The client's, if the server requests one.
    pub client: Option<AnyIdentity>,
    /// The server's uncertified key as PKCS #8, if the key exchange has one (`rsa_anon`).
    pub temporary_key: Option<Vec<u8>>,
}

impl Identities {
    pub fn of(&self, side: Side) -> Option<&AnyIdentity> {
        match side {
            Side::Client => self.client.as_ref(),
            Side::Server => self.server.as_ref(),
        }
    }
}

/// The clients of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exposure {
    /// Clients of this program, in memory: exactly the named suite is negotiated, even if it is weak.
    #[default]
    Laboratory,
    /// Peers on a socket. The stack's rules against weak algorithms apply, except those that the suite itself violates.
    /// Certificates are validated at the present time. Suites that resume sessions issue them on every connection.
    Network,
}

/// The parameters from which a stack creates one side of a suite. Parameters of a single stack are passed when this
/// stack is registered.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The only suite to negotiate.
    pub suite: Suite,
    pub identities: Identities,
    /// Time at which certificates must be valid, in seconds since 1970-01-01 00:00 UTC; the driver's time 0 corresponds
    /// to it.
    pub now_unix_s: i64,
    /// Tickets that the server issues after the suite's handshake.
    pub tickets: u32,
    pub instrumented: bool,
    /// The clients of a server.
    pub exposure: Exposure,
    /// Limit of a handshake over datagrams, if the caller has none; `None`: the stack's own limit.
    pub handshake_timeout: Option<Duration>,
    pub largest_datagram_bytes: usize,
    pub key_log: Option<KeyLog>,
    /// The carrier of the handshake; inside EAP, TLS 1.3 omits its compatibility with middleboxes.
    pub carrier: Carrier,
    /// The store of a server's sessions, for stacks that support one; `None`: the stack's own cache. With a store,
    /// tickets of TLS 1.3 are short, because they only name sessions.
    pub session_cache: Option<Arc<dyn SessionCache>>,
}

impl Setup {
    /// The identity that a side presents, for a stack that supports only X.509.
    pub fn x509(&self, side: Side, stack: &'static str) -> Result<Option<&Identity>, SetupError> {
        match self.identities.of(side) {
            None => Ok(None),
            Some(AnyIdentity::X509(identity)) => Ok(Some(identity)),
            Some(AnyIdentity::Wtls(_)) => {
                Err(SetupError::CertificateForm { stack, suite: self.suite.to_string() })
            }
        }
    }

    /// Returns an error if a session store was given to a stack that does not support one.
    pub fn without_session_cache(&self, stack: &'static str) -> Result<(), SetupError> {
        match &self.session_cache {
            None => Ok(()),
            Some(_) => Err(SetupError::Stack {
                stack,
                what: "keep sessions elsewhere",
                reason: format!("it keeps those of {} itself", self.suite),
            }),
        }
    }
}

/// An implementation of protocols. Entries of a [`Registry`](crate::Registry) are shared by threads.
pub trait Stack: Send + Sync {
    fn id(&self) -> StackId;

    /// Whether it can run one side of a suite; if not, the reason, which does not contain the suite's name.
    fn supports(&self, suite: &Suite, side: Side) -> Result<(), String>;

    /// Whether its endpoints draw all randomness from `shakedown_ossl::random`, so that a seed determines their bytes.
    fn follows_seeds(&self) -> bool {
        true
    }

    /// Creates the state that all clients of a suite share.
    fn client(&self, setup: &Setup) -> Result<Arc<dyn Connector>, SetupError>;

    /// Creates the state that all connections of a server share.
    fn server(&self, setup: &Setup) -> Result<Arc<dyn Acceptor>, SetupError>;

    /// Creates the state of a server of several suites, from which its clients choose.
    fn server_of(&self, setups: &[Setup]) -> Result<Arc<dyn Acceptor>, SetupError> {
        match setups {
            [setup] => self.server(setup),
            [one, other, ..] => Err(SetupError::IncompatibleSuites {
                one: one.suite.to_string(),
                other: other.suite.to_string(),
                reason: format!("the stack {} serves one suite at a time", self.id().name),
            }),
            [] => Err(SetupError::NoSuite),
        }
    }

    /// The generated certificates of a side: X.509 from the store, unless the stack has another form.
    fn generate(
        &self,
        suite: &Suite,
        side: Side,
        profile: &Profile,
        now_unix_s: i64,
        store: &Store,
    ) -> Result<AnyIdentity, SetupError> {
        Ok(AnyIdentity::X509(store.identity(&suite.keys, side, profile, now_unix_s)?))
    }
}

/// Creates clients of one suite.
pub trait Connector: Send + Sync {
    /// A new client, which resumes `session` if there is one.
    ///
    /// # Errors
    /// [`SetupError`] if the stack refuses; [`SetupError::ForeignSession`] for a session of another stack;
    /// [`SetupError::SpentSession`] if the session can no longer be resumed.
    fn connect(&self, session: Option<&Session>) -> Result<Box<dyn Endpoint>, SetupError>;
}

/// Creates the server's endpoints.
pub trait Acceptor: Send + Sync {
    /// A new endpoint, for a stream or for one peer's datagrams. It issues [`Setup::tickets`] tickets.
    fn accept(&self) -> Result<Box<dyn Endpoint>, SetupError>;

    /// A new endpoint that always issues a session: for the full handshake before a measured resumption.
    fn accept_issuing(&self) -> Result<Box<dyn Endpoint>, SetupError> {
        self.accept()
    }

    /// A server of many peers over datagrams; `None` if the protocol runs over streams.
    fn listen(&self, limits: ListenLimits) -> Option<Box<dyn Listener>> {
        let _ = limits;
        None
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenLimits {
    /// Handshakes in progress; when the limit is reached, the oldest is dropped.
    pub handshakes: usize,
    /// Connections; when the limit is reached, the one that was idle longest is dropped.
    pub connections: usize,
    /// How long a connection may be idle.
    pub idle: Duration,
}

/// A server of many peers over datagrams, driven like an [`Endpoint`]. Its state for unauthenticated peers is within
/// its stack's limits.
pub trait Listener: Send {
    /// Processes a datagram from `peer`.
    fn handle_input(&mut self, now: Time, peer: SocketAddr, bytes: &[u8]);

    /// The time of [`poll_timeout`](Self::poll_timeout) has come. A call before this time has no effect.
    fn handle_timeout(&mut self, now: Time);

    /// Queues application data for a peer, one datagram per call.
    ///
    /// # Errors
    /// [`WriteError`]; then no data was queued.
    fn write(&mut self, now: Time, peer: SocketAddr, data: &[u8]) -> Result<(), WriteError>;

    /// Closes the connection to a peer and notifies it.
    fn close(&mut self, now: Time, peer: SocketAddr);

    /// Appends the next datagram to `buffer` and returns its receiver; `None` if there is nothing to send.
    fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<SocketAddr>;

    /// The time at which to call [`handle_timeout`](Self::handle_timeout); `None`: never.
    fn poll_timeout(&self) -> Option<Time>;

    /// The next event, and its peer.
    fn poll_event(&mut self) -> Option<(SocketAddr, Event)>;
}
