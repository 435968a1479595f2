//! When clients arrive.

use crate::scenario::{ArrivalSpec, Scenario};
use shakedown_link::{Ns, Stream};

/// Variates per batch. The processor computes the logarithms of a batch in parallel.
const TOGETHER: usize = 16;

/// An iterator over arrival times, which draws some variates in advance.
#[derive(Debug)]
pub struct Arrivals<'a> {
    spec: &'a ArrivalSpec,
    stream: Stream,
    clients: u64,
    /// No client arrives later.
    until: Ns,
    given: u64,
    /// The last arrival, in seconds after `base`: not in whole nanoseconds, so that rounding errors do not add up.
    last_s: f64,
    /// Keeps `last_s` small, and thus exact, in a run of any duration.
    base: Ns,
    /// Variates drawn in advance; those from `used` on have not been used.
    gaps: [f64; TOGETHER],
    used: usize,
    /// The line of a curve on which `last_s` lies.
    line: usize,
}

impl<'a> Arrivals<'a> {
    /// The arrivals of a scenario, with random numbers from `stream`.
    #[must_use]
    pub fn new(scenario: &'a Scenario, stream: Stream) -> Self {
        Self::of(&scenario.arrivals, scenario.client_limit(), Ns::MAX, stream)
    }

    /// The arrivals of a process: at most N clients, up to a time.
    pub(crate) fn of(spec: &'a ArrivalSpec, clients: u64, until: Ns, stream: Stream) -> Self {
        Self {
            spec,
            stream,
            clients,
            until,
            given: 0,
            last_s: 0.0,
            base: Ns::ZERO,
            gaps: [0.0; TOGETHER],
            used: TOGETHER,
            line: 0,
        }
    }

    /// The next time on a curve: when the area below the curve has grown by an exponential variate; `None` after its
    /// end.
    fn on_curve(&mut self, points: &[(f64, f64)]) -> Option<Ns> {
        let mut area = self.exponential();
        loop {
            let (&(from_s, from), &(to_s, to)) = (points.get(self.line)?, points.get(self.line + 1)?);
            let slope = (to - from) / (to_s - from_s);
            let (rate, left_s) = (from + slope * (self.last_s - from_s), to_s - self.last_s);
            let rest = (rate + to) / 2.0 * left_s;
            if area < rest {
                // Solves rate x + slope x² / 2 = area, in the form without cancellation.
                let root = libm::sqrt((rate * rate + 2.0 * slope * area).max(0.0));
                self.last_s = (self.last_s + 2.0 * area / (rate + root)).min(to_s);
                return Some(Ns::from_secs_f64(self.last_s));
            }
            area -= rest;
            self.last_s = to_s;
            self.line += 1;
        }
    }

    /// An exponential variate of mean 1.
    #[inline]
    fn exponential(&mut self) -> f64 {
        if self.used == TOGETHER {
            self.stream.exponentials(&mut self.gaps);
            self.used = 0;
        }
        self.used += 1;
        self.gaps[self.used - 1]
    }

    #[inline]
    fn after(&mut self, gap_s: f64) -> Ns {
        self.last_s += gap_s;
        if self.last_s >= 1000.0 {
            let whole = self.last_s as u64;
            self.base += Ns::from_s(whole);
            self.last_s -= whole as f64;
        }
        self.base + Ns::from_secs_f64(self.last_s)
    }
}

