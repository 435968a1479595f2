//! What a TCP connection costs a server and a client on this device beyond the handshake in memory, over loopback.
//!
//! A server of ours serves cheap handshakes on one processor to a client of ours on another, which always has some under
//! way, so that the server is hardly idle. What each side's thread runs by connection, less what the same handshake
//! takes that side in memory, is the connection: accept, reads, writes and close with the kernel's TCP behind them, the
//! library's object and the event loop. And the handshake itself takes longer than in memory, where nothing comes
//! between: long and short handshakes tell the two apart. What each KiB adds, the kernel's copying, is measured apart,
//! with sockets that carry no TLS. It is what `shakedown devices measure` does.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, gettid};
use shakedown_live::load::{self, Arrivals};
use shakedown_live::serve::{Config, Server};
use shakedown_stacks::Settings;
use shakedown_stacks::measure;
use shakedown_trace::Suite;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Handshakes that are served, and their tickets: cheap ones, next to which the connection shows, and one that takes
/// long.
const PLANS: [(&str, u32); 4] = [
    ("tls1.2/ecdhe_ecdsa/p384/server/resumed", 0),
    ("tls1.3/x25519/ed25519/server", 0),
    ("tls1.3/x25519/ed25519/server", 2),
    ("tls1.3/x25519/rsa3072/server", 2),
];
/// Its client takes less than the server, which is thus never idle: to be woken for each message costs as much again.
const CLIENT_STACK: &str = "rustls";
/// What busy neighbours do: handshakes, as clients and other workers would.
const NEIGHBOURS: &str = "tls1.3/x25519/p256/server";
/// Connections that the client keeps under way.
const CLIENTS: usize = 16;
const ROUNDS: usize = 8;
const SECONDS: f64 = 0.3;
const REPEAT: usize = 40;
/// Connections that show what a KiB costs, and the bytes of a handshake's flights, from client and server in turn.
const CONNECTIONS: usize = 500;
const FLIGHTS: [usize; 4] = [250, 1_200, 90, 250];
/// The same with a chain of 64 KiB more.
const LARGE_FLIGHTS: [usize; 4] = [1_250, 65_200, 90, 250];
/// By what share a handshake takes longer is told by those whose times differ by this factor.
const MIN_RANGE: f64 = 1.5;
/// How long the server's thread may take to begin.
const PATIENCE_MS: u64 = 1_000;
/// The name of the server's thread.
const WORKER: &str = "serve-0";

/// Microseconds a connection, as the table `[connection]` of a profile.
#[derive(Debug, serde::Serialize)]
pub struct ConnectionCost {
    pub server_us: f64,
    pub client_us: f64,
    /// By what share a handshake takes the server longer than in memory.
    pub server_cold: f64,
    /// By what share it takes the client longer.
    pub client_cold: f64,
    /// Standard deviation of the server's between rounds.
    pub sd_us: f64,
    pub per_kib_us: f64,
}

/// Measures it; `progress` is told what is done, of how much, and what comes next.
pub fn connection_cost(
    cache: Option<&PathBuf>,
    progress: &mut dyn FnMut(usize, usize, &str),
) -> Result<ConnectionCost, String> {
    let total = ROUNDS * PLANS.len() + 1;
    progress(0, total, "a connection");
    let per_kib_us = per_kib_us().map_err(|error| format!("a connection over loopback: {error}"))?;
    let mut rounds: [Vec<Served>; PLANS.len()] = Default::default();
    for number in 0..ROUNDS * PLANS.len() {
        let (name, tickets) = PLANS[number % PLANS.len()];
        progress(1 + number, total, &format!("{name}, served"));
        rounds[number % PLANS.len()].push(served(name, tickets, cache)?);
    }
    let fit = |of: fn(&Served) -> Times| {
        let point = |served: &Vec<Served>| {
            let alone_us = usual(served.iter().map(|one| of(one).alone_us).collect());
            let took_us = usual(served.iter().map(|one| of(one).took_us).collect());
            let kib = median(served.iter().map(|one| one.kib).collect());
            (alone_us, took_us - alone_us - per_kib_us * kib)
        };
        line(&rounds.iter().map(point).collect::<Vec<_>>())
    };
    let ((server_us, server_cold), (client_us, client_cold)) = (fit(|one| one.server), fit(|one| one.client));
    let left =
        |one: &Served| one.server.took_us - (1.0 + server_cold) * one.server.alone_us - per_kib_us * one.kib;
    let sd_us = deviation(&rounds.iter().flatten().map(left).collect::<Vec<_>>());
    Ok(ConnectionCost { server_us, client_us, server_cold, client_cold, sd_us, per_kib_us })
}

/// Intercept and slope, neither below zero, as medians over pairs of points (Theil and Sen).
fn line(points: &[(f64, f64)]) -> (f64, f64) {
    let mut slopes = Vec::new();
    for (index, (alone, more)) in points.iter().enumerate() {
        for (other, other_more) in &points[..index] {
            if alone.max(*other) > MIN_RANGE * alone.min(*other) {
                slopes.push((more - other_more) / (alone - other));
            }
        }
    }
    let slope = if slopes.is_empty() { 0.0 } else { median(slopes).max(0.0) };
    let starts = points.iter().map(|(alone, more)| more - slope * alone).collect();
    (median(starts).max(0.0), slope)
}

