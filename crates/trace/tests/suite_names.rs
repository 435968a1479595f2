//! Suite names: canonical spellings, defaults, and one error for each violation.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use shakedown_trace::Suite;
use shakedown_trace::suite::{Cipher, Curve, Group, KeyExchange, KeyType, Mode, Protocol, SuiteError};

/// Spellings that are already canonical.
const CANONICAL: [&str; 24] = [
    "ssl3/rsa/rsa1024/server",
    "tls1.0/dhe_dss+dh1024/dsa1024/mutual",
    "tls1.0/dh_anon+dh2048",
    "tls1.2/psk",
    "tls1.2/dhe_psk+dh1024",
    "tls1.2/rsa_psk/rsa2048",
    "tls1.2/dhe_rsa+dh1024/rsa1024@rsa1024@rsa1024/mutual",
    "tls1.2/rsa/rsa2048/server/resumed",
    "tls1.2/rsa/rsa1024e3/server/3des-sha",
    "tls1.3/x25519/p256/server",
    "tls1.3/x25519mlkem768/mldsa65/mutual",
    "tls1.3/psk_dhe+x25519",
    "tls1.3/psk",
    "wtls/ecdh_ecdsa/160p@256p/mutual",
    "wtls/rsa/rsa1024@rsa3072/requested",
    "wtls/ecdh_ecdsa/233k@283k/mutual/optimized",
    "wtls/ecdh_ecdsa/163k/server/resumed",
    "wtls/ecdh_anon+163k",
    "wtls/rsa_anon/rsa768",
    "wtls/shared_secret/idea-40-md5-80",
    "tls1.2/rsa/rsa2048/requested/ticket",
    "tls1.1/ecdhe_rsa+sect283k1/rsa1024/server/camellia128-sha",
    "tls1.3/secp256r1mlkem768/ed25519/server/resumed/chacha20",
    "wtls/dh_anon+dh512/null-sha0",
];

#[test]
fn canonical_names_print_unchanged() {
    for name in CANONICAL {
        assert_eq!(name.parse::<Suite>().unwrap().to_string(), name);
    }
}

#[test]
fn short_names_become_canonical() {
    for (short, canonical) in [
        ("tls1.2/rsa", "tls1.2/rsa/rsa2048/server"),
        ("tls1.2/rsa/rsa2048@rsa2048", "tls1.2/rsa/rsa2048/server"),
        ("tls1.2/rsa/mutual/full/aes128-gcm", "tls1.2/rsa/rsa2048/mutual"),
        ("tls1.2/rsa/resumed", "tls1.2/rsa/rsa2048/server/resumed"),
        ("tls1.0/dhe_dss", "tls1.0/dhe_dss+dh2048/dsa2048/server"),
        ("tls1.0/ecdhe_ecdsa", "tls1.0/ecdhe_ecdsa+p256/p256/server"),
        ("tls1.2/ecdhe_psk/aes128-sha256", "tls1.2/ecdhe_psk+x25519"),
        ("tls1.2/ecdhe_ecdsa+163k/wtls3", "tls1.2/ecdhe_ecdsa+sect163k1/sect163k1/server"),
        ("tls1.3/psk_dhe", "tls1.3/psk_dhe+x25519"),
        ("wtls/rsa", "wtls/rsa/rsa1024/server"),
        ("wtls/ecdh_ecdsa/sect163k1@p256", "wtls/ecdh_ecdsa/163k@256p/server"),
        ("wtls/ecdh_ecdsa", "wtls/ecdh_ecdsa/160p/server"),
        ("wtls/dh_anon", "wtls/dh_anon+dh768"),
        ("wtls/ecdh_anon/rc5-sha", "wtls/ecdh_anon+160p"),
        ("wtls/rsa_anon", "wtls/rsa_anon/rsa1024"),
    ] {
        assert_eq!(short.parse::<Suite>().unwrap().to_string(), canonical, "{short}");
    }
}

