//! A side's work: its duration, and the messages that the side then sends.

use super::{Accepted, Body, Client, Handed, Shared, Transport, side};
use crate::handshake::{Step, records, written};
use shakedown_link::{Direction, Ns};

impl Client<'_> {
    #[inline]
    fn has_come<const NETWORK: bool>(&self, own: usize, step: &Step) -> bool {
        if !NETWORK {
            return self.received_bytes[own] >= step.end;
        }
        match &self.transport {
            Transport::None => false,
            Transport::Stream(_) | Transport::Ideal => self.received_bytes[own] >= step.end,
            Transport::Datagram(sides) => sides[own].has(step.flight, step.datagrams),
        }
    }

    /// Whether a side has work.
    #[inline(always)]
    pub fn has_work<const NETWORK: bool>(&self, direction: Direction) -> bool {
        let own = side(direction);
        let progress = &self.sides[own];
        let may = match direction {
            Direction::Up => self.connected.is_some(),
            Direction::Down => self.accepted == Accepted::Yes,
        };
        let at = progress.at;
        may && !progress.busy
            && self
                .plan
                .steps
                .get(usize::from(at))
                .is_some_and(|step| step.from == direction || self.has_come::<NETWORK>(own, step))
    }

    /// The duration of the side's next piece of work, if there is one. It ends when the side sends, becomes ready or
    /// has no more work. The side is busy until [`finish`](Self::finish).
    #[inline(always)]
    pub fn work<const NETWORK: bool>(
        &mut self,
        now: Ns,
        direction: Direction,
        shared: &mut Shared<'_>,
    ) -> Option<Ns> {
        if !self.has_work::<NETWORK>(direction) {
            return None;
        }
        Some(if NETWORK {
            self.begin_work(now, direction, shared)
        } else {
            self.take_up::<false>(now, direction, shared)
        })
    }

    fn begin_work(&mut self, now: Ns, direction: Direction, shared: &mut Shared<'_>) -> Ns {
        self.take_up::<true>(now, direction, shared)
    }

    #[inline(always)]
    fn take_up<const NETWORK: bool>(&mut self, now: Ns, direction: Direction, shared: &mut Shared<'_>) -> Ns {
        let (own, plan) = (side(direction), self.plan);
        if NETWORK && let Transport::Stream(ends) = &mut self.transport {
            ends[own].read(now, shared.tcp, &mut shared.out);
            if !shared.out.is_empty() {
                self.refresh_end(own);
                self.send_packets(now, direction, shared);
            }
        }
        let mut takes = Ns::ZERO;
        let mut at = usize::from(self.sides[own].at);
        while let Some(step) = plan.steps.get(at) {
            if step.from != direction && !self.has_come::<NETWORK>(own, step) {
                break;
            }
            takes += match step.constant(direction) {
                Some(constant) => constant,
                None => self.sides[own].time(step, plan, shared.seed, self.number, direction),
            };
            at += 1;
            let sends = step.from == direction && step.ends_flight;
            let is_ready = direction == Direction::Up && at == plan.ready_after;
            if sends || is_ready {
                break;
            }
        }
        let progress = &mut self.sides[own];
        // There are at most 10,000 steps.
        progress.at = at as u16;
        progress.busy = true;
        progress.cpu += takes;
        takes
    }

    /// Ends the piece of work and sends its messages.
    #[inline]
    pub fn finish<const NETWORK: bool>(&mut self, now: Ns, direction: Direction, shared: &mut Shared<'_>) {
        let (own, plan) = (side(direction), self.plan);
        let progress = &mut self.sides[own];
        progress.busy = false;
        let (from, to) = (usize::from(progress.flushed), usize::from(progress.at));
        progress.flushed = progress.at;
        let made = plan.steps[from..to].iter().filter(|step| step.from == direction);
        if !NETWORK {
            let bytes: u32 = made.map(|step| step.bytes).sum();
            if bytes > 0 {
                shared.traffic.packets += 1;
                shared.traffic.bytes[own] += u64::from(bytes);
                let (slot, generation) = (self.slot, self.generation);
                shared.handed.push(Handed { slot, generation, bytes, direction });
            }
            return;
        }
        self.send(now, direction, from, to, shared);
    }

    /// Sends the side's own messages of the steps `from..to`.
    fn send(&mut self, now: Ns, direction: Direction, from: usize, to: usize, shared: &mut Shared<'_>) {
        let (own, plan) = (side(direction), self.plan);
        let made = plan.steps[from..to].iter().filter(|step| step.from == direction);
        match &mut self.transport {
            Transport::Ideal => {
                let bytes: u32 = made.map(|step| step.bytes).sum();
                if bytes > 0 {
                    self.offer(now, direction, bytes, Body::Bytes(bytes), shared);
                }
            }
            Transport::Stream(ends) => {
                let all = made.flat_map(|step| records(step.bytes));
                written(all, plan.write_bytes, |bytes| {
                    ends[own].write(now, bytes, shared.tcp, &mut shared.out);
                });
                self.refresh_end(own);
                self.send_packets(now, direction, shared);
            }
            Transport::Datagram(_) => self.send_made(now, direction, from, to, shared),
            Transport::None => {}
        }
    }

    /// Sends the datagrams that are complete.
    fn send_made(&mut self, now: Ns, direction: Direction, from: usize, to: usize, shared: &mut Shared<'_>) {
        let (own, plan) = (side(direction), self.plan);
        let mut index = from;
        while index < to {
            let step = &plan.steps[index];
            if step.from != direction {
                index += 1;
                continue;
            }
            let flight = step.flight;
            let first = (index > 0)
                .then(|| &plan.steps[index - 1])
                .filter(|before| before.flight == flight)
                .map_or(0, |before| complete_before(before, step));
            let mut last = index;
            while last + 1 < to && plan.steps[last + 1].flight == flight {
                last += 1;
            }
            let end = &plan.steps[last];
            let next_shares = plan
                .steps
                .get(last + 1)
                .is_some_and(|next| next.flight == flight && next.datagrams == end.datagrams);
            let complete = usize::from(end.datagrams) - usize::from(next_shares);
            self.send_datagrams(now, direction, flight, first..complete.max(first), shared);
            if end.ends_flight
                && let Transport::Datagram(sides) = &mut self.transport
            {
                sides[own].flight_sent(now, flight, plan);
                for _ in 0..sides[own].take_waiting() {
                    self.send_again(now, direction, shared);
                }
                self.refresh_end(own);
            }
            index = last + 1;
        }
    }
}

/// Datagrams of a flight that were sent before `step` was generated; one with parts of both steps was not.
fn complete_before(before: &Step, step: &Step) -> usize {
    let shares = before.datagrams == step.datagrams;
    usize::from(before.datagrams) - usize::from(shares)
}
