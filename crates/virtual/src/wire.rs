//! The transport of a connection: simulated TCP, or datagrams, over one path.

use shakedown_link::{BearerSpec, Direction, Drop, Fate, Ns, Path, Payload, RadioTimes, SuperPackets, Unit};
use shakedown_sim::access::{At, Cells, Member};
use shakedown_sim::outcome::Cause;
use shakedown_sim::tcp::{ACK, IP_BYTES, Jiffies, Packet, RST, SYN, State, Tcp, TcpConfig};
use shakedown_sim::written;
use shakedown_trace::Side;
use shakedown_trace::endpoint::Transport;
use std::collections::VecDeque;
use std::rc::Rc;

/// Properties of hosts and headers; the same for all clients.
#[derive(Clone, Debug)]
pub struct Hosts {
    tcp: TcpConfig,
    segment_bytes: u32,
    ip_bytes: u32,
    /// IP and UDP headers.
    datagram_header_bytes: u32,
    /// The buffer through which a stream is written.
    write_bytes: u32,
    super_packets: SuperPackets,
    /// All connections of a server share one clock.
    pub server_clock: Jiffies,
}

impl Hosts {
    /// The settings of both sides of a bearer. Without a write size, everything that is sent at once is one write.
    pub fn of(bearer: &BearerSpec, tcp: TcpConfig, write_bytes: Option<u32>, server_clock: Jiffies) -> Self {
        Self {
            tcp,
            segment_bytes: tcp.segment_bytes(bearer.mtu_bytes),
            ip_bytes: bearer.ip_bytes,
            datagram_header_bytes: bearer.ip_bytes + bearer.udp_bytes,
            write_bytes: write_bytes.unwrap_or(u32::MAX),
            super_packets: bearer.super_packets,
            server_clock,
        }
    }
}

/// A packet in flight. Links need only its length, so nothing is copied, and fragments share one buffer.
#[derive(Clone, Debug)]
pub struct InFlight {
    attempt: u32,
    body: Body,
}

#[derive(Clone, Debug)]
enum Body {
    Segment(Packet),
    Datagram(Rc<[u8]>),
}

impl Payload for InFlight {
    fn is_super_packet(&self) -> bool {
        matches!(&self.body, Body::Segment(packet) if packet.is_super_packet())
    }
}

/// Packets and bytes, IP headers included.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traffic {
    /// Packets offered to the path.
    pub packets: u64,
    /// Their bytes, by sender.
    pub bytes: [u64; 2],
    /// Packets dropped, by cause.
    pub dropped: [u64; 4],
    /// Retransmitted segments or datagrams; segments are counted at the end of their connection.
    pub resent: u64,
}

/// The two ends of a stream, and its bytes: the simulated TCP only counts them.
struct Stream {
    ends: [Tcp; 2],
    /// All bytes that each side has written.
    written: [Vec<u8>; 2],
    /// The number of the peer's bytes that each side has read.
    read: [usize; 2],
}

enum Carriage {
    None,
    Stream(Box<Stream>),
    /// Datagrams that have arrived at each side, and those that each has sent.
    Datagrams {
        arrived: [VecDeque<Rc<[u8]>>; 2],
        sent: [Vec<Rc<[u8]>>; 2],
    },
}

/// A path and its transport.
pub struct Wire {
    path: Path<InFlight>,
    carriage: Carriage,
    /// Packets of earlier attempts are ignored.
    attempt: u32,
    /// Packets that a TCP has just generated.
    out: Vec<Packet>,
    pub traffic: Traffic,
    /// Packets that must cross a cell before the path; `None` without a cell.
    contending: Option<Vec<(Direction, u32, InFlight)>>,
}

fn direction(from: Side) -> Direction {
    match from {
        Side::Client => Direction::Up,
        Side::Server => Direction::Down,
    }
}

impl Wire {
    pub fn new(path: Path<InFlight>) -> Self {
        let traffic = Traffic::default();
        Self { path, carriage: Carriage::None, attempt: 0, out: Vec::new(), traffic, contending: None }
    }

    /// Packets wait until [`contend`](Self::contend) passes them to a cell.
    pub(crate) fn crosses_cell(&mut self) {
        self.contending = Some(Vec::new());
    }

    /// Passes the waiting packets to a client's cell.
    pub(crate) fn contend(&mut self, now: Ns, member: &mut Member, at: At<'_>, cells: &mut Cells<InFlight>) {
        for packet in self.contending.iter_mut().flat_map(|packets| packets.drain(..)) {
            if !member.send(now, at, packet, cells) {
                self.traffic.dropped[Drop::QueueFull as usize] += 1;
            }
        }
    }

