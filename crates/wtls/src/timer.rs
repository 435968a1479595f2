//! The timer for the retransmission of flights without a response.

use crate::config::Retransmission;
use core::time::Duration;

/// A timer whose interval doubles, with a limit of transmissions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timer {
    policy: Retransmission,
    interval: Duration,
    sends: u32,
    deadline: Duration,
}

/// The action that an expired timer requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// The timer has not expired.
    NotYet,
    /// Send again.
    SendAgain,
    /// The limit of transmissions is reached.
    GiveUp,
}

impl Timer {
    /// Starts with a first send at `now`.
    pub fn start(policy: Retransmission, now: Duration) -> Self {
        let interval = policy.initial;
        Self { policy, interval, sends: 1, deadline: now.saturating_add(interval) }
    }

    /// Number of transmissions of the flight.
    pub fn sends(&self) -> u32 {
        self.sends
    }

    /// The time at which the timer expires.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Gives the peer more time without counting it as a failure.
    pub fn extend(&mut self, now: Duration) {
        self.deadline = now.saturating_add(self.interval);
    }

    /// Checks the time. If the timer has expired, counts another transmission.
    pub fn expire(&mut self, now: Duration) -> Expiry {
        if now < self.deadline {
            return Expiry::NotYet;
        }
        if self.sends >= self.policy.sends {
            return Expiry::GiveUp;
        }
        self.sends += 1;
        self.interval = self.interval.saturating_mul(2);
        self.deadline = now.saturating_add(self.interval);
        Expiry::SendAgain
    }
}
