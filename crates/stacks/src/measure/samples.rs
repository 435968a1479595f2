//! The samples of every repetition of one handshake.

use super::repetition::Repetition;
use crate::carried::Exchanged;
use shakedown_trace::{AccountingError, MessageName, MessageRecord, Primitive, Side, Trace};
use std::collections::HashMap;

pub struct MessageSamples {
    pub from: Side,
    /// Its RFC name.
    pub name: MessageName,
    /// The number of its flight, from 1; `None` for messages after the handshake.
    pub flight: Option<u32>,
    /// The number of the datagram or write that carries it, from 1 in its direction.
    pub unit: u32,
    /// The number of retransmissions of its datagram.
    pub retransmissions: Vec<u32>,
    pub bytes: Vec<u32>,
    /// The time that its sender spent on it, in the counter's unit.
    pub generate: Vec<u64>,
    pub process: Vec<u64>,
}

/// One operation in every repetition; 0 in those without it, so that means add up.
pub struct OperationSamples {
    pub side: Side,
    /// Index of the message to which it is attributed; `None` outside messages.
    pub message: Option<usize>,
    pub primitive: Primitive,
    /// Its time, in the counter's unit.
    pub spent: Vec<u64>,
    /// The number of calls.
    pub count: Vec<u32>,
    pub bytes: Vec<u32>,
}

/// Repetitions of one handshake: all have the same messages, senders and order.
#[derive(Default)]
pub struct Samples {
    /// In the order of sending.
    pub messages: Vec<MessageSamples>,
    /// The client's, then the server's: those of the first repetition, then those that only later ones have.
    pub operations: Vec<OperationSamples>,
    /// The time of each side's calls: client, server.
    pub total: [Vec<u64>; 2],
    /// The part of `total` that is attributed to no message: client, server.
    pub unattributed: [Vec<u64>; 2],
    /// The thread's CPU time, or the difference of another counter, over all repetitions.
    pub spent: u64,
    exchanged: Vec<Exchanged>,
    /// The index in `operations` of each call.
    places: HashMap<Place, usize>,
}

/// The n-th call of a primitive in a message of a side.
type Place = (Side, Option<usize>, Primitive, usize);