#[test]
fn chains_keep_their_depth() {
    let suite: Suite = "tls1.2/rsa/rsa1024@rsa1024@rsa1024".parse().unwrap();
    assert_eq!(suite.sent_keys().len(), 2);
    let lone: Suite = "tls1.2/rsa/rsa1024".parse().unwrap();
    assert_eq!(lone.sent_keys().len(), 1);
    assert_eq!(lone.keys.len(), 2);
}

/// One row for each error variant, with words that its message must contain.
#[test]
fn each_violation_has_its_own_error() {
    type Check = fn(&SuiteError) -> bool;
    let rows: [(&str, Check, &[&str]); 22] = [
        ("tls1.4/rsa", |e| matches!(e, SuiteError::UnknownProtocol { .. }), &["tls1.4", "tls1.3"]),
        ("", |e| matches!(e, SuiteError::UnknownProtocol { .. }), &["wtls"]),
        ("tls1.2", |e| matches!(e, SuiteError::MissingKeyExchange { .. }), &["dhe_rsa"]),
        (
            "tls1.2/kerberos",
            |e| matches!(e, SuiteError::UnknownKeyExchange { .. }),
            &["kerberos", "ecdhe_psk"],
        ),
        ("ssl3/ecdhe_rsa", |e| matches!(e, SuiteError::UnknownKeyExchange { .. }), &["ecdhe_rsa"]),
        ("tls1.3/rsa", |e| matches!(e, SuiteError::UnknownKeyExchange { .. }), &["x25519"]),
        ("tls1.2/rsa+dh1024", |e| matches!(e, SuiteError::GroupWithoutUse { .. }), &["dh1024"]),
        (
            "tls1.2/dhe_rsa+dh256",
            |e| matches!(e, SuiteError::UnusableGroup { .. }),
            &["dh256", "dh512 dh1024"],
        ),
        ("tls1.2/dhe_rsa+x25519", |e| matches!(e, SuiteError::UnusableGroup { .. }), &["ffdhe2048"]),
        ("tls1.3/dh1024", |e| matches!(e, SuiteError::UnusableGroup { .. }), &["ffdhe3072"]),
        ("wtls/dh_anon+dh1024", |e| matches!(e, SuiteError::UnusableGroup { .. }), &["dh512 dh768"]),
        ("tls1.2/psk/rsa2048", |e| matches!(e, SuiteError::KeysWithoutUse { .. }), &["rsa2048", "psk"]),
        ("tls1.2/rsa/rsa1000", |e| matches!(e, SuiteError::UnknownKey { .. }), &["rsa1000", "rsa1024"]),
        ("tls1.2/dhe_dss/rsa1024", |e| matches!(e, SuiteError::UnusableKey { .. }), &["dsa1024"]),
        ("tls1.3/x25519/rsa512", |e| matches!(e, SuiteError::UnusableKey { .. }), &["rsa768"]),
        ("wtls/rsa/rsa1024@p256", |e| matches!(e, SuiteError::UnusableIssuer { .. }), &["256p"]),
        ("tls1.2/rsa/rsa1024@mldsa65", |e| matches!(e, SuiteError::UnusableIssuer { .. }), &["mldsa65"]),
        (
            "wtls/rsa_anon/rsa512@rsa512",
            |e| matches!(e, SuiteError::ChainOfTemporaryKey { .. }),
            &["temporary"],
        ),
        (
            "tls1.2/rsa/rsa512@rsa512@rsa512@rsa512@rsa512@rsa512@rsa512@rsa512@rsa512@rsa512@rsa512",
            |e| matches!(e, SuiteError::ChainTooLong { .. }),
            &["10"],
        ),
        ("tls1.2/psk/mutual", |e| matches!(e, SuiteError::AuthenticationWithoutUse { .. }), &["mutual"]),
        ("tls1.2/rsa/chacha21", |e| matches!(e, SuiteError::UnknownPart { .. }), &["chacha21", "cipher"]),
        ("tls1.0/rsa/aes128-gcm", |e| matches!(e, SuiteError::UnusableCipher { .. }), &["aes128-sha"]),
    ];
    for (name, check, words) in rows {
        let error = name.parse::<Suite>().unwrap_err();
        assert!(check(&error), "{name}: {error:?}");
        for word in words {
            assert!(error.to_string().contains(word), "{name}: '{error}' does not name {word}");
        }
        assert!(!error.to_string().contains('\n'));
    }
}

