//! The CPU time of a connection beyond the handshake in memory, for server and client, measured over loopback.
//!
//! A server runs on one processor and the load generator on another, with `CLIENTS` connections in progress, so that
//! the server is hardly idle: a server that has to be woken for every message needs 50 % more CPU time.
//!
//! The difference between a side's CPU time of a connection and that of the same handshake in memory has two parts. The
//! fixed part is accept, read, write and close, the kernel's TCP, the TLS library's connection object, and the event
//! loop. The other part is proportional to the handshake, which is slower than in memory because the kernel and other
//! connections evict its code and data from the caches. Handshakes of different lengths separate the parts
//! ([`line()`]). On loopback the kernel accounts part of the receiver's work to the sender, as for any server on the
//! same machine as its clients.
//!
//! The cost of a KiB (the kernel's copying) is measured separately, with sockets without TLS.

use crate::load::{self, Arrivals};
use crate::serve::{Config, Server};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, gettid};
use shakedown_stacks::Settings;
use shakedown_stacks::measure::Summary;
use shakedown_stacks::processor::Pinned;
use shakedown_trace::Suite;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::time::Duration;

/// Suites to serve, and their numbers of tickets: short handshakes, of which the connection is a large part, and a long
/// one.
pub const PLANS: [(&str, u32); 4] = [
    ("tls1.2/ecdhe_ecdsa/p384/server/resumed", 0),
    ("tls1.3/x25519/ed25519/server", 0),
    ("tls1.3/x25519/ed25519/server", 2),
    ("tls1.3/x25519/rsa3072/server", 2),
];
/// The clients' stack, which is faster than the server's: the server always finds work.
pub const CLIENT_STACK: &str = "rustls";
/// Duration of a suite's load.
pub const SECONDS: f64 = 0.3;
/// Duration of the load that comes first and is subtracted: it contains the work before the first counted connection,
/// such as getting sessions to resume.
const BEGINNING_S: f64 = 0.02;
/// Connections in progress.
const CLIENTS: usize = 16;
/// Number of repetitions of each transfer without TLS, and of its connections.
const COPIES: usize = 8;
const CONNECTIONS: usize = 500;
/// Bytes of a typical handshake's flights, from client and server alternately.
const FLIGHTS: [usize; 4] = [250, 1_200, 90, 250];
/// The same with 64 KiB more of certificates.
const LARGE_FLIGHTS: [usize; 4] = [1_250, 65_200, 90, 250];
/// The slope is computed from pairs of handshakes whose times differ by at least this factor.
const MIN_RANGE: f64 = 1.5;
/// Limit of the time in which the server's thread starts.
const START_TIMEOUT_MS: u64 = 1_000;
/// The name of the server's thread.
const WORKER: &str = "serve-0";

/// Microseconds of CPU time per connection, handshake included.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Served {
    pub server_us: f64,
    pub client_us: f64,
}

/// Serves a suite on the first of `processors` to clients on the last, and measures both sides.
///
/// `step` is called about ten times a second, and may end the measurement.
pub fn served(
    suite: &Suite,
    settings: &Settings,
    seconds: f64,
    processors: &[usize],
    step: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<Served, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{suite} over loopback: {error}");
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let pinned = Pinned::to(processors.first().copied());
    let mut server =
        Server::start(Config::new(vec![suite.clone()], address), settings).map_err(|error| failed(&error))?;
    drop(pinned);
    let worker = thread_named(WORKER).ok_or_else(|| failed(&"the server's thread was not found"))?;
    let target = server.address().to_string();
    let mut load = |duration_s: f64| -> Result<(f64, f64, f64), String> {
        let config = load::Config {
            target: target.clone(),
            arrivals: Arrivals::Closed,
            clients: CLIENTS,
            duration_s,
            ..load::Config::default()
        };
        let ran_s = || {
            let ran = ran(worker).ok_or_else(|| failed(&"the system does not count a thread's CPU time"))?;
            Ok::<f64, String>(ran.as_secs_f64())
        };
        let before_s = ran_s()?;
        let outcome = load::run(&config, Some(suite), settings, &mut |_| step());
        let server_s = ran_s()? - before_s;
        let outcome = load::merge(vec![outcome.map_err(|error| failed(&error))?]);
        let outcome = outcome.ok_or_else(|| failed(&"nothing was counted"))?;
        if outcome.completed == 0 {
            return Err(failed(&format!("no handshake was completed: {:?}", outcome.failed)));
        }
        Ok((outcome.completed as f64, server_s, outcome.generator_cpu_s))
    };
    let pinned = Pinned::to(processors.last().copied());
    let loads = load(BEGINNING_S).and_then(|first| Ok((first, load(BEGINNING_S + seconds)?)));
    drop(pinned);
    server.stop();
    // It has no connections by now.
    let ended = server.wait(Duration::from_secs(10));
    let ((first, first_server_s, first_client_s), (all, server_s, client_s)) = loads?;
    ended.map_err(|error| failed(&error))?;
    let completed = (all - first).max(1.0);
    Ok(Served {
        server_us: 1e6 * (server_s - first_server_s) / completed,
        client_us: 1e6 * (client_s - first_client_s) / completed,
    })
}

