//! Replays of one client and its server.

use super::ReplayError;
use crate::access::Cells;
use crate::checked::Class;
use crate::client::{Accepted, CLOCK, Client, InFlight, NEVER, Shared, Spare, Traffic};
use crate::outcome::Cause;
use crate::server::Admits;
use crate::tcp::{Jiffies, TcpConfig};
use shakedown_link::{Bearer, Direction, Ns, Stream};
use std::collections::VecDeque;

/// The result of one handshake.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HandshakeResult {
    pub ready: Option<Ns>,
    pub done: Option<Ns>,
    /// Bytes on the link, from and to the client.
    pub bytes: [u64; 2],
    /// Time in which the radio was set up.
    pub setting_up: Ns,
    /// Packets that could be lost, up and down.
    pub units: [u32; 2],
    /// A timer of the transport expired, so the phase of its clock matters.
    pub had_timer: bool,
}

/// Limit of a handshake's events; without it, a handshake whose TCP timers are shorter than its path never ends.
const MAX_EVENTS: u64 = 1_000_000;

/// Runs handshakes of a class, one after another, in the same memory.
pub(super) struct Replayer<'a> {
    class: &'a Class,
    shared: Shared<'a>,
    client: Client<'a>,
    events: u64,
}

impl<'a> Replayer<'a> {
    pub fn new(class: &'a Class, tcp: &'a TcpConfig, seed: u64) -> Self {
        let clock = Jiffies::new(tcp.hz, Ns::ZERO);
        let shared = Shared {
            seed,
            tcp,
            server_clock: clock,
            classes: std::slice::from_ref(class),
            cells: Cells::new(&[], seed),
            traffic: Traffic::default(),
            spare: Spare::default(),
            out: Vec::new(),
            instant: VecDeque::new(),
            handed: Vec::new(),
        };
        Self { class, shared, client: Client::new(0, &class.full, clock), events: 0 }
    }

    /// The class's own bearer.
    pub fn bearer(&self) -> &'a Bearer {
        &self.class.bearer
    }

    /// The number of events in all handshakes.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Runs handshake `number` over a bearer.
    pub fn run(&mut self, bearer: &Bearer, number: u64) -> Result<HandshakeResult, ReplayError> {
        self.start(bearer, number);
        let result = self.turns();
        let client = &mut self.client;
        self.shared.spare.keep(client.release_transport());
        if let Some(path) = client.release_path() {
            self.shared.spare.keep_path(0, path);
        }
        self.shared.instant.clear();
        result
    }

    fn start(&mut self, bearer: &Bearer, number: u64) {
        let seed = self.shared.seed;
        let clock = |entity| Jiffies::drawn(self.shared.tcp.hz, Stream::of(seed, entity, CLOCK));
        let (own, server) = (clock(number), clock(!number));
        self.shared.server_clock = server;
        let path = self.shared.spare.path(0, bearer, seed, number);
        let client = &mut self.client;
        client.renew(number, Ns::ZERO);
        client.clock = if self.shared.tcp.one_clock { server } else { own };
        client.set_path(Some(path));
        client.begin::<true>(Ns::ZERO, self.class.segment_bytes, &mut self.shared);
    }

    fn turns(&mut self) -> Result<HandshakeResult, ReplayError> {
        let limit = self.events + MAX_EVENTS;
        let (mut now, mut serves_until) = (Ns::ZERO, NEVER);
        let mut result = HandshakeResult::default();
        loop {
            if self.act(now, &mut result).is_err() {
                break;
            }
            let client = &mut self.client;
            if client.is_over() && client.ready.is_some() {
                result.done = Some(now);
                break;
            }
            if serves_until == NEVER {
                serves_until = self.serve(now);
            }
            now = self.client.next::<true>().min(serves_until);
            if now == NEVER {
                break;
            }
            if self.events > limit {
                return Err(ReplayError::Jammed);
            }
            if serves_until <= now {
                self.events += 1;
                self.client.finish::<true>(now, Direction::Down, &mut self.shared);
                serves_until = self.serve(now);
            }
        }
        result.ready = self.client.ready;
        if let Some(path) = &self.client.path {
            let times = path.times(Ns::ZERO, now.max(result.ready.unwrap_or(Ns::ZERO)));
            result.bytes = [times.sent_bytes, times.received_bytes];
            result.setting_up = times.first_setup;
            result.units = path.units();
        }
        Ok(result)
    }

    /// The end of the server's next piece of work, if it has any.
    fn serve(&mut self, now: Ns) -> Ns {
        let work = self.client.work::<true>(now, Direction::Down, &mut self.shared);
        work.map_or(NEVER, |takes| now + takes)
    }

    /// Handles all events of the client that are due.
    fn act(&mut self, now: Ns, result: &mut HandshakeResult) -> Result<(), Cause> {
        loop {
            if self.client.next::<true>() <= now {
                self.happen(now, result)?;
            } else if !self.think(now) {
                return Ok(());
            }
        }
    }

    fn happen(&mut self, now: Ns, result: &mut HandshakeResult) -> Result<(), Cause> {
        let client = &mut self.client;
        self.events += 1;
        if let Some((direction, in_flight)) = client.take(now) {
            return self.deliver(now, direction, &in_flight);
        }
        if client.timer() > now {
            // The packet was a part of a message that is not yet complete.
            return Ok(());
        }
        if client.computes_until <= now {
            client.computes_until = NEVER;
            client.finish::<true>(now, Direction::Up, &mut self.shared);
            if usize::from(client.sides[0].at) >= client.plan.ready_after && client.ready.is_none() {
                client.ready = Some(now);
            }
            return Ok(());
        }
        result.had_timer = true;
        client.expire(now, &mut self.shared)
    }

    fn deliver(&mut self, now: Ns, direction: Direction, in_flight: &InFlight) -> Result<(), Cause> {
        let admits = Admits { connection: true, handshake: true };
        self.client.deliver::<true>(now, direction, in_flight, admits, &mut self.shared)
    }

    /// Starts the client's next work. True if there is some.
    fn think(&mut self, now: Ns) -> bool {
        let client = &mut self.client;
        if client.computes_until == NEVER
            && let Some(takes) = client.work::<true>(now, Direction::Up, &mut self.shared)
        {
            client.computes_until = now + takes;
            return true;
        }
        if client.is_acceptable::<true>() {
            client.accepted = Accepted::Yes;
        }
        false
    }
}
