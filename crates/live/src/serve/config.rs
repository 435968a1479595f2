//! A server's configuration.

use serde::de::{Deserialize, Deserializer, Error as _};
use shakedown_certs::supplied::AnyIdentity;
use shakedown_pki::Identity;
use shakedown_stacks::SetupError;
use shakedown_trace::Suite;
use shakedown_trace::suite::Authentication;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Maximum size of a response over datagrams, which is sent without pacing.
pub const MAX_DATAGRAM_PAYLOAD_BYTES: u64 = 64 * 1024;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PayloadWhen {
    /// As the response to a request, or to a first byte that does not begin a request.
    #[default]
    Request,
    /// As soon as the handshake is over.
    Handshake,
}

/// A server's configuration. Except for the suites, options name it: each is optional, and others are rejected.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Suites that the server negotiates, all over the same transport.
    #[serde(skip)]
    pub suites: Vec<Suite>,
    /// Address on which it listens; port 0: any free port.
    pub listen: SocketAddr,
    pub metrics: Option<SocketAddr>,
    /// Number of threads, each with its own connections.
    pub workers: usize,
    pub payload_bytes: u64,
    pub payload_when: PayloadWhen,
    /// Maximum duration of a handshake.
    #[serde(rename = "handshake_timeout_s", deserialize_with = "seconds")]
    pub handshake_timeout: Duration,
    /// Timeout of an established connection without a request, or without reading any of a response.
    #[serde(rename = "idle_timeout_s", deserialize_with = "seconds")]
    pub idle_timeout: Duration,
    /// Time until connections are closed after the stop signal.
    #[serde(rename = "drain_timeout_s", deserialize_with = "seconds")]
    pub drain_timeout: Duration,
    /// Maximum number of handshakes in progress, of all workers; when it is reached, the oldest is dropped.
    pub max_handshakes: usize,
    /// Maximum number of connections, of all workers; further ones are accepted when one has ended.
    pub max_connections: usize,
    /// Root certificate of the clients, which is all that a server needs to verify them.
    pub client_ca: Option<PathBuf>,
    /// File to which sampled handshakes are appended, as lines of JSON.
    #[serde(rename = "traces_out")]
    pub traces: Option<PathBuf>,
    /// One handshake in N is sampled.
    pub sample: u64,
    /// Measures the queue waits and service times of handshake messages, and the workers' busy time.
    pub queue_times: bool,
    /// Each worker records the queue times of at most N messages; [`super::Server::take_queue_traces`] returns them.
    pub max_queue_traces: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            suites: Vec::new(),
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            metrics: None,
            workers: 1,
            payload_bytes: 0,
            payload_when: PayloadWhen::default(),
            handshake_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
            drain_timeout: Duration::from_secs(5),
            max_handshakes: 4_096,
            max_connections: 65_536,
            client_ca: None,
            traces: None,
            sample: 100,
            queue_times: false,
            max_queue_traces: 0,
        }
    }
}

impl Config {
    /// A server of these suites with default limits.
    pub fn new(suites: Vec<Suite>, listen: SocketAddr) -> Self {
        Self { suites, listen, ..Self::default() }
    }

    /// The trusted root of the clients; `None` if none was given.
    pub fn clients(&self) -> Result<Option<AnyIdentity>, ServeError> {
        let Some(path) = &self.client_ca else { return Ok(None) };
        let asks = |suite: &Suite| {
            matches!(suite.authentication, Some(Authentication::Requested | Authentication::Mutual))
        };
        if !self.suites.iter().any(asks) {
            let message = "a client root needs a suite that requests client certificates";
            return Err(ServeError::ClientCa(message.into()));
        }
        let root = Identity::trusted(path, None).map_err(|error| ServeError::ClientCa(error.to_string()))?;
        Ok(Some(AnyIdentity::X509(root)))
    }

    /// Whether endpoints record their operations.
    pub fn instrumented(&self) -> bool {
        self.metrics.is_some() || self.traces.is_some()
    }
}

fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let seconds = f64::deserialize(from)?;
    Duration::try_from_secs_f64(seconds)
        .map_err(|error| D::Error::custom(format!("a time of {seconds} s: {error}")))
}

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(
        "{stream} runs over TCP and {datagram} over UDP; accepted at one address: suites of one transport"
    )]
    Transports { stream: String, datagram: String },
    #[error("a payload of {bytes} bytes; accepted over datagrams: up to {MAX_DATAGRAM_PAYLOAD_BYTES} bytes")]
    Payload { bytes: u64 },
    #[error("{0}")]
    ClientCa(String),
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error("cannot listen on {address}: {}", listening_reason(.error))]
    Listen { address: SocketAddr, error: io::Error },
    #[error("cannot write {path}: {error}")]
    Traces { path: String, error: io::Error },
    #[error("cannot set up {what}: {error}")]
    System { what: &'static str, error: io::Error },
    #[error("a worker of the server ended by a defect of this program: {0}")]
    Worker(String),
}

impl ServeError {
    /// True for invalid input.
    pub fn is_wrong_input(&self) -> bool {
        match self {
            Self::Payload { .. } | Self::ClientCa(_) | Self::Transports { .. } | Self::Listen { .. } => true,
            Self::Setup(error) => error.is_input(),
            _ => false,
        }
    }
}

/// Reason of a failure to listen.
pub(crate) fn listening_reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "another program listens there".into(),
        io::ErrorKind::AddrNotAvailable => "this machine has no such address".into(),
        io::ErrorKind::PermissionDenied => {
            "ports below 1024 need privileges that this user does not have".into()
        }
        _ => error.to_string(),
    }
}
