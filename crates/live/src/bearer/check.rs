//! Measures a bearer's delay, rate and loss with probe packets, and compares them with what the links drew for the same
//! packets and with the links' long-run values.

use super::emulator::{Emulator, ProbeLog, Report};
use super::end::{CLIENT, End, EndPlan, GATEWAY, Role, Side, SocketKind, ask_socket};
use super::packet::{LinkPlan, Offered, PacketLink};
use super::probe::{self, HEADER_BYTES, MIN_PAYLOAD_BYTES, Planned, Prober};
use super::{BearerRunError, sys};
use serde::{Deserialize, Serialize};
use shakedown_link::{Direction, Ns};
use shakedown_stacks::measure::Summary;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::ops::ControlFlow;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckPlan {
    pub link: LinkPlan,
    /// Duration of each of the three measurements: delay, rate up, rate down.
    pub seconds: f64,
}

/// One figure of the bearer in one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// `one_way_s`, `rate_bits_per_s` or `loss`.
    pub figure: &'static str,
    /// Up: from the client; down: to the client.
    pub direction: Direction,
    /// Length of each packet on the link; 0 for `loss`.
    pub bytes: u32,
    pub n: usize,
    /// Measured between the sockets; times are those of the monotonic clock.
    pub measured: f64,
    /// Standard error of `measured`, from the scatter of its samples, which includes the links' random draws.
    pub standard_error: f64,
    /// Computed from the times at which the same packets were due at the far end of the links.
    pub drawn: f64,
    /// The links' long-run value, from many packets in virtual time.
    pub long_run: f64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    pub figures: Vec<Figure>,
    pub report: Report,
}

const PORT: u16 = 40_000;
/// Maximum number of delay probes in each direction.
const MAX_DELAY_PROBES: u64 = 200;
/// Number of packets in virtual time for each long-run value.
const LONG_RUN_PACKETS: usize = 20_000;
/// Packets are shortened, down to the shortest probe, until a train has this many.
const MIN_TRAIN_PACKETS: f64 = 40.0;
const DELAY_PACKET_BYTES: usize = HEADER_BYTES + MIN_PAYLOAD_BYTES;
const DIRECTIONS: [Direction; 2] = [Direction::Up, Direction::Down];

/// Measures a bearer with probe packets. `step` is called many times per second and can stop the measurement.
pub fn check(plan: &CheckPlan, step: &mut dyn FnMut() -> ControlFlow<()>) -> Result<Checked, BearerRunError> {
    let end = |side| {
        let mtu_bytes = plan.link.bearer.mtu_bytes;
        End::make(&EndPlan { side, mtu_bytes, congestion_control: "reno", role: Role::Sockets })
    };
    let (gateway, client) = (end(Side::Gateway)?, end(Side::Client)?);
    let socket = |end: &End, address: Ipv4Addr| -> io::Result<UdpSocket> {
        Ok(ask_socket(&end.control()?, SocketKind::Udp, address, PORT)?.into())
    };
    let mut prober = Prober::new(socket(&client, CLIENT)?, socket(&gateway, GATEWAY)?, step)?;
    let tuns = [client.tun().try_clone()?, gateway.tun().try_clone()?];
    let mut emulator = Emulator::new(&plan.link, tuns, None, None)?;
    emulator.log = Some(ProbeLog::default());
    let bearer = Background::start(emulator)?;
    let _punctual = sys::Punctual::begin();
    let probes = Probes::send(plan, &mut prober, &bearer);
    let (report, log) = bearer.finish()?;
    let probes = probes?;
    let mut figures = Vec::new();
    for direction in DIRECTIONS {
        let long_run = LongRun::of(&plan.link, direction, probes.train_bytes(direction))?;
        figures.push(delay(plan, &prober, &log, direction, &probes.delay, &long_run)?);
        if let Some(rate_bits_per_s) = long_run.rate_bits_per_s {
            figures.push(rate(plan, &prober, &log, direction, &probes, rate_bits_per_s)?);
        }
        figures.push(loss(&prober, &log, direction, &long_run));
    }
    Ok(Checked { figures, report })
}

/// An emulator that runs in its own thread.
struct Background {
    thread: std::thread::JoinHandle<Result<(Report, ProbeLog), BearerRunError>>,
    stop: UnixDatagram,
    is_idle: Arc<AtomicBool>,
}

impl Background {
    fn start(mut emulator: Emulator) -> io::Result<Self> {
        let (stop, stopped) = UnixDatagram::pair()?;
        let is_idle = Arc::new(AtomicBool::new(true));
        let idle_flag = Arc::clone(&is_idle);
        let thread = std::thread::Builder::new().name("bearer".to_owned()).spawn(move || {
            let _punctual = sys::Punctual::begin();
            while !emulator.carry(&[stopped.as_raw_fd()], Some(sys::monotonic_ns() + 5_000_000))? {
                idle_flag.store(emulator.is_idle(), Ordering::Relaxed);
            }
            let log = emulator.log.take().unwrap_or_default();
            Ok((emulator.finish()?, log))
        })?;
        Ok(Self { thread, stop, is_idle })
    }

