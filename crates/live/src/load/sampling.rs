//! Selection of the connections that are recorded, and their samples.

use crate::maybe_recorded::MaybeRecorded;
use crate::trace_line::{self, About};
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::Value;
use shakedown_trace::{Endpoint, HalfTrace, Negotiated, Recording, Side, StackId};
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

/// The value kept with the recording is the number of preemptions while the endpoint worked.
impl MaybeRecorded<i64> {
    /// Calls the endpoint; counts preemptions in the meantime if it is recorded.
    pub fn during(&mut self, work: impl FnOnce(&mut dyn Endpoint)) {
        if self.value().is_none() {
            return work(&mut **self);
        }
        let before = involuntary_switches();
        work(&mut **self);
        if let Some(preemptions) = self.value() {
            *preemptions += involuntary_switches() - before;
        }
    }
}

/// Number of involuntary context switches of this thread.
fn involuntary_switches() -> i64 {
    getrusage(UsageWho::RUSAGE_THREAD).map_or(0, |usage| usage.involuntary_context_switches())
}

/// The recorded handshake of one connection.
pub struct Sample {
    pub recording: Recording,
    /// Preemptions of the thread while the client worked; the times then include those of other threads.
    pub preemptions: i64,
    pub ended: SystemTime,
    pub slowdown: Option<f64>,
    /// The client's address.
    pub address: Option<SocketAddr>,
    pub connect: Duration,
}

impl Sample {
    /// The sample as a JSON object; `None` if the event log is inconsistent.
    pub fn line(&self, negotiated: &Negotiated, suites: &[String], stack: &StackId) -> Option<Value> {
        let half = match self.slowdown {
            Some(factor) => HalfTrace::stretched(Side::Client, &self.recording, factor),
            None => HalfTrace::of(Side::Client, &self.recording),
        };
        let about = About {
            suites,
            stack,
            client_address: self.address,
            ended: self.ended,
            connect: Some(self.connect),
        };
        Some(trace_line::of(&half.ok()?, negotiated, &about))
    }
}

/// The sampled starts: N of them, distributed evenly over the run.
pub struct Sampling {
    wanted: usize,
    taken: usize,
    spacing: Spacing,
}

enum Spacing {
    /// In starts, if their number is known beforehand.
    Starts(f64),
    Time(Duration),
}

impl Sampling {
    pub const NONE: Self = Self { wanted: 0, taken: 0, spacing: Spacing::Starts(1.0) };

    /// Samples `wanted` starts of a run; `expected`: their total number, if it is known.
    #[allow(clippy::cast_precision_loss)] // an average
    pub fn new(wanted: usize, expected: Option<f64>, duration: Duration) -> Self {
        let spacing = match expected {
            Some(starts) => Spacing::Starts((starts / wanted.max(1) as f64).max(1.0)),
            None => Spacing::Time(duration.div_f64(wanted.max(1) as f64)),
        };
        Self { wanted, taken: 0, spacing }
    }

    /// Whether a start is sampled: the `number`th from 0, at `since` the run's beginning.
    #[allow(clippy::cast_precision_loss)] // starts are far fewer than 2^53
    pub fn takes(&mut self, number: u64, since: Duration) -> bool {
        let taken = self.taken as f64;
        let is_due = match self.spacing {
            Spacing::Starts(every) => number as f64 >= taken * every,
            Spacing::Time(every) => since >= every.mul_f64(taken),
        };
        let takes = self.taken < self.wanted && is_due;
        self.taken += usize::from(takes);
        takes
    }

    /// Discards a sampled handshake: the next start is sampled in its place.
    pub fn replace(&mut self) {
        self.taken = self.taken.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_spread_over_the_run() {
        let second = Duration::from_secs(1);
        let taken = |mut sampling: Sampling, starts: u64| -> Vec<u64> {
            (0..starts).filter(|number| sampling.takes(*number, second.mul_f64(*number as f64))).collect()
        };
        assert_eq!(taken(Sampling::new(4, Some(100.0), second), 100), [0, 25, 50, 75]);
        assert_eq!(taken(Sampling::new(4, Some(3.0), second), 3), [0, 1, 2]);
        assert_eq!(taken(Sampling::new(2, None, 10 * second), 10), [0, 5]);
        assert_eq!(taken(Sampling::NONE, 10), [] as [u64; 0]);
    }

    #[test]
    fn unusable_sample_is_replaced_by_the_next_start() {
        let mut sampling = Sampling::new(2, Some(10.0), Duration::from_secs(1));
        let mut taken = Vec::new();
        for number in 0..10 {
            if sampling.takes(number, Duration::ZERO) {
                taken.push(number);
                if number < 2 {
                    sampling.replace();
                }
            }
        }
        // Starts 1 and 2 replace start 0; the second sample is taken in its regular place.
        assert_eq!(taken, [0, 1, 2, 5]);
    }
}
