//! Slowdown factor of an emulated client.

use shakedown_trace::endpoint::Time;
use std::collections::VecDeque;

/// Number of recent handshakes whose median is used.
const RECENT: usize = 15;

/// The factor is the emulated client's processing time of a handshake, divided by the recent CPU times on this machine.
/// The steps of a slowed client are far apart and thus find cold caches, so they take several times the CPU time of
/// handshakes in a tight loop. Only the run's own handshakes are therefore used.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    factor: Option<f64>,
    client: Option<Time>,
    recent: VecDeque<Time>,
}

impl Pace {
    /// An initial factor, and the emulated client's processing time; without the latter the factor is constant.
    pub fn new(factor: Option<f64>, client: Option<Time>) -> Self {
        Self { factor, client, recent: VecDeque::with_capacity(RECENT) }
    }

    pub fn factor(&self) -> Option<f64> {
        self.factor
    }

    /// Updates the factor with the CPU time that a full handshake took the client on this machine.
    pub fn learn(&mut self, worked: Time) {
        let (Some(_), Some(client)) = (self.factor, self.client) else { return };
        if worked.is_zero() {
            return;
        }
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(worked);
        let mut sorted: Vec<Time> = self.recent.iter().copied().collect();
        sorted.sort_unstable();
        let median = sorted[sorted.len() / 2];
        self.factor = Some((client.as_secs_f64() / median.as_secs_f64()).max(1.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slowdown_follows_the_measured_handshake_times() {
        let mut pace = Pace::new(Some(100.0), Some(Time::from_millis(50)));
        assert_eq!(pace.factor(), Some(100.0));
        pace.learn(Time::from_millis(2));
        assert_eq!(pace.factor(), Some(25.0));
        for _ in 0..RECENT {
            pace.learn(Time::from_millis(1));
        }
        // One outlier changes nothing.
        pace.learn(Time::from_secs(1));
        assert_eq!(pace.factor(), Some(50.0));
    }

    #[test]
    fn slowdown_is_at_least_one_and_a_fixed_factor_is_kept() {
        let mut pace = Pace::new(Some(3.0), Some(Time::from_millis(1)));
        pace.learn(Time::from_millis(2));
        assert_eq!(pace.factor(), Some(1.0));
        for pace in [&mut Pace::new(Some(3.0), None), &mut Pace::new(None, Some(Time::from_secs(1)))] {
            let before = pace.factor();
            pace.learn(Time::from_millis(2));
            assert_eq!(pace.factor(), before);
        }
    }
}
