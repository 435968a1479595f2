//! Compressed points.
//!
//! A compressed point is x and one bit that selects one of the two y (SEC 1, section 2.3.4). OpenSSL decodes it without
//! precomputation; here, the values that depend only on the curve are computed once.
//!
//! - Over GF(2^m) the quotient z = y/x solves z² + z = x + a + b/x². For odd m, one solution is the half-trace of the
//!   right side, for which OpenSSL squares m times for each point. The half-trace is linear, and that of an even power
//!   of the field's generator follows from that of its root. So those of the odd powers yield that of any element.
//! - Modulo a prime that is 3 modulo 4, y is a power of x³ + ax + b, computed with a fixed number of words ([`Field`]).
//!
//! When the coordinates are set, OpenSSL checks the curve's equation, which shows whether the point exists.

use super::ffi;
use super::field::{Field, Number, bytes, number};
use crate::crypto::CryptoError;
use crate::curve::Curve;
use foreign_types::ForeignTypeRef;
use libc::c_int;
use openssl::bn::{BigNum, BigNumContext, BigNumContextRef, BigNumRef};
use openssl::ec::{EcGroupRef, EcPoint};
use openssl::error::ErrorStack;
use std::sync::OnceLock;

/// Computes the y-coordinates of a curve's compressed points.
pub enum Decompressor {
    /// Over GF(2^m).
    Binary(Binary),
    Prime(Box<dyn Prime>),
}

impl Decompressor {
    /// The decompressor of a curve, created at its first use. `None` if OpenSSL decodes the curve's points.
    pub fn of(curve: Curve, group: &EcGroupRef) -> Option<&'static Self> {
        static MADE: [OnceLock<Option<Decompressor>>; Curve::ALL.len()] =
            [const { OnceLock::new() }; Curve::ALL.len()];
        MADE[curve as usize].get_or_init(|| Self::new(curve, group).ok().flatten()).as_ref()
    }

    fn new(curve: Curve, group: &EcGroupRef) -> Result<Option<Self>, ErrorStack> {
        Ok(match curve.is_binary() {
            true => Some(Self::Binary(Binary::new(curve.field_bits() as usize, group)?)),
            false => <dyn Prime>::new(group)?.map(Self::Prime),
        })
    }

    /// The point with this x-coordinate and bit; an error if there is none.
    pub fn point(&self, group: &EcGroupRef, x: &[u8], bit: bool) -> Result<EcPoint, CryptoError> {
        let mut context = BigNumContext::new()?;
        let octets = x;
        let x = BigNum::from_slice(octets)?;
        let y = match self {
            // The point with x = 0 has order 2, so it is rejected.
            Self::Binary(curve) if (1..=curve.degree as i32).contains(&x.num_bits()) => {
                curve.y(&x, bit, &mut context)?
            }
            Self::Binary(_) => return Err(CryptoError::InvalidKey),
            Self::Prime(curve) => BigNum::from_slice(&curve.y(octets, bit).ok_or(CryptoError::InvalidKey)?)?,
        };
        let mut point = EcPoint::new(group)?;
        point.set_affine_coordinates(group, &x, &y, &mut context).map_err(|_| CryptoError::InvalidKey)?;
        Ok(point)
    }
}

/// A curve modulo a prime that is 3 modulo 4, with N words.
struct Modular<const N: usize> {
    field: Field<N>,
    a: Number<N>,
    b: Number<N>,
    /// (p + 1) / 4. A square raised to this power is its square root.
    exponent: Number<N>,
}

/// Computes the y-coordinates of a curve modulo a prime.
pub trait Prime: Send + Sync {
    /// The y-coordinate for x, or any number if there is none; `None` if x is not an element of the field.
    fn y(&self, x: &[u8], bit: bool) -> Option<Vec<u8>>;
}

impl dyn Prime {
    /// For a group whose prime is 3 modulo 4; otherwise `None`.
    fn new(group: &EcGroupRef) -> Result<Option<Box<Self>>, ErrorStack> {
        let mut context = BigNumContext::new()?;
        let (mut prime, mut a, mut b) = (BigNum::new()?, BigNum::new()?, BigNum::new()?);
        group.components_gfp(&mut prime, &mut a, &mut b, &mut context)?;
        if !prime.is_bit_set(1) {
            return Ok(None);
        }
        let mut exponent = BigNum::new()?;
        exponent.rshift(&prime, 2)?;
        exponent.add_word(1)?;
        let parts = [&prime, &a, &b, &exponent].map(|number| number.to_vec());
        Ok(match prime.num_bits() {
            ..=128 => Modular::<2>::of(&parts),
            129..=192 => Modular::<3>::of(&parts),
            _ => Modular::<4>::of(&parts),
        })
    }
}

