//! A client and the server's end of its connection.

use crate::Ends;
use crate::costs::{Charge, Costs, MessageCost};
use crate::error::VirtualError;
use crate::party::{MAX_CALLS, Party};
use crate::wire::{Hosts, Wire};
use shakedown_link::{Ns, Purpose, Stream};
use shakedown_sim::access::Member;
use shakedown_sim::outcome::Cause;
use shakedown_sim::series::Stage;
use shakedown_sim::tcp::Jiffies;
use shakedown_trace::endpoint::Transport;
use shakedown_trace::{CloseReason, Side};
use std::rc::Rc;

/// Purposes of random numbers for endpoints in virtual time; a replay uses other ones.
pub(crate) const SERVICE: [Purpose; 2] = [Purpose(201), Purpose(202)];
pub(crate) const CLOCK: Purpose = Purpose(203);
pub(crate) const BACKOFF: Purpose = Purpose(204);
pub(crate) const ARRIVAL: Purpose = Purpose(205);

/// The properties that all connections share.
pub(crate) struct Common {
    pub hosts: Hosts,
    pub transport: Transport,
    /// Costs by side.
    pub costs: [Rc<[MessageCost]>; 2],
    pub seed: u64,
}

/// One client, from its arrival until both sides are done or it gives up.
pub(crate) struct Client {
    pub number: u64,
    pub counted: bool,
    pub attempt: u32,
    /// The attempt's number, unique over all clients; 0 between attempts. Jobs of other numbers are not its own.
    pub generation: u32,
    pub planned: Ns,
    /// The time at which the attempt times out.
    pub gives_up: Option<Ns>,
    /// The start of the next attempt.
    pub resumes_at: Option<Ns>,
    pub connected: Option<Ns>,
    pub ready: Option<Ns>,
    /// The end of the client's current computation.
    pub computes_until: Option<Ns>,
    /// It has a job that waits or is processed.
    pub has_job: bool,
    /// The stage that was last recorded.
    pub noted: Option<Stage>,
    /// Time that its jobs waited for a worker.
    pub waited: Ns,
    /// Processor time of the client, in all attempts.
    pub computed: Ns,
    pub wire: Wire,
    /// Its cell, if it has one, and its place there.
    pub cell: Option<u32>,
    pub member: Member,
    pub clock: Jiffies,
    pub parties: Option<Box<[Party; 2]>>,
}

impl Client {
    /// Begins an attempt with new endpoints.
    pub fn begin(&mut self, now: Ns, ends: Ends, common: &Common) -> Result<(), VirtualError> {
        for (end, transport) in [(&ends.client, common.transport), (&ends.server, common.transport)] {
            if end.transport() != transport {
                let word = |transport| match transport {
                    Transport::Stream => "a stream",
                    Transport::Datagram => "datagrams",
                };
                let (endpoints, recorded) = (word(end.transport()), word(transport));
                return Err(VirtualError::Transport { endpoints, recorded });
            }
        }
        self.attempt += 1;
        self.resumes_at = None;
        self.connected = None;
        self.computes_until = None;
        self.has_job = false;
        let entity = self.number << 16 | u64::from(self.attempt);
        let party = |endpoint, side: Side| {
            let stream = Stream::of(common.seed, entity, SERVICE[side as usize]);
            Party::new(endpoint, Costs::new(Rc::clone(&common.costs[side as usize]), stream))
        };
        self.parties = Some(Box::new([party(ends.client, Side::Client), party(ends.server, Side::Server)]));
        self.wire.open(now, common.transport, self.clock, &common.hosts);
        self.note_connection(now);
        Ok(())
    }

    fn note_connection(&mut self, now: Ns) {
        if self.connected.is_none() && self.parties.is_some() && self.wire.is_open(Side::Client) {
            self.connected = Some(now);
        }
    }

    /// Delivers one packet that is due; false if there is none.
    pub fn deliver(&mut self, now: Ns, common: &Common) -> Result<bool, Cause> {
        let delivered = self.wire.deliver(now, &common.hosts)?;
        self.note_connection(now);
        Ok(delivered)
    }

    /// True if a side's processor is idle and has input.
    pub fn has_work(&self, side: Side) -> bool {
        let Some(parties) = &self.parties else { return false };
        let party = &parties[side as usize];
        if party.busy || !party.is_alive() || !self.wire.is_open(side) {
            return false;
        }
        self.wire.has_input(side) || side == Side::Client && party.is_fresh()
    }