    /// Collects probes until no packet is in flight.
    fn drain(&self, prober: &mut Prober<'_>) -> io::Result<()> {
        let mut quiet = 0;
        while quiet < 3 && !self.thread.is_finished() {
            prober.collect_until(sys::monotonic_ns() + 10_000_000)?;
            quiet = if self.is_idle.load(Ordering::Relaxed) { quiet + 1 } else { 0 };
        }
        Ok(())
    }

    fn finish(self) -> Result<(Report, ProbeLog), BearerRunError> {
        let _ = self.stop.send(&[1]);
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the bearer's thread panicked").into()))
    }
}

/// Numbers of the probes that were sent, by measurement.
struct Probes {
    delay: Vec<u64>,
    trains: [Train; 2],
}

#[derive(Default)]
struct Train {
    numbers: Vec<u64>,
    packet_bytes: usize,
}

impl Probes {
    fn train_bytes(&self, direction: Direction) -> usize {
        self.trains[direction as usize].packet_bytes
    }

    fn send(plan: &CheckPlan, prober: &mut Prober<'_>, bearer: &Background) -> Result<Self, BearerRunError> {
        let spec = &plan.link.bearer;
        // The directions alternate. The gaps exceed twice the sending time, so that probes do not queue.
        let slowest =
            [spec.up_bits_per_s, spec.down_bits_per_s].into_iter().flatten().fold(f64::INFINITY, f64::min);
        let sending_s = 8.0 * f64::from(wire_bytes(&plan.link, DELAY_PACKET_BYTES)) / slowest;
        let gap_s = (2.0 * sending_s).max(plan.seconds / 2.0 / MAX_DELAY_PROBES as f64);
        let count = ((plan.seconds / gap_s / 2.0) as u64).clamp(2, MAX_DELAY_PROBES);
        let begin_ns = sys::monotonic_ns() + 10_000_000;
        let probes = (0..2 * count).map(|index| Planned {
            at_ns: begin_ns + (index as f64 * gap_s * 1e9) as u64,
            direction: DIRECTIONS[(index % 2) as usize],
            packet_bytes: DELAY_PACKET_BYTES,
        });
        let delay = prober.send(&probes.collect::<Vec<_>>())?;
        bearer.drain(prober)?;
        let mut trains = [Train::default(), Train::default()];
        for (direction, rate) in DIRECTIONS.into_iter().zip([spec.up_bits_per_s, spec.down_bits_per_s]) {
            if let Some(rate) = rate {
                trains[direction as usize] = train(plan, prober, direction, rate)?;
                bearer.drain(prober)?;
            }
        }
        Ok(Self { delay, trains })
    }
}

/// Sends packets at the bearer's rate, after an initial burst that keeps its queue from running empty.
fn train(plan: &CheckPlan, prober: &mut Prober<'_>, direction: Direction, rate: f64) -> io::Result<Train> {
    let spec = &plan.link.bearer;
    let total_bytes = rate * plan.seconds / 8.0;
    let least = DELAY_PACKET_BYTES as f64;
    let packet_bytes = (total_bytes / MIN_TRAIN_PACKETS)
        .clamp(least, f64::from(spec.mtu_bytes.min(1500)).max(least)) as usize;
    let each_s = 8.0 * f64::from(wire_bytes(&plan.link, packet_bytes)) / rate;
    let count = ((plan.seconds / each_s) as u64).clamp(8, 200_000);
    let queue_bytes = spec.queue_bytes.map_or(65_536.0, |bytes| bytes as f64);
    let ahead = ((queue_bytes / 4.0).min(total_bytes / 4.0) / packet_bytes as f64).max(1.0);
    let begin_ns = sys::monotonic_ns() + 1_000_000;
    let probes = (0..count).map(|index| Planned {
        at_ns: begin_ns + ((index as f64 - ahead).max(0.0) * each_s * 1e9) as u64,
        direction,
        packet_bytes,
    });
    let numbers = prober.send(&probes.collect::<Vec<_>>())?;
    Ok(Train { numbers, packet_bytes })
}

/// Bytes that a UDP packet occupies on the link.
fn wire_bytes(plan: &LinkPlan, packet_bytes: usize) -> u32 {
    let headers = plan.bearer.ip_bytes + plan.bearer.udp_bytes;
    (packet_bytes - HEADER_BYTES) as u32 + headers + plan.bearer.link_bytes()
}

/// Long-run values of the links, from many packets in virtual time.
struct LongRun {
    one_way_s: f64,
    loss: f64,
    rate_bits_per_s: Option<f64>,
}