    /// The path that follows the cell.
    pub(crate) fn path(&mut self) -> &mut Path<InFlight> {
        &mut self.path
    }

    /// Begins a connection; over TCP with a SYN.
    pub fn open(&mut self, now: Ns, transport: Transport, clock: Jiffies, hosts: &Hosts) {
        self.attempt += 1;
        self.carriage = match transport {
            Transport::Datagram => {
                Carriage::Datagrams { arrived: Default::default(), sent: Default::default() }
            }
            Transport::Stream => {
                let client = Tcp::connect(now, clock, hosts.segment_bytes, &hosts.tcp, &mut self.out);
                let server = Tcp::listen(hosts.server_clock, hosts.segment_bytes, &hosts.tcp);
                let (written, read) = Default::default();
                let ends = [client, server].map(|end| end.with_super_packets(hosts.super_packets));
                Carriage::Stream(Box::new(Stream { ends, written, read }))
            }
        };
        self.flush(now, Side::Client, hosts);
    }

    /// Ends the connection without notifying the peer.
    pub fn abandon(&mut self) {
        if let Carriage::Stream(stream) = &self.carriage {
            let resent: u64 = stream.ends.iter().map(|end| u64::from(end.retransmissions())).sum();
            self.traffic.resent += resent;
        }
        self.carriage = Carriage::None;
    }

    fn offer(&mut self, now: Ns, from: Side, bytes: u32, body: Body) {
        self.traffic.packets += 1;
        self.traffic.bytes[from as usize] += u64::from(bytes);
        let in_flight = InFlight { attempt: self.attempt, body };
        if let Some(contending) = &mut self.contending {
            contending.push((direction(from), bytes, in_flight));
            return;
        }
        if let Fate::Dropped(cause) = self.path.offer(direction(from), now, Unit::new(bytes, in_flight)) {
            self.traffic.dropped[cause as usize] += 1;
        }
    }

    /// Sends the packets that a TCP has generated.
    fn flush(&mut self, now: Ns, from: Side, hosts: &Hosts) {
        let mut out = std::mem::take(&mut self.out);
        for packet in out.drain(..) {
            let (bytes, segments) = (hosts.tcp.wire_bytes(&packet), packet.segments());
            let bytes = bytes - segments * IP_BYTES + segments * hosts.ip_bytes;
            self.offer(now, from, bytes, Body::Segment(packet));
        }
        self.out = out;
    }

    /// Sends a unit of an endpoint: bytes of the stream, or a datagram.
    pub fn send(&mut self, now: Ns, from: Side, unit: Vec<u8>, hosts: &Hosts) {
        match &mut self.carriage {
            Carriage::None => {}
            Carriage::Stream(stream) => {
                written(records(&unit), hosts.write_bytes, |bytes| {
                    stream.ends[from as usize].write(now, bytes, &hosts.tcp, &mut self.out);
                });
                stream.written[from as usize].extend_from_slice(&unit);
                self.flush(now, from, hosts);
            }
            Carriage::Datagrams { sent, .. } => {
                let unit: Rc<[u8]> = unit.into();
                let sent = &mut sent[from as usize];
                if sent.contains(&unit) {
                    self.traffic.resent += 1;
                } else {
                    sent.push(Rc::clone(&unit));
                }
                let bytes = u32::try_from(unit.len()).unwrap_or(u32::MAX) + hosts.datagram_header_bytes;
                self.offer(now, from, bytes, Body::Datagram(unit));
            }
        }
    }

    /// Delivers the next packet that is due, if any.
    ///
    /// # Errors
    /// [`Cause::Reset`] if the server's TCP has rejected the client's connection.
    pub fn deliver(&mut self, now: Ns, hosts: &Hosts) -> Result<bool, Cause> {
        let Some((_, direction, unit)) = self.path.take(now) else { return Ok(false) };
        let Some(in_flight) = unit.payload.filter(|in_flight| in_flight.attempt == self.attempt) else {
            return Ok(true);
        };
        let to = if direction == Direction::Up { Side::Server } else { Side::Client };
        match (&mut self.carriage, in_flight.body) {
            (Carriage::Datagrams { arrived, .. }, Body::Datagram(unit)) => {
                arrived[to as usize].push_back(unit)
            }
            (Carriage::Stream(stream), Body::Segment(packet)) => {
                if to == Side::Server {
                    stream.wake_server(&packet, hosts, &mut self.out);
                }
                let end = &mut stream.ends[to as usize];
                end.receive(now, &packet, &hosts.tcp, &mut self.out);
                let is_reset = to == Side::Client && end.state() == State::Reset;
                self.flush(now, to, hosts);
                if is_reset {
                    return Err(Cause::Reset);
                }
            }
            _ => {}
        }
        Ok(true)
    }

