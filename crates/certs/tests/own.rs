//! A user's own material in a suite.
#![allow(clippy::unwrap_used, missing_docs)]

use shakedown_certs::own::{self, OwnFiles, OwnIdentity};
use shakedown_certs::request;
use shakedown_trace::Suite;
use std::path::Path;

/// 2026-01-01.
const NOW: i64 = 1_767_225_600;

fn made(folder: &Path, keys: &str, side: &str, wtls: bool) -> OwnFiles {
    let out = folder.join(format!("{keys}-{side}-{wtls}"));
    let request = serde_json::json!({
        "do": "make", "keys": keys, "side": side, "wtls": wtls, "out": out, "now": NOW,
    });
    request::run(&serde_json::from_value(request).unwrap()).unwrap();
    let (chain, key, ca) = (out.join("chain.pem"), Some(out.join("key.pem")), Some(out.join("ca.pem")));
    OwnFiles { chain, key, ca, password: None }
}

fn suite(name: &str) -> Suite {
    name.parse().unwrap()
}

#[test]
fn the_suites_keys_are_those_of_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let server = made(folder.path(), "p256@rsa2048@rsa1024", "server", false);
    let client = made(folder.path(), "rsa1024", "client", false);
    let loaded =
        own::load(&suite("tls1.3/x25519/ed25519/mutual"), Some(&server), Some(&client), NOW).unwrap();
    assert_eq!(loaded.suite.to_string(), "tls1.3/x25519/p256@rsa2048@rsa1024/mutual");
    let name = |identity: Option<OwnIdentity>| match identity {
        Some(OwnIdentity::X509(identity)) => identity.subject,
        other => panic!("{other:?}"),
    };
    assert_eq!(name(loaded.server), "server.shakedown.test");
    assert_eq!(name(loaded.client), "client.shakedown.test");
    assert_eq!(
        loaded.notes,
        ["the name shows the server's keys; the client's are those of tls1.3/x25519/rsa1024/mutual"]
    );
    let none = own::load(&suite("tls1.2/psk"), None, None, NOW).unwrap();
    assert_eq!((none.suite, none.server, none.client), (suite("tls1.2/psk"), None, None));
}

#[test]
fn wtls_suites_take_wtls_certificates() {
    let folder = tempfile::tempdir().unwrap();
    let files = made(folder.path(), "163k@233k", "server", true);
    let loaded = own::load(&suite("wtls/ecdh_ecdsa"), Some(&files), None, NOW).unwrap();
    assert_eq!(loaded.suite.to_string(), "wtls/ecdh_ecdsa/163k@233k/server");
    assert!(matches!(loaded.server, Some(OwnIdentity::Wtls(_))));
    let error = own::load(&suite("tls1.2/rsa"), Some(&files), None, NOW).unwrap_err().to_string();
    assert!(error.ends_with("accepted: X.509 certificates"), "{error}");
}

#[test]
fn wtls_suites_take_x509_certificates_too() {
    let folder = tempfile::tempdir().unwrap();
    let files = made(folder.path(), "rsa1024@rsa2048", "server", false);
    let loaded = own::load(&suite("wtls/rsa"), Some(&files), None, NOW).unwrap();
    assert_eq!(loaded.suite.to_string(), "wtls/rsa/rsa1024@rsa2048/server");
    assert!(matches!(loaded.server, Some(OwnIdentity::X509(_))));
    let files = made(folder.path(), "p521", "server", false);
    let error = own::load(&suite("wtls/ecdh_ecdsa"), Some(&files), None, NOW).unwrap_err().to_string();
    assert!(error.contains("p521"), "{error}");
}

#[test]
fn what_a_suite_has_no_use_for_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let files = made(folder.path(), "p256", "server", false);
    let error =
        |name: &str, server, client| own::load(&suite(name), server, client, NOW).unwrap_err().to_string();
    let said = error("tls1.2/ecdhe_rsa", Some(&files), None);
    assert!(said.contains("ecdhe_rsa in tls1.2 can't use a p256 key; accepted: rsa512"), "{said}");
    let said = error("tls1.2/psk", Some(&files), None);
    assert!(said.contains("'psk' has no use for keys ('p256')"), "{said}");
    let said = error("tls1.2/ecdhe_ecdsa", None, Some(&files));
    assert!(
        said.starts_with("tls1.2/ecdhe_ecdsa+x25519/p256/server: the client shows no certificate in it"),
        "{said}"
    );
}
