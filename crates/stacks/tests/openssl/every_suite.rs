//! Whatever the catalogue offers really shakes hands; its books balance, and what it does is called by names
//! that the suite knows.

use super::common;
use super::operations::done;
use shakedown_stacks::catalogue;
use shakedown_trace::suite::{Authentication, GroupKind, KeyExchange, KeyType, Mode, Protocol};
use shakedown_trace::{Operation, Side, Suite, Trace};

#[test]
fn every_offered_suite_shakes_hands() {
    let _shared = common::shared();
    let settings = common::settings();
    let mut failures = Vec::new();
    let mut run = 0;
    for offer in catalogue::suites(false) {
        if offer.stack != Some("openssl") {
            continue;
        }
        let suite = common::suite(&offer.suite);
        run += 1;
        match common::trace(&suite, &settings) {
            Err(error) => failures.push(format!("{}: {error}", offer.suite)),
            Ok(trace) => {
                let mut odd = common::imbalances(&trace);
                odd.append(&mut misnamed(&suite, &trace));
                odd.append(&mut unexpected(&suite, &trace));
                if !odd.is_empty() {
                    failures.push(format!("{}: {}", offer.suite, odd.join("; ")));
                }
            }
        }
    }
    assert!(run > 1000, "only {run} suites are offered");
    assert!(failures.is_empty(), "{} of {run} suites fail:\n{}", failures.len(), failures.join("\n"));
}

/// What the catalogue says cannot be run is refused, with the reason, before anything is made for it.
#[test]
fn what_is_not_offered_is_refused() {
    let settings = common::settings();
    let mut refused = 0;
    for offer in catalogue::suites(true).into_iter().filter(|offer| !offer.supported) {
        assert!(offer.reason.as_deref().is_some_and(|reason| !reason.is_empty()), "{}", offer.suite);
        if let Ok(suite) = offer.suite.parse::<Suite>() {
            let error = shakedown_stacks::prepare(&suite, &settings).err().map(|error| error.to_string());
            assert!(error.is_some_and(|error| error.starts_with(&offer.suite)), "{}", offer.suite);
            refused += 1;
        }
    }
    assert!(refused > 0);
}

/// Operations whose triple is not of the vocabulary, or not of this suite.
fn misnamed(suite: &Suite, trace: &Trace) -> Vec<String> {
    let mut known: Vec<&str> = suite.keys.iter().map(|key| key.standard_name()).collect();
    known.extend(suite.group.map(|group| group.name(suite.protocol)));
    if suite.protocol == Protocol::Tls13 && suite.key_exchange == KeyExchange::Psk {
        known.push("x25519");
    }
    let mut found = Vec::new();
    for record in &trace.operations {
        let primitive = record.primitive;
        let right = match primitive.operation {
            Operation::Sign | Operation::Verify => {
                matches!(primitive.algorithm, "rsa" | "dsa" | "ecdsa" | "eddsa" | "mldsa")
            }
            Operation::Encrypt | Operation::Decrypt => primitive.algorithm == "rsa",
            Operation::Derive => matches!(primitive.algorithm, "dh" | "ecdh"),
            Operation::Keygen => matches!(primitive.algorithm, "dh" | "ecdh" | "mlkem" | "hybrid"),
            Operation::Encapsulate | Operation::Decapsulate => {
                matches!(primitive.algorithm, "mlkem" | "hybrid")
            }
            Operation::Import => {
                matches!(
                    primitive.algorithm,
                    "rsa" | "dsa" | "ecdsa" | "eddsa" | "mldsa" | "dh" | "ecdh" | "mlkem" | "hybrid"
                )
            }
            Operation::Digest => {
                matches!(primitive.algorithm, "md5" | "sha1" | "md5-sha1" | "sha256" | "sha384" | "sha512")
            }
            Operation::Mac => {
                primitive.algorithm == "poly1305"
                    || primitive.algorithm == "cmac"
                    || primitive.algorithm.starts_with("hmac-")
            }
            Operation::Prf => {
                primitive.algorithm.starts_with("hkdf-sha") || primitive.algorithm.starts_with("tls1-prf-")
            }
            Operation::Cipher => CIPHERS.contains(&primitive.algorithm),
        };
        let parameters = if primitive.operation.is_symmetric() {
            primitive.parameters.is_empty()
        } else {
            known.contains(&primitive.parameters)
        };
        if !right || !parameters {
            found.push(format!("{}: {primitive:?}", record.side));
        }
    }
    found
}

