//! Cipher suites: their registered names, and the record protection that the names describe.

use std::collections::HashMap;
use std::sync::OnceLock;

/// The registry: one number and name per line.
const REGISTRY: &str = include_str!("../../data/cipher_suites.txt");

/// The registered name of a cipher suite, or its number if it has none.
pub(crate) fn name(number: u16) -> String {
    registered_name(number).map_or_else(|| format!("0x{number:04x}"), str::to_owned)
}

pub(crate) fn registered_name(number: u16) -> Option<&'static str> {
    static NAMES: OnceLock<HashMap<u16, &'static str>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let rows = REGISTRY.lines().filter_map(|line| line.split_once(' '));
        rows.filter_map(|(number, name)| Some((u16::from_str_radix(number, 16).ok()?, name))).collect()
    });
    names.get(&number).copied()
}

/// Hash functions of cipher suites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hash {
    Md5,
    Sha1,
    Sha256,
    Sha384,
}

impl Hash {
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Sha384 => 48,
        }
    }
}

/// How a cipher protects records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Null,
    Stream,
    Cbc {
        block_bytes: usize,
    },
    Authenticated {
        tag_bytes: usize,
        ccm: bool,
        /// Up to TLS 1.2, part of the nonce is sent in the record. Otherwise the nonce is the IV XOR the record number.
        explicit_nonce: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Protection {
    pub(crate) algorithm: &'static str,
    pub(crate) mode: Mode,
    pub(crate) key_bytes: usize,
    /// Hash of HMAC; `None` with authenticated encryption.
    pub(crate) mac: Option<Hash>,
    /// Hash of the key derivation, from TLS 1.2 on.
    pub(crate) derivation: Hash,
}

impl Protection {
    /// Bytes that authenticated encryption adds.
    pub(crate) fn tag_bytes(&self) -> usize {
        match self.mode {
            Mode::Authenticated { tag_bytes, .. } => tag_bytes,
            _ => 0,
        }
    }
}

/// Name after `WITH_` (without the hash), OpenSSL's name, key bytes, mode.
const CIPHERS: [(&str, &str, usize, Mode); 25] = {
    const EIGHT: Mode = Mode::Cbc { block_bytes: 8 };
    const SIXTEEN: Mode = Mode::Cbc { block_bytes: 16 };
    const GCM: Mode = Mode::Authenticated { tag_bytes: 16, ccm: false, explicit_nonce: true };
    const CCM: Mode = Mode::Authenticated { tag_bytes: 16, ccm: true, explicit_nonce: true };
    const CCM_8: Mode = Mode::Authenticated { tag_bytes: 8, ccm: true, explicit_nonce: true };
    const POLY1305: Mode = Mode::Authenticated { tag_bytes: 16, ccm: false, explicit_nonce: false };
    [
        ("NULL", "NULL", 0, Mode::Null),
        ("RC4_128", "RC4", 16, Mode::Stream),
        ("DES_CBC", "DES-CBC", 8, EIGHT),
        ("3DES_EDE_CBC", "DES-EDE3-CBC", 24, EIGHT),
        ("IDEA_CBC", "IDEA-CBC", 16, EIGHT),
        ("SEED_CBC", "SEED-CBC", 16, SIXTEEN),
        ("AES_128_CBC", "AES-128-CBC", 16, SIXTEEN),
        ("AES_256_CBC", "AES-256-CBC", 32, SIXTEEN),
        ("CAMELLIA_128_CBC", "CAMELLIA-128-CBC", 16, SIXTEEN),
        ("CAMELLIA_256_CBC", "CAMELLIA-256-CBC", 32, SIXTEEN),
        ("ARIA_128_CBC", "ARIA-128-CBC", 16, SIXTEEN),
        ("ARIA_256_CBC", "ARIA-256-CBC", 32, SIXTEEN),
        ("AES_128_GCM", "AES-128-GCM", 16, GCM),
        ("AES_256_GCM", "AES-256-GCM", 32, GCM),
        ("ARIA_128_GCM", "ARIA-128-GCM", 16, GCM),
        ("ARIA_256_GCM", "ARIA-256-GCM", 32, GCM),
        ("AES_128_CCM", "AES-128-CCM", 16, CCM),
        ("AES_256_CCM", "AES-256-CCM", 32, CCM),
        ("AES_128_CCM_8", "AES-128-CCM", 16, CCM_8),
        ("AES_256_CCM_8", "AES-256-CCM", 32, CCM_8),
        ("CHACHA20_POLY1305", "ChaCha20-Poly1305", 32, POLY1305),
        ("SM4_GCM", "SM4-GCM", 16, GCM),
        ("SM4_CCM", "SM4-CCM", 16, CCM),
        ("ARIA_128_CCM", "ARIA-128-CCM", 16, CCM),
        ("ARIA_256_CCM", "ARIA-256-CCM", 32, CCM),
    ]
};

/// The record protection of a suite; `None` if it cannot be decrypted here (export, GOST, Camellia-GCM).
pub(crate) fn protection(number: u16) -> Option<Protection> {
    let name = registered_name(number)?;
    // Names of TLS 1.3 suites contain no key exchange.
    let (exchange, cipher) = name.split_once("_WITH_").unwrap_or(("", name.strip_prefix("TLS_")?));
    if exchange.contains("EXPORT") {
        return None;
    }
    let hashes =
        [("_MD5", Hash::Md5), ("_SHA256", Hash::Sha256), ("_SHA384", Hash::Sha384), ("_SHA", Hash::Sha1)];
    let (cipher, hash) = hashes
        .iter()
        .find_map(|(suffix, hash)| cipher.strip_suffix(suffix).map(|rest| (rest, Some(*hash))))
        .unwrap_or((cipher, None));
    let &(_, algorithm, key_bytes, mode) = CIPHERS.iter().find(|row| row.0 == cipher)?;
    let authenticated = matches!(mode, Mode::Authenticated { .. });
    let derivation = if hash == Some(Hash::Sha384) { Hash::Sha384 } else { Hash::Sha256 };
    let mac = if authenticated { None } else { Some(hash?) };
    Some(Protection { algorithm, mode, key_bytes, mac, derivation })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn suite_numbers_give_the_record_protection() {
        let of = |number| protection(number).unwrap();
        let aes = of(0xc02f);
        assert_eq!((aes.algorithm, aes.key_bytes, aes.mac), ("AES-128-GCM", 16, None));
        assert_eq!(of(0x002f).mac, Some(Hash::Sha1));
        assert_eq!(of(0x002f).mode, Mode::Cbc { block_bytes: 16 });
        assert_eq!(of(0xc028).mac, Some(Hash::Sha384));
        assert_eq!(of(0xc028).derivation, Hash::Sha384);
        assert_eq!(of(0x0004).mac, Some(Hash::Md5));
        assert_eq!(of(0x1302).derivation, Hash::Sha384);
        let (ccm_8, poly1305) = (of(0xc0ae).mode, of(0xcca9).mode);
        assert_eq!(ccm_8, Mode::Authenticated { tag_bytes: 8, ccm: true, explicit_nonce: true });
        assert_eq!(poly1305, Mode::Authenticated { tag_bytes: 16, ccm: false, explicit_nonce: false });
        // An export suite, and one that does not exist.
        assert_eq!(protection(0x0003), None);
        assert_eq!(protection(0xfffe), None);
        assert_eq!(name(0xc02b), "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256");
        assert_eq!(name(0xfffe), "0xfffe");
    }
}