/// A suite that was served: what each side took for a connection beyond memory.
struct Served {
    kib: f64,
    server: Times,
    client: Times,
}

/// What a handshake takes a side in memory, and a connection with it.
#[derive(Clone, Copy)]
struct Times {
    alone_us: f64,
    took_us: f64,
}

fn served(name: &str, tickets: u32, cache: Option<&PathBuf>) -> Result<Served, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{name} over loopback: {error}");
    let suite: Suite = name.parse().map_err(|error| failed(&error))?;
    let settings = Settings {
        cache: cache.cloned(),
        tickets,
        client_stack: Some(CLIENT_STACK.into()),
        ..Settings::default()
    };
    let processors = processors();
    // The client is a neighbour who works: so is somebody while the handshake is measured in memory.
    let alone = beside_neighbours(&processors, &settings, || {
        measure::measure(&suite, REPEAT, &settings, &mut |_| ControlFlow::Continue(()))
    });
    let alone = alone.map_err(|error| failed(&error))?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut server = Server::start(Config::new(vec![suite.clone()], address), &settings)
        .map_err(|error| failed(&error))?;
    let worker = thread_named(WORKER).ok_or_else(|| failed(&"the server's thread is not to be found"))?;
    pin(worker, processors.first().copied());
    let config = load::Config {
        target: server.address().to_string(),
        arrivals: Arrivals::Closed,
        clients: CLIENTS,
        duration_s: SECONDS,
        ..load::Config::default()
    };
    let before = ran(worker);
    let outcome = placed(processors.last().copied(), || {
        load::run(&config, Some(&suite), &settings, &mut |_| ControlFlow::Continue(()))
    });
    let after = ran(worker);
    server.stop();
    // It has no connections by now.
    let ended = server.wait(Duration::from_secs(10));
    let outcome = outcome.map_err(|error| failed(&error))?;
    ended.map_err(|error| failed(&error))?;
    let outcome = load::merge(vec![outcome]).ok_or_else(|| failed(&"nothing was counted"))?;
    let (Some(before), Some(after)) = (before, after) else {
        return Err(failed(&"the system does not say what a thread has run"));
    };
    if outcome.completed == 0 {
        return Err(failed(&format!("no handshake was completed: {:?}", outcome.failed)));
    }
    let completed = outcome.completed as f64;
    // One handshake comes before those that are counted.
    let server_us = 1e6 * (after - before).as_secs_f64() / (completed + 1.0);
    let client_us = 1e6 * outcome.generator_cpu_s / completed;
    Ok(Served {
        kib: alone.bytes.total as f64 / 1024.0,
        server: Times { alone_us: alone.handshake.server_us.summary.median, took_us: server_us },
        client: Times { alone_us: alone.handshake.client_us.summary.median, took_us: client_us },
    })
}

/// Runs something on the first processor while handshakes keep all others busy.
fn beside_neighbours<T>(processors: &[usize], settings: &Settings, work: impl FnOnce() -> T) -> T {
    let stopped = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for processor in processors.iter().skip(1) {
            let stopped = &stopped;
            scope.spawn(move || {
                pin(gettid(), Some(*processor));
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
        let done = placed(processors.first().copied(), work);
        stopped.store(true, Ordering::Relaxed);
        done
    })
}

/// What a KiB adds to a server, by sockets that carry small and large flights.
fn per_kib_us() -> io::Result<f64> {
    let least = |flights: [usize; 4], connections: usize| -> io::Result<f64> {
        (0..ROUNDS).try_fold(f64::INFINITY, |least, _| Ok(least.min(kernel_us(flights, connections)?)))
    };
    let (small, large) = (least(FLIGHTS, CONNECTIONS)?, least(LARGE_FLIGHTS, CONNECTIONS / 2)?);
    let bytes = LARGE_FLIGHTS.iter().sum::<usize>() - FLIGHTS.iter().sum::<usize>();
    Ok(((large - small) / (bytes as f64 / 1024.0)).max(0.0))
}

/// The server's microseconds a connection, without TLS.
fn kernel_us(flights: [usize; 4], connections: usize) -> io::Result<f64> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let processors = processors();
    let [request, reply, confirmation, answer] = flights;
    let first = processors.first().copied();
    let serving = std::thread::spawn(move || -> io::Result<f64> {
        pin(gettid(), first);
        let mut buffer = vec![0; flights.iter().copied().max().unwrap_or(0)];
        let begun = ran(gettid()).unwrap_or_default();
        for _ in 0..connections {
            let (mut peer, _) = listener.accept()?;
            peer.set_nodelay(true)?;
            peer.read_exact(&mut buffer[..request])?;
            peer.write_all(&buffer[..reply])?;
            peer.read_exact(&mut buffer[..confirmation])?;
            peer.write_all(&buffer[..answer])?;
        }
        let took = ran(gettid()).unwrap_or_default().saturating_sub(begun);
        Ok(1e6 * took.as_secs_f64() / connections as f64)
    });
    let connecting = placed(processors.last().copied(), || -> io::Result<()> {
        let mut buffer = vec![0; flights.iter().copied().max().unwrap_or(0)];
        for _ in 0..connections {
            let mut peer = TcpStream::connect(address)?;
            peer.set_nodelay(true)?;
            peer.write_all(&buffer[..request])?;
            peer.read_exact(&mut buffer[..reply])?;
            peer.write_all(&buffer[..confirmation])?;
            peer.read_exact(&mut buffer[..answer])?;
        }
        Ok(())
    });
    connecting?;
    serving.join().unwrap_or_else(|_| Err(io::Error::other("the server's thread ended by a defect")))
}

