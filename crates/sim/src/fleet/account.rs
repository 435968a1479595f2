//! Time integrals, Little's law, and what a run comes to.

use super::Fleet;
use crate::energy::missing_parts;
use crate::outcome::{Cause, TrafficOutcome};
use crate::scenario::{Scenario, Setup};
use shakedown_link::Ns;

/// Time integrals of what there is of something, exact.
#[derive(Debug, Default)]
pub(super) struct Load {
    at: Ns,
    pub in_flight: u64,
    pub in_system: u64,
    in_flight_ns: u128,
    in_system_ns: u128,
    pub busy_ns: u128,
    pub peak: u64,
}

impl<const NETWORK: bool> Fleet<'_, NETWORK> {
    /// Brings the integrals up to now, before anything that they are of changes.
    #[inline]
    pub(super) fn advance(&mut self, now: Ns) {
        if now > self.load.at {
            self.pass(now);
        }
    }

    fn pass(&mut self, now: Ns) {
        let passed = now.since(self.load.at);
        let busy = u64::from(self.server.busy());
        let load = &mut self.load;
        let span = u128::from(passed.0);
        load.in_flight_ns += u128::from(load.in_flight) * span;
        load.in_system_ns += u128::from(load.in_system) * span;
        load.busy_ns += u128::from(busy) * span;
        if self.setup.series > Ns::ZERO {
            let (in_flight, waiting) = (load.in_flight, self.server.waiting() as u64);
            if in_flight + busy + waiting > 0 {
                self.outcome.series.hold(load.at, now, in_flight, busy, waiting);
            }
        }
        load.at = now;
    }

    /// Nothing is due any more.
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
        // Work that would last beyond the end of time.
        for job in self.server.left() {
            self.load.in_system -= 1;
            self.sojourn_ns += u128::from((now - job.since).0);
        }
        let load = &self.load;
        assert_eq!(load.in_flight_ns, self.flight_ns, "Little's law fails for clients");
        assert_eq!(load.in_system_ns, self.sojourn_ns, "Little's law fails for the server's jobs");
        assert_eq!((load.in_flight, load.in_system), (0, 0), "somebody is still there");
        let outcome = &mut self.outcome;
        std::mem::take(&mut self.records).end(outcome);
        let traffic = self.shared.traffic;
        outcome.traffic = TrafficOutcome {
            packets: traffic.packets,
            up_bytes: traffic.bytes[0],
            down_bytes: traffic.bytes[1],
            retransmissions: traffic.resent,
            ..TrafficOutcome::default()
        };
        outcome.count_dropped(traffic.dropped);
        outcome.energy_missing = missing_parts(self.energy_missing);
        outcome.events = self.events;
        outcome.peak_in_flight = load.peak;
        outcome.end(replication, self.scenario, self.window, (now, load.busy_ns));
    }
}

/// Server time asked for, per second and worker.
pub(crate) fn offered(scenario: &Scenario, setup: &Setup) -> Option<f64> {
    let per_s = scenario.arrivals.rate_per_s()?;
    Some(per_s * setup.server_mean_s / f64::from(scenario.server.workers))
}