impl Iterator for Arrivals<'_> {
    type Item = Ns;

    fn next(&mut self) -> Option<Ns> {
        if self.given == self.clients {
            return None;
        }
        let number = self.given;
        self.given += 1;
        let at = match self.spec {
            ArrivalSpec::Poisson { per_s } => {
                let gap_s = self.exponential() / per_s;
                self.after(gap_s)
            }
            ArrivalSpec::Deterministic { per_s } => self.after(if number == 0 { 0.0 } else { 1.0 / per_s }),
            ArrivalSpec::Bursts { per_s, size } => {
                let begins = number.is_multiple_of(u64::from(*size));
                let gap_s = if begins { self.exponential() / per_s } else { 0.0 };
                self.after(gap_s)
            }
            ArrivalSpec::Storm { within_s } => {
                // The smallest of the remaining uniform times, without storing or sorting them: its distance is the
                // share 1 - u^(1/left) of the remaining period.
                let left = (self.clients - number) as f64;
                let rest_s = within_s - self.last_s;
                let part = 1.0 - libm::pow(self.stream.uniform(), 1.0 / left);
                self.last_s += rest_s * part;
                Ns::from_secs_f64(self.last_s)
            }
            ArrivalSpec::Curve { points } => match self.on_curve(points) {
                Some(at) => at,
                None => {
                    self.given = self.clients;
                    return None;
                }
            },
            ArrivalSpec::Times { at_s } => Ns::from_secs_f64(at_s[number as usize]),
        };
        // Times after the end of the clock do not occur.
        if at > self.until || at == Ns::MAX {
            self.given = self.clients;
            return None;
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(spec: &ArrivalSpec, clients: u64) -> Vec<f64> {
        Arrivals::of(spec, clients, Ns::MAX, Stream::seeded(3)).map(Ns::as_secs_f64).collect()
    }

    #[test]
    fn poisson_arrivals_have_their_rate_and_spread() {
        let times = times(&ArrivalSpec::Poisson { per_s: 50.0 }, 200_000);
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let squares = gaps.iter().map(|gap| gap * gap).sum::<f64>() / gaps.len() as f64;
        assert!((mean * 50.0 - 1.0).abs() < 0.012, "{mean}");
        assert!((squares / (2.0 * mean * mean) - 1.0).abs() < 0.03, "{squares}");
    }

    #[test]
    fn deterministic_arrivals_do_not_drift() {
        let times = times(&ArrivalSpec::Deterministic { per_s: 3.0 }, 3_000_001);
        assert_eq!(times[0], 0.0);
        assert!((times[3_000_000] - 1_000_000.0).abs() < 1e-4, "{}", times[3_000_000]);
    }

    #[test]
    fn clients_of_a_burst_arrive_together() {
        let times = times(&ArrivalSpec::Bursts { per_s: 1.0, size: 5 }, 20);
        for burst in times.chunks(5) {
            assert!(burst.iter().all(|time| *time == burst[0]));
        }
        assert!(times[5] > times[4]);
    }

    /// Counts in each part of a curve have a Poisson distribution, with the area below it as their mean.
    #[test]
    fn rate_curve_arrivals_match_the_area_below_it() {
        let points = vec![(0.0, 0.0), (10.0, 400.0), (20.0, 400.0), (21.0, 0.0), (30.0, 0.0), (40.0, 100.0)];
        let areas = [2000.0, 4000.0, 200.0, 0.0, 500.0];
        let mut squares = 0.0;
        let seeds = 200_u64;
        for seed in 0..seeds {
            let spec = ArrivalSpec::Curve { points: points.clone() };
            let times: Vec<f64> =
                Arrivals::of(&spec, u64::MAX, Ns::MAX, Stream::seeded(seed)).map(Ns::as_secs_f64).collect();
            assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
            for (line, area) in points.windows(2).zip(areas) {
                let within = times.iter().filter(|time| (line[0].0..line[1].0).contains(*time)).count();
                if area == 0.0 {
                    assert_eq!(within, 0);
                } else {
                    squares += (within as f64 - area).powi(2) / area;
                }
            }
            // A rising line has a quarter of its area in its first half.
            let early = times.iter().filter(|time| **time < 5.0).count() as f64;
            assert!((early - 500.0).abs() < 5.0 * 500.0_f64.sqrt(), "{early}");
        }
        // Chi-square of 4 × 200 counts: mean 800, standard deviation 40.
        assert!((squares - 800.0).abs() < 4.0 * 40.0, "{squares}");
    }

    #[test]
    fn a_storm_is_uniform_over_its_time_and_in_order() {
        let times = times(&ArrivalSpec::Storm { within_s: 10.0 }, 100_000);
        assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
        // Kolmogorov–Smirnov at 1 %: 1.63 / √n.
        let n = times.len() as f64;
        let far = times.iter().enumerate().map(|(rank, time)| (time / 10.0 - rank as f64 / n).abs());
        assert!(far.fold(0.0, f64::max) < 1.63 / n.sqrt());
        assert!(
            super::tests::times(&ArrivalSpec::Storm { within_s: 0.0 }, 5).iter().all(|time| *time == 0.0)
        );
    }
}
