//! The counters of a worker. Each worker has its own tally; only the worker writes it, any thread may read it.

use shakedown_sim::histogram::{Histogram, Summary};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A counter of a worker.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Relaxed);
    }

    /// Subtracts 1.
    pub fn remove(&self) {
        self.0.fetch_sub(1, Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Durations of one kind: a histogram in nanoseconds, and the exact sum of their squares.
#[derive(Debug, Default)]
pub struct Durations {
    histogram: Histogram,
    sum_of_squares_s2: f64,
}

impl Durations {
    pub fn record(&mut self, duration: Duration) {
        self.histogram.record_time(duration);
        self.sum_of_squares_s2 += duration.as_secs_f64().powi(2);
    }

    pub fn merge(&mut self, other: &Self) {
        self.histogram.merge(&other.histogram);
        self.sum_of_squares_s2 += other.sum_of_squares_s2;
    }

    pub fn count(&self) -> u64 {
        self.histogram.count()
    }

    pub fn sum_s(&self) -> f64 {
        self.histogram.sum() as f64 * 1e-9
    }

    /// The sum of their squares. With sum and count it gives the second moment, which queueing formulas need.
    pub fn sum_of_squares_s2(&self) -> f64 {
        self.sum_of_squares_s2
    }

    pub fn count_within(&self, bound: Duration) -> u64 {
        self.histogram.count_within(nanoseconds(bound))
    }

    /// Mean, percentiles and maximum, in seconds.
    pub fn summary(&self) -> Summary {
        self.histogram.summary(1e9)
    }
}

/// CPU time spent on messages of one name and sender.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MessageTime {
    pub count: u64,
    pub sum_s: f64,
}

/// Times of handshake messages in the server's queue. A message is all bytes that are received in one read.
#[derive(Debug, Default)]
pub struct QueueTimes {
    /// From a message's arrival until a worker reads it.
    pub message_wait: Durations,
    /// From then until the worker is done: reading, the stack's work, sending the response.
    pub message_service: Durations,
    /// The wait of the first message of a handshake.
    pub first_wait: Durations,
    pub handshake_wait: Durations,
    pub handshake_service: Durations,
}

impl QueueTimes {
    pub fn merge(&mut self, other: &Self) {
        self.message_wait.merge(&other.message_wait);
        self.message_service.merge(&other.message_service);
        self.first_wait.merge(&other.first_wait);
        self.handshake_wait.merge(&other.handshake_wait);
        self.handshake_service.merge(&other.handshake_service);
    }
}

/// Times of one message in the queue, to replay a worker's schedule; nanoseconds since the server's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueTrace {
    /// When it arrived, by the kernel's time stamp.
    pub arrived_ns: u64,
    /// When the worker read it.
    pub taken_up_ns: u64,
    /// When the worker was done with it.
    pub done_ns: u64,
    /// The worker's total busy time when it read the message.
    pub worked_ns: u64,
    pub handshake: u64,
    /// It is the first of its handshake.
    pub is_first: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Queued {
    first_wait: Option<Duration>,
    waited: Duration,
    served: Duration,
}

impl Queued {
    /// Counts a message of this handshake: when it was read, its wait until then, and its processing time.
    pub fn message(
        &mut self,
        handshake: u64,
        taken_up: Duration,
        waited: Duration,
        served: Duration,
        tally: &Tally,
    ) {
        let is_first = self.first_wait.is_none();
        self.first_wait.get_or_insert(waited);
        self.waited += waited;
        self.served += served;
        {
            let mut queue = lock(&tally.queue);
            queue.message_wait.record(waited);
            queue.message_service.record(served);
        }
        let mut queue_traces = lock(&tally.queue_traces);
        if queue_traces.len() < tally.max_queue_traces {
            queue_traces.push(QueueTrace {
                arrived_ns: nanoseconds(taken_up.saturating_sub(waited)),
                taken_up_ns: nanoseconds(taken_up),
                done_ns: nanoseconds(taken_up + served),
                worked_ns: tally.worked_until(taken_up),
                handshake,
                is_first,
            });
        }
    }

    pub fn handshake(self, tally: &Tally) {
        let Some(first_wait) = self.first_wait else { return };
        let mut queue = lock(&tally.queue);
        queue.first_wait.record(first_wait);
        queue.handshake_wait.record(self.waited);
        queue.handshake_service.record(self.served);
    }
}

/// Causes of failed handshakes.
pub mod cause {
    pub const TIMEOUT: &str = "timeout";
    /// The peer's connection failed.
    pub const DISCONNECTED: &str = "disconnected";
    /// The peer closed the connection.
    pub const CLOSED: &str = "closed";
    /// It was the oldest of too many handshakes in progress.
    pub const TOO_MANY_HANDSHAKES: &str = "too-many-handshakes";
    pub const IDLE: &str = "idle";
    pub const STOPPED: &str = "stopped";
    /// The stack failed without an alert.
    pub const PROTOCOL: &str = "protocol";
    /// The stack could not create an endpoint.
    pub const NO_ENDPOINT: &str = "no-endpoint";
}

/// `awake_since_ns` of an idle worker.
const ASLEEP: u64 = u64::MAX;

/// A duration in nanoseconds, limited to less than [`ASLEEP`].
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX - 1)
}

