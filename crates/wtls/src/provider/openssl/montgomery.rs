//! Arithmetic modulo a prime of a known number of words, for the one thing here that takes hundreds of multiplications:
//! square roots. OpenSSL's numbers are of any length, and at this one spend more time on that than on multiplying.
//!
//! Times depend on the values. Use it for what everybody may know.

/// Words of the longest prime here.
const MAX_WORDS: usize = 4;

/// A number below the modulus, the lowest word first.
pub type Number<const N: usize> = [u64; N];

/// Numbers modulo a prime, kept as Montgomery proposed: times 2^(64 N).
pub struct Field<const N: usize> {
    modulus: Number<N>,
    /// Minus the inverse of the modulus, modulo 2^64.
    inverse: u64,
    /// 2^(128 N), by which a number becomes one of the field.
    square: Number<N>,
}

/// Words from big-endian bytes; `None` where there are too many.
pub fn number<const N: usize>(bytes: &[u8]) -> Option<Number<N>> {
    let mut number = [0; N];
    for (place, byte) in bytes.iter().rev().enumerate() {
        *number.get_mut(place / 8)? |= u64::from(*byte) << (8 * (place % 8));
    }
    Some(number)
}

/// Big-endian bytes of words.
pub fn bytes<const N: usize>(number: &Number<N>) -> Vec<u8> {
    number.iter().rev().flat_map(|word| word.to_be_bytes()).collect()
}

/// `sum + one * other + carry`, and what does not fit.
#[inline(always)]
fn multiply_add(sum: u64, one: u64, other: u64, carry: u64) -> (u64, u64) {
    let total = u128::from(sum) + u128::from(one) * u128::from(other) + u128::from(carry);
    (total as u64, (total >> 64) as u64)
}

impl<const N: usize> Field<N> {
    /// Numbers modulo an odd one.
    pub fn new(modulus: Number<N>) -> Self {
        // Each step doubles the bits that are right; an odd number is its own inverse modulo 8.
        let mut inverse = modulus[0];
        for _ in 0..5 {
            inverse = inverse.wrapping_mul(2_u64.wrapping_sub(modulus[0].wrapping_mul(inverse)));
        }
        let mut field = Self { modulus, inverse: inverse.wrapping_neg(), square: [0; N] };
        let mut power = [0; N];
        power[0] = 1;
        for _ in 0..128 * N {
            power = field.add(&power, &power);
        }
        field.square = power;
        field
    }

    /// Whether a number is below the modulus.
    pub fn has(&self, number: &Number<N>) -> bool {
        number.iter().rev().lt(self.modulus.iter().rev())
    }

    /// A number as the field keeps it.
    pub fn enter(&self, number: &Number<N>) -> Number<N> {
        self.multiply(number, &self.square)
    }

    /// A number as it is.
    pub fn leave(&self, number: &Number<N>) -> Number<N> {
        let mut one = [0; N];
        one[0] = 1;
        self.multiply(number, &one)
    }

    /// The modulus less a number, as either keeps it, that is not 0.
    pub fn negative(&self, number: &Number<N>) -> Number<N> {
        self.less(&self.modulus, number)
    }

    pub fn add(&self, one: &Number<N>, other: &Number<N>) -> Number<N> {
        let mut carry = 0;
        let sum = std::array::from_fn(|place| {
            let total = u128::from(one[place]) + u128::from(other[place]) + u128::from(carry);
            carry = (total >> 64) as u64;
            total as u64
        });
        self.reduce(&sum, carry)
    }

    /// Both as the field keeps them.
    #[inline]
    pub fn multiply(&self, one: &Number<N>, other: &Number<N>) -> Number<N> {
        let mut sum = [0; N];
        // What stands above the sum's words: 0 or 1 after each step.
        let mut above = 0;
        for word in other {
            let mut carry = 0;
            for (sum, one) in sum.iter_mut().zip(one) {
                (*sum, carry) = multiply_add(*sum, *one, *word, carry);
            }
            let top = u128::from(above) + u128::from(carry);
            let factor = sum[0].wrapping_mul(self.inverse);
            let (_, mut carry) = multiply_add(sum[0], factor, self.modulus[0], 0);
            for place in 1..N {
                (sum[place - 1], carry) = multiply_add(sum[place], factor, self.modulus[place], carry);
            }
            let top = top + u128::from(carry);
            sum[N - 1] = top as u64;
            above = (top >> 64) as u64;
        }
        self.reduce(&sum, above)
    }

    /// A number times itself, as the field keeps it: each product of two different words is computed once.
    #[inline]
    pub fn square(&self, of: &Number<N>) -> Number<N> {
        let mut wide = [0; 2 * MAX_WORDS];
        for place in 0..N {
            let mut carry = 0;
            for other in place + 1..N {
                let sum = &mut wide[place + other];
                (*sum, carry) = multiply_add(*sum, of[place], of[other], carry);
            }
            wide[place + N] = carry;
        }
        let (mut shifted_out, mut carry) = (0, 0);
        for place in 0..N {
            let square = u128::from(of[place]) * u128::from(of[place]);
            for (word, square) in wide[2 * place..].iter_mut().zip([square as u64, (square >> 64) as u64]) {
                let doubled = *word << 1 | shifted_out;
                shifted_out = *word >> 63;
                let total = u128::from(doubled) + u128::from(square) + u128::from(carry);
                (*word, carry) = (total as u64, (total >> 64) as u64);
            }
        }
        let mut above = 0;
        for place in 0..N {
            let factor = wide[place].wrapping_mul(self.inverse);
            let mut carry = 0;
            for (sum, modulus) in wide[place..].iter_mut().zip(&self.modulus) {
                (*sum, carry) = multiply_add(*sum, factor, *modulus, carry);
            }
            let total = u128::from(wide[place + N]) + u128::from(carry) + u128::from(above);
            (wide[place + N], above) = (total as u64, (total >> 64) as u64);
        }
        self.reduce(&std::array::from_fn(|place| wide[N + place]), above)
    }

