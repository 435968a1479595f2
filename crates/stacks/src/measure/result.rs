//! The results of a suite, as they are printed and stored.

use super::samples::{MessageSamples, OperationSamples, Samples};
use super::statistics::{Sampled, Summary};
use crate::carried::Exchanged;
use crate::machine::Machine;
use crate::memory::Memory;
use crate::peers::Peers;
use serde::Serialize;
use shakedown_trace::{Carrier, Class, Credentials, MessageName, Operation, Side, StackId, recorder};

/// The costs of a suite on this machine. The first five fields are its identity. Summaries contain their samples.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    pub suite: String,
    pub client_stack: StackId,
    pub server_stack: StackId,
    pub carrier: Carrier,
    pub credentials: Credentials,
    /// How the values were obtained: `measured`.
    pub kind: &'static str,
    pub repeat: usize,
    /// Repetitions in which the thread was preempted; discarded unless all were preempted.
    pub preempted: usize,
    pub machine: Machine,
    pub clock: &'static str,
    pub counter: &'static str,
    /// Each side's time, in microseconds.
    pub handshake: PerSide<Sampled>,
    pub bytes: Bytes,
    /// The length of a message differed between repetitions, for example because of DER signatures.
    pub bytes_vary: bool,
    pub flights: u32,
    /// In the order of sending.
    pub messages: Vec<MessageFigures>,
    /// Public-key calls one by one; symmetric work per side, message and algorithm.
    pub operations: Vec<OperationFigures>,
    /// Each side's time outside any message, in microseconds.
    pub unattributed_us: Unattributed,
    /// Attributed time compared with the CPU clock, over all used repetitions.
    pub accounting: Accounting,
    /// Memory of one connection; `None` if this process cannot count it.
    pub memory: Option<Memory>,
    /// The seed of all random numbers; `None`: the system's random numbers.
    pub seed: Option<u64>,
    /// Round trips, fragments and bytes of EAP, if it carried the handshake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eap: Option<Exchanged>,
}

#[derive(Clone, Debug, Serialize)]
pub struct PerSide<T> {
    pub client_us: T,
    pub server_us: T,
}

/// Time outside any message, in microseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Unattributed {
    pub client: f64,
    pub server: f64,
    pub client_mean: f64,
    pub server_mean: f64,
    pub client_samples: Vec<f64>,
    pub server_samples: Vec<f64>,
}

