//! The interface to the cryptographic primitives that the engine uses.
//!
//! The arguments of each method identify the primitive: a key has a [`KeyKind`], so a provider that wraps another one
//! can record operation, algorithm and size of each call. The engine checks sizes and curves before a call;
//! [`import`](Provider::import) validates received keys, once.

use crate::curve::Curve;
use crate::dh::DhGroup;
use crate::numbers::{BulkCipher, HashAlgorithm, PointForm};
use std::sync::Arc;
use zeroize::Zeroizing;

/// A source of unpredictable bytes. With the same bytes, the engine behaves in the same way.
pub trait Random {
    /// Fills `out`.
    fn fill(&mut self, out: &mut [u8]);
}

impl<F: FnMut(&mut [u8])> Random for F {
    fn fill(&mut self, out: &mut [u8]) {
        self(out);
    }
}

/// The hash of an X.509 certificate's signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SignatureHash {
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyKind {
    Rsa {
        bits: u32,
    },
    /// On an elliptic curve, for ECDH or ECDSA.
    Ec(Curve),
    /// Diffie–Hellman, with the size of the prime and of exponents.
    Dh {
        bits: u32,
        exponent_bits: u32,
    },
}

impl KeyKind {
    /// The size that a key exchange suite limits.
    pub fn size_bits(self) -> u32 {
        match self {
            Self::Rsa { bits } | Self::Dh { bits, .. } => bits,
            Self::Ec(curve) => curve.field_bits(),
        }
    }
}

/// A public or private key.
pub trait Key {
    fn kind(&self) -> KeyKind;
}

/// A public key as sent.
#[derive(Debug, Clone, Copy)]
pub enum PublicKeyRef<'a> {
    /// RSA: exponent and modulus, big-endian.
    Rsa { exponent: &'a [u8], modulus: &'a [u8] },
    /// A point, compressed or not.
    Ec { curve: Curve, point: &'a [u8] },
    /// A Diffie–Hellman public value.
    Dh { group: &'a Arc<DhGroup>, value: &'a [u8] },
}

/// The group of a temporary key.
#[derive(Debug, Clone, Copy)]
pub enum Group<'a> {
    Ec(Curve),
    Dh(&'a Arc<DhGroup>),
}

impl Group<'_> {
    pub fn kind(&self) -> KeyKind {
        match self {
            Self::Ec(curve) => KeyKind::Ec(*curve),
            Self::Dh(group) => {
                KeyKind::Dh { bits: group.bits(), exponent_bits: 8 * group.exponent_bytes as u32 }
            }
        }
    }
}

/// A hash or MAC value of up to 20 bytes.
#[derive(Debug, Clone, Copy)]
pub struct Digest {
    bytes: [u8; 20],
    length: usize,
}

impl Digest {
    /// A value, truncated to 20 bytes.
    pub fn new(value: &[u8]) -> Self {
        let length = value.len().min(20);
        let mut bytes = [0; 20];
        bytes[..length].copy_from_slice(&value[..length]);
        Self { bytes, length }
    }
}

impl core::ops::Deref for Digest {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Length of the secret that an RSA client encrypts.
pub const RSA_SECRET_BYTES: usize = 20;

/// Why a primitive did not yield a result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CryptoError {
    /// A public key that is malformed, off its curve, of small order or of unsupported size.
    #[error("the public key is not valid")]
    InvalidKey,
    #[error("the signature does not verify")]
    BadSignature,
    #[error("the ciphertext does not fit the key")]
    BadCiphertext,
    #[error("the shared secret is degenerate")]
    DegenerateSecret,
    #[error("the key is not of the kind that the operation needs")]
    WrongKeyKind,
    #[error("the cryptographic provider failed: {0}")]
    Provider(String),
}

/// The primitives.
pub trait Provider {
    /// A peer's key, decoded and validated.
    type PublicKey: Key;
    type PrivateKey: Key;

    /// Decodes and validates a public key: decompresses a point, checks that it is on its curve and
    /// not of small order; checks that a Diffie–Hellman value lies between 2 and p-2.
    fn import(&self, key: PublicKeyRef<'_>) -> Result<Self::PublicKey, CryptoError>;

    /// RSA encryption in PKCS#1 v1.5 block type 2.
    fn rsa_encrypt(
        &self,
        key: &Self::PublicKey,
        message: &[u8],
        random: &mut dyn Random,
    ) -> Result<Vec<u8>, CryptoError>;

    /// RSA decryption of a block with [`RSA_SECRET_BYTES`] bytes, the first of which is `version`. For any other
    /// block the result is `fallback`, in the same time, because the sender must not learn the reason. An error
    /// occurs only for a ciphertext of wrong length or not below the modulus, which anyone can see.
    fn rsa_decrypt(
        &self,
        key: &Self::PrivateKey,
        ciphertext: &[u8],
        version: u8,
        fallback: &[u8; RSA_SECRET_BYTES],
    ) -> Result<Zeroizing<[u8; RSA_SECRET_BYTES]>, CryptoError>;

    /// RSA signature in PKCS#1 v1.5 block type 1 around the bare hash, without DigestInfo (§11.1.1).
    fn rsa_sign(&self, key: &Self::PrivateKey, hash: &[u8]) -> Result<Vec<u8>, CryptoError>;

    /// Verifies such a signature. For X.509, `hash` is the whole DigestInfo.
    fn rsa_verify(&self, key: &Self::PublicKey, hash: &[u8], signature: &[u8]) -> Result<(), CryptoError>;

    /// ECDSA signature: r followed by s, each as long as the order of the base point.
    fn ecdsa_sign(
        &self,
        key: &Self::PrivateKey,
        hash: &[u8],
        random: &mut dyn Random,
    ) -> Result<Vec<u8>, CryptoError>;

    fn ecdsa_verify(&self, key: &Self::PublicKey, hash: &[u8], signature: &[u8]) -> Result<(), CryptoError>;

    /// Generates a temporary key for key agreement.
    fn generate(&self, group: Group<'_>, random: &mut dyn Random) -> Result<Self::PrivateKey, CryptoError>;

    /// The public part of a Diffie–Hellman or elliptic-curve key: Y padded to the length of the prime, or the
    /// point in `form`.
    fn public_value(&self, key: &Self::PrivateKey, form: PointForm) -> Result<Vec<u8>, CryptoError>;

    /// Key agreement: g^xy padded to the length of the prime, or the x-coordinate of the common
    /// point as long as the field (no cofactor multiplication).
    fn derive(
        &self,
        key: &Self::PrivateKey,
        peer: &Self::PublicKey,
    ) -> Result<Zeroizing<Vec<u8>>, CryptoError>;

    fn digest(&self, hash: HashAlgorithm, parts: &[&[u8]]) -> Digest;

    /// Hashes the signed part of an X.509 certificate.
    fn signature_digest(&self, hash: SignatureHash, signed: &[u8]) -> Vec<u8>;

    fn hmac(&self, hash: HashAlgorithm, key: &[u8], parts: &[&[u8]]) -> Digest;

    /// The PRF: P_hash over label and seed (§11.3). The seed is given in parts.
    fn prf(&self, hash: HashAlgorithm, secret: &[u8], label: &str, seed: &[&[u8]], out: &mut [u8]);

    /// Encrypts whole blocks in place in CBC mode.
    fn cbc_encrypt(&self, cipher: BulkCipher, key: &[u8], iv: &[u8; 8], data: &mut [u8]);

    /// Decrypts whole blocks in place in CBC mode.
    fn cbc_decrypt(&self, cipher: BulkCipher, key: &[u8], iv: &[u8; 8], data: &mut [u8]);
}
