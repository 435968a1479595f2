//! What an implementation of protocols must offer to be run here.

use crate::settings::Settings;
use shakedown_certs::CertsError;
use shakedown_certs::supplied::AnyIdentity;
use shakedown_pki::{PkiError, Store};
use shakedown_trace::endpoint::{Event, Time};
use shakedown_trace::{Carrier, Endpoint, Session, Side, StackId, Suite, WriteError};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Lines of a key log, shared with their writer.
pub type KeyLog = Arc<Mutex<Vec<String>>>;

/// Where a server keeps the sessions that clients may resume by their ID, in place of a cache of its stack's own. It has
/// the last word on each: a session that it does not give is not resumed.
pub trait SessionCache: Send + Sync {
    /// A handshake has made a session; `session` is as the stack writes it. In TLS 1.3 a resumption makes one too:
    /// `made_unix_s` is the time of the full handshake behind it, in seconds since 1970.
    fn put(&self, id: &[u8], session: Vec<u8>, made_unix_s: i64);

    /// A client offers a session: as it was put, where it is to be resumed.
    fn get(&self, id: &[u8]) -> Option<Vec<u8>>;
}

impl std::fmt::Debug for dyn SessionCache {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("SessionCache")
    }
}

/// Why a stack does not run a suite, without the suite's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Reason(pub String);

impl Reason {
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// No stack here runs a suite, or not the one that was asked for, though the suite's name is sound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{suite}: {reason}")]
pub struct Unsupported {
    pub suite: String,
    /// Why not.
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
    OpenSsl { what: &'static str, stack: ::openssl::error::ErrorStack },
    #[error("{stack} could not {what}: {reason}")]
    Stack { stack: &'static str, what: &'static str, reason: String },
    #[error("{one} and {other} cannot be served at one address: {reason}")]
    Together { one: String, other: String, reason: String },
    #[error("no session to resume: {reason}")]
    NoSession { reason: String },
    #[error("a session of another stack cannot be resumed by {stack}")]
    ForeignSession { stack: &'static str },
    #[error("every ticket of the session has been used")]
    SpentSession,
    #[error(
        "the stack {stack} draws its own randomness, which no seed reaches; accepted: no seed, or another stack"
    )]
    Unseedable { stack: String },
    #[error("{stack} takes no certificates of this form in {suite}")]
    CertificateForm { stack: &'static str, suite: String },
}

/// What both sides present, with the private keys. A client takes its own and trusts the server's root, and the other
/// way round.
#[derive(Clone, Debug, Default)]
pub struct Identities {
    /// The server's, where the key exchange has certificates.
    pub server: Option<AnyIdentity>,
    /// The client's, where the server asks for one.
    pub client: Option<AnyIdentity>,
    /// The server's uncertified key as PKCS #8, where the key exchange has one (`rsa_anon`).
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

/// Whom a server's connections come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exposure {
    /// This program's own clients, in memory: exactly the named suite is run, however weak.
    #[default]
    Laboratory,
    /// Peers on a socket: the stack's own rules against weak algorithms apply, except those that the suite
    /// itself violates; certificates are checked by today's clock; suites that resume sessions issue them on every
    /// connection.
    Network,
}

/// What a stack is told to make one side of a suite. What only one stack has a use for is told to that stack when it
/// enters the registry.
#[derive(Clone, Debug)]
pub struct Setup {
    /// What to negotiate, and nothing else.
    pub suite: Suite,
    /// What both sides present.
    pub identities: Identities,
    /// Time at which certificates must be valid, in seconds since 1970-01-01 00:00 UTC: when the driver's time is 0.
    pub now_unix_s: i64,
    /// Tickets that the server issues after full handshakes.
    pub tickets: u32,
    /// Times primitives and reports messages to the recorder; without it the stack runs unobserved.
    pub instrumented: bool,
    /// Whom a server's connections come from.
    pub exposure: Exposure,
    /// How long a handshake may take over datagrams, where the caller has no limit; `None`: the stack's own.
    pub handshake_timeout: Option<Duration>,
    /// The largest datagram that endpoints make.
    pub largest_datagram_bytes: usize,
    /// Where the client logs secrets for captures.
    pub key_log: Option<KeyLog>,
    /// What carries the handshake; within EAP there are no middleboxes to be compatible with.
    pub carrier: Carrier,
    /// Where a server keeps sessions; `None`: with itself. In stacks that can; in TLS 1.3 tickets are then short, and name
    /// sessions.
    pub session_cache: Option<Arc<dyn SessionCache>>,
}

impl Setup {
    /// Refuses a session cache on behalf of a stack that cannot use one.
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

