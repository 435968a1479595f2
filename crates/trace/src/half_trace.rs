//! One side's messages, operations and times, computed from its event log.
//!
//! A side's time is the duration of its calls. Boundaries cut this time into *spans*. A span is attributed to the
//! message that was sent or received in it, its *owner*. A span without an owner is added to the next span of the call.
//! The time after the last message of a call is unattributed. An operation is attributed to the owner of its span. By
//! construction:
//!
//! - messages and unattributed time add up to the side's time exactly;
//! - the operations of a message never exceed it.

use crate::recorder::{Event, Ticks, UNSIZED};
use crate::recording::{Counter, Recorded, Recording};
use crate::{Endpoint, MessageName, Primitive, Side};
use std::collections::VecDeque;

/// A message, as one side observed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HalfMessage {
    pub from: Side,
    /// Its RFC name.
    pub name: MessageName,
    /// Bytes on the wire, including record headers, padding, and MAC or tag.
    pub bytes: u32,
    /// The number of the datagram, write or chunk that carried its first byte (of a received message: its last byte),
    /// counted from 1 in each direction.
    pub unit: u32,
    /// The number of times that this side retransmitted the datagram.
    pub retransmissions: u32,
    /// The time that this side spent on the message, in the counter's unit.
    pub spent: u64,
    /// The time between this side's calls before the message arrived, in the counter's unit: the work of the peer, the
    /// path and the system, and other work of the thread. 0 for a sent message.
    pub waited: u64,
}

/// One public-key call, or the sum of one kind of symmetric work in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationRecord {
    pub side: Side,
    /// Index of the message to which it is attributed; `None` outside messages.
    pub message: Option<usize>,
    pub primitive: Primitive,
    /// Its time, in the counter's unit.
    pub spent: u64,
    /// The number of calls; 1 for a public-key call.
    pub count: u32,
    /// Processed bytes; 0 for public-key calls.
    pub bytes: u32,
}

/// One side of one connection: everything that this side can observe alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HalfTrace {
    pub side: Side,
    pub counter: Counter,
    /// Sent and received messages, in the order in which this side processed them.
    pub messages: Vec<HalfMessage>,
    /// In the order of time; symmetric work is merged for each message and algorithm.
    pub operations: Vec<OperationRecord>,
    /// The time of all calls, in the counter's unit.
    pub total: u64,
    /// The part of `total` that is attributed to no message.
    pub unattributed: u64,
    /// Number of datagrams or writes that it sent.
    pub units_sent: u32,
    /// Number of datagrams or chunks that it received.
    pub units_received: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccountingError {
    #[error("the {side} adjusted the bytes of a message before the first")]
    NothingToAdjust { side: Side },
    #[error("the {side} received a {name} that its peer never sent")]
    NeverSent { side: Side, name: MessageName },
    #[error("two halves of one handshake count {client} and {server}")]
    Counters { client: &'static str, server: &'static str },
    #[error("both halves are the {side}'s")]
    OneSide { side: Side },
    #[error("repetitions differ in shape: {one}, and {other}")]
    Shape { one: String, other: String },
}

impl<E: Endpoint> Recorded<E> {
    /// The half trace of its log.
    pub fn half_trace(&self) -> Result<HalfTrace, AccountingError> {
        HalfTrace::of(self.inner.side(), &self.recording)
    }
}

impl HalfTrace {
    /// Computes the half trace of `side` from its recording.
    pub fn of(side: Side, recording: &Recording) -> Result<Self, AccountingError> {
        let mut account = Account::new(side, recording.counter());
        for event in recording.events() {
            account.enter(event)?;
        }
        Ok(account.half)
    }

    /// The half trace of a side whose driver delayed the output of each call, so that the call lasted `factor` times as
    /// long. Calls become longer, and the times between them become shorter by the same amount.
    pub fn stretched(side: Side, recording: &Recording, factor: f64) -> Result<Self, AccountingError> {
        Self::of(side, &recording.with(stretched(recording.events(), factor)))
    }
}

