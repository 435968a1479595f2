//! What the instrument adds to a handshake: the same suite bare and instrumented, in turn, as pairs of times.
//!
//! `handshake_pairs SUITE PAIRS` prints one line of JSON: an array of `[instrumented_ns, bare_ns]`, each the CPU
//! time of both sides' work in one handshake between fresh endpoints. Endpoints are made and dropped, and the
//! tape is read out, outside of what is timed, as in a measurement.

use nix::sched::{CpuSet, sched_getcpu, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use shakedown_stacks::{Rig, Settings, prepare};
use shakedown_trace::Suite;
use shakedown_trace::driver::Wire;
use shakedown_trace::recorder::{self, Tape};
use std::error::Error;

/// Pairs that are run first and thrown away: they fill caches, blind private keys, and raise the clock.
const WARM_UP: usize = 50;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: handshake_pairs SUITE PAIRS";
    let suite: Suite = arguments.next().ok_or(usage)?.parse()?;
    let pairs: usize = arguments.next().ok_or(usage)?.parse()?;
    stay_on_this_processor()?;
    let settings = Settings::default();
    let mut instrumented = prepare(&suite, &settings)?;
    let mut bare = prepare(&suite, &Settings { instrumented: false, ..settings })?;
    let (mut wire, mut tape) = (Wire::new(), Tape::default());
    let mut found = Vec::with_capacity(pairs);
    for pair in 0..WARM_UP + pairs {
        // Who goes first changes, so that neither always finds the other's traces in the caches.
        let times = if pair % 2 == 0 {
            let ours = recorded(instrumented.as_mut(), &mut wire, &mut tape)?;
            [ours, timed(bare.as_mut(), &mut wire)?]
        } else {
            let theirs = timed(bare.as_mut(), &mut wire)?;
            [recorded(instrumented.as_mut(), &mut wire, &mut tape)?, theirs]
        };
        if pair >= WARM_UP {
            found.push(format!("[{},{}]", times[0], times[1]));
        }
    }
    println!("[{}]", found.join(","));
    Ok(())
}

fn stay_on_this_processor() -> nix::Result<()> {
    let mut one = CpuSet::new();
    one.set(sched_getcpu()?)?;
    sched_setaffinity(Pid::from_raw(0), &one)
}

/// A handshake with a tape running.
fn recorded(rig: &mut dyn Rig, wire: &mut Wire, tape: &mut Tape) -> Result<u64, Box<dyn Error>> {
    recorder::start(std::mem::take(tape));
    let time = timed(rig, wire);
    *tape = recorder::stop();
    time
}

/// CPU time of one handshake, in nanoseconds.
fn timed(rig: &mut dyn Rig, wire: &mut Wire) -> Result<u64, Box<dyn Error>> {
    let mut pair = rig.pair()?;
    let before = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
    let outcome = wire.handshake(pair.client.as_mut(), pair.server.as_mut(), &mut ());
    let after = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
    outcome?;
    Ok(u64::try_from(std::time::Duration::from(after - before).as_nanos())?)
}