impl<const N: usize> Modular<N> {
    /// From prime, a, b and exponent; `None` if they are too long.
    fn of([prime, a, b, exponent]: &[Vec<u8>; 4]) -> Option<Box<dyn Prime>> {
        let field = Field::<N>::new(number(prime)?);
        let (a, b) = (field.enter(&number(a)?), field.enter(&number(b)?));
        Some(Box::new(Self { field, a, b, exponent: number(exponent)? }))
    }
}

impl<const N: usize> Prime for Modular<N> {
    fn y(&self, x: &[u8], bit: bool) -> Option<Vec<u8>> {
        let field = &self.field;
        let x = number(x).filter(|x| field.has(x))?;
        let x = field.enter(&x);
        let product = field.multiply(&field.add(&field.square(&x), &self.a), &x);
        let root = field.power(&field.add(&product, &self.b), &self.exponent);
        let root = field.leave(&root);
        let is_other = (root[0] & 1 == 1) != bit;
        Some(bytes(&if is_other { field.negative(&root) } else { root }))
    }
}

/// Words of the largest binary field.
const WORDS: usize = 283_usize.div_ceil(64);

/// The coefficients of a polynomial, in 64-bit words, the lowest first.
type Element = [u64; WORDS];

/// A curve over GF(2^m) with odd m.
pub struct Binary {
    degree: usize,
    polynomial: BigNum,
    /// Its exponents in descending order, terminated by -1, as OpenSSL expects them.
    exponents: [c_int; 6],
    a: BigNum,
    b: BigNum,
    /// The half-traces of the first, third, fifth … power of the generator.
    half_traces: Vec<Element>,
}

impl Binary {
    fn new(degree: usize, group: &EcGroupRef) -> Result<Self, ErrorStack> {
        let mut context = BigNumContext::new()?;
        let (mut polynomial, mut a, mut b) = (BigNum::new()?, BigNum::new()?, BigNum::new()?);
        group.components_gf2m(&mut polynomial, &mut a, &mut b, &mut context)?;
        let mut exponents = [0; 6];
        // SAFETY: the number is valid; the array has space for a pentanomial's exponents and the terminator.
        unsafe {
            ffi::BN_GF2m_poly2arr(polynomial.as_ptr(), exponents.as_mut_ptr(), exponents.len() as c_int);
        }
        let mut made = Self { degree, polynomial, exponents, a, b, half_traces: Vec::new() };
        for power in (1..degree).step_by(2) {
            let mut generator = BigNum::new()?;
            generator.set_bit(power as i32)?;
            let half_trace = made.half_trace(&generator, &mut context)?;
            made.half_traces.push(element(&half_trace)?);
        }
        Ok(made)
    }

    /// Half-trace by its definition: the sum of every second conjugate.
    fn half_trace(&self, of: &BigNumRef, context: &mut BigNumContextRef) -> Result<BigNum, ErrorStack> {
        let mut sum = of.to_owned()?;
        for _ in 0..self.degree / 2 {
            let squared = self.square(&sum, context)?;
            sum = add(&*self.square(&squared, context)?, of)?;
        }
        Ok(sum)
    }

    fn square(&self, of: &BigNumRef, context: &mut BigNumContextRef) -> Result<BigNum, ErrorStack> {
        let result = BigNum::new()?;
        // SAFETY: all numbers are valid and the exponents are terminated; no pointer is kept after the call.
        let done = unsafe {
            let (exponents, context) = (self.exponents.as_ptr(), context.as_ptr());
            ffi::BN_GF2m_mod_sqr_arr(result.as_ptr(), of.as_ptr(), exponents, context)
        };
        if done == 1 { Ok(result) } else { Err(ErrorStack::get()) }
    }

    /// The y-coordinate for x, or any number if there is none.
    fn y(&self, x: &BigNumRef, bit: bool, context: &mut BigNumContextRef) -> Result<BigNum, ErrorStack> {
        let squared = self.square(x, context)?;
        let right = BigNum::new()?;
        // SAFETY: all numbers are valid, and x is not zero; no pointer is kept after the call.
        let done = unsafe {
            let (b, polynomial) = (self.b.as_ptr(), self.polynomial.as_ptr());
            ffi::BN_GF2m_mod_div(right.as_ptr(), b, squared.as_ptr(), polynomial, context.as_ptr())
        };
        if done != 1 {
            return Err(ErrorStack::get());
        }
        let right = add(&*add(&right, &self.a)?, x)?;
        let mut z = self.solve(element(&right)?);
        z[0] = z[0] & !1 | u64::from(bit);
        let y = BigNum::new()?;
        // SAFETY: all numbers are valid and the exponents are terminated; no pointer is kept after the call.
        let done = unsafe {
            let (z, exponents) = (from_element(&z)?, self.exponents.as_ptr());
            ffi::BN_GF2m_mod_mul_arr(y.as_ptr(), x.as_ptr(), z.as_ptr(), exponents, context.as_ptr())
        };
        if done == 1 { Ok(y) } else { Err(ErrorStack::get()) }
    }

