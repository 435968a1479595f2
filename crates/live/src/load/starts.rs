//! The schedule of starts, and the timer for the next one.

use super::config::Config;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::clock_gettime;
use serde::{Deserialize, Serialize};
use shakedown_link::{Purpose, Stream};
use shakedown_trace::endpoint::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// Arrival process of the starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// Independent starts: exponential gaps.
    Poisson,
    Deterministic,
    /// Each client starts its next connection when the previous one has ended.
    Closed,
}

/// Purpose of the random draws of gaps.
const GAPS: Purpose = Purpose(300);

/// In a closed loop, a client waits this long after a failed connection, so that a server that is down does not get a
/// million requests.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    pub planned: Time,
    pub client: usize,
}

pub enum Starts {
    /// A schedule that depends only on the seed, not on the connections or the clock. Clients start in turn.
    Open {
        /// Exponential gaps; `None`: equal ones.
        gaps: Option<Stream>,
        rate_per_s: f64,
        begun: Time,
        /// Number of starts so far.
        count: usize,
        /// Time of the next start, since `begun`.
        next_s: f64,
        duration_s: f64,
        clients: usize,
    },
    /// Clients that start again when their connection has ended.
    Closed {
        /// Times at which clients may start.
        waiting: BinaryHeap<Reverse<(Time, usize)>>,
        /// End of the starts.
        until: Time,
    },
}

impl Starts {
    /// Schedule of a load that begins at `begun`.
    pub fn of(config: &Config, begun: Time) -> Self {
        let Some(rate_per_s) = config.rate_per_s.filter(|_| config.arrivals != Arrivals::Closed) else {
            return Self::closed(0..config.clients, begun, begun + config.duration());
        };
        let mut gaps = (config.arrivals == Arrivals::Poisson).then(|| Stream::of(config.seed, 0, GAPS));
        let next_s = gaps.as_mut().map_or(0.0, |gaps| gaps.exponential() / rate_per_s);
        let (duration_s, clients) = (config.duration_s, config.clients);
        Self::Open { gaps, rate_per_s, begun, count: 0, next_s, duration_s, clients }
    }

    /// A closed loop of clients from `begun` to `until`.
    pub fn closed(clients: std::ops::Range<usize>, begun: Time, until: Time) -> Self {
        Self::Closed { waiting: clients.map(|client| Reverse((begun, client))).collect(), until }
    }

    /// Time of the next start; `None` if there is none, or none until a connection ends.
    pub fn next_at(&self) -> Option<Time> {
        match self {
            Self::Open { begun, next_s, duration_s, .. } => {
                (*next_s < *duration_s).then(|| *begun + Duration::from_secs_f64(*next_s))
            }
            Self::Closed { waiting, until } => waiting.peek().map(|next| next.0.0).filter(|at| at < until),
        }
    }

    pub fn take(&mut self, now: Time) -> Option<Start> {
        let planned = self.next_at().filter(|at| *at <= now)?;
        match self {
            Self::Open { gaps, rate_per_s, count, next_s, clients, .. } => {
                let client = *count % *clients;
                *count += 1;
                *next_s = match gaps {
                    Some(gaps) => *next_s + gaps.exponential() / *rate_per_s,
                    // Computed from the beginning, so that rounding errors do not accumulate.
                    None => *count as f64 / *rate_per_s,
                };
                Some(Start { planned, client })
            }
            Self::Closed { waiting, .. } => {
                waiting.pop().map(|Reverse((planned, client))| Start { planned, client })
            }
        }
    }

    pub fn ended(&mut self, client: usize, now: Time, failed: bool) {
        if let Self::Closed { waiting, .. } = self {
            let at = if failed { now + AFTER_FAILURE } else { now };
            waiting.push(Reverse((at, client)));
        }
    }
}

/// Wakes the poll at absolute times, with a finer resolution than the poll's own timeout.
pub struct Alarm {
    timer: TimerFd,
    /// Time of the kernel's monotonic clock at the loop's time 0.
    epoch: Duration,
    armed: Option<Time>,
}

