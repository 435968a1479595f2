//! Clients arrive and begin their attempts.

use super::{Fleet, SOURCE};
use crate::client::{CLOCK, Client, KIND, NEVER};
use crate::tcp::Jiffies;
use shakedown_link::{Ns, Stream};

impl<const NETWORK: bool> Fleet<'_, NETWORK> {
    pub(super) fn arrive(&mut self, now: Ns) {
        self.advance(now);
        while self.next_arrival.is_some_and(|next| next <= now) {
            self.next_arrival = self.arrivals.next();
            self.admit(now);
        }
        if let Some(next) = self.next_arrival {
            self.queue.set(SOURCE, next.max(now));
        }
    }

    pub(super) fn admit(&mut self, now: Ns) {
        let number = self.arrived;
        self.arrived += 1;
        self.events += 1;
        let counted = number >= self.scenario.warmup_clients;
        if counted {
            self.window.first.get_or_insert((now, self.load.busy_ns));
            self.outcome.counted += 1;
        }
        self.window.last = (now, self.load.busy_ns);
        let (class, resumes) = self.kind(number);
        let slot = self.free.pop().unwrap_or_else(|| {
            let slot = self.clients.len() as u32;
            self.clients.push(Client::new(slot, self.shared.server_clock));
            slot
        });
        let setup = self.setup;
        let of = &setup.classes[usize::from(class)];
        let cell = (NETWORK && of.cells > 0)
            .then(|| self.cells_of[usize::from(class)] + (number % u64::from(of.cells)) as u32);
        let (seed, server_clock) = (self.seed, self.shared.server_clock);
        let tcp = &self.scenario.tcp;
        let timed = NETWORK && !of.is_instant;
        let path = (timed && cell.is_none()).then(|| self.shared.spare.path(class, &of.bearer, seed, number));
        let client = self.client(slot);
        client.renew(number, now);
        client.class = class;
        client.resumes = resumes;
        client.counted = counted;
        client.cell = cell;
        if NETWORK {
            client.takes_path(path);
        }
        if timed {
            client.clock = if tcp.one_clock {
                server_clock
            } else {
                Jiffies::new(tcp.hz, Ns(Stream::of(seed, number, CLOCK).below(1 << 34)))
            };
        }
        self.load.in_flight += 1;
        self.load.peak = self.load.peak.max(self.load.in_flight);
        self.outcome.arrived += 1;
        if counted {
            self.outcome.classes[usize::from(class)].counted += 1;
        }
        if let Some(interval) = self.outcome.series.at(now) {
            interval.arrived += 1;
        }
        let setup_time = if NETWORK && of.cells > 0 { of.bearer.setup_time(seed, number) } else { Ns::ZERO };
        if setup_time > Ns::ZERO {
            // A cell is shared, but each client sets up its own radio.
            self.client(slot).resumes_at = now + setup_time;
        } else {
            self.begin(now, slot);
        }
        self.act(now, slot);
    }

    #[inline]
    fn kind(&self, number: u64) -> (u16, bool) {
        let classes = &self.setup.classes;
        if classes.len() == 1 && classes[0].resumption.is_never() {
            return (0, false);
        }
        let mut stream = Stream::of(self.seed, number, KIND);
        let share = stream.uniform();
        let class = self.setup.shares.iter().position(|upto| share < *upto).unwrap_or(classes.len() - 1);
        (class as u16, classes[class].resumption.happens(&mut stream))
    }

    pub(super) fn begin(&mut self, now: Ns, slot: u32) {
        let setup = self.setup;
        let client = &mut self.clients[slot as usize];
        let plan = Self::plan(setup, client);
        let segment = setup.classes[usize::from(client.class)].segment_bytes;
        client.begin::<NETWORK>(now, plan, segment, &mut self.shared);
        client.gives_up = setup.timeout.map_or(NEVER, |timeout| now + timeout);
        self.outcome.attempts += 1;
        if client.attempt > 1
            && let Some(interval) = self.outcome.series.at(now)
        {
            interval.retries += 1;
        }
    }
}
