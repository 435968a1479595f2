//! A wrapper of the engine's provider that times each call of a primitive.

use shakedown_trace::operation::intern;
use shakedown_trace::suite::{Curve as CurveName, Group as DhGroup, KeyFamily, Protocol};
use shakedown_trace::{Operation, Primitive, recorder};
use shakedown_wtls::crypto::SignatureHash;
use shakedown_wtls::crypto::{
    CryptoError, Digest, Group, Key, KeyKind, Provider, PublicKeyRef, RSA_SECRET_BYTES, Random,
};
use shakedown_wtls::provider::openssl::{OpenSsl, PrivateKey, PublicKey};
use shakedown_wtls::{BulkCipher, Curve, HashAlgorithm, PointForm};
use std::sync::OnceLock;
use zeroize::Zeroizing;

pub struct Timed {
    inner: OpenSsl,
}

/// A key with the name of its parameters.
pub struct Named<K> {
    inner: K,
    parameters: &'static str,
}

impl<K: Key> Key for Named<K> {
    fn kind(&self) -> KeyKind {
        self.inner.kind()
    }
}

impl Timed {
    pub fn new() -> Result<Self, CryptoError> {
        Ok(Self { inner: OpenSsl::new()? })
    }

    /// The inner provider, for work before any measurement.
    pub fn inner(&self) -> &OpenSsl {
        &self.inner
    }

    /// A private key with its parameters' name in suites.
    pub fn private_key(&self, inner: PrivateKey, parameters: &'static str) -> Named<PrivateKey> {
        Named { inner, parameters }
    }
}

fn parameters(kind: KeyKind, exponent: &[u8]) -> &'static str {
    match kind {
        KeyKind::Rsa { bits } => match (bits, exponent) {
            (1024, [1, 0, 1]) => "rsa1024",
            (2048, [1, 0, 1]) => "rsa2048",
            (3072, [1, 0, 1]) => "rsa3072",
            (_, [3]) => intern(&format!("rsa{bits}e3")),
            _ => intern(&format!("rsa{bits}")),
        },
        KeyKind::Ec(curve) => curve_name(curve),
        KeyKind::Dh { bits, .. } => match bits {
            512 => DhGroup::Dh(512).parameters(Protocol::Wtls),
            768 => DhGroup::Dh(768).parameters(Protocol::Wtls),
            _ => intern(&format!("dh{bits}")),
        },
    }
}

/// The standard name of one of the engine's curves.
pub fn curve_name(curve: Curve) -> &'static str {
    static NAMES: OnceLock<Vec<(Curve, &'static str)>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let name = |curve: Curve| CurveName::from_name(curve.short_name()).map_or("unknown", CurveName::name);
        Curve::ALL.iter().map(|curve| (*curve, name(*curve))).collect()
    });
    names.iter().find(|row| row.0 == curve).map_or("unknown", |row| row.1)
}

fn hash_name(hash: HashAlgorithm) -> &'static str {
    match hash {
        HashAlgorithm::Sha1 => "sha1",
        HashAlgorithm::Md5 => "md5",
    }
}

fn bytes(parts: &[&[u8]]) -> u32 {
    u32::try_from(parts.iter().map(|part| part.len()).sum::<usize>()).unwrap_or(u32::MAX)
}

fn public_key<T>(
    operation: Operation,
    family: KeyFamily,
    parameters: &'static str,
    work: impl FnOnce() -> T,
) -> T {
    recorder::timed(family.primitive(operation, parameters), 0, work)
}

fn family(kind: KeyKind) -> KeyFamily {
    match kind {
        KeyKind::Rsa { .. } => KeyFamily::Rsa,
        KeyKind::Ec(_) => KeyFamily::Ec,
        KeyKind::Dh { .. } => KeyFamily::Dh,
    }
}

impl Provider for Timed {
    type PublicKey = Named<PublicKey>;
    type PrivateKey = Named<PrivateKey>;

    fn import(&self, key: PublicKeyRef<'_>) -> Result<Self::PublicKey, CryptoError> {
        if !recorder::is_recording() {
            let inner = self.inner.import(key)?;
            return Ok(Named { parameters: parameters(inner.kind(), exponent(&key)), inner });
        }
        let start = recorder::ticks();
        let inner = self.inner.import(key);
        let end = recorder::ticks();
        let inner = inner?;
        let parameters = parameters(inner.kind(), exponent(&key));
        let primitive = family(inner.kind()).primitive(Operation::Import, parameters);
        recorder::operation(primitive, start, end, 0, true);
        Ok(Named { inner, parameters })
    }

    fn rsa_encrypt(
        &self,
        key: &Self::PublicKey,
        message: &[u8],
        random: &mut dyn Random,
    ) -> Result<Vec<u8>, CryptoError> {
        public_key(Operation::Encrypt, KeyFamily::Rsa, key.parameters, || {
            self.inner.rsa_encrypt(&key.inner, message, random)
        })
    }

    fn rsa_decrypt(
        &self,
        key: &Self::PrivateKey,
        ciphertext: &[u8],
        version: u8,
        fallback: &[u8; RSA_SECRET_BYTES],
    ) -> Result<Zeroizing<[u8; RSA_SECRET_BYTES]>, CryptoError> {
        public_key(Operation::Decrypt, KeyFamily::Rsa, key.parameters, || {
            self.inner.rsa_decrypt(&key.inner, ciphertext, version, fallback)
        })
    }

