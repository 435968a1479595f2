//! A client, its connection and the server's end of it: what each side has done of the handshake, and what is on its way.

use crate::datagram::{self, Reaction};
use crate::handshake::{Plan, Step, TransportKind};
use crate::outcome::Cause;
use crate::scenario::Flush;
use crate::server::JobId;
use crate::tcp::{ACK, IP_BYTES, Jiffies, Packet, RST, SYN, State, Tcp, TcpConfig};
use shakedown_link::{Bearer, Direction, Fate, Link, Ns, Path, Payload, Purpose, Stream, Unit};
use std::collections::VecDeque;

/// What a client of the simulation draws numbers for.
pub(crate) const SERVICE: [Purpose; 2] = [Purpose(101), Purpose(102)];
pub(crate) const CLOCK: Purpose = Purpose(103);
pub(crate) const KIND: Purpose = Purpose(104);
pub(crate) const BACKOFF: Purpose = Purpose(105);
pub(crate) const ARRIVAL: Purpose = Purpose(106);
pub(crate) const REPLICATION: Purpose = Purpose(107);

/// A time that does not come.
pub(crate) const NEVER: Ns = Ns::MAX;

/// Something on its way between a client and the server.
#[derive(Clone, Debug)]
pub(crate) struct Parcel {
    pub slot: u32,
    pub generation: u32,
    pub body: Body,
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    Tcp(Lean),
    /// A packet with selective acknowledgements, which are rare.
    Sack(Box<Packet>),
    /// Datagram `index` of a flight.
    Datagram(u16, u16),
    /// So many bytes, on nothing but the link.
    Bytes(u32),
}

impl Payload for Parcel {}

/// A packet without selective acknowledgements, as long as one is on its way: in a storm there are hundreds of thousands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lean {
    flags: u8,
    seq: u32,
    bytes: u32,
    ack: u32,
    stamp: u32,
    echo: u32,
}

impl From<Packet> for Body {
    fn from(packet: Packet) -> Self {
        if packet.blocks > 0 {
            return Self::Sack(Box::new(packet));
        }
        let Packet { flags, seq, bytes, ack, stamp, echo, .. } = packet;
        Self::Tcp(Lean { flags, seq, bytes, ack, stamp, echo })
    }
}

impl From<&Lean> for Packet {
    fn from(lean: &Lean) -> Self {
        let Lean { flags, seq, bytes, ack, stamp, echo } = *lean;
        Self { flags, seq, bytes, ack, stamp, echo, ..Self::default() }
    }
}

/// A side's way through the handshake.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    /// Messages made or processed, those in work included.
    pub at: u16,
    /// Messages up to here were sent, as far as they are its own.
    pub flushed: u16,
    /// It is at work.
    pub busy: bool,
    /// Processor time so far.
    pub cpu: Ns,
    stream: Option<Stream>,
}

/// What carries the connection.
#[derive(Debug)]
pub(crate) enum Transport {
    None,
    Stream(Box<[Tcp; 2]>),
    Datagram(Box<[datagram::Side; 2]>),
    Ideal,
}

/// Whether the server's application knows of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepted {
    No,
    /// It waits in the accept queue.
    Waiting,
    Yes,
    /// The server is through with it.
    Over,
}

/// One client, from its arrival until it is ready and the server through, or until it gives up.
#[derive(Debug)]
pub(crate) struct Client {
    pub slot: u32,
    pub number: u64,
    pub class: u16,
    pub resumes: bool,
    pub counted: bool,
    pub is_active: bool,
    pub generation: u32,
    pub attempt: u32,
    pub planned: Ns,
    /// When the attempt ends for want of time, or [`NEVER`].
    pub gives_up: Ns,
    /// When the next attempt begins, or [`NEVER`].
    pub resumes_at: Ns,
    pub connected: Option<Ns>,
    pub ready: Option<Ns>,
    /// The end of what the client's processor is at, or [`NEVER`].
    pub computes_until: Ns,
    pub job: Option<JobId>,
    pub accepted: Accepted,
    /// Time that its jobs waited for a worker.
    pub waited: Ns,
    /// When something comes to the server and to the client, or [`NEVER`]. This and what follows stands in the path and in
    /// the transport too, which are far away in memory where many are in flight.
    arrives: [Ns; 2],
    /// When the transport of the client and of the server wants to act, or [`NEVER`].
    timers: [Ns; 2],
    /// Bytes that have come to the client and to the server; datagrams are not counted.
    come: [u32; 2],
    /// The sides, the client's first.
    pub sides: [Progress; 2],
    pub transport: Transport,
    pub path: Option<Box<Path<Parcel>>>,
    pub cell: Option<u32>,
    pub clock: Jiffies,
    /// The network layer's header on its bearer.
    pub ip_bytes: u32,
}

