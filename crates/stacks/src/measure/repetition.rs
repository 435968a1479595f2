//! Runs one handshake, and detects whether its thread was preempted.

use super::MeasureError;
use crate::carried::{self, Exchanged};
use crate::peers::Peers;
use crate::processor::{context_switches, thread_cpu};
use shakedown_trace::driver::Loopback;
use shakedown_trace::{
    AccountingError, Carrier, Counter, Endpoint, Negotiated, Recorded, Recording, Side, Trace,
};
use std::sync::OnceLock;

/// One handshake's trace, and the readings of clocks before and after it.
pub struct Repetition {
    pub trace: Trace,
    /// The thread's CPU time during the handshake in nanoseconds, or the difference of another counter.
    pub spent: u64,
    /// Whether the thread lost the processor during the handshake.
    pub preempted: bool,
    /// Round trips, fragments and bytes of EAP, if the handshake ran inside EAP.
    pub exchanged: Option<Exchanged>,
}

/// Memory that is reused by the next repetition, so that no allocation is measured.
pub struct Buffers {
    loopback: Loopback,
    recordings: [Recording; 2],
}

impl Buffers {
    pub fn new(counter: Counter) -> Self {
        let recording = || Recording::new(counter);
        Self { loopback: Loopback::new(), recordings: [recording(), recording()] }
    }
}

/// If attributed time exceeds CPU time by more than this, the thread was preempted: two readings of the CPU clock, plus
/// a fiftieth of the CPU time.
const TOLERATED_NS: u64 = 2_000;
const TOLERATED_SHARE: u64 = 50;

/// Runs one handshake with new endpoints, and checks that it was the requested one.
pub fn repeat_once(peers: &Peers, buffers: &mut Buffers) -> Result<Repetition, MeasureError> {
    let suite = &peers.id.suite;
    let name = || suite.to_string();
    let pair = peers.pair()?;
    clock_cost_ns();
    let [first, second] = std::mem::take(&mut buffers.recordings);
    let mut client = Recorded::new(pair.client, first);
    let mut server = Recorded::new(pair.server, second);
    if peers.id.carrier == Carrier::Eap {
        // The CPU time includes EAP's own work; the times of the messages do not.
        let (outcome, clocks) =
            clocked(peers.counter, || carried::handshake(client, server, peers.fragment_bytes));
        let done = outcome.map_err(|reason| MeasureError::Eap { suite: name(), reason })?;
        let [client, server] = &done.negotiated;
        let (ends, exchanged) = ([done.client, done.server], Some(done.exchanged));
        return finished(peers, buffers, ends, [client, server], done.handshake_bytes, exchanged, clocks);
    }
    let (outcome, clocks) =
        clocked(peers.counter, || buffers.loopback.handshake(&mut client, &mut server, &mut ()));
    let done = outcome.map_err(|error| MeasureError::Handshake { suite: name(), error })?;
    let negotiated = [&*done.client, &*done.server];
    finished(peers, buffers, [client, server], negotiated, done.transferred.total(), None, clocks)
}

/// Differences between the readings before and after a handshake.
struct Clocks {
    spent: u64,
    switches: i64,
}

fn clocked<T>(counter: Counter, handshake: impl FnOnce() -> T) -> (T, Clocks) {
    if !counter.is_time() {
        // Preemption does not change counts.
        let before = counter.now();
        let outcome = handshake();
        return (outcome, Clocks { spent: counter.now() - before, switches: 0 });
    }
    let switches_before = context_switches();
    let cpu_before = thread_cpu_ns();
    let outcome = handshake();
    let spent = (thread_cpu_ns() - cpu_before).saturating_sub(clock_cost_ns());
    (outcome, Clocks { spent, switches: context_switches() - switches_before })
}

/// Compares the negotiated parameters with the suite, the recorded bytes with the transferred ones, and the attributed
/// time with the CPU time.
fn finished<E: Endpoint>(
    peers: &Peers,
    buffers: &mut Buffers,
    ends: [Recorded<E>; 2],
    negotiated: [&Negotiated; 2],
    transferred: u64,
    exchanged: Option<Exchanged>,
    Clocks { spent, switches }: Clocks,
) -> Result<Repetition, MeasureError> {
    let suite = &peers.id.suite;
    let name = || suite.to_string();
    if let Some(difference) = negotiated.into_iter().find_map(|one| one.difference(suite)) {
        return Err(MeasureError::WrongKind { suite: name(), difference });
    }
    let joined = join(&ends);
    buffers.recordings = ends.map(|end| end.into_parts().1);
    buffers.recordings.iter_mut().for_each(Recording::clear);
    let trace = joined.map_err(|error| MeasureError::Accounting { suite: name(), error })?;
    let counted = trace.bytes_from(Side::Client) + trace.bytes_from(Side::Server);
    if counted != transferred {
        return Err(MeasureError::Bytes { suite: name(), counted, transferred });
    }
    let attributed: u64 = trace.total.iter().sum();
    let exceeds = peers.counter.is_time() && attributed > spent + spent / TOLERATED_SHARE + TOLERATED_NS;
    Ok(Repetition { trace, spent, preempted: switches > 0 || exceeds, exchanged })
}

fn join<E: Endpoint>([client, server]: &[Recorded<E>; 2]) -> Result<Trace, AccountingError> {
    Trace::join(&client.half_trace()?, &server.half_trace()?)
}

fn thread_cpu_ns() -> u64 {
    u64::try_from(thread_cpu().as_nanos()).unwrap_or(u64::MAX)
}

/// The cost of reading the thread's CPU clock: a system call, most of which falls between the two readings of a
/// handshake. It is the median of many readings, measured once per process.
fn clock_cost_ns() -> u64 {
    static COST: OnceLock<u64> = OnceLock::new();
    *COST.get_or_init(|| {
        let mut costs: Vec<u64> = (0..1001)
            .map(|_| {
                let before = thread_cpu_ns();
                thread_cpu_ns() - before
            })
            .collect();
        costs.sort_unstable();
        costs[costs.len() / 2]
    })
}
