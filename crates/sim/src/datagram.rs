//! A side of a handshake over datagrams: the datagrams received from the peer, and the retransmission of its own
//! flight.

use crate::handshake::{Flight, Plan};
use shakedown_link::{Direction, Ns};

/// The reaction to an expired timer or to a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reaction {
    Nothing,
    /// A flight of the peer has arrived, or a part of it.
    Progress,
    /// Send the last flight again.
    SendAgain,
    /// The flight was sent the maximum number of times.
    GiveUp,
}

/// One side.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    side: Direction,
    /// The peer's flight that is awaited, and a bit for each of its received datagrams.
    awaited: u16,
    received: u128,
    /// The last flight that it sent.
    sent: Option<u16>,
    /// Repeated flights that arrived while the answer was prepared; each is answered again afterwards.
    waiting: u32,
    sends: u32,
    interval: Ns,
    timer: Option<Ns>,
}

fn next_from(flights: &[Flight], from: Direction, at: u16) -> u16 {
    let later = flights.iter().enumerate().skip(at.into());
    later
        .filter(|(_, flight)| flight.from == from)
        .map(|(index, _)| index as u16)
        .next()
        .unwrap_or(flights.len() as u16)
}

impl Side {
    pub fn new(side: Direction, plan: &Plan) -> Self {
        let awaited = next_from(&plan.flights, side.reverse(), 0);
        Self { side, awaited, received: 0, sent: None, waiting: 0, sends: 0, interval: Ns::ZERO, timer: None }
    }

    pub fn timer(&self) -> Option<Ns> {
        self.timer
    }

    pub fn sent(&self) -> Option<u16> {
        self.sent
    }

    /// True if the first `datagrams` datagrams of a flight have been received.
    pub fn has(&self, flight: u16, datagrams: u16) -> bool {
        flight < self.awaited
            || flight == self.awaited && self.received.trailing_ones() >= u32::from(datagrams)
    }

    /// A flight has been sent completely for the first time.
    pub fn flight_sent(&mut self, now: Ns, flight: u16, plan: &Plan) {
        self.sent = Some(flight);
        self.sends = 1;
        self.interval = Ns::from_secs_f64(plan.retransmission.initial_s);
        let has_timer = self.side == Direction::Up || plan.retransmission.server_timer;
        let is_answered = usize::from(self.awaited) < plan.flights.len() && self.awaited > flight;
        self.timer = (has_timer && is_answered).then(|| now + self.interval);
    }

    /// How many times the flight just sent has to be sent again at once.
    pub fn take_waiting(&mut self) -> u32 {
        std::mem::take(&mut self.waiting)
    }

    pub fn expired(&mut self, now: Ns, plan: &Plan) -> Reaction {
        if self.sends >= plan.retransmission.sends {
            self.timer = None;
            return Reaction::GiveUp;
        }
        self.sends += 1;
        let longest = Ns::from_secs_f64(plan.retransmission.maximum_s);
        self.interval = (self.interval + self.interval).min(longest);
        self.timer = Some(now + self.interval);
        Reaction::SendAgain
    }

    /// Handles a datagram from the peer.
    pub fn receive(&mut self, flight: u16, index: u16, plan: &Plan) -> Reaction {
        let count = plan.flights[usize::from(flight)].datagrams.len();
        if flight < self.awaited {
            // A repeated flight: the peer has not received the answer. Only its last datagram is answered.
            let is_over = usize::from(self.awaited) == plan.flights.len();
            // A side with a timer relies on the timer.
            let has_timer = self.side == Direction::Up || plan.retransmission.server_timer;
            let answers = is_over || plan.retransmission.answers_duplicates && !has_timer;
            let is_answered = self.sent.is_some_and(|sent| sent > flight);
            let again = answers && usize::from(index) + 1 == count;
            if again && !is_answered {
                self.waiting += 1;
            }
            return if again && is_answered { Reaction::SendAgain } else { Reaction::Nothing };
        }
        if flight > self.awaited {
            return Reaction::Nothing;
        }
        self.received |= 1 << index;
        if self.received.trailing_ones() as usize >= count {
            self.awaited = next_from(&plan.flights, self.side.reverse(), flight + 1);
            self.received = 0;
            // The received flight answers the flight sent before it.
            if self.sent.is_some_and(|sent| sent < flight) {
                self.timer = None;
            }
        }
        Reaction::Progress
    }
}
