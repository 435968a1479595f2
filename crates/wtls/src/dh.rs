//! Diffie–Hellman groups: the two numbered groups (Table 9), and explicit groups within limits.

use crate::codec::{Codec, DecodeError, EncodeError, Reader, Writer, bits, significant};
use crate::curve::unhex;
use std::sync::{Arc, LazyLock};

/// Accepted sizes of a peer's prime, in bits. The minimum is that of the export suites. The maximum limits the
/// computing time that a peer can cause.
pub const PRIME_BITS: core::ops::RangeInclusive<u32> = 512..=4096;

/// A prime, a generator, and the length of exponents.
#[derive(Debug, PartialEq, Eq)]
pub struct DhGroup {
    pub number: Option<u8>,
    /// The prime, without leading zeros.
    pub prime: Vec<u8>,
    /// The generator, without leading zeros.
    pub generator: Vec<u8>,
    pub exponent_bytes: usize,
}

impl DhGroup {
    /// Group 1: 512-bit prime, 160-bit exponents.
    pub fn group_1() -> Arc<Self> {
        Arc::clone(&GROUP_1)
    }

    /// Group 2: 768-bit prime, 160-bit exponents.
    pub fn group_2() -> Arc<Self> {
        Arc::clone(&GROUP_2)
    }

    pub fn from_number(number: u8) -> Option<Arc<Self>> {
        match number {
            1 => Some(Self::group_1()),
            2 => Some(Self::group_2()),
            _ => None,
        }
    }

    /// Size of the prime in bits.
    pub fn bits(&self) -> u32 {
        bits(&self.prime)
    }
}

/// DHParameters, as sent (§10.5.1.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DhParameters {
    /// Exponent length in bytes; 0 means the length of the prime.
    pub exponent_bytes: u8,
    pub prime: Vec<u8>,
    pub generator: Vec<u8>,
}

impl DhParameters {
    /// The encoding of a group. An exponent length above 255 is encoded as 0, the length of the prime.
    pub fn of(group: &DhGroup) -> Self {
        Self {
            exponent_bytes: u8::try_from(group.exponent_bytes).unwrap_or(0),
            prime: group.prime.clone(),
            generator: group.generator.clone(),
        }
    }

    /// The group, if its size is within [`PRIME_BITS`], the modulus is odd, the generator is between 2 and p-2, and
    /// exponents have at least 20 bytes. Primality is not checked: an anonymous peer has easier attacks.
    pub fn group(&self) -> Option<Arc<DhGroup>> {
        let prime = significant(&self.prime);
        let generator = significant(&self.generator);
        let odd = prime.last().is_some_and(|byte| byte & 1 == 1);
        if !PRIME_BITS.contains(&bits(prime)) || !odd || generator <= &[1] {
            return None;
        }
        let mut greatest = prime.to_vec();
        *greatest.last_mut()? -= 1;
        if (generator.len(), generator) >= (greatest.len(), greatest.as_slice()) {
            return None;
        }
        let exponent_bytes = match usize::from(self.exponent_bytes) {
            0 => prime.len(),
            length if length < 20 => return None,
            length => length.min(prime.len()),
        };
        let numbered = [DhGroup::group_1(), DhGroup::group_2()].into_iter().find(|group| {
            group.prime == prime && group.generator == generator && group.exponent_bytes == exponent_bytes
        });
        Some(numbered.unwrap_or_else(|| {
            Arc::new(DhGroup {
                number: None,
                prime: prime.to_vec(),
                generator: generator.to_vec(),
                exponent_bytes,
            })
        }))
    }
}

impl Codec for DhParameters {
    fn encode(&self, to: &mut Writer) -> Result<(), EncodeError> {
        to.u8(self.exponent_bytes);
        to.v16("DH prime", &self.prime)?;
        to.v16("DH generator", &self.generator)
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            exponent_bytes: from.u8("DH exponent length")?,
            prime: from.v16("DH prime")?.to_vec(),
            generator: from.v16("DH generator")?.to_vec(),
        })
    }
}

static GROUP_1: LazyLock<Arc<DhGroup>> = LazyLock::new(|| {
    Arc::new(DhGroup {
        number: Some(1),
        prime: unhex(concat!(
            "FAF30C63D171E54A8131CD331D7C8D6C8AED41B0354E1A29D8DAD03E2E67FF8E",
            "00053A07FD28A1EE6AF199FD70330EA8C4C602B86EDFBF47FD1D7BFB6456BD57",
        )),
        generator: unhex(concat!(
            "E7734EBBCF50893C760181B2AA2DB0ACF2D5B6E775EE88BAFC7AA5A6BB20A64E",
            "B9F54301141F90291B7B37513539450481C9F9CB2BA3E67B4580E2153FD22B80",
        )),
        exponent_bytes: 20,
    })
});

static GROUP_2: LazyLock<Arc<DhGroup>> = LazyLock::new(|| {
    Arc::new(DhGroup {
        number: Some(2),
        prime: unhex(concat!(
            "85DB5DB185090AED3BDB3BABFCB46669F9563E681EDB43599241FEF6AA9B5DF9",
            "EFE39C0CB7994A04F2BD8F57B5B22AF75E360526216420BCA08FCDF98FF6417D",
            "CFDD1C40E4FFB183260E3B28EF0B31A3633788C988B1BC6734A81B31A28CD6FB",
        )),
        generator: unhex(concat!(
            "1B15C3C57263B0DD1A9D996768B88370ED458D7B0081A220054EFDD23B9CD829",
            "8B719FD3B67CB093817332D033642D21130F83D9CB2CC5ACDD36E6E6DDB2410A",
            "B30311CDBEE9222CCFE644443B0C7204F2D12F7A3719C8866A20A0E778EBBA",
        )),
        exponent_bytes: 20,
    })
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explicit_parameters_of_a_numbered_group_are_recognised() {
        for group in [DhGroup::group_1(), DhGroup::group_2()] {
            let found = DhParameters::of(&group).group().map(|found| found.number);
            assert_eq!(found, Some(group.number));
        }
        assert_eq!(DhGroup::group_1().bits(), 512);
        assert_eq!(DhGroup::group_2().bits(), 768);
    }

    #[test]
    fn degenerate_groups_are_refused() {
        let good = DhParameters::of(&DhGroup::group_1());
        let mut p_minus_1 = good.prime.clone();
        p_minus_1[63] -= 1;
        for generator in [vec![], vec![0], vec![1], p_minus_1, good.prime.clone(), vec![255; 65]] {
            assert_eq!(DhParameters { generator, ..good.clone() }.group(), None);
        }
        let even = [&good.prime[..63], &[0x56]].concat();
        assert_eq!(DhParameters { prime: even, ..good.clone() }.group(), None);
        assert_eq!(DhParameters { prime: vec![0xFF; 63], ..good.clone() }.group(), None);
        assert_eq!(DhParameters { exponent_bytes: 4, ..good }.group(), None);
    }
}
