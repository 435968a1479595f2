//! From a secret of the key log to records in the clear.

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

/// What the keys of SSL 3.0 to TLS 1.2 and DTLS are made from.
pub(crate) struct LegacyKeys<'a> {
    /// Of the protocol, DTLS translated to the TLS version that it is made from.
    pub(crate) version: u16,
    pub(crate) protection: Protection,
    pub(crate) master: &'a [u8],
    pub(crate) client_random: &'a [u8; 32],
    pub(crate) server_random: &'a [u8; 32],
    pub(crate) encrypt_then_mac: bool,
}
