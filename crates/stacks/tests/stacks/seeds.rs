//! The same seed leads to the same bytes.

use super::common;
use shakedown_stacks::{Settings, prepare};
use shakedown_trace::Side;
use shakedown_trace::driver::Loopback;

const SUITES: [&str; 7] = [
    "ssl3/rsa/rsa1024/server",
    "tls1.0/dhe_dss+dh1024/dsa1024/mutual",
    "tls1.2/ecdhe_ecdsa+p256/p256/mutual",
    "tls1.2/rsa/rsa1024/server/resumed",
    "tls1.3/x25519/p256/mutual",
    "wtls/ecdh_ecdsa/163k/mutual",
    "wtls/rsa/rsa1024/mutual",
];

fn units(name: &str, seed: u64) -> Vec<(Side, Vec<u8>)> {
    let settings = Settings { seed: Some(seed), ..common::settings() };
    let mut pair = prepare(&common::suite(name), &settings).unwrap().pair().unwrap();
    let mut units = Vec::new();
    Loopback::new().handshake(pair.client.as_mut(), pair.server.as_mut(), &mut units).unwrap();
    units
}

#[test]
fn equal_seeds_give_equal_bytes_and_others_differ() {
    let _shared = common::shared();
    for name in SUITES {
        // The first handshake of a context may use more random numbers than later ones.
        let first = units(name, 7);
        assert_eq!(first, units(name, 7), "{name}");
        assert_ne!(first, units(name, 8), "{name}");
    }
}

/// A client of TLS 1.3 sends its ticket's age in milliseconds of libssl's clock (RFC 8446 section 4.2.11.1), which does
/// not depend on the seed. The lengths are the same.
#[test]
fn seeded_tls_1_3_resumptions_have_equal_lengths() {
    let _shared = common::shared();
    let name = "tls1.3/x25519/rsa2048/server/resumed";
    let lengths = |seed| units(name, seed).iter().map(|unit| (unit.0, unit.1.len())).collect::<Vec<_>>();
    assert_eq!(lengths(7), lengths(7));
}

#[test]
fn seed_is_refused_for_a_stack_that_ignores_it() {
    let name = Some("rustls".to_owned());
    let settings = Settings { seed: Some(1), client_stack: name.clone(), ..common::settings() };
    let error = prepare(&common::suite("tls1.3/x25519/rsa2048/server"), &settings).err().unwrap();
    assert!(error.to_string().contains("rustls uses its own random numbers"), "{error}");
}
