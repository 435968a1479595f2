//! Every suite of the catalogue completes a handshake; its accounting is complete, and its operations have valid names.

use super::common;
use shakedown_stacks::{Registry, catalogue};
use shakedown_trace::suite::{KeyExchange, KeyFamily, Protocol};
use shakedown_trace::{Operation, Suite, Trace};

#[test]
fn every_offered_suite_completes_a_handshake() {
    let _shared = common::shared();
    let settings = common::settings();
    let mut failures = Vec::new();
    let mut run = 0;
    for offer in catalogue::suites(&Registry::default(), false) {
        if offer.stack.as_deref() != Some("openssl") {
            continue;
        }
        let suite = common::suite(&offer.suite);
        run += 1;
        match common::trace(&suite, &settings) {
            Err(error) => failures.push(format!("{}: {error}", offer.suite)),
            Ok(trace) => {
                let mut odd = common::imbalances(&trace);
                odd.append(&mut misnamed(&suite, &trace));
                if !odd.is_empty() {
                    failures.push(format!("{}: {}", offer.suite, odd.join("; ")));
                }
            }
        }
    }
    assert!(run > 1000, "only {run} suites are offered");
    assert!(failures.is_empty(), "{} of {run} suites fail:\n{}", failures.len(), failures.join("\n"));
}

/// A suite that the catalogue lists as unsupported is rejected with the reason before anything is created.
#[test]
fn unsupported_suites_are_refused_with_a_reason() {
    let settings = common::settings();
    let mut refused = 0;
    for offer in catalogue::suites(&Registry::default(), true).into_iter().filter(|offer| !offer.supported) {
        assert!(offer.reason.as_deref().is_some_and(|reason| !reason.is_empty()), "{}", offer.suite);
        if let Ok(suite) = offer.suite.parse::<Suite>() {
            let error = shakedown_stacks::prepare(&suite, &settings).err().map(|error| error.to_string());
            assert!(error.is_some_and(|error| error.starts_with(&offer.suite)), "{}", offer.suite);
            refused += 1;
        }
    }
    assert!(refused > 0);
}

/// Operations whose triple is not in the vocabulary, or does not belong to this suite.
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
            // Other public-key calls are compared with the table, in `expected_operations`.
            Operation::Import => KeyFamily::ALL.iter().any(|family| family.1 == primitive.algorithm),
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
            _ => true,
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
