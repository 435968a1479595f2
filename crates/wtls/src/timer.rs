//! When an unanswered flight is sent again.

use crate::config::Retransmission;
use core::time::Duration;

/// A timer that doubles and gives up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timer {
    policy: Retransmission,
    interval: Duration,
    sends: u32,
    deadline: Duration,
}

/// What a timer that has run out asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// It has not run out.
    NotYet,
    /// Send again.
    SendAgain,
    /// It has been sent often enough.
    GiveUp,
}

impl Timer {
    /// Starts with a first send at `now`.
    pub fn start(policy: Retransmission, now: Duration) -> Self {
        let interval = policy.initial;
        Self { policy, interval, sends: 1, deadline: now.saturating_add(interval) }
    }

    /// How often has been sent what it is about.
    pub fn sends(&self) -> u32 {
        self.sends
    }

    /// When it runs out.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Gives the peer more time without counting it as a failure.
    pub fn extend(&mut self, now: Duration) {
        self.deadline = now.saturating_add(self.interval);
    }

    /// Checks the time and, if it has run out, counts another send.
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
