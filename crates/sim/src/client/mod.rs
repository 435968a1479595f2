//! A client, its connection and the server's end of it: the progress of each side in the handshake, and the packets in
//! flight.

mod ahead;
mod delivery;
mod in_flight;
mod shared;
mod work;

pub(crate) use ahead::DrawnAhead;
pub(crate) use in_flight::{Body, InFlight, Place};
pub(crate) use shared::{Handed, Shared, Spare, Traffic};

use crate::access::{At, Member};
use crate::checked::Class;
use crate::datagram;
use crate::handshake::{Plan, Step, TransportKind};
use crate::series::Stage;
use crate::server::{Job, JobId};
use crate::tcp::{IP_BYTES, Jiffies, State, Tcp};
use shakedown_link::{Direction, Ns, Path, Purpose, Stream};

/// The purposes of a client's random numbers.
pub(crate) const SERVICE: [Purpose; 2] = [Purpose(101), Purpose(102)];
pub(crate) const CLOCK: Purpose = Purpose(103);
pub(crate) const KIND: Purpose = Purpose(104);
pub(crate) const BACKOFF: Purpose = Purpose(105);
pub(crate) const ARRIVAL: Purpose = Purpose(106);
pub(crate) const REPLICATION: Purpose = Purpose(107);
pub(crate) const BALANCE: Purpose = Purpose(110);
pub(crate) const EARLIER: Purpose = Purpose(111);

/// The time of an event that never happens.
pub(crate) const NEVER: Ns = Ns::MAX;

/// A side's progress in the handshake.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    /// Messages generated or processed, including the one in work.
    pub at: u16,
    /// Its own messages up to this one were sent.
    pub flushed: u16,
    /// True while it generates or processes a message.
    pub busy: bool,
    /// Processor time so far.
    pub cpu: Ns,
    /// The random numbers of its work, if its work is random.
    stream: Option<Stream>,
    /// A time that was drawn before the client arrived.
    ahead: Ahead,
}

/// The first random time of a side, if it is drawn in advance.
#[derive(Clone, Copy, Debug, Default)]
enum Ahead {
    #[default]
    Not,
    Drawn(Ns),
    Used,
}

impl Progress {
    /// Resets it for a new client.
    #[inline]
    pub fn renew(&mut self) {
        self.cpu = Ns::ZERO;
        (self.stream, self.ahead) = (None, Ahead::Not);
    }

    /// The time of a step of the side `own`, if it is random.
    #[inline]
    fn time(&mut self, step: &Step, plan: &Plan, seed: u64, number: u64, own: Direction) -> Ns {
        match self.ahead {
            Ahead::Drawn(time) => {
                self.ahead = Ahead::Used;
                time
            }
            _ => self.draw(step, plan, seed, number, own),
        }
    }

    #[inline(never)]
    fn draw(&mut self, step: &Step, plan: &Plan, seed: u64, number: u64, own: Direction) -> Ns {
        let used = matches!(self.ahead, Ahead::Used);
        let stream = self.stream.get_or_insert_with(|| {
            let mut stream = Stream::of(seed, number, SERVICE[side(own)]);
            if used {
                plan.steps[0].cost(own).draw(&mut stream);
            }
            stream
        });
        step.cost(own).draw(stream)
    }
}

/// The transport of the connection.
#[derive(Debug)]
pub(crate) enum Transport {
    None,
    Stream(Box<[Tcp; 2]>),
    Datagram(Box<[datagram::Side; 2]>),
    Ideal,
}

/// Whether the server's application has accepted the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepted {
    No,
    /// It waits in the accept queue.
    Waiting,
    Yes,
    /// The server has finished it.
    Over,
}

