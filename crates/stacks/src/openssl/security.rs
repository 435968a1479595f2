//! libssl's security policy.
//!
//! In memory a suite runs even if it is weak: with security level 0, and a callback that permits what even that level
//! rejects. A server on a network has the highest of OpenSSL's levels, up to its default, at which the user's suite can
//! be negotiated; it has the callback only if level 0 would reject the suite.

use crate::stack::Exposure;
use openssl_sys as sys;
use shakedown_ossl::ffi;
use shakedown_trace::Suite;
use shakedown_trace::suite::{Authentication, Cipher, Group, KeyExchange, KeyType, Protocol, TlsCipher};

/// Which algorithms are rejected as too weak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Policy {
    Permissive,
    /// Those that OpenSSL rejects at a security level (`man 3 SSL_CTX_set_security_level`).
    Level(u8),
}

/// OpenSSL's own default since 3.2.
const DEFAULT_LEVEL: u8 = 2;

/// Minimum security of a key in bits, by level.
const LEVEL_BITS: [(u8, u16); 2] = [(2, 112), (1, 80)];

pub fn policy(suite: &Suite, exposure: Exposure) -> Policy {
    if exposure == Exposure::Laboratory {
        return Policy::Permissive;
    }
    // In a verified chain the level applies to the root too; in the server's own chain only to sent certificates.
    let mutual = suite.authentication == Some(Authentication::Mutual);
    let keys = if mutual { &suite.keys } else { suite.sent_keys() };
    let keys = keys.iter().map(|key| key_level(*key));
    let group = suite.group.map(group_policy);
    let rest = [Policy::Level(protocol_level(suite)), Policy::Level(cipher_level(suite))];
    keys.map(Policy::Level).chain(group).chain(rest).min().unwrap_or(Policy::Level(DEFAULT_LEVEL))
}

/// The highest level that accepts N bits of security.
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
        // Ephemeral DH below 1024 bits is rejected even at level 0.
        Group::Dh(..1024) => Policy::Permissive,
        Group::Dh(bits) => Policy::Level(of_modulus(bits)),
        Group::Curve(curve) => Policy::Level(level_of(curve.field_bits() / 2)),
        _ => Policy::Level(DEFAULT_LEVEL),
    }
}

fn protocol_level(suite: &Suite) -> u8 {
    match suite.protocol {
        // Their signatures use MD5 and SHA-1.
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

/// Applies a policy to a context.
///
/// # Safety
/// `context` must be live.
pub unsafe fn enforce(context: *mut sys::SSL_CTX, policy: Policy) {
    // SAFETY: the caller guarantees a live context; the callback is a static function.
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Settings;
    use crate::openssl::endpoint::TlsEndpoint;
    use crate::openssl::{Openssl, context, names::Expected};
    use crate::registry::plain_suites;
    use crate::stack::{Setup, SetupError, Stack};
    use shakedown_trace::Side;
    use shakedown_trace::driver::Loopback;
    use std::sync::Arc;

    /// Suites that differ in properties to which a policy applies, in addition to one per key exchange.
    const WEAK: [&str; 15] = [
        "ssl3/rsa/rsa512/server",
        "tls1.2/rsa/rsa512/server",
        "tls1.2/rsa/rsa1024/server",
        "tls1.2/ecdhe_rsa+x25519/rsa2048@rsa1024/server",
        "tls1.2/ecdhe_rsa+x25519/rsa2048@rsa1024/mutual",
        "tls1.2/dhe_rsa+dh512/rsa2048/server",
        "tls1.2/dhe_rsa+dh1024/rsa2048/server",
        "tls1.2/dhe_dss+dh1024/dsa1024/server",
        "tls1.2/ecdhe_ecdsa+sect163k1/p256/server",
        "tls1.2/ecdhe_ecdsa+p256/sect163k1/server",
        "tls1.2/ecdhe_ecdsa+p224/p224/server",
        "tls1.2/rsa/rsa2048/server/rc4-sha",
        "tls1.2/rsa/rsa2048/server/rc4-md5",
        "tls1.2/rsa/rsa2048/server/3des-sha",
        "tls1.3/x25519/rsa1024/server",
    ];

    fn setup(suite: &Suite, exposure: Exposure) -> Setup {
        let settings = Settings { exposure, ..Settings::default() };
        let identities = settings.identities(suite, &Openssl, &Openssl).unwrap();
        settings.setup(suite, identities)
    }

    /// One handshake with a permissive client.
    fn handshake(suite: &Suite, policy: Policy) -> Result<(), String> {
        let laboratory = setup(suite, Exposure::Laboratory);
        let expected: Arc<[Expected]> = Arc::new([Expected::of(suite)]);
        let permissive = super::policy(suite, Exposure::Laboratory);
        let client = context::begin(permissive, Side::Client, &laboratory).unwrap().build();
        let mut client = TlsEndpoint::new(&client, Side::Client, Arc::clone(&expected), None).unwrap();
        let network = setup(suite, Exposure::Network);
        let refused = |error: SetupError| error.to_string();
        let server = context::begin(policy, Side::Server, &network).map_err(refused)?.build();
        let mut server = TlsEndpoint::new(&server, Side::Server, expected, None).map_err(refused)?;
        let done = Loopback::new().handshake(&mut client, &mut server, &mut ());
        let done = done.map_err(|error| error.to_string())?;
        // A curve that the certificate needs may have replaced a rejected one.
        done.server.difference(suite).map_or(Ok(()), Err)
    }

    fn suites() -> Vec<Suite> {
        let protocols = [Protocol::Ssl3, Protocol::Tls10, Protocol::Tls12, Protocol::Tls13];
        let plain = protocols.into_iter().flat_map(plain_suites);
        let weak = WEAK.iter().map(|name| name.parse().unwrap());
        plain.chain(weak).filter(|suite| Openssl.supports(suite, Side::Server).is_ok()).collect()
    }

    #[test]
    fn network_policy_is_the_strictest_that_serves_each_suite() {
        let mut wrong = Vec::new();
        for suite in suites() {
            let policy = policy(&suite, Exposure::Network);
            if let Err(error) = handshake(&suite, policy) {
                wrong.push(format!("{suite} under {policy:?}: {error}"));
            }
            let stricter = match policy {
                Policy::Permissive => Policy::Level(0),
                Policy::Level(DEFAULT_LEVEL) => continue,
                Policy::Level(level) => Policy::Level(level + 1),
            };
            if handshake(&suite, stricter).is_ok() {
                wrong.push(format!("{suite} can be served under {stricter:?}, too"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn common_suites_have_the_default_security_level() {
        for name in ["tls1.3/x25519/p256/server", "tls1.2/ecdhe_rsa+x25519/rsa2048/server", "tls1.2/psk"] {
            let suite: Suite = name.parse().unwrap();
            assert_eq!(policy(&suite, Exposure::Network), Policy::Level(DEFAULT_LEVEL), "{name}");
            assert_eq!(policy(&suite, Exposure::Laboratory), Policy::Permissive);
        }
    }
}
