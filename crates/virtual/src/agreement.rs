//! The distance of two outcomes: the two-sample test of Kolmogorov and Smirnov.
//!
//! Times of handshakes lie on plateaus: all without loss take nearly the same time, and all with one lost packet nearly
//! the same longer time. Two samples whose plateaus differ by one byte of a signature would have the greatest possible
//! distance, so times within a tolerance can be counted as equal. With a tolerance, and with many equal times, the test
//! rejects less often than its level, never more often. Histograms have a resolution of 1/1024.

use shakedown_sim::histogram::Histogram;

/// Values in ascending order, each with the fraction of values up to and including it.
fn shares(histogram: &Histogram) -> Vec<(f64, f64)> {
    let count = histogram.count() as f64;
    let mut seen = 0;
    let up_to = histogram.buckets().map(|(_, next, n)| {
        seen += n;
        (next as f64, seen as f64 / count)
    });
    up_to.collect()
}

/// The maximum, over all values v, of the fraction of `one` up to v minus the fraction of `other` up to v times
/// (1 + `tolerance`).
fn excess(one: &[(f64, f64)], other: &[(f64, f64)], tolerance: f64) -> f64 {
    let mut greatest = 0.0_f64;
    for (value, share) in one {
        let bound = value * (1.0 + tolerance);
        let below = other.partition_point(|(value, _)| *value <= bound);
        let theirs = below.checked_sub(1).map_or(0.0, |last| other[last].1);
        greatest = greatest.max(share - theirs);
    }
    greatest
}

/// The maximum difference between the two cumulative distributions; `None` if either is empty. Values whose relative
/// difference is at most `tolerance` count as equal.
pub fn distance(one: &Histogram, other: &Histogram, tolerance: f64) -> Option<f64> {
    if one.count() == 0 || other.count() == 0 {
        return None;
    }
    let (one, other) = (shares(one), shares(other));
    Some(excess(&one, &other, tolerance).max(excess(&other, &one, tolerance)))
}

/// The distance that samples of `one` and `other` values of the same distribution exceed with probability `level`:
/// √(-ln(level / 2) / 2 · (1 / one + 1 / other)), Smirnov's limit.
pub fn critical(one: u64, other: u64, level: f64) -> f64 {
    let values = 1.0 / one as f64 + 1.0 / other as f64;
    libm::sqrt(-libm::log(level / 2.0) / 2.0 * values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shakedown_link::Stream;

    fn exponential(stream: &mut Stream, mean: f64, count: u32) -> Histogram {
        let mut histogram = Histogram::default();
        (0..count).for_each(|_| histogram.record((stream.exponential() * mean) as u64));
        histogram
    }

    /// Smirnov's table (1948): 1.36 and 1.63 times √(1/n + 1/m) at 5 % and 1 %.
    #[test]
    fn critical_distances_match_smirnov() {
        for (level, factor) in [(0.1, 1.22), (0.05, 1.36), (0.01, 1.63), (0.001, 1.95)] {
            assert!((critical(200, 200, level) * 10.0 - factor).abs() < 0.005, "{level}");
        }
    }

    #[test]
    fn equal_distributions_pass_at_the_level_and_others_fail() {
        let mut stream = Stream::seeded(7);
        let mut refused = 0;
        for _ in 0..400 {
            let one = exponential(&mut stream, 1e9, 300);
            let other = exponential(&mut stream, 1e9, 600);
            refused += u32::from(distance(&one, &other, 0.0).expect("values") > critical(300, 600, 0.05));
        }
        // 20 expected, standard deviation 4.4; the limit is a little too great for samples so small.
        assert!((6..34).contains(&refused), "{refused} of 400");
        let one = exponential(&mut stream, 1e9, 3000);
        let other = exponential(&mut stream, 1.15e9, 3000);
        assert!(distance(&one, &other, 0.0).expect("values") > critical(3000, 3000, 0.001));
        assert!(distance(&one, &other, 0.01).expect("values") > critical(3000, 3000, 0.001));
        assert!(distance(&one, &other, 0.2).expect("values") < critical(3000, 3000, 0.05));
        assert_eq!(distance(&one, &Histogram::default(), 0.0), None);
    }
}
