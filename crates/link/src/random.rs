//! Random numbers that are the same on every platform.
//!
//! A stream is identified by (seed, entity, purpose), so a new entity or purpose does not change the draws of others.
//! The generator is xoshiro256++ (Blackman and Vigna, <https://prng.di.unimi.it>), seeded by SplitMix64 as its authors
//! advise; variates use only basic arithmetic and `libm`, never the platform's mathematics library.

use crate::elementary::ln;

/// The purpose of a stream. Numbers below 100 are reserved for links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Purpose(pub u32);

impl Purpose {
    /// Loss, client to server.
    pub const LOSS_UP: Self = Self(1);
    /// Loss, server to client.
    pub const LOSS_DOWN: Self = Self(2);
    /// Delay, client to server.
    pub const DELAY_UP: Self = Self(3);
    /// Delay, server to client.
    pub const DELAY_DOWN: Self = Self(4);
    /// Duplication, client to server.
    pub const DUPLICATION_UP: Self = Self(5);
    /// Duplication, server to client.
    pub const DUPLICATION_DOWN: Self = Self(6);
    /// A radio's set-up.
    pub const SETUP: Self = Self(7);
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    state: [u64; 4],
}

impl Stream {
    #[inline]
    pub fn of(seed: u64, entity: u64, purpose: Purpose) -> Self {
        let mut name = SplitMix(seed).next() ^ entity;
        name = SplitMix(name).next() ^ u64::from(purpose.0);
        Self::seeded(name)
    }

    #[inline]
    pub const fn seeded(seed: u64) -> Self {
        let mut mix = SplitMix(seed);
        // SplitMix64 never returns four zeros in a row, the only state that xoshiro cannot leave.
        Self { state: [mix.next(), mix.next(), mix.next(), mix.next()] }
    }

    /// 64 random bits.
    #[inline]
    #[allow(clippy::should_implement_trait)] // a stream has no end, so it is no iterator
    pub fn next(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// A number in (0, 1), both ends excluded.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        ((self.next() >> 12) as f64 + 0.5) * (1.0 / (1_u64 << 52) as f64)
    }

    /// A uniform integer in `0..bound` (Lemire's rejection). `bound` must not be 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0, "no number is below 0");
        loop {
            let wide = u128::from(self.next()) * u128::from(bound);
            if wide as u64 >= bound.wrapping_neg() % bound {
                return (wide >> 64) as u64;
            }
        }
    }

    /// An exponential variate of mean 1.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        exponential(self.uniform())
    }

    /// Exponential variates of mean 1, the same as from repeated calls of [`exponential`](Self::exponential). The
    /// logarithms are independent, so a processor can overlap them.
    #[inline]
    pub fn exponentials(&mut self, variates: &mut [f64]) {
        for variate in &mut *variates {
            *variate = self.uniform();
        }
        for variate in variates {
            *variate = exponential(*variate);
        }
    }

    /// A standard normal variate.
    pub fn normal(&mut self) -> f64 {
        normal_quantile(self.uniform())
    }
}

/// The exponential variate of mean 1 for a uniform number in (0, 1).
#[inline]
pub(crate) fn exponential(uniform: f64) -> f64 {
    -ln(uniform)
}

/// SplitMix64 (Steele, Lea and Flood; Vigna's public-domain form).
struct SplitMix(u64);

impl SplitMix {
    #[inline]
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// The standard normal quantile of `p` in (0, 1): algorithm AS 241, PPND16 (Wichura, Applied Statistics 37, 1988),
/// accurate to about 1 part in 10¹⁶.
pub fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 8] = [
        3.387_132_872_796_366_5,
        1.331_416_678_917_843_8e2,
        1.971_590_950_306_551_3e3,
        1.373_169_376_550_946e4,
        4.592_195_393_154_987e4,
        6.726_577_092_700_87e4,
        3.343_057_558_358_813e4,
        2.509_080_928_730_122_7e3,
    ];
    const B: [f64; 8] = [
        1.0,
        4.231_333_070_160_091e1,
        6.871_870_074_920_579e2,
        5.394_196_021_424_751e3,
        2.121_379_430_158_659_7e4,
        3.930_789_580_009_271e4,
        2.872_908_573_572_194_3e4,
        5.226_495_278_852_545e3,
    ];
    const C: [f64; 8] = [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        2.417_807_251_774_506e-1,
        2.272_384_498_926_918_4e-2,
        7.745_450_142_783_414e-4,
    ];
    const D: [f64; 8] = [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        6.897_673_349_851e-1,
        1.481_039_764_274_800_8e-1,
        1.519_866_656_361_645_7e-2,
        5.475_938_084_995_345e-4,
        1.050_750_071_644_416_9e-9,
    ];
    const E: [f64; 8] = [
        6.657_904_643_501_103,
        5.463_784_911_164_114,
        1.784_826_539_917_291_3,
        2.965_605_718_285_048_7e-1,
        2.653_218_952_657_612_4e-2,
        1.242_660_947_388_078_4e-3,
        2.711_555_568_743_487_6e-5,
        2.010_334_399_292_288_1e-7,
    ];
    const F: [f64; 8] = [
        1.0,
        5.998_322_065_558_88e-1,
        1.369_298_809_227_358e-1,
        1.487_536_129_085_061_5e-2,
        7.868_691_311_456_133e-4,
        1.846_318_317_510_054_8e-5,
        1.421_511_758_316_446e-7,
        2.044_263_103_389_939_8e-15,
    ];
    let polynomial = |coefficients: &[f64; 8], x: f64| {
        coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * x + coefficient)
    };
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * polynomial(&A, r) / polynomial(&B, r);
    }
    let r = libm::sqrt(-libm::log(if q < 0.0 { p } else { 1.0 - p }));
    let value = if r <= 5.0 {
        polynomial(&C, r - 1.6) / polynomial(&D, r - 1.6)
    } else {
        polynomial(&E, r - 5.0) / polynomial(&F, r - 5.0)
    };
    if q < 0.0 { -value } else { value }
}