/// The events with new times: calls last `factor` times as long, and the times between them are shorter by the same
/// amount.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // of a call's ticks
fn stretched(events: &[Event], factor: f64) -> Vec<Event> {
    // The start of the current call, in the old and in the new times; the end of the last call in the new times.
    let (mut entered, mut begun, mut left) = (0, 0, 0);
    let mut stretched = Vec::with_capacity(events.len());
    for event in events {
        if let Event::Enter(at) = *event {
            (entered, begun) = (at, at.max(left));
        }
        let now = |at: Ticks| begun + (at.saturating_sub(entered) as f64 * factor).round() as Ticks;
        stretched.push(match *event {
            Event::Enter(_) => Event::Enter(begun),
            Event::Leave(at) => {
                left = now(at);
                Event::Leave(left)
            }
            Event::Boundary(at) => Event::Boundary(now(at)),
            Event::Sent(name, bytes, at) => Event::Sent(name, bytes, now(at)),
            Event::Received(name, bytes, at) => Event::Received(name, bytes, now(at)),
            Event::AttributeToPrevious(at) => Event::AttributeToPrevious(now(at)),
            Event::Operation { primitive, start, end, bytes, counts } => {
                Event::Operation { primitive, start: now(start), end: now(end), bytes, counts }
            }
            other @ (Event::AdjustReceived(_)
            | Event::SizeSent(_)
            | Event::UnitSent(..)
            | Event::UnitReceived(_)) => other,
        });
    }
    stretched
}

/// The computation of a half trace. Owners are indices of `half.messages`.
struct Account {
    half: HalfTrace,
    /// The end of the latest call; `None` before the first.
    left: Option<u64>,
    /// Time between calls since the latest received message.
    waited: u64,
    /// The start of the current call.
    entered: u64,
    /// The start of the current span.
    since: u64,
    owner: Option<usize>,
    /// The owner before `owner`.
    previous: Option<usize>,
    /// Operations of the current span, which are not merged yet.
    pending: Vec<OperationRecord>,
    latest_received: Option<usize>,
    /// Sent messages with bytes that are not in a sent unit yet, and the number of these bytes.
    unsent: VecDeque<(usize, u32)>,
    fingerprints: Vec<u64>,
}

impl Account {
    fn new(side: Side, counter: Counter) -> Self {
        let half = HalfTrace {
            side,
            counter,
            messages: Vec::new(),
            operations: Vec::new(),
            total: 0,
            unattributed: 0,
            units_sent: 0,
            units_received: 0,
        };
        Self {
            half,
            left: None,
            waited: 0,
            entered: 0,
            since: 0,
            owner: None,
            previous: None,
            pending: Vec::new(),
            latest_received: None,
            unsent: VecDeque::new(),
            fingerprints: Vec::new(),
        }
    }

    fn enter(&mut self, event: &Event) -> Result<(), AccountingError> {
        let side = self.half.side;
        match *event {
            Event::Enter(at) => {
                self.entered = self.at(at);
                self.since = self.entered;
                self.waited += self.left.map_or(0, |left| self.entered.saturating_sub(left));
            }
            Event::Leave(at) => {
                let at = self.at(at);
                self.close(at, true);
                self.half.total += at - self.entered;
                self.left = Some(at);
            }
            Event::Boundary(at) => self.close(self.at(at), false),
            Event::Sent(name, bytes, at) => {
                let place = self.message(side, name, bytes, at);
                self.unsent.push_back((place, bytes));
            }
            Event::Received(name, bytes, at) => {
                let place = self.message(side.peer(), name, bytes, at);
                self.half.messages[place].unit = self.half.units_received;
                self.half.messages[place].waited = std::mem::take(&mut self.waited);
                self.latest_received = Some(place);
            }
            Event::AdjustReceived(difference) => {
                let place = self.latest_received.ok_or(AccountingError::NothingToAdjust { side })?;
                let message = &mut self.half.messages[place];
                message.bytes = message.bytes.saturating_add_signed(difference);
            }
            Event::SizeSent(bytes) => {
                let messages = &mut self.half.messages;
                let unsized_yet = |(place, _): &&mut (usize, u32)| messages[*place].bytes == UNSIZED;
                let (place, left) = self
                    .unsent
                    .iter_mut()
                    .find(unsized_yet)
                    .ok_or(AccountingError::NothingToAdjust { side })?;
                messages[*place].bytes = bytes;
                *left = bytes;
            }
            Event::AttributeToPrevious(at) => {
                let earlier = self.previous;
                self.close(self.at(at), false);
                self.owner = earlier;
            }
            Event::UnitSent(bytes, fingerprint) => self.unit_sent(bytes, fingerprint),
            Event::UnitReceived(_) => self.half.units_received += 1,
            Event::Operation { primitive, start, end, bytes, counts } => {
                let spent = self.at(end) - self.at(start);
                let count = u32::from(counts);
                let primitive = *primitive;
                self.pending.push(OperationRecord { side, message: None, primitive, spent, count, bytes });
            }
        }
        Ok(())
    }

    /// Converts each reading separately, so that differences still add up.
    fn at(&self, ticks: Ticks) -> u64 {
        self.half.counter.convert(ticks)
    }