/// Intercept and slope, neither below zero, as medians over pairs of points (Theil-Sen). A point is a side's time of a
/// handshake in memory, and the time of a connection beyond it.
pub fn line(points: &[(f64, f64)]) -> (f64, f64) {
    let mut slopes = Vec::new();
    for (index, (alone, more)) in points.iter().enumerate() {
        for (other, other_more) in &points[..index] {
            if alone.max(*other) > MIN_RANGE * alone.min(*other) {
                slopes.push((more - other_more) / (alone - other));
            }
        }
    }
    let slope = Summary::of(&slopes).median.max(0.0);
    let starts: Vec<f64> = points.iter().map(|(alone, more)| more - slope * alone).collect();
    (Summary::of(&starts).median.max(0.0), slope)
}

/// The server's CPU time per KiB in microseconds, from small and large flights over sockets.
pub fn per_kib_us(processors: &[usize]) -> io::Result<f64> {
    let least = |flights: [usize; 4], connections: usize| -> io::Result<f64> {
        (0..COPIES)
            .try_fold(f64::INFINITY, |least, _| Ok(least.min(kernel_us(flights, connections, processors)?)))
    };
    let (small, large) = (least(FLIGHTS, CONNECTIONS)?, least(LARGE_FLIGHTS, CONNECTIONS / 2)?);
    let bytes = LARGE_FLIGHTS.iter().sum::<usize>() - FLIGHTS.iter().sum::<usize>();
    Ok(((large - small) / (bytes as f64 / 1024.0)).max(0.0))
}

/// The server's CPU time per connection in microseconds, without TLS.
fn kernel_us(flights: [usize; 4], connections: usize, processors: &[usize]) -> io::Result<f64> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let [request, reply, confirmation, answer] = flights;
    let first = processors.first().copied();
    let serving = std::thread::spawn(move || -> io::Result<f64> {
        let _pinned = Pinned::to(first);
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
    let _pinned = Pinned::to(processors.last().copied());
    let mut buffer = vec![0; flights.iter().copied().max().unwrap_or(0)];
    for _ in 0..connections {
        let mut peer = TcpStream::connect(address)?;
        peer.set_nodelay(true)?;
        peer.write_all(&buffer[..request])?;
        peer.read_exact(&mut buffer[..reply])?;
        peer.write_all(&buffer[..confirmation])?;
        peer.read_exact(&mut buffer[..answer])?;
    }
    serving.join().unwrap_or_else(|_| Err(io::Error::other("the server's thread ended by a defect")))
}

/// The thread of this process with a name, which a thread sets when it starts to run.
fn thread_named(name: &str) -> Option<Pid> {
    (0..START_TIMEOUT_MS).find_map(|wait| {
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
    // The clock ID that pthread_getcpuclockid returns for a thread's scheduled CPU time.
    let clock = (!thread.as_raw() << 3) | 6;
    clock_gettime(ClockId::from_raw(clock)).map(Duration::from).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn thread_clock_counts_only_its_cpu_time() {
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
    fn slope_and_intercept_are_medians() {
        assert_eq!(line(&[(2.0, 11.0), (4.0, 12.0), (8.0, 14.0), (8.5, 99.0)]), (10.0, 0.5));
        assert_eq!(line(&[(2.0, 11.0), (2.5, 12.0)]), (11.5, 0.0));
        assert_eq!(line(&[(2.0, 9.0), (8.0, 3.0)]), (6.0, 0.0));
    }
}