/// One client, from its arrival until it is ready and the server has finished, or until it gives up.
#[derive(Debug)]
pub(crate) struct Client<'a> {
    pub slot: u32,
    pub number: u64,
    pub class: u16,
    /// Its handshake, and that of this attempt: the same, or the variant with an alert.
    pub handshake: &'a Plan,
    pub plan: &'a Plan,
    pub counted: bool,
    pub is_active: bool,
    pub generation: u32,
    pub attempt: u32,
    /// The stage that was last counted.
    pub noted: Option<Stage>,
    /// The server answers this attempt with an alert.
    pub refused: bool,
    pub planned: Ns,
    /// When the attempt times out, or [`NEVER`].
    pub gives_up: Ns,
    /// When the next attempt begins, or [`NEVER`].
    pub resumes_at: Ns,
    pub connected: Option<Ns>,
    pub ready: Option<Ns>,
    /// When the client's processor finishes its current work, or [`NEVER`].
    pub computes_until: Ns,
    /// The server that its attempt has reached.
    pub server: Option<u32>,
    pub job: Option<JobId>,
    pub accepted: Accepted,
    /// Time that its jobs waited for a worker.
    pub waited: Ns,
    /// When the next packet arrives at the server and at the client, or [`NEVER`]. This field and the next two repeat
    /// state of the path and the transport, which are often not in the processor's cache.
    arrives: [Ns; 2],
    /// The next deadline of the client's and of the server's transport, or [`NEVER`].
    timers: [Ns; 2],
    /// Bytes received by the client and by the server; datagrams are not counted.
    received_bytes: [u32; 2],
    /// The sides, the client's first.
    pub sides: [Progress; 2],
    pub transport: Transport,
    pub path: Option<Box<Path<InFlight>>>,
    pub cell: Option<u32>,
    pub member: Member,
    pub clock: Jiffies,
    /// The network layer's header on its bearer.
    pub ip_bytes: u32,
}

pub(crate) fn side(direction: Direction) -> usize {
    usize::from(direction == Direction::Down)
}

impl<'a> Client<'a> {
    pub fn new(slot: u32, plan: &'a Plan, clock: Jiffies) -> Self {
        Self {
            slot,
            number: 0,
            class: 0,
            handshake: plan,
            plan,
            counted: false,
            is_active: false,
            generation: 0,
            attempt: 0,
            noted: None,
            refused: false,
            planned: Ns::ZERO,
            gives_up: NEVER,
            resumes_at: NEVER,
            connected: None,
            ready: None,
            computes_until: NEVER,
            server: None,
            job: None,
            accepted: Accepted::No,
            waited: Ns::ZERO,
            arrives: [NEVER; 2],
            timers: [NEVER; 2],
            received_bytes: [0; 2],
            sides: [Progress::default(), Progress::default()],
            transport: Transport::None,
            path: None,
            cell: None,
            member: Member::default(),
            clock,
            ip_bytes: IP_BYTES,
        }
    }

    /// Resets it for a new client in the same slot, except for the fields that [`begin`](Self::begin) sets. Its path
    /// and its class are set separately.
    #[inline]
    pub fn renew(&mut self, number: u64, now: Ns) {
        self.number = number;
        self.is_active = true;
        self.attempt = 0;
        self.planned = now;
        self.ready = None;
        self.gives_up = NEVER;
        self.server = None;
        self.waited = Ns::ZERO;
        self.sides.iter_mut().for_each(Progress::renew);
    }

    /// Sets the time that was drawn for it in advance.
    #[inline]
    pub fn set_drawn(&mut self, time: Ns) {
        self.sides[side(Direction::Down)].ahead = Ahead::Drawn(time);
    }

    /// Begins an attempt.
    pub fn begin<const NETWORK: bool>(&mut self, now: Ns, segment_bytes: u32, shared: &mut Shared<'_>) {
        self.generation = self.generation.wrapping_add(1);
        self.plan = self.handshake;
        self.ip_bytes = self.plan.ip_bytes;
        self.attempt += 1;
        self.refused = false;
        self.resumes_at = NEVER;
        self.computes_until = NEVER;
        self.job = None;
        self.accepted = Accepted::No;
        for progress in &mut self.sides {
            progress.at = 0;
            progress.flushed = 0;
            progress.busy = false;
        }
        self.received_bytes = [0; 2];
        self.connected = Some(now);
        if NETWORK {
            self.open(now, segment_bytes, shared);
        }
    }

    /// Opens the transport of an attempt.
    fn open(&mut self, now: Ns, segment_bytes: u32, shared: &mut Shared<'_>) {
        let plan = self.plan;
        self.transport = match plan.transport {
            TransportKind::Ideal => Transport::Ideal,
            TransportKind::Datagram => Transport::Datagram(Box::new([
                datagram::Side::new(Direction::Up, plan),
                datagram::Side::new(Direction::Down, plan),
            ])),
            TransportKind::Stream => {
                let mut ends =
                    shared.spare.connection(|| Tcp::listen(shared.server_clock, segment_bytes, shared.tcp));
                let [client, server] = &mut *ends;
                client.replace(Tcp::connect(now, self.clock, segment_bytes, shared.tcp, &mut shared.out));
                server.replace(Tcp::listen(shared.server_clock, segment_bytes, shared.tcp));
                for end in [client, server] {
                    end.set_super_packets(plan.super_packets);
                }
                Transport::Stream(ends)
            }
        };
        if matches!(self.transport, Transport::Stream(_)) {
            self.connected = None;
            self.refresh_end(0);
            self.refresh_end(1);
            self.send_packets(now, Direction::Up, shared);
        }
    }

