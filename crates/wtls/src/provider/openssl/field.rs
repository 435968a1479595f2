//! Arithmetic modulo a prime with a fixed number of words, for square roots, which need hundreds of multiplications.
//! OpenSSL's numbers have any length, and at these sizes their management takes longer than the multiplication.
//!
//! Computing times depend on the values. Use it only for public values.

/// Words of the longest prime here.
const MAX_WORDS: usize = 4;

/// A number below the modulus; the lowest word is first.
pub type Number<const N: usize> = [u64; N];

/// A product, of which 2N words are used.
type Product = [u64; 2 * MAX_WORDS];

/// Numbers modulo a prime.
pub struct Field<const N: usize> {
    prime: Number<N>,
    /// The modulus of stored numbers: the prime, which [`Reduction::Fold`] shifts so that it fills its words.
    modulus: Number<N>,
    reduction: Reduction<N>,
}

/// How a product is reduced to N words.
enum Reduction<const N: usize> {
    /// The modulus is 2^(64 N) minus `word`, so the upper half of a product, times `word`, is added to its lower half.
    /// The modulus is the prime times 2^shift. Numbers are stored as they are.
    Fold { word: u64, shift: u32 },
    /// Montgomery reduction: numbers are stored multiplied by 2^(64 N).
    Montgomery {
        /// Minus the inverse of the modulus, modulo 2^64.
        inverse: u64,
        /// 2^(128 N), which converts a number into the stored form.
        radix_squared: Number<N>,
    },
}

/// Words from big-endian bytes; `None` if there are too many.
pub fn number<const N: usize>(bytes: &[u8]) -> Option<Number<N>> {
    let mut words = bytes.rchunks(8).map(|word| word.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)));
    let number = std::array::from_fn(|_| words.next().unwrap_or(0));
    words.next().is_none().then_some(number)
}

/// Big-endian bytes of words.
pub fn bytes<const N: usize>(number: &Number<N>) -> Vec<u8> {
    let mut bytes = vec![0; 8 * N];
    for (place, word) in bytes.rchunks_exact_mut(8).zip(number) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}

/// `sum + one * other + carry`: the low word, and the carry.
#[inline(always)]
fn multiply_add(sum: u64, one: u64, other: u64, carry: u64) -> (u64, u64) {
    let total = u128::from(sum) + u128::from(one) * u128::from(other) + u128::from(carry);
    (total as u64, (total >> 64) as u64)
}

/// `one + other + carry`: the low word, and the carry.
#[inline(always)]
fn add_carry(one: u64, other: u64, carry: u64) -> (u64, u64) {
    let total = u128::from(one) + u128::from(other) + u128::from(carry);
    (total as u64, (total >> 64) as u64)
}

/// 2^bits, for less than 64 bits.
fn power_of_two<const N: usize>(bits: u32) -> Number<N> {
    std::array::from_fn(|place| if place == 0 { 1 << bits } else { 0 })
}

/// A number times 2^bits, without the overflow.
fn shifted_left<const N: usize>(number: &Number<N>, bits: u32) -> Number<N> {
    std::array::from_fn(|place| {
        let below = if place == 0 { 0 } else { number[place - 1] };
        ((u128::from(number[place]) << 64 | u128::from(below)) << bits >> 64) as u64
    })
}

/// A number divided by 2^bits, without the remainder.
fn shifted_right<const N: usize>(number: &Number<N>, bits: u32) -> Number<N> {
    std::array::from_fn(|place| {
        let above = number.get(place + 1).copied().unwrap_or(0);
        ((u128::from(above) << 64 | u128::from(number[place])) >> bits) as u64
    })
}

impl<const N: usize> Field<N> {
    /// The field of an odd modulus.
    pub fn new(prime: Number<N>) -> Self {
        let shift = prime[N - 1].leading_zeros();
        let filled = shifted_left(&prime, shift % 64);
        if shift < 64 && filled[1..].iter().all(|word| *word == u64::MAX) {
            let reduction = Reduction::Fold { word: filled[0].wrapping_neg(), shift };
            return Self { prime, modulus: filled, reduction };
        }
        // Each step doubles the number of correct bits. An odd number is its own inverse modulo 8.
        let mut inverse = prime[0];
        for _ in 0..5 {
            inverse = inverse.wrapping_mul(2_u64.wrapping_sub(prime[0].wrapping_mul(inverse)));
        }
        let inverse = inverse.wrapping_neg();
        let montgomery = |radix_squared| Reduction::Montgomery { inverse, radix_squared };
        let mut field = Self { prime, modulus: prime, reduction: montgomery([0; N]) };
        let mut power = power_of_two(0);
        for _ in 0..128 * N {
            power = field.add(&power, &power);
        }
        field.reduction = montgomery(power);
        field
    }

    /// Whether a number is below the prime.
    pub fn has(&self, number: &Number<N>) -> bool {
        number.iter().rev().lt(self.prime.iter().rev())
    }

    /// Converts a number into the stored form.
    pub fn enter(&self, number: &Number<N>) -> Number<N> {
        match &self.reduction {
            Reduction::Fold { .. } => *number,
            Reduction::Montgomery { radix_squared, .. } => self.multiply(number, radix_squared),
        }
    }

    /// Converts a number from the stored form.
    pub fn leave(&self, number: &Number<N>) -> Number<N> {
        match self.reduction {
            // The number times 2^shift, modulo the prime times 2^shift, is the result times 2^shift.
            Reduction::Fold { shift, .. } => {
                shifted_right(&self.multiply(number, &power_of_two(shift)), shift)
            }
            Reduction::Montgomery { .. } => self.multiply(number, &power_of_two(0)),
        }
    }