#[derive(Debug, Default)]
pub struct Tally {
    pub accepted: Counter,
    pub full: Counter,
    pub resumed: Counter,
    /// Failed handshakes, by cause.
    failed: Mutex<BTreeMap<String, u64>>,
    /// Number of times that accepting paused, because the table of descriptors or of connections was full.
    pub pauses: Counter,
    pub open: Counter,
    pub handshaking: Counter,
    /// Established connections that were closed because they were idle for too long.
    pub idle_closed: Counter,
    /// Established connections that were closed when the server stopped.
    pub cut: Counter,
    pub answers: Counter,
    /// Bytes received and sent, handshakes included.
    pub received_bytes: Counter,
    pub sent_bytes: Counter,
    pub handshakes: Mutex<Durations>,
    /// The stack's processing time for one handshake.
    pub busy: Mutex<Durations>,
    /// Queue times, if they are measured.
    pub queue: Mutex<QueueTimes>,
    /// Queue times of single messages, at most `max_queue_traces`.
    pub queue_traces: Mutex<Vec<QueueTrace>>,
    /// Further messages are only counted.
    pub max_queue_traces: usize,
    /// The worker's busy time in nanoseconds until it was last idle, if it is measured.
    pub worked_ns: Counter,
    /// Start of the present busy period, in nanoseconds since the server's start, or [`ASLEEP`].
    awake_since_ns: AtomicU64,
    /// By name and sender, in sampled handshakes.
    pub messages: Mutex<BTreeMap<(&'static str, &'static str), MessageTime>>,
    /// Sampled handshakes that were written, and those that could not be written.
    pub traces: Counter,
    pub traces_lost: Counter,
}

/// Locks a mutex even if its holder panicked, because counts remain valid.
pub fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tally {
    /// A worker that records the queue times of at most N messages.
    pub fn keeping(max_queue_traces: usize) -> Self {
        Self { max_queue_traces, ..Self::default() }
    }

    /// The worker is busy from now on; `now` counts from the server's start, as below.
    pub fn wakes(&self, now: Duration) {
        let _ = self.awake_since_ns.compare_exchange(ASLEEP, nanoseconds(now), Relaxed, Relaxed);
    }

    /// The worker is idle from now on.
    pub fn sleeps(&self, now: Duration) {
        let since = self.awake_since_ns.swap(ASLEEP, Relaxed);
        if since != ASLEEP {
            self.worked_ns.add(nanoseconds(now).saturating_sub(since));
        }
    }

    /// The worker's busy time until `now`, in nanoseconds.
    fn worked_until(&self, now: Duration) -> u64 {
        let since = self.awake_since_ns.load(Relaxed);
        self.worked_ns.get() + if since == ASLEEP { 0 } else { nanoseconds(now).saturating_sub(since) }
    }

    pub fn fail(&self, cause: &str) {
        *lock(&self.failed).entry(cause.to_owned()).or_default() += 1;
    }

    pub fn failed(&self) -> BTreeMap<String, u64> {
        lock(&self.failed).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_keep_their_sums_when_they_merge() {
        let (mut one, mut other) = (Durations::default(), Durations::default());
        one.record(Duration::from_millis(2));
        other.record(Duration::from_millis(4));
        one.merge(&other);
        assert_eq!(one.count(), 2);
        assert!((one.sum_s() - 0.006).abs() < 1e-12);
        assert!((one.sum_of_squares_s2() - 20e-6).abs() < 1e-12);
        assert_eq!(one.count_within(Duration::from_millis(3)), 1);
        assert_eq!(one.summary().max, Some(0.004));
    }

    #[test]
    fn message_is_stored_with_the_preceding_worker_state() {
        const MS: Duration = Duration::from_millis(1);
        let tally = Tally::keeping(2);
        tally.sleeps(MS);
        tally.wakes(10 * MS);
        tally.wakes(11 * MS);
        let mut queued = Queued::default();
        queued.message(7, 12 * MS, 3 * MS, MS, &tally);
        tally.sleeps(14 * MS);
        tally.wakes(20 * MS);
        queued.message(7, 20 * MS, MS, 2 * MS, &tally);
        queued.message(7, 30 * MS, MS, 2 * MS, &tally);
        let kept = lock(&tally.queue_traces);
        let of = |arrived: u64, taken_up: u64, done: u64, worked: u64, is_first| QueueTrace {
            arrived_ns: arrived * 1_000_000,
            taken_up_ns: taken_up * 1_000_000,
            done_ns: done * 1_000_000,
            worked_ns: worked * 1_000_000,
            handshake: 7,
            is_first,
        };
        // Awake until 1 ms, from 10 to 14, and from 20 on.
        assert_eq!(*kept, [of(9, 12, 13, 3, true), of(19, 20, 22, 5, false)]);
        assert_eq!(lock(&tally.queue).message_wait.count(), 3);
    }

    #[test]
    fn failures_are_counted_by_cause() {
        let tally = Tally::default();
        tally.fail(cause::TIMEOUT);
        tally.fail(cause::TIMEOUT);
        tally.fail("handshake_failure");
        assert_eq!(tally.failed(), BTreeMap::from([("timeout".into(), 2), ("handshake_failure".into(), 1)]));
    }
}
