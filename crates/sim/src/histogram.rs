//! Histograms that merge exactly.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use shakedown_link::Ns;
use std::ops::Range;

/// 2¹⁰ buckets per doubling: the width of a bucket is at most 1/1024 of its values.
const PRECISION_BITS: u32 = 10;
const HALF: usize = 1 << PRECISION_BITS;
/// Values below 2⁴⁸ (78 hours in nanoseconds) have buckets; larger ones share the last.
const MAX_BITS: u32 = 48;
const BUCKETS: usize = (MAX_BITS - PRECISION_BITS + 1) as usize * HALF;

/// A histogram like HdrHistogram's, with one fixed layout: its relative precision is 1/1024.
///
/// Count, sum, minimum and maximum are exact. Merging adds counts, so its order does not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// Allocated with the first value.
    counts: Vec<u64>,
    /// The non-empty runs of [`HALF`] buckets, by bit, so that most of a histogram's memory is never read.
    runs: u64,
    count: u64,
    sum: u128,
    minimum: u64,
    maximum: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: Vec::new(), runs: 0, count: 0, sum: 0, minimum: u64::MAX, maximum: 0 }
    }
}

/// The bucket of a value: exact below 2048, then 1024 to a doubling.
#[inline]
fn bucket(value: u64) -> usize {
    let value = value.min((1 << MAX_BITS) - 1);
    // Values below 2048 are not rounded.
    let shift = (63 - PRECISION_BITS) - (value | HALF as u64).leading_zeros();
    shift as usize * HALF + (value >> shift) as usize
}

/// The smallest value of a bucket and of the next bucket.
fn bounds(bucket: usize) -> (u64, u64) {
    let shift = (bucket / HALF).saturating_sub(1) as u32;
    let within = (bucket - shift as usize * HALF) as u64;
    (within << shift, (within + 1) << shift)
}

impl Histogram {
    /// Counts a value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.record_times(value, 1);
    }

    /// Counts a value N times; N is not 0.
    #[inline]
    fn record_times(&mut self, value: u64, times: u64) {
        let place = bucket(value);
        match self.counts.get_mut(place) {
            Some(count) => {
                if *count == 0 {
                    self.runs |= 1 << (place / HALF);
                }
                *count += times;
            }
            None => self.begin(place, times),
        }
        self.count += times;
        self.sum += u128::from(value) * u128::from(times);
        // Rarely true, so a branch is cheaper than a store.
        if value < self.minimum {
            self.minimum = value;
        }
        if value > self.maximum {
            self.maximum = value;
        }
    }

    #[cold]
    fn begin(&mut self, place: usize, times: u64) {
        self.counts = vec![0; BUCKETS];
        self.counts[place] = times;
        self.runs = 1 << (place / HALF);
    }

    /// Counts a time, in nanoseconds.
    #[inline]
    pub fn record_time(&mut self, time: impl Into<Ns>) {
        self.record(time.into().0);
    }

    /// Adds the values of another histogram.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.counts.is_empty() {
            self.counts = vec![0; BUCKETS];
        }
        for run in other.filled() {
            for (count, more) in self.counts[run.clone()].iter_mut().zip(&other.counts[run]) {
                *count += more;
            }
        }
        self.runs |= other.runs;
        self.count += other.count;
        self.sum += other.sum;
        self.minimum = self.minimum.min(other.minimum);
        self.maximum = self.maximum.max(other.maximum);
    }

    /// Runs of buckets that are not empty, in order.
    fn filled(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let runs = self.runs;
        (0..BUCKETS / HALF).filter(move |run| runs >> run & 1 == 1).map(|run| run * HALF..(run + 1) * HALF)
    }

    /// Buckets that are not empty, with their counts, in order.
    fn counted(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let all = self.filled().flat_map(|run| run.clone().zip(&self.counts[run]));
        all.filter(|(_, count)| **count > 0).map(|(index, count)| (index, *count))
    }

    /// The number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The exact sum of the values.
    #[must_use]
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The exact mean, if there are values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The smallest and the largest value, if there are any.
    #[must_use]
    pub fn range(&self) -> Option<(u64, u64)> {
        (self.count > 0).then_some((self.minimum, self.maximum))
    }

    /// The value that a share of all (0 to 1) does not exceed: the middle of its bucket, if there are values.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        let wanted = ((share.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.counted() {
            seen += count;
            if seen >= wanted {
                let (low, next) = bounds(index);
                let middle = (low as f64 + (next - 1) as f64) / 2.0;
                return Some(middle.clamp(self.minimum as f64, self.maximum as f64));
            }
        }
        Some(self.maximum as f64)
    }

    /// The number of values that are at most this value, or share its bucket.
    #[must_use]
    pub fn count_within(&self, value: u64) -> u64 {
        self.buckets().take_while(|(low, ..)| *low <= value).map(|(.., count)| count).sum()
    }

    /// Buckets that are not empty: smallest value, smallest value of the next bucket, count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.counted().map(|(index, count)| {
            let (low, next) = bounds(index);
            (low, next, count)
        })
    }
}

