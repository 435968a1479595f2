//! Decrypts records.
//!
//! MACs of block and stream ciphers are removed without a check: a wrong secret is detected by the invalid message
//! header that results. The tags of authenticated ciphers are checked by decryption itself.

use super::LegacyKeys;
use super::derivation::{expand_label, key_block};
use crate::tls::cipher_suite::{Hash, Mode, Protection};
use openssl::cipher::{Cipher, CipherRef};
use openssl::cipher_ctx::CipherCtx;
use openssl::lib_ctx::LibCtx;
use openssl::provider::Provider;
use std::sync::OnceLock;

/// Limit of consecutive records that may be missing from the capture.
const MAX_SKIPPED_RECORDS: u64 = 16;
const NONCE_BYTES: usize = 12;

/// A library context with the legacy ciphers, created once.
struct Library {
    context: LibCtx,
    _providers: Vec<Provider>,
}

fn fetch(algorithm: &str) -> Option<Cipher> {
    static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
    let library = LIBRARY.get_or_init(|| {
        openssl::init();
        let context = LibCtx::new().ok()?;
        let names = ["default", "legacy"];
        // Without the legacy provider, only records of its few ciphers cannot be decrypted.
        let providers = names.iter().filter_map(|name| Provider::load(Some(&context), name).ok()).collect();
        Some(Library { context, _providers: providers })
    });
    Cipher::fetch(Some(&library.as_ref()?.context), algorithm, None).ok()
}

/// Decrypts the records of one direction, for SSL 3.0 to TLS 1.2 and DTLS.
pub(crate) struct LegacyDecryptor {
    version: u16,
    protection: Protection,
    cipher: Option<Cipher>,
    context: CipherCtx,
    key: Vec<u8>,
    iv: Vec<u8>,
    encrypt_then_mac: bool,
    /// Number of the next record.
    sequence: u64,
}

impl LegacyDecryptor {
    pub(crate) fn new(keys: &LegacyKeys<'_>, from_client: bool) -> Option<Self> {
        let protection = keys.protection;
        let mac_bytes = protection.mac.map_or(0, Hash::bytes);
        let iv_bytes = match protection.mode {
            Mode::Null | Mode::Stream => 0,
            // From TLS 1.1 on, each record contains its IV.
            Mode::Cbc { block_bytes } if keys.version <= 0x0301 => block_bytes,
            Mode::Cbc { .. } => 0,
            Mode::Authenticated { explicit_nonce: true, .. } => 4,
            Mode::Authenticated { .. } => NONCE_BYTES,
        };
        let length = 2 * (mac_bytes + protection.key_bytes + iv_bytes);
        let randoms = (keys.client_random, keys.server_random);
        let block =
            key_block(keys.version, protection.derivation, keys.master, randoms.0, randoms.1, length).ok()?;
        let side = usize::from(!from_client);
        let key_at = 2 * mac_bytes + side * protection.key_bytes;
        let iv_at = 2 * (mac_bytes + protection.key_bytes) + side * iv_bytes;
        let key = block[key_at..key_at + protection.key_bytes].to_vec();
        let mut iv = block[iv_at..iv_at + iv_bytes].to_vec();
        let mut context = CipherCtx::new().ok()?;
        let cipher = match protection.mode {
            Mode::Null => None,
            _ => Some(fetch(protection.algorithm)?),
        };
        if let Some(cipher) = &cipher {
            match protection.mode {
                Mode::Cbc { block_bytes } => {
                    // With explicit IVs the initial IV does not matter: the first block of a record is discarded.
                    iv.resize(block_bytes, 0);
                    context.decrypt_init(Some(cipher), Some(&key), Some(&iv)).ok()?;
                    context.set_padding(false);
                }
                Mode::Stream => context.decrypt_init(Some(cipher), Some(&key), None).ok()?,
                _ => {}
            }
        }
        let encrypt_then_mac = keys.encrypt_then_mac && matches!(protection.mode, Mode::Cbc { .. });
        Some(Self {
            version: keys.version,
            protection,
            cipher,
            context,
            key,
            iv,
            encrypt_then_mac,
            sequence: 0,
        })
    }

    /// True if a record cannot be decrypted without the one before it.
    pub(crate) fn needs_every_record(&self) -> bool {
        match self.protection.mode {
            Mode::Stream => true,
            Mode::Cbc { .. } => self.version <= 0x0301,
            _ => false,
        }
    }

    /// Counts a record without decrypting it.
    pub(crate) fn pass(&mut self) {
        self.sequence += 1;
    }

