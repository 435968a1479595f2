//! Clients become ready, finish, or fail.

use super::Fleet;
use crate::client::{Accepted, BACKOFF, NEVER};
use crate::energy::{client_energy_j, nanojoules};
use crate::outcome::Cause;
use shakedown_link::{Direction, Ns, Stream};

impl<const NETWORK: bool> Fleet<'_, NETWORK> {
    #[inline]
    pub(super) fn ready(&mut self, now: Ns, slot: u32) {
        self.advance(now);
        self.load.in_flight -= 1;
        let client = &mut self.clients[slot as usize];
        client.ready = Some(now);
        client.gives_up = NEVER;
        let took = now - client.planned;
        self.flight_ns += u128::from(took.0);
        if client.number < self.counted.end {
            self.outcome.trend.record(took.0);
        }
        self.outcome.last_ready_ns = self.outcome.last_ready_ns.max(now.0);
        if let Some(interval) = self.outcome.series.class_at(usize::from(client.class), now) {
            interval.completed += 1;
        }
        if client.counted {
            self.outcome.completed += 1;
            self.recorders.ready[usize::from(client.class)].record_time(took);
            if let Some(connected) = client.connected {
                self.recorders.connect.record_time(connected - client.planned);
            }
        }
        self.opens(now, slot);
    }

    /// Both sides have finished.
    #[inline]
    pub(super) fn done(&mut self, now: Ns, slot: u32) {
        let client = &self.clients[slot as usize];
        if client.counted {
            self.recorders.done.record_time(now - client.planned);
        }
        self.retire(now, slot);
    }

    /// Removes a client and frees its slot.
    #[inline]
    pub(super) fn retire(&mut self, now: Ns, slot: u32) {
        let setup = self.setup;
        let client = &mut self.clients[slot as usize];
        if NETWORK {
            self.shared.traffic.resent += client.retransmissions();
        }
        if client.counted {
            self.recorders.client_wait.record_time(client.waited);
            let class = &setup.classes[usize::from(client.class)];
            if let Some(joules) = client_energy_j(client, class, now) {
                self.recorders.energy.record(nanojoules(joules));
            }
        }
        client.is_active = false;
        self.observe(now, slot);
        self.leaves_server(slot);
        let client = &mut self.clients[slot as usize];
        if NETWORK {
            if let Some(at) = client.at(&setup.classes) {
                client.member.leave(at, &mut self.shared.cells);
            }
            self.shared.spare.keep(client.release_transport());
            if let Some(path) = client.release_path() {
                self.shared.spare.keep_path(client.class, path);
            }
        }
        client.generation = client.generation.wrapping_add(1);
        self.queue.clear(self.first_client + slot);
        let (number, class) = (client.number, client.class);
        let free = self.own_server(number, class) as usize;
        self.free[free].push(slot);
    }

    /// An attempt has failed.
    pub(super) fn fail(&mut self, now: Ns, slot: u32, cause: Cause) {
        if self.clients[slot as usize].ready.is_some() {
            // The client is ready; only the server has work left.
            self.abandon(now, slot);
            self.retire(now, slot);
            return;
        }
        *self.outcome.attempt_failures.entry(cause).or_default() += 1;
        self.abandon(now, slot);
        self.leaves_server(slot);
        let client = &mut self.clients[slot as usize];
        self.shared.traffic.resent += client.retransmissions();
        self.shared.spare.keep(client.release_transport());
        client.generation = client.generation.wrapping_add(1);
        client.gives_up = NEVER;
        client.computes_until = NEVER;
        client.connected = None;
        for progress in &mut client.sides {
            progress.busy = false;
        }
        if let Some(retry) = self.scenario.retry.filter(|retry| client.attempt < retry.attempts) {
            let power = i32::try_from(client.attempt - 1).unwrap_or(i32::MAX);
            let pause = (retry.delay_s * libm::pow(retry.factor, f64::from(power))).min(retry.maximum_s);
            let entity = client.number << 16 | u64::from(client.attempt);
            let drawn = Stream::of(self.seed, entity, BACKOFF).uniform();
            let pause = pause * (1.0 - retry.jitter * drawn);
            let pause = Ns::from_secs_f64(pause);
            client.resumes_at = now + pause;
            let energy = &self.setup.classes[usize::from(client.class)].energy;
            match (client.at(&self.setup.classes), &mut client.path) {
                (Some(at), Some(path)) => client.member.pause(now, pause, at, path, &mut self.shared.cells),
                (None, Some(path)) if energy.is_idle_in(pause) => path.release(now),
                _ => {}
            }
            return;
        }
        self.give_up(now, slot, cause);
    }

    /// The client has gone, but the server does not know: it still processes the messages that arrived.
    pub(super) fn abandon(&mut self, now: Ns, slot: u32) {
        let client = &mut self.clients[slot as usize];
        let Some(server) = client.server else { return };
        if client.accepted == Accepted::Yes {
            self.servers[server as usize].handshakes -= 1;
        }
        let Some(id) = client.job.take() else {
            client.accepted = Accepted::No;
            self.accept(server);
            return;
        };
        if client.sides[1].busy {
            // In service: its worker notices at the end of the present piece.
            client.accepted = Accepted::No;
            self.accept(server);
            return;
        }
        let mut left = Ns::ZERO;
        while let Some(takes) = client.work::<NETWORK>(now, Direction::Down, &mut self.shared) {
            left += takes;
            client.sides[1].busy = false;
        }
        client.accepted = Accepted::No;
        self.jobs.get(id).orphaned = Some(left);
        self.accept(server);
    }

    /// Counts a client as failed, and removes it.
    pub(super) fn give_up(&mut self, now: Ns, slot: u32, cause: Cause) {
        self.advance(now);
        self.load.in_flight -= 1;
        let client = &self.clients[slot as usize];
        let took = now - client.planned;
        self.flight_ns += u128::from(took.0);
        if client.number < self.counted.end {
            self.outcome.trend.record(took.0);
        }
        if let Some(interval) = self.outcome.series.class_at(usize::from(client.class), now) {
            interval.failed += 1;
        }
        if client.counted {
            *self.outcome.failed.entry(cause).or_default() += 1;
            self.outcome.classes[usize::from(client.class)].failed += 1;
        }
        self.next_record(now);
        self.retire(now, slot);
    }
}