#[test]
fn impossible_modes_are_refused() {
    for name in [
        "tls1.3/psk/resumed",
        "tls1.3/x25519/ticket",
        "ssl3/rsa/ticket",
        "wtls/rsa/ticket",
        "wtls/shared_secret/resumed",
        "tls1.2/rsa/optimized",
        "wtls/ecdh_ecdsa/server/optimized",
    ] {
        let error = name.parse::<Suite>().unwrap_err();
        assert!(matches!(error, SuiteError::ImpossibleMode { .. }), "{name}: {error}");
    }
}

#[test]
fn parts_out_of_order_or_repeated_are_refused() {
    for name in [
        "tls1.2/rsa/server/rsa2048",
        "tls1.2/rsa/3des-sha/server",
        "tls1.2/rsa/server/mutual",
        "tls1.2/rsa/full/resumed",
    ] {
        assert!(matches!(name.parse::<Suite>(), Err(SuiteError::UnknownPart { .. })), "{name}");
    }
}

proptest! {
    /// Every suite that the parser accepts is printed in a form that is parsed as the same suite.
    #[test]
    fn printed_suites_parse_to_the_same_suite(
        protocol in 0..7_usize, exchange in 0..16_usize, group in 0..48_usize, key in 0..52_usize,
        issuer in prop::option::of(0..52_usize), authentication in 0..4_usize, mode in 0..5_usize, cipher in 0..120_usize,
    ) {
        let protocol = Protocol::ALL[protocol].0;
        let groups: Vec<Group> =
            Group::NAMED.iter().map(|row| row.0).chain(Curve::all().map(Group::Curve)).collect();
        let keys: Vec<KeyType> = Curve::all().map(KeyType::Ec)
            .chain(KeyType::RSA_BITS.map(|bits| KeyType::Rsa { bits, exponent_3: false }))
            .chain(KeyType::RSA_BITS.map(|bits| KeyType::Rsa { bits, exponent_3: true }))
            .chain([KeyType::Ed25519, KeyType::Dsa(1024), KeyType::MlDsa(44)]).collect();
        let mut text = format!("{}/", protocol.as_str());
        match KeyExchange::ALL[exchange].1 {
            "" => text += groups[group % groups.len()].name(protocol),
            word => {
                text += word;
                if KeyExchange::ALL[exchange].0.group_kind().is_some() {
                    text = format!("{text}+{}", groups[group % groups.len()].name(protocol));
                }
            }
        }
        if KeyExchange::ALL[exchange].0.leaf_kind().is_some() {
            text = format!("{text}/{}", keys[key % keys.len()].name(protocol));
            if let Some(issuer) = issuer {
                text = format!("{text}@{}", keys[issuer % keys.len()].name(protocol));
            }
        }
        if let Some(word) = ["server", "requested", "mutual"].get(authentication) { text = format!("{text}/{word}"); }
        if let Some(row) = Mode::ALL.get(mode) { text = format!("{text}/{}", row.1); }
        let names = Cipher::names(protocol);
        if let Some(name) = names.get(cipher) { text = format!("{text}/{name}"); }
        if let Ok(suite) = text.parse::<Suite>() {
            let printed = suite.to_string();
            prop_assert_eq!(printed.parse::<Suite>().unwrap(), suite);
        }
    }

    /// No text makes the parser panic.
    #[test]
    fn any_text_is_parsed_without_panic(text in "[a-z0-9./+@_-]{0,60}") {
        let _ = text.parse::<Suite>();
        let _ = format!("tls1.2/{text}").parse::<Suite>();
    }
}
