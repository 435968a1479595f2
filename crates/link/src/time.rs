//! Time as an integer number of nanoseconds.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// The longest accepted time, 31 years: sums of several such times still fit [`Ns`].
pub const MAX_SECONDS: f64 = 1e9;

/// Nanoseconds since an epoch that the caller chooses, or a duration; at most 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ns(pub u64);

impl Ns {
    /// The epoch, or a duration of zero.
    pub const ZERO: Self = Self(0);
    /// Later than any other time.
    pub const MAX: Self = Self(u64::MAX);

    #[inline]
    pub const fn from_ms(milliseconds: u64) -> Self {
        Self(milliseconds * 1_000_000)
    }

    #[inline]
    pub const fn from_s(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// Converts seconds, to the nearest nanosecond; negative values and NaN give zero, values that are too large
    /// [`MAX`](Self::MAX).
    #[inline]
    pub fn from_secs_f64(seconds: f64) -> Self {
        // Saturating, and 0 for NaN: the semantics of `as`. Adding one half rounds without `f64::round`, which
        // platforms may take from their own mathematics library.
        Self((seconds * 1e9 + 0.5) as u64)
    }

    /// In seconds.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// The duration since `earlier`; zero if `earlier` is later.
    #[inline]
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Ns {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Ns {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Ns {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        debug_assert!(self.0 >= other.0, "{self} - {other}: time goes backwards");
        self.since(other)
    }
}

impl From<Duration> for Ns {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Ns> for Duration {
    fn from(time: Ns) -> Self {
        Self::from_nanos(time.0)
    }
}

impl fmt::Display for Ns {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{:09} s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}
