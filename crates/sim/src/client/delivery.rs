//! Packets between a client and the server's end of its connection, and the timers of retransmissions.

use super::{Accepted, Body, Client, InFlight, Place, Shared, Transport, side};
use crate::access::Decision;
use crate::datagram::Reaction;
use crate::outcome::Cause;
use crate::server::Admits;
use crate::tcp::{ACK, IP_BYTES, Packet, RST, SYN, State, Tcp};
use shakedown_link::{Direction, Drop, Fate, Link, Ns, Unit};

impl Client<'_> {
    /// The next packet that has arrived, if there is one.
    #[inline]
    pub fn take(&mut self, now: Ns) -> Option<(Direction, InFlight)> {
        let path = self.path.as_mut()?;
        loop {
            let [up, down] = self.arrives;
            let (due, direction) = if down < up { (down, Direction::Down) } else { (up, Direction::Up) };
            if due > now {
                return None;
            }
            let taken = path.way(direction).take(due);
            self.arrives[side(direction)] = path.due(direction);
            if let Some((_, Unit { payload: Some(in_flight), .. })) = taken {
                return Some((direction, in_flight));
            }
        }
    }

    /// Delivers a packet without a link.
    fn hand_over(&mut self, direction: Direction, bytes: u32, body: Body, shared: &mut Shared<'_>) {
        let in_flight = InFlight { slot: self.slot, generation: self.generation, body };
        shared.traffic.packets += 1;
        shared.traffic.bytes[side(direction)] += u64::from(bytes);
        shared.instant.push_back((direction, in_flight));
    }

    /// Sends a packet.
    ///
    /// Inlined from the construction of the packet to its entry in the list of packets in flight: a packet that is
    /// built in memory and then copied would stall the processor.
    #[inline(always)]
    fn put(&mut self, now: Ns, direction: Direction, bytes: u32, body: Body, shared: &mut Shared<'_>) {
        if self.cell.is_some() {
            self.contend(now, direction, bytes, body, shared);
            return;
        }
        let Some(path) = &mut self.path else {
            self.hand_over(direction, bytes, body, shared);
            return;
        };
        let in_flight = InFlight { slot: self.slot, generation: self.generation, body };
        shared.traffic.packets += 1;
        shared.traffic.bytes[side(direction)] += u64::from(bytes);
        let fate = path.offer(direction, now, Unit::new(bytes, in_flight));
        self.arrives[side(direction)] = path.due(direction);
        if let Fate::Dropped(cause) = fate {
            shared.traffic.dropped[cause as usize] += 1;
        }
    }

    /// Sends a packet.
    pub(super) fn offer(
        &mut self,
        now: Ns,
        direction: Direction,
        bytes: u32,
        body: Body,
        shared: &mut Shared<'_>,
    ) {
        self.put(now, direction, bytes, body, shared);
    }

    /// Sends a packet through the cell.
    #[inline(never)]
    fn contend(&mut self, now: Ns, direction: Direction, bytes: u32, body: Body, shared: &mut Shared<'_>) {
        let Some(at) = self.at(shared.classes) else { return };
        shared.traffic.packets += 1;
        shared.traffic.bytes[side(direction)] += u64::from(bytes);
        let in_flight = InFlight { slot: self.slot, generation: self.generation, body };
        if !self.member.send(now, at, (direction, bytes, in_flight), &mut shared.cells) {
            shared.traffic.dropped[Drop::QueueFull as usize] += 1;
        }
    }

    /// Applies the decision of its cell.
    pub fn apply(&mut self, now: Ns, decision: Decision<InFlight>, shared: &mut Shared<'_>) {
        let Some(at) = self.at(shared.classes) else { return };
        let Some(path) = &mut self.path else { return };
        let unsent = self.member.apply(now, at, decision, path, &mut shared.cells);
        self.arrives = [path.due(Direction::Up), path.due(Direction::Down)];
        shared.traffic.uncrossed += unsent.uncrossed;
        if let Some(cause) = unsent.dropped {
            shared.traffic.dropped[cause as usize] += 1;
        }
    }

    /// Sends the packets that a TCP has put out.
    pub(super) fn send_packets(&mut self, now: Ns, direction: Direction, shared: &mut Shared<'_>) {
        let mut out = std::mem::take(&mut shared.out);
        for packet in &out {
            let (bytes, segments) = (shared.tcp.wire_bytes(packet), packet.segments());
            let bytes = bytes - segments * IP_BYTES + segments * self.ip_bytes;
            self.put(now, direction, bytes, packet.into(), shared);
        }
        out.clear();
        shared.out = out;
    }

    pub(super) fn send_datagrams(
        &mut self,
        now: Ns,
        direction: Direction,
        flight: u16,
        which: std::ops::Range<usize>,
        shared: &mut Shared<'_>,
    ) {
        let plan = self.plan;
        for index in which {
            let bytes = plan.flights[usize::from(flight)].datagrams[index] + plan.datagram_header_bytes;
            self.offer(now, direction, bytes, Body::Datagram(Place { flight, index: index as u16 }), shared);
        }
    }

    pub(super) fn send_again(&mut self, now: Ns, direction: Direction, shared: &mut Shared<'_>) {
        let Transport::Datagram(sides) = &self.transport else { return };
        if let Some(flight) = sides[side(direction)].sent() {
            let count = self.plan.flights[usize::from(flight)].datagrams.len();
            shared.traffic.resent += count as u64;
            self.send_datagrams(now, direction, flight, 0..count, shared);
        }
    }

    /// Delivers a packet. `admits`: whether the server has room for a connection or a handshake.
    pub fn deliver<const NETWORK: bool>(
        &mut self,
        now: Ns,
        direction: Direction,
        in_flight: &InFlight,
        admits: Admits,
        shared: &mut Shared<'_>,
    ) -> Result<(), Cause> {
        if in_flight.generation != self.generation || !self.is_active {
            return Ok(());
        }
        let receiver = side(direction.reverse());
        if self.refuses::<NETWORK>(direction, admits) {
            shared.traffic.ignored += 1;
            return Ok(());
        }
        if !NETWORK {
            if let Body::Bytes(bytes) = in_flight.body {
                self.received_bytes[receiver] += bytes;
            }
            return Ok(());
        }
        match (&mut self.transport, &in_flight.body) {
            (Transport::Ideal, Body::Bytes(bytes)) => {
                self.received_bytes[receiver] += bytes;
                Ok(())
            }
            (Transport::Datagram(sides), &Body::Datagram(Place { flight, index })) => {
                let reaction = sides[receiver].receive(flight, index, self.plan);
                self.refresh_end(receiver);
                if reaction == Reaction::SendAgain {
                    self.send_again(now, direction.reverse(), shared);
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
        self.refresh_end(0);
        self.send_packets(now, Direction::Up, shared);
        match state {
            State::Established if self.connected.is_none() => self.connected = Some(now),
            State::Reset if self.connected.is_none() => return Err(Cause::Refused),
            State::Reset => return Err(Cause::Reset),
            _ => {}
        }
        Ok(())
    }

    /// True if this packet begins a connection, and the server has room for it.
    pub fn opens(&self, in_flight: &InFlight, admits: Admits) -> bool {
        match &self.transport {
            Transport::Stream(ends) => {
                let is_new = matches!(ends[1].state(), State::Listening | State::TimedOut | State::Reset);
                is_new && in_flight.body.is_syn() && admits.connection
            }
            _ => self.accepted == Accepted::No && admits.handshake,
        }
    }

    /// The server answers a SYN by a reset.
    pub fn is_reset(&mut self, now: Ns, shared: &mut Shared<'_>) {
        shared.out.push(Packet { flags: RST | ACK, ack: 1, ..Packet::default() });
        self.send_packets(now, Direction::Down, shared);
    }

    /// A datagram for a server that has no room for another handshake is dropped.
    #[inline]
    fn refuses<const NETWORK: bool>(&self, direction: Direction, admits: Admits) -> bool {
        let is_stream = NETWORK && matches!(self.transport, Transport::Stream(_));
        !is_stream && direction == Direction::Up && self.accepted == Accepted::No && !admits.handshake
    }

    fn deliver_to_server(&mut self, now: Ns, packet: &Packet, admits: Admits, shared: &mut Shared<'_>) {
        let clock = shared.server_clock;
        let Transport::Stream(ends) = &mut self.transport else { return };
        match ends[1].state() {
            // A full accept queue: the SYN, and the acknowledgement that completes the opening, are ignored.
            State::Listening | State::SynReceived if !admits.connection => {
                shared.traffic.ignored += 1;
                return;
            }
            State::TimedOut | State::Reset if packet.is(SYN) => {
                let (segment_bytes, super_packets) = (ends[0].segment_bytes(), ends[0].super_packets());
                ends[1] = Tcp::listen(clock, segment_bytes, shared.tcp).with_super_packets(super_packets);
            }
            State::TimedOut => {
                // The server no longer knows the connection.
                let flags = RST | ACK;
                shared.out.push(Packet { flags, seq: packet.ack, ack: packet.end(), ..Packet::default() });
            }
            _ => {}
        }
        ends[1].receive(now, packet, shared.tcp, &mut shared.out);
        self.refresh_end(1);
        self.send_packets(now, Direction::Down, shared);
    }

    /// Handles the timers that have expired.
    pub fn expire(&mut self, now: Ns, shared: &mut Shared<'_>) -> Result<(), Cause> {
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
                    self.refresh_end(own);
                    self.send_packets(now, direction, shared);
                    if gone && direction == Direction::Up {
                        return Err(if was == State::SynSent { Cause::Connect } else { Cause::Transport });
                    }
                }
                Transport::Datagram(sides) => {
                    let reaction = sides[own].expired(now, self.plan);
                    self.refresh_end(own);
                    match reaction {
                        Reaction::SendAgain => self.send_again(now, direction, shared),
                        Reaction::GiveUp if direction == Direction::Up => return Err(Cause::Transport),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}
