//! The figures of a suite, in the shape that is printed and stored.

use super::repetition::Repetition;
use super::{MeasureError, Summary};
use crate::machine::Machine;
use crate::memory::Memory;
use serde::Serialize;
use shakedown_trace::ledger::OperationRecord;
use shakedown_trace::{Class, MessageName, Operation, Primitive, Side, Suite, Trace, recorder};
use std::collections::HashMap;

/// What a suite costs here.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    /// Canonical name.
    pub suite: String,
    /// Which implementation ran it.
    pub stack: StackName,
    /// How the figures were obtained: `measured`.
    pub kind: &'static str,
    /// Repetitions asked for.
    pub repeat: usize,
    /// Repetitions that were set aside because something else took the processor.
    pub preempted: usize,
    /// Where.
    pub machine: Machine,
    /// Which clock the marks come from.
    pub clock: &'static str,
    /// Marked time of each side, in microseconds.
    pub handshake: PerSide<Summary>,
    /// On the wire.
    pub bytes: Bytes,
    /// Runs of messages of one sender.
    pub flights: u32,
    /// In the order in which they were sent.
    pub messages: Vec<MessageFigures>,
    /// Public-key calls one by one; symmetric work per side, message and algorithm.
    pub operations: Vec<OperationFigures>,
    /// Median of each side's time outside any message, in microseconds.
    pub remainder_us: Remainder,
    /// Marked time against the CPU clock, over all repetitions used.
    pub books: Books,
    /// Bytes that one connection holds; missing where this process can't count OpenSSL's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
}

/// A stack's name and version.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)] // the names say it
pub struct StackName {
    pub name: &'static str,
    pub version: String,
}

/// One figure for each side.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)] // the names say it
pub struct PerSide<T> {
    pub client_us: T,
    pub server_us: T,
}

/// Time outside any message, in microseconds.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)] // the names say it
pub struct Remainder {
    pub client: f64,
    pub server: f64,
    pub client_mean: f64,
    pub server_mean: f64,
}

/// Bytes on the wire: medians, for a signature's DER encoding varies.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)] // the names say it
pub struct Bytes {
    pub client_to_server: u64,
    pub server_to_client: u64,
    pub total: u64,
}

/// One message.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)] // the names say it
pub struct MessageFigures {
    pub index: usize,
    pub from: Side,
    pub name: MessageName,
    pub flight: Option<u32>,
    pub bytes: u64,
    pub generate_us: f64,
    pub process_us: f64,
    pub generate_mean_us: f64,
    pub process_mean_us: f64,
}

/// One operation.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)] // the names say it
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
}

/// Two clocks over the same repetitions.
#[derive(Clone, Debug, Serialize)]
pub struct Books {
    /// Both sides' marked time, summed, in microseconds.
    pub marked_us: f64,
    /// The thread CPU clock, read once around each repetition, summed, in microseconds.
    pub cpu_us: f64,
    /// The first over the second.
    pub ratio: f64,
}

/// Where an operation belongs: the n-th call of a primitive in a message of a side.
type Place = (Side, Option<usize>, Primitive, usize);