    /// Decrypts the next record; with `lossy`, records before it may be missing from the capture.
    pub(crate) fn open(&mut self, kind: u8, version: u16, body: &[u8], lossy: bool) -> Option<Vec<u8>> {
        let sequence = self.sequence;
        for skipped in 0..if lossy { MAX_SKIPPED_RECORDS } else { 1 } {
            let opened = self.open_numbered(kind, version, sequence + skipped, body);
            if opened.is_some() {
                self.sequence = sequence + skipped + 1;
                return opened;
            }
            if !matches!(self.protection.mode, Mode::Authenticated { .. }) {
                break;
            }
        }
        self.sequence = sequence + 1;
        None
    }

    /// Decrypts the record with this sequence number (in DTLS: epoch and number as on the wire).
    pub(crate) fn open_numbered(
        &mut self,
        kind: u8,
        version: u16,
        sequence: u64,
        body: &[u8],
    ) -> Option<Vec<u8>> {
        let mac_bytes = self.protection.mac.map_or(0, Hash::bytes);
        match self.protection.mode {
            Mode::Null => cut_end(body.to_vec(), mac_bytes),
            Mode::Stream => {
                let mut plain = Vec::new();
                self.context.cipher_update_vec(body, &mut plain).ok()?;
                cut_end(plain, mac_bytes)
            }
            Mode::Cbc { block_bytes } => self.open_blocks(block_bytes, mac_bytes, body),
            mode @ Mode::Authenticated { tag_bytes, explicit_nonce, .. } => {
                let (nonce, undecrypted) = if explicit_nonce {
                    let (explicit, undecrypted) = body.split_at_checked(8)?;
                    ([&self.iv[..], explicit].concat(), undecrypted)
                } else {
                    (masked(&self.iv, sequence), body)
                };
                let plain_bytes = undecrypted.len().checked_sub(tag_bytes)?;
                let data = additional_data(sequence, kind, version, plain_bytes);
                let cipher = self.cipher.as_deref();
                open_authenticated(&mut self.context, cipher, &self.key, &nonce, &data, undecrypted, mode)
            }
        }
    }

    fn open_blocks(&mut self, block_bytes: usize, mac_bytes: usize, body: &[u8]) -> Option<Vec<u8>> {
        let encrypted =
            if self.encrypt_then_mac { body.get(..body.len().checked_sub(mac_bytes)?)? } else { body };
        if encrypted.is_empty() || encrypted.len() % block_bytes != 0 {
            return None;
        }
        let mut plain = Vec::with_capacity(encrypted.len() + block_bytes);
        self.context.cipher_update_vec(encrypted, &mut plain).ok()?;
        if self.version > 0x0301 {
            plain.drain(..block_bytes.min(plain.len()));
        }
        let padding = usize::from(*plain.last()?) + 1;
        // Padding bytes are arbitrary in SSL 3.0, but at most one block; in TLS each byte is the padding's length.
        let tail = plain.get(plain.len().checked_sub(padding)?..)?;
        let padded = if self.version == 0x0300 {
            padding <= block_bytes
        } else {
            tail.iter().all(|&byte| usize::from(byte) + 1 == padding)
        };
        if !padded {
            return None;
        }
        cut_end(plain, padding + if self.encrypt_then_mac { 0 } else { mac_bytes })
    }
}

/// Decrypts the TLS 1.3 records of one direction with one traffic secret.
pub(crate) struct ModernDecryptor {
    protection: Protection,
    cipher: Cipher,
    context: CipherCtx,
    secret: Vec<u8>,
    key: Vec<u8>,
    iv: Vec<u8>,
    sequence: u64,
}

impl ModernDecryptor {
    pub(crate) fn new(protection: Protection, secret: &[u8]) -> Option<Self> {
        let key = expand_label(protection.derivation, secret, "key", protection.key_bytes).ok()?;
        let iv = expand_label(protection.derivation, secret, "iv", NONCE_BYTES).ok()?;
        let cipher = fetch(protection.algorithm)?;
        let context = CipherCtx::new().ok()?;
        Some(Self { protection, cipher, context, secret: secret.to_vec(), key, iv, sequence: 0 })
    }

    /// The decryptor after a KeyUpdate.
    pub(crate) fn updated(&self) -> Option<Self> {
        let hash = self.protection.derivation;
        let secret = expand_label(hash, &self.secret, "traffic upd", hash.bytes()).ok()?;
        Self::new(self.protection, &secret)
    }

    /// Decrypts the next record and returns its content type and content; with `lossy`, records before it may be
    /// missing from the capture.
    pub(crate) fn open(&mut self, header: &[u8; 5], body: &[u8], lossy: bool) -> Option<(u8, Vec<u8>)> {
        for skipped in 0..if lossy { MAX_SKIPPED_RECORDS } else { 1 } {
            let nonce = masked(&self.iv, self.sequence + skipped);
            let (cipher, mode) = (Some(&*self.cipher), self.protection.mode);
            let opened = open_authenticated(&mut self.context, cipher, &self.key, &nonce, header, body, mode);
            if let Some(mut plain) = opened {
                self.sequence += skipped + 1;
                // The last nonzero byte is the content type; the zeros after it are padding.
                let end = plain.iter().rposition(|&byte| byte != 0)?;
                let kind = plain[end];
                plain.truncate(end);
                return Some((kind, plain));
            }
        }
        None
    }
}

