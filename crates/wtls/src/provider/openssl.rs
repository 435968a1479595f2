//! The primitives from OpenSSL.
//!
//! The low-level functions are used because only they support RC5 with a chosen number of rounds, they work with the
//! caller's randomness, and they need no algorithm fetches. Curve groups are created once, with the provider; data for
//! the decompression of points, once per process.

mod cipher;
mod compression;
mod dh;
mod ec;
mod ffi;
mod field;
mod hash;
mod rsa;

use crate::crypto::SignatureHash;
use crate::crypto::{
    CryptoError, Digest, Group, Key, KeyKind, Provider, PublicKeyRef, RSA_SECRET_BYTES, Random,
};
use crate::curve::Curve;
use crate::numbers::{BulkCipher, HashAlgorithm, PointForm};
use ::openssl::error::ErrorStack;
use zeroize::Zeroizing;

/// The provider. Create one and share it: it contains the groups of all curves.
pub struct OpenSsl {
    curves: ec::Curves,
}

pub enum PublicKey {
    Rsa(rsa::Public),
    Ec(ec::Public),
    /// A Diffie–Hellman value.
    Dh(dh::Public),
}

pub enum PrivateKey {
    Rsa(rsa::Private),
    Ec(ec::Private),
    /// A Diffie–Hellman exponent.
    Dh(dh::Private),
}

impl Key for PublicKey {
    fn kind(&self) -> KeyKind {
        match self {
            Self::Rsa(key) => key.kind(),
            Self::Ec(key) => KeyKind::Ec(key.curve),
            Self::Dh(key) => Group::Dh(&key.group).kind(),
        }
    }
}

impl Key for PrivateKey {
    fn kind(&self) -> KeyKind {
        match self {
            Self::Rsa(key) => key.kind(),
            Self::Ec(key) => KeyKind::Ec(key.curve),
            Self::Dh(key) => Group::Dh(&key.group).kind(),
        }
    }
}

impl From<ErrorStack> for CryptoError {
    fn from(error: ErrorStack) -> Self {
        Self::Provider(error.to_string())
    }
}

impl OpenSsl {
    /// Creates the groups of all curves.
    pub fn new() -> Result<Self, CryptoError> {
        Ok(Self { curves: ec::Curves::new()? })
    }

    /// An RSA key from PKCS#1 DER.
    pub fn rsa_key_from_der(&self, der: &[u8]) -> Result<PrivateKey, CryptoError> {
        Ok(PrivateKey::Rsa(rsa::Private::from_der(der)?))
    }

    /// Exponent and modulus of an RSA key, without leading zeros.
    pub fn rsa_public(&self, key: &PrivateKey) -> Result<(Vec<u8>, Vec<u8>), CryptoError> {
        match key {
            PrivateKey::Rsa(key) => Ok(key.public()),
            _ => Err(CryptoError::WrongKeyKind),
        }
    }

    /// An elliptic-curve key from its secret scalar.
    pub fn ec_key(&self, curve: Curve, scalar: &[u8]) -> Result<PrivateKey, CryptoError> {
        Ok(PrivateKey::Ec(self.curves.key(curve, scalar)?))
    }
}

impl Provider for OpenSsl {
    type PublicKey = PublicKey;
    type PrivateKey = PrivateKey;

    fn import(&self, key: PublicKeyRef<'_>) -> Result<PublicKey, CryptoError> {
        match key {
            PublicKeyRef::Rsa { exponent, modulus } => {
                rsa::Public::import(exponent, modulus).map(PublicKey::Rsa)
            }
            PublicKeyRef::Ec { curve, point } => self.curves.import(curve, point).map(PublicKey::Ec),
            PublicKeyRef::Dh { group, value } => dh::Public::import(group, value).map(PublicKey::Dh),
        }
    }

    fn rsa_encrypt(
        &self,
        key: &PublicKey,
        message: &[u8],
        random: &mut dyn Random,
    ) -> Result<Vec<u8>, CryptoError> {
        match key {
            PublicKey::Rsa(key) => key.encrypt(message, random),
            _ => Err(CryptoError::WrongKeyKind),
        }
    }

