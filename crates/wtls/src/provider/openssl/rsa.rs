//! RSA: encryption and signature in PKCS#1 v1.5 blocks.
//!
//! The encryption block is encoded and decoded here, not in OpenSSL: the padding is generated with the caller's
//! randomness, and decoding has no branch that depends on the block.

use crate::crypto::{CryptoError, KeyKind, RSA_SECRET_BYTES, Random};
use openssl::bn::BigNum;
use openssl::pkey;
use openssl::rsa::{Padding, Rsa};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use zeroize::Zeroizing;

/// Sizes of moduli that are accepted from a peer.
const MODULUS_BITS: core::ops::RangeInclusive<u32> = 512..=4096;
/// The maximum length of a public exponent: OpenSSL's limit for large moduli.
const MAX_EXPONENT_BITS: i32 = 64;

/// A public key of acceptable size.
pub struct Public {
    key: Rsa<pkey::Public>,
    bits: u32,
}

pub struct Private {
    key: Rsa<pkey::Private>,
    bits: u32,
}

impl Public {
    pub fn import(exponent: &[u8], modulus: &[u8]) -> Result<Self, CryptoError> {
        if modulus.len() > 1 + *MODULUS_BITS.end() as usize / 8 || exponent.len() > 16 {
            return Err(CryptoError::InvalidKey);
        }
        let modulus = BigNum::from_slice(modulus)?;
        let exponent = BigNum::from_slice(exponent)?;
        let bits = modulus.num_bits().unsigned_abs();
        let good_exponent = exponent.is_odd() && (2..=MAX_EXPONENT_BITS).contains(&exponent.num_bits());
        if !MODULUS_BITS.contains(&bits) || !modulus.is_odd() || !good_exponent {
            return Err(CryptoError::InvalidKey);
        }
        Ok(Self { key: Rsa::from_public_components(modulus, exponent)?, bits })
    }

    pub fn kind(&self) -> KeyKind {
        KeyKind::Rsa { bits: self.bits }
    }

    pub fn encrypt(&self, message: &[u8], random: &mut dyn Random) -> Result<Vec<u8>, CryptoError> {
        let size = self.key.size() as usize;
        let padding = size.checked_sub(message.len() + 3).filter(|length| *length >= 8);
        let padding = padding.ok_or(CryptoError::WrongKeyKind)?;
        let mut block = Zeroizing::new(vec![0; size]);
        block[1] = 2;
        fill_non_zero(&mut block[2..2 + padding], random)?;
        block[3 + padding..].copy_from_slice(message);
        let mut ciphertext = vec![0; size];
        self.key.public_encrypt(&block, &mut ciphertext, Padding::NONE)?;
        Ok(ciphertext)
    }

    pub fn verify(&self, hash: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let bad = |_| CryptoError::BadSignature;
        let size = self.key.size() as usize;
        if signature.len() != size {
            return Err(CryptoError::BadSignature);
        }
        let mut recovered = vec![0; size];
        let length = self.key.public_decrypt(signature, &mut recovered, Padding::PKCS1).map_err(bad)?;
        if &recovered[..length] == hash { Ok(()) } else { Err(CryptoError::BadSignature) }
    }
}

impl Private {
    pub fn from_der(der: &[u8]) -> Result<Self, CryptoError> {
        let key = Rsa::private_key_from_der(der)?;
        let bits = key.n().num_bits().unsigned_abs();
        Ok(Self { key, bits })
    }

    pub fn public(&self) -> (Vec<u8>, Vec<u8>) {
        (self.key.e().to_vec(), self.key.n().to_vec())
    }

    pub fn kind(&self) -> KeyKind {
        KeyKind::Rsa { bits: self.bits }
    }

    pub fn decrypt(
        &self,
        ciphertext: &[u8],
        version: u8,
        fallback: &[u8; RSA_SECRET_BYTES],
    ) -> Result<Zeroizing<[u8; RSA_SECRET_BYTES]>, CryptoError> {
        let size = self.key.size() as usize;
        if ciphertext.len() != size || size < RSA_SECRET_BYTES + 11 {
            return Err(CryptoError::BadCiphertext);
        }
        let mut block = Zeroizing::new(vec![0; size]);
        self.key
            .private_decrypt(ciphertext, &mut block, Padding::NONE)
            .map_err(|_| CryptoError::BadCiphertext)?;
        let (padding, secret) = block.split_at(size - RSA_SECRET_BYTES);
        let mut good = padding[0].ct_eq(&0) & padding[1].ct_eq(&2) & secret[0].ct_eq(&version);
        let (separator, padding) = (padding[padding.len() - 1], &padding[2..padding.len() - 1]);
        good &= separator.ct_eq(&0);
        good &= padding.iter().fold(Choice::from(1), |good, byte| good & !byte.ct_eq(&0));
        let mut result = Zeroizing::new([0; RSA_SECRET_BYTES]);
        for ((result, secret), fallback) in result.iter_mut().zip(secret).zip(fallback) {
            *result = u8::conditional_select(fallback, secret, good);
        }
        Ok(result)
    }

    pub fn sign(&self, hash: &[u8]) -> Result<Vec<u8>, CryptoError> {
        let mut signature = vec![0; self.key.size() as usize];
        self.key.private_encrypt(hash, &mut signature, Padding::PKCS1)?;
        Ok(signature)
    }
}

/// Fills `out` with random bytes other than zero. Zeros are replaced, in at most 256 rounds.
fn fill_non_zero(out: &mut [u8], random: &mut dyn Random) -> Result<(), CryptoError> {
    random.fill(out);
    for _ in 0..256 {
        let mut again = out.iter_mut().filter(|byte| **byte == 0).peekable();
        if again.peek().is_none() {
            return Ok(());
        }
        for byte in again {
            random.fill(core::slice::from_mut(byte));
        }
    }
    Err(CryptoError::Provider("the source of randomness gives zeros".to_owned()))
}