pub(crate) fn side(direction: Direction) -> usize {
    usize::from(direction == Direction::Down)
}

/// Totals that a run counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    pub packets: u64,
    pub bytes: [u64; 2],
    pub dropped: [u64; 4],
    pub resent: u64,
}

/// What all clients use in turn.
#[derive(Debug)]
pub(crate) struct Shared<'a> {
    pub seed: u64,
    pub tcp: &'a TcpConfig,
    pub flush: Flush,
    pub server_clock: Jiffies,
    pub cells: Vec<Path<Parcel>>,
    pub traffic: Traffic,
    pub spare: Spare,
    /// Packets that a TCP has just sent.
    pub out: Vec<Packet>,
    /// What is handed over without a link.
    pub instant: VecDeque<(Direction, Parcel)>,
    /// Cells to which something was given.
    pub touched_cells: Vec<u32>,
}

/// What clients that are gone have left, for others to use: in a steady load nothing is allocated, and what is used next
/// was used last.
#[derive(Debug, Default)]
#[allow(clippy::vec_box)] // boxes change hands; to move what is in them would cost what this saves
pub(crate) struct Spare {
    connections: Vec<Box<[Tcp; 2]>>,
    /// By class: paths of different bearers are different.
    paths: Vec<Vec<Box<Path<Parcel>>>>,
}

impl Spare {
    fn connection(&mut self, client: Tcp, server: Tcp) -> Box<[Tcp; 2]> {
        match self.connections.pop() {
            Some(mut ends) => {
                ends[0].replace(client);
                ends[1].replace(server);
                ends
            }
            None => Box::new([client, server]),
        }
    }

    /// A path for a client of a class.
    pub fn path(&mut self, class: u16, bearer: &Bearer, seed: u64, number: u64) -> Box<Path<Parcel>> {
        match self.paths.get_mut(usize::from(class)).and_then(Vec::pop) {
            Some(mut path) => {
                bearer.renew(&mut path, seed, number);
                path
            }
            None => Box::new(bearer.path(seed, number)),
        }
    }

    /// Takes what a client no longer needs.
    pub fn keep_path(&mut self, class: u16, path: Box<Path<Parcel>>) {
        let class = usize::from(class);
        if class >= self.paths.len() {
            self.paths.resize_with(class + 1, Vec::new);
        }
        self.paths[class].push(path);
    }

    /// Takes what carried an attempt.
    pub fn keep(&mut self, transport: Transport) {
        if let Transport::Stream(ends) = transport {
            self.connections.push(ends);
        }
    }
}

/// What a step at a side's processor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    pub takes: Ns,
}

impl Client {
    pub fn new(slot: u32, clock: Jiffies) -> Self {
        Self {
            slot,
            number: 0,
            class: 0,
            resumes: false,
            counted: false,
            is_active: false,
            generation: 0,
            attempt: 0,
            planned: Ns::ZERO,
            gives_up: NEVER,
            resumes_at: NEVER,
            connected: None,
            ready: None,
            computes_until: NEVER,
            job: None,
            accepted: Accepted::No,
            waited: Ns::ZERO,
            arrives: [NEVER; 2],
            timers: [NEVER; 2],
            come: [0; 2],
            sides: [Progress::default(), Progress::default()],
            transport: Transport::None,
            path: None,
            cell: None,
            clock,
            ip_bytes: IP_BYTES,
        }
    }

