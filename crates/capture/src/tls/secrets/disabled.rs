//! Replaces decryption in builds without cryptography: every record stays encrypted.

use super::LegacyKeys;
use crate::tls::cipher_suite::Protection;

/// A type without values: it cannot be constructed.
pub(crate) enum LegacyDecryptor {}

impl LegacyDecryptor {
    pub(crate) fn new(keys: &LegacyKeys<'_>, _from_client: bool) -> Option<Self> {
        let LegacyKeys { version, protection, master, client_random, server_random, encrypt_then_mac } = keys;
        let _ = (version, protection.algorithm, protection.key_bytes, protection.mac);
        let _ = (master, client_random, server_random, encrypt_then_mac);
        None
    }

    pub(crate) fn needs_every_record(&self) -> bool {
        match *self {}
    }

    pub(crate) fn pass(&mut self) {
        match *self {}
    }

    pub(crate) fn open(&mut self, _kind: u8, _version: u16, _body: &[u8], _lossy: bool) -> Option<Vec<u8>> {
        match *self {}
    }

    pub(crate) fn open_numbered(
        &mut self,
        _kind: u8,
        _version: u16,
        _number: u64,
        _body: &[u8],
    ) -> Option<Vec<u8>> {
        match *self {}
    }
}

/// A type without values: it cannot be constructed.
pub(crate) enum ModernDecryptor {}

impl ModernDecryptor {
    pub(crate) fn new(_protection: Protection, _secret: &[u8]) -> Option<Self> {
        None
    }

    pub(crate) fn updated(&self) -> Option<Self> {
        match *self {}
    }

    pub(crate) fn open(&mut self, _header: &[u8; 5], _body: &[u8], _lossy: bool) -> Option<(u8, Vec<u8>)> {
        match *self {}
    }
}
