//! The bearer's loop: it reads packets from one TUN device, passes them through the links and writes them to the other.

use super::BearerRunError;
use super::end::{CLIENT, GATEWAY, SocketKind};
use super::packet::{LinkPlan, Offered, PacketLink};
use super::pcap::{LinkType, PcapWriter};
use super::{probe, sys};
use serde::Serialize;
use shakedown_link::{Direction, Drop as Cause, Fate, LinkEncryption, Ns};
use shakedown_sim::histogram::Histogram;
use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

/// Packet counts of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub offered: u64,
    /// Handed to the receiver's kernel, copies included.
    pub delivered: u64,
    /// Bytes delivered, counted as network-layer packets.
    pub delivered_bytes: u64,
    pub lost: u64,
    pub queue_full: u64,
    /// Dropped for another reason: too long, unencryptable, no memory, not IPv4.
    pub other_drops: u64,
    pub duplicated: u64,
    /// Frames that failed the integrity check of decryption.
    pub rejected: u64,
}

/// How much later than their due times packets were delivered, in seconds: the emulator's timing error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Lateness {
    pub mean_s: f64,
    pub p50_s: f64,
    /// `None` if there were too few packets.
    pub p99_s: Option<f64>,
    pub max_s: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    pub up: Counts,
    pub down: Counts,
    pub lateness: Lateness,
    /// Key of the link encryption in hexadecimal, as Wireshark expects it (key type `wep` or `tk`).
    pub key: Option<String>,
}

pub(super) struct Emulator {
    link: PacketLink,
    tuns: [OwnedFd; 2],
    epoch_ns: u64,
    counts: [Counts; 2],
    lateness: Histogram,
    pcap: Option<(PcapWriter, PathBuf)>,
    buffer: Vec<u8>,
    ports: Ports,
    /// Times of probes, if they are logged.
    pub(super) log: Option<ProbeLog>,
}

/// Times at which probes were offered and due at the far end (ns, monotonic clock), by direction and number.
#[derive(Debug, Default)]
pub(super) struct ProbeLog {
    pub(super) offered_ns: HashMap<(Direction, u64), u64>,
    pub(super) due_ns: HashMap<(Direction, u64), u64>,
}

/// Called with the gateway port of each TCP connection that the client opens and of each UDP datagram, before delivery.
pub(super) type Ports = Option<Box<dyn FnMut(SocketKind, u16) + Send>>;

/// Maximum number of packets read from a device before due packets are delivered.
const READS_AT_ONCE: usize = 32;

/// A wait ends this long before the next due time, then the loop polls: a sleeping thread wakes 50 to 200 us late.
const POLL_BEFORE_NS: u64 = 200_000;

/// Size of the read buffer; an IPv4 packet has at most 65 535 bytes.
const MAX_PACKET_BYTES: usize = 65_536;

const DIRECTIONS: [Direction; 2] = [Direction::Up, Direction::Down];

impl Emulator {
    /// Connects the client's and the gateway's device. `pcap`: path of the capture, and whether it may replace a file.
    pub(super) fn new(
        plan: &LinkPlan,
        tuns: [OwnedFd; 2],
        pcap: Option<(&Path, bool)>,
        ports: Ports,
    ) -> Result<Self, BearerRunError> {
        let link = PacketLink::new(plan, pcap.is_some())?;
        let kind = match plan.bearer.link_encryption {
            LinkEncryption::None => LinkType::RawIp,
            LinkEncryption::Wep | LinkEncryption::Ccmp => LinkType::Ieee80211,
        };
        let pcap = pcap.map(|(path, replace)| match PcapWriter::create(path, replace, kind) {
            Ok(writer) => Ok((writer, path.to_owned())),
            Err(error) => Err(BearerRunError::Pcap { path: path.to_owned(), error }),
        });
        Ok(Self {
            link,
            tuns,
            epoch_ns: sys::monotonic_ns(),
            counts: [Counts::default(); 2],
            lateness: Histogram::default(),
            pcap: pcap.transpose()?,
            buffer: vec![0; MAX_PACKET_BYTES],
            ports,
            log: None,
        })
    }

    fn now(&self) -> Ns {
        Ns(sys::monotonic_ns() - self.epoch_ns)
    }

    /// Carries packets until one of `others` is readable (true) or `until_ns` on the monotonic clock is reached
    /// (false).
    pub(super) fn carry(&mut self, others: &[RawFd], until_ns: Option<u64>) -> Result<bool, BearerRunError> {
        let mut entries: Vec<libc::pollfd> = self
            .tuns
            .iter()
            .map(AsRawFd::as_raw_fd)
            .chain(others.iter().copied())
            .map(sys::readable)
            .collect();
        loop {
            self.deliver()?;
            let now_ns = sys::monotonic_ns();
            let due_ns = self.link.next().map(|due| due.0 + self.epoch_ns);
            let wake_ns = match (due_ns.map(|due| due.saturating_sub(POLL_BEFORE_NS)), until_ns) {
                (Some(due), Some(until)) => Some(due.min(until)),
                (due, until) => due.or(until),
            };
            let ready = sys::poll(&mut entries, wake_ns.map(|wake| wake.saturating_sub(now_ns)))?;
            if ready {
                for direction in DIRECTIONS {
                    if entries[direction as usize].revents != 0 {
                        self.collect(direction)?;
                    }
                }
                if entries[2..].iter().any(|entry| entry.revents != 0) {
                    return Ok(true);
                }
            }
            if until_ns.is_some_and(|until| sys::monotonic_ns() >= until) {
                return Ok(false);
            }
        }
    }