/// A thread of this process by its name, which it takes once it runs.
fn thread_named(name: &str) -> Option<Pid> {
    (0..PATIENCE_MS).find_map(|wait| {
        std::thread::sleep(Duration::from_millis(wait.min(1)));
        thread_now_named(name)
    })
}

fn thread_now_named(name: &str) -> Option<Pid> {
    std::fs::read_dir("/proc/self/task").ok()?.flatten().find_map(|entry| {
        let comm = std::fs::read_to_string(entry.path().join("comm")).ok()?;
        (comm.trim_end() == name).then_some(())?;
        Some(Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
    })
}

/// CPU time of a thread of this process.
fn ran(thread: Pid) -> Option<Duration> {
    // The number that pthread_getcpuclockid has for it: a thread's clock, as the scheduler counts.
    let clock = (!thread.as_raw() << 3) | 6;
    clock_gettime(ClockId::from_raw(clock)).map(Duration::from).ok()
}

/// Those that this thread may use.
fn processors() -> Vec<usize> {
    let Ok(allowed) = sched_getaffinity(Pid::from_raw(0)) else { return Vec::new() };
    (0..CpuSet::count()).filter(|one| allowed.is_set(*one).unwrap_or(false)).collect()
}

/// A thread on one processor, where that is allowed.
fn pin(thread: Pid, processor: Option<usize>) {
    let Some(processor) = processor else { return };
    let mut only = CpuSet::new();
    if only.set(processor).is_ok() {
        // Where it is not, figures vary more; they are no others.
        let _ = sched_setaffinity(thread, &only);
    }
}

/// Runs something with this thread, and those that it starts, on one processor.
fn placed<T>(processor: Option<usize>, work: impl FnOnce() -> T) -> T {
    let before = sched_getaffinity(Pid::from_raw(0));
    pin(Pid::from_raw(0), processor);
    let done = work();
    if let Ok(before) = before {
        let _ = sched_setaffinity(Pid::from_raw(0), &before);
    }
    done
}

/// The lower quartile: a machine that others share is slower at times, and the least is luck.
fn usual(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 4]
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

fn deviation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_served_handshake_takes_each_side_longer_than_in_memory() {
        let served = served(PLANS[0].0, PLANS[0].1, None).unwrap();
        let (server, client) = (served.server, served.client);
        // A dozen system calls at the least.
        assert!(server.took_us > server.alone_us, "{} {}", server.took_us, server.alone_us);
        assert!(client.took_us > client.alone_us, "{} {}", client.took_us, client.alone_us);
        assert!(served.kib > 0.2 && served.kib < 2.0, "{}", served.kib);
    }

    #[test]
    fn a_threads_clock_runs_with_its_work_alone() {
        let idle = std::thread::Builder::new().name("idle".into());
        let (wake, asleep) = std::sync::mpsc::channel::<()>();
        let idle = idle.spawn(move || asleep.recv()).unwrap();
        let thread = thread_named("idle").unwrap();
        let (theirs, ours) = (ran(thread).unwrap(), ran(gettid()).unwrap());
        let mut sum = 0_u64;
        while ran(gettid()).unwrap() - ours < Duration::from_millis(20) {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(ran(thread).unwrap() - theirs < Duration::from_millis(10));
        assert_eq!(thread_now_named("no-such-thread"), None);
        wake.send(()).unwrap();
        idle.join().unwrap().unwrap();
    }

    #[test]
    #[allow(clippy::float_cmp)] // exact in binary
    fn middles_deviations_and_lines() {
        assert_eq!(line(&[(2.0, 11.0), (4.0, 12.0), (8.0, 14.0), (8.5, 99.0)]), (10.0, 0.5));
        assert_eq!(line(&[(2.0, 11.0), (2.5, 12.0)]), (11.5, 0.0));
        assert_eq!(line(&[(2.0, 9.0), (8.0, 3.0)]), (6.0, 0.0));
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(usual(vec![9.0, 1.0, 2.0, 3.0]), 2.0);
        assert_eq!(deviation(&[1.0, 3.0]), 1.0);
    }
}
