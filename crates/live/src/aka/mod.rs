//! SSL-based AKA on this program's stacks: operators and their certificates, runs in virtual time, and mobile, SGSN and
//! HSS as processes on sockets.

mod admission;
mod credentials;
mod deployment;
mod files;
mod mobile;
mod node_queries;
mod nodes;
mod operator;
mod provision;
mod sockets;

pub use admission::{Limits, Refusals};
pub use credentials::{Card, SgsnEnvironment, suite_of};
pub use deployment::{Deployment, simulate};
pub use mobile::{Attached, Attaches, MobileOptions, attach};
pub use nodes::{HssOptions, HssSummary, Kept, SgsnOptions, SgsnSummary, serve_hss, serve_sgsn};
pub use operator::Operator;
pub use provision::{Provisioned, Site, provision};

use shakedown_stacks::SetupError;
use std::path::PathBuf;

/// Errors that prevent a run. Failures of single attaches are in the results.
#[derive(Debug, thiserror::Error)]
pub enum AkaError {
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Pki(#[from] shakedown_pki::PkiError),
    #[error(transparent)]
    Name(#[from] shakedown_aka::names::NameError),
    #[error("{suite}: {reason}")]
    Suite { suite: String, reason: &'static str },
    #[error("OpenSSL could not {what}: {stack}")]
    OpenSsl { what: &'static str, stack: openssl::error::ErrorStack },
    #[error(transparent)]
    Plan(#[from] shakedown_aka::run::PlanError),
    #[error("{option}: {given}; accepted: {accepted}")]
    Option { option: &'static str, given: String, accepted: String },
    #[error("{}: {reason}", path.display())]
    File { path: PathBuf, reason: String },
    /// A failure of the system, such as a full disk.
    #[error("{}: {reason}", path.display())]
    Disk { path: PathBuf, reason: String },
    #[error("cannot listen on {address}: {}", crate::serve::listening_reason(.source))]
    Listen { address: String, source: std::io::Error },
    #[error(transparent)]
    Store(#[from] shakedown_aka::sessions::StoreError),
    #[error("interrupted")]
    Interrupted,
}

impl AkaError {
    /// True for invalid input, false for failures of the system.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Name(_)
                | Self::Suite { .. }
                | Self::Option { .. }
                | Self::File { .. }
                | Self::Listen { .. }
                | Self::Store(_)
                | Self::Plan(_)
                | Self::Setup(SetupError::Unsupported(_))
        )
    }
}