    /// Starts a side's computation on all received input; it lasts until [`finish`](Self::finish).
    pub fn work(&mut self, now: Ns, side: Side, common: &Common) -> Option<Charge> {
        if !self.has_work(side) {
            return None;
        }
        let units = self.wire.read(now, side, &common.hosts);
        let charge = self.parties.as_mut()?[side as usize].work(now, &units);
        if side == Side::Client {
            self.computed += charge.takes;
        }
        Some(charge)
    }

    /// Ends a side's computation: its output is sent.
    pub fn finish(&mut self, now: Ns, side: Side, common: &Common) {
        let Some(parties) = &mut self.parties else { return };
        for unit in parties[side as usize].finish(now) {
            self.wire.send(now, side, unit, &common.hosts);
        }
    }

    /// Runs expired timers; false if there were none.
    pub fn expire(&mut self, now: Ns, common: &Common) -> Result<bool, Cause> {
        let mut any = self.wire.expire(now, &common.hosts)?;
        for side in Side::BOTH {
            let Some(parties) = &mut self.parties else { break };
            let party = &mut parties[side as usize];
            if party.deadline().is_some_and(|due| due <= now) {
                any = true;
                party.expire(now);
                self.finish(now, side, common);
            }
        }
        Ok(any)
    }

    /// The meaning of an endpoint's end: the client's own timers have expired, or an error.
    pub fn ended(&self) -> Result<Option<Cause>, VirtualError> {
        let Some(parties) = &self.parties else { return Ok(None) };
        let client = self.number;
        for (side, party) in Side::BOTH.into_iter().zip(parties.iter()) {
            if party.calls > MAX_CALLS {
                return Err(VirtualError::Runaway { client, side, calls: party.calls });
            }
            if let Some(message) = party.without_cost() {
                return Err(VirtualError::WithoutCost { side, message });
            }
            match &party.closed {
                None => {}
                Some(CloseReason::Failed(failure)) => {
                    // Over datagrams a client without a response gives up silently.
                    let gave_up = failure.alert.is_none() && party.transport() == Transport::Datagram;
                    if !gave_up {
                        return Err(VirtualError::Failed { client, failure: failure.clone() });
                    }
                    if side == Side::Client && self.ready.is_none() {
                        return Ok(Some(Cause::Transport));
                    }
                }
                Some(_) if party.established.is_some() => {}
                Some(_) => return Err(VirtualError::Ended { client, side }),
            }
        }
        Ok(None)
    }

    /// The client's current stage; `None` if it is ready.
    pub fn stage(&self) -> Option<Stage> {
        match (self.ready, self.resumes_at) {
            (Some(_), _) => None,
            (None, Some(_)) => Some(Stage::Pausing),
            (None, None) if self.has_job => Some(Stage::AtServer),
            (None, None) if self.member.is_requesting() => Some(Stage::Seeking),
            (None, None) => Some(Stage::UnderWay),
        }
    }

    /// True if both sides are done.
    pub fn is_over(&self) -> bool {
        let through = |party: &Party| party.established.is_some() && !party.busy;
        self.parties.as_ref().is_some_and(|parties| parties.iter().all(through))
    }

    /// The time at which the client completed the handshake.
    pub fn established(&self) -> Option<Ns> {
        self.parties.as_ref()?[0].established
    }

    /// True while the server's processor works for this client.
    pub fn is_served(&self) -> bool {
        self.parties.as_ref().is_some_and(|parties| parties[1].busy)
    }

    /// A message with a cost that did not occur in a completed handshake.
    pub fn missing(&self) -> Option<(Side, &str)> {
        let parties = self.parties.as_ref()?;
        Side::BOTH.into_iter().find_map(|side| Some((side, parties[side as usize].missing()?)))
    }

    /// The time of the client's next event.
    pub fn next(&self) -> Option<Ns> {
        let mut times = vec![self.resumes_at, self.gives_up, self.computes_until, self.wire.next()];
        if let Some(parties) = &self.parties {
            times.extend(parties.iter().map(Party::deadline));
        }
        times.into_iter().flatten().min()
    }

    pub fn abandon(&mut self) {
        self.wire.abandon();
        self.parties = None;
        self.generation = 0;
        self.gives_up = None;
        self.computes_until = None;
        self.connected = None;
        self.has_job = false;
    }
}
