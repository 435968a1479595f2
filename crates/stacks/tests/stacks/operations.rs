//! The operations of handshakes: every key exchange, authentication and mode, and chains of one, two and three
//! certificates.
//!
//! Each side verifies every certificate of the peer's chain except the root, with the key of its issuer, and one
//! signature if the peer signs. Rows list each side's operations in the order `sign verify encrypt decrypt derive
//! keygen encapsulate decapsulate`; `import` and symmetric work are tested separately.

use super::common;
use shakedown_trace::suite::{Protocol, Suite};
use shakedown_trace::{Operation, Side, Trace};

/// The first protocol to which the row applies (up to TLS 1.2), the rest of the suite's name, client, server.
type Row = (&'static str, &'static str, &'static str, &'static str);

const UP_TO_TLS_1_2: &[Row] = &[
    // RSA: no signature in the handshake except the client's.
    ("ssl3", "rsa/rsa1024e3@rsa1024/server", "verify rsa1024, encrypt rsa1024e3", "decrypt rsa1024e3"),
    ("ssl3", "rsa/rsa1024e3@rsa1024/requested", "verify rsa1024, encrypt rsa1024e3", "decrypt rsa1024e3"),
    (
        "ssl3",
        "rsa/rsa1024e3@rsa1024/mutual",
        "sign rsa1024e3, verify rsa1024, encrypt rsa1024e3",
        "verify rsa1024, verify rsa1024e3, decrypt rsa1024e3",
    ),
    ("ssl3", "rsa/rsa512/server", "verify rsa512, encrypt rsa512", "decrypt rsa512"),
    (
        "ssl3",
        "rsa/rsa1024@rsa2048@rsa3072/server",
        "verify rsa2048, verify rsa3072, encrypt rsa1024",
        "decrypt rsa1024",
    ),
    (
        "ssl3",
        "rsa/rsa1024@rsa2048@rsa3072/mutual",
        "sign rsa1024, verify rsa2048, verify rsa3072, encrypt rsa1024",
        "verify rsa1024, verify rsa2048, verify rsa3072, decrypt rsa1024",
    ),
    (
        "ssl3",
        "rsa/rsa1024@rsa1536@rsa2048@rsa3072/server",
        "verify rsa1536, verify rsa2048, verify rsa3072, encrypt rsa1024",
        "decrypt rsa1024",
    ),
    (
        "ssl3",
        "rsa/rsa1024@rsa1536@rsa2048@rsa3072/mutual",
        "sign rsa1024, verify rsa1536, verify rsa2048, verify rsa3072, encrypt rsa1024",
        "verify rsa1024, verify rsa1536, verify rsa2048, verify rsa3072, decrypt rsa1024",
    ),
    // The types of keys in a chain may differ.
    (
        "ssl3",
        "rsa/rsa1024@dsa1024@rsa1024e3/server",
        "verify dsa1024, verify rsa1024e3, encrypt rsa1024",
        "decrypt rsa1024",
    ),
    // DHE with RSA: the server signs its share.
    (
        "ssl3",
        "dhe_rsa+dh1024/rsa1024@rsa2048/server",
        "verify rsa1024, verify rsa2048, derive dh1024, keygen dh1024",
        "sign rsa1024, derive dh1024, keygen dh1024",
    ),
    (
        "ssl3",
        "dhe_rsa+dh1024/rsa1024@rsa2048/requested",
        "verify rsa1024, verify rsa2048, derive dh1024, keygen dh1024",
        "sign rsa1024, derive dh1024, keygen dh1024",
    ),
    (
        "ssl3",
        "dhe_rsa+dh1024/rsa1024@rsa2048/mutual",
        "sign rsa1024, verify rsa1024, verify rsa2048, derive dh1024, keygen dh1024",
        "sign rsa1024, verify rsa1024, verify rsa2048, derive dh1024, keygen dh1024",
    ),
    (
        "ssl3",
        "dhe_rsa+ffdhe2048/rsa1024@rsa1536@rsa2048/mutual",
        "sign rsa1024, verify rsa1024, verify rsa1536, verify rsa2048, derive ffdhe2048, keygen ffdhe2048",
        "sign rsa1024, verify rsa1024, verify rsa1536, verify rsa2048, derive ffdhe2048, keygen ffdhe2048",
    ),
    (
        "ssl3",
        "dhe_rsa+dh512/rsa512@rsa768@rsa1024@rsa2048/server",
        "verify rsa1024, verify rsa2048, verify rsa512, verify rsa768, derive dh512, keygen dh512",
        "sign rsa512, derive dh512, keygen dh512",
    ),
    // DHE with DSA.
    (
        "ssl3",
        "dhe_dss+dh512/dsa512@dsa1024/server",
        "verify dsa1024, verify dsa512, derive dh512, keygen dh512",
        "sign dsa512, derive dh512, keygen dh512",
    ),
    (
        "ssl3",
        "dhe_dss+dh512/dsa512@dsa1024/requested",
        "verify dsa1024, verify dsa512, derive dh512, keygen dh512",
        "sign dsa512, derive dh512, keygen dh512",
    ),
    (
        "ssl3",
        "dhe_dss+dh512/dsa512@dsa1024/mutual",
        "sign dsa512, verify dsa1024, verify dsa512, derive dh512, keygen dh512",
        "sign dsa512, verify dsa1024, verify dsa512, derive dh512, keygen dh512",
    ),
    (
        "ssl3",
        "dhe_dss+dh1024/dsa1024@dsa1024@rsa1024/server",
        "verify dsa1024, verify dsa1024, verify rsa1024, derive dh1024, keygen dh1024",
        "sign dsa1024, derive dh1024, keygen dh1024",
    ),
    (
        "ssl3",
        "dhe_dss+dh1024/dsa1024@dsa512@dsa1024@rsa1024/mutual",
        "sign dsa1024, verify dsa1024, verify dsa1024, verify dsa512, verify rsa1024, derive dh1024, keygen dh1024",
        "sign dsa1024, verify dsa1024, verify dsa1024, verify dsa512, verify rsa1024, derive dh1024, keygen dh1024",
    ),
    // Neither side signs.
    ("ssl3", "dh_anon+dh1024", "derive dh1024, keygen dh1024", "derive dh1024, keygen dh1024"),
    ("ssl3", "dh_anon+dh512", "derive dh512, keygen dh512", "derive dh512, keygen dh512"),
    ("ssl3", "psk", "", ""),
    ("ssl3", "dhe_psk+dh1024", "derive dh1024, keygen dh1024", "derive dh1024, keygen dh1024"),
    ("ssl3", "rsa_psk/rsa1024@rsa2048", "verify rsa2048, encrypt rsa1024", "decrypt rsa1024"),
    (
        "ssl3",
        "rsa_psk/rsa1024@rsa1536@rsa2048",
        "verify rsa1536, verify rsa2048, encrypt rsa1024",
        "decrypt rsa1024",
    ),
    (
        "ssl3",
        "rsa_psk/rsa1024@rsa768@rsa1536@rsa2048",
        "verify rsa1536, verify rsa2048, verify rsa768, encrypt rsa1024",
        "decrypt rsa1024",
    ),
    // ECDHE with ECDSA.
    (
        "tls1.0",
        "ecdhe_ecdsa+sect163k1/p256@p384/server",
        "verify p256, verify p384, derive sect163k1, keygen sect163k1",
        "sign p256, derive sect163k1, keygen sect163k1",
    ),
    (
        "tls1.0",
        "ecdhe_ecdsa+sect163k1/p256@p384/requested",
        "verify p256, verify p384, derive sect163k1, keygen sect163k1",
        "sign p256, derive sect163k1, keygen sect163k1",
    ),
    (
        "tls1.0",
        "ecdhe_ecdsa+sect163k1/p256@p384/mutual",
        "sign p256, verify p256, verify p384, derive sect163k1, keygen sect163k1",
        "sign p256, verify p256, verify p384, derive sect163k1, keygen sect163k1",
    ),
    (
        "tls1.0",
        "ecdhe_ecdsa+x448/sect233k1@p256@p521/mutual",
        "sign sect233k1, verify p256, verify p521, verify sect233k1, derive x448, keygen x448",
        "sign sect233k1, verify p256, verify p521, verify sect233k1, derive x448, keygen x448",
    ),
    (
        "tls1.0",
        "ecdhe_ecdsa+p521/p256@p384@rsa1024@rsa2048/server",
        "verify p256, verify p384, verify rsa1024, verify rsa2048, derive p521, keygen p521",
        "sign p256, derive p521, keygen p521",
    ),
    (
        "tls1.2",
        "ecdhe_ecdsa+x25519/ed25519@p256/mutual",
        "sign ed25519, verify ed25519, verify p256, derive x25519, keygen x25519",
        "sign ed25519, verify ed25519, verify p256, derive x25519, keygen x25519",
    ),
    // ECDHE with RSA.
    (
        "tls1.0",
        "ecdhe_rsa+p256/rsa1024@rsa2048/server",
        "verify rsa1024, verify rsa2048, derive p256, keygen p256",
        "sign rsa1024, derive p256, keygen p256",
    ),
    (
        "tls1.0",
        "ecdhe_rsa+p256/rsa1024@rsa2048/requested",
        "verify rsa1024, verify rsa2048, derive p256, keygen p256",
        "sign rsa1024, derive p256, keygen p256",
    ),
    (
        "tls1.0",
        "ecdhe_rsa+p256/rsa1024@rsa2048/mutual",
        "sign rsa1024, verify rsa1024, verify rsa2048, derive p256, keygen p256",
        "sign rsa1024, verify rsa1024, verify rsa2048, derive p256, keygen p256",
    ),
    (
        "tls1.0",
        "ecdhe_rsa+x25519/rsa1024@rsa1536@rsa2048/server",
        "verify rsa1024, verify rsa1536, verify rsa2048, derive x25519, keygen x25519",
        "sign rsa1024, derive x25519, keygen x25519",
    ),
    (
        "tls1.0",
        "ecdhe_rsa+p384/rsa1024@rsa768@rsa1536@rsa2048/mutual",
        "sign rsa1024, verify rsa1024, verify rsa1536, verify rsa2048, verify rsa768, derive p384, keygen p384",
        "sign rsa1024, verify rsa1024, verify rsa1536, verify rsa2048, verify rsa768, derive p384, keygen p384",
    ),
    ("tls1.0", "ecdhe_psk+p256", "derive p256, keygen p256", "derive p256, keygen p256"),
    ("tls1.0", "ecdhe_psk+x25519", "derive x25519, keygen x25519", "derive x25519, keygen x25519"),
    ("tls1.0", "ecdh_anon+p256", "derive p256, keygen p256", "derive p256, keygen p256"),
    (
        "tls1.0",
        "ecdh_anon+sect283k1",
        "derive sect283k1, keygen sect283k1",
        "derive sect283k1, keygen sect283k1",
    ),
];

