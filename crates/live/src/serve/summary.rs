//! Counts of a server, over all workers.

use super::config::Config;
use super::tally::{Durations, QueueTimes, Tally, lock};
use serde::Serialize;
use shakedown_trace::{StackId, Suite};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Times in seconds; null if there are none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Times {
    pub count: u64,
    pub mean: Option<f64>,
    pub p50: Option<f64>,
    pub p90: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
    pub max: Option<f64>,
    /// The mean of the squares, in seconds squared.
    pub second_moment_s2: Option<f64>,
}

impl Times {
    #[allow(clippy::cast_precision_loss)] // a mean is no more exact than its parts
    fn of(durations: &Durations) -> Self {
        let summary = durations.summary();
        let second_moment_s2 = durations.sum_of_squares_s2() / summary.n as f64;
        Self {
            count: summary.n,
            mean: summary.mean,
            p50: summary.p50,
            p90: summary.p90,
            p95: summary.p95,
            p99: summary.p99,
            max: summary.max,
            second_moment_s2: (summary.n > 0).then_some(second_moment_s2),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Handshakes {
    pub full: u64,
    pub resumed: u64,
    /// By cause: an alert's name or another cause.
    pub failed: BTreeMap<String, u64>,
}

/// Times of handshake messages in the server's queue. A message is all bytes that are received in one read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Queue {
    /// From a message's arrival until a worker reads it.
    pub message_wait_s: Times,
    /// From then until the worker is done with it.
    pub message_service_s: Times,
    /// The wait of the first message of a handshake.
    pub first_wait_s: Times,
    pub handshake_wait_s: Times,
    pub handshake_service_s: Times,
    /// Busy time of all workers together.
    pub worked_s: f64,
}

impl Queue {
    #[allow(clippy::cast_precision_loss)] // seconds of a run
    fn of(tallies: &[Arc<Tally>]) -> Self {
        let mut all = QueueTimes::default();
        for tally in tallies {
            all.merge(&lock(&tally.queue));
        }
        Self {
            message_wait_s: Times::of(&all.message_wait),
            message_service_s: Times::of(&all.message_service),
            first_wait_s: Times::of(&all.first_wait),
            handshake_wait_s: Times::of(&all.handshake_wait),
            handshake_service_s: Times::of(&all.handshake_service),
            worked_s: tallies.iter().map(|tally| tally.worked_ns.get()).sum::<u64>() as f64 * 1e-9,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// How the figures were obtained: `live`.
    pub kind: &'static str,
    /// The side that was measured: `server`.
    pub side: &'static str,
    pub suites: Vec<String>,
    pub stack: StackId,
    pub address: String,
    pub workers: usize,
    pub elapsed_s: f64,
    /// Connections accepted; over datagrams those that were established.
    pub accepted: u64,
    pub handshakes: Handshakes,
    /// From accepting, or from the first datagram, to the end of the handshake.
    pub handshake_s: Times,
    /// The stack's processing time for one handshake.
    pub busy_s: Times,
    /// Queue times; null unless they were measured.
    pub queue: Option<Queue>,
    pub answers: u64,
    /// Number of times that a limit paused accepting.
    pub pauses: u64,
    /// Established connections that were closed because they were idle for too long.
    pub idle_closed: u64,
    /// Established connections that were closed when the server stopped.
    pub cut: u64,
    /// Bytes received and sent on sockets.
    pub received_bytes: u64,
    pub sent_bytes: u64,
    /// Sampled handshakes written.
    pub traces: u64,
    /// Sampled handshakes that could not be saved.
    pub traces_lost: u64,
}

impl Summary {
    pub fn of(
        config: &Config,
        stack: &StackId,
        address: SocketAddr,
        elapsed: Duration,
        tallies: &[Arc<Tally>],
    ) -> Self {
        let sum = |count: fn(&Tally) -> u64| tallies.iter().map(|tally| count(tally)).sum();
        let (mut handshakes, mut busy) = (Durations::default(), Durations::default());
        for tally in tallies {
            handshakes.merge(&lock(&tally.handshakes));
            busy.merge(&lock(&tally.busy));
        }
        Self {
            kind: "live",
            side: "server",
            suites: config.suites.iter().map(Suite::to_string).collect(),
            stack: stack.clone(),
            address: address.to_string(),
            workers: tallies.len(),
            elapsed_s: elapsed.as_secs_f64(),
            accepted: sum(|tally| tally.accepted.get()),
            handshakes: Handshakes {
                full: sum(|tally| tally.full.get()),
                resumed: sum(|tally| tally.resumed.get()),
                failed: failures(tallies),
            },
            handshake_s: Times::of(&handshakes),
            busy_s: Times::of(&busy),
            queue: config.queue_times.then(|| Queue::of(tallies)),
            answers: sum(|tally| tally.answers.get()),
            pauses: sum(|tally| tally.pauses.get()),
            idle_closed: sum(|tally| tally.idle_closed.get()),
            cut: sum(|tally| tally.cut.get()),
            received_bytes: sum(|tally| tally.received_bytes.get()),
            sent_bytes: sum(|tally| tally.sent_bytes.get()),
            traces: sum(|tally| tally.traces.get()),
            traces_lost: sum(|tally| tally.traces_lost.get()),
        }
    }
}

pub fn failures(tallies: &[Arc<Tally>]) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for (cause, count) in tallies.iter().flat_map(|tally| tally.failed()) {
        *all.entry(cause).or_default() += count;
    }
    all
}
