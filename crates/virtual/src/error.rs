//! Errors of this crate.

use shakedown_sim::ScenarioError;
use shakedown_sim::outcome::MergeError;
use shakedown_trace::{Failure, MessageName, Side};

/// Why endpoints cannot run in virtual time.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum VirtualError {
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    #[error("{key}: not with endpoints; accepted: {accepted}")]
    Unsupported { key: &'static str, accepted: &'static str },
    #[error("class 0: {0}")]
    Bearer(#[from] shakedown_link::BearerError),
    #[error("message {message}: {error}")]
    Cost { message: String, error: shakedown_link::DistributionError },
    #[error("endpoints cannot be made: {0}")]
    Endpoints(String),
    #[error("the endpoints use {endpoints} and the recorded handshake {recorded}; accepted: the same")]
    Transport { endpoints: &'static str, recorded: &'static str },
    #[error("client {client}: {failure}")]
    Failed { client: u64, failure: Failure },
    #[error("client {client}: the {side} ended the connection before it was established")]
    Ended { client: u64, side: Side },
    #[error(
        "the {side} finished its handshake without {message}, which has a cost; accepted: the handshake that was estimated"
    )]
    OtherMessages { side: Side, message: String },
    #[error("the {side} exchanged {message}, which has no cost; accepted: the handshake that was estimated")]
    WithoutCost { side: Side, message: MessageName },
    #[error("client {client}: the {side} never stops; it was called {calls} times")]
    Runaway { client: u64, side: Side, calls: u32 },
    #[error(transparent)]
    Merge(#[from] MergeError),
}