/// Bytes on the wire: medians, because the DER encoding of a signature varies.
#[derive(Clone, Debug, Serialize)]
pub struct Bytes {
    pub client_to_server: u64,
    pub server_to_client: u64,
    pub total: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct MessageFigures {
    pub index: usize,
    pub from: Side,
    pub name: MessageName,
    pub flight: Option<u32>,
    /// The number of the datagram or write of its sender that carried it, from 1.
    pub unit: u32,
    pub retransmissions: u32,
    pub bytes: u64,
    pub generate_us: f64,
    pub process_us: f64,
    pub generate_mean_us: f64,
    pub process_mean_us: f64,
    pub generate_samples_us: Vec<f64>,
    pub process_samples_us: Vec<f64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct OperationFigures {
    pub side: Side,
    pub message: Option<usize>,
    pub operation: Operation,
    pub algorithm: &'static str,
    pub parameters: &'static str,
    pub class: Class,
    pub us: f64,
    pub mean_us: f64,
    pub count: u64,
    pub bytes: u64,
    pub samples_us: Vec<f64>,
}

/// Two clocks over the same repetitions.
#[derive(Clone, Debug, Serialize)]
pub struct Accounting {
    /// Both sides' time, summed, in microseconds.
    pub attributed_us: f64,
    /// The thread CPU clock, read once around each repetition, summed, in microseconds.
    pub cpu_us: f64,
    /// `attributed_us` / `cpu_us`.
    pub coverage: f64,
}

/// The results of these repetitions, without memory. `repeat` is the requested number, `preempted` the number of
/// discarded ones.
pub fn summarise(
    samples: &Samples,
    peers: &Peers,
    repeat: usize,
    preempted: usize,
    machine: Machine,
) -> Measurement {
    let side_us = |side: Side| Sampled::of_ns(&samples.total[side as usize]);
    let unattributed = |side: Side| Sampled::of_ns(&samples.unattributed[side as usize]);
    let bytes_from = |side: Side| median(samples.bytes_from(side).into_iter().map(float));
    let (client_to_server, server_to_client) = (bytes_from(Side::Client), bytes_from(Side::Server));
    let attributed: u64 = samples.total.iter().flatten().sum();
    let (client, server) = (unattributed(Side::Client), unattributed(Side::Server));
    let (attributed_us, cpu_us) = (float(attributed) / 1000.0, float(samples.spent) / 1000.0);
    Measurement {
        suite: peers.id.suite.to_string(),
        client_stack: peers.id.client_stack.clone(),
        server_stack: peers.id.server_stack.clone(),
        carrier: peers.id.carrier,
        credentials: peers.id.credentials.clone(),
        kind: "measured",
        repeat,
        preempted,
        machine,
        clock: recorder::clock_name(),
        counter: peers.counter.unit(),
        handshake: PerSide { client_us: side_us(Side::Client), server_us: side_us(Side::Server) },
        bytes: Bytes { client_to_server, server_to_client, total: client_to_server + server_to_client },
        bytes_vary: samples.bytes_vary(),
        flights: samples.flights(),
        messages: samples.messages.iter().enumerate().map(message).collect(),
        operations: samples.operations.iter().map(operation).collect(),
        unattributed_us: Unattributed {
            client: client.summary.median,
            server: server.summary.median,
            client_mean: client.summary.mean,
            server_mean: server.summary.mean,
            client_samples: client.samples,
            server_samples: server.samples,
        },
        accounting: Accounting { attributed_us, cpu_us, coverage: attributed_us / cpu_us.max(0.001) },
        memory: None,
        seed: peers.seed,
        eap: samples.exchanged(),
    }
}

fn message((index, samples): (usize, &MessageSamples)) -> MessageFigures {
    let (generate, process) = (Sampled::of_ns(&samples.generate), Sampled::of_ns(&samples.process));
    MessageFigures {
        index,
        from: samples.from,
        name: samples.name,
        flight: samples.flight,
        unit: samples.unit,
        retransmissions: samples.retransmissions.iter().copied().max().unwrap_or(0),
        bytes: median(samples.bytes.iter().copied().map(f64::from)),
        generate_us: generate.summary.median,
        process_us: process.summary.median,
        generate_mean_us: generate.summary.mean,
        process_mean_us: process.summary.mean,
        generate_samples_us: generate.samples,
        process_samples_us: process.samples,
    }
}

fn operation(samples: &OperationSamples) -> OperationFigures {
    let time = Sampled::of_ns(&samples.spent);
    OperationFigures {
        side: samples.side,
        message: samples.message,
        operation: samples.primitive.operation,
        algorithm: samples.primitive.algorithm,
        parameters: samples.primitive.parameters,
        class: samples.primitive.operation.class(),
        us: time.summary.median,
        mean_us: time.summary.mean,
        count: median(samples.count.iter().copied().map(f64::from)),
        bytes: median(samples.bytes.iter().copied().map(f64::from)),
        samples_us: time.samples,
    }
}

#[allow(clippy::cast_precision_loss)] // times and bytes of a handshake are far below 2^53
fn float(number: u64) -> f64 {
    number as f64
}

/// The median, rounded to an integer: the median of an even number of values may end in .5.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // readings are small and not negative
fn median(readings: impl Iterator<Item = f64>) -> u64 {
    Summary::of(&readings.collect::<Vec<_>>()).median.round() as u64
}
