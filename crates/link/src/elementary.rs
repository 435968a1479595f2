//! Logarithms and exponentials with the same bits as `libm`: the same steps (FreeBSD's `e_log.c` and `e_exp.c`),
//! without branches on random values, which a processor cannot predict, and in a form that can be inlined.

const LN2_HI: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
const LN2_LO: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);
/// The exponent of 1.
const ONE: u64 = 0x3ff0_0000 << 32;

/// The natural logarithm of a positive, normal and finite number other than 1.
#[inline]
pub(crate) fn ln(x: f64) -> f64 {
    /// The coefficients of log(1 + f) in even powers of f / (2 + f).
    const LG: [f64; 7] = [
        f64::from_bits(0x3fe5_5555_5555_5593),
        f64::from_bits(0x3fd9_9999_9997_fa04),
        f64::from_bits(0x3fd2_4924_9422_9359),
        f64::from_bits(0x3fcc_71c5_1d8e_78af),
        f64::from_bits(0x3fc7_4664_96cb_03de),
        f64::from_bits(0x3fc3_9a09_d078_c69f),
        f64::from_bits(0x3fc2_f112_df3e_5244),
    ];
    /// √2/2, to 20 bits.
    const ROOT: u64 = 0x3fe6_a09e << 32;
    const MANTISSA: u64 = (1 << 52) - 1;
    let bits = x.to_bits() + (ONE - ROOT);
    let power = f64::from((bits >> 52) as i32 - 0x3ff);
    let f = f64::from_bits((bits & MANTISSA) + ROOT) - 1.0;
    let half_square = 0.5 * f * f;
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let even = w * (LG[1] + w * (LG[3] + w * LG[5]));
    let odd = z * (LG[0] + w * (LG[2] + w * (LG[4] + w * LG[6])));
    let r = odd + even;
    s * (half_square + r) + power * LN2_LO - half_square + f + power * LN2_HI
}

/// e to the power of any number.
#[inline]
pub(crate) fn exp(x: f64) -> f64 {
    const INV_LN2: f64 = f64::from_bits(0x3ff7_1547_652b_82fe);
    const P: [f64; 5] = [
        f64::from_bits(0x3fc5_5555_5555_553e),
        f64::from_bits(0xbf66_c16c_16be_bd93),
        f64::from_bits(0x3f11_566a_af25_de2c),
        f64::from_bits(0xbebb_bd41_c5d2_6bf1),
        f64::from_bits(0x3e66_3769_72be_a4d0),
    ];
    let size = (x.to_bits() >> 32) as u32 & 0x7fff_ffff;
    // Beyond ±708 the result may overflow or be subnormal; within 2⁻²⁸ of 0 it is about 1 + x.
    if !(0x3e30_0001..0x4086_232b).contains(&size) {
        return libm::exp(x);
    }
    // How often ln 2 is subtracted: never below ln 2 / 2, once up to 1.5 ln 2.
    let signed_half = 0.5_f64.copysign(x);
    let once = (signed_half + signed_half) as i32;
    let rounded = (INV_LN2 * x + signed_half) as i32;
    let power = if size >= 0x3ff0_a2b2 { rounded } else { once * i32::from(size > 0x3fd6_2e42) };
    let high = x - f64::from(power) * LN2_HI;
    let low = f64::from(power) * LN2_LO;
    let rest = high - low;
    let square = rest * rest;
    let c = rest - square * (P[0] + square * (P[1] + square * (P[2] + square * (P[3] + square * P[4]))));
    let y = 1.0 + (rest * c / (2.0 - c) - low + high);
    // Exact: a power of two, without overflow or subnormal result.
    y * f64::from_bits(ONE.wrapping_add_signed(i64::from(power) << 52))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stream;

    /// Compares with `libm` at both ends, around √2/2 and at random.
    #[test]
    fn logarithms_match_libm_to_the_bit() {
        let least = 0.5 / (1_u64 << 52) as f64;
        let root = std::f64::consts::FRAC_1_SQRT_2.to_bits();
        let halved = 0x3fe6_a09e_u64 << 32;
        let near = (root - 3000..root + 3000).chain(halved - 3000..halved + 3000).map(f64::from_bits);
        let ends = (0..3000)
            .flat_map(|step| [least + f64::from(step) * 2.0 * least, 1.0 - least * f64::from(2 * step + 1)]);
        let mut stream = Stream::seeded(4);
        let random: Vec<f64> = (0..2_000_000).map(|_| stream.uniform()).collect();
        for x in near.chain(ends).chain(random).chain([0.5, 0.25, 0.75]) {
            assert_eq!(ln(x).to_bits(), libm::log(x).to_bits(), "{x:e}");
        }
    }

    /// Compares with `libm` around the thresholds and at random, small and large, with both signs.
    #[test]
    fn exponentials_match_libm_to_the_bit() {
        let thresholds = [0x3e30_0000_u64, 0x3fd6_2e42, 0x3ff0_a2b2, 0x4086_232b].into_iter();
        let about = thresholds.flat_map(|high| {
            let bits = high << 32;
            (bits - 3000..bits + 3000).chain(bits + (1 << 32) - 3000..bits + (1 << 32) + 3000)
        });
        let mut stream = Stream::seeded(9);
        let random: Vec<f64> = (0..1_000_000)
            .map(|number| stream.uniform() * f64::from_bits(ONE + ((number % 16) << 52) - (5 << 52)))
            .collect();
        let special = [
            0.0,
            f64::MIN_POSITIVE,
            709.0,
            709.782_712_893_384,
            710.0,
            744.0,
            746.0,
            f64::INFINITY,
            f64::NAN,
        ];
        for x in about.map(f64::from_bits).chain(random).chain(special) {
            for x in [x, -x] {
                assert_eq!(exp(x).to_bits(), libm::exp(x).to_bits(), "{x:e}");
            }
        }
    }
}