    /// One of the two solutions of z² + z = c, if there are any. They differ by 1.
    fn solve(&self, mut c: Element) -> Element {
        let mut z = [0; WORDS];
        // The half-trace of g^2i is that of g^i plus g^i, except for a difference of 1.
        for root in (1..=(self.degree - 1) / 2).rev() {
            let set = bit(&c, 2 * root) << (root % 64);
            c[root / 64] ^= set;
            z[root / 64] ^= set;
        }
        for (half_trace, power) in self.half_traces.iter().zip((1..).step_by(2)) {
            let mask = bit(&c, power).wrapping_neg();
            z.iter_mut().zip(half_trace).for_each(|(word, known)| *word ^= known & mask);
        }
        z
    }
}

fn bit(element: &Element, place: usize) -> u64 {
    element[place / 64] >> (place % 64) & 1
}

fn add(one: &BigNumRef, other: &BigNumRef) -> Result<BigNum, ErrorStack> {
    let sum = BigNum::new()?;
    // SAFETY: all numbers are valid; no pointer is kept after the call.
    let done = unsafe { ffi::BN_GF2m_add(sum.as_ptr(), one.as_ptr(), other.as_ptr()) };
    if done == 1 { Ok(sum) } else { Err(ErrorStack::get()) }
}

fn element(number: &BigNumRef) -> Result<Element, ErrorStack> {
    let bytes = number.to_vec_padded(8 * WORDS as i32)?;
    let mut words = bytes.rchunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_be_bytes));
    Ok(std::array::from_fn(|_| words.next().unwrap_or(0)))
}

fn from_element(element: &Element) -> Result<BigNum, ErrorStack> {
    let mut bytes = [0; 8 * WORDS];
    bytes
        .rchunks_exact_mut(8)
        .zip(element)
        .for_each(|(place, word)| place.copy_from_slice(&word.to_be_bytes()));
    BigNum::from_slice(&bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use openssl::ec::{EcGroup, PointConversionForm};
    use proptest::prelude::*;

    fn curves() -> Vec<(Curve, EcGroup)> {
        let ours = Curve::ALL.into_iter().filter(|curve| *curve != Curve::Secp224r1);
        ours.map(|curve| (curve, EcGroup::from_curve_name(super::super::ec::nid(curve).unwrap()).unwrap()))
            .collect()
    }

    /// A compressed point that OpenSSL decoded, in uncompressed form; `None` if OpenSSL rejects it.
    fn openssls(group: &EcGroupRef, octets: &[u8]) -> Option<Vec<u8>> {
        let mut context = BigNumContext::new().unwrap();
        let point = EcPoint::from_bytes(group, octets, &mut context).ok()?;
        point.to_bytes(group, PointConversionForm::UNCOMPRESSED, &mut context).ok()
    }

    fn ours(curve: Curve, group: &EcGroupRef, octets: &[u8]) -> Option<Vec<u8>> {
        let point =
            Decompressor::of(curve, group).unwrap().point(group, &octets[1..], octets[0] == 3).ok()?;
        let mut context = BigNumContext::new().unwrap();
        point.to_bytes(group, PointConversionForm::UNCOMPRESSED, &mut context).ok()
    }

    /// The prime of P-224 is 1 modulo 2^96.
    #[test]
    fn p224_points_are_decompressed_by_openssl() {
        let group = EcGroup::from_curve_name(openssl::nid::Nid::SECP224R1).unwrap();
        assert!(Decompressor::of(Curve::Secp224r1, &group).is_none());
    }

    #[test]
    fn decompressed_points_of_every_curve_match_openssl() {
        for (curve, group) in curves() {
            let mut context = BigNumContext::new().unwrap();
            for scalar in 1..40 {
                let mut point = EcPoint::new(&group).unwrap();
                point.mul_generator2(&group, &BigNum::from_u32(scalar).unwrap(), &mut context).unwrap();
                let compressed =
                    point.to_bytes(&group, PointConversionForm::COMPRESSED, &mut context).unwrap();
                let wanted = point.to_bytes(&group, PointConversionForm::UNCOMPRESSED, &mut context).unwrap();
                assert_eq!(ours(curve, &group, &compressed), Some(wanted), "{curve}: {scalar} G");
            }
        }
    }

    proptest! {
        /// Half of all x have a point. Both implementations reject the others, and x outside the field.
        #[test]
        fn decompression_of_any_x_matches_openssl(bytes in prop::collection::vec(any::<u8>(), 36), bit: bool, top: u8) {
            for (curve, group) in curves() {
                let mut octets = vec![2 + u8::from(bit)];
                octets.extend_from_slice(&bytes[..curve.field_bytes()]);
                let excess_bits = 8 * curve.field_bytes() as u32 - curve.field_bits();
                // One in sixteen remains too large.
                if top >= 16 {
                    octets[1] &= 0xFF >> excess_bits;
                }
                prop_assert_eq!(ours(curve, &group, &octets), openssls(&group, &octets), "{}", curve);
            }
        }
    }
}
