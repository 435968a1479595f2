//! The environment of a call: time, randomness, cryptography, and an observer.

use crate::crypto::{Provider, Random};
use crate::observer::Observer;
use core::time::Duration;

/// A point in time. The two parts may come from different clocks; neither may go backwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Time {
    /// Time since an arbitrary beginning, for timers.
    pub elapsed: Duration,
    /// Seconds since 1970 in UTC, for hellos and certificates.
    pub unix_s: u64,
}

/// The environment of one call.
pub struct Context<'a, P: Provider> {
    pub now: Time,
    /// Unpredictable bytes.
    pub random: &'a mut dyn Random,
    pub provider: &'a P,
    /// Receives the callbacks for messages.
    pub observer: &'a mut dyn Observer,
}