impl Samples {
    pub fn len(&self) -> usize {
        self.total[0].len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a repetition.
    ///
    /// # Errors
    /// [`AccountingError::Shape`] if its messages are not those of the first. Then nothing was added.
    pub fn push(&mut self, repetition: &Repetition) -> Result<(), AccountingError> {
        let trace = &repetition.trace;
        if self.is_empty() {
            self.messages = trace.messages.iter().map(MessageSamples::of).collect();
        }
        self.check_shape(trace)?;
        for (samples, message) in self.messages.iter_mut().zip(&trace.messages) {
            samples.retransmissions.push(message.retransmissions);
            samples.bytes.push(message.bytes);
            samples.generate.push(message.generate);
            samples.process.push(message.process);
        }
        self.push_operations(trace);
        for side in Side::BOTH {
            self.total[side as usize].push(trace.total[side as usize]);
            self.unattributed[side as usize].push(trace.unattributed[side as usize]);
        }
        self.spent += repetition.spent;
        self.exchanged.extend(repetition.exchanged);
        Ok(())
    }

    fn check_shape(&self, trace: &Trace) -> Result<(), AccountingError> {
        let ours = self.messages.iter().map(|message| (message.from, message.name, message.flight));
        let theirs = trace.messages.iter().map(|message| (message.from, message.name, message.flight));
        if ours.clone().eq(theirs.clone()) {
            return Ok(());
        }
        Err(AccountingError::Shape { one: shape(ours), other: shape(theirs) })
    }

    fn push_operations(&mut self, trace: &Trace) {
        let repetitions = self.len();
        let mut seen: HashMap<(Side, Option<usize>, Primitive), usize> = HashMap::new();
        for record in &trace.operations {
            let nth = seen.entry((record.side, record.message, record.primitive)).or_default();
            let place = (record.side, record.message, record.primitive, *nth);
            *nth += 1;
            let index = *self.places.entry(place).or_insert_with(|| {
                self.operations.push(OperationSamples::absent(place, repetitions));
                self.operations.len() - 1
            });
            let samples = &mut self.operations[index];
            samples.spent.push(record.spent);
            samples.count.push(record.count);
            samples.bytes.push(record.bytes);
        }
        for samples in &mut self.operations {
            samples.spent.resize(repetitions + 1, 0);
            samples.count.resize(repetitions + 1, 0);
            samples.bytes.resize(repetitions + 1, 0);
        }
    }

    pub fn flights(&self) -> u32 {
        self.messages.iter().filter_map(|message| message.flight).max().unwrap_or(0)
    }

    /// The round trips, fragments and bytes of EAP in the repetition with the median number of bytes. (DER signatures
    /// vary in length by a byte or two.)
    pub fn exchanged(&self) -> Option<Exchanged> {
        let mut sorted = self.exchanged.clone();
        sorted.sort_by_key(|one| one.eap_bytes);
        sorted.get(sorted.len().saturating_sub(1) / 2).copied()
    }

    /// Bytes that a side sent, in each repetition.
    pub fn bytes_from(&self, side: Side) -> Vec<u64> {
        let mut sums = vec![0; self.len()];
        for message in self.messages.iter().filter(|message| message.from == side) {
            for (sum, bytes) in sums.iter_mut().zip(&message.bytes) {
                *sum += u64::from(*bytes);
            }
        }
        sums
    }

    /// True if the length of a message differs between repetitions, for example because of DER signatures.
    pub fn bytes_vary(&self) -> bool {
        self.messages.iter().any(|message| message.bytes.windows(2).any(|pair| pair[0] != pair[1]))
    }
}

impl MessageSamples {
    fn of(message: &MessageRecord) -> Self {
        Self {
            from: message.from,
            name: message.name,
            flight: message.flight,
            unit: message.unit,
            retransmissions: Vec::new(),
            bytes: Vec::new(),
            generate: Vec::new(),
            process: Vec::new(),
        }
    }
}

impl OperationSamples {
    /// The samples of an operation that no earlier repetition had.
    fn absent((side, message, primitive, _): Place, repetitions: usize) -> Self {
        let (spent, count, bytes) = (vec![0; repetitions], vec![0; repetitions], vec![0; repetitions]);
        Self { side, message, primitive, spent, count, bytes }
    }
}

fn shape(messages: impl Iterator<Item = (Side, MessageName, Option<u32>)>) -> String {
    messages.map(|(from, name, _)| format!("{from}:{name}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use shakedown_trace::{Counter, Operation, OperationRecord};

    fn repetition(name: MessageName, bytes: u32, signs: u64) -> Repetition {
        let primitive = Primitive::new(Operation::Sign, "rsa", "rsa2048");
        let operation = |spent| OperationRecord {
            side: Side::Client,
            message: Some(0),
            primitive,
            spent,
            count: 1,
            bytes: 0,
        };
        let message = MessageRecord {
            from: Side::Client,
            name,
            flight: Some(1),
            unit: 1,
            retransmissions: 0,
            bytes,
            generate: 9,
            process: 4,
        };
        let trace = Trace {
            counter: Counter::NANOSECONDS,
            messages: vec![message],
            operations: (1..=signs).map(operation).collect(),
            total: [10, 5],
            unattributed: [1, 1],
        };
        Repetition { trace, spent: 16, preempted: false, exchanged: None }
    }

    #[test]
    fn repetitions_are_kept_and_missing_operations_count_as_zero() {
        let mut samples = Samples::default();
        for (bytes, signs) in [(100, 1), (100, 2), (101, 0)] {
            samples.push(&repetition(MessageName::ClientHello, bytes, signs)).expect("of one shape");
        }
        assert_eq!(samples.len(), 3);
        assert_eq!(samples.messages[0].bytes, [100, 100, 101]);
        assert_eq!(samples.total[0], [10, 10, 10]);
        assert_eq!(samples.bytes_from(Side::Client), [100, 100, 101]);
        assert!(samples.bytes_vary());
        let spent: Vec<_> = samples.operations.iter().map(|operation| operation.spent.clone()).collect();
        assert_eq!(spent, [[1, 1, 0], [0, 2, 0]]);
        assert_eq!(samples.operations[1].count, [0, 1, 0]);
    }

    #[test]
    fn repetitions_with_other_messages_are_refused() {
        let mut samples = Samples::default();
        samples.push(&repetition(MessageName::ClientHello, 1, 0)).expect("the first");
        let error = samples.push(&repetition(MessageName::Finished, 1, 0));
        assert!(matches!(error, Err(AccountingError::Shape { .. })), "{error:?}");
        assert_eq!(samples.len(), 1);
        assert_eq!(samples.messages[0].bytes, [1]);
    }
}