/// Serialisation of numbers with more digits than JSON numbers keep.
pub(crate) mod decimal {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(number: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(number)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|_| D::Error::custom("a sum is no whole number"))
    }
}

/// The saved form of a histogram: (bucket, count) pairs of one layout.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    layout: String,
    #[serde(with = "decimal")]
    sum: u128,
    minimum: u64,
    maximum: u64,
    counts: Vec<(u32, u64)>,
}

/// The name of the layout; histograms with another layout are refused.
const LAYOUT: &str = "hdr-ns-1024-48";

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Saved {
            layout: LAYOUT.into(),
            sum: self.sum,
            minimum: if self.count == 0 { 0 } else { self.minimum },
            maximum: self.maximum,
            counts: self.counted().map(|(index, count)| (index as u32, count)).collect(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let saved = Saved::deserialize(deserializer)?;
        if saved.layout != LAYOUT {
            return Err(D::Error::custom(format!(
                "a histogram's layout is {}; accepted: {LAYOUT}",
                saved.layout
            )));
        }
        let mut histogram = Self::default();
        if saved.counts.is_empty() {
            return Ok(histogram);
        }
        histogram.counts = vec![0; BUCKETS];
        for (index, count) in saved.counts {
            let place = histogram.counts.get_mut(index as usize);
            *place.ok_or_else(|| D::Error::custom(format!("a histogram has no bucket {index}")))? += count;
            histogram.runs |= u64::from(count > 0) << (index as usize / HALF);
            histogram.count += count;
        }
        histogram.sum = saved.sum;
        histogram.minimum = saved.minimum;
        histogram.maximum = saved.maximum;
        Ok(histogram)
    }
}

/// A histogram being recorded. Equal consecutive values, for example constant costs, are counted together.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    /// The last value, and how many times in succession it was recorded.
    last: u64,
    repeats: u64,
    histogram: Histogram,
}

impl Recorder {
    /// Counts a value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        if value == self.last {
            self.repeats += 1;
        } else {
            self.count_last();
            (self.last, self.repeats) = (value, 1);
        }
    }

    /// Counts a time.
    #[inline]
    pub fn record_time(&mut self, time: Ns) {
        self.record(time.0);
    }

    #[inline]
    fn count_last(&mut self) {
        // `repeats` is 0 only before the first value.
        if self.repeats > 0 {
            self.histogram.record_times(self.last, self.repeats);
        }
    }

    /// The histogram of all recorded values.
    #[must_use]
    pub fn histogram(mut self) -> Histogram {
        self.count_last();
        self.histogram
    }
}

/// The summary of a distribution.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The number of values.
    pub n: u64,
    /// `None` without values; this is true of all following fields.
    pub mean: Option<f64>,
    /// Half the width of the mean's 95 % interval over replications; `None` with fewer than two.
    pub mean_margin: Option<f64>,
    /// The same for the median.
    pub p50_margin: Option<f64>,
    /// The same for the 90th percentile.
    pub p90_margin: Option<f64>,
    /// The same for the 95th percentile.
    pub p95_margin: Option<f64>,
    /// The same for the 99th percentile.
    pub p99_margin: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile; this and the next two are `None` also with too few values ([`MIN_VALUES`]).
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// The smallest value.
    pub min: Option<f64>,
    /// The largest value.
    pub max: Option<f64>,
}

/// The percentiles of a summary, and the number of values that each needs: with fewer, no value would exceed it, and it
/// would only repeat the maximum.
pub const MIN_VALUES: [(&str, f64, u64); 3] = [("p90", 0.9, 10), ("p95", 0.95, 20), ("p99", 0.99, 100)];

