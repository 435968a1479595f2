//! From a tape to a trace whose books balance.
//!
//! A side's marked time (between `Enter` and `Leave`) is cut into *stretches* at boundaries. A stretch in which
//! a message was sent or received belongs to that message; one that ends without an owner flows into the
//! next, and what is left when the side stops working lies outside any message. Operations are booked to the
//! message that owns their stretch. By construction, per side:
//!
//! - messages plus remainder equal the marked time exactly;
//! - the operations of a message never exceed it.

use crate::recorder::{Event, Tape, Ticks};
use crate::{MessageName, Operation, Primitive, Side};

/// One message of a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageRecord {
    /// Who sent it.
    pub from: Side,
    /// Its RFC name.
    pub name: MessageName,
    /// Which run of messages of one sender it belongs to, from 1; `None` for tickets that TLS 1.3 sends after
    /// its handshake is over.
    pub flight: Option<u32>,
    /// On the wire: record headers, padding, MAC or tag included.
    pub bytes: u32,
    /// Nanoseconds its sender spent on it.
    pub generate_ns: u64,
    /// Nanoseconds its receiver spent on it.
    pub process_ns: u64,
}

/// One public-key call, or the sum of one kind of symmetric work in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationRecord {
    /// Who did it.
    pub side: Side,
    /// Index of the message it was done for; `None` for work outside any.
    pub message: Option<usize>,
    /// What was done.
    pub primitive: Primitive,
    /// Nanoseconds.
    pub ns: u64,
    /// How often; 1 for a public-key call.
    pub count: u32,
    /// Bytes worked on; 0 for public-key calls.
    pub bytes: u32,
}

/// The record of one handshake.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// In the order in which they were sent.
    pub messages: Vec<MessageRecord>,
    /// In the order of time; symmetric work merged per side, message and algorithm.
    pub operations: Vec<OperationRecord>,
    /// Nanoseconds each side had the processor: client, server.
    pub marked_ns: [u64; 2],
    /// Of these, nanoseconds outside any message: client, server.
    pub remainder_ns: [u64; 2],
}

/// What is wrong with a tape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // the messages say it
pub enum LedgerError {
    #[error("the tape marks {what} while no side is working")]
    OutsideStep { what: &'static str },
    #[error("the tape has {side} start working while {working} still is")]
    NestedStep { side: Side, working: Side },
    #[error("{side} received a {name} that its peer never sent")]
    NeverSent { side: Side, name: MessageName },
}

/// What a stretch has been found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Nobody,
    Generating(usize),
    Processing(usize),
}

/// Work done for one message by one side.
#[derive(Clone, Debug)]
struct Work {
    name: MessageName,
    bytes: u32,
    ns: u64,
}

#[derive(Default)]
struct SideBook {
    sent: Vec<Work>,
    received: Vec<Work>,
    marked: u64,
    remainder: u64,
    /// Operations with the owner of their stretch.
    operations: Vec<(Owner, OperationRecord)>,
}

struct Step {
    side: Side,
    /// Where the current stretch began.
    since: Ticks,
    entered: Ticks,
    owner: Owner,
    /// The message owned before `owner`'s.
    previous: Owner,
    /// First operation of the current stretch in the side's list.
    first_operation: usize,
}

impl Trace {
    /// Works a tape out.
    ///
    /// # Errors
    /// A [`LedgerError`] where the marks contradict each other: a defect of the stack that made them.
    pub fn from_tape(tape: &Tape) -> Result<Self, LedgerError> {
        let mut books = [SideBook::default(), SideBook::default()];
        // Who sent the n-th message, and which of its own it was.
        let mut order: Vec<(Side, usize)> = Vec::new();
        let mut previous = [Owner::Nobody; 2];
        let mut step: Option<Step> = None;
        for event in &tape.events {
            if let Event::Enter(side, at) = *event {
                if let Some(working) = &step {
                    return Err(LedgerError::NestedStep { side, working: working.side });
                }
                step = Some(Step {
                    side,
                    since: at,
                    entered: at,
                    owner: Owner::Nobody,
                    previous: previous[side as usize],
                    first_operation: books[side as usize].operations.len(),
                });
                continue;
            }
            let Some(current) = &mut step else {
                // A primitive that ran for neither side (set-up between steps) is nobody's cost.
                if matches!(event, Event::Operation { .. }) {
                    continue;
                }
                return Err(LedgerError::OutsideStep { what: mark_name(event) });
            };
            let book = &mut books[current.side as usize];
            match *event {
                Event::Leave(side, at) => {
                    current.close(book, at, true);
                    book.marked += at - current.entered;
                    previous[side as usize] = current.previous;
                    step = None;
                }
                Event::Boundary(at) => current.close(book, at, false),
                Event::Sent(name, bytes, at) => {
                    if current.owner != Owner::Nobody {
                        current.close(book, at, false);
                    }
                    current.owner = Owner::Generating(book.sent.len());
                    order.push((current.side, book.sent.len()));
                    book.sent.push(Work { name, bytes, ns: 0 });
                }
                Event::Received(name, at) => {
                    if current.owner != Owner::Nobody {
                        current.close(book, at, false);
                    }
                    current.owner = Owner::Processing(book.received.len());
                    book.received.push(Work { name, bytes: 0, ns: 0 });
                }
                Event::CarryOn(at) => {
                    let earlier = current.previous;
                    current.close(book, at, false);
                    current.owner = earlier;
                }
                Event::Operation { primitive, start, end, bytes, counts } => {
                    let record = OperationRecord {
                        side: current.side,
                        message: None,
                        primitive,
                        ns: end - start,
                        count: u32::from(counts),
                        bytes,
                    };
                    book.operations.push((Owner::Nobody, record));
                }
                Event::Enter(..) => {}
            }
        }
        assemble(books, &order)
    }

