//! User-supplied certificates in a suite.
#![allow(clippy::unwrap_used)]

use shakedown_certs::request;
use shakedown_certs::supplied::{self, AnyIdentity, SuppliedFiles};
use shakedown_trace::Suite;
use std::path::Path;

/// 2026-01-01.
const NOW: i64 = 1_767_225_600;

fn made(folder: &Path, keys: &str, side: &str, wtls: bool) -> SuppliedFiles {
    let out = folder.join(format!("{keys}-{side}-{wtls}"));
    let request = serde_json::json!({
        "do": "make", "keys": keys, "side": side, "wtls": wtls, "out": out, "now": NOW,
    });
    request::run(&serde_json::from_value(request).unwrap()).unwrap();
    let (chain, key, ca) = (out.join("chain.pem"), Some(out.join("key.pem")), Some(out.join("ca.pem")));
    SuppliedFiles { chain, key, ca, password: None }
}

fn suite(name: &str) -> Suite {
    name.parse().unwrap()
}

#[test]
fn suite_keys_are_taken_from_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let server = made(folder.path(), "p256@rsa2048@rsa1024", "server", false);
    let client = made(folder.path(), "rsa1024", "client", false);
    let loaded =
        supplied::load(&suite("tls1.3/x25519/ed25519/mutual"), Some(&server), Some(&client), NOW).unwrap();
    assert_eq!(loaded.suite.to_string(), "tls1.3/x25519/p256@rsa2048@rsa1024/mutual");
    let name = |identity: Option<AnyIdentity>| match identity {
        Some(AnyIdentity::X509(identity)) => identity.subject,
        other => panic!("{other:?}"),
    };
    assert_eq!(name(loaded.server), "server.shakedown.test");
    assert_eq!(name(loaded.client), "client.shakedown.test");
    assert_eq!(
        loaded.notes,
        ["the name has the server's keys; the client's are those of tls1.3/x25519/rsa1024/mutual"]
    );
    let none = supplied::load(&suite("tls1.2/psk"), None, None, NOW).unwrap();
    assert_eq!((none.suite, none.server, none.client), (suite("tls1.2/psk"), None, None));
}

#[test]
fn wtls_suites_accept_wtls_certificates() {
    let folder = tempfile::tempdir().unwrap();
    let files = made(folder.path(), "163k@233k", "server", true);
    let loaded = supplied::load(&suite("wtls/ecdh_ecdsa"), Some(&files), None, NOW).unwrap();
    assert_eq!(loaded.suite.to_string(), "wtls/ecdh_ecdsa/163k@233k/server");
    assert!(matches!(loaded.server, Some(AnyIdentity::Wtls(_))));
    let error = supplied::load(&suite("tls1.2/rsa"), Some(&files), None, NOW).unwrap_err().to_string();
    assert!(error.ends_with("accepted: X.509 certificates"), "{error}");
}

#[test]
fn wtls_suites_accept_x509_certificates() {
    let folder = tempfile::tempdir().unwrap();
    let files = made(folder.path(), "rsa1024@rsa2048", "server", false);
    let loaded = supplied::load(&suite("wtls/rsa"), Some(&files), None, NOW).unwrap();
    assert_eq!(loaded.suite.to_string(), "wtls/rsa/rsa1024@rsa2048/server");
    assert!(matches!(loaded.server, Some(AnyIdentity::X509(_))));
    let files = made(folder.path(), "p521", "server", false);
    let error = supplied::load(&suite("wtls/ecdh_ecdsa"), Some(&files), None, NOW).unwrap_err().to_string();
    assert!(error.contains("p521"), "{error}");
}

#[test]
fn certificates_unused_by_the_suite_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let files = made(folder.path(), "p256", "server", false);
    let error = |name: &str, server, client| {
        supplied::load(&suite(name), server, client, NOW).unwrap_err().to_string()
    };
    let said = error("tls1.2/ecdhe_rsa", Some(&files), None);
    assert!(said.contains("ecdhe_rsa in tls1.2 cannot use a p256 key; accepted: rsa512"), "{said}");
    let said = error("tls1.2/psk", Some(&files), None);
    assert!(said.contains("'psk' does not use keys ('p256')"), "{said}");
    let said = error("tls1.2/ecdhe_ecdsa", None, Some(&files));
    assert!(
        said.starts_with("tls1.2/ecdhe_ecdsa+x25519/p256/server: the client presents no certificate in it"),
        "{said}"
    );
}

fn openssl(folder: &Path, arguments: &[&str]) {
    let output = std::process::Command::new("openssl").args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A leaf with `extensions`, issued by a root named `root_name`, both created by the program `openssl`.
fn by_openssl(folder: &Path, name: &str, extensions: &str, root_name: &str) -> SuppliedFiles {
    let folder = folder.join(name);
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("e"), format!("subjectAltName=DNS:{name}\n{extensions}\n")).unwrap();
    openssl(
        &folder,
        &[
            "req", "-x509", "-newkey", "rsa:1024", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-subj",
            root_name,
        ],
    );
    let subject = format!("/CN={name}");
    openssl(
        &folder,
        &["req", "-newkey", "rsa:1024", "-nodes", "-keyout", "key.pem", "-out", "csr", "-subj", &subject],
    );
    openssl(
        &folder,
        &[
            "x509",
            "-req",
            "-in",
            "csr",
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-set_serial",
            "5",
            "-extfile",
            "e",
            "-out",
            "chain.pem",
        ],
    );
    let at = |file: &str| folder.join(file);
    SuppliedFiles { chain: at("chain.pem"), key: Some(at("key.pem")), ca: Some(at("ca.pem")), password: None }
}

fn now_unix_s() -> i64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64 + 60
}

#[test]
fn certificates_a_wtls_peer_refuses_are_reported_on_load() {
    let folder = tempfile::tempdir().unwrap();
    let now = now_unix_s();
    let signs = by_openssl(folder.path(), "signs", "keyUsage=critical,digitalSignature", "/CN=Root");
    let error = supplied::load(&suite("wtls/rsa"), Some(&signs), None, now).unwrap_err().to_string();
    assert!(error.starts_with(&signs.chain.display().to_string()), "{error}");
    assert!(error.ends_with("does not allow key encipherment (key usage)"), "{error}");
    // A client's key only signs.
    supplied::load(&suite("wtls/rsa/mutual"), None, Some(&signs), now).unwrap();
    supplied::load(&suite("tls1.2/ecdhe_rsa"), Some(&signs), None, now).unwrap();
}

#[test]
fn root_with_a_long_name_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let part = "x".repeat(60);
    let root = format!("/O={part}/OU={part}/ST={part}/L={part}/CN={part}");
    let files = by_openssl(folder.path(), "gateway", "", &root);
    let loaded = supplied::load(&suite("wtls/rsa"), Some(&files), None, now_unix_s()).unwrap();
    assert!(matches!(loaded.server, Some(AnyIdentity::X509(_))));
}

#[test]
fn root_of_the_other_certificate_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = made(folder.path(), "160p", "server", true);
    files.ca = made(folder.path(), "p256", "server", false).ca;
    let error = supplied::load(&suite("wtls/ecdh_ecdsa"), Some(&files), None, NOW).unwrap_err().to_string();
    assert!(error.ends_with("accepted: WTLS certificates"), "{error}");
}
