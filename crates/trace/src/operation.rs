//! Cryptographic operations, their classes, and the triple that names a primitive.

use crate::spelled;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::collections::HashSet;
use std::sync::{Mutex, OnceLock, PoisonError};

spelled! {
    /// One public-key call, or one kind of symmetric work.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Operation {
        /// Private-key signature.
        Sign = "sign",
        Verify = "verify",
        /// Public-key encryption of a secret.
        Encrypt = "encrypt",
        /// Private-key decryption of a secret.
        Decrypt = "decrypt",
        /// Key agreement only; key derivation functions are [`Operation::Prf`].
        Derive = "derive",
        /// Generation of an ephemeral key pair.
        Keygen = "keygen",
        Encapsulate = "encapsulate",
        Decapsulate = "decapsulate",
        /// Reading a public key from bytes: decoding, decompression, validation.
        Import = "import",
        Digest = "digest",
        /// HMAC, CMAC, Poly1305, however invoked.
        Mac = "mac",
        Cipher = "cipher",
        Prf = "prf",
    }
}

spelled! {
    /// The purpose of an operation; the three classes of Kuo et al.'s bar charts.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Class {
        /// Agreement on, or transport of, a secret.
        Key = "key",
        Signature = "signature",
        /// Everything else.
        Common = "common",
    }
}

impl Operation {
    /// The class in which the operation is counted.
    pub fn class(self) -> Class {
        match self {
            Self::Sign | Self::Verify => Class::Signature,
            Self::Encrypt
            | Self::Decrypt
            | Self::Derive
            | Self::Keygen
            | Self::Encapsulate
            | Self::Decapsulate => Class::Key,
            Self::Import | Self::Digest | Self::Mac | Self::Cipher | Self::Prf => Class::Common,
        }
    }

    /// True for work that is summed per message and algorithm; public-key calls are recorded one by one.
    pub fn is_symmetric(self) -> bool {
        matches!(self, Self::Digest | Self::Mac | Self::Cipher | Self::Prf)
    }
}

/// The triple (operation, algorithm, parameters) that names a primitive in traces, device profiles and primitive
/// timings.
///
/// `algorithm` is the family (`rsa`, `dsa`, `ecdsa`, `eddsa`, `mldsa`, `dh`, `ecdh`, `mlkem`, `hybrid`, or for
/// symmetric work the algorithm itself: `sha256`, `hmac-sha1`, `aes-128-gcm`, `tls1-prf-sha256`);
/// `parameters` the key or group in the suite vocabulary (`rsa2048e3`, `p256`, `dh1024`, `x25519`), empty for
/// symmetric work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Primitive {
    pub operation: Operation,
    pub algorithm: &'static str,
    /// The key size, curve or group.
    pub parameters: &'static str,
}

impl Primitive {
    pub const fn new(operation: Operation, algorithm: &'static str, parameters: &'static str) -> Self {
        Self { operation, algorithm, parameters }
    }

    /// The interned copy, so that an event log holds an address instead of a triple. Equal primitives have one address.
    ///
    /// Some primitives are looked up during measured calls, so each thread caches results by the strings' addresses.
    pub fn interned(self) -> &'static Self {
        const PLACES: usize = 64;
        thread_local! {
            static FOUND: [Cell<Option<&'static Primitive>>; PLACES] = const { [const { Cell::new(None) }; PLACES] };
        }
        let address = |text: &str| text.as_ptr() as usize >> 2;
        let place = address(self.algorithm) ^ address(self.parameters) ^ (self.operation as usize) << 1;
        FOUND.with(|found| {
            let found = &found[place % PLACES];
            if let Some(known) = found.get()
                && self.is_written_as(known)
            {
                return known;
            }
            let kept = self.kept();
            found.set(Some(kept));
            kept
        })
    }

    /// True if the strings have the same addresses, not only equal contents.
    fn is_written_as(&self, other: &Self) -> bool {
        self.operation == other.operation
            && std::ptr::eq(self.algorithm, other.algorithm)
            && std::ptr::eq(self.parameters, other.parameters)
    }

    #[cold]
    fn kept(self) -> &'static Self {
        static KEPT: OnceLock<Mutex<HashSet<&'static Primitive>>> = OnceLock::new();
        let mut kept = KEPT.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.get(&self) {
            return known;
        }
        let known: &'static Self = Box::leak(Box::new(self));
        kept.insert(known);
        known
    }
}

/// The interned copy of a string, which is never freed.
///
/// Primitives are named on hot paths and must be `Copy`. The number of distinct names is limited by the vocabulary, so
/// memory does not grow without limit.
pub fn intern(text: &str) -> &'static str {
    static NAMES: OnceLock<Mutex<HashSet<&'static str>>> = OnceLock::new();
    let mut names =
        NAMES.get_or_init(|| Mutex::new(HashSet::new())).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(text) {
        return known;
    }
    let kept: &'static str = Box::leak(text.to_owned().into_boxed_str());
    names.insert(kept);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_primitives_are_interned_once() {
        let (sha, text) = (String::from("sha"), |number: u32| intern(&format!("kept{number}")));
        let places: Vec<_> =
            (0..500).map(|number| Primitive::new(Operation::Mac, text(number), "").interned()).collect();
        for (number, place) in (0..500).zip(&places) {
            // Equal strings at other addresses, on another thread.
            let again = Box::leak(format!("kept{number}").into_boxed_str());
            let there = std::thread::spawn(|| Primitive::new(Operation::Mac, again, "").interned()).join();
            assert!(std::ptr::eq(there.expect("no panic"), *place));
            assert_eq!(place.algorithm, format!("kept{number}"));
        }
        let digest = Primitive::new(Operation::Digest, intern(&sha), "").interned();
        assert!(!std::ptr::eq(digest, Primitive::new(Operation::Mac, intern(&sha), "").interned()));
    }
}
