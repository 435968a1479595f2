//! A connection of a capture in the form of a measured handshake, for which costs can be estimated.
//!
//! Messages and bytes come from the capture; the public-key operations are derived from the suite. A trace has no
//! times: a device profile gives the costs of operations. A capture shows neither symmetric work nor the
//! import of keys: predictions take them from a measured handshake of the suite.

use crate::report::{Bytes, Connection, Message};
use serde::Serialize;
use shakedown_trace::suite::Suite;
use shakedown_trace::{Class, Operation, Side};

/// A message, as in a measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceMessage {
    /// Index in the list of messages, from 0.
    pub index: usize,
    /// `client` or `server`.
    pub from: &'static str,
    /// RFC name.
    pub name: String,
    /// Number of the flight, from 1; `None` for messages after their sender's Finished.
    pub flight: Option<u32>,
    pub bytes: u64,
}

/// An operation, as in a measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceOperation {
    pub side: Side,
    pub message: Option<usize>,
    pub operation: Operation,
    pub algorithm: &'static str,
    /// Key size or curve.
    pub parameters: &'static str,
    pub class: Class,
    /// Always 1.
    pub count: u64,
    /// Always 0.
    pub bytes: u64,
}

/// A handshake without times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CapturedTrace {
    pub suite: String,
    /// How it was obtained: `captured`.
    pub kind: &'static str,
    pub bytes: Bytes,
    /// Number of flights (runs of messages of one sender).
    pub flights: u32,
    /// In the order in which they were sent.
    pub messages: Vec<TraceMessage>,
    /// Public-key operations, by side and message.
    pub operations: Vec<TraceOperation>,
}

/// Why a connection gives no trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTrace {
    #[error(
        "connection {index}: not everything that a suite's name says was visible (an abbreviated handshake, \
         or TLS 1.3 without a key log)"
    )]
    UnknownSuite { index: u64 },
    #[error("connection {index}: the handshake is not complete")]
    Incomplete { index: u64 },
    #[error(
        "connection {index}: {bytes} bytes of the handshake are encrypted and the key log does not decrypt them"
    )]
    Encrypted { index: u64, bytes: u64 },
}

/// Converts a connection to a trace.
pub fn of(connection: &Connection) -> Result<CapturedTrace, NoTrace> {
    let index = connection.index;
    if !connection.complete {
        return Err(NoTrace::Incomplete { index });
    }
    let undecrypted =
        connection.encrypted.client_to_server.bytes + connection.encrypted.server_to_client.bytes;
    let suite: Option<Suite> = connection.suite.as_deref().and_then(|name| name.parse().ok());
    match suite {
        _ if undecrypted > 0 => Err(NoTrace::Encrypted { index, bytes: undecrypted }),
        None => Err(NoTrace::UnknownSuite { index }),
        Some(suite) => Ok(CapturedTrace {
            suite: suite.to_string(),
            kind: "captured",
            bytes: connection.bytes,
            flights: connection.flights,
            messages: connection.messages.iter().map(message).collect(),
            operations: operations(&suite, &connection.messages),
        }),
    }
}

fn message(message: &Message) -> TraceMessage {
    TraceMessage {
        index: message.index,
        from: message.from,
        name: message.name.clone(),
        flight: message.flight,
        bytes: message.bytes,
    }
}

/// The public-key operations of the suite, attributed to the captured messages.
fn operations(suite: &Suite, messages: &[Message]) -> Vec<TraceOperation> {
    let mut operations: Vec<_> = suite
        .operations()
        .into_iter()
        .map(|one| {
            let primitive = one.primitive;
            let is_its = |message: &Message| {
                message.from == one.from.as_str()
                    && message.name == one.message.as_str()
                    && message.flight.is_some()
            };
            TraceOperation {
                side: one.side,
                message: messages.iter().rposition(is_its),
                operation: primitive.operation,
                algorithm: primitive.algorithm,
                parameters: primitive.parameters,
                class: primitive.operation.class(),
                count: 1,
                bytes: 0,
            }
        })
        .collect();
    operations.sort_by_key(|one| (one.side, one.message));
    operations
}
