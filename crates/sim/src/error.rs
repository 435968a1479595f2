//! Why a scenario is invalid.

use crate::handshake::HandshakeError;
use shakedown_link::BearerError;

/// Why a scenario is invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ScenarioError {
    #[error("{key} is {value}; accepted: {accepted}")]
    Value { key: &'static str, value: f64, accepted: &'static str },
    #[error("clients is missing; accepted: a number, or arrivals at times or on a curve")]
    Endless,
    #[error("precision is {0} and arrivals have no rate; accepted with poisson, deterministic and bursts")]
    Precision(f64),
    #[error("there are no classes; accepted: at least one")]
    NoClasses,
    #[error("the weights of all classes are 0; accepted: at least one above 0")]
    NoWeight,
    #[error("arrivals.at_s has {given} times for {clients} clients; accepted: as many times as clients")]
    Times { given: usize, clients: u64 },
    #[error("arrivals.at_s goes back at its time {index}; accepted: rising order")]
    Order { index: usize },
    #[error(
        "arrivals.points {0}; accepted: two or more, the seconds rising from 0, no rate below 0 and one above"
    )]
    Curve(&'static str),
    #[error("server.balance is cell and class {0} has no cells; accepted with it: classes with cells")]
    NoCells(usize),
    #[error(
        "part {number} of {of}; accepted: 0 or more, below the number of parts, of which {parts} at most"
    )]
    Part { number: u32, of: u32, parts: u32 },
    #[error("server.admission refuses and class {0} does not go over TCP; accepted without TCP: silence")]
    Refusal(usize),
    #[error(
        "server.balance follows client or cell and server.scaling is given; accepted with it: round-robin, least-connections"
    )]
    Scaling,
    #[error("resumption_steps go back in time; accepted: rising times")]
    ResumptionSteps,
    #[error("resumption is {0} and there is no resumed handshake; accepted: 0, or a resumed handshake")]
    NoResumed(f64),
    #[error(
        "class {class}: its cells and those of the classes before it are both {medium:?}, and differ; accepted: another medium, or the same count, scheduler and access"
    )]
    Medium { class: usize, medium: String },
    #[error("class {class}: {error}")]
    Bearer { class: usize, error: BearerError },
    #[error(
        "class {class}: packets of {mtu} bytes have no room beside {header_bytes} bytes of headers; accepted: larger packets"
    )]
    Headers { class: usize, mtu: u32, header_bytes: u32 },
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
}

/// Checks a number of a scenario.
pub(crate) fn check(
    key: &'static str,
    value: f64,
    accepted: &'static str,
    holds: bool,
) -> Result<(), ScenarioError> {
    if holds && value.is_finite() { Ok(()) } else { Err(ScenarioError::Value { key, value, accepted }) }
}
