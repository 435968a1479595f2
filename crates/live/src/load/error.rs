//! Errors that prevent a load.

use shakedown_stacks::SetupError;
use std::net::IpAddr;

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("target '{target}': {reason}; accepted: HOST:PORT, tls://HOST:PORT, wtls://HOST:PORT")]
    Target { target: String, reason: String },
    #[error("{host}: {reason}")]
    Unknown { host: String, reason: String },
    #[error("{target}: a wtls:// target needs a WTLS suite; a tls:// target does not accept one")]
    Protocol { target: String },
    #[error("{what}: {given}; accepted: {accepted}")]
    Option { what: &'static str, given: String, accepted: String },
    #[error(
        "{host} ({address}) is not this machine; if you are permitted to load it: --authorized-target {host}"
    )]
    NotPermitted { host: String, address: IpAddr },
    #[error(
        "{host} is not this machine, so {asked} is above the limit of {cap}/s; --no-rate-cap removes the limit"
    )]
    RateCap { host: String, asked: String, cap: f64 },
    #[error("{what} '{path}': {error}")]
    File { what: &'static str, path: String, error: std::io::Error },
    #[error("certificates to trust '{path}': {reason}")]
    Certificates { path: String, reason: String },
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error("{target}: {cause}")]
    Unreachable { target: String, cause: String },
    #[error("cannot {what}: {error}")]
    System { what: &'static str, error: std::io::Error },
    #[error("the other load generator could not start")]
    Companion,
    #[error("the generator's thread panicked")]
    Panicked,
}

impl LoadError {
    /// True for invalid input, false for failures of the environment.
    pub fn is_input(&self) -> bool {
        match self {
            Self::Target { .. }
            | Self::Unknown { .. }
            | Self::Protocol { .. }
            | Self::Option { .. }
            | Self::NotPermitted { .. }
            | Self::RateCap { .. }
            | Self::File { .. }
            | Self::Certificates { .. } => true,
            Self::Setup(error) => error.is_input(),
            Self::Unreachable { .. } | Self::System { .. } | Self::Companion | Self::Panicked => false,
        }
    }
}
