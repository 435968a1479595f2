//! What libssl's security policy lets through.
//!
//! In memory a suite is run however weak it is: security level 0, and a callback that permits what even that level
//! refuses. A server on a network has the highest of OpenSSL's levels, up to its default, at which the suite that the
//! user named can be negotiated at all, and the callback only where level 0 would refuse the suite.

use crate::stack::Exposure;
use openssl_sys as sys;
use shakedown_ossl::ffi;
use shakedown_trace::Suite;
use shakedown_trace::suite::{Cipher, Group, KeyExchange, KeyType, Protocol, TlsCipher};

/// What is refused as too weak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Policy {
    /// Nothing.
    Permissive,
    /// What OpenSSL refuses at a security level (`man 3 SSL_CTX_set_security_level`).
    Level(u8),
}

/// OpenSSL's own default since 3.2.
const DEFAULT_LEVEL: u8 = 2;

/// Bits of security that a key must have, by level.
const LEVEL_BITS: [(u8, u16); 2] = [(2, 112), (1, 80)];

/// The policy of a suite's connections.
pub fn policy(suite: &Suite, exposure: Exposure) -> Policy {
    if exposure == Exposure::Laboratory {
        return Policy::Permissive;
    }
    let keys = suite.keys.iter().map(|key| key_level(*key));
    let group = suite.group.map(group_policy);
    let rest = [Policy::Level(protocol_level(suite)), Policy::Level(cipher_level(suite))];
    keys.map(Policy::Level).chain(group).chain(rest).min().unwrap_or(Policy::Level(DEFAULT_LEVEL))
}

/// The highest level that takes so many bits of security.
fn level_of(security_bits: u16) -> u8 {
    LEVEL_BITS.iter().find(|(_, least)| security_bits >= *least).map_or(0, |(level, _)| *level)
}

/// RSA, DSA and finite-field DH by their modulus (NIST SP 800-57 part 1, table 2).
fn of_modulus(bits: u16) -> u8 {
    match bits {
        2048.. => DEFAULT_LEVEL,
        1024.. => 1,
        _ => 0,
    }
}

fn key_level(key: KeyType) -> u8 {
    match key {
        KeyType::Rsa { bits, .. } | KeyType::Dsa(bits) => of_modulus(bits),
        KeyType::Ec(curve) => level_of(curve.field_bits() / 2),
        _ => DEFAULT_LEVEL,
    }
}

fn group_policy(group: Group) -> Policy {
    match group {
        // Ephemeral DH below 1024 bits is refused at level 0, too.
        Group::Dh(..1024) => Policy::Permissive,
        Group::Dh(bits) => Policy::Level(of_modulus(bits)),
        Group::Curve(curve) => Policy::Level(level_of(curve.field_bits() / 2)),
        _ => Policy::Level(DEFAULT_LEVEL),
    }
}

fn protocol_level(suite: &Suite) -> u8 {
    match suite.protocol {
        // Their signatures are of MD5 and SHA-1.
        Protocol::Ssl3 | Protocol::Tls10 | Protocol::Tls11 => 0,
        _ => DEFAULT_LEVEL,
    }
}

fn cipher_level(suite: &Suite) -> u8 {
    let anonymous = matches!(suite.key_exchange, KeyExchange::DhAnon | KeyExchange::EcdhAnon);
    match suite.cipher {
        _ if anonymous => 0,
        Cipher::Tls(TlsCipher::Rc4Md5) => 0,
        Cipher::Tls(TlsCipher::Rc4Sha) => 1,
        _ => DEFAULT_LEVEL,
    }
}

/// Puts a context under a policy.
///
/// # Safety
/// `context` must be live.
pub unsafe fn enforce(context: *mut sys::SSL_CTX, policy: Policy) {
    // SAFETY: the caller promises the context; the callback is a static function.
    unsafe {
        match policy {
            Policy::Level(level) => ffi::SSL_CTX_set_security_level(context, level.into()),
            Policy::Permissive => {
                ffi::SSL_CTX_set_security_level(context, 0);
                ffi::SSL_CTX_set_security_callback(context, Some(allow_all));
            }
        }
    }
}

/// Permits everything.
unsafe extern "C" fn allow_all(
    _: *const sys::SSL,
    _: *const sys::SSL_CTX,
    _: libc::c_int,
    _: libc::c_int,
    _: libc::c_int,
    _: *mut libc::c_void,
    _: *mut libc::c_void,
) -> libc::c_int {
    1
}
