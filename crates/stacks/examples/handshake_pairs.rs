//! What the instrument adds to a handshake: the same suite bare and instrumented, in turn, as pairs of times.
//!
//! `handshake_pairs SUITE PAIRS` prints one line of JSON: an array of `[instrumented_ns, bare_ns]`, each the CPU
//! time of both sides' work in one handshake between fresh endpoints. Endpoints are made and dropped, and the
//! recordings are read out, outside of what is timed, as in a measurement.
//!
//! `handshake_pairs SUITE HANDSHAKES KIND` runs one kind alone and prints nothing, for a profiler: `bare`, `instrumented`
//! (and not recorded), or `recorded`.

use nix::sched::{CpuSet, sched_getcpu, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use shakedown_stacks::{Peers, Settings, prepare};
use shakedown_trace::driver::Loopback;
use shakedown_trace::{Counter, Endpoint, Recorded, Recording, Suite};
use std::error::Error;

/// Pairs that are run first and discarded: they fill caches, blind private keys, and raise the clock.
const WARM_UP: usize = 50;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: handshake_pairs SUITE PAIRS";
    let suite: Suite = arguments.next().ok_or(usage)?.parse()?;
    let pairs: usize = arguments.next().ok_or(usage)?.parse()?;
    stay_on_this_processor()?;
    let settings = Settings::default();
    let instrumented = prepare(&suite, &settings)?;
    let bare = prepare(&suite, &Settings { instrumented: false, ..settings })?;
    let mut buffers = Buffers::new();
    if let Some(kind) = arguments.next() {
        for _ in 0..pairs {
            match kind.as_str() {
                "bare" => buffers.bare(&bare)?,
                "instrumented" => buffers.bare(&instrumented)?,
                _ => buffers.recorded(&instrumented)?,
            };
        }
        return Ok(());
    }
    let mut found = Vec::with_capacity(pairs);
    for pair in 0..WARM_UP + pairs {
        // Who goes first changes, so that neither always finds the other's traces in the caches.
        let times = if pair % 2 == 0 {
            let ours = buffers.recorded(&instrumented)?;
            [ours, buffers.bare(&bare)?]
        } else {
            let theirs = buffers.bare(&bare)?;
            [buffers.recorded(&instrumented)?, theirs]
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

/// Memory that one handshake leaves to the next.
struct Buffers {
    loopback: Loopback,
    recordings: [Recording; 2],
}

impl Buffers {
    fn new() -> Self {
        let recording = || Recording::new(Counter::NANOSECONDS);
        Self { loopback: Loopback::new(), recordings: [recording(), recording()] }
    }

    fn recorded(&mut self, peers: &Peers) -> Result<u64, Box<dyn Error>> {
        let pair = peers.pair()?;
        let [first, second] = std::mem::take(&mut self.recordings);
        let (mut client, mut server) =
            (Recorded::new(pair.client, first), Recorded::new(pair.server, second));
        let time = self.timed(&mut client, &mut server);
        self.recordings = [client.into_parts().1, server.into_parts().1];
        self.recordings.iter_mut().for_each(Recording::clear);
        time
    }

    fn bare(&mut self, peers: &Peers) -> Result<u64, Box<dyn Error>> {
        let mut pair = peers.pair()?;
        self.timed(pair.client.as_mut(), pair.server.as_mut())
    }

    /// CPU time of one handshake, in nanoseconds.
    fn timed(&mut self, client: &mut dyn Endpoint, server: &mut dyn Endpoint) -> Result<u64, Box<dyn Error>> {
        let before = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
        let outcome = self.loopback.handshake(client, server, &mut ());
        let after = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
        outcome?;
        Ok(u64::try_from(std::time::Duration::from(after - before).as_nanos())?)
    }
}
