//! Holds connections, so that an independent tool can measure the heap: `hold_connections SUITE COUNT`.
//!
//! Run it under a heap profiler for two counts; the difference of the two peaks over the difference of the counts is
//! what a client and a server together hold after a handshake, to set beside `measure`'s `memory`.

use shakedown_stacks::{Settings, prepare};
use shakedown_trace::driver::Loopback;
use std::error::Error;

/// Rust's own allocations are counted beside OpenSSL's.
#[global_allocator]
static ALLOCATOR: shakedown_ossl::memory::Counting = shakedown_ossl::memory::Counting;

fn main() -> Result<(), Box<dyn Error>> {
    shakedown_ossl::memory::install();
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: hold_connections SUITE COUNT";
    let suite = arguments.next().ok_or(usage)?.parse()?;
    let count: usize = arguments.next().ok_or(usage)?.parse()?;
    let settings = Settings { instrumented: false, ..Settings::default() };
    let peers = prepare(&suite, &settings)?;
    let mut loopback = Loopback::new();
    let mut held = Vec::with_capacity(1024);
    for _ in 0..count {
        let mut pair = peers.pair()?;
        loopback.handshake(pair.client.as_mut(), pair.server.as_mut(), &mut ())?;
        held.push(pair);
    }
    println!("{} connections held", held.len());
    Ok(())
}
