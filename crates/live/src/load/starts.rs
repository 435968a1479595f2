//! Who starts next, and the timer that says when.

use super::schedule::Schedule;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::clock_gettime;
use shakedown_trace::endpoint::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::iter::Peekable;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// A client whose connection failed waits this long before the next in a closed loop, lest a server that is gone be
/// asked a million times.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    pub planned: Time,
    pub client: usize,
}

pub enum Starts {
    /// A schedule, whatever becomes of the connections; clients take turns.
    Open {
        /// Since `begun`.
        schedule: Peekable<Schedule>,
        begun: Time,
        next_client: usize,
        clients: usize,
    },
    /// Clients that begin again when they are done.
    Closed {
        /// Who may start when.
        waiting: BinaryHeap<Reverse<(Time, usize)>>,
        /// When no more are started.
        until: Time,
    },
}

impl Starts {
    /// An open loop that begins at `begun`.
    pub fn open(schedule: Schedule, begun: Time, clients: usize) -> Self {
        Self::Open { schedule: schedule.peekable(), begun, next_client: 0, clients }
    }

    /// A closed loop of clients from `begun` to `until`.
    pub fn closed(clients: std::ops::Range<usize>, begun: Time, until: Time) -> Self {
        Self::Closed { waiting: clients.map(|client| Reverse((begun, client))).collect(), until }
    }

    /// When the next start is due; `None`: there is none, or none before a connection ends.
    pub fn next_at(&mut self) -> Option<Time> {
        match self {
            Self::Open { schedule, begun, .. } => schedule.peek().map(|at| *begun + *at),
            Self::Closed { waiting, until } => waiting.peek().map(|next| next.0.0).filter(|at| at < until),
        }
    }

    pub fn take(&mut self, now: Time) -> Option<Start> {
        if self.next_at().is_none_or(|at| at > now) {
            return None;
        }
        match self {
            Self::Open { schedule, begun, next_client, clients } => {
                let client = *next_client;
                *next_client = (client + 1) % *clients;
                schedule.next().map(|at| Start { planned: *begun + at, client })
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

/// Wakes the poll at absolute times, finer than a poll's own time-out can.
pub struct Alarm {
    timer: TimerFd,
    /// The kernel's monotonic time when ours was 0.
    epoch: Duration,
    armed: Option<Time>,
}

impl Alarm {
    /// One that speaks to a poll under a token; `now` is our time.
    pub fn new(registry: &Registry, token: Token, now: Time) -> io::Result<Self> {
        let timer =
            TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
        registry.register(&mut SourceFd(&timer.as_fd().as_raw_fd()), token, Interest::READABLE)?;
        let kernel = Duration::from(clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC)?);
        Ok(Self { timer, epoch: kernel.saturating_sub(now), armed: None })
    }

    /// Sets it to a time; unchanged times cost nothing.
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
    use crate::load::Arrivals;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn an_open_loop_does_not_wait_for_connections() {
        let schedule = Schedule::new(Arrivals::Deterministic, 1000.0, 5 * MS, 1);
        let mut starts = Starts::open(schedule, 10 * MS, 2);
        assert_eq!(starts.take(9 * MS), None);
        let planned: Vec<_> = std::iter::from_fn(|| starts.take(100 * MS)).collect();
        let expected = [(10, 0), (11, 1), (12, 0), (13, 1), (14, 0)];
        assert_eq!(planned, expected.map(|(at, client)| Start { planned: at * MS, client }));
        assert_eq!(starts.next_at(), None);
    }

    #[test]
    fn a_closed_loop_begins_again_when_a_connection_ends() {
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
}