    /// The prime minus a number other than 0, which is not in the stored form.
    pub fn negative(&self, number: &Number<N>) -> Number<N> {
        less(&self.prime, number)
    }

    pub fn add(&self, one: &Number<N>, other: &Number<N>) -> Number<N> {
        let mut carry = 0;
        let sum = std::array::from_fn(|place| {
            let (word, above) = add_carry(one[place], other[place], carry);
            carry = above;
            word
        });
        self.reduced(&sum, carry)
    }

    /// The product of two numbers in the stored form.
    pub fn multiply(&self, one: &Number<N>, other: &Number<N>) -> Number<N> {
        let mut product = [0; 2 * MAX_WORDS];
        for place in 0..N {
            let mut carry = 0;
            for (with, other) in other.iter().enumerate() {
                let sum = product[place + with];
                (product[place + with], carry) = multiply_add(sum, one[place], *other, carry);
            }
            product[place + N] = carry;
        }
        self.reduce(product)
    }

    /// The square of a number: each product of two different words is computed once.
    pub fn square(&self, of: &Number<N>) -> Number<N> {
        let mut product = [0; 2 * MAX_WORDS];
        for place in 0..N {
            let mut carry = 0;
            for with in place + 1..N {
                let sum = product[place + with];
                (product[place + with], carry) = multiply_add(sum, of[place], of[with], carry);
            }
            product[place + N] = carry;
        }
        let (mut shifted_out, mut carry) = (0, 0);
        for place in 0..N {
            let square = u128::from(of[place]) * u128::from(of[place]);
            let (low, high) = (product[2 * place], product[2 * place + 1]);
            (product[2 * place], carry) = add_carry(low << 1 | shifted_out, square as u64, carry);
            (product[2 * place + 1], carry) = add_carry(high << 1 | low >> 63, (square >> 64) as u64, carry);
            shifted_out = high >> 63;
        }
        self.reduce(product)
    }

    #[inline(always)]
    fn reduce(&self, mut product: Product) -> Number<N> {
        let (mut carry, mut above) = (0, 0);
        match self.reduction {
            Reduction::Fold { word, .. } => {
                for place in 0..N {
                    (product[place], carry) = multiply_add(product[place], product[place + N], word, carry);
                }
                (product[0], carry) = multiply_add(product[0], carry, word, 0);
                for word in &mut product[1..N] {
                    (*word, carry) = add_carry(*word, carry, 0);
                }
                self.reduced(&std::array::from_fn(|place| product[place]), carry)
            }
            Reduction::Montgomery { inverse, .. } => {
                for place in 0..N {
                    let factor = product[place].wrapping_mul(inverse);
                    carry = 0;
                    for (with, modulus) in self.modulus.iter().enumerate() {
                        let sum = product[place + with];
                        (product[place + with], carry) = multiply_add(sum, factor, *modulus, carry);
                    }
                    (product[place + N], above) = add_carry(product[place + N], carry, above);
                }
                self.reduced(&std::array::from_fn(|place| product[place + N]), above)
            }
        }
    }

    /// A power of a number in the stored form; the exponent is not in this form. If the exponent begins with a long
    /// run of ones, as for square roots modulo primes just below a power of two, most operations are squarings.
    pub fn power(&self, base: &Number<N>, exponent: &Number<N>) -> Number<N> {
        let bit = |place: usize| exponent[place / 64] >> (place % 64) & 1 == 1;
        let bits = (0..64 * N).rev().find(|place| bit(*place)).map_or(0, |top| top + 1);
        let run = (0..bits).rev().take_while(|place| bit(*place)).count();
        let Some(doublings) = run.checked_ilog2() else {
            return self.enter(&power_of_two(0));
        };
        // The exponent of 2n ones is that of n ones, shifted by n, plus that of n ones. For one more: square, multiply.
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

    /// Subtracts the modulus once if the number, with the word `above` it, is not below the modulus.
    #[inline(always)]
    fn reduced(&self, number: &Number<N>, above: u64) -> Number<N> {
        let is_below = above == 0 && number.iter().rev().lt(self.modulus.iter().rev());
        if is_below { *number } else { less(number, &self.modulus) }
    }
}

#[inline(always)]
fn less<const N: usize>(one: &Number<N>, other: &Number<N>) -> Number<N> {
    let mut borrow = false;
    std::array::from_fn(|place| {
        let (difference, first) = one[place].overflowing_sub(other[place]);
        let (difference, second) = difference.overflowing_sub(u64::from(borrow));
        borrow = first | second;
        difference
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use openssl::bn::{BigNum, BigNumContext};
    use proptest::prelude::*;

    /// Compares each operation with OpenSSL's.
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
        let is_near = modulus[..modulus.len() - 4].iter().all(|byte| *byte == 0xFF);
        prop_assert_eq!(matches!(field.reduction, Reduction::Fold { .. }), is_near);
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
        /// Odd moduli of several sizes, including those that fill their words.
        #[test]
        fn field_arithmetic_matches_openssl(
            mut modulus in prop::collection::vec(any::<u8>(), 32),
            one in prop::collection::vec(any::<u8>(), 32),
            other in prop::collection::vec(any::<u8>(), 32),
            full: bool,
            near: bool,
        ) {
            modulus[31] |= 1;
            for length in [14, 16, 20, 24, 28, 32] {
                let mut modulus = modulus[32 - length..].to_vec();
                modulus[0] |= if full { 0xFF } else { 1 };
                if near {
                    // Close enough to a power of two for `Fold`.
                    modulus[..length - 4].fill(0xFF);
                }
                match length {
                    14 | 16 => check::<2>(&modulus, &one, &other)?,
                    20 | 24 => check::<3>(&modulus, &one, &other)?,
                    _ => check::<4>(&modulus, &one, &other)?,
                }
            }
        }
    }
}
