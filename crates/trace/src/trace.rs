//! Two half traces of one handshake, joined.

use crate::flight::Flights;
use crate::half_trace::{AccountingError, HalfTrace, OperationRecord};
use crate::recording::Counter;
use crate::{MessageName, Side};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageRecord {
    pub from: Side,
    /// Its RFC name.
    pub name: MessageName,
    /// The number of its flight, from 1; `None` for tickets and key updates that TLS 1.3 sends after its handshake.
    pub flight: Option<u32>,
    /// The number of the datagram or write of its sender that carried its first byte, from 1.
    pub unit: u32,
    /// The number of times that its sender retransmitted that datagram.
    pub retransmissions: u32,
    /// Bytes on the wire, including record headers, padding, and MAC or tag.
    pub bytes: u32,
    /// The time that its sender spent on it, in the counter's unit.
    pub generate: u64,
    pub process: u64,
}

/// The record of one handshake, with both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    pub counter: Counter,
    /// In the order in which they were sent.
    pub messages: Vec<MessageRecord>,
    /// The client's, then the server's, each in the order of time.
    pub operations: Vec<OperationRecord>,
    /// The time of each side's calls, in the counter's unit: client, server.
    pub total: [u64; 2],
    /// The part of `total` that is attributed to no message: client, server.
    pub unattributed: [u64; 2],
}

impl Trace {
    /// Joins both sides' work on each message, and numbers the flights.
    ///
    /// The order of messages follows from each side's own order of sending and receiving, not from clocks, so the
    /// halves may come from two machines. A message that is missing in its receiver's log has a processing time of 0.
    pub fn join(client: &HalfTrace, server: &HalfTrace) -> Result<Self, AccountingError> {
        for (half, side) in [(client, Side::Client), (server, Side::Server)] {
            if half.side != side {
                return Err(AccountingError::OneSide { side: half.side });
            }
        }
        if client.counter != server.counter {
            let (client, server) = (client.counter.unit(), server.counter.unit());
            return Err(AccountingError::Counters { client, server });
        }
        let halves = [client, server];
        let partners = [partners(client, server)?, partners(server, client)?];
        let mut trace = Self {
            counter: client.counter,
            messages: Vec::new(),
            operations: Vec::new(),
            total: halves.map(|half| half.total),
            unattributed: halves.map(|half| half.unattributed),
        };
        let (order, places) = in_order(halves, &partners)?;
        let mut flights = Flights::default();
        for (side, place) in order {
            let message = &halves[side as usize].messages[place];
            trace.messages.push(MessageRecord {
                from: side,
                name: message.name,
                flight: flights.next(side, message.name),
                unit: message.unit,
                retransmissions: message.retransmissions,
                bytes: message.bytes,
                generate: message.spent,
                process: 0,
            });
        }
        for (half, places) in halves.into_iter().zip(&places) {
            for (message, place) in half.messages.iter().zip(places) {
                if message.from != half.side {
                    trace.messages[*place].process += message.spent;
                }
            }
            trace.operations.extend(half.operations.iter().map(|operation| OperationRecord {
                message: operation.message.map(|place| places[place]),
                ..operation.clone()
            }));
        }
        Ok(trace)
    }

    pub fn bytes_from(&self, side: Side) -> u64 {
        let sent = self.messages.iter().filter(|message| message.from == side);
        sent.map(|message| u64::from(message.bytes)).sum()
    }
}

/// For each message of a half that was received: its index in the other half.
fn partners(half: &HalfTrace, peer: &HalfTrace) -> Result<Vec<Option<usize>>, AccountingError> {
    let mut candidates = peer.messages.iter().enumerate().filter(|(_, message)| message.from == peer.side);
    let partner = |message: &crate::half_trace::HalfMessage| {
        if message.from == half.side {
            return Ok(None);
        }
        // The peer's messages arrive in order.
        let found = candidates.find(|(_, candidate)| candidate.name == message.name);
        let missing = AccountingError::NeverSent { side: half.side, name: message.name };
        found.map(|(place, _)| Some(place)).ok_or(missing)
    };
    half.messages.iter().map(partner).collect()
}

