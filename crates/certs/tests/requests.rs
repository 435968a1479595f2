//! Requests of the `certs` command, and their responses.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use shakedown_certs::request;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// 2026-01-01.
const NOW: i64 = 1_767_225_600;

fn run(request: Value) -> Result<Value, String> {
    let request: request::Request = serde_json::from_value(request).map_err(|error| error.to_string())?;
    let response = request::run(&request).map_err(|error| error.to_string())?;
    Ok(serde_json::to_value(response).unwrap())
}

fn openssl(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let output = Command::new("openssl").args(arguments).current_dir(folder).output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[test]
fn chain_is_generated_written_and_described() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("mine");
    let make = json!({
        "do": "make", "keys": "p256@rsa2048@rsa2048", "out": out, "name": "gw.example", "days": 400,
        "not_before": "2025-12-01", "password": "secret", "now": NOW,
    });
    let made = run(make.clone()).unwrap();
    let names: Vec<String> =
        made["files"].as_array().unwrap().iter().map(|file| file["path"].to_string()).collect();
    assert_eq!(names.len(), 5, "{names:?}");
    assert_eq!(made["description"]["keys_name"], "p256@rsa2048@rsa2048");
    assert_eq!(made["description"]["violations"], json!([]));
    let mode = |name: &str| std::fs::metadata(out.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(["key.pem", "ca-key.pem", "all.p12", "chain.pem"].map(mode), [0o600, 0o600, 0o600, 0o644]);
    let at = NOW.to_string();
    let verify = ["verify", "-attime", &at, "-verify_hostname", "gw.example", "-CAfile", "ca.pem"];
    let (accepted, said) = openssl(&out, &[&verify[..], &["-untrusted", "chain.pem", "chain.pem"]].concat());
    assert!(accepted, "{said}");
    let (read, said) = openssl(&out, &["pkcs12", "-in", "all.p12", "-passin", "pass:secret", "-nokeys"]);
    assert!(read && said.matches("BEGIN CERTIFICATE").count() == 3, "{said}");

    let shown = run(json!({
        "do": "show", "files": [out.join("chain.pem"), out.join("all.p12")], "key": out.join("key.pem"),
        "ca": out.join("ca.pem"), "password": "secret", "host": "gw.example", "now": NOW,
    }));
    let shown = shown.unwrap();
    for entry in shown.as_array().unwrap() {
        assert_eq!(entry["violations"], json!([]), "{entry}");
        assert_eq!(entry["keys_name"], "p256@rsa2048@rsa2048");
        assert_eq!(entry["certificates"][0]["not_after"], "2027-01-05 00:00:00 UTC");
    }
    // Existing files are not replaced by default.
    let again = run(make.clone()).unwrap_err();
    assert!(again.ends_with("chain.pem: exists already; accepted: another folder, or --force"), "{again}");
    let mut again = make;
    again["replace"] = json!(true);
    // A new file gets no permissions that the replaced file did not have.
    std::fs::set_permissions(out.join("chain.pem"), Permissions::from_mode(0o600)).unwrap();
    std::fs::set_permissions(out.join("key.pem"), Permissions::from_mode(0o644)).unwrap();
    run(again).unwrap();
    assert_eq!((mode("chain.pem"), mode("key.pem"), mode("ca.pem")), (0o600, 0o600, 0o644));
}

#[test]
fn profile_sets_default_keys_and_writes_cross_signed_roots() {
    let folder = tempfile::tempdir().unwrap();
    let made = run(json!({
        "do": "make", "profile": "style-cross-signed", "keys": "p256@p256@p256@p256", "out": folder.path(), "now": NOW,
    }));
    assert_eq!(made.unwrap()["files"].as_array().unwrap().len(), 5);
    let at = NOW.to_string();
    let chain = ["-untrusted", "chain.pem", "chain.pem"];
    for root in ["ca.pem", "ca-other.pem"] {
        let (accepted, said) =
            openssl(folder.path(), &[&["verify", "-attime", &at, "-CAfile", root], &chain[..]].concat());
        assert!(accepted, "{root}: {said}");
    }
    let list = run(json!({"do": "profiles"})).unwrap();
    assert_eq!(list.as_array().unwrap().len(), 6);
    assert_eq!(list[1]["keys"], "p256@p384@p384");
    let made =
        run(json!({"do": "make", "profile": "style-automated", "out": folder.path().join("a"), "now": NOW}));
    assert_eq!(made.unwrap()["description"]["keys_name"], "p256@p384@p384");
}

#[test]
fn a_root_issues_an_intermediate_which_issues_a_leaf() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let root = run(
        json!({"do": "issue", "place": "root", "key": "p384", "name": "My Root", "out": at("r"), "now": NOW}),
    );
    assert_eq!(
        root.unwrap()["description"]["certificates"][0]["subject"],
        "O=Shakedown Laboratory, CN=My Root"
    );
    let between = run(json!({
        "do": "issue", "place": "intermediate", "key": "p256", "out": at("i"), "ca": at("r/chain.pem"),
        "ca_key": at("r/key.pem"), "now": NOW,
    }));
    assert_eq!(between.unwrap()["description"]["violations"], json!([]));
    let leaf = run(json!({
        "do": "issue", "place": "client", "key": "mldsa44", "name": "device-7", "out": at("c"),
        "alternative_names": ["dns:device-7.example", "uri:urn:dev:7"], "ca": at("i/chain.pem"), "ca_key": at("i/key.pem"),
        "now": NOW,
    }));
    let leaf = leaf.unwrap();
    assert_eq!(leaf["description"]["violations"], json!([]));
    assert_eq!(leaf["description"]["certificates"].as_array().unwrap().len(), 2);
    let shown = run(json!({
        "do": "show", "files": [at("c/chain.pem")], "key": at("c/key.pem"), "ca": at("r/chain.pem"), "side": "client",
        "now": NOW,
    }));
    let shown = shown.unwrap();
    assert_eq!(shown[0]["violations"], json!([]));
    assert_eq!(shown[0]["keys_name"], "mldsa44@p256@p384");
    assert_eq!(
        shown[0]["certificates"][0]["alternative_names"],
        json!(["dns:device-7.example", "uri:urn:dev:7"])
    );
}

