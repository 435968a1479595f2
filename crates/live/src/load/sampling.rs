//! Which connections are recorded, and what a recording is kept with.

use crate::trace_line::{self, About};
use crate::watched::Watched;
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::Value;
use shakedown_trace::{Endpoint, HalfTrace, Negotiated, Recording, Side, StackId};
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

/// Beside the record stands how often the thread lost its processor while the endpoint worked.
impl Watched<i64> {
    /// Lets it work; counts how often the thread loses its processor meanwhile, where that matters.
    pub fn during(&mut self, work: impl FnOnce(&mut dyn Endpoint)) {
        if self.beside().is_none() {
            return work(&mut **self);
        }
        let before = involuntary_switches();
        work(&mut **self);
        if let Some(preemptions) = self.beside() {
            *preemptions += involuntary_switches() - before;
        }
    }
}

/// How often this thread had to leave its processor to others.
fn involuntary_switches() -> i64 {
    getrusage(UsageWho::RUSAGE_THREAD).map_or(0, |usage| usage.involuntary_context_switches())
}

/// The handshake of one connection, as it was recorded.
pub struct Sample {
    pub recording: Recording,
    /// How often the thread lost its processor while the client worked: its times hold others' then.
    pub preemptions: i64,
    pub ended: SystemTime,
    pub slowdown: Option<f64>,
    /// The client's end of the connection.
    pub address: Option<SocketAddr>,
    pub connect: Duration,
}

impl Sample {
    /// As an object of JSON; `None` where the log contradicts itself.
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
    /// In starts, where their number is known beforehand.
    Starts(f64),
    Time(Duration),
}

impl Sampling {
    pub const NONE: Self = Self { wanted: 0, taken: 0, spacing: Spacing::Starts(1.0) };

    /// `wanted` of a run's starts, of which there are `expected` where that is known.
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

    /// A sampled handshake was no good: the next start is sampled in its place.
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
    fn the_next_start_takes_the_place_of_a_sample_that_is_no_good() {
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
        // Two for the first, then each in its own place.
        assert_eq!(taken, [0, 1, 2, 5]);
    }
}