const CIPHERS: [&str; 22] = [
    "rc4",
    "rc4-hmac-md5",
    "des-ede3-cbc",
    "idea-cbc",
    "seed-cbc",
    "aes-128-cbc",
    "aes-256-cbc",
    "aes-128-cbc-hmac-sha1",
    "aes-256-cbc-hmac-sha1",
    "aes-128-cbc-hmac-sha256",
    "aes-256-cbc-hmac-sha256",
    "camellia-128-cbc",
    "camellia-256-cbc",
    "aes-128-gcm",
    "aes-256-gcm",
    "aes-128-ccm",
    "aes-256-ccm",
    "chacha20-poly1305",
    "aria-128-gcm",
    "aria-256-gcm",
    "aria-128-ccm",
    "aria-256-ccm",
];

/// Where a side's public-key operations are not those of the rule.
fn unexpected(suite: &Suite, trace: &Trace) -> Vec<String> {
    let mut found = Vec::new();
    for side in [Side::Client, Side::Server] {
        let (expected, done) = (rule(suite, side), done(trace, side));
        if expected != done {
            found.push(format!("{side}: expected '{expected}', found '{done}'"));
        }
    }
    found
}

/// The rule itself, for any suite of this stack: the tables of `operations` hold it to examples worked out by hand.
fn rule(suite: &Suite, side: Side) -> String {
    let group = suite.group.map_or("x25519", |group| group.name(suite.protocol));
    let encapsulated = group.contains("mlkem");
    let client = side == Side::Client;
    let mut list: Vec<(Operation, String)> = Vec::new();
    let tls13 = suite.protocol == Protocol::Tls13;
    let fresh = suite.mode == Mode::Full || tls13;
    if fresh && suite.key_exchange.group_kind().is_some() {
        match (encapsulated, client) {
            (true, true) => {
                list.extend([(Operation::Keygen, group.into()), (Operation::Decapsulate, group.into())])
            }
            (true, false) => list.push((Operation::Encapsulate, group.into())),
            (false, _) => list.extend([(Operation::Derive, group.into()), (Operation::Keygen, group.into())]),
        }
    } else if tls13 && client {
        list.push((Operation::Keygen, group.into()));
    }
    if suite.mode == Mode::Full && suite.has_certificates() {
        let name = |key: &KeyType| key.standard_name().to_owned();
        let mutual = suite.authentication == Some(Authentication::Mutual);
        let server_signs =
            suite.key_exchange.group_kind().is_some_and(|kind| kind != GroupKind::Tls13) || tls13;
        let (signs, peer_shows, peer_signs) =
            if client { (mutual, true, server_signs) } else { (server_signs, mutual, mutual) };
        if signs {
            list.push((Operation::Sign, name(&suite.keys[0])));
        }
        if peer_shows {
            list.extend(suite.keys[1..].iter().map(|issuer| (Operation::Verify, name(issuer))));
        }
        if peer_signs {
            list.push((Operation::Verify, name(&suite.keys[0])));
        }
        if matches!(suite.key_exchange, KeyExchange::Rsa | KeyExchange::RsaPsk) {
            list.push((if client { Operation::Encrypt } else { Operation::Decrypt }, name(&suite.keys[0])));
        }
    }
    // In the order in which `Operation` lists them, then by name: as `done` writes.
    list.sort();
    list.iter()
        .map(|(operation, name)| format!("{} {name}", operation.as_str()))
        .collect::<Vec<_>>()
        .join(", ")
}