#[test]
fn wtls_chains_are_generated_and_described() {
    let folder = tempfile::tempdir().unwrap();
    let made =
        run(json!({"do": "make", "keys": "163k@283k", "wtls": true, "out": folder.path(), "now": NOW}));
    assert_eq!(made.unwrap()["description"]["keys_name"], "163k@283k");
    let files = ["chain.pem", "chain.wtls"].map(|name| folder.path().join(name));
    let key = folder.path().join("key.pem");
    let shown = run(
        json!({"do": "show", "files": files, "key": key, "ca": folder.path().join("ca.pem"), "now": NOW}),
    );
    for entry in shown.unwrap().as_array().unwrap() {
        assert_eq!(entry["format"], "wtls");
        assert_eq!(entry["violations"], json!([]));
    }
}

#[test]
fn wrong_requests_are_reported_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let missing = folder.path().join("missing.pem");
    for (request, said) in [
        (
            json!({"do": "make", "keys": "p255", "out": out, "now": NOW}),
            "unknown key 'p255'; accepted: rsa512",
        ),
        (
            json!({"do": "make", "profile": "nice", "out": out, "now": NOW}),
            "unknown certificate profile 'nice'; accepted: lab",
        ),
        (
            json!({"do": "make", "profile": "./nice.toml", "out": out, "now": NOW}),
            "./nice.toml: reading failed: No such file",
        ),
        (
            json!({"do": "make", "side": "middle", "out": out, "now": NOW}),
            "unknown side 'middle'; accepted: server, client",
        ),
        (
            json!({"do": "make", "keys": "ed25519", "wtls": true, "out": out, "now": NOW}),
            "cannot have a key of the kind ed25519; accepted: RSA",
        ),
        (
            json!({"do": "make", "keys": "160p", "wtls": true, "password": "x", "out": out, "now": NOW}),
            "PKCS #12",
        ),
        (
            json!({"do": "make", "days": 0, "out": out, "now": NOW}),
            "server.days: '0' is not accepted; accepted: 1 to",
        ),
        (
            json!({"do": "make", "not_before": "today", "out": out, "now": NOW}),
            "'today' is not accepted; accepted: a date",
        ),
        (json!({"do": "make", "out": "/proc/x", "now": NOW}), "/proc/x: making the folder failed"),
        (json!({"do": "make", "wrong": 1, "out": out, "now": NOW}), "unknown field `wrong`"),
        (
            json!({"do": "issue", "place": "top", "key": "p256", "out": out, "now": NOW}),
            "unknown place in a chain 'top'",
        ),
        (
            json!({"do": "issue", "place": "server", "key": "p256", "out": out, "now": NOW}),
            "an issuer is needed",
        ),
        (
            json!({"do": "issue", "place": "server", "key": "p256", "ca": missing, "out": out, "now": NOW}),
            "missing.pem: No such file",
        ),
        (json!({"do": "show", "files": [missing], "now": NOW}), "missing.pem: No such file"),
        (
            json!({"do": "show", "files": ["/etc/hostname"], "now": NOW}),
            "/etc/hostname: unreadable; accepted: X.509",
        ),
        (
            json!({"do": "show", "files": [missing], "level": 6, "now": NOW}),
            "unknown security level '6'; accepted: 0 to 5",
        ),
    ] {
        let error = run(request).unwrap_err();
        assert!(error.contains(said) && !error.contains('\n'), "{error}");
    }
    assert!(!out.exists(), "nothing is left behind");
}

