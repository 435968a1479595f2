//! One handshake, and whether anything else got in its way.

use super::MeasureError;
use crate::carried::{self, Exchanged};
use crate::peers::Peers;
use crate::processor::context_switches;
use nix::time::{ClockId, clock_gettime};
use shakedown_trace::driver::Loopback;
use shakedown_trace::{AccountingError, Carrier, Counter, Endpoint, Recorded, Recording, Side, Trace};
use std::sync::OnceLock;

/// One handshake's trace, and the clocks around it.
pub struct Repetition {
    /// What happened.
    pub trace: Trace,
    /// Thread CPU time around the handshake, in nanoseconds.
    pub cpu_ns: u64,
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
    /// Empty ones.
    pub fn new() -> Self {
        let recording = || Recording::new(Counter::NANOSECONDS);
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
        return inside_eap(peers, buffers, client, server);
    }
    let switches_before = context_switches();
    let cpu_before = thread_cpu_ns();
    let outcome = buffers.loopback.handshake(&mut client, &mut server, &mut ());
    let cpu_ns = (thread_cpu_ns() - cpu_before).saturating_sub(clock_cost_ns());
    let switches = context_switches() - switches_before;
    let handshake = outcome.map_err(|error| MeasureError::Handshake { suite: name(), error })?;
    for negotiated in [&handshake.client, &handshake.server] {
        if let Some(difference) = negotiated.difference(suite) {
            return Err(MeasureError::WrongKind { suite: name(), difference });
        }
    }
    let joined = join(&client, &server);
    buffers.recordings = [client.into_parts().1, server.into_parts().1];
    buffers.recordings.iter_mut().for_each(Recording::clear);
    let trace = joined.map_err(|error| MeasureError::Accounting { suite: name(), error })?;
    finished(peers, trace, cpu_ns, switches, handshake.transferred.total(), None)
}

/// The same inside EAP, whose own work is in the CPU time and in no message.
fn inside_eap<E: Endpoint>(
    peers: &Peers,
    buffers: &mut Buffers,
    client: Recorded<E>,
    server: Recorded<E>,
) -> Result<Repetition, MeasureError> {
    let suite = &peers.id.suite;
    let name = || suite.to_string();
    let switches_before = context_switches();
    let cpu_before = thread_cpu_ns();
    let outcome = carried::handshake(client, server, peers.fragment_bytes);
    let cpu_ns = (thread_cpu_ns() - cpu_before).saturating_sub(clock_cost_ns());
    let switches = context_switches() - switches_before;
    let done = outcome.map_err(|reason| MeasureError::Eap { suite: name(), reason })?;
    for negotiated in &done.negotiated {
        if let Some(difference) = negotiated.difference(suite) {
            return Err(MeasureError::WrongKind { suite: name(), difference });
        }
    }
    let joined = join(&done.client, &done.server);
    buffers.recordings = [done.client.into_parts().1, done.server.into_parts().1];
    buffers.recordings.iter_mut().for_each(Recording::clear);
    let trace = joined.map_err(|error| MeasureError::Accounting { suite: name(), error })?;
    finished(peers, trace, cpu_ns, switches, done.handshake_bytes, Some(done.exchanged))
}

/// Holds what was recorded against what was transferred and against the CPU clock.
fn finished(
    peers: &Peers,
    trace: Trace,
    cpu_ns: u64,
    switches: i64,
    transferred: u64,
    exchanged: Option<Exchanged>,
) -> Result<Repetition, MeasureError> {
    let counted = trace.bytes_from(Side::Client) + trace.bytes_from(Side::Server);
    if counted != transferred {
        return Err(MeasureError::Bytes { suite: peers.id.suite.to_string(), counted, transferred });
    }
    let attributed: u64 = trace.total.iter().sum();
    let exceeds = attributed > cpu_ns + cpu_ns / TOLERATED_SHARE + TOLERATED_NS;
    Ok(Repetition { trace, cpu_ns, preempted: switches > 0 || exceeds, exchanged })
}

fn join<E: shakedown_trace::Endpoint>(
    client: &Recorded<E>,
    server: &Recorded<E>,
) -> Result<Trace, AccountingError> {
    Trace::join(&client.half_trace()?, &server.half_trace()?)
}

fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(std::time::Duration::from);
    time.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
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