impl LongRun {
    fn of(plan: &LinkPlan, direction: Direction, train_bytes: usize) -> Result<Self, BearerRunError> {
        let mut link = PacketLink::new(plan, false)?;
        // A gap after which every packet draws a new delay.
        let gap = Ns::from_secs_f64(100.0 + plan.bearer.traversal_holds_s);
        let packet = vec![0x45; DELAY_PACKET_BYTES];
        let (mut at, mut lost, mut total_s, mut arrived) = (Ns::from_s(1), 0_u32, 0.0, 0_u32);
        for _ in 0..LONG_RUN_PACKETS {
            if !matches!(link.offer_udp(direction, at, &packet), Offered::Link(fate) if !is_dropped(fate)) {
                lost += 1;
            }
            let mut is_first = true;
            while let Some((due, ..)) = link.take(at + gap) {
                // Only the first copy of a packet counts, as in the measurement.
                if std::mem::take(&mut is_first) {
                    total_s += due.since(at).as_secs_f64();
                    arrived += 1;
                }
            }
            at += gap;
        }
        let rate_bits_per_s = (train_bytes > 0).then(|| {
            let packet = vec![0x45; train_bytes];
            let start = at;
            for _ in 0..LONG_RUN_PACKETS {
                let _ = link.offer_udp(direction, at, &packet);
                at = at.max(link.free_at(direction));
                while link.take(at).is_some() {}
            }
            8.0 * f64::from(wire_bytes(plan, train_bytes)) * LONG_RUN_PACKETS as f64
                / at.since(start).as_secs_f64()
        });
        Ok(Self {
            one_way_s: total_s / f64::from(arrived.max(1)),
            loss: f64::from(lost) / LONG_RUN_PACKETS as f64,
            rate_bits_per_s,
        })
    }
}

fn is_dropped(fate: shakedown_link::Fate) -> bool {
    matches!(fate, shakedown_link::Fate::Dropped(_))
}

fn delay(
    plan: &CheckPlan,
    prober: &Prober<'_>,
    log: &ProbeLog,
    direction: Direction,
    numbers: &[u64],
    long_run: &LongRun,
) -> Result<Figure, BearerRunError> {
    let mut measured_s = Vec::new();
    let mut drawn_s = Vec::new();
    for number in numbers {
        let key = (direction, *number);
        let (Some(sent), Some(arrived)) = (prober.sent_ns.get(&key), prober.arrived_ns.get(&key)) else {
            continue;
        };
        let (Some(offered), Some(due)) = (log.offered_ns.get(&key), log.due_ns.get(&key)) else { continue };
        measured_s.push((arrived - sent) as f64 * 1e-9);
        drawn_s.push(due.saturating_sub(*offered) as f64 * 1e-9);
    }
    if measured_s.is_empty() {
        return Err(BearerRunError::NothingArrived);
    }
    let measured = Summary::of(&measured_s);
    Ok(Figure {
        figure: "one_way_s",
        direction,
        bytes: wire_bytes(&plan.link, DELAY_PACKET_BYTES),
        n: measured.n,
        measured: measured.mean,
        standard_error: measured.sd / (measured.n as f64).sqrt(),
        drawn: Summary::of(&drawn_s).mean,
        long_run: long_run.one_way_s,
    })
}

fn rate(
    plan: &CheckPlan,
    prober: &Prober<'_>,
    log: &ProbeLog,
    direction: Direction,
    probes: &Probes,
    long_run: f64,
) -> Result<Figure, BearerRunError> {
    let train = &probes.trains[direction as usize];
    let bytes = wire_bytes(&plan.link, train.packet_bytes);
    let begin_ns =
        train.numbers.first().and_then(|number| prober.sent_ns.get(&(direction, *number))).copied();
    let begin_ns = begin_ns.ok_or(BearerRunError::NothingArrived)?;
    // Lost packets occupied the sender too, so times are a function of the position in the train.
    let points = |times: &std::collections::HashMap<(Direction, u64), u64>| -> Vec<(f64, f64)> {
        let places = train.numbers.iter().enumerate();
        let seen = places.filter_map(|(place, number)| Some((place, *times.get(&(direction, *number))?)));
        seen.map(|(place, ns)| (place as f64, ns.saturating_sub(begin_ns) as f64 * 1e-9)).collect()
    };
    let arrived = points(&prober.arrived_ns);
    if arrived.len() < 4 {
        return Err(BearerRunError::NothingArrived);
    }
    let (each_s, error_s) = probe::slope(&arrived);
    let bits = 8.0 * f64::from(bytes);
    Ok(Figure {
        figure: "rate_bits_per_s",
        direction,
        bytes,
        n: arrived.len(),
        measured: bits / each_s,
        standard_error: bits / each_s * error_s / each_s,
        drawn: bits / probe::slope(&points(&log.due_ns)).0,
        long_run,
    })
}

fn loss(prober: &Prober<'_>, log: &ProbeLog, direction: Direction, long_run: &LongRun) -> Figure {
    let count = |times: &std::collections::HashMap<(Direction, u64), u64>| {
        times.keys().filter(|key| key.0 == direction).count() as f64
    };
    let sent = count(&prober.sent_ns);
    let share = |arrived: f64| 1.0 - arrived / sent.max(1.0);
    let measured = share(count(&prober.arrived_ns));
    Figure {
        figure: "loss",
        direction,
        bytes: 0,
        n: sent as usize,
        measured,
        standard_error: (measured * (1.0 - measured) / sent.max(1.0)).sqrt(),
        drawn: share(count(&log.due_ns)),
        long_run: long_run.loss,
    }
}