    fn rsa_sign(&self, key: &Self::PrivateKey, hash: &[u8]) -> Result<Vec<u8>, CryptoError> {
        public_key(Operation::Sign, KeyFamily::Rsa, key.parameters, || self.inner.rsa_sign(&key.inner, hash))
    }

    fn rsa_verify(&self, key: &Self::PublicKey, hash: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        public_key(Operation::Verify, KeyFamily::Rsa, key.parameters, || {
            self.inner.rsa_verify(&key.inner, hash, signature)
        })
    }

    fn ecdsa_sign(
        &self,
        key: &Self::PrivateKey,
        hash: &[u8],
        random: &mut dyn Random,
    ) -> Result<Vec<u8>, CryptoError> {
        public_key(Operation::Sign, KeyFamily::Ec, key.parameters, || {
            self.inner.ecdsa_sign(&key.inner, hash, random)
        })
    }

    fn ecdsa_verify(&self, key: &Self::PublicKey, hash: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        public_key(Operation::Verify, KeyFamily::Ec, key.parameters, || {
            self.inner.ecdsa_verify(&key.inner, hash, signature)
        })
    }

    fn generate(&self, group: Group<'_>, random: &mut dyn Random) -> Result<Self::PrivateKey, CryptoError> {
        let parameters = parameters(group.kind(), &[]);
        let inner = public_key(Operation::Keygen, family(group.kind()), parameters, || {
            self.inner.generate(group, random)
        })?;
        Ok(Named { inner, parameters })
    }

    fn public_value(&self, key: &Self::PrivateKey, form: PointForm) -> Result<Vec<u8>, CryptoError> {
        self.inner.public_value(&key.inner, form)
    }

    fn derive(
        &self,
        key: &Self::PrivateKey,
        peer: &Self::PublicKey,
    ) -> Result<Zeroizing<Vec<u8>>, CryptoError> {
        public_key(Operation::Derive, family(key.kind()), key.parameters, || {
            self.inner.derive(&key.inner, &peer.inner)
        })
    }

    fn digest(&self, hash: HashAlgorithm, parts: &[&[u8]]) -> Digest {
        recorder::timed(Primitive::new(Operation::Digest, hash_name(hash), ""), bytes(parts), || {
            self.inner.digest(hash, parts)
        })
    }

    fn signature_digest(&self, hash: SignatureHash, signed: &[u8]) -> Vec<u8> {
        let name = match hash {
            SignatureHash::Sha1 => "sha1",
            SignatureHash::Sha256 => "sha256",
            SignatureHash::Sha384 => "sha384",
            SignatureHash::Sha512 => "sha512",
        };
        recorder::timed(Primitive::new(Operation::Digest, name, ""), bytes(&[signed]), || {
            self.inner.signature_digest(hash, signed)
        })
    }

    fn hmac(&self, hash: HashAlgorithm, key: &[u8], parts: &[&[u8]]) -> Digest {
        let name = match hash {
            HashAlgorithm::Sha1 => "hmac-sha1",
            HashAlgorithm::Md5 => "hmac-md5",
        };
        recorder::timed(Primitive::new(Operation::Mac, name, ""), bytes(parts), || {
            self.inner.hmac(hash, key, parts)
        })
    }

    fn prf(&self, hash: HashAlgorithm, secret: &[u8], label: &str, seed: &[&[u8]], out: &mut [u8]) {
        let name = match hash {
            HashAlgorithm::Sha1 => "wtls-prf-sha1",
            HashAlgorithm::Md5 => "wtls-prf-md5",
        };
        let length = u32::try_from(out.len()).unwrap_or(u32::MAX);
        recorder::timed(Primitive::new(Operation::Prf, name, ""), length, || {
            self.inner.prf(hash, secret, label, seed, out);
        });
    }

    fn cbc_encrypt(&self, cipher: BulkCipher, key: &[u8], iv: &[u8; 8], data: &mut [u8]) {
        let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
        recorder::timed(Primitive::new(Operation::Cipher, cipher_name(cipher), ""), length, || {
            self.inner.cbc_encrypt(cipher, key, iv, data);
        });
    }

    fn cbc_decrypt(&self, cipher: BulkCipher, key: &[u8], iv: &[u8; 8], data: &mut [u8]) {
        let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
        recorder::timed(Primitive::new(Operation::Cipher, cipher_name(cipher), ""), length, || {
            self.inner.cbc_decrypt(cipher, key, iv, data);
        });
    }
}

fn exponent<'a>(key: &PublicKeyRef<'a>) -> &'a [u8] {
    match key {
        PublicKeyRef::Rsa { exponent, .. } => exponent,
        _ => &[],
    }
}

/// The algorithm that runs: export keys are shortened before expansion, not in the cipher.
fn cipher_name(cipher: BulkCipher) -> &'static str {
    match cipher {
        BulkCipher::Null => "null",
        BulkCipher::Rc5Cbc40 | BulkCipher::Rc5Cbc56 | BulkCipher::Rc5Cbc64 => "rc5-32/12-cbc",
        BulkCipher::Rc5Cbc => "rc5-32/16-cbc",
        BulkCipher::DesCbc40 | BulkCipher::DesCbc => "des-cbc",
        BulkCipher::TripleDesCbcEde => "des-ede3-cbc",
        BulkCipher::IdeaCbc40 | BulkCipher::IdeaCbc56 | BulkCipher::IdeaCbc | BulkCipher::IdeaCbc64 => {
            "idea-cbc"
        }
    }
}