    /// Whether it can be one side of a suite.
    fn supports(&self, suite: &Suite, side: Side) -> Result<(), Reason>;

    /// Whether its endpoints draw all randomness from `shakedown_ossl::random`, so that a seed determines their bytes.
    fn follows_seeds(&self) -> bool {
        true
    }

    /// Makes the state that clients of a suite share.
    fn client(&self, setup: &Setup) -> Result<Arc<dyn Connector>, SetupError>;

    /// Makes the state that a server's connections share.
    fn server(&self, setup: &Setup) -> Result<Arc<dyn Acceptor>, SetupError>;

    /// Makes what a server shares that negotiates whichever of several suites its clients want.
    fn server_of(&self, setups: &[Setup]) -> Result<Arc<dyn Acceptor>, SetupError> {
        match setups {
            [setup] => self.server(setup),
            [one, other, ..] => Err(SetupError::Together {
                one: one.suite.to_string(),
                other: other.suite.to_string(),
                reason: format!("the stack {} serves one suite at a time", self.id().name),
            }),
            [] => Err(SetupError::NoSuite),
        }
    }

    /// What a side presents in this stack where the user supplied nothing: X.509 from the store, unless the stack has
    /// a form of its own.
    fn generate(
        &self,
        suite: &Suite,
        side: Side,
        settings: &Settings,
        store: &Store,
    ) -> Result<AnyIdentity, SetupError> {
        let identity = store.identity(&suite.keys, side, &settings.profile, settings.now_unix_s)?;
        Ok(AnyIdentity::X509(identity))
    }
}

/// Makes clients of one suite.
pub trait Connector: Send + Sync {
    /// A client that has done nothing yet, resuming `session` if there is one.
    ///
    /// # Errors
    /// [`SetupError`] where the stack refuses; [`SetupError::ForeignSession`] for a session of another stack;
    /// [`SetupError::SpentSession`] where it resumes no more often.
    fn connect(&self, session: Option<&Session>) -> Result<Box<dyn Endpoint>, SetupError>;
}

/// Makes a server's ends of connections.
pub trait Acceptor: Send + Sync {
    /// A server's end that has done nothing yet, for a stream or for one peer's datagrams. In suites that resume a
    /// session it issues no ticket.
    fn accept(&self) -> Result<Box<dyn Endpoint>, SetupError>;

    /// One that leaves its client a session to resume: for the full handshake before a resumption.
    fn accept_issuing(&self) -> Result<Box<dyn Endpoint>, SetupError> {
        self.accept()
    }

    /// A server of many peers over datagrams; `None` where the protocol runs on streams.
    fn listen(&self, limits: ListenLimits) -> Option<Box<dyn Listener>> {
        let _ = limits;
        None
    }
}

/// How much a listener holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenLimits {
    /// Handshakes in progress; beyond, the oldest is forgotten.
    pub handshakes: usize,
    /// Connections; beyond, the one that was silent longest is dropped.
    pub connections: usize,
    /// How long a connection may be silent.
    pub idle: Duration,
}

/// A server of many peers over datagrams, driven as an [`Endpoint`] is. It holds no more for peers that have proved
/// nothing than its stack's limits say.
pub trait Listener: Send {
    /// Takes a datagram from `peer`.
    fn handle_input(&mut self, now: Time, peer: SocketAddr, bytes: &[u8]);

    /// The time of [`poll_timeout`](Self::poll_timeout) has come. Too early does no harm.
    fn handle_timeout(&mut self, now: Time);

    /// Takes application data for a peer, one datagram a call.
    ///
    /// # Errors
    /// [`WriteError`]; nothing has been taken then.
    fn write(&mut self, now: Time, peer: SocketAddr, data: &[u8]) -> Result<(), WriteError>;

    /// Tells a peer that this is the end.
    fn close(&mut self, now: Time, peer: SocketAddr);

    /// Appends the next datagram to `buffer` and returns its receiver; `None` if there is nothing to send.
    fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<SocketAddr>;

    /// When [`handle_timeout`](Self::handle_timeout) is to be called, if ever.
    fn poll_timeout(&self) -> Option<Time>;

    /// The next thing that happened, and with whom.
    fn poll_event(&mut self) -> Option<(SocketAddr, Event)>;
}
