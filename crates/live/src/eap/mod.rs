//! EAP-TLS over RADIUS on UDP sockets: peers that authenticate, once or at a rate, and a server for any supplicant.

mod credentials;
mod peer;
mod server;
mod sockets;
mod spread;

pub use credentials::Files;
pub use peer::{Authenticated, PeerOptions, authenticate};
pub use server::{ServerOptions, serve};
pub use spread::Times;

use shakedown_stacks::SetupError;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Errors that prevent a run. Failures of single authentications are in the results.
#[derive(Debug, thiserror::Error)]
pub enum EapError {
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    User(#[from] shakedown_pki::UserError),
    #[error("cannot listen on {address}: {}", crate::serve::listening_reason(.source))]
    Listen { address: SocketAddr, source: std::io::Error },
    #[error("a key without its chain: {}; accepted: --key together with --chain", .0.display())]
    KeyWithoutChain(PathBuf),
    #[error("{address}: {source}")]
    Socket { address: SocketAddr, source: std::io::Error },
    #[error("the system has no random numbers: {0}")]
    Random(#[from] openssl::error::ErrorStack),
    #[error("interrupted")]
    Interrupted,
}