/// Decrypts a record with an AEAD; `None` if its tag is wrong, or the cipher is no AEAD.
fn open_authenticated(
    context: &mut CipherCtx,
    cipher: Option<&CipherRef>,
    key: &[u8],
    nonce: &[u8],
    data: &[u8],
    undecrypted: &[u8],
    mode: Mode,
) -> Option<Vec<u8>> {
    let Mode::Authenticated { tag_bytes, ccm, .. } = mode else { return None };
    let plain_bytes = undecrypted.len().checked_sub(tag_bytes)?;
    let (encrypted, tag) = undecrypted.split_at(plain_bytes);
    context.decrypt_init(cipher, None, None).ok()?;
    context.set_iv_length(nonce.len()).ok()?;
    context.set_tag(tag).ok()?;
    context.decrypt_init(None, Some(key), Some(nonce)).ok()?;
    if ccm {
        context.set_data_len(plain_bytes).ok()?;
    }
    context.cipher_update(data, None).ok()?;
    let mut plain = Vec::with_capacity(plain_bytes + 16);
    context.cipher_update_vec(encrypted, &mut plain).ok()?;
    // CCM checks its tag during decryption and has no final step.
    if !ccm {
        context.cipher_final_vec(&mut plain).ok()?;
    }
    Some(plain)
}

fn additional_data(sequence: u64, kind: u8, version: u16, plain_bytes: usize) -> [u8; 13] {
    let mut data = [0; 13];
    data[..8].copy_from_slice(&sequence.to_be_bytes());
    data[8] = kind;
    data[9..11].copy_from_slice(&version.to_be_bytes());
    data[11..].copy_from_slice(&(plain_bytes as u16).to_be_bytes());
    data
}

fn masked(iv: &[u8], sequence: u64) -> Vec<u8> {
    let mut nonce = iv.to_vec();
    let start = nonce.len().saturating_sub(8);
    for (byte, mask) in nonce[start..].iter_mut().zip(sequence.to_be_bytes()) {
        *byte ^= mask;
    }
    nonce
}

fn cut_end(mut plain: Vec<u8>, count: usize) -> Option<Vec<u8>> {
    plain.truncate(plain.len().checked_sub(count)?);
    Some(plain)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::tls::cipher_suite::protection;
    use proptest::prelude::*;

    /// Suites of every kind of protection.
    const SUITES: [u16; 14] = [
        0x0002, 0x0005, 0x0009, 0x000a, 0x0007, 0x0096, 0x002f, 0xc028, 0x0041, 0x009c, 0xc09c, 0xc0a0,
        0xcca8, 0xc050,
    ];

    fn decryptor(suite: u16, version: u16, encrypt_then_mac: bool) -> LegacyDecryptor {
        let keys = LegacyKeys {
            version,
            protection: protection(suite).unwrap(),
            master: &[7; 48],
            client_random: &[1; 32],
            server_random: &[2; 32],
            encrypt_then_mac,
        };
        LegacyDecryptor::new(&keys, true).unwrap()
    }

    #[test]
    fn every_cipher_is_available() {
        for suite in SUITES {
            for version in [0x0300, 0x0301, 0x0302, 0x0303] {
                decryptor(suite, version, false);
            }
        }
        for suite in [0x1301, 0x1302, 0x1303, 0x1304, 0x1305] {
            ModernDecryptor::new(protection(suite).unwrap(), &[3; 32]).unwrap().updated().unwrap();
        }
    }

    proptest! {
        /// Arbitrary input is rejected or decrypted; the result is never longer than the input.
        #[test]
        fn arbitrary_records_cause_no_panic(
            suite in proptest::sample::select(&SUITES[..]),
            version in 0x0300u16..=0x0303,
            encrypt_then_mac: bool,
            bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..100), 1..4),
        ) {
            let mut decryptor = decryptor(suite, version, encrypt_then_mac);
            let mut modern = ModernDecryptor::new(protection(0x1301).unwrap(), &[3; 32]).unwrap();
            for body in bodies {
                if let Some(plain) = decryptor.open(22, version, &body, true) {
                    prop_assert!(plain.len() <= body.len());
                }
                prop_assert_eq!(modern.open(&[23, 3, 3, 0, 0], &body, true), None);
            }
        }
    }
}
