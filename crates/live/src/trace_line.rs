//! One side of a sampled handshake as a JSON object, which `serve` writes and `load` returns.

use serde_json::{Value, json};
use shakedown_trace::flight::Flights;
use shakedown_trace::{HalfTrace, Negotiated, StackId};
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Context of a sampled handshake.
pub struct About<'a> {
    /// Canonical names of the offered suites; empty if the stack chose them.
    pub suites: &'a [String],
    pub stack: &'a StackId,
    /// The client's address as this side sees it, by which the two halves of a handshake can be matched.
    pub client_address: Option<SocketAddr>,
    pub ended: SystemTime,
    /// Time that the transport's connection took, for a client.
    pub connect: Option<Duration>,
}

pub fn of(half: &HalfTrace, negotiated: &Negotiated, about: &About<'_>) -> Value {
    let ended = about.ended.duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut flights = Flights::default();
    let messages: Vec<Value> = half
        .messages
        .iter()
        .enumerate()
        .map(|(index, message)| {
            json!({
                "index": index,
                "from": message.from,
                "name": message.name,
                "flight": flights.next(message.from, message.name),
                "unit": message.unit,
                "retransmissions": message.retransmissions,
                "bytes": message.bytes,
                "us": microseconds(message.spent),
                "waited_us": microseconds(message.waited),
            })
        })
        .collect();
    let operations: Vec<Value> = half
        .operations
        .iter()
        .map(|one| {
            json!({
                "side": one.side,
                "message": one.message,
                "operation": one.primitive.operation,
                "algorithm": one.primitive.algorithm,
                "parameters": one.primitive.parameters,
                "class": one.primitive.operation.class(),
                "us": microseconds(one.spent),
                "count": one.count,
                "bytes": one.bytes,
            })
        })
        .collect();
    json!({
        "kind": "live",
        "side": half.side,
        "suites": about.suites,
        "stack": about.stack,
        "protocol": negotiated.protocol.as_str(),
        "cipher_suite": negotiated.cipher_suite,
        "group": negotiated.group.map(|group| group.name(negotiated.protocol)),
        "resumed": negotiated.resumed,
        "client_address": about.client_address.map(|address| address.to_string()),
        "ended_unix_s": ended.as_secs_f64(),
        "clock": shakedown_trace::recorder::clock_name(),
        "counter": half.counter.unit(),
        "connect_us": about.connect.map(|connect| connect.as_secs_f64() * 1e6),
        "total_us": microseconds(half.total),
        "unattributed_us": microseconds(half.unattributed),
        "messages": messages,
        "operations": operations,
    })
}

#[allow(clippy::cast_precision_loss)] // times of a handshake are far below 2^53 ns
pub fn microseconds(ns: u64) -> f64 {
    ns as f64 / 1000.0
}