const TLS_1_3: &[Row] = &[
    (
        "tls1.3",
        "x25519/p256/server",
        "verify p256, verify p256, derive x25519, keygen x25519",
        "sign p256, derive x25519, keygen x25519",
    ),
    (
        "tls1.3",
        "x25519/p256/requested",
        "verify p256, verify p256, derive x25519, keygen x25519",
        "sign p256, derive x25519, keygen x25519",
    ),
    (
        "tls1.3",
        "x25519/p256/mutual",
        "sign p256, verify p256, verify p256, derive x25519, keygen x25519",
        "sign p256, verify p256, verify p256, derive x25519, keygen x25519",
    ),
    ("tls1.3", "x25519/p256/server/resumed", "derive x25519, keygen x25519", "derive x25519, keygen x25519"),
    (
        "tls1.3",
        "x25519/p256/requested/resumed",
        "derive x25519, keygen x25519",
        "derive x25519, keygen x25519",
    ),
    ("tls1.3", "x25519/p256/mutual/resumed", "derive x25519, keygen x25519", "derive x25519, keygen x25519"),
    (
        "tls1.3",
        "p384/rsa2048e3@rsa3072/server",
        "verify rsa2048e3, verify rsa3072, derive p384, keygen p384",
        "sign rsa2048e3, derive p384, keygen p384",
    ),
    (
        "tls1.3",
        "ffdhe2048/ed25519@p521/mutual",
        "sign ed25519, verify ed25519, verify p521, derive ffdhe2048, keygen ffdhe2048",
        "sign ed25519, verify ed25519, verify p521, derive ffdhe2048, keygen ffdhe2048",
    ),
    (
        "tls1.3",
        "x25519/p256@p384@rsa2048/mutual",
        "sign p256, verify p256, verify p384, verify rsa2048, derive x25519, keygen x25519",
        "sign p256, verify p256, verify p384, verify rsa2048, derive x25519, keygen x25519",
    ),
    (
        "tls1.3",
        "x448/p256@p384@p521@rsa2048/server",
        "verify p256, verify p384, verify p521, verify rsa2048, derive x448, keygen x448",
        "sign p256, derive x448, keygen x448",
    ),
    // Key encapsulation; a hybrid is one operation.
    (
        "tls1.3",
        "mlkem768/mldsa44/server",
        "verify mldsa44, verify mldsa44, keygen mlkem768, decapsulate mlkem768",
        "sign mldsa44, encapsulate mlkem768",
    ),
    (
        "tls1.3",
        "x25519mlkem768/mldsa65/mutual",
        "sign mldsa65, verify mldsa65, verify mldsa65, keygen x25519mlkem768, decapsulate x25519mlkem768",
        "sign mldsa65, verify mldsa65, verify mldsa65, encapsulate x25519mlkem768",
    ),
    (
        "tls1.3",
        "secp256r1mlkem768/mldsa44@mldsa65@mldsa87/requested",
        "verify mldsa44, verify mldsa65, verify mldsa87, keygen secp256r1mlkem768, decapsulate secp256r1mlkem768",
        "sign mldsa44, encapsulate secp256r1mlkem768",
    ),
    (
        "tls1.3",
        "mlkem1024/p256/server/resumed",
        "keygen mlkem1024, decapsulate mlkem1024",
        "encapsulate mlkem1024",
    ),
    (
        "tls1.3",
        "x25519mlkem768/p256/mutual/resumed",
        "keygen x25519mlkem768, decapsulate x25519mlkem768",
        "encapsulate x25519mlkem768",
    ),
    // libssl always sends a key share, which a bare pre-shared key does not use.
    ("tls1.3", "psk", "keygen x25519", ""),
    ("tls1.3", "psk_dhe+x25519", "derive x25519, keygen x25519", "derive x25519, keygen x25519"),
    (
        "tls1.3",
        "psk_dhe+ffdhe3072",
        "derive ffdhe3072, keygen ffdhe3072",
        "derive ffdhe3072, keygen ffdhe3072",
    ),
    ("tls1.3", "psk_dhe+mlkem512", "keygen mlkem512, decapsulate mlkem512", "encapsulate mlkem512"),
    (
        "tls1.3",
        "psk_dhe+x25519mlkem768",
        "keygen x25519mlkem768, decapsulate x25519mlkem768",
        "encapsulate x25519mlkem768",
    ),
];