    /// Begins an attempt.
    pub fn begin(&mut self, now: Ns, plan: &Plan, segment_bytes: u32, shared: &mut Shared<'_>) {
        self.generation = self.generation.wrapping_add(1);
        self.ip_bytes = plan.ip_bytes;
        self.attempt += 1;
        self.resumes_at = NEVER;
        self.connected = None;
        self.computes_until = NEVER;
        self.job = None;
        self.accepted = Accepted::No;
        for progress in &mut self.sides {
            progress.at = 0;
            progress.flushed = 0;
            progress.busy = false;
        }
        self.transport = match plan.transport {
            TransportKind::Ideal => Transport::Ideal,
            TransportKind::Datagram => Transport::Datagram(Box::new([
                datagram::Side::new(Direction::Up, plan),
                datagram::Side::new(Direction::Down, plan),
            ])),
            TransportKind::Stream => {
                let client = Tcp::connect(now, self.clock, segment_bytes, shared.tcp, &mut shared.out);
                let server = Tcp::listen(shared.server_clock, segment_bytes, shared.tcp);
                Transport::Stream(shared.spare.connection(client, server))
            }
        };
        self.come = [0; 2];
        self.look_at_end(0);
        self.look_at_end(1);
        self.send_packets(now, Direction::Up, shared);
        if !matches!(self.transport, Transport::Stream(_)) {
            self.connected = Some(now);
        }
    }

    /// A path for all of its attempts.
    pub fn takes_path(&mut self, path: Option<Box<Path<Parcel>>>) {
        self.path = path;
        self.arrives = [NEVER; 2];
    }

    /// It leaves its path.
    pub fn leaves_path(&mut self) -> Option<Box<Path<Parcel>>> {
        self.arrives = [NEVER; 2];
        self.path.take()
    }

    /// It leaves what carried its attempt.
    pub fn hangs_up(&mut self) -> Transport {
        self.timers = [NEVER; 2];
        std::mem::replace(&mut self.transport, Transport::None)
    }

    /// An end of the transport may have changed.
    #[inline]
    fn look_at_end(&mut self, own: usize) {
        match &self.transport {
            Transport::Stream(ends) => {
                self.timers[own] = ends[own].deadline().unwrap_or(NEVER);
                self.come[own] = ends[own].received();
            }
            Transport::Datagram(sides) => self.timers[own] = sides[own].timer().unwrap_or(NEVER),
            Transport::Ideal | Transport::None => {}
        }
    }

    /// What comes now, if anything is there as a whole.
    #[inline]
    pub fn take(&mut self, now: Ns) -> Option<(Direction, Parcel)> {
        let path = self.path.as_mut()?;
        loop {
            let [up, down] = self.arrives;
            let (due, direction) = if down < up { (down, Direction::Down) } else { (up, Direction::Up) };
            if due > now {
                return None;
            }
            let taken = path.way(direction).take(due);
            self.arrives[side(direction)] = path.due(direction);
            if let Some((_, Unit { payload: Some(parcel), .. })) = taken {
                return Some((direction, parcel));
            }
        }
    }

    /// Puts a parcel on its way.
    fn offer(&mut self, now: Ns, direction: Direction, bytes: u32, body: Body, shared: &mut Shared<'_>) {
        let parcel = Parcel { slot: self.slot, generation: self.generation, body };
        shared.traffic.packets += 1;
        shared.traffic.bytes[side(direction)] += u64::from(bytes);
        let fate = match (&mut self.path, self.cell) {
            (Some(path), _) => {
                let fate = path.offer(direction, now, Unit::new(bytes, parcel));
                self.arrives[side(direction)] = path.due(direction);
                fate
            }
            (None, Some(cell)) => {
                shared.touched_cells.push(cell);
                shared.cells[cell as usize].offer(direction, now, Unit::new(bytes, parcel))
            }
            (None, None) => {
                shared.instant.push_back((direction, parcel));
                Fate::Accepted
            }
        };
        if let Fate::Dropped(cause) = fate {
            shared.traffic.dropped[cause as usize] += 1;
        }
    }

    /// Sends what a TCP has put out.
    fn send_packets(&mut self, now: Ns, direction: Direction, shared: &mut Shared<'_>) {
        for index in 0..shared.out.len() {
            let packet = shared.out[index];
            let bytes = shared.tcp.wire_bytes(&packet) - IP_BYTES + self.ip_bytes;
            self.offer(now, direction, bytes, packet.into(), shared);
        }
        shared.out.clear();
    }

