//! Why nothing was loaded.

use shakedown_stacks::SetupError;
use std::net::IpAddr;

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("target '{target}': {reason}; accepted: HOST:PORT, tls://HOST:PORT, wtls://HOST:PORT")]
    Target { target: String, reason: String },
    #[error("{host}: {reason}")]
    Unknown { host: String, reason: String },
    #[error("{target}: a wtls:// target takes a WTLS suite, and a tls:// target takes none")]
    Protocol { target: String },
    #[error("{what}: {given}; accepted: {accepted}")]
    Option { what: &'static str, given: String, accepted: String },
    #[error(
        "{host} ({address}) is not this machine; a server that you may load is named by --authorized-target {host}"
    )]
    NotPermitted { host: String, address: IpAddr },
    #[error("{host} is not this machine, so {asked} is above the cap of {cap}/s; --no-rate-cap lifts it")]
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
    #[error("the generator beside this one could not begin")]
    Companion,
    #[error("the generator's thread panicked")]
    Panicked,
}

impl LoadError {
    /// True where the user gave something wrong, false where the world did not play along.
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
            Self::Setup(error) => {
                matches!(
                    error,
                    SetupError::Unsupported(_)
                        | SetupError::UnknownStack { .. }
                        | SetupError::CertificateForm { .. }
                )
            }
            Self::Unreachable { .. } | Self::System { .. } | Self::Companion | Self::Panicked => false,
        }
    }
}
