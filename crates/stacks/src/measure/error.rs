//! Why a suite could not be measured.

use crate::stack::SetupError;
use shakedown_trace::AccountingError;
use shakedown_trace::driver::DriveError;

/// Maximum number of repetitions: all are kept in memory, with some hundred values each.
pub const MAX_REPEAT: usize = 1_000_000;

#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error("{suite}: {error}")]
    Handshake { suite: String, error: DriveError },
    #[error("{suite} inside EAP: {reason}")]
    Eap { suite: String, reason: String },
    #[error("{suite}: not the requested handshake: {difference}")]
    WrongKind { suite: String, difference: String },
    #[error("{suite}: what was recorded of a repetition contradicts itself: {error}")]
    Accounting { suite: String, error: AccountingError },
    #[error("{suite}: messages hold {counted} bytes, but {transferred} were transferred")]
    Bytes { suite: String, counted: u64, transferred: u64 },
    #[error("{suite}: {repeat} repetitions; accepted: 1 to {MAX_REPEAT}")]
    Repetitions { suite: String, repeat: usize },
    #[error("{suite}: a transfer failed: {reason}")]
    Transfer { suite: String, reason: String },
    #[error("{suite}: a transfer of {bytes} bytes; accepted: 1 to {max}")]
    TransferSize { suite: String, bytes: usize, max: usize },
    #[error("the link under a transfer failed: {reason}")]
    Link { reason: String },
    #[error("interrupted")]
    Interrupted,
}