    fn send_datagrams(
        &mut self,
        now: Ns,
        direction: Direction,
        flight: u16,
        which: std::ops::Range<usize>,
        plan: &Plan,
        shared: &mut Shared<'_>,
    ) {
        for index in which {
            let bytes = plan.flights[usize::from(flight)].datagrams[index] + plan.datagram_header_bytes;
            self.offer(now, direction, bytes, Body::Datagram(flight, index as u16), shared);
        }
    }

    fn send_again(&mut self, now: Ns, direction: Direction, plan: &Plan, shared: &mut Shared<'_>) {
        let Transport::Datagram(sides) = &self.transport else { return };
        if let Some(flight) = sides[side(direction)].sent() {
            let count = plan.flights[usize::from(flight)].datagrams.len();
            shared.traffic.resent += count as u64;
            self.send_datagrams(now, direction, flight, 0..count, plan, shared);
        }
    }

    /// Something has arrived. `admits` says whether the server's system takes another connection.
    pub fn deliver(
        &mut self,
        now: Ns,
        direction: Direction,
        parcel: &Parcel,
        plan: &Plan,
        admits: Admits,
        shared: &mut Shared<'_>,
    ) -> Result<(), Cause> {
        if parcel.generation != self.generation || !self.is_active {
            return Ok(());
        }
        let receiver = side(direction.reverse());
        if self.refuses(direction, admits) {
            return Ok(());
        }
        match (&mut self.transport, &parcel.body) {
            (Transport::Ideal, Body::Bytes(bytes)) => {
                self.come[receiver] += bytes;
                Ok(())
            }
            (Transport::Datagram(sides), &Body::Datagram(flight, index)) => {
                let reaction = sides[receiver].receive(flight, index, plan);
                self.look_at_end(receiver);
                if reaction == Reaction::SendAgain {
                    self.send_again(now, direction.reverse(), plan, shared);
                }
                Ok(())
            }
            (Transport::Stream(_), Body::Tcp(packet)) => {
                self.deliver_packet(now, direction, &packet.into(), admits, shared)
            }
            (Transport::Stream(_), Body::Sack(packet)) => {
                self.deliver_packet(now, direction, packet, admits, shared)
            }
            _ => Ok(()),
        }
    }

    fn deliver_packet(
        &mut self,
        now: Ns,
        direction: Direction,
        packet: &Packet,
        admits: Admits,
        shared: &mut Shared<'_>,
    ) -> Result<(), Cause> {
        if direction == Direction::Up {
            self.deliver_to_server(now, packet, admits, shared);
            return Ok(());
        }
        let Transport::Stream(ends) = &mut self.transport else { return Ok(()) };
        ends[0].receive(now, packet, shared.tcp, &mut shared.out);
        let state = ends[0].state();
        self.look_at_end(0);
        self.send_packets(now, Direction::Up, shared);
        match state {
            State::Established if self.connected.is_none() => self.connected = Some(now),
            State::Reset => return Err(Cause::Reset),
            _ => {}
        }
        Ok(())
    }

    /// A datagram for a server that has no room for another handshake is dropped.
    fn refuses(&self, direction: Direction, admits: Admits) -> bool {
        let is_stream = matches!(self.transport, Transport::Stream(_));
        !is_stream && direction == Direction::Up && self.accepted == Accepted::No && !admits.handshake
    }

    fn deliver_to_server(&mut self, now: Ns, packet: &Packet, admits: Admits, shared: &mut Shared<'_>) {
        let clock = shared.server_clock;
        let Transport::Stream(ends) = &mut self.transport else { return };
        match ends[1].state() {
            // A full accept queue: neither a SYN nor the acknowledgement that completes the opening is heard.
            State::Listening | State::SynReceived if !admits.connection => return,
            State::TimedOut | State::Reset if packet.is(SYN) => {
                ends[1] = Tcp::listen(clock, ends[0].segment_bytes(), shared.tcp);
            }
            State::TimedOut => {
                // The server has forgotten it.
                let flags = RST | ACK;
                shared.out.push(Packet { flags, seq: packet.ack, ack: packet.end(), ..Packet::default() });
            }
            _ => {}
        }
        ends[1].receive(now, packet, shared.tcp, &mut shared.out);
        self.look_at_end(1);
        self.send_packets(now, Direction::Down, shared);
    }

