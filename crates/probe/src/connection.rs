//! The CPU time of a connection on this device, as in `shakedown devices measure`, but without its choice of rounds by
//! the processor's speed, which is constant on a device of its own.

use shakedown_live::connection_cost::{CLIENT_STACK, PLANS, SECONDS, line, per_kib_us, served};
use shakedown_stacks::Settings;
use shakedown_stacks::measure::{self, Summary};
use shakedown_stacks::processor::{Pinned, processors};
use shakedown_trace::Suite;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// Suite of the handshakes that keep other processors busy, as clients and other workers do.
const NEIGHBOURS: &str = "tls1.3/x25519/p256/server";
const ROUNDS: usize = 8;
const REPEAT: usize = 40;

/// Costs of a connection, as in the table `[connection]` of a profile.
#[derive(Debug, serde::Serialize)]
pub struct ConnectionCost {
    pub server_us: f64,
    pub client_us: f64,
    /// Relative increase of the server's time of a handshake over that in memory.
    pub server_cold: f64,
    /// The same for the client.
    pub client_cold: f64,
    /// Standard deviation of the server's time between rounds.
    pub sd_us: f64,
    pub per_kib_us: f64,
}

/// Times of a suite in one round.
struct Round {
    kib: f64,
    server: Times,
    client: Times,
}

/// A side's time of a handshake in memory, and of a connection with this handshake.
#[derive(Clone, Copy)]
struct Times {
    alone_us: f64,
    took_us: f64,
}

/// Measures the costs. `progress` gets the number of completed steps, their total number, and the name of the next.
pub fn connection_cost(
    cache: Option<&PathBuf>,
    progress: &mut dyn FnMut(usize, usize, &str),
) -> Result<ConnectionCost, String> {
    let processors = processors();
    let total = ROUNDS * PLANS.len() + 1;
    progress(0, total, "a connection");
    let per_kib_us =
        per_kib_us(&processors).map_err(|error| format!("a connection over loopback: {error}"))?;
    let mut rounds: [Vec<Round>; PLANS.len()] = Default::default();
    for number in 0..ROUNDS * PLANS.len() {
        let (name, tickets) = PLANS[number % PLANS.len()];
        progress(1 + number, total, &format!("{name}, served"));
        rounds[number % PLANS.len()].push(round(name, tickets, cache, &processors)?);
    }
    let fit = |of: fn(&Round) -> Times| {
        let point = |rounds: &Vec<Round>| {
            let alone_us = usual(rounds.iter().map(|one| of(one).alone_us).collect());
            let took_us = usual(rounds.iter().map(|one| of(one).took_us).collect());
            let kib = Summary::of(&rounds.iter().map(|one| one.kib).collect::<Vec<_>>()).median;
            (alone_us, took_us - alone_us - per_kib_us * kib)
        };
        line(&rounds.iter().map(point).collect::<Vec<_>>())
    };
    let ((server_us, server_cold), (client_us, client_cold)) = (fit(|one| one.server), fit(|one| one.client));
    let left =
        |one: &Round| one.server.took_us - (1.0 + server_cold) * one.server.alone_us - per_kib_us * one.kib;
    let sd_us = Summary::of(&rounds.iter().flatten().map(left).collect::<Vec<_>>()).sd;
    Ok(ConnectionCost { server_us, client_us, server_cold, client_cold, sd_us, per_kib_us })
}

/// Measures a suite in memory and over loopback.
fn round(name: &str, tickets: u32, cache: Option<&PathBuf>, processors: &[usize]) -> Result<Round, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{name}: {error}");
    let suite: Suite = name.parse().map_err(|error| failed(&error))?;
    let settings = Settings {
        cache: cache.cloned(),
        tickets,
        client_stack: Some(CLIENT_STACK.into()),
        ..Settings::default()
    };
    // The other processors are busy while the handshake runs in memory, as they are with clients over loopback.
    let alone = beside_neighbours(processors, &settings, || {
        measure::measure(&suite, REPEAT, &settings, &mut |_| ControlFlow::Continue(()))
    });
    let alone = alone.map_err(|error| failed(&error))?;
    let took = served(&suite, &settings, SECONDS, processors, &mut || ControlFlow::Continue(()))?;
    Ok(Round {
        kib: alone.bytes.total as f64 / 1024.0,
        server: Times { alone_us: alone.handshake.server_us.summary.median, took_us: took.server_us },
        client: Times { alone_us: alone.handshake.client_us.summary.median, took_us: took.client_us },
    })
}

/// Runs `work` on the first processor while handshakes keep all others busy.
fn beside_neighbours<T>(processors: &[usize], settings: &Settings, work: impl FnOnce() -> T) -> T {
    let stopped = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for processor in processors.iter().skip(1) {
            let stopped = &stopped;
            scope.spawn(move || {
                let _pinned = Pinned::to(Some(*processor));
                let Ok(suite) = NEIGHBOURS.parse() else { return };
                while !stopped.load(Ordering::Relaxed) {
                    let step = &mut |_| match stopped.load(Ordering::Relaxed) {
                        true => ControlFlow::Break(()),
                        false => ControlFlow::Continue(()),
                    };
                    if measure::measure(&suite, REPEAT, settings, step).is_err() {
                        return;
                    }
                }
            });
        }
        let _pinned = Pinned::to(processors.first().copied());
        let done = work();
        stopped.store(true, Ordering::Relaxed);
        done
    })
}

/// The lower quartile: a shared machine is slower at times, and the minimum is an outlier.
fn usual(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 4]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_served_handshake_takes_each_side_longer_than_in_memory() {
        let round = round(PLANS[0].0, PLANS[0].1, None, &processors()).unwrap();
        let (server, client) = (round.server, round.client);
        // By a dozen system calls at least.
        assert!(server.took_us > server.alone_us, "{} {}", server.took_us, server.alone_us);
        assert!(client.took_us > client.alone_us, "{} {}", client.took_us, client.alone_us);
        assert!(round.kib > 0.2 && round.kib < 2.0, "{}", round.kib);
    }

    #[test]
    #[allow(clippy::float_cmp)] // exact in binary
    fn usual_value_of_four_is_the_second_smallest() {
        assert_eq!(usual(vec![9.0, 1.0, 2.0, 3.0]), 2.0);
    }
}