#[test]
fn a_wtls_root_issues_an_intermediate_which_issues_leaves() {
    for keys in [["rsa2048", "rsa1024", "rsa512"], ["283k", "163k", "160p"]] {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let made = run;
        made(json!({
            "do": "issue", "place": "root", "key": keys[0], "wtls": true, "name": "My Root", "out": at("r"), "now": NOW,
        }))
        .unwrap();
        // The kind of the issuer's certificate determines that of the new one.
        made(json!({
            "do": "issue", "place": "intermediate", "key": keys[1], "ca": at("r/chain.pem"), "ca_key": at("r/key.pem"),
            "out": at("i"), "now": NOW,
        }))
        .unwrap();
        made(json!({
            "do": "issue", "place": "server", "key": keys[2], "name": "gw.test", "ca": at("i/chain.pem"),
            "ca_key": at("i/key.pem"), "out": at("s"), "now": NOW,
        }))
        .unwrap();
        // A suite can use the chain, and its peer trusts it.
        let chain = at("s/chain.pem");
        let (identity, kinds) =
            shakedown_certs::wtls::load(&chain, &at("s/key.pem"), Some(&at("r/chain.pem")), None, NOW)
                .unwrap();
        assert_eq!(identity.subject, "gw.test");
        assert_eq!((identity.chain.len(), kinds.len()), (2, 3));

        let refused = |request| made(request).unwrap_err();
        let leaf = json!({
            "do": "issue", "place": "server", "key": keys[2], "ca": at("r/chain.pem"), "out": at("n"), "now": NOW,
        });
        let with = |name: &str, value: serde_json::Value| {
            let mut request = leaf.clone();
            request[name] = value;
            refused(request)
        };
        assert!(refused(leaf.clone()).contains("no private key"), "{}", refused(leaf.clone()));
        let foreign = with("ca_key", json!(at("i/key.pem")));
        assert!(foreign.contains("My Root"), "{foreign}");
        let mut odd = leaf.clone();
        odd["ca_key"] = json!(at("r/key.pem"));
        odd["key"] = json!(if keys[0].starts_with("rsa") { "160p" } else { "rsa1024" });
        assert!(refused(odd.clone()).contains("not both"), "{}", refused(odd.clone()));
        odd["key"] = json!("ed25519");
        assert!(refused(odd.clone()).contains("cannot have"), "{}", refused(odd));
        let by_leaf = made(json!({
            "do": "issue", "place": "client", "key": keys[2], "ca": at("s/chain.pem"), "ca_key": at("s/key.pem"),
            "out": at("n"), "now": NOW,
        }));
        // The key of an RSA leaf can sign, but peers reject the result; a key for key agreement cannot sign.
        match by_leaf {
            Ok(made) => {
                assert!(keys[0].starts_with("rsa"));
                assert_eq!(made["description"]["violations"][0]["reason"], "issuer_is_no_ca");
            }
            Err(error) => assert!(error.contains("cannot sign"), "{error}"),
        }
    }
}
