//! Diffie–Hellman over the integers modulo a prime.

use crate::crypto::{CryptoError, Random};
use crate::dh::DhGroup;
use openssl::bn::{BigNum, BigNumContext};
use std::sync::Arc;
use zeroize::Zeroizing;

/// A value between 2 and p-2.
pub struct Public {
    pub group: Arc<DhGroup>,
    value: BigNum,
}

/// An exponent and its public value.
pub struct Private {
    pub group: Arc<DhGroup>,
    exponent: BigNum,
    value: BigNum,
}

impl Public {
    pub fn import(group: &Arc<DhGroup>, value: &[u8]) -> Result<Self, CryptoError> {
        if value.len() > group.prime.len() {
            return Err(CryptoError::InvalidKey);
        }
        let value = BigNum::from_slice(value)?;
        let mut greatest = BigNum::from_slice(&group.prime)?;
        greatest.sub_word(2)?;
        if value.num_bits() < 2 || value > greatest {
            return Err(CryptoError::InvalidKey);
        }
        Ok(Self { group: Arc::clone(group), value })
    }
}

impl Private {
    pub fn generate(group: &Arc<DhGroup>, random: &mut dyn Random) -> Result<Self, CryptoError> {
        let mut bytes = Zeroizing::new(vec![0; group.exponent_bytes]);
        random.fill(&mut bytes);
        // A full-length exponent must be below the prime, so it has at least one bit less. If the prime's first byte
        // is 1, the exponent's first byte is 0.
        if group.exponent_bytes == group.prime.len() {
            bytes[0] &= u8::MAX.checked_shr(1 + group.prime[0].leading_zeros()).unwrap_or(0);
        }
        let mut exponent = BigNum::from_slice(&bytes)?;
        if exponent.num_bits() < 64 {
            return Err(CryptoError::Provider("the source of randomness gives zeros".to_owned()));
        }
        exponent.set_const_time();
        let mut value = BigNum::new()?;
        let prime = BigNum::from_slice(&group.prime)?;
        let generator = BigNum::from_slice(&group.generator)?;
        value.mod_exp(&generator, &exponent, &prime, &mut *BigNumContext::new()?)?;
        Ok(Self { group: Arc::clone(group), exponent, value })
    }

    /// The public value, padded to the length of the prime, so that the size of a handshake is constant.
    pub fn public_value(&self) -> Result<Vec<u8>, CryptoError> {
        Ok(self.value.to_vec_padded(self.group.prime.len() as i32)?)
    }

    pub fn derive(&self, peer: &Public) -> Result<Zeroizing<Vec<u8>>, CryptoError> {
        let mut secret = BigNum::new()?;
        let prime = BigNum::from_slice(&self.group.prime)?;
        secret.mod_exp(&peer.value, &self.exponent, &prime, &mut *BigNumContext::new()?)?;
        if secret.num_bits() < 2 {
            return Err(CryptoError::DegenerateSecret);
        }
        Ok(Zeroizing::new(secret.to_vec_padded(self.group.prime.len() as i32)?))
    }
}
