//! A TCP connection over a bearer in virtual time, with the bytes that it carries.

use shakedown_link::{Bearer, Direction, Ns, Path, RadioTimes, Unit};
use shakedown_sim::tcp::{Jiffies, Packet, State, Tcp, TcpConfig};
use std::collections::VecDeque;

/// Both ends, and what lies between.
pub struct Wire {
    ends: [Tcp; 2],
    path: Path<Packet>,
    config: TcpConfig,
    packets: Vec<Packet>,
    bytes: [VecDeque<u8>; 2],
    taken: [u32; 2],
}

/// Index of the end that sends in a direction.
fn sender(direction: Direction) -> usize {
    usize::from(direction == Direction::Down)
}

impl Wire {
    /// A connection that the client begins to open.
    pub fn connect(bearer: &Bearer, config: TcpConfig, seed: u64, entity: u64, now: Ns) -> Self {
        let segment = config.segment_bytes(bearer.mtu_bytes());
        let clock = Jiffies::new(config.hz, Ns(entity % 4_000_000));
        let mut packets = Vec::new();
        let client = Tcp::connect(now, clock, segment, &config, &mut packets);
        let server = Tcp::listen(clock, segment, &config);
        let mut wire = Self {
            ends: [client, server],
            path: bearer.path(seed, entity),
            config,
            packets,
            bytes: Default::default(),
            taken: [0; 2],
        };
        wire.flush(Direction::Up, now);
        wire
    }

    fn flush(&mut self, direction: Direction, now: Ns) {
        for packet in self.packets.drain(..) {
            let unit = Unit::new(self.config.wire_bytes(&packet), packet);
            // What is dropped, TCP will miss.
            let _ = self.path.offer(direction, now, unit);
        }
    }

    /// True once the client knows that the server is there.
    pub fn is_open(&self) -> bool {
        self.ends[0].state() == State::Established
    }

    /// True where an end has given the connection up.
    pub fn is_lost(&self) -> bool {
        self.ends.iter().any(|end| matches!(end.state(), State::TimedOut | State::Reset))
    }

    /// Writes to the stream of one direction.
    pub fn write(&mut self, direction: Direction, now: Ns, bytes: &[u8]) {
        let end = sender(direction);
        self.bytes[end].extend(bytes);
        let count = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.ends[end].write(now, count, &self.config, &mut self.packets);
        self.flush(direction, now);
    }

    /// When something happens next, if ever.
    pub fn next(&self) -> Option<Ns> {
        let packet = self.path.next().map(|next| next.0);
        [packet, self.ends[0].deadline(), self.ends[1].deadline()].into_iter().flatten().min()
    }

    /// What is due happens: one packet, and timers.
    pub fn advance(&mut self, now: Ns) {
        if let Some((_, direction, unit)) = self.path.take(now)
            && let Some(packet) = unit.payload
        {
            let end = &mut self.ends[1 - sender(direction)];
            end.receive(now, &packet, &self.config, &mut self.packets);
            end.read(now, &self.config, &mut self.packets);
            self.flush(direction.reverse(), now);
        }
        for direction in [Direction::Up, Direction::Down] {
            let end = &mut self.ends[sender(direction)];
            if end.deadline().is_some_and(|due| due <= now) {
                end.timeout(now, &self.config, &mut self.packets);
                self.flush(direction, now);
            }
        }
    }

    /// What has arrived in order from a direction and was not asked for before.
    pub fn arrived(&mut self, direction: Direction) -> Vec<u8> {
        let from = sender(direction);
        let received = self.ends[1 - from].received();
        let count = received.saturating_sub(self.taken[from]) as usize;
        self.taken[from] = received;
        let held = self.bytes[from].len();
        self.bytes[from].drain(..count.min(held)).collect()
    }

    /// Segments that were sent again.
    pub fn retransmissions(&self) -> u32 {
        self.ends.iter().map(Tcp::retransmissions).sum()
    }

    /// What the client's radio did.
    pub fn radio(&self, from: Ns, until: Ns) -> RadioTimes {
        self.path.times(from, until)
    }
}