    /// Bytes that a side sent.
    #[must_use]
    pub fn bytes_from(&self, side: Side) -> u64 {
        self.messages
            .iter()
            .filter(|message| message.from == side)
            .map(|message| u64::from(message.bytes))
            .sum()
    }

    /// Number of flights.
    #[must_use]
    pub fn flights(&self) -> u32 {
        self.messages.iter().filter_map(|message| message.flight).max().unwrap_or(0)
    }
}

impl Step {
    /// Ends the current stretch. Without an owner it flows into the next, unless the side stops.
    fn close(&mut self, book: &mut SideBook, at: Ticks, last: bool) {
        if self.owner == Owner::Nobody && !last {
            return;
        }
        let length = at - self.since;
        match self.owner {
            Owner::Nobody => book.remainder += length,
            Owner::Generating(index) => book.sent[index].ns += length,
            Owner::Processing(index) => book.received[index].ns += length,
        }
        for operation in &mut book.operations[self.first_operation..] {
            operation.0 = self.owner;
        }
        if self.owner != Owner::Nobody {
            self.previous = self.owner;
        }
        self.first_operation = book.operations.len();
        self.since = at;
        self.owner = Owner::Nobody;
    }
}

fn mark_name(event: &Event) -> &'static str {
    match event {
        Event::Enter(..) => "Enter",
        Event::Leave(..) => "Leave",
        Event::Boundary(_) => "Boundary",
        Event::Sent(..) => "Sent",
        Event::Received(..) => "Received",
        Event::CarryOn(_) => "CarryOn",
        Event::Operation { .. } => "Operation",
    }
}

/// Joins what the two sides did for each message, and numbers the flights.
fn assemble(books: [SideBook; 2], order: &[(Side, usize)]) -> Result<Trace, LedgerError> {
    let mut trace = Trace {
        marked_ns: [books[0].marked, books[1].marked],
        remainder_ns: [books[0].remainder, books[1].remainder],
        ..Trace::default()
    };
    // For each side, where its n-th sent message stands in the trace.
    let mut sent_at: [Vec<usize>; 2] = [Vec::new(), Vec::new()];
    let mut flight = 0;
    let mut last_sender = None;
    let mut finished = [false; 2];
    for &(side, index) in order {
        let work = &books[side as usize].sent[index];
        let after_the_end = work.name == MessageName::NewSessionTicket && finished == [true; 2];
        if !after_the_end && last_sender != Some(side) {
            flight += 1;
            last_sender = Some(side);
        }
        finished[side as usize] |= work.name == MessageName::Finished;
        sent_at[side as usize].push(trace.messages.len());
        trace.messages.push(MessageRecord {
            from: side,
            name: work.name,
            flight: (!after_the_end).then_some(flight),
            bytes: work.bytes,
            generate_ns: work.ns,
            process_ns: 0,
        });
    }
    let mut received_at: [Vec<usize>; 2] = [Vec::new(), Vec::new()];
    for side in [Side::Client, Side::Server] {
        let mut candidates = sent_at[side.peer() as usize].iter().copied();
        for work in &books[side as usize].received {
            // The peer's messages arrive in order; one that left no mark of processing cost nothing.
            let position = candidates.find(|&position| trace.messages[position].name == work.name);
            let position = position.ok_or(LedgerError::NeverSent { side, name: work.name })?;
            trace.messages[position].process_ns += work.ns;
            received_at[side as usize].push(position);
        }
    }
    for (book, side) in books.into_iter().zip([Side::Client, Side::Server]) {
        let mut merged: Vec<OperationRecord> = Vec::new();
        for (owner, mut record) in book.operations {
            record.message = match owner {
                Owner::Nobody => None,
                Owner::Generating(index) => Some(sent_at[side as usize][index]),
                Owner::Processing(index) => Some(received_at[side as usize][index]),
            };
            merge(&mut merged, record);
        }
        trace.operations.append(&mut merged);
    }
    Ok(trace)
}