    /// Reads packets that a kernel sends and offers them to the links.
    fn collect(&mut self, direction: Direction) -> Result<(), BearerRunError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        for _ in 0..READS_AT_ONCE {
            let Some(got) = sys::read(self.tuns[direction as usize].as_fd(), &mut buffer) else { break };
            self.offer(direction, &buffer[..got])?;
        }
        self.buffer = buffer;
        Ok(())
    }

    fn offer(&mut self, direction: Direction, packet: &[u8]) -> Result<(), BearerRunError> {
        let at = self.now();
        let counts = &mut self.counts[direction as usize];
        counts.offered += 1;
        if packet.first().is_none_or(|first| first >> 4 != 4) {
            counts.other_drops += 1;
            return Ok(());
        }
        if let (Some(log), Some(probe)) = (&mut self.log, probe::identify(packet)) {
            log.offered_ns.insert((direction, probe), at.0 + self.epoch_ns);
        }
        let counts = &mut self.counts[direction as usize];
        match self.link.offer(direction, at, packet) {
            Offered::NoMemory => counts.other_drops += 1,
            Offered::Link(Fate::Accepted) => {}
            Offered::Link(Fate::Duplicated) => counts.duplicated += 1,
            Offered::Link(Fate::Dropped(Cause::Lost)) => counts.lost += 1,
            Offered::Link(Fate::Dropped(Cause::QueueFull)) => counts.queue_full += 1,
            Offered::Link(Fate::Dropped(Cause::TooLong | Cause::Unencryptable)) => counts.other_drops += 1,
        }
        if direction == Direction::Up {
            if let (Some(ports), Some((kind, port))) = (&mut self.ports, opens(packet)) {
                ports(kind, port);
            }
            self.record(packet)?;
        }
        Ok(())
    }

    fn deliver(&mut self) -> Result<(), BearerRunError> {
        while let Some((due, direction, packet)) = self.link.take(self.now()) {
            let late_ns = self.now().since(due).0;
            let receiver = &self.tuns[direction.reverse() as usize];
            // A device that is going down rejects packets. TCP handles the loss, as on any link.
            if sys::write(receiver.as_fd(), &packet).is_ok() {
                let counts = &mut self.counts[direction as usize];
                counts.delivered += 1;
                counts.delivered_bytes += packet.len() as u64;
            }
            self.lateness.record(late_ns);
            if let (Some(log), Some(probe)) = (&mut self.log, probe::identify(&packet)) {
                log.due_ns.insert((direction, probe), due.0 + self.epoch_ns);
            }
            if direction == Direction::Down {
                self.record(&packet)?;
            }
        }
        Ok(())
    }

    /// Adds a packet to the capture, encrypted if the link encrypts.
    fn record(&mut self, packet: &[u8]) -> Result<(), BearerRunError> {
        let Some((writer, path)) = &mut self.pcap else { return Ok(()) };
        let frame = self.link.tapped();
        let seen = match (&frame, self.link.key()) {
            (Some(frame), _) => frame,
            (None, None) => packet,
            // The packet was dropped before encryption.
            (None, Some(_)) => return Ok(()),
        };
        writer
            .add(sys::realtime_ns(), seen)
            .map_err(|error| BearerRunError::Pcap { path: path.clone(), error })
    }

    pub(super) fn is_idle(&self) -> bool {
        self.link.next().is_none()
    }

    /// Completes the capture and returns the report.
    pub(super) fn finish(mut self) -> Result<Report, BearerRunError> {
        if let Some((writer, path)) = self.pcap.take() {
            writer.finish().map_err(|error| BearerRunError::Pcap { path, error })?;
        }
        for direction in DIRECTIONS {
            self.counts[direction as usize].rejected = self.link.rejected(direction);
        }
        let late = self.lateness.summary(1e9);
        let lateness = Lateness {
            mean_s: late.mean.unwrap_or(0.0),
            p50_s: late.p50.unwrap_or(0.0),
            p99_s: late.p99,
            max_s: late.max.unwrap_or(0.0),
        };
        let hexadecimal = |key: &[u8]| key.iter().map(|byte| format!("{byte:02x}")).collect();
        let [up, down] = self.counts;
        Ok(Report { up, down, lateness, key: self.link.key().map(hexadecimal) })
    }
}

/// Gateway port of the TCP connection that this packet opens, or of a UDP datagram.
fn opens(packet: &[u8]) -> Option<(SocketKind, u16)> {
    let header = usize::from(packet.first()? & 15) * 4;
    // A fragment that is not the first has no ports.
    let is_first = u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) & 0x1fff == 0;
    let to_gateway = packet.get(12..16)? == CLIENT.octets() && packet.get(16..20)? == GATEWAY.octets();
    let port = u16::from_be_bytes([*packet.get(header + 2)?, *packet.get(header + 3)?]);
    match packet.get(9)? {
        _ if !is_first || !to_gateway => None,
        6 if packet.get(header + 13)? & 0x12 == 0x02 => Some((SocketKind::Tcp, port)),
        17 => Some((SocketKind::Udp, port)),
        _ => None,
    }
}