    /// Adds a message, which becomes the owner of the span. Returns its index.
    fn message(&mut self, from: Side, name: MessageName, bytes: u32, at: Ticks) -> usize {
        if self.owner.is_some() {
            self.close(self.at(at), false);
        }
        let place = self.half.messages.len();
        let message = HalfMessage { from, name, bytes, unit: 0, retransmissions: 0, spent: 0, waited: 0 };
        self.half.messages.push(message);
        self.owner = Some(place);
        place
    }

    /// Ends the current span. Without an owner it continues as the next span, unless the call returns.
    fn close(&mut self, at: u64, last: bool) {
        if self.owner.is_none() && !last {
            return;
        }
        let length = at - self.since;
        match self.owner {
            None => self.half.unattributed += length,
            Some(place) => {
                self.half.messages[place].spent += length;
                self.previous = Some(place);
            }
        }
        for mut operation in self.pending.drain(..) {
            operation.message = self.owner;
            merge(&mut self.half.operations, operation);
        }
        self.since = at;
        self.owner = None;
    }

    /// Finds the messages whose bytes a unit carries. A unit without new messages repeats an earlier datagram, or
    /// contains an alert or application data.
    fn unit_sent(&mut self, bytes: u32, fingerprint: u64) {
        self.half.units_sent += 1;
        let unit = self.half.units_sent;
        self.fingerprints.push(fingerprint);
        let mut room = bytes;
        if self.unsent.is_empty() {
            self.sent_again(fingerprint);
        }
        while let Some((place, left)) = self.unsent.front_mut() {
            let taken = room.min(*left);
            *left -= taken;
            room -= taken;
            let message = &mut self.half.messages[*place];
            if message.unit == 0 {
                message.unit = unit;
            }
            if *left > 0 {
                break;
            }
            self.unsent.pop_front();
            if room == 0 {
                break;
            }
        }
    }

    fn sent_again(&mut self, fingerprint: u64) {
        let earlier = &self.fingerprints[..self.fingerprints.len() - 1];
        if fingerprint == 0 {
            return;
        }
        let Some(unit) = earlier.iter().position(|known| *known == fingerprint) else { return };
        let unit = u32::try_from(unit + 1).unwrap_or(u32::MAX);
        let side = self.half.side;
        for message in &mut self.half.messages {
            if message.from == side && message.unit == unit {
                message.retransmissions += 1;
            }
        }
    }
}