fn merge(operations: &mut Vec<OperationRecord>, record: OperationRecord) {
    // A public-key call stands by itself; what is only work towards one (checking the key that was just read)
    // joins the latest of its kind.
    let joins = record.primitive.operation.is_symmetric() || record.count == 0;
    let same = |known: &&mut OperationRecord| {
        joins && known.primitive == record.primitive && known.message == record.message
    };
    if let Some(known) = operations.iter_mut().rev().find(same) {
        known.ns += record.ns;
        known.count += record.count;
        known.bytes += record.bytes;
    } else {
        operations.push(record);
    }
}

/// Sum of a side's operations of one kind; for tests and predictions.
#[must_use]
pub fn count_operations(trace: &Trace, side: Side, operation: Operation) -> usize {
    trace
        .operations
        .iter()
        .filter(|record| record.side == side && record.primitive.operation == operation)
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn operation(start: Ticks, end: Ticks) -> Event {
        let primitive = Primitive::new(Operation::Sign, "rsa", "rsa2048");
        Event::Operation { primitive, start, end, bytes: 0, counts: true }
    }

    #[test]
    fn stretches_without_an_owner_flow_into_the_next() {
        let tape = Tape {
            events: vec![
                Event::Enter(Side::Client, 0),
                Event::Boundary(5),
                operation(6, 9),
                Event::Sent(MessageName::ClientHello, 100, 10),
                Event::Boundary(12),
                operation(13, 14),
                Event::Leave(Side::Client, 15),
                Event::Enter(Side::Server, 20),
                Event::Boundary(21),
                Event::Received(MessageName::ClientHello, 25),
                Event::Leave(Side::Server, 30),
            ],
        };
        let trace = Trace::from_tape(&tape).expect("marks are consistent");
        assert_eq!(trace.marked_ns, [15, 10]);
        assert_eq!(trace.remainder_ns, [3, 0]);
        assert_eq!(trace.messages[0].generate_ns, 12);
        assert_eq!(trace.messages[0].process_ns, 10);
        assert_eq!(trace.operations[0].message, Some(0));
        assert_eq!(trace.operations[1].message, None);
    }

    #[test]
    fn carrying_on_books_to_the_message_before() {
        let tape = Tape {
            events: vec![
                Event::Enter(Side::Server, 0),
                Event::Sent(MessageName::ServerHello, 90, 10),
                Event::Boundary(11),
                Event::Sent(MessageName::ChangeCipherSpec, 6, 15),
                Event::CarryOn(16),
                operation(17, 27),
                Event::Boundary(30),
                Event::Leave(Side::Server, 30),
            ],
        };
        let trace = Trace::from_tape(&tape).expect("marks are consistent");
        assert_eq!(trace.messages[0].generate_ns, 11 + 14);
        assert_eq!(trace.messages[1].generate_ns, 5);
        assert_eq!(trace.operations[0].message, Some(0));
    }

    #[test]
    fn a_message_out_of_nowhere_is_an_error() {
        let tape = Tape {
            events: vec![
                Event::Enter(Side::Client, 0),
                Event::Received(MessageName::ServerHello, 1),
                Event::Leave(Side::Client, 2),
            ],
        };
        let error = Trace::from_tape(&tape).expect_err("nobody sent it");
        assert_eq!(error, LedgerError::NeverSent { side: Side::Client, name: MessageName::ServerHello });
    }

    proptest! {
        /// Whatever marks a step holds, messages and remainder add up to the marked time.
        #[test]
        fn books_balance(kinds in prop::collection::vec(0_u8..5, 0..40), gaps in prop::collection::vec(0_u64..50, 41)) {
            let mut at = 0;
            let mut events = vec![Event::Enter(Side::Client, at)];
            for (kind, gap) in kinds.iter().zip(&gaps) {
                let start = at;
                at += gap;
                events.push(match kind {
                    0 => Event::Boundary(at),
                    1 => Event::Sent(MessageName::Certificate, 1, at),
                    2 => Event::CarryOn(at),
                    _ => operation(start, at),
                });
            }
            events.push(Event::Leave(Side::Client, at + 7));
            let trace = Trace::from_tape(&Tape { events }).expect("marks are consistent");
            let messages: u64 = trace.messages.iter().map(|message| message.generate_ns).sum();
            prop_assert_eq!(messages + trace.remainder_ns[0], trace.marked_ns[0]);
            for (index, message) in trace.messages.iter().enumerate() {
                let inside = trace.operations.iter().filter(|operation| operation.message == Some(index));
                prop_assert!(inside.map(|operation| operation.ns).sum::<u64>() <= message.generate_ns);
            }
        }
    }
}
