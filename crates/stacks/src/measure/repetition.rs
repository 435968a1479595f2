//! One handshake, and whether anything else got in its way.

use super::MeasureError;
use crate::processor::context_switches;
use crate::rig::Rig;
use nix::time::{ClockId, clock_gettime};
use shakedown_trace::driver::Wire;
use shakedown_trace::recorder::{self, Tape};
use shakedown_trace::{Side, Suite, Trace};
use std::sync::OnceLock;

/// One handshake's trace, and the clocks around it.
pub struct Repetition {
    /// What happened.
    pub trace: Trace,
    /// Thread CPU time around the handshake, in nanoseconds.
    pub cpu_ns: u64,
    /// The thread lost the processor on the way.
    pub disturbed: bool,
}

/// Marked time may exceed CPU time by this much before time is taken to have been stolen: two readings of
/// the CPU clock, and a fiftieth.
const TOLERATED_NS: u64 = 2_000;
const TOLERATED_SHARE: u64 = 50;

/// Runs one handshake from fresh endpoints and checks that it was the one asked for.
pub fn repeat_once(
    suite: &Suite,
    rig: &mut dyn Rig,
    wire: &mut Wire,
    tape: Tape,
) -> Result<(Repetition, Tape), MeasureError> {
    let name = || suite.to_string();
    let mut pair = rig.pair()?;
    clock_cost_ns();
    recorder::start(tape);
    let switches_before = context_switches();
    let cpu_before = thread_cpu_ns();
    let outcome = wire.handshake(pair.client.as_mut(), pair.server.as_mut(), &mut ());
    let cpu_ns = (thread_cpu_ns() - cpu_before).saturating_sub(clock_cost_ns());
    let switches = context_switches() - switches_before;
    let tape = recorder::stop();
    let travelled = outcome.map_err(|error| MeasureError::Handshake { suite: name(), error })?;
    for endpoint in [&pair.client, &pair.server] {
        endpoint.confirm().map_err(|difference| MeasureError::WrongKind { suite: name(), difference })?;
    }
    let trace = Trace::from_tape(&tape).map_err(|error| MeasureError::Ledger { suite: name(), error })?;
    let counted = trace.bytes_from(Side::Client) + trace.bytes_from(Side::Server);
    let all = travelled.client_to_server + travelled.server_to_client;
    if counted != all {
        return Err(MeasureError::Bytes { suite: name(), counted, travelled: all });
    }
    let marked: u64 = trace.marked_ns.iter().sum();
    let stolen = marked > cpu_ns + cpu_ns / TOLERATED_SHARE + TOLERATED_NS;
    Ok((Repetition { trace, cpu_ns, disturbed: switches > 0 || stolen }, tape))
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
