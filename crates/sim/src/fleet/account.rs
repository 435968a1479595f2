//! Time integrals, Little's law, and the outcome of a run.

use super::Fleet;
use crate::outcome::{Cause, Mark, TrafficOutcome};
use crate::server::Server;
use shakedown_link::Ns;

/// Exact time integrals of the numbers of clients, jobs and busy workers.
#[derive(Debug, Default)]
pub(super) struct Load {
    pub at: Ns,
    pub in_flight: u64,
    pub in_system: u64,
    /// Busy workers and waiting jobs of all servers.
    pub busy: u64,
    pub waiting: u64,
    in_flight_ns: u128,
    in_system_ns: u128,
    pub busy_ns: u128,
    pub peak: u64,
}

impl<const NETWORK: bool> Fleet<'_, NETWORK> {
    /// Advances the integrals to now, before their values change.
    #[inline]
    pub(super) fn advance(&mut self, now: Ns) {
        if now > self.load.at {
            self.pass(now);
        }
    }

    /// Changes a server's processor sharing, and updates the number of busy workers.
    pub(super) fn at_shared<T>(&mut self, server: u32, change: impl FnOnce(&mut Server) -> T) -> T {
        let server = &mut self.servers[server as usize];
        let busy = u64::from(server.busy());
        let answer = change(server);
        self.load.busy = self.load.busy + u64::from(server.busy()) - busy;
        answer
    }

    /// The present time, with the workers' time used until now.
    pub(super) fn mark(&self, now: Ns) -> Mark {
        let records_ns = self.open.as_ref().map_or(0, |open| open.work_ns);
        Mark { at: now, busy_ns: self.load.busy_ns, records_ns }
    }

    fn pass(&mut self, now: Ns) {
        let passed = now.since(self.load.at);
        let load = &mut self.load;
        let span = u128::from(passed.0);
        load.in_flight_ns += u128::from(load.in_flight) * span;
        load.in_system_ns += u128::from(load.in_system) * span;
        load.busy_ns += u128::from(load.busy) * span;
        if self.setup.series > Ns::ZERO {
            let (busy, waiting) = (load.busy, load.waiting);
            if busy + waiting > 0 {
                self.outcome.series.hold((load.at, now), busy, waiting);
            }
        }
        load.at = now;
    }

    /// Counts a change of the client's stage in the time series, if there is one.
    #[inline]
    pub(super) fn observe(&mut self, now: Ns, slot: u32) {
        if self.setup.series > Ns::ZERO {
            self.note_stage(now, slot);
        }
    }

    fn note_stage(&mut self, now: Ns, slot: u32) {
        let client = &mut self.clients[slot as usize];
        let stage = client.stage();
        if stage != client.noted {
            let change = (std::mem::replace(&mut client.noted, stage), stage);
            self.stages.moves(&mut self.outcome.series, usize::from(client.class), change, now);
        }
    }

    /// Ends the run when no event is left: checks Little's law and completes the outcome.
    pub(super) fn end(&mut self, replication: u32) {
        let now = self.now;
        for slot in 0..self.clients.len() as u32 {
            if self.clients[slot as usize].is_active {
                if self.clients[slot as usize].ready.is_none() {
                    *self.outcome.attempt_failures.entry(Cause::Lost).or_default() += 1;
                    self.give_up(now, slot, Cause::Lost);
                } else {
                    self.retire(now, slot);
                }
            }
        }
        self.advance(now);
        // Jobs that would end after the maximum time.
        let left: Vec<_> = self.servers.iter().flat_map(Server::left).collect();
        for id in left {
            let job = self.jobs.get(id);
            self.load.in_system -= 1;
            self.sojourn_ns += u128::from((now - job.since).0);
        }
        let end = self.mark(now);
        let load = &self.load;
        assert_eq!(load.in_flight_ns, self.flight_ns, "Little's law fails for clients");
        assert_eq!(load.in_system_ns, self.sojourn_ns, "Little's law fails for the server's jobs");
        assert_eq!((load.in_flight, load.in_system), (0, 0), "somebody is still there");
        let outcome = &mut self.outcome;
        std::mem::take(&mut self.recorders).end(outcome);
        let traffic = self.shared.traffic;
        outcome.traffic = TrafficOutcome {
            packets: traffic.packets,
            up_bytes: traffic.bytes[0],
            down_bytes: traffic.bytes[1],
            retransmissions: traffic.resent,
            ..TrafficOutcome::default()
        };
        outcome.count_dropped(traffic.dropped, traffic.uncrossed, traffic.ignored);
        outcome.access = self.shared.cells.end();
        outcome.events = self.events;
        outcome.peak_in_flight =
            if self.setup.parts == 1 { load.peak } else { outcome.series.peak_in_flight() };
        outcome.parts = self.part.into_iter().filter(|part| part.of > 1).collect();
        let workers = u128::from(self.scenario.server.all_workers());
        let scaler = self.scaler.as_ref();
        outcome.records = self.open.take().map(|open| open.end());
        outcome.scaling = scaler.map(|scaler| scaler.end(now, &mut outcome.series));
        let worker_ns = |end: Ns| scaler.map_or(u128::from(end.0) * workers, |scaler| scaler.worker_ns(end));
        outcome.end(replication, self.scenario, self.window, end, &worker_ns);
    }
}
