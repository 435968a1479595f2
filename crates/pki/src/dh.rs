//! Finite-field groups whose primes OpenSSL does not recognise.
//!
//! For the well-known primes of RFC 3526 and RFC 7919, OpenSSL draws short exponents, which makes 2048 bits as
//! cheap as 1024 bits with long exponents. These are other safe primes, generated once by `openssl dhparam`: p = 23
//! (mod 24), so that 2 generates the subgroup of prime order (p - 1) / 2, and exponents are as long as the prime.

const P512: [u8; 64] = from_hex(include_bytes!("../data/dh512.hex"));
const P1024: [u8; 128] = from_hex(include_bytes!("../data/dh1024.hex"));
const P2048: [u8; 256] = from_hex(include_bytes!("../data/dh2048.hex"));
const P3072: [u8; 384] = from_hex(include_bytes!("../data/dh3072.hex"));

/// Big-endian prime and generator of the group of `bits` bits; `None` for sizes other than 512, 1024, 2048 and 3072.
pub fn group(bits: u16) -> Option<(&'static [u8], &'static [u8])> {
    let prime: &'static [u8] = match bits {
        512 => &P512,
        1024 => &P1024,
        2048 => &P2048,
        3072 => &P3072,
        _ => return None,
    };
    Some((prime, &[2]))
}

/// Reads lower-case hexadecimal with line ends; a wrong length or digit fails the build.
const fn from_hex<const N: usize>(text: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    let (mut read, mut digits) = (0, 0);
    while read < text.len() {
        let value = match text[read] {
            digit @ b'0'..=b'9' => digit - b'0',
            digit @ b'a'..=b'f' => digit - b'a' + 10,
            b'\n' => {
                read += 1;
                continue;
            }
            _ => panic!("not a hexadecimal digit"),
        };
        bytes[digits / 2] = bytes[digits / 2] << 4 | value;
        digits += 1;
        read += 1;
    }
    assert!(digits == 2 * N, "the prime has another length");
    bytes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use openssl::bn::{BigNum, BigNumContext};

    const BITS: [u16; 4] = [512, 1024, 2048, 3072];

    #[test]
    fn primes_are_safe_and_two_generates_the_large_subgroup() {
        let mut context = BigNumContext::new().unwrap();
        for bits in BITS {
            let (prime, generator) = group(bits).unwrap();
            let prime = BigNum::from_slice(prime).unwrap();
            assert_eq!(prime.num_bits(), i32::from(bits));
            let mut half = BigNum::new().unwrap();
            half.rshift1(&prime).unwrap();
            assert!(prime.is_prime(64, &mut context).unwrap(), "dh{bits}");
            assert!(half.is_prime(64, &mut context).unwrap(), "dh{bits} is not a safe prime");
            let mut power = BigNum::new().unwrap();
            power.mod_exp(&BigNum::from_slice(generator).unwrap(), &half, &prime, &mut context).unwrap();
            assert_eq!(power, BigNum::from_u32(1).unwrap(), "2 is not of order (p - 1) / 2 in dh{bits}");
        }
    }

    #[test]
    fn primes_are_not_the_standard_ones() {
        let known = [
            BigNum::get_rfc2409_prime_768().unwrap(),
            BigNum::get_rfc2409_prime_1024().unwrap(),
            BigNum::get_rfc3526_prime_1536().unwrap(),
            BigNum::get_rfc3526_prime_2048().unwrap(),
            BigNum::get_rfc3526_prime_3072().unwrap(),
        ];
        for bits in BITS {
            let (prime, generator) = group(bits).unwrap();
            let prime = BigNum::from_slice(prime).unwrap();
            assert!(known.iter().all(|other| *other != prime));
            // RFC 3526's and RFC 7919's primes alike begin and end with 64 one bits.
            assert_ne!(&prime.to_vec()[..8], &[0xff; 8]);
            assert_ne!(&prime.to_vec()[prime.to_vec().len() - 8..], &[0xff; 8]);
            // The drawn exponent is as long as the prime (for recognised primes, it has about 224 bits).
            let generator = BigNum::from_slice(generator).unwrap();
            let dh = openssl::dh::Dh::from_pqg(prime, None, generator).unwrap().generate_key().unwrap();
            assert!(dh.private_key().num_bits() > i32::from(bits) - 32, "dh{bits}: a short exponent");
        }
    }

    #[test]
    fn unsupported_sizes_have_no_group() {
        assert!(group(768).is_none() && group(0).is_none());
    }
}
