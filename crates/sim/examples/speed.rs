//! Runs a scenario on one processor: how fast that is, and a digest of all that came out.
//!
//! `cargo run --release -p shakedown-sim --example speed -- SCENARIO.json [RUNS]`, the scenario as
//! `shakedown.native.virtual_time` takes it. Equal digests are equal outcomes, to the byte: what is made faster must not change them.

use shakedown_sim::{Scenario, Simulation};
use std::ops::ControlFlow;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("a scenario's file is missing")?;
    let runs: u32 = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let scenario: Scenario = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let simulation = Simulation::new(scenario)?;
    for _ in 0..runs {
        let begun = Instant::now();
        let outcome = simulation.run(&mut |_| ControlFlow::Continue(())).ok_or("broken off")?;
        let spent_s = begun.elapsed().as_secs_f64();
        let text = serde_json::to_string(&outcome)?;
        // FNV-1a.
        let digest = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        println!(
            "{:.0} clients/s, {:.0} events/s, {:.1} ns a client, digest {digest:016x}",
            outcome.arrived as f64 / spent_s,
            outcome.events as f64 / spent_s,
            spent_s * 1e9 / outcome.arrived as f64,
        );
    }
    Ok(())
}