const PUBLIC_KEY: [Operation; 8] = [
    Operation::Sign,
    Operation::Verify,
    Operation::Encrypt,
    Operation::Decrypt,
    Operation::Derive,
    Operation::Keygen,
    Operation::Encapsulate,
    Operation::Decapsulate,
];

/// A side's operations, in the format of the rows.
pub fn done(trace: &Trace, side: Side) -> String {
    let mut found = Vec::new();
    for operation in PUBLIC_KEY {
        let of_kind = trace.operations.iter().filter(|record| record.side == side);
        let of_kind = of_kind.filter(|record| record.primitive.operation == operation);
        let mut names: Vec<_> =
            of_kind.map(|record| format!("{} {}", operation.as_str(), record.primitive.parameters)).collect();
        names.sort();
        found.append(&mut names);
    }
    found.join(", ")
}

fn check(name: &str, client: &str, server: &str, failures: &mut Vec<String>) {
    let suite = common::suite(name);
    assert_eq!(suite.to_string(), name, "rows use canonical names");
    match common::trace(&suite, &common::settings()) {
        Err(error) => failures.push(format!("{name}: {error}")),
        Ok(trace) => {
            for (side, expected) in [(Side::Client, client), (Side::Server, server)] {
                let found = done(&trace, side);
                if found != expected {
                    failures.push(format!("{name}: {side}: expected '{expected}', found '{found}'"));
                }
            }
        }
    }
}