/// The messages of two halves in the order of sending: the sender of each, and its index in the sender's half. Then the
/// position of each message of each half in that order.
type Order = (Vec<(Side, usize)>, [Vec<usize>; 2]);

fn in_order(halves: [&HalfTrace; 2], partners: &[Vec<Option<usize>>; 2]) -> Result<Order, AccountingError> {
    let (mut order, mut places) = (Vec::new(), [Vec::new(), Vec::new()]);
    // The side that sent last continues while it can.
    let mut sender = Side::Client;
    'sent: loop {
        let mut waiting = None;
        for side in [sender, sender.peer()] {
            let own = side as usize;
            while let Some(message) = halves[own].messages.get(places[own].len()) {
                let place = places[own].len();
                let Some(partner) = partners[own][place] else {
                    places[own].push(order.len());
                    order.push((side, place));
                    sender = side;
                    continue 'sent;
                };
                let Some(&sent) = places[side.peer() as usize].get(partner) else {
                    waiting = Some(AccountingError::NeverSent { side, name: message.name });
                    break;
                };
                places[own].push(sent);
            }
        }
        // Both sides wait for a message that the other sends only after one that it waits for itself.
        return waiting.map_or(Ok((order, places)), Err);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::half_trace::HalfMessage;
    use MessageName::{ClientHello, Finished, NewSessionTicket, ServerHello};

    fn half(side: Side, messages: &[(Side, MessageName, u64)]) -> HalfTrace {
        let message = |&(from, name, spent): &(Side, MessageName, u64)| HalfMessage {
            from,
            name,
            bytes: 10,
            unit: 1,
            retransmissions: 0,
            spent,
            waited: 0,
        };
        HalfTrace {
            side,
            counter: Counter::NANOSECONDS,
            messages: messages.iter().map(message).collect(),
            operations: Vec::new(),
            total: messages.iter().map(|message| message.2).sum(),
            unattributed: 0,
            units_sent: 0,
            units_received: 0,
        }
    }

    const C: Side = Side::Client;
    const S: Side = Side::Server;

    #[test]
    fn halves_join_in_the_order_of_sending() {
        let client =
            half(C, &[(C, ClientHello, 1), (S, ServerHello, 2), (C, Finished, 4), (S, NewSessionTicket, 8)]);
        let server = half(
            S,
            &[
                (C, ClientHello, 16),
                (S, ServerHello, 32),
                (S, Finished, 64),
                (C, Finished, 128),
                (S, NewSessionTicket, 256),
            ],
        );
        let trace = Trace::join(&client, &server).expect("they belong together");
        let found: Vec<_> =
            trace.messages.iter().map(|m| (m.from, m.name, m.flight, m.generate, m.process)).collect();
        assert_eq!(
            found,
            [
                (C, ClientHello, Some(1), 1, 16),
                (S, ServerHello, Some(2), 32, 2),
                // The client's log does not contain the message: its time is 0, and the order is still known.
                (S, Finished, Some(2), 64, 0),
                (C, Finished, Some(3), 4, 128),
                (S, NewSessionTicket, None, 256, 8),
            ]
        );
        assert_eq!(trace.total, [15, 496]);
    }

    #[test]
    fn halves_of_different_handshakes_do_not_join() {
        let client = half(C, &[(C, ClientHello, 1), (S, ServerHello, 2)]);
        let silent = half(S, &[(C, ClientHello, 1)]);
        let error = AccountingError::NeverSent { side: C, name: ServerHello };
        assert_eq!(Trace::join(&client, &silent), Err(error));
        assert_eq!(Trace::join(&client, &client), Err(AccountingError::OneSide { side: C }));
        let other = HalfTrace { counter: Counter::custom("instructions", || 0), ..silent };
        assert!(matches!(Trace::join(&client, &other), Err(AccountingError::Counters { .. })));
        // Each claims to have received a message of the other first.
        let client = half(C, &[(S, ServerHello, 2), (C, ClientHello, 1)]);
        let server = half(S, &[(C, ClientHello, 1), (S, ServerHello, 2)]);
        assert!(matches!(Trace::join(&client, &server), Err(AccountingError::NeverSent { .. })));
    }
}
