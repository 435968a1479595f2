//! Clients arrive and begin their attempts.

use super::Fleet;
use crate::client::{BALANCE, CLOCK, Client, KIND, NEVER};
use crate::outcome::Mark;
use crate::scenario::{Balance, Part};
use crate::tcp::Jiffies;
use shakedown_link::{Ns, Stream};

/// A client that arrives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub at: Ns,
    /// `None`: it is the last client, and belongs to another part.
    number: Option<u64>,
}

impl<const NETWORK: bool> Fleet<'_, NETWORK> {
    #[inline]
    pub(super) fn arrive(&mut self, now: Ns) {
        self.advance(now);
        while let Some(arrival) = self.next_arrival.filter(|next| next.at <= now) {
            self.next_arrival = arrival.number.and_then(|_| self.next_own());
            if self.next_arrival.is_none() && self.scenario.cooldown_clients == 0 {
                self.window.last = self.mark(now);
            }
            if let Some(number) = arrival.number {
                self.admit(now, number);
            }
        }
    }

    /// The next client of the simulated part. Clients of other parts are skipped; they only determine the first and the
    /// last arrival.
    #[inline(always)]
    pub(super) fn next_own(&mut self) -> Option<Arrival> {
        if let Some(part) = self.part {
            return self.next_of(part);
        }
        let at = self.arrivals.next()?;
        let number = self.numbered;
        self.numbered += 1;
        Some(Arrival { at, number: Some(number) })
    }

    fn next_of(&mut self, part: Part) -> Option<Arrival> {
        let mut passed = None;
        loop {
            let Some(at) = self.arrivals.next() else { return passed };
            let number = self.numbered;
            self.numbered += 1;
            if self.own_server(number, self.kind(number, at).0) % part.of == part.number {
                return Some(Arrival { at, number: Some(number) });
            }
            if number == self.scenario.warmup_clients {
                self.window.first = Some(Mark { at, ..Mark::default() });
            }
            passed = Some(Arrival { at, number: None });
        }
    }

    /// The server of a client, if the fleet can be divided into parts; else 0.
    pub(super) fn own_server(&self, number: u64, class: u16) -> u32 {
        if self.setup.parts == 1 { 0 } else { self.fixed_server(number, class) }
    }

    /// The server of a client, for balancing by hash or by cell: always the same for one client.
    pub(super) fn fixed_server(&self, number: u64, class: u16) -> u32 {
        let spec = &self.scenario.server;
        match &self.setup.classes[usize::from(class)].cell {
            Some(cell) if spec.balance == Balance::Cell => {
                let cells = u64::from(self.setup.media[cell.medium].count);
                (number % cells) as u32 % spec.servers
            }
            _ => Stream::of(self.seed, number, BALANCE).below(u64::from(spec.servers)) as u32,
        }
    }

    #[inline]
    pub(super) fn admit(&mut self, now: Ns, number: u64) {
        self.events += 1;
        let counted = self.counted.contains(&number);
        if counted && self.window.first.is_none() {
            self.window.first = Some(self.mark(now));
        }
        if number + 1 == self.counted.end {
            self.window.last = self.mark(now);
        }
        let (class, resumes) = self.kind(number, now);
        let setup = self.setup;
        let free = self.own_server(number, class) as usize;
        let slot = self.free[free].pop().unwrap_or_else(|| {
            let slot = self.clients.len() as u32;
            self.clients.push(Client::new(slot, &setup.classes[0].full, self.shared.server_clock));
            slot
        });
        let of = &setup.classes[usize::from(class)];
        let cell = of.cell.as_ref().filter(|_| NETWORK).map(|cell| self.shared.cells.cell(cell, number));
        let (seed, server_clock) = (self.seed, self.shared.server_clock);
        let tcp = &self.scenario.tcp;
        let timed = NETWORK && !of.is_instant;
        let path = timed.then(|| self.shared.spare.path(class, &of.bearer, seed, number));
        let client = self.client(slot);
        client.renew(number, now);
        client.class = class;
        client.handshake = of.plan(resumes);
        client.counted = counted;
        client.cell = cell;
        if NETWORK {
            client.set_path(path);
        }
        if let Some(ahead) = &mut self.ahead {
            self.clients[slot as usize].set_drawn(ahead.next(number));
        }
        let client = self.client(slot);
        if timed {
            client.clock = if tcp.one_clock {
                server_clock
            } else {
                Jiffies::drawn(tcp.hz, Stream::of(seed, number, CLOCK))
            };
        }
        self.load.in_flight += 1;
        self.load.peak = self.load.peak.max(self.load.in_flight);
        self.outcome.arrived += 1;
        if counted {
            self.outcome.counted += 1;
            self.outcome.classes[usize::from(class)].counted += 1;
        } else if number >= self.counted.end {
            self.outcome.cooldown += 1;
        }
        if let Some(interval) = self.outcome.series.class_at(usize::from(class), now) {
            interval.arrived += 1;
        }
        self.begin(now, slot);
        self.act(now, slot);
    }

    /// The class of a client that arrives at this time, and whether it resumes.
    #[inline(always)]
    pub(super) fn kind(&self, number: u64, at: Ns) -> (u16, bool) {
        let classes = &self.setup.classes;
        if classes.len() == 1 && classes[0].never_resumes() {
            return (0, false);
        }
        self.draw_kind(number, at)
    }

    fn draw_kind(&self, number: u64, at: Ns) -> (u16, bool) {
        let classes = &self.setup.classes;
        let mut stream = Stream::of(self.seed, number, KIND);
        let share = stream.uniform();
        let class = self.setup.shares.iter().position(|upto| share < *upto).unwrap_or(classes.len() - 1);
        (class as u16, classes[class].resumption(at).happens(&mut stream))
    }

    #[inline(always)]
    pub(super) fn begin(&mut self, now: Ns, slot: u32) {
        let setup = self.setup;
        let client = &mut self.clients[slot as usize];
        let segment = setup.classes[usize::from(client.class)].segment_bytes;
        client.begin::<NETWORK>(now, segment, &mut self.shared);
        client.gives_up = setup.timeout.map_or(NEVER, |timeout| now + timeout);
        self.outcome.attempts += 1;
        if client.attempt > 1
            && let Some(interval) = self.outcome.series.at(now)
        {
            interval.retries += 1;
        }
    }
}