pub fn summarise(
    suite: &Suite,
    repeat: usize,
    preempted: usize,
    machine: Machine,
    (name, version): (&'static str, String),
    repetitions: &[Repetition],
) -> Result<Measurement, MeasureError> {
    let traces: Vec<&Trace> = repetitions.iter().map(|repetition| &repetition.trace).collect();
    let shape = shape(traces[0]);
    if let Some(other) = traces.iter().map(|trace| self::shape(trace)).find(|other| *other != shape) {
        let difference = format!("{shape} and {other}");
        return Err(MeasureError::Shape { suite: suite.to_string(), difference });
    }
    let side_us = |side: Side| summary(&traces, |trace| us(trace.marked_ns[side as usize]));
    let remainder = |side: Side| summary(&traces, |trace| us(trace.remainder_ns[side as usize]));
    let bytes_from = |side: Side| whole(summary(&traces, |trace| float(trace.bytes_from(side))).median);
    let (client_to_server, server_to_client) = (bytes_from(Side::Client), bytes_from(Side::Server));
    let marked: u64 = traces.iter().flat_map(|trace| trace.marked_ns).sum();
    let cpu: u64 = repetitions.iter().map(|repetition| repetition.cpu_ns).sum();
    let (client, server) = (remainder(Side::Client), remainder(Side::Server));
    Ok(Measurement {
        suite: suite.to_string(),
        stack: StackName { name, version },
        kind: "measured",
        repeat,
        preempted,
        machine,
        clock: recorder::clock_name(),
        handshake: PerSide { client_us: side_us(Side::Client), server_us: side_us(Side::Server) },
        bytes: Bytes { client_to_server, server_to_client, total: client_to_server + server_to_client },
        flights: traces[0].flights(),
        messages: messages(&traces),
        operations: operations(&traces),
        remainder_us: Remainder {
            client: client.median,
            server: server.median,
            client_mean: client.mean,
            server_mean: server.mean,
        },
        memory: None,
        books: Books { marked_us: us(marked), cpu_us: us(cpu), ratio: us(marked) / us(cpu.max(1)) },
    })
}

/// What must be the same in every repetition: who sent which message in which flight.
fn shape(trace: &Trace) -> String {
    let message = |record: &shakedown_trace::MessageRecord| format!("{}:{}", record.from, record.name);
    trace.messages.iter().map(message).collect::<Vec<_>>().join(" ")
}

fn messages(traces: &[&Trace]) -> Vec<MessageFigures> {
    let figures = |(index, first): (usize, &shakedown_trace::MessageRecord)| {
        let of = |reading: fn(&shakedown_trace::MessageRecord) -> f64| {
            summary(traces, |trace| reading(&trace.messages[index]))
        };
        let generate = of(|record| us(record.generate_ns));
        let process = of(|record| us(record.process_ns));
        MessageFigures {
            index,
            from: first.from,
            name: first.name,
            flight: first.flight,
            bytes: whole(of(|record| f64::from(record.bytes)).median),
            generate_us: generate.median,
            process_us: process.median,
            generate_mean_us: generate.mean,
            process_mean_us: process.mean,
        }
    };
    traces[0].messages.iter().enumerate().map(figures).collect()
}

/// Operations that some repetitions have and others do not count as 0 where they are missing, so that means
/// add up.
fn operations(traces: &[&Trace]) -> Vec<OperationFigures> {
    let mut order: Vec<Place> = Vec::new();
    let mut readings: HashMap<Place, Vec<&OperationRecord>> = HashMap::new();
    for trace in traces {
        let mut seen: HashMap<(Side, Option<usize>, Primitive), usize> = HashMap::new();
        for record in &trace.operations {
            let nth = seen.entry((record.side, record.message, record.primitive)).or_default();
            let place = (record.side, record.message, record.primitive, *nth);
            *nth += 1;
            let list = readings.entry(place).or_insert_with(|| {
                order.push(place);
                Vec::with_capacity(traces.len())
            });
            list.push(record);
        }
    }
    let figures = |place: &Place| {
        let (side, message, primitive, _) = *place;
        let records = &readings[place];
        let padded = |reading: fn(&OperationRecord) -> f64| {
            let missing = std::iter::repeat_n(0.0, traces.len() - records.len());
            Summary::of(&records.iter().map(|record| reading(record)).chain(missing).collect::<Vec<_>>())
        };
        let time = padded(|record| us(record.ns));
        OperationFigures {
            side,
            message,
            operation: primitive.operation,
            algorithm: primitive.algorithm,
            parameters: primitive.parameters,
            class: primitive.operation.class(),
            us: time.median,
            mean_us: time.mean,
            count: whole(padded(|record| f64::from(record.count)).median),
            bytes: whole(padded(|record| f64::from(record.bytes)).median),
        }
    };
    order.iter().map(figures).collect()
}

fn summary(traces: &[&Trace], reading: impl Fn(&Trace) -> f64) -> Summary {
    Summary::of(&traces.iter().map(|trace| reading(trace)).collect::<Vec<_>>())
}

fn us(ns: u64) -> f64 {
    float(ns) / 1000.0
}

#[allow(clippy::cast_precision_loss)] // times and bytes of a handshake are far below 2^53
fn float(number: u64) -> f64 {
    number as f64
}

/// The nearest whole number; medians of even counts may lie half way.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // readings are small and not negative
fn whole(number: f64) -> u64 {
    number.round() as u64
}