    /// Runs the transport's expired timers; false if there were none.
    ///
    /// # Errors
    /// [`Cause`] if the client's TCP abandons the connection.
    pub fn expire(&mut self, now: Ns, hosts: &Hosts) -> Result<bool, Cause> {
        let mut any = false;
        for side in Side::BOTH {
            let Carriage::Stream(stream) = &mut self.carriage else { break };
            let end = &mut stream.ends[side as usize];
            if end.deadline().is_none_or(|due| due > now) {
                continue;
            }
            any = true;
            let was = end.state();
            end.timeout(now, &hosts.tcp, &mut self.out);
            let is_over = end.state() == State::TimedOut && side == Side::Client;
            self.flush(now, side, hosts);
            if is_over {
                return Err(if was == State::SynSent { Cause::Connect } else { Cause::Transport });
            }
        }
        Ok(any)
    }

    /// True if a side can send and receive.
    pub fn is_open(&self, side: Side) -> bool {
        match &self.carriage {
            Carriage::None => false,
            Carriage::Stream(stream) => stream.ends[side as usize].state() == State::Established,
            Carriage::Datagrams { .. } => true,
        }
    }

    /// True if a side has unread input.
    pub fn has_input(&self, side: Side) -> bool {
        match &self.carriage {
            Carriage::None => false,
            Carriage::Stream(stream) => stream.has_come(side) > stream.read[side as usize],
            Carriage::Datagrams { arrived, .. } => !arrived[side as usize].is_empty(),
        }
    }

    /// All unread input of a side: one chunk of the stream, or datagrams.
    pub fn read(&mut self, now: Ns, side: Side, hosts: &Hosts) -> Vec<Rc<[u8]>> {
        match &mut self.carriage {
            Carriage::None => Vec::new(),
            Carriage::Datagrams { arrived, .. } => arrived[side as usize].drain(..).collect(),
            Carriage::Stream(stream) => {
                let place = side as usize;
                let come = stream.has_come(side);
                let chunk: Rc<[u8]> = stream.written[side.peer() as usize][stream.read[place]..come].into();
                stream.read[place] = come;
                stream.ends[place].read(now, &hosts.tcp, &mut self.out);
                self.flush(now, side, hosts);
                if chunk.is_empty() { Vec::new() } else { vec![chunk] }
            }
        }
    }

    /// The time of its next event.
    pub fn next(&self) -> Option<Ns> {
        let arrival = self.path.next().map(|(due, _)| due);
        let timers = match &self.carriage {
            Carriage::Stream(stream) => [stream.ends[0].deadline(), stream.ends[1].deadline()],
            _ => [None, None],
        };
        [arrival, timers[0], timers[1]].into_iter().flatten().min()
    }

    /// The time that the client's radio spent in each state.
    pub fn radio(&self, from: Ns, until: Ns) -> RadioTimes {
        self.path.times(from, until)
    }
}

/// The lengths of the records in bytes of a stream; bytes that are not a record count as one.
fn records(mut bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    std::iter::from_fn(move || {
        let length = match bytes {
            [] => return None,
            [_, _, _, high, low, ..] => 5 + usize::from(u16::from_be_bytes([*high, *low])),
            _ => bytes.len(),
        };
        let (record, rest) = bytes.split_at(length.min(bytes.len()));
        bytes = rest;
        Some(u32::try_from(record.len()).unwrap_or(u32::MAX))
    })
}

impl Stream {
    /// The number of the peer's bytes that a side has received in order.
    fn has_come(&self, side: Side) -> usize {
        self.ends[side as usize].received() as usize
    }

    /// If the server has abandoned the connection, a SYN opens a new one; any other segment is answered with a reset.
    fn wake_server(&mut self, packet: &Packet, hosts: &Hosts, out: &mut Vec<Packet>) {
        match self.ends[1].state() {
            State::TimedOut | State::Reset if packet.is(SYN) => {
                let segment_bytes = self.ends[0].segment_bytes();
                self.ends[1] = Tcp::listen(hosts.server_clock, segment_bytes, &hosts.tcp)
                    .with_super_packets(hosts.super_packets);
            }
            State::TimedOut => {
                let flags = RST | ACK;
                out.push(Packet { flags, seq: packet.ack, ack: packet.end(), ..Packet::default() });
            }
            _ => {}
        }
    }
}
