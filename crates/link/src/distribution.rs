//! Distributions of times.

use crate::elementary::exp;
use crate::random::exponential;
use crate::{MAX_SECONDS, Ns, Stream};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A distribution of times in seconds, as specified by files and callers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum DistributionSpec {
    /// Always the same.
    Constant { s: f64 },
    /// Uniform between two times.
    Uniform { minimum_s: f64, maximum_s: f64 },
    /// A minimum plus an exponential variate; `mean_s` is the mean of the sum.
    Exponential {
        #[serde(default)]
        minimum_s: f64,
        mean_s: f64,
    },
    /// A normal distribution, truncated at its minimum (values below are drawn again).
    Normal {
        mean_s: f64,
        sd_s: f64,
        #[serde(default)]
        minimum_s: f64,
    },
    /// A minimum plus a lognormal variate: `median_s` is the median of the sum, `sigma` the standard deviation of the
    /// variate's logarithm.
    Lognormal { minimum_s: f64, median_s: f64, sigma: f64 },
    /// Quantiles of a measured distribution, as (share at or below, seconds) in rising order from share 0 to share 1,
    /// with linear interpolation.
    Quantiles { points: Vec<(f64, f64)> },
    /// Measured values, all equally likely.
    Samples { s: Vec<f64> },
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DistributionError {
    #[error("{name} is {value}; accepted: 0 to 1e9 seconds")]
    NotATime { name: &'static str, value: f64 },
    #[error("{above} is {value} and {below} is {other}; accepted: {above} not below {below}")]
    Order { above: &'static str, value: f64, below: &'static str, other: f64 },
    #[error("sigma is {0}; accepted: 0 to 10")]
    Sigma(f64),
    #[error("quantiles are {0}; accepted: at least two points in rising order, from share 0 to share 1")]
    Quantiles(&'static str),
    #[error("there are no samples; accepted: at least one")]
    NoSamples,
}

/// A distribution that can be drawn from; cheap to clone.
#[derive(Clone, Debug)]
pub struct Distribution(Shape);

#[derive(Clone, Debug)]
enum Shape {
    Constant(Ns),
    Uniform { minimum_s: f64, width_s: f64 },
    Exponential { minimum_s: f64, excess_s: f64 },
    Normal { mean_s: f64, sd_s: f64, minimum_s: f64 },
    Lognormal { minimum_s: f64, excess_median_s: f64, sigma: f64 },
    Quantiles(Arc<[(f64, f64)]>),
    Samples(Arc<[Ns]>),
}

fn time(name: &'static str, value: f64) -> Result<f64, DistributionError> {
    if (0.0..=MAX_SECONDS).contains(&value) {
        Ok(value)
    } else {
        Err(DistributionError::NotATime { name, value })
    }
}

fn ordered(below: (&'static str, f64), above: (&'static str, f64)) -> Result<(), DistributionError> {
    time(below.0, below.1)?;
    time(above.0, above.1)?;
    if above.1 >= below.1 {
        return Ok(());
    }
    Err(DistributionError::Order { above: above.0, value: above.1, below: below.0, other: below.1 })
}

impl TryFrom<&DistributionSpec> for Distribution {
    type Error = DistributionError;

    fn try_from(spec: &DistributionSpec) -> Result<Self, DistributionError> {
        Ok(Self(match spec {
            DistributionSpec::Constant { s } => Shape::Constant(Ns::from_secs_f64(time("s", *s)?)),
            &DistributionSpec::Uniform { minimum_s, maximum_s } => {
                ordered(("minimum_s", minimum_s), ("maximum_s", maximum_s))?;
                Shape::Uniform { minimum_s, width_s: maximum_s - minimum_s }
            }
            &DistributionSpec::Exponential { minimum_s, mean_s } => {
                ordered(("minimum_s", minimum_s), ("mean_s", mean_s))?;
                Shape::Exponential { minimum_s, excess_s: mean_s - minimum_s }
            }
            &DistributionSpec::Normal { mean_s, sd_s, minimum_s } => {
                ordered(("minimum_s", minimum_s), ("mean_s", mean_s))?;
                if time("sd_s", sd_s)? == 0.0 {
                    return Ok(Self::constant(Ns::from_secs_f64(mean_s)));
                }
                Shape::Normal { mean_s, sd_s, minimum_s }
            }
            &DistributionSpec::Lognormal { minimum_s, median_s, sigma } => {
                ordered(("minimum_s", minimum_s), ("median_s", median_s))?;
                if !(0.0..=10.0).contains(&sigma) {
                    return Err(DistributionError::Sigma(sigma));
                }
                Shape::Lognormal { minimum_s, excess_median_s: median_s - minimum_s, sigma }
            }
            DistributionSpec::Quantiles { points } => Shape::Quantiles(quantiles(points)?),
            DistributionSpec::Samples { s } => {
                let samples = s.iter().map(|s| Ok(Ns::from_secs_f64(time("s", *s)?)));
                let samples = samples.collect::<Result<Arc<[Ns]>, DistributionError>>()?;
                match samples.as_ref() {
                    [] => return Err(DistributionError::NoSamples),
                    [first, rest @ ..] if rest.iter().all(|sample| sample == first) => {
                        Shape::Constant(*first)
                    }
                    _ => Shape::Samples(samples),
                }
            }
        }))
    }
}

fn quantiles(points: &[(f64, f64)]) -> Result<Arc<[(f64, f64)]>, DistributionError> {
    let (Some((first, _)), Some((last, _)), true) = (points.first(), points.last(), points.len() > 1) else {
        return Err(DistributionError::Quantiles("fewer than two points"));
    };
    if *first != 0.0 || *last != 1.0 {
        return Err(DistributionError::Quantiles("not from share 0 to share 1"));
    }
    for (share, value) in points {
        time("quantile", *value)?;
        if !share.is_finite() {
            return Err(DistributionError::Quantiles("not finite"));
        }
    }
    if points.windows(2).any(|pair| pair[1].0 <= pair[0].0 || pair[1].1 < pair[0].1) {
        return Err(DistributionError::Quantiles("not in rising order"));
    }
    Ok(points.into())
}

impl Distribution {
    /// Always the same time.
    pub fn constant(time: Ns) -> Self {
        Self(Shape::Constant(time))
    }

    /// The value, if the distribution is constant.
    #[inline]
    pub fn as_constant(&self) -> Option<Ns> {
        if let Shape::Constant(time) = self.0 { Some(time) } else { None }
    }

    /// Draws a time from each of N streams, with the same results as [`draw`](Self::draw). The logarithms are
    /// independent, so a processor can overlap them.
    #[inline]
    pub fn draw_each<const N: usize>(&self, stream: impl Fn(usize) -> Stream) -> [Ns; N] {
        let &Shape::Exponential { minimum_s, excess_s } = &self.0 else {
            return std::array::from_fn(|number| self.draw(&mut stream(number)));
        };
        let uniform: [f64; N] = std::array::from_fn(|number| stream(number).uniform());
        uniform.map(exponential).map(|variate| Ns::from_secs_f64(minimum_s + excess_s * variate))
    }

    /// Draws a time. A constant distribution does not use the stream.
    #[inline]
    pub fn draw(&self, stream: &mut Stream) -> Ns {
        match &self.0 {
            Shape::Constant(time) => *time,
            Shape::Uniform { minimum_s, width_s } => {
                Ns::from_secs_f64(minimum_s + width_s * stream.uniform())
            }
            Shape::Exponential { minimum_s, excess_s } => {
                Ns::from_secs_f64(minimum_s + excess_s * stream.exponential())
            }
            Shape::Normal { mean_s, sd_s, minimum_s } => loop {
                // At least half of all draws are accepted: the minimum is not above the mean.
                let value = mean_s + sd_s * stream.normal();
                if value >= *minimum_s {
                    break Ns::from_secs_f64(value);
                }
            },
            Shape::Lognormal { minimum_s, excess_median_s, sigma } => {
                Ns::from_secs_f64(minimum_s + excess_median_s * exp(sigma * stream.normal()))
            }
            Shape::Quantiles(points) => Ns::from_secs_f64(between(points, stream.uniform())),
            Shape::Samples(samples) => samples[stream.below(samples.len() as u64) as usize],
        }
    }

    /// The mean, in seconds.
    pub fn mean_s(&self) -> f64 {
        match &self.0 {
            Shape::Constant(time) => time.as_secs_f64(),
            Shape::Uniform { minimum_s, width_s } => minimum_s + width_s / 2.0,
            Shape::Exponential { minimum_s, excess_s } => minimum_s + excess_s,
            Shape::Normal { mean_s, sd_s, minimum_s } => {
                // Truncated normal distribution: μ + σ φ(α) / (1 - Φ(α)), α = (minimum - μ) / σ.
                let alpha = (minimum_s - mean_s) / sd_s;
                let density = libm::exp(-alpha * alpha / 2.0) / libm::sqrt(2.0 * std::f64::consts::PI);
                let above = 0.5 * libm::erfc(alpha / std::f64::consts::SQRT_2);
                mean_s + sd_s * density / above
            }
            Shape::Lognormal { minimum_s, excess_median_s, sigma } => {
                minimum_s + excess_median_s * libm::exp(sigma * sigma / 2.0)
            }
            Shape::Quantiles(points) => {
                points.windows(2).map(|pair| (pair[1].0 - pair[0].0) * (pair[0].1 + pair[1].1) / 2.0).sum()
            }
            Shape::Samples(samples) => {
                samples.iter().map(|sample| sample.as_secs_f64()).sum::<f64>() / samples.len() as f64
            }
        }
    }

    /// The mean of the square, in seconds²; an upper bound for a normal distribution.
    pub fn square_s2(&self) -> f64 {
        let mean_s = self.mean_s();
        match &self.0 {
            Shape::Constant(_) => mean_s * mean_s,
            Shape::Uniform { width_s, .. } => mean_s * mean_s + width_s * width_s / 12.0,
            Shape::Exponential { excess_s, .. } => mean_s * mean_s + excess_s * excess_s,
            // Truncation lowers the variance.
            Shape::Normal { sd_s, .. } => mean_s * mean_s + sd_s * sd_s,
            Shape::Lognormal { minimum_s, sigma, .. } => {
                let excess_s = mean_s - minimum_s;
                mean_s * mean_s + excess_s * excess_s * libm::expm1(sigma * sigma)
            }
            Shape::Quantiles(points) => points
                .windows(2)
                .map(|pair| {
                    let (low, high) = (pair[0].1, pair[1].1);
                    (pair[1].0 - pair[0].0) * (low * low + low * high + high * high) / 3.0
                })
                .sum(),
            Shape::Samples(samples) => {
                samples.iter().map(|sample| sample.as_secs_f64() * sample.as_secs_f64()).sum::<f64>()
                    / samples.len() as f64
            }
        }
    }
}

/// The value at a share, by linear interpolation.
fn between(points: &[(f64, f64)], share: f64) -> f64 {
    let index = points.partition_point(|point| point.0 <= share).clamp(1, points.len() - 1);
    let ((from, low), (to, high)) = (points[index - 1], points[index]);
    low + (high - low) * (share - from) / (to - from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(spec: &DistributionSpec) -> Distribution {
        Distribution::try_from(spec).expect("a valid distribution")
    }

    #[test]
    fn draws_match_the_computed_mean_and_the_minimum() {
        for (spec, minimum_s) in [
            (DistributionSpec::Uniform { minimum_s: 0.2, maximum_s: 0.4 }, 0.2),
            (DistributionSpec::Exponential { minimum_s: 0.1, mean_s: 0.3 }, 0.1),
            (DistributionSpec::Normal { mean_s: 0.391, sd_s: 0.09, minimum_s: 0.0 }, 0.0),
            (DistributionSpec::Normal { mean_s: 0.1, sd_s: 0.2, minimum_s: 0.05 }, 0.05),
            (DistributionSpec::Lognormal { minimum_s: 0.08, median_s: 0.1, sigma: 0.8 }, 0.08),
            (
                DistributionSpec::Quantiles {
                    points: vec![(0.0, 0.09), (0.5, 0.1), (0.99, 0.3), (1.0, 0.6)],
                },
                0.09,
            ),
            (DistributionSpec::Samples { s: vec![0.1, 0.2, 0.6] }, 0.1),
        ] {
            let distribution = made(&spec);
            let mut stream = Stream::seeded(5);
            let draws: Vec<f64> =
                (0..200_000).map(|_| distribution.draw(&mut stream).as_secs_f64()).collect();
            let mean = draws.iter().sum::<f64>() / draws.len() as f64;
            let closed = distribution.mean_s();
            assert!((mean - closed).abs() / closed < 0.005, "{spec:?}: drew {mean}, closed form {closed}");
            assert!(draws.iter().all(|draw| *draw >= minimum_s - 1e-9), "{spec:?}");
        }
    }

    #[test]
    fn times_drawn_in_a_batch_equal_single_draws() {
        for spec in [
            DistributionSpec::Exponential { minimum_s: 0.1, mean_s: 0.3 },
            DistributionSpec::Normal { mean_s: 0.1, sd_s: 0.2, minimum_s: 0.05 },
        ] {
            let (distribution, stream) = (made(&spec), |number| Stream::seeded(number as u64));
            let together: [Ns; 5] = distribution.draw_each(stream);
            assert_eq!(together, std::array::from_fn(|number| distribution.draw(&mut stream(number))));
        }
    }

    #[test]
    fn lognormal_has_the_given_median() {
        let distribution = made(&DistributionSpec::Lognormal { minimum_s: 0.08, median_s: 0.1, sigma: 0.8 });
        let mut stream = Stream::seeded(6);
        let below = (0..100_000).filter(|_| distribution.draw(&mut stream) <= Ns::from_ms(100)).count();
        assert!((49_000..51_000).contains(&below), "{below}");
    }

    #[test]
    fn impossible_distributions_are_refused() {
        for spec in [
            DistributionSpec::Constant { s: -1.0 },
            DistributionSpec::Constant { s: f64::NAN },
            DistributionSpec::Uniform { minimum_s: 2.0, maximum_s: 1.0 },
            DistributionSpec::Normal { mean_s: 0.1, sd_s: 1.0, minimum_s: 0.2 },
            DistributionSpec::Lognormal { minimum_s: 0.2, median_s: 0.1, sigma: 1.0 },
            DistributionSpec::Lognormal { minimum_s: 0.1, median_s: 0.2, sigma: 11.0 },
            DistributionSpec::Quantiles { points: vec![(0.0, 1.0)] },
            DistributionSpec::Quantiles { points: vec![(0.0, 1.0), (0.5, 2.0)] },
            DistributionSpec::Quantiles { points: vec![(0.0, 2.0), (1.0, 1.0)] },
            DistributionSpec::Samples { s: vec![] },
        ] {
            assert!(Distribution::try_from(&spec).is_err(), "{spec:?}");
        }
    }
}
