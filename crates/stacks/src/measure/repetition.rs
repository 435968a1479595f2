//! One handshake, and whether anything else got in its way.

use super::MeasureError;
use crate::carried::{self, Exchanged};
use crate::peers::Peers;
use crate::processor::{context_switches, thread_cpu};
use shakedown_trace::driver::Loopback;
use shakedown_trace::{
    AccountingError, Carrier, Counter, Endpoint, Negotiated, Recorded, Recording, Side, Trace,
};
use std::sync::OnceLock;

/// One handshake's trace, and the clocks around it.
pub struct Repetition {
    pub trace: Trace,
    /// What the thread spent around the handshake: nanoseconds of CPU time, or another counter's difference.
    pub spent: u64,
    /// The thread lost the processor on the way.
    pub preempted: bool,
    /// What EAP carried, where it did.
    pub exchanged: Option<Exchanged>,
}

/// Memory that one repetition leaves to the next, so that no allocation falls into what is measured.
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

/// Attributed time may exceed CPU time by this much before the thread is taken to have been preempted: two readings of
/// the CPU clock, and a fiftieth.
const TOLERATED_NS: u64 = 2_000;
const TOLERATED_SHARE: u64 = 50;

/// Runs one handshake from fresh endpoints and checks that it was the one asked for.
pub fn repeat_once(peers: &Peers, buffers: &mut Buffers) -> Result<Repetition, MeasureError> {
    let suite = &peers.id.suite;
    let name = || suite.to_string();
    let pair = peers.pair()?;
    clock_cost_ns();
    let [first, second] = std::mem::take(&mut buffers.recordings);
    let mut client = Recorded::new(pair.client, first);
    let mut server = Recorded::new(pair.server, second);
    if peers.id.carrier == Carrier::Eap {
        // EAP's own work is in the CPU time and in no message.
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

/// What was read around a handshake.
struct Clocks {
    spent: u64,
    switches: i64,
}

fn clocked<T>(counter: Counter, handshake: impl FnOnce() -> T) -> (T, Clocks) {
    if !counter.is_time() {
        // What a thread that loses the processor counts is the same.
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

/// Holds what was agreed on against the suite, and what was recorded against what was transferred and the CPU clock.
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

/// What reading the thread CPU clock costs by itself: a system call, most of which falls between the two
/// readings around a handshake. Median of many, read once per process.
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
