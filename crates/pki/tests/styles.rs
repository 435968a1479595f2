//! Typical chains of public CAs, validated by the system's `openssl` and by this crate.
#![allow(clippy::unwrap_used)]

mod common;

use common::{NOW, chain, criteria, file, kinds, openssl, pem, pems};
use shakedown_pki::inspect::{self, Description};
use shakedown_pki::{Profile, Store};
use shakedown_trace::Side;
use shakedown_trace::suite::{Protocol, chain_name};
use std::path::Path;

/// Every style with the host of its leaf.
const STYLES: [(&str, &str); 5] = [
    ("style-automated", "www.example.org"),
    ("style-cross-signed", "www.example.org"),
    ("style-extended", "online-banking.payments.example.com"),
    ("style-large-root", "gateway.example.com"),
    ("style-many-names", "anything.maple-store.example"),
];

fn described(folder: &Path, style: &str, host: &str) -> Description {
    let (profile, _) = Profile::named(style).unwrap();
    let issued = chain(&profile, Side::Server, profile.keys.as_ref().unwrap());
    file(folder, "leaf.pem", pem(&issued[0].certificate));
    file(folder, "between.pem", pems(&issued[1..issued.len() - 1]));
    file(folder, "root.pem", pem(&issued[issued.len() - 1].certificate));
    let path = file(folder, "chain.pem", pems(&issued));
    let criteria = inspect::Criteria { host: Some(host.into()), security_level: 2, ..criteria(Side::Server) };
    inspect::describe(&path, None, None, None, &criteria).unwrap()
}

#[test]
fn every_style_passes_system_openssl_and_our_validation() {
    for (style, host) in STYLES {
        let folder = tempfile::tempdir().unwrap();
        let description = described(folder.path(), style, host);
        assert!(description.violations.is_empty(), "{style}: {:?}", description.violations);
        let now = NOW.to_string();
        let (accepted, said) = openssl(
            folder.path(),
            &[
                "verify",
                "-auth_level",
                "2",
                "-x509_strict",
                "-attime",
                &now,
                "-purpose",
                "sslserver",
                "-verify_hostname",
                host,
                "-trusted",
                "root.pem",
                "-untrusted",
                "between.pem",
                "leaf.pem",
            ],
        );
        assert!(accepted, "{style}: {said}");
    }
}

#[test]
fn parts_add_up_and_extensions_match_openssl() {
    for (style, host) in STYLES {
        let folder = tempfile::tempdir().unwrap();
        let description = described(folder.path(), style, host);
        for certificate in &description.certificates {
            let sum: usize = certificate.parts.iter().map(|part| part.bytes).sum();
            assert_eq!(sum, certificate.bytes, "{style}: {:?}", certificate.parts);
        }
        let (_, said) = openssl(folder.path(), &["x509", "-in", "leaf.pem", "-noout", "-text"]);
        for extension in &description.certificates[0].extensions {
            assert!(said.contains(&extension.name), "{style}: {} in {said}", extension.name);
            assert!(extension.is_understood || !extension.critical);
        }
        // Every value is read, not just measured.
        assert!(
            !description.certificates[0]
                .extensions
                .iter()
                .any(|extension| extension.value.ends_with(" bytes"))
        );
    }
}

#[test]
fn each_style_has_its_documented_features() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let timestamps = |description: &Description| {
        let extensions = &description.certificates[0].extensions;
        let list = extensions.iter().find(|extension| extension.oid == "1.3.6.1.4.1.11129.2.4.2").unwrap();
        list.value.matches("Signed Certificate Timestamp").count()
    };
    let automated = described(folder, STYLES[0].0, STYLES[0].1);
    let extended = described(folder, STYLES[2].0, STYLES[2].1);
    let large = described(folder, STYLES[3].0, STYLES[3].1);
    let many = described(folder, STYLES[4].0, STYLES[4].1);
    assert_eq!([timestamps(&automated), timestamps(&extended), timestamps(&many)], [2, 3, 2]);
    let subject_bytes = |description: &Description| {
        description.certificates[0].parts.iter().find(|part| part.name == "subject").unwrap().bytes
    };
    assert!(subject_bytes(&extended) > 10 * subject_bytes(&automated));
    assert_eq!(many.certificates[0].alternative_names.len(), 101);
    assert_eq!(large.keys_name.as_deref(), Some("rsa2048@rsa4096@rsa4096"));
    assert_eq!(large.certificates[0].signature.bytes, 512);
    let bytes = [&automated, &extended, &large, &many].map(|description| description.bytes_sent);
    assert!(bytes.is_sorted(), "{bytes:?}");
}

#[test]
fn a_cross_signed_root_is_trusted_by_old_and_new_peers() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (profile, _) = Profile::named("style-cross-signed").unwrap();
    let issued = chain(&profile, Side::Server, profile.keys.as_ref().unwrap());
    let leaf = file(folder, "leaf.pem", pem(&issued[0].certificate));
    let sent = file(folder, "sent.pem", pems(&issued[..3]));
    let old = file(folder, "old.pem", pem(&issued[3].certificate));
    let young = file(folder, "young.pem", pem(issued[2].counterpart.as_ref().unwrap()));
    let now = NOW.to_string();
    for (root, name) in
        [("old.pem", "rsa2048@rsa2048@rsa4096@rsa2048"), ("young.pem", "rsa2048@rsa2048@rsa4096")]
    {
        let arguments = ["verify", "-attime", &now, "-trusted", root, "-untrusted", "sent.pem", "leaf.pem"];
        let (accepted, said) = openssl(folder, &arguments);
        assert!(accepted, "{root}: {said}");
        let ca = folder.join(root);
        let description = inspect::describe(&sent, None, Some(&ca), None, &criteria(Side::Server)).unwrap();
        assert!(description.violations.is_empty(), "{:?}", description.violations);
        assert_eq!(description.keys_name.as_deref(), Some(name));
        // The user-supplied identity counts the certificates that are sent without need.
        let key = file(folder, "key.pem", common::key_pem(&issued[0]));
        let user = shakedown_pki::UserIdentity::load(&sent, Some(&key), Some(&ca), None, NOW).unwrap();
        assert_eq!(chain_name(&user.keys, Protocol::Tls12), name);
        assert_eq!(user.identity.chain.len(), 3);
        assert_eq!(user.unneeded, usize::from(ca == young));
    }
    assert!(leaf.exists() && old.exists());
}

#[test]
fn store_caches_each_style_separately() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path());
    let keys = kinds("p256@p256@p256");
    let lengths = STYLES.map(|(style, _)| {
        let (profile, _) = Profile::named(style).unwrap();
        store.identity(&keys, Side::Server, &profile, NOW).unwrap().chain[0].len()
    });
    for (place, length) in lengths.iter().enumerate() {
        assert!(!lengths[..place].contains(length), "{lengths:?}");
    }
}
