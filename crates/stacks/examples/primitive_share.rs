//! How much of a handshake its public-key primitives are: the same suite bare, and recorded, in turn.
//!
//! `primitive_share SUITE PAIRS` prints one line of JSON: an array of `[handshake_ns, primitives_ns]`. The first is the
//! CPU time of both sides' work in a bare handshake; the second the sum of the public-key operations (imports left
//! out) that the recorder saw in its neighbour, each timed around the call of the same OpenSSL.

use nix::sched::{CpuSet, sched_getcpu, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use shakedown_stacks::{Rig, Settings, prepare};
use shakedown_trace::driver::Wire;
use shakedown_trace::recorder::{self, Tape};
use shakedown_trace::{Class, Suite, Trace};
use std::error::Error;
use std::time::Duration;

/// Pairs that are run first and thrown away.
const WARM_UP: usize = 50;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: primitive_share SUITE PAIRS";
    let suite: Suite = arguments.next().ok_or(usage)?.parse()?;
    let pairs: usize = arguments.next().ok_or(usage)?.parse()?;
    let mut one = CpuSet::new();
    one.set(sched_getcpu()?)?;
    sched_setaffinity(Pid::from_raw(0), &one)?;
    let mut rig = prepare(&suite, &Settings::default())?;
    let (mut wire, mut tape) = (Wire::new(), Tape::default());
    let mut found = Vec::with_capacity(pairs);
    for pair in 0..WARM_UP + pairs {
        let times = if pair % 2 == 0 {
            [bare(rig.as_mut(), &mut wire)?, primitives(rig.as_mut(), &mut wire, &mut tape)?]
        } else {
            let theirs = primitives(rig.as_mut(), &mut wire, &mut tape)?;
            [bare(rig.as_mut(), &mut wire)?, theirs]
        };
        if pair >= WARM_UP {
            found.push(format!("[{},{}]", times[0], times[1]));
        }
    }
    println!("[{}]", found.join(","));
    Ok(())
}

fn bare(rig: &mut dyn Rig, wire: &mut Wire) -> Result<u128, Box<dyn Error>> {
    let mut pair = rig.pair()?;
    let before = Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?);
    wire.handshake(pair.client.as_mut(), pair.server.as_mut(), &mut ())?;
    let after = Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?);
    Ok((after - before).as_nanos())
}

fn primitives(rig: &mut dyn Rig, wire: &mut Wire, tape: &mut Tape) -> Result<u128, Box<dyn Error>> {
    let mut pair = rig.pair()?;
    recorder::start(std::mem::take(tape));
    let outcome = wire.handshake(pair.client.as_mut(), pair.server.as_mut(), &mut ());
    *tape = recorder::stop();
    outcome?;
    let trace = Trace::from_tape(tape)?;
    let public_key =
        trace.operations.iter().filter(|record| record.primitive.operation.class() != Class::Common);
    Ok(public_key.map(|record| u128::from(record.ns)).sum())
}