fn merge(operations: &mut Vec<OperationRecord>, record: OperationRecord) {
    // A public-key call has its own record. Work that only prepares one (checking the key that was just read) is added
    // to the latest record of its kind.
    let joins = record.primitive.operation.is_symmetric() || record.count == 0;
    let same = |known: &&mut OperationRecord| {
        joins && known.primitive == record.primitive && known.message == record.message
    };
    if let Some(known) = operations.iter_mut().rev().find(same) {
        known.spent += record.spent;
        known.count += record.count;
        known.bytes += record.bytes;
    } else {
        operations.push(record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Operation;
    use proptest::prelude::*;

    /// A recording of readings that need no conversion.
    fn recording(events: &[Event]) -> Recording {
        Recording::new(Counter::custom("steps", || 0)).with(events.to_vec())
    }

    fn half(events: &[Event]) -> HalfTrace {
        HalfTrace::of(Side::Client, &recording(events)).expect("events are consistent")
    }

    fn operation(start: Ticks, end: Ticks) -> Event {
        let primitive = Primitive::new(Operation::Sign, "rsa", "rsa2048").interned();
        Event::Operation { primitive, start, end, bytes: 0, counts: true }
    }

    #[test]
    fn unattributed_spans_are_added_to_the_next_message() {
        let half = half(&[
            Event::Enter(0),
            Event::Boundary(5),
            operation(6, 9),
            Event::Sent(MessageName::ClientHello, 100, 10),
            Event::Boundary(12),
            operation(13, 14),
            Event::Leave(15),
            Event::UnitReceived(90),
            Event::Enter(20),
            Event::Boundary(21),
            Event::Received(MessageName::ServerHello, 90, 25),
            Event::Leave(30),
        ]);
        assert_eq!((half.total, half.unattributed), (25, 3));
        assert_eq!(half.messages[0].spent, 12);
        assert_eq!(half.messages[1].spent, 10);
        assert_eq!((half.messages[1].from, half.messages[1].unit), (Side::Server, 1));
        assert_eq!(half.operations[0].message, Some(0));
        assert_eq!(half.operations[1].message, None);
    }

    /// A client that sends, waits 5 and then 15, and receives two messages in its third call.
    const WAITING: [Event; 12] = [
        Event::Enter(100),
        Event::Sent(MessageName::ClientHello, 100, 110),
        Event::Leave(110),
        Event::UnitReceived(50),
        Event::Enter(115),
        Event::Leave(116),
        Event::UnitReceived(50),
        Event::Enter(131),
        Event::Received(MessageName::ServerHello, 60, 132),
        Event::Boundary(140),
        Event::Received(MessageName::Finished, 40, 141),
        Event::Leave(151),
    ];

    #[test]
    fn time_between_calls_is_the_wait_of_the_next_message() {
        let half = half(&WAITING);
        let found: Vec<_> = half.messages.iter().map(|message| (message.spent, message.waited)).collect();
        assert_eq!(found, [(10, 0), (9, 20), (11, 0)]);
        // All time from the first call to the last is accounted for.
        let waited: u64 = half.messages.iter().map(|message| message.waited).sum();
        assert_eq!(half.total + waited, 51);
    }

    #[test]
    fn slowed_side_works_longer_and_waits_less() {
        let events = stretched(&WAITING, 2.0);
        let half = half(&events);
        let found: Vec<_> = half.messages.iter().map(|message| (message.spent, message.waited)).collect();
        // The first call ends at 120, after the first chunk arrived; so the second runs from 120 to 122.
        assert_eq!(found, [(20, 0), (18, 9), (22, 0)]);
        assert_eq!(half.total, 2 * 31);
        assert_eq!(stretched(&WAITING, 1.0), WAITING);
    }

    #[test]
    fn attribute_to_previous_adds_work_to_the_previous_message() {
        let half = half(&[
            Event::Enter(0),
            Event::Sent(MessageName::ServerHello, 90, 10),
            Event::Boundary(11),
            Event::Sent(MessageName::ChangeCipherSpec, 6, 15),
            Event::AttributeToPrevious(16),
            operation(17, 27),
            Event::Boundary(30),
            Event::Leave(30),
        ]);
        assert_eq!(half.messages[0].spent, 11 + 14);
        assert_eq!(half.messages[1].spent, 5);
        assert_eq!(half.operations[0].message, Some(0));
    }

    #[test]
    fn messages_are_assigned_to_units_by_byte_count() {
        let half = half(&[
            Event::Enter(0),
            Event::Sent(MessageName::ServerHello, 90, 1),
            Event::Sent(MessageName::Certificate, 200, 2),
            Event::Sent(MessageName::ServerHelloDone, UNSIZED, 3),
            Event::SizeSent(10),
            Event::Leave(4),
            // The second message is fragmented.
            Event::UnitSent(150, 7),
            Event::UnitSent(150, 8),
            // The first unit again, then something else.
            Event::UnitSent(150, 7),
            Event::UnitSent(20, 9),
        ]);
        let units: Vec<_> = half.messages.iter().map(|m| (m.unit, m.bytes, m.retransmissions)).collect();
        assert_eq!(units, [(1, 90, 1), (1, 200, 1), (2, 10, 0)]);
        assert_eq!(half.units_sent, 4);
    }

    #[test]
    fn adjusting_bytes_without_a_message_is_an_error() {
        let error = HalfTrace::of(Side::Client, &recording(&[Event::AdjustReceived(1)]));
        assert_eq!(error, Err(AccountingError::NothingToAdjust { side: Side::Client }));
    }

    proptest! {
        /// For any events in a call, messages and unattributed time add up to the call's time.
        #[test]
        fn messages_and_unattributed_time_add_up_to_the_call(
            kinds in prop::collection::vec(0_u8..5, 0..40),
            gaps in prop::collection::vec(0_u64..50, 41),
        ) {
            let mut at = 0;
            let mut events = vec![Event::Enter(at)];
            for (kind, gap) in kinds.iter().zip(&gaps) {
                let start = at;
                at += gap;
                events.push(match kind {
                    0 => Event::Boundary(at),
                    1 => Event::Sent(MessageName::Certificate, 1, at),
                    2 => Event::Received(MessageName::Certificate, 1, at),
                    3 => Event::AttributeToPrevious(at),
                    _ => operation(start, at),
                });
            }
            events.push(Event::Leave(at + 7));
            let half = half(&events);
            let messages: u64 = half.messages.iter().map(|message| message.spent).sum();
            prop_assert_eq!(messages + half.unattributed, half.total);
            for (index, message) in half.messages.iter().enumerate() {
                let inside = half.operations.iter().filter(|operation| operation.message == Some(index));
                prop_assert!(inside.map(|operation| operation.spent).sum::<u64>() <= message.spent);
            }
        }
    }
}
