//! Decrypts records with the secrets of a key log.

#[cfg(feature = "decrypt")]
mod decryptor;
#[cfg(feature = "decrypt")]
mod derivation;
#[cfg(not(feature = "decrypt"))]
mod disabled;

#[cfg(feature = "decrypt")]
pub(crate) use decryptor::{LegacyDecryptor, ModernDecryptor};
#[cfg(not(feature = "decrypt"))]
pub(crate) use disabled::{LegacyDecryptor, ModernDecryptor};

use super::cipher_suite::Protection;

/// Inputs of the key derivation of SSL 3.0 to TLS 1.2 and DTLS.
pub(crate) struct LegacyKeys<'a> {
    /// Version of the protocol; for DTLS, the TLS version on which it is based.
    pub(crate) version: u16,
    pub(crate) protection: Protection,
    pub(crate) master: &'a [u8],
    pub(crate) client_random: &'a [u8; 32],
    pub(crate) server_random: &'a [u8; 32],
    pub(crate) encrypt_then_mac: bool,
}