    fn rsa_decrypt(
        &self,
        key: &PrivateKey,
        ciphertext: &[u8],
        version: u8,
        fallback: &[u8; RSA_SECRET_BYTES],
    ) -> Result<Zeroizing<[u8; RSA_SECRET_BYTES]>, CryptoError> {
        match key {
            PrivateKey::Rsa(key) => key.decrypt(ciphertext, version, fallback),
            _ => Err(CryptoError::WrongKeyKind),
        }
    }

    fn rsa_sign(&self, key: &PrivateKey, hash: &[u8]) -> Result<Vec<u8>, CryptoError> {
        match key {
            PrivateKey::Rsa(key) => key.sign(hash),
            _ => Err(CryptoError::WrongKeyKind),
        }
    }

    fn rsa_verify(&self, key: &PublicKey, hash: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        match key {
            PublicKey::Rsa(key) => key.verify(hash, signature),
            _ => Err(CryptoError::WrongKeyKind),
        }
    }

    fn ecdsa_sign(
        &self,
        key: &PrivateKey,
        hash: &[u8],
        random: &mut dyn Random,
    ) -> Result<Vec<u8>, CryptoError> {
        match key {
            PrivateKey::Ec(key) => self.curves.sign(key, hash, random),
            _ => Err(CryptoError::WrongKeyKind),
        }
    }

    fn ecdsa_verify(&self, key: &PublicKey, hash: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        match key {
            PublicKey::Ec(key) => self.curves.verify(key, hash, signature),
            _ => Err(CryptoError::WrongKeyKind),
        }
    }

    fn generate(&self, group: Group<'_>, random: &mut dyn Random) -> Result<PrivateKey, CryptoError> {
        match group {
            Group::Ec(curve) => self.curves.generate(curve, random).map(PrivateKey::Ec),
            Group::Dh(group) => dh::Private::generate(group, random).map(PrivateKey::Dh),
        }
    }

    fn public_value(&self, key: &PrivateKey, form: PointForm) -> Result<Vec<u8>, CryptoError> {
        match key {
            PrivateKey::Ec(key) => self.curves.public_value(key, form),
            PrivateKey::Dh(key) => key.public_value(),
            PrivateKey::Rsa(_) => Err(CryptoError::WrongKeyKind),
        }
    }

    fn derive(&self, key: &PrivateKey, peer: &PublicKey) -> Result<Zeroizing<Vec<u8>>, CryptoError> {
        match (key, peer) {
            (PrivateKey::Ec(key), PublicKey::Ec(peer)) if key.curve == peer.curve => {
                self.curves.derive(key, peer)
            }
            (PrivateKey::Dh(key), PublicKey::Dh(peer)) if key.group == peer.group => key.derive(peer),
            _ => Err(CryptoError::WrongKeyKind),
        }
    }

    fn digest(&self, hash: HashAlgorithm, parts: &[&[u8]]) -> Digest {
        hash::digest(hash, parts)
    }

    fn signature_digest(&self, hash: SignatureHash, signed: &[u8]) -> Vec<u8> {
        hash::signature_digest(hash, signed)
    }

    fn hmac(&self, hash: HashAlgorithm, key: &[u8], parts: &[&[u8]]) -> Digest {
        hash::hmac(hash, key, parts)
    }

    fn prf(&self, hash: HashAlgorithm, secret: &[u8], label: &str, seed: &[&[u8]], out: &mut [u8]) {
        hash::prf(hash, secret, label, seed, out);
    }

    fn cbc_encrypt(&self, cipher: BulkCipher, key: &[u8], iv: &[u8; 8], data: &mut [u8]) {
        cipher::cbc(cipher, key, iv, data, ffi::ENCRYPT);
    }

    fn cbc_decrypt(&self, cipher: BulkCipher, key: &[u8], iv: &[u8; 8], data: &mut [u8]) {
        cipher::cbc(cipher, key, iv, data, ffi::DECRYPT);
    }
}