    /// A power; the exponent is a number as it is. One that begins with a long run of ones, as those for square roots
    /// modulo primes just below a power of two do, takes little more than its squarings.
    pub fn power(&self, base: &Number<N>, exponent: &Number<N>) -> Number<N> {
        let bit = |place: usize| exponent[place / 64] >> (place % 64) & 1 == 1;
        let bits = (0..64 * N).rev().find(|place| bit(*place)).map_or(0, |top| top + 1);
        let run = (0..bits).rev().take_while(|place| bit(*place)).count();
        let Some(doublings) = run.checked_ilog2() else {
            return self.enter(&std::array::from_fn(|place| u64::from(place == 0)));
        };
        // A run of ones behind itself is twice as long; so it grows as the bits of its length say.
        let mut result = *base;
        for place in (0..doublings).rev() {
            let half = result;
            for _ in 0..run >> (place + 1) {
                result = self.square(&result);
            }
            result = self.multiply(&result, &half);
            if run >> place & 1 == 1 {
                result = self.multiply(&self.square(&result), base);
            }
        }
        for place in (0..bits - run).rev() {
            result = self.square(&result);
            if bit(place) {
                result = self.multiply(&result, base);
            }
        }
        result
    }

    /// Takes the modulus away once where the number, with what stands above it, is not below it.
    #[inline(always)]
    fn reduce(&self, number: &Number<N>, above: u64) -> Number<N> {
        if above == 0 && self.has(number) { *number } else { self.less(number, &self.modulus) }
    }

    #[inline(always)]
    fn less(&self, one: &Number<N>, other: &Number<N>) -> Number<N> {
        let mut borrow = false;
        std::array::from_fn(|place| {
            let (difference, first) = one[place].overflowing_sub(other[place]);
            let (difference, second) = difference.overflowing_sub(u64::from(borrow));
            borrow = first | second;
            difference
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use openssl::bn::{BigNum, BigNumContext};
    use proptest::prelude::*;

    /// The same by OpenSSL.
    fn check<const N: usize>(modulus: &[u8], one: &[u8], other: &[u8]) -> Result<(), TestCaseError> {
        let mut context = BigNumContext::new().unwrap();
        let big = |bytes: &[u8]| BigNum::from_slice(bytes).unwrap();
        let reduced = |bytes: &[u8]| {
            let mut number = BigNum::new().unwrap();
            number.nnmod(&big(bytes), &big(modulus), &mut BigNumContext::new().unwrap()).unwrap();
            number
        };
        let (one, other) = (reduced(one), reduced(other));
        let words = |of: &BigNum| number::<N>(&of.to_vec()).unwrap();
        let field = Field::<N>::new(words(&big(modulus)));
        let out = |number: &Number<N>| big(&bytes(&field.leave(number)));
        let (ours, theirs) = (field.enter(&words(&one)), field.enter(&words(&other)));
        prop_assert_eq!(&out(&ours), &one);
        let mut wanted = BigNum::new().unwrap();
        wanted.mod_add(&one, &other, &big(modulus), &mut context).unwrap();
        prop_assert_eq!(&out(&field.add(&ours, &theirs)), &wanted);
        wanted.mod_mul(&one, &other, &big(modulus), &mut context).unwrap();
        prop_assert_eq!(&out(&field.multiply(&ours, &theirs)), &wanted);
        wanted.mod_sqr(&one, &big(modulus), &mut context).unwrap();
        prop_assert_eq!(&out(&field.square(&ours)), &wanted);
        wanted.mod_exp(&one, &other, &big(modulus), &mut context).unwrap();
        prop_assert_eq!(&out(&field.power(&ours, &words(&other))), &wanted);
        Ok(())
    }

    proptest! {
        /// Odd moduli of any size, those that fill their words among them.
        #[test]
        fn arithmetic_is_openssls(
            mut modulus in prop::collection::vec(any::<u8>(), 32),
            one in prop::collection::vec(any::<u8>(), 32),
            other in prop::collection::vec(any::<u8>(), 32),
            full: bool,
        ) {
            modulus[31] |= 1;
            for length in [16, 20, 24, 28, 32] {
                let mut modulus = modulus[32 - length..].to_vec();
                modulus[0] |= if full { 0xFF } else { 1 };
                match length {
                    16 => check::<2>(&modulus, &one, &other)?,
                    20 | 24 => check::<3>(&modulus, &one, &other)?,
                    _ => check::<4>(&modulus, &one, &other)?,
                }
            }
        }
    }
}
