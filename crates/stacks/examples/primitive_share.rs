//! How much of a handshake its public-key primitives are: the same suite bare, and recorded, in turn.
//!
//! `primitive_share SUITE PAIRS` prints one line of JSON: an array of `[handshake_ns, primitives_ns]`. The first is the
//! CPU time of both sides' work in a bare handshake; the second the sum of the public-key operations (imports left
//! out) that the recorder saw in its neighbour, each timed around the call of the same OpenSSL.

use nix::sched::{CpuSet, sched_getcpu, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use shakedown_stacks::{Peers, Settings, prepare};
use shakedown_trace::driver::Loopback;
use shakedown_trace::{Class, Counter, Recorded, Recording, Suite, Trace};
use std::error::Error;
use std::time::Duration;

/// Pairs that are run first and discarded.
const WARM_UP: usize = 50;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: primitive_share SUITE PAIRS";
    let suite: Suite = arguments.next().ok_or(usage)?.parse()?;
    let pairs: usize = arguments.next().ok_or(usage)?.parse()?;
    let mut one = CpuSet::new();
    one.set(sched_getcpu()?)?;
    sched_setaffinity(Pid::from_raw(0), &one)?;
    let peers = prepare(&suite, &Settings::default())?;
    let mut loopback = Loopback::new();
    let mut found = Vec::with_capacity(pairs);
    for pair in 0..WARM_UP + pairs {
        let times = if pair % 2 == 0 {
            [bare(&peers, &mut loopback)?, primitives(&peers, &mut loopback)?]
        } else {
            let theirs = primitives(&peers, &mut loopback)?;
            [bare(&peers, &mut loopback)?, theirs]
        };
        if pair >= WARM_UP {
            found.push(format!("[{},{}]", times[0], times[1]));
        }
    }
    println!("[{}]", found.join(","));
    Ok(())
}

fn bare(peers: &Peers, loopback: &mut Loopback) -> Result<u128, Box<dyn Error>> {
    let mut pair = peers.pair()?;
    let before = Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?);
    loopback.handshake(pair.client.as_mut(), pair.server.as_mut(), &mut ())?;
    let after = Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?);
    Ok((after - before).as_nanos())
}

fn primitives(peers: &Peers, loopback: &mut Loopback) -> Result<u128, Box<dyn Error>> {
    let pair = peers.pair()?;
    let recording = || Recording::new(Counter::NANOSECONDS);
    let mut client = Recorded::new(pair.client, recording());
    let mut server = Recorded::new(pair.server, recording());
    loopback.handshake(&mut client, &mut server, &mut ())?;
    let trace = Trace::join(&client.half_trace()?, &server.half_trace()?)?;
    let public_key =
        trace.operations.iter().filter(|record| record.primitive.operation.class() != Class::Common);
    Ok(public_key.map(|record| u128::from(record.spent)).sum())
}
