//! What the timing provider adds to handshakes: bare, timed but not recording, and recording, in turn.
//!
//! `overhead ROUNDS` prints, for a cheap, a usual and a heavy handshake, the 10th percentile of thread CPU time in
//! microseconds of each kind, ratios to bare, and the number of events; with `--events` how many of which.
//! Without the marks of message boundaries, which are not this crate's.

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Contexts, Key, Suite, record};
use shakedown_ossl::Library;
use std::collections::BTreeMap;
use std::time::Duration;

fn main() {
    if let Some(kind) = std::env::args().nth(1).filter(|text| text.parse::<usize>().is_err()) {
        return only(&kind);
    }
    let rounds: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(2000);
    let events = std::env::args().any(|argument| argument == "--events");
    let (bare, timed) = (Library::bare().expect("a library"), Library::timed().expect("a library"));
    for (suite, rounds) in
        [(Suite::Psk13, rounds), (Suite::Tls13(Key::P256), rounds / 2), (Suite::Rsa12(3072), rounds / 8)]
    {
        let identity = common::identity(suite);
        let [bare, timed] = [bare, timed].map(|library| Contexts::with(library, suite, &identity));
        let mut times = [const { Vec::new() }; 3];
        let mut logged = 0;
        for round in 0..rounds + 20 {
            for kind in (0..3).map(|kind| (kind + round) % 3) {
                let contexts = if kind == 0 { &bare } else { &timed };
                let took = if kind == 2 {
                    let (took, log) = record::recorded(|| once(contexts));
                    logged = log.0.len();
                    if events && round == 30 {
                        print_events(&log);
                    }
                    took
                } else {
                    once(contexts)
                };
                if round >= 20 {
                    times[kind].push(took);
                }
            }
        }
        let p10 = times.map(|mut times| {
            times.sort_unstable();
            times[times.len() / 10].as_secs_f64() * 1e6
        });
        println!(
            "{suite:?}: bare {:.2}, timed {:.2} ({:.4}), recording {:.2} ({:.4}) us, {logged} events",
            p10[0],
            p10[1],
            p10[1] / p10[0],
            p10[2],
            p10[2] / p10[0]
        );
    }
}

/// Handshakes of one kind alone, for a profiler.
fn only(kind: &str) {
    let library = if kind == "bare" { Library::bare() } else { Library::timed() }.expect("a library");
    let contexts = Contexts::new(library, Suite::Psk13);
    for _ in 0..20 {
        contexts.handshake();
    }
    for _ in 0..300 {
        if kind == "recording" {
            record::recorded(|| once(&contexts));
        } else {
            once(&contexts);
        }
    }
}

/// CPU time of one handshake between fresh connections, without making and dropping them.
#[inline(never)]
fn once(contexts: &Contexts) -> Duration {
    let [mut client, mut server] = contexts.pair();
    let mut transcript = common::Transcript::default();
    let before = thread_time();
    while transcript.step(&mut client, &mut server) {}
    thread_time() - before
}

fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place for the answer is valid.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn print_events(log: &record::Log) {
    let mut found = BTreeMap::<String, (usize, u64)>::new();
    for event in &log.0 {
        if let shakedown_trace::recorder::Event::Operation { primitive, bytes, counts, start, end } = event {
            let size = bytes.next_power_of_two();
            let key = format!("{primitive:?} counts {counts} bytes<={size}");
            let entry = found.entry(key).or_default();
            entry.0 += 1;
            entry.1 += end - start;
        }
    }
    for (key, (count, ns)) in found {
        println!("  {count:4} x {key}, {} ns each", ns / count as u64);
    }
}