/// A probability as a threshold for 64 random bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Probability(u64);

impl Probability {
    /// The probability 0.
    pub const NEVER: Self = Self(0);

    /// `None` unless the number lies in 0..=1.
    pub fn new(probability: f64) -> Option<Self> {
        // 2⁶⁴ as a float; the cast saturates, so 1 becomes "always" below.
        (0.0..=1.0)
            .contains(&probability)
            .then_some(Self((probability * 18_446_744_073_709_551_616.0) as u64))
    }

    pub fn share(self) -> f64 {
        if self.0 == u64::MAX { 1.0 } else { self.0 as f64 / 18_446_744_073_709_551_616.0 }
    }

    /// True if the probability is 0, so that nothing needs to be drawn.
    #[inline]
    pub fn is_never(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub fn happens(self, stream: &mut Stream) -> bool {
        self.0 == u64::MAX || stream.next() < self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of the authors' C program from state 1, 2, 3, 4 (also the vector of `rand_xoshiro`).
    #[test]
    fn xoshiro_matches_the_published_outputs() {
        let mut stream = Stream { state: [1, 2, 3, 4] };
        let outputs: [u64; 10] = std::array::from_fn(|_| stream.next());
        assert_eq!(
            outputs,
            [
                41_943_041,
                58_720_359,
                3_588_806_011_781_223,
                3_591_011_842_654_386,
                9_228_616_714_210_784_205,
                9_973_669_472_204_895_162,
                14_011_001_112_246_962_877,
                12_406_186_145_184_390_807,
                15_849_039_046_786_891_736,
                10_450_023_813_501_588_000,
            ]
        );
    }

    /// The vector of `rand_xoshiro`, computed with the authors' C program.
    #[test]
    fn splitmix_matches_the_published_outputs() {
        let mut mix = SplitMix(1_477_776_061_723_855_037);
        assert_eq!(mix.next(), 1_985_237_415_132_408_290);
        assert_eq!(mix.next(), 2_979_275_885_539_914_483);
        assert_eq!(mix.next(), 13_511_426_838_097_143_398);
    }

    /// The check values printed with algorithm AS 241.
    #[test]
    fn normal_quantiles_match_the_published_check_values() {
        for (p, value) in [
            (0.25, -0.674_489_750_196_081_7),
            (0.001, -3.090_232_306_167_814),
            (1e-20, -9.262_340_089_798_408),
        ] {
            let ours = normal_quantile(p);
            assert!(((ours - value) / value).abs() < 1e-15, "{p}: {ours} is not {value}");
        }
        assert_eq!(normal_quantile(0.5), 0.0);
        assert!((normal_quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-14);
    }

    /// The exact bits: a change of any of these changes every saved result of a seed.
    #[test]
    fn seed_gives_the_pinned_variates() {
        let mut stream = Stream::of(7, 3, Purpose::LOSS_UP);
        let bits = [
            stream.next(),
            stream.uniform().to_bits(),
            stream.exponential().to_bits(),
            stream.normal().to_bits(),
            stream.below(1000),
        ];
        assert_eq!(bits, PINNED);
        assert_ne!(Stream::of(7, 3, Purpose::LOSS_UP), Stream::of(7, 3, Purpose::LOSS_DOWN));
        assert_ne!(Stream::of(7, 3, Purpose::LOSS_UP), Stream::of(7, 4, Purpose::LOSS_UP));
        assert_ne!(Stream::of(7, 3, Purpose::LOSS_UP), Stream::of(8, 3, Purpose::LOSS_UP));
    }

    const PINNED: [u64; 5] = [
        4_657_129_343_564_111_951,
        4_606_478_744_413_692_235,
        4_614_895_017_277_738_294,
        4_607_776_725_996_334_213,
        673,
    ];

    #[test]
    fn variates_have_the_expected_moments() {
        let mut stream = Stream::seeded(1);
        let n = 400_000;
        let (mut sum, mut squares, mut exponentials) = (0.0, 0.0, 0.0);
        for _ in 0..n {
            let normal = stream.normal();
            sum += normal;
            squares += normal * normal;
            exponentials += stream.exponential();
        }
        let n = f64::from(n);
        // Five standard errors: 1/√n, √2/√n, 1/√n.
        assert!((sum / n).abs() < 0.008);
        assert!((squares / n - 1.0).abs() < 0.011);
        assert!((exponentials / n - 1.0).abs() < 0.008);
        let mut counts = [0_u32; 7];
        for _ in 0..700_000 {
            counts[stream.below(7) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (*count as i32 - 100_000).abs() < 1_500), "{counts:?}");
    }

    #[test]
    fn variates_drawn_in_a_batch_equal_single_draws() {
        let (mut one, mut many) = (Stream::seeded(8), Stream::seeded(8));
        let mut variates = [0.0; 37];
        many.exponentials(&mut variates);
        assert_eq!(variates.map(f64::to_bits), std::array::from_fn(|_| one.exponential().to_bits()));
        assert_eq!(one, many);
    }

    #[test]
    fn probabilities_zero_and_one_are_exact() {
        let mut stream = Stream::seeded(2);
        let never = Probability::new(0.0).expect("0 is a probability");
        let always = Probability::new(1.0).expect("1 is a probability");
        for _ in 0..1000 {
            assert!(!never.happens(&mut stream) && always.happens(&mut stream));
        }
        assert!(Probability::new(1.0001).is_none() && Probability::new(f64::NAN).is_none());
    }
}
