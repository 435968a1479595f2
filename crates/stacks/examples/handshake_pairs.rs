//! Times handshakes, alternating with a second workload: `handshake_pairs KIND SUITE PAIRS`.
//!
//! Prints one line of JSON, an array of pairs of nanoseconds. The time of a handshake is the CPU time of both sides'
//! work between new endpoints; creating and dropping endpoints and reading recordings are not timed.
//!
//! - `instrument`: an instrumented and recorded handshake, and a bare one: the overhead of the instrumentation.
//! - `primitives`: a handshake, and the sum of the public-key operations (without imports) that the recorder saw in the
//!   next handshake, each timed around the call of the same OpenSSL: their share of a handshake.

use nix::time::{ClockId, clock_gettime};
use shakedown_stacks::processor::Pinned;
use shakedown_stacks::{Peers, Settings, prepare};
use shakedown_trace::driver::Loopback;
use shakedown_trace::{Class, Counter, Endpoint, Recorded, Recording, Suite, Trace};
use std::error::Error;
use std::time::Duration;

/// Pairs that run first and are discarded: they fill caches, blind private keys, and raise the clock rate.
const WARM_UP: usize = 50;

type Found = Result<u64, Box<dyn Error>>;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: handshake_pairs instrument|primitives SUITE PAIRS";
    let kind = arguments.next().ok_or(usage)?;
    let suite: Suite = arguments.next().ok_or(usage)?.parse()?;
    let pairs: usize = arguments.next().ok_or(usage)?.parse()?;
    let _pinned = Pinned::to_current_processor();
    let settings = Settings::default();
    let peers = prepare(&suite, &settings)?;
    let without = prepare(&suite, &Settings { instrumented: false, ..settings })?;
    let mut buffers = Buffers::new();
    let found = match kind.as_str() {
        "instrument" => in_turn(pairs, &mut buffers, |one| one.recorded(&peers), |one| one.bare(&without)),
        "primitives" => in_turn(pairs, &mut buffers, |one| one.bare(&peers), |one| one.primitives(&peers)),
        _ => return Err(usage.into()),
    };
    println!("[{}]", found?.join(","));
    Ok(())
}

/// Pairs as JSON. The order alternates, so that neither side always benefits from the other's data in the caches.
fn in_turn(
    pairs: usize,
    buffers: &mut Buffers,
    ours: impl Fn(&mut Buffers) -> Found,
    theirs: impl Fn(&mut Buffers) -> Found,
) -> Result<Vec<String>, Box<dyn Error>> {
    let mut found = Vec::with_capacity(pairs);
    for pair in 0..WARM_UP + pairs {
        let (first, second) = if pair % 2 == 0 {
            let first = ours(buffers)?;
            (first, theirs(buffers)?)
        } else {
            let second = theirs(buffers)?;
            (ours(buffers)?, second)
        };
        if pair >= WARM_UP {
            found.push(format!("[{first},{second}]"));
        }
    }
    Ok(found)
}

/// Memory that is reused by the next handshake.
struct Buffers {
    loopback: Loopback,
    recordings: [Recording; 2],
}

impl Buffers {
    fn new() -> Self {
        let recording = || Recording::new(Counter::NANOSECONDS);
        Self { loopback: Loopback::new(), recordings: [recording(), recording()] }
    }

    fn recorded(&mut self, peers: &Peers) -> Found {
        let pair = peers.pair()?;
        let [first, second] = std::mem::take(&mut self.recordings);
        let (mut client, mut server) =
            (Recorded::new(pair.client, first), Recorded::new(pair.server, second));
        let time = self.timed(&mut client, &mut server);
        self.recordings = [client.into_parts().1, server.into_parts().1];
        self.recordings.iter_mut().for_each(Recording::clear);
        time
    }

    fn bare(&mut self, peers: &Peers) -> Found {
        let mut pair = peers.pair()?;
        self.timed(pair.client.as_mut(), pair.server.as_mut())
    }

    fn primitives(&mut self, peers: &Peers) -> Found {
        let pair = peers.pair()?;
        let recording = || Recording::new(Counter::NANOSECONDS);
        let mut client = Recorded::new(pair.client, recording());
        let mut server = Recorded::new(pair.server, recording());
        self.loopback.handshake(&mut client, &mut server, &mut ())?;
        let trace = Trace::join(&client.half_trace()?, &server.half_trace()?)?;
        let public_key =
            trace.operations.iter().filter(|record| record.primitive.operation.class() != Class::Common);
        Ok(public_key.map(|record| record.spent).sum())
    }

    /// CPU time of one handshake, in nanoseconds.
    fn timed(&mut self, client: &mut dyn Endpoint, server: &mut dyn Endpoint) -> Found {
        let before = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
        let outcome = self.loopback.handshake(client, server, &mut ());
        let after = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
        outcome?;
        Ok(u64::try_from(Duration::from(after - before).as_nanos())?)
    }
}