fn assert_none(failures: &[String]) {
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

const CLASSIC: [Protocol; 4] = [Protocol::Ssl3, Protocol::Tls10, Protocol::Tls11, Protocol::Tls12];

/// The protocols to which a row applies.
fn from(oldest: &str) -> impl Iterator<Item = Protocol> {
    CLASSIC.into_iter().skip_while(move |protocol| protocol.as_str() != oldest)
}

#[test]
fn full_handshakes_up_to_tls_1_2_have_the_listed_operations() {
    let _shared = common::shared();
    let mut failures = Vec::new();
    for (oldest, rest, client, server) in UP_TO_TLS_1_2 {
        for protocol in from(oldest) {
            check(&format!("{}/{rest}", protocol.as_str()), client, server, &mut failures);
        }
    }
    assert_none(&failures);
}

/// Up to TLS 1.2, a resumption needs no public-key operation, for any original handshake.
#[test]
fn resumptions_up_to_tls_1_2_have_no_public_key_operations() {
    let _shared = common::shared();
    let mut failures = Vec::new();
    for (oldest, rest, ..) in UP_TO_TLS_1_2 {
        for protocol in from(oldest) {
            let name = protocol.as_str();
            check(&format!("{name}/{rest}/resumed"), "", "", &mut failures);
            if protocol != Protocol::Ssl3 {
                check(&format!("{name}/{rest}/ticket"), "", "", &mut failures);
            }
        }
    }
    assert_none(&failures);
}

#[test]
fn tls_1_3_handshakes_have_the_listed_operations() {
    let _shared = common::shared();
    let mut failures = Vec::new();
    for (protocol, rest, client, server) in TLS_1_3 {
        check(&format!("{protocol}/{rest}"), client, server, &mut failures);
    }
    assert_none(&failures);
}

/// The tables contain every key exchange in all its authentications, with chains of one, two and three certificates.
#[test]
fn tables_cover_every_key_exchange_and_authentication() {
    use shakedown_trace::suite::{Authentication, KeyExchange};
    let rows =
        UP_TO_TLS_1_2.iter().flat_map(|row| from(row.0).map(move |protocol| (protocol.as_str(), row.1)));
    let rows = rows.chain(TLS_1_3.iter().map(|row| (row.0, row.1)));
    let suites: Vec<Suite> =
        rows.map(|(protocol, rest)| common::suite(&format!("{protocol}/{rest}"))).collect();
    for protocol in CLASSIC.into_iter().chain([Protocol::Tls13]) {
        for &exchange in KeyExchange::of(protocol) {
            let of_exchange =
                || suites.iter().filter(|suite| suite.protocol == protocol && suite.key_exchange == exchange);
            assert!(of_exchange().next().is_some(), "{}/{exchange:?}", protocol.as_str());
            if exchange.has_authentication() {
                for (authentication, _) in Authentication::ALL {
                    let found = of_exchange().any(|suite| suite.authentication == Some(authentication));
                    assert!(found, "{}/{exchange:?}/{authentication:?}", protocol.as_str());
                }
            }
            if exchange.leaf_kind().is_some() {
                for certificates in 1..=3 {
                    let found = of_exchange().any(|suite| suite.sent_keys().len() == certificates);
                    assert!(found, "{}/{exchange:?} with {certificates} certificates", protocol.as_str());
                }
            }
        }
    }
}
