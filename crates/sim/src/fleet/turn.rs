//! A client's turn: handles its due events until none is due at the present time.

use super::Fleet;
use crate::client::{Accepted, Body, Handed, InFlight, NEVER};
use crate::limiter::Refusal;
use crate::outcome::Cause;
use crate::scenario::Balance;
use crate::server::{Admits, Job};
use shakedown_link::{Direction, Ns};

impl<const NETWORK: bool> Fleet<'_, NETWORK> {
    /// A client's turn: handles its due events and schedules its next one.
    pub(super) fn act(&mut self, now: Ns, slot: u32) {
        let next = loop {
            let client = &self.clients[slot as usize];
            if !client.is_active {
                return;
            }
            let next = client.next::<NETWORK>();
            if next <= now {
                self.happen(now, slot);
                continue;
            }
            if NETWORK && let Some((direction, in_flight)) = self.shared.instant.pop_front() {
                self.events += 1;
                self.deliver(now, direction, &in_flight);
                continue;
            }
            while let Some(handed) = self.shared.handed.pop() {
                self.events += 1;
                let Handed { slot, generation, bytes, direction } = handed;
                self.deliver(now, direction, &InFlight { slot, generation, body: Body::Bytes(bytes) });
            }
            if !self.think(now, slot) {
                break next;
            }
        };
        self.settle(now, slot, next);
    }

    /// Handles the first due event: the next attempt, an arriving packet, the end of work, the timeout, or a timer.
    #[inline]
    fn happen(&mut self, now: Ns, slot: u32) {
        let client = &mut self.clients[slot as usize];
        if client.resumes_at <= now {
            self.begin(now, slot);
            return;
        }
        if NETWORK && let Some((direction, in_flight)) = client.take(now) {
            self.events += 1;
            self.deliver(now, direction, &in_flight);
            return;
        }
        if NETWORK && client.timer() > now {
            // The packet was a part of a message that is not yet complete.
            return;
        }
        self.events += 1;
        if client.computes_until <= now {
            self.computed(now, slot);
        } else if client.gives_up <= now {
            self.fail(now, slot, Cause::Timeout);
        } else if NETWORK && let Err(cause) = client.expire(now, &mut self.shared) {
            self.fail(now, slot, cause);
        }
    }

    /// The client's processor has finished its present work.
    #[inline(always)]
    fn computed(&mut self, now: Ns, slot: u32) {
        let client = &mut self.clients[slot as usize];
        client.computes_until = NEVER;
        client.finish::<NETWORK>(now, Direction::Up, &mut self.shared);
        if usize::from(client.sides[0].at) >= client.plan.ready_after && client.ready.is_none() {
            self.ready(now, slot);
        } else if client.refused && usize::from(client.sides[0].at) == client.plan.steps.len() {
            self.fail(now, slot, Cause::Refused);
        }
    }

    /// Starts the client's next work, and enqueues its work at the server. True if the client started work: then events
    /// may be due at once, and the caller checks again.
    #[inline]
    fn think(&mut self, now: Ns, slot: u32) -> bool {
        let client = &mut self.clients[slot as usize];
        if client.computes_until == NEVER
            && let Some(takes) = client.work::<NETWORK>(now, Direction::Up, &mut self.shared)
        {
            if takes == Ns::ZERO && client.next::<NETWORK>() > now {
                // Nothing else is due at this time.
                self.events += 1;
                self.computed(now, slot);
            } else {
                client.computes_until = now + takes;
            }
            return true;
        }
        if client.is_acceptable::<NETWORK>() && self.comes_to_server(now, slot) {
            return true;
        }
        let client = &mut self.clients[slot as usize];
        if client.job.is_none() && client.has_work::<NETWORK>(Direction::Down) {
            let generation = client.generation;
            self.advance(now);
            let server = self.server_of(slot);
            let job = Job { slot, generation, since: now, served: Ns::ZERO, orphaned: None };
            let id = self.enqueue(server, job);
            self.client(slot).job = Some(id);
        }
        false
    }

    /// A connection reaches its server's application. True if the application refuses it by an alert, which changes the
    /// client's next steps.
    #[inline(always)]
    fn comes_to_server(&mut self, now: Ns, slot: u32) -> bool {
        let at = self.server_of(slot);
        let alerts = matches!(self.servers[at as usize].admission, Some((_, Refusal::Alert)));
        let refused = alerts && !self.admits(now, at);
        let client = &mut self.clients[slot as usize];
        if refused {
            client.refused = true;
            client.plan = client.plan.refused.as_deref().unwrap_or(client.plan);
        }
        let server = &mut self.servers[at as usize];
        if server.acceptable.is_empty() && server.has_room() {
            server.handshakes += 1;
            client.accepted = Accepted::Yes;
        } else {
            server.acceptable.push_back((slot, client.generation));
            client.accepted = Accepted::Waiting;
            self.accept(at);
        }
        refused
    }

    /// Takes a token for a connection from a server's bucket. False if the bucket is empty.
    fn admits(&mut self, now: Ns, server: u32) -> bool {
        let Some((bucket, _)) = &mut self.servers[server as usize].admission else { return true };
        let admits = bucket.takes(now);
        let count = self.outcome.admissions.get_or_insert_default();
        if admits {
            count.admitted += 1;
            return true;
        }
        count.refused += 1;
        if let Some(interval) = self.outcome.series.at(now) {
            interval.refused += 1;
        }
        false
    }

    /// The server of a client's attempt. The balancer chooses it when it is first needed.
    #[inline(always)]
    pub(super) fn server_of(&mut self, slot: u32) -> u32 {
        match self.clients[slot as usize].server {
            Some(server) => server,
            None if self.servers.len() == 1 => self.connects(slot, 0),
            None => self.choose_server(slot),
        }
    }

    /// Assigns a client's attempt to a server.
    #[inline]
    fn connects(&mut self, slot: u32, server: u32) -> u32 {
        self.servers[server as usize].connections += 1;
        self.clients[slot as usize].server = Some(server);
        server
    }

    fn choose_server(&mut self, slot: u32) -> u32 {
        let count = self.scaler.as_ref().map_or(self.servers.len() as u32, |scaler| scaler.in_service);
        let chosen = match self.scenario.server.balance {
            _ if count == 1 => 0,
            Balance::Hash | Balance::Cell => {
                let client = &self.clients[slot as usize];
                self.fixed_server(client.number, client.class)
            }
            // `in_turn` may exceed the number of servers, because servers may have stopped since it was set.
            Balance::RoundRobin => self.in_turn % count,
            Balance::LeastConnections => (0..count)
                .map(|step| (self.in_turn + step) % count)
                .min_by_key(|server| self.servers[*server as usize].connections)
                .unwrap_or(0),
        };
        self.in_turn = if chosen + 1 < count { chosen + 1 } else { 0 };
        self.connects(slot, chosen)
    }

    /// Removes a client's attempt from the balancer's counts.
    pub(super) fn leaves_server(&mut self, slot: u32) {
        let client = &mut self.clients[slot as usize];
        // A connection that stays open for records is counted until it is closed.
        let stays = self.open.is_some() && client.ready.is_some();
        if let Some(server) = client.server.take().filter(|_| !stays) {
            self.servers[server as usize].connections -= 1;
        }
    }

    /// The application accepts waiting connections up to its limit of handshakes.
    #[inline]
    pub(super) fn accept(&mut self, at: u32) {
        if !self.servers[at as usize].acceptable.is_empty() {
            self.accept_waiting(at);
        }
    }

    fn accept_waiting(&mut self, at: u32) {
        while self.servers[at as usize].has_room() {
            let Some((slot, generation)) = self.servers[at as usize].acceptable.pop_front() else { return };
            let client = &mut self.clients[slot as usize];
            if client.is_active && client.generation == generation && client.accepted == Accepted::Waiting {
                client.accepted = Accepted::Yes;
                self.servers[at as usize].handshakes += 1;
                // The client may have waiting work, which its own turn handles.
                let entity = self.first_client + slot;
                self.queue.set(entity, self.now);
            }
        }
    }

    pub(super) fn deliver(&mut self, now: Ns, direction: Direction, in_flight: &InFlight) {
        let client = &self.clients[in_flight.slot as usize];
        let admits =
            if direction == Direction::Up && client.is_active && client.generation == in_flight.generation {
                let server = self.server_of(in_flight.slot);
                let admits = self.servers[server as usize].admits();
                if let Some((_, refusal)) = self.servers[server as usize].admission
                    && refusal != Refusal::Alert
                    && self.clients[in_flight.slot as usize].opens(in_flight, admits)
                    && !self.admits(now, server)
                {
                    if refusal == Refusal::Reset {
                        self.clients[in_flight.slot as usize].is_reset(now, &mut self.shared);
                    }
                    return;
                }
                admits
            } else {
                Admits { connection: true, handshake: true }
            };
        let client = &mut self.clients[in_flight.slot as usize];
        let delivered = client.deliver::<NETWORK>(now, direction, in_flight, admits, &mut self.shared);
        if let Err(cause) = delivered {
            self.fail(now, in_flight.slot, cause);
        }
    }

    /// Applies the decisions of a cell.
    pub(super) fn cell(&mut self, now: Ns, cell: u32) {
        let mut decisions = self.shared.cells.act(now, cell, self.setup.series);
        for decision in decisions.drain(..) {
            let target = decision.client();
            let client = &mut self.clients[target.slot as usize];
            if !client.is_active || client.number != target.number {
                self.shared.cells.drop_decision(cell, &decision);
                continue;
            }
            self.events += 1;
            client.apply(now, decision, &mut self.shared);
            self.act(now, target.slot);
        }
        self.shared.cells.recycle(cell, decisions);
        self.schedule_cells();
    }

    #[inline]
    pub(super) fn schedule_cells(&mut self) {
        while let Some((cell, next)) = self.shared.cells.next_touched() {
            self.queue.set(self.first_cell + cell, next.max(self.now));
        }
    }

    /// Ends a client's turn: removes the client if it is done, otherwise schedules its next turn.
    fn settle(&mut self, now: Ns, slot: u32, next: Ns) {
        if NETWORK {
            self.schedule_cells();
        }
        self.observe(now, slot);
        let client = &mut self.clients[slot as usize];
        if client.accepted == Accepted::Yes
            && usize::from(client.sides[1].at) == client.plan.steps.len()
            && !client.sides[1].busy
        {
            client.accepted = Accepted::Over;
            let server = self.server_of(slot);
            self.servers[server as usize].handshakes -= 1;
            self.accept(server);
        }
        let client = &self.clients[slot as usize];
        if client.ready.is_some() && client.is_over() {
            self.done(now, slot);
            return;
        }
        let entity = self.first_client + slot;
        match next {
            NEVER if client.ready.is_some() && client.job.is_none() && client.cell.is_none() => {
                // The missing data will never arrive, and the client does not need it.
                self.retire(now, slot);
            }
            NEVER => self.queue.clear(entity),
            next => self.queue.set(entity, next.max(now)),
        }
    }
}