    /// Sets the path for all of its attempts.
    pub fn set_path(&mut self, path: Option<Box<Path<InFlight>>>) {
        self.path = path;
        self.member = Member::default();
        self.arrives = [NEVER; 2];
    }

    /// Its membership of a cell, if it has one.
    pub fn at<'c>(&self, classes: &'c [Class]) -> Option<At<'c>> {
        let of = classes[usize::from(self.class)].cell.as_ref()?;
        Some(At { cell: self.cell?, of, number: self.number, slot: self.slot })
    }

    /// Releases its path.
    pub fn release_path(&mut self) -> Option<Box<Path<InFlight>>> {
        self.arrives = [NEVER; 2];
        self.path.take()
    }

    /// Releases the transport of its attempt.
    pub fn release_transport(&mut self) -> Transport {
        self.timers = [NEVER; 2];
        self.received_bytes = [0; 2];
        std::mem::replace(&mut self.transport, Transport::None)
    }

    /// Copies the deadline and the received bytes of an end of the transport.
    #[inline]
    fn refresh_end(&mut self, own: usize) {
        match &self.transport {
            Transport::Stream(ends) => {
                self.timers[own] = ends[own].deadline().unwrap_or(NEVER);
                self.received_bytes[own] = ends[own].received();
            }
            Transport::Datagram(sides) => self.timers[own] = sides[own].timer().unwrap_or(NEVER),
            Transport::Ideal | Transport::None => {}
        }
    }

    /// Whether the server's system has a connection that its application can accept.
    pub fn is_acceptable<const NETWORK: bool>(&self) -> bool {
        if self.accepted != Accepted::No {
            return false;
        }
        if !NETWORK {
            return self.received_bytes[1] > 0;
        }
        match &self.transport {
            Transport::None => false,
            Transport::Stream(ends) => ends[1].state() == State::Established,
            Transport::Datagram(sides) => sides[1].has(0, 1),
            Transport::Ideal => self.received_bytes[1] > 0,
        }
    }

    /// The stage in which it waits; `None` if it is ready or inactive.
    pub fn stage(&self) -> Option<Stage> {
        if !self.is_active || self.ready.is_some() {
            None
        } else if self.resumes_at != NEVER {
            Some(Stage::Pausing)
        } else if self.job.is_some() || self.accepted == Accepted::Waiting {
            Some(Stage::AtServer)
        } else if self.member.is_requesting() {
            Some(Stage::Seeking)
        } else {
            Some(Stage::UnderWay)
        }
    }

    /// The next event of its timeout, processor or transport, or [`NEVER`].
    #[inline]
    pub fn timer(&self) -> Ns {
        self.timers[0].min(self.timers[1]).min(self.gives_up).min(self.computes_until)
    }

    /// Its next event of any kind, or [`NEVER`].
    #[inline]
    pub fn next<const NETWORK: bool>(&self) -> Ns {
        if !NETWORK {
            return self.gives_up.min(self.computes_until).min(self.resumes_at);
        }
        self.timer().min(self.resumes_at).min(self.arrives[0]).min(self.arrives[1])
    }

    /// Reads a part of each structure to load it into the cache, as [`Path::touch`] does.
    #[inline]
    pub fn touch(&self) -> u64 {
        let path = self.path.as_ref().map_or(0, |path| path.touch());
        let ends = match &self.transport {
            Transport::Stream(ends) => ends[0].touch() ^ ends[1].touch(),
            _ => 0,
        };
        path ^ ends ^ self.planned.0 ^ self.computes_until.0 ^ self.sides[0].cpu.0 ^ self.sides[1].cpu.0
    }

    /// Whether a job counts: if it is this client's, `counted`; if it is an earlier client's of the slot, `began`.
    #[inline]
    pub fn counts(&self, job: &Job, began: bool) -> bool {
        if self.generation == job.generation { self.counted } else { began }
    }

    /// Whether both sides have finished.
    pub fn is_over(&self) -> bool {
        let all = self.plan.steps.len();
        self.sides.iter().all(|progress| usize::from(progress.at) == all && !progress.busy)
    }

    /// Segments that TCP retransmitted.
    pub fn retransmissions(&self) -> u64 {
        match &self.transport {
            Transport::Stream(ends) => ends.iter().map(|end| u64::from(end.retransmissions())).sum(),
            _ => 0,
        }
    }
}
