//! Numbered probe datagrams: their sending and arrival times, and a regression of these times.

use super::sys;
use shakedown_link::Direction;
use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::ops::ControlFlow;
use std::os::fd::AsRawFd;

const MAGIC: [u8; 8] = *b"\xffbearer1";
/// Magic, number and 8 unused bytes.
pub(super) const MIN_PAYLOAD_BYTES: usize = 24;
/// Headers of IPv4 and UDP.
pub(super) const HEADER_BYTES: usize = 28;

/// Number of the probe in an IP packet; `None` for other packets.
pub(super) fn identify(packet: &[u8]) -> Option<u64> {
    number(packet.get(HEADER_BYTES..)?)
}

fn number(payload: &[u8]) -> Option<u64> {
    let (magic, rest) = payload.split_first_chunk::<8>()?;
    let number = rest.first_chunk::<8>()?;
    (*magic == MAGIC).then(|| u64::from_be_bytes(*number))
}

/// Maximum interval between calls of `step`.
const ASK_EVERY_NS: u64 = 50_000_000;

/// Sends probes and records their arrivals.
pub(super) struct Prober<'a> {
    /// Called regularly; can stop the measurement.
    step: &'a mut dyn FnMut() -> ControlFlow<()>,
    /// The client's and the gateway's socket.
    sockets: [UdpSocket; 2],
    addresses: [SocketAddr; 2],
    /// Times at which probes were sent and arrived (ns, monotonic clock), by direction and number.
    pub(super) sent_ns: HashMap<(Direction, u64), u64>,
    pub(super) arrived_ns: HashMap<(Direction, u64), u64>,
    next: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Planned {
    pub(super) at_ns: u64,
    pub(super) direction: Direction,
    pub(super) packet_bytes: usize,
}

impl<'a> Prober<'a> {
    pub(super) fn new(
        client: UdpSocket,
        gateway: UdpSocket,
        step: &'a mut dyn FnMut() -> ControlFlow<()>,
    ) -> io::Result<Self> {
        let addresses = [client.local_addr()?, gateway.local_addr()?];
        Ok(Self {
            step,
            sockets: [client, gateway],
            addresses,
            sent_ns: HashMap::new(),
            arrived_ns: HashMap::new(),
            next: 0,
        })
    }

    /// Sends probes when they are due, and collects arrivals in the meantime. Returns the probes' numbers, in order.
    pub(super) fn send(&mut self, plan: &[Planned]) -> io::Result<Vec<u64>> {
        let mut numbers = Vec::with_capacity(plan.len());
        let mut payload = vec![0; 65_536];
        for planned in plan {
            self.collect_until(planned.at_ns)?;
            let number = self.next;
            self.next += 1;
            payload[..8].copy_from_slice(&MAGIC);
            payload[8..16].copy_from_slice(&number.to_be_bytes());
            let (from, to) = match planned.direction {
                Direction::Up => (0, 1),
                Direction::Down => (1, 0),
            };
            let length = planned.packet_bytes.saturating_sub(HEADER_BYTES).max(MIN_PAYLOAD_BYTES);
            let now_ns = sys::monotonic_ns();
            self.sockets[from].send_to(&payload[..length], self.addresses[to])?;
            self.sent_ns.insert((planned.direction, number), now_ns);
            numbers.push(number);
        }
        Ok(numbers)
    }

    /// Collects arrivals until a time. The error is `Interrupted` if `step` stops the measurement.
    pub(super) fn collect_until(&mut self, until_ns: u64) -> io::Result<()> {
        let mut entries = self.sockets.each_ref().map(|socket| sys::readable(socket.as_raw_fd()));
        loop {
            if (self.step)().is_break() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let now_ns = sys::monotonic_ns();
            if now_ns >= until_ns {
                return Ok(());
            }
            if sys::poll(&mut entries, Some((until_ns - now_ns).min(ASK_EVERY_NS)))? {
                self.collect();
            }
        }
    }

    fn collect(&mut self) {
        let mut buffer = [0; 2048];
        for (socket, direction) in self.sockets.iter().zip([Direction::Down, Direction::Up]) {
            while let Ok(got) = socket.recv(&mut buffer) {
                let now_ns = sys::monotonic_ns();
                if let Some(number) = number(&buffer[..got]) {
                    // Only the first copy counts.
                    self.arrived_ns.entry((direction, number)).or_insert(now_ns);
                }
            }
        }
    }
}

/// Slope of the straight line through points by least squares, and its standard error.
pub(super) fn slope(points: &[(f64, f64)]) -> (f64, f64) {
    let n = points.len() as f64;
    let centre = |part: fn(&(f64, f64)) -> f64| points.iter().map(part).sum::<f64>() / n;
    let (x_mean, y_mean) = (centre(|point| point.0), centre(|point| point.1));
    let xx = points.iter().map(|(x, _)| (x - x_mean).powi(2)).sum::<f64>();
    let xy = points.iter().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum::<f64>();
    let slope = xy / xx;
    let residual = points.iter().map(|(x, y)| (y - y_mean - slope * (x - x_mean)).powi(2)).sum::<f64>();
    (slope, (residual / (n - 2.0).max(1.0) / xx).sqrt())
}