    /// True where the server's system has a connection that its application could accept.
    pub fn is_acceptable(&self) -> bool {
        if self.accepted != Accepted::No {
            return false;
        }
        match &self.transport {
            Transport::None => false,
            Transport::Stream(ends) => ends[1].state() == State::Established,
            Transport::Datagram(sides) => sides[1].has(0, 1),
            Transport::Ideal => self.come[1] > 0,
        }
    }

    /// Timers that have run out by now.
    pub fn expire(&mut self, now: Ns, plan: &Plan, shared: &mut Shared<'_>) -> Result<(), Cause> {
        for direction in [Direction::Up, Direction::Down] {
            let own = side(direction);
            if self.timers[own] > now {
                continue;
            }
            match &mut self.transport {
                Transport::Stream(ends) => {
                    let was = ends[own].state();
                    ends[own].timeout(now, shared.tcp, &mut shared.out);
                    let gone = ends[own].state() == State::TimedOut;
                    self.look_at_end(own);
                    self.send_packets(now, direction, shared);
                    if gone && direction == Direction::Up {
                        return Err(if was == State::SynSent { Cause::Connect } else { Cause::Transport });
                    }
                }
                Transport::Datagram(sides) => {
                    let reaction = sides[own].expired(now, plan);
                    self.look_at_end(own);
                    match reaction {
                        Reaction::SendAgain => self.send_again(now, direction, plan, shared),
                        Reaction::GiveUp if direction == Direction::Up => return Err(Cause::Transport),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    #[inline]
    fn has_come(&self, own: usize, step: &Step) -> bool {
        match &self.transport {
            Transport::None => false,
            Transport::Stream(_) | Transport::Ideal => self.come[own] >= step.end,
            Transport::Datagram(sides) => sides[own].has(step.flight, step.datagrams),
        }
    }

    /// True where a side could do something.
    #[inline]
    pub fn has_work(&self, direction: Direction, plan: &Plan) -> bool {
        let own = side(direction);
        let progress = &self.sides[own];
        let may = match direction {
            Direction::Up => self.connected.is_some(),
            Direction::Down => self.accepted == Accepted::Yes,
        };
        let at = progress.at;
        may && !progress.busy
            && plan
                .steps
                .get(usize::from(at))
                .is_some_and(|step| step.from == direction || self.has_come(own, step))
    }

    /// The side's next piece of work, up to where it sends something, becomes ready or has nothing more: how long it
    /// takes. The side is at it until [`finish`](Self::finish).
    pub fn work(
        &mut self,
        now: Ns,
        direction: Direction,
        plan: &Plan,
        shared: &mut Shared<'_>,
    ) -> Option<Work> {
        if !self.has_work(direction, plan) {
            return None;
        }
        let own = side(direction);
        if let Transport::Stream(ends) = &mut self.transport {
            ends[own].read(now, shared.tcp, &mut shared.out);
            if !shared.out.is_empty() {
                self.look_at_end(own);
                self.send_packets(now, direction, shared);
            }
        }
        let mut takes = Ns::ZERO;
        let mut at = usize::from(self.sides[own].at);
        while let Some(step) = plan.steps.get(at) {
            if step.from != direction && !self.has_come(own, step) {
                break;
            }
            let number = self.number;
            let stream = &mut self.sides[own].stream;
            takes += step.constant(direction).unwrap_or_else(|| {
                let of_own = || Stream::of(shared.seed, number, SERVICE[own]);
                step.cost(direction).draw(stream.get_or_insert_with(of_own))
            });
            at += 1;
            let sends = step.from == direction && (step.ends_flight || shared.flush == Flush::Message);
            let is_ready = direction == Direction::Up && at == plan.ready_after;
            if sends || is_ready {
                break;
            }
        }
        let progress = &mut self.sides[own];
        // Of up to 10,000 steps.
        progress.at = at as u16;
        progress.busy = true;
        progress.cpu += takes;
        Some(Work { takes })
    }

    /// The piece of work is done: what it made is sent.
    pub fn finish(&mut self, now: Ns, direction: Direction, plan: &Plan, shared: &mut Shared<'_>) {
        let own = side(direction);
        let progress = &mut self.sides[own];
        progress.busy = false;
        let (from, to) = (usize::from(progress.flushed), usize::from(progress.at));
        progress.flushed = progress.at;
        let made = plan.steps[from..to].iter().filter(|step| step.from == direction);
        match &mut self.transport {
            Transport::Ideal => {
                let bytes: u32 = made.map(|step| step.bytes).sum();
                if bytes > 0 {
                    self.offer(now, direction, bytes, Body::Bytes(bytes), shared);
                }
            }
            Transport::Stream(ends) => {
                let mut bytes: u32 = made.map(|step| step.bytes).sum();
                while bytes > 0 {
                    let write = bytes.min(plan.write_bytes);
                    ends[own].write(now, write, shared.tcp, &mut shared.out);
                    bytes -= write;
                }
                self.look_at_end(own);
                self.send_packets(now, direction, shared);
            }
            Transport::Datagram(_) => self.send_made(now, direction, from, to, plan, shared),
            Transport::None => {}
        }
    }

    /// Sends the datagrams that are complete.
    fn send_made(
        &mut self,
        now: Ns,
        direction: Direction,
        from: usize,
        to: usize,
        plan: &Plan,
        shared: &mut Shared<'_>,
    ) {
        let own = side(direction);
        let mut index = from;
        while index < to {
            let step = &plan.steps[index];
            if step.from != direction {
                index += 1;
                continue;
            }
            let flight = step.flight;
            let first = (index > 0)
                .then(|| &plan.steps[index - 1])
                .filter(|before| before.flight == flight)
                .map_or(0, |before| complete_before(before, step));
            let mut last = index;
            while last + 1 < to && plan.steps[last + 1].flight == flight {
                last += 1;
            }
            let end = &plan.steps[last];
            let next_shares = plan
                .steps
                .get(last + 1)
                .is_some_and(|next| next.flight == flight && next.datagrams == end.datagrams);
            let complete = usize::from(end.datagrams) - usize::from(next_shares);
            self.send_datagrams(now, direction, flight, first..complete.max(first), plan, shared);
            if end.ends_flight
                && let Transport::Datagram(sides) = &mut self.transport
            {
                sides[own].flight_sent(now, flight, plan);
                for _ in 0..sides[own].take_waiting() {
                    self.send_again(now, direction, plan, shared);
                }
                self.look_at_end(own);
            }
            index = last + 1;
        }
    }

    /// When its own patience, processor or transport wants to act next, or [`NEVER`].
    #[inline]
    pub fn timer(&self) -> Ns {
        self.timers[0].min(self.timers[1]).min(self.gives_up).min(self.computes_until)
    }

    /// When anything of it wants to act next, or [`NEVER`].
    #[inline]
    pub fn next(&self) -> Ns {
        self.timer().min(self.resumes_at).min(self.arrives[0]).min(self.arrives[1])
    }

    /// Reads a little of everything, as [`Path::touch`] does.
    #[inline]
    pub fn touch(&self) -> u64 {
        let path = self.path.as_ref().map_or(0, |path| path.touch());
        let ends = match &self.transport {
            Transport::Stream(ends) => ends[0].touch() ^ ends[1].touch(),
            _ => 0,
        };
        path ^ ends ^ self.planned.0 ^ self.computes_until.0 ^ self.sides[0].cpu.0 ^ self.sides[1].cpu.0
    }

    /// True where both sides are through.
    pub fn is_over(&self, plan: &Plan) -> bool {
        let all = plan.steps.len();
        self.sides.iter().all(|progress| usize::from(progress.at) == all && !progress.busy)
    }

    /// Segments that TCP sent again.
    pub fn retransmissions(&self) -> u64 {
        match &self.transport {
            Transport::Stream(ends) => ends.iter().map(|end| u64::from(end.retransmissions())).sum(),
            _ => 0,
        }
    }
}

/// Datagrams of a flight that went out before `step` was made: a datagram that both share did not.
fn complete_before(before: &crate::handshake::Step, step: &crate::handshake::Step) -> usize {
    let shares = before.datagrams == step.datagrams;
    usize::from(before.datagrams) - usize::from(shares)
}

/// What the server has room for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admits {
    /// In its system.
    pub connection: bool,
    /// In its application.
    pub handshake: bool,
}
