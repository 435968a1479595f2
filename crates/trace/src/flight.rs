//! Flights: runs of messages of one sender.

use crate::{MessageName, Side};

/// Numbers the flights of a handshake, message by message in the order in which they were sent.
///
/// Measured, captured and replayed handshakes are all grouped into flights by this type.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flights {
    latest: u32,
    sender: Option<Side>,
    finished: [bool; 2],
}

impl Flights {
    /// The flight of the next message, from 1; `None` for a message that TLS 1.3 sends after its handshake (a ticket or
    /// key update), which belongs to no flight.
    pub fn next(&mut self, from: Side, name: MessageName) -> Option<u32> {
        let after_the_end = self.finished == [true; 2]
            && matches!(name, MessageName::NewSessionTicket | MessageName::KeyUpdate);
        if after_the_end {
            return None;
        }
        if self.sender != Some(from) {
            self.latest += 1;
            self.sender = Some(from);
        }
        self.finished[from as usize] |= name == MessageName::Finished;
        Some(self.latest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use MessageName::{ClientHello, Finished, NewSessionTicket, ServerHello, ServerHelloDone};
    use Side::{Client, Server};

    #[test]
    fn tickets_after_the_handshake_belong_to_no_flight() {
        let mut flights = Flights::default();
        let found = [
            (Client, ClientHello),
            (Server, ServerHello),
            (Server, Finished),
            (Client, Finished),
            (Server, NewSessionTicket),
        ]
        .map(|(from, name)| flights.next(from, name));
        assert_eq!(found, [Some(1), Some(2), Some(2), Some(3), None]);
    }

    #[test]
    fn tickets_within_the_handshake_belong_to_a_flight() {
        let mut flights = Flights::default();
        let found = [
            (Client, ClientHello),
            (Server, ServerHelloDone),
            (Client, Finished),
            (Server, NewSessionTicket),
            (Server, Finished),
        ]
        .map(|(from, name)| flights.next(from, name));
        assert_eq!(found, [Some(1), Some(2), Some(3), Some(4), Some(4)]);
    }
}