impl Alarm {
    /// An alarm that wakes a poll under a token; `now` is the loop's time.
    pub fn new(registry: &Registry, token: Token, now: Time) -> io::Result<Self> {
        let timer =
            TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
        registry.register(&mut SourceFd(&timer.as_fd().as_raw_fd()), token, Interest::READABLE)?;
        let kernel = Duration::from(clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC)?);
        Ok(Self { timer, epoch: kernel.saturating_sub(now), armed: None })
    }

    /// Sets the time of the alarm; without a change, no system call is made.
    pub fn set(&mut self, at: Option<Time>) -> io::Result<()> {
        if at == self.armed {
            return Ok(());
        }
        self.armed = at;
        match at {
            Some(at) => self.timer.set(
                Expiration::OneShot(TimeSpec::from_duration(self.epoch + at)),
                TimerSetTimeFlags::TFD_TIMER_ABSTIME,
            )?,
            None => self.timer.unset()?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn open(arrivals: Arrivals, rate_per_s: f64, duration_s: f64, seed: u64) -> Config {
        Config { arrivals, rate_per_s: Some(rate_per_s), duration_s, seed, clients: 2, ..Config::default() }
    }

    /// Planned starts in seconds.
    fn planned(arrivals: Arrivals, rate_per_s: f64, duration_s: f64, seed: u64) -> Vec<f64> {
        let mut starts = Starts::of(&open(arrivals, rate_per_s, duration_s, seed), Duration::ZERO);
        std::iter::from_fn(|| starts.take(Duration::MAX)).map(|start| start.planned.as_secs_f64()).collect()
    }

    #[test]
    fn an_open_loop_does_not_wait_for_connections() {
        let mut starts = Starts::of(&open(Arrivals::Deterministic, 1000.0, 0.005, 1), 10 * MS);
        assert_eq!(starts.take(9 * MS), None);
        let found: Vec<_> = std::iter::from_fn(|| starts.take(100 * MS)).collect();
        let expected = [(10, 0), (11, 1), (12, 0), (13, 1), (14, 0)];
        assert_eq!(found, expected.map(|(at, client)| Start { planned: at * MS, client }));
        assert_eq!(starts.next_at(), None);
    }

    #[test]
    fn closed_loop_starts_again_when_a_connection_ends() {
        let mut starts = Starts::closed(0..2, Duration::ZERO, 1000 * MS);
        let first: Vec<_> = std::iter::from_fn(|| starts.take(MS)).map(|start| start.client).collect();
        assert_eq!(first, [0, 1]);
        starts.ended(1, 5 * MS, false);
        starts.ended(0, 6 * MS, true);
        assert_eq!(starts.take(5 * MS), Some(Start { planned: 5 * MS, client: 1 }));
        assert_eq!(starts.next_at(), Some(106 * MS));
        starts.ended(1, 1000 * MS, false);
        assert_eq!(starts.take(106 * MS).map(|start| start.client), Some(0));
        assert_eq!(starts.next_at(), None);
    }

    #[test]
    fn deterministic_starts_do_not_drift() {
        let all = planned(Arrivals::Deterministic, 300.0, 1000.0, 1);
        assert_eq!(all.len(), 300_000);
        assert_eq!(all[0], 0.0);
        assert!((all[299_999] - 299_999.0 / 300.0).abs() < 1e-8);
    }

    #[test]
    fn poisson_gaps_are_exponential() {
        let all = planned(Arrivals::Poisson, 1000.0, 100.0, 7);
        let n = all.len() as f64;
        // A Poisson count of mean 100,000: five standard deviations.
        assert!((n - 100_000.0).abs() < 5.0 * 316.3, "{n} starts");
        let mut gaps: Vec<f64> = all.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean * 1000.0 - 1.0).abs() < 0.02, "mean {mean}");
        assert!((variance / (mean * mean) - 1.0).abs() < 0.05, "variance {variance}");
        // Kolmogorov-Smirnov test against 1 - exp(-x): 1.95/√n is the critical value at the level of 0.001.
        gaps.sort_by(f64::total_cmp);
        let count = gaps.len() as f64;
        let distance = gaps.iter().enumerate().map(|(place, gap)| {
            let expected = 1.0 - (-gap * 1000.0).exp();
            (expected - place as f64 / count).abs().max((expected - (place + 1) as f64 / count).abs())
        });
        let distance = distance.fold(0.0, f64::max);
        assert!(distance < 1.95 / count.sqrt(), "distance {distance}");
    }

    #[test]
    fn equal_seeds_give_equal_starts_and_others_differ() {
        let of = |seed| planned(Arrivals::Poisson, 100.0, 10.0, seed);
        assert_eq!(of(3), of(3));
        assert_ne!(of(3), of(4));
    }
}