impl Histogram {
    /// A quantile; `None` with fewer values than [`MIN_VALUES`] requires.
    #[must_use]
    pub fn percentile(&self, share: f64) -> Option<f64> {
        let enough = MIN_VALUES.iter().all(|(_, from, least)| share < *from || self.count >= *least);
        if enough { self.quantile(share) } else { None }
    }

    /// The summary, with values divided by `per_unit`: 10⁹ turns nanoseconds into seconds.
    #[must_use]
    pub fn summary(&self, per_unit: f64) -> Summary {
        let percentile = |share| self.percentile(share).map(|value| value / per_unit);
        Summary {
            n: self.count,
            mean: self.mean().map(|mean| mean / per_unit),
            p50: percentile(0.5),
            p90: percentile(0.9),
            p95: percentile(0.95),
            p99: percentile(0.99),
            min: self.range().map(|range| range.0 as f64 / per_unit),
            max: self.range().map(|range| range.1 as f64 / per_unit),
            ..Summary::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_value_is_in_its_bucket_and_buckets_are_contiguous() {
        for value in
            (0..5000).chain((0..48).flat_map(|bits| [(1_u64 << bits) - 1, 1 << bits, (1 << bits) + 1]))
        {
            let (low, next) = bounds(bucket(value));
            if value < 1 << MAX_BITS {
                assert!(low <= value && value < next, "{value}: {low}..{next}");
                assert!(next - low <= (value / 1024).max(1), "{value}: {low}..{next}");
            }
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        for index in 1..BUCKETS {
            assert_eq!(bounds(index - 1).1, bounds(index).0, "bucket {index}");
        }
    }

    #[test]
    fn percentiles_need_enough_values() {
        for (n, kept) in [
            (9, [false; 3]),
            (10, [true, false, false]),
            (19, [true, false, false]),
            (99, [true, true, false]),
            (100, [true; 3]),
        ] {
            let mut few = Histogram::default();
            (1..=n).for_each(|value| few.record(value));
            let found = few.summary(1.0);
            assert_eq!([found.p90, found.p95, found.p99].map(|one| one.is_some()), kept, "{n}");
            assert!(found.p50.is_some() && found.max == Some(n as f64));
        }
    }

    proptest! {
        #[test]
        fn quantiles_are_within_a_thousandth_of_the_sorted_values(values in prop::collection::vec(0_u64..1 << 40, 1..300)) {
            let mut histogram = Histogram::default();
            values.iter().for_each(|value| histogram.record(*value));
            let mut sorted = values.clone();
            sorted.sort_unstable();
            for share in [0.0, 0.25, 0.5, 0.9, 0.95, 0.99, 1.0] {
                let rank = ((share * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len());
                let exact = sorted[rank - 1] as f64;
                let ours = histogram.quantile(share).expect("not empty");
                prop_assert!((ours - exact).abs() <= exact / 1024.0 + 1.0, "{share}: {ours} is not {exact}");
            }
            prop_assert_eq!(histogram.sum(), values.iter().map(|value| u128::from(*value)).sum::<u128>());
        }

        /// The bytes are the same for every distribution of values to parts and every order of merging.
        #[test]
        fn merging_is_exact(values in prop::collection::vec((0_u64..1 << 50, 0_usize..4), 1..200)) {
            let mut all = Histogram::default();
            let mut parts = vec![Histogram::default(); 4];
            for (value, part) in &values {
                all.record(*value);
                parts[*part].record(*value);
            }
            let text = |histogram: &Histogram| serde_json::to_string(histogram).expect("serialises");
            let mut forth = Histogram::default();
            parts.iter().for_each(|part| forth.merge(part));
            let mut back = Histogram::default();
            parts.iter().rev().for_each(|part| back.merge(part));
            prop_assert_eq!(text(&forth), text(&all));
            prop_assert_eq!(text(&back), text(&all));
            let read: Histogram = serde_json::from_str(&text(&all)).expect("reads");
            prop_assert_eq!(read, all);
        }
    }

    #[test]
    fn another_layout_is_refused() {
        let text = serde_json::to_string(&Histogram::default()).expect("serialises").replace(LAYOUT, "other");
        let error = serde_json::from_str::<Histogram>(&text).expect_err("another layout");
        assert!(error.to_string().contains("accepted: hdr-ns-1024-48"), "{error}");
    }
}
