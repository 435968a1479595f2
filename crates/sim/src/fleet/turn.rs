//! A client's turn: whatever of it is due, until nothing more happens at that time.

use super::Fleet;
use crate::client::{Accepted, Admits, NEVER, Parcel};
use crate::handshake::Plan;
use crate::outcome::Cause;
use shakedown_link::{Direction, Ns};

impl<const NETWORK: bool> Fleet<'_, NETWORK> {
    /// Whatever of a client is due.
    pub(super) fn act(&mut self, now: Ns, slot: u32) {
        let plan = Self::plan(self.setup, &self.clients[slot as usize]);
        let next = loop {
            let client = &self.clients[slot as usize];
            if !client.is_active {
                return;
            }
            let next = client.next::<NETWORK>();
            if next <= now {
                self.happen(now, slot, plan);
            } else if let Some((direction, parcel)) = self.shared.instant.pop_front() {
                self.events += 1;
                self.deliver(now, direction, &parcel);
            } else if !self.think(now, slot, plan) {
                break next;
            }
        };
        self.settle(now, slot, plan, next);
    }

    /// The first of what is due: the next attempt, something that arrives, the end of work, the end of patience, a timer.
    #[inline]
    fn happen(&mut self, now: Ns, slot: u32, plan: &Plan) {
        let client = &mut self.clients[slot as usize];
        if client.resumes_at <= now {
            self.begin(now, slot);
            return;
        }
        if NETWORK && let Some((direction, parcel)) = client.take(now) {
            self.events += 1;
            self.deliver(now, direction, &parcel);
            return;
        }
        if NETWORK && client.timer() > now {
            // A part of what is not yet whole.
            return;
        }
        self.events += 1;
        if client.computes_until <= now {
            self.computed(now, slot, plan);
        } else if client.gives_up <= now {
            self.fail(now, slot, Cause::Timeout);
        } else if NETWORK && let Err(cause) = client.expire(now, plan, &mut self.shared) {
            self.fail(now, slot, cause);
        }
    }

    /// The client's processor is done with what it was at.
    #[inline]
    fn computed(&mut self, now: Ns, slot: u32, plan: &Plan) {
        let client = &mut self.clients[slot as usize];
        client.computes_until = NEVER;
        client.finish::<NETWORK>(now, Direction::Up, plan, &mut self.shared);
        if usize::from(client.sides[0].at) >= plan.ready_after && client.ready.is_none() {
            self.ready(now, slot);
        }
    }

    /// Puts the client's processor to work, and the server's in line for it. True where the client is at work, and what it
    /// sent at once, or is done with at once, is to be looked at.
    #[inline]
    fn think(&mut self, now: Ns, slot: u32, plan: &Plan) -> bool {
        let client = &mut self.clients[slot as usize];
        if client.computes_until == NEVER
            && let Some(work) = client.work::<NETWORK>(now, Direction::Up, plan, &mut self.shared)
        {
            if work.takes == Ns::ZERO && client.next::<NETWORK>() > now {
                // Nothing else is due meanwhile.
                self.events += 1;
                self.computed(now, slot, plan);
            } else {
                client.computes_until = now + work.takes;
            }
            return true;
        }
        if client.is_acceptable::<NETWORK>() {
            let generation = client.generation;
            if self.acceptable.is_empty() && self.has_room() {
                self.client(slot).accepted = Accepted::Yes;
                self.handshakes += 1;
            } else {
                self.client(slot).accepted = Accepted::Waiting;
                self.acceptable.push_back((slot, generation));
                self.accept();
            }
        }
        let client = &mut self.clients[slot as usize];
        if client.job.is_none() && client.has_work::<NETWORK>(Direction::Down, plan) {
            let generation = client.generation;
            self.advance(now);
            let id = self.server.enqueue(slot, generation, now);
            self.load.in_system += 1;
            self.client(slot).job = Some(id);
        }
        false
    }

    /// The application accepts what it has room for.
    pub(super) fn accept(&mut self) {
        while self.has_room() {
            let Some((slot, generation)) = self.acceptable.pop_front() else { return };
            let client = &mut self.clients[slot as usize];
            if client.is_active && client.generation == generation && client.accepted == Accepted::Waiting {
                client.accepted = Accepted::Yes;
                self.handshakes += 1;
                // It may have work waiting; its own turn will find it.
                let entity = self.first_client + slot;
                self.queue.set(entity, self.now);
            }
        }
    }

    /// The application works on fewer handshakes than it may.
    fn has_room(&self) -> bool {
        self.scenario.server.max_handshakes.is_none_or(|most| self.handshakes < most)
    }

    pub(super) fn admits(&self) -> Admits {
        let room = self.has_room();
        let queue = self.scenario.server.accept_queue;
        let connection = room || queue.is_none_or(|most| (self.acceptable.len() as u64) < u64::from(most));
        Admits { connection, handshake: room }
    }

    pub(super) fn deliver(&mut self, now: Ns, direction: Direction, parcel: &Parcel) {
        let admits = self.admits();
        let client = &mut self.clients[parcel.slot as usize];
        let plan = Self::plan(self.setup, client);
        let delivered = client.deliver::<NETWORK>(now, direction, parcel, plan, admits, &mut self.shared);
        if let Err(cause) = delivered {
            self.fail(now, parcel.slot, cause);
        }
    }

    /// A cell has something for somebody.
    pub(super) fn cell(&mut self, now: Ns, cell: u32) {
        while let Some((_, direction, unit)) = self.shared.cells[cell as usize].take(now) {
            self.events += 1;
            if let Some(parcel) = unit.payload {
                self.deliver(now, direction, &parcel);
                self.act(now, parcel.slot);
            }
        }
        self.shared.touched_cells.push(cell);
        self.schedule_cells();
    }

    #[inline]
    pub(super) fn schedule_cells(&mut self) {
        while let Some(cell) = self.shared.touched_cells.pop() {
            if let Some((due, _)) = self.shared.cells[cell as usize].next() {
                self.queue.set(self.first_cell + cell, due);
            }
        }
    }

    /// After anything that happened to a client: is it through, and if not, when will it act next?
    fn settle(&mut self, now: Ns, slot: u32, plan: &Plan, next: Ns) {
        if NETWORK {
            self.schedule_cells();
        }
        let client = &mut self.clients[slot as usize];
        let entity = self.first_client + slot;
        let over = client.is_over(plan);
        if client.accepted == Accepted::Yes
            && usize::from(client.sides[1].at) == plan.steps.len()
            && !client.sides[1].busy
        {
            client.accepted = Accepted::Over;
            self.handshakes -= 1;
            self.accept();
        }
        let client = &mut self.clients[slot as usize];
        if over && client.ready.is_some() {
            self.done(now, slot);
            return;
        }
        match next {
            NEVER if client.ready.is_some() && client.job.is_none() && client.cell.is_none() => {
                // Nothing will bring what is missing; the client does not need it.
                self.retire(now, slot);
            }
            NEVER => self.queue.clear(entity),
            next => self.queue.set(entity, next.max(now)),
        }
    }
}
