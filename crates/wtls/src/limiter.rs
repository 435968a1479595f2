//! Token buckets. They limit the work that unproven peers can cause, without blocking an address permanently: a
//! peer that is rejected now is served later.

use core::time::Duration;

/// A rate limit: `burst` units at once, and `refill` more in each `period`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The initial and maximum level.
    pub burst: u64,
    /// The units that are added in each `period`, evenly.
    pub refill: u64,
    pub period: Duration,
}

impl Budget {
    /// `burst` units at once, and `refill` more each second.
    pub const fn per_second(burst: u64, refill: u64) -> Self {
        Self { burst, refill, period: Duration::from_secs(1) }
    }

    /// `burst` units at once, and one more each minute.
    pub const fn per_minute(burst: u64) -> Self {
        Self { burst, refill: 1, period: Duration::from_secs(60) }
    }

    /// One unit on the scale of [`Bucket::level`], to which each nanosecond adds `refill`.
    fn unit(&self) -> u128 {
        self.period.as_nanos().max(1)
    }

    fn full(&self) -> u128 {
        u128::from(self.burst).saturating_mul(self.unit())
    }
}

/// The current level of a [`Budget`]. It reads no clock: the time is an argument.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bucket {
    budget: Budget,
    level: u128,
    /// The time of the last refill; `None` before the first use, when the bucket is full.
    filled_at: Option<Duration>,
}

impl Bucket {
    pub fn new(budget: Budget) -> Self {
        Self { budget, level: budget.full(), filled_at: None }
    }

    fn fill(&mut self, now: Duration) {
        let elapsed = now.saturating_sub(self.filled_at.unwrap_or(now));
        let added = elapsed.as_nanos().saturating_mul(self.budget.refill.into());
        self.level = self.level.saturating_add(added).min(self.budget.full());
        self.filled_at = Some(now);
    }

    /// Takes `amount` units, or none if there are fewer. Returns whether it took them.
    pub fn take(&mut self, amount: u64, now: Duration) -> bool {
        self.fill(now);
        let cost = u128::from(amount).saturating_mul(self.budget.unit());
        let enough = cost <= self.level;
        if enough {
            self.level -= cost;
        }
        enough
    }

    pub fn give_back(&mut self, amount: u64) {
        let returned = u128::from(amount).saturating_mul(self.budget.unit());
        self.level = self.level.saturating_add(returned).min(self.budget.full());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_bucket_holds_a_burst_and_fills_evenly() {
        let mut bucket = Bucket::new(Budget::per_second(3, 2));
        assert!((0..3).all(|_| bucket.take(1, ms(1000))));
        assert!(!bucket.take(1, ms(1000)));
        assert!(!bucket.take(1, ms(1499)));
        assert!(bucket.take(1, ms(1500)));
        assert!(!bucket.take(3, ms(2999)), "all or nothing");
        assert!(bucket.take(3, ms(3000)));
        // After any time, the level is at most the burst.
        assert!(!bucket.take(4, ms(1_000_000)));
        assert!(bucket.take(3, ms(1_000_000)));
    }

    #[test]
    fn returned_tokens_can_be_taken_again() {
        let mut bucket = Bucket::new(Budget::per_second(2, 0));
        assert!(bucket.take(2, ms(0)));
        bucket.give_back(1);
        assert!(bucket.take(1, ms(0)) && !bucket.take(1, ms(0)));
        bucket.give_back(10);
        assert!(!bucket.take(3, ms(0)));
    }

    #[test]
    fn zero_and_unlimited_budgets_are_supported() {
        assert!(!Bucket::new(Budget::per_second(0, 0)).take(1, ms(5)));
        let mut unlimited = Bucket::new(Budget::per_second(u64::MAX, u64::MAX));
        assert!((0..1000).all(|_| unlimited.take(u64::from(u32::MAX), ms(0))));
        let mut no_period = Bucket::new(Budget { burst: 1, refill: 1, period: Duration::ZERO });
        assert!(no_period.take(1, ms(0)) && !no_period.take(1, ms(0)) && no_period.take(1, ms(1)));
    }
}
