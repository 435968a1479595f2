//! Identities from the store: valid for the system's `openssl`, stable, and safe against damage and concurrent use.
#![allow(clippy::unwrap_used)]

use shakedown_pki::{Identity, PkiError, Profile, Store};
use shakedown_trace::Side;
use shakedown_trace::suite::KeyType;
use std::path::Path;
use std::process::Command;

/// 2026-01-01.
const NOW: i64 = 1_767_225_600;

fn keys(names: &str) -> Vec<KeyType> {
    names.split('@').map(|name| KeyType::from_name(name).unwrap()).collect()
}

fn pem(der: &[u8]) -> Vec<u8> {
    openssl::x509::X509::from_der(der).unwrap().to_pem().unwrap()
}

/// Runs the system's `openssl`; returns whether it succeeded, and its output.
fn openssl(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let output = Command::new("openssl").args(arguments).current_dir(folder).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

fn lay_out(folder: &Path, identity: &Identity) {
    std::fs::write(folder.join("leaf.pem"), pem(&identity.chain[0])).unwrap();
    // The tool requires at least one certificate there; the leaf does no harm.
    let between: Vec<u8> = identity.chain.iter().flat_map(|der| pem(der)).collect();
    std::fs::write(folder.join("between.pem"), between).unwrap();
    std::fs::write(folder.join("root.pem"), pem(&identity.root)).unwrap();
    std::fs::write(folder.join("key.der"), &identity.key).unwrap();
}

#[test]
fn system_openssl_accepts_every_kind_of_chain() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("cache"));
    for (names, side, purpose, name) in [
        ("rsa512@rsa512", Side::Server, "sslserver", "server.shakedown.test"),
        ("rsa1024e3@rsa2048", Side::Client, "sslclient", "client.shakedown.test"),
        ("rsa1024@rsa1024@rsa1024", Side::Server, "sslserver", "server.shakedown.test"),
        ("rsa2048@rsa1024@rsa1024@rsa2048", Side::Server, "sslserver", "server.shakedown.test"),
        ("dsa512@dsa512", Side::Server, "sslserver", "server.shakedown.test"),
        ("dsa1024@dsa2048", Side::Client, "sslclient", "client.shakedown.test"),
        ("p256@p384", Side::Server, "sslserver", "server.shakedown.test"),
        ("sect163k1@sect283k1", Side::Server, "sslserver", "server.shakedown.test"),
        ("secp112r1@secp160r1", Side::Server, "sslserver", "server.shakedown.test"),
        ("ed25519@ed25519", Side::Server, "sslserver", "server.shakedown.test"),
    ] {
        let identity = store.identity(&keys(names), side, &Profile::default(), NOW).unwrap();
        assert_eq!(identity.subject, name);
        assert_eq!(identity.chain.len(), names.split('@').count() - 1);
        lay_out(folder.path(), &identity);
        let at = NOW.to_string();
        let common = ["verify", "-auth_level", "0", "-x509_strict", "-attime", &at, "-purpose", purpose];
        let rest =
            ["-verify_hostname", name, "-trusted", "root.pem", "-untrusted", "between.pem", "leaf.pem"];
        let (accepted, said) = openssl(folder.path(), &[&common[..], &rest].concat());
        assert!(accepted, "{names}: {said}");
        let (read, public) = openssl(folder.path(), &["pkey", "-inform", "DER", "-in", "key.der", "-pubout"]);
        let (_, certified) = openssl(folder.path(), &["x509", "-in", "leaf.pem", "-noout", "-pubkey"]);
        assert!(read, "{names}: {public}");
        assert_eq!(public, certified, "{names}: the key is not the leaf's");
    }
}

#[test]
fn bundled_openssl_verifies_post_quantum_chains() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path());
    let identity =
        store.identity(&keys("mldsa44@mldsa65@mldsa87"), Side::Server, &Profile::default(), NOW).unwrap();
    let read = |der: &[u8]| openssl::x509::X509::from_der(der).unwrap();
    let between = read(&identity.chain[1]);
    let root = read(&identity.root);
    assert!(read(&identity.chain[0]).verify(&between.public_key().unwrap()).unwrap());
    assert!(between.verify(&root.public_key().unwrap()).unwrap());
    // FIPS 204, table 2: signatures of ML-DSA-65 and -87.
    assert_eq!(read(&identity.chain[0]).signature().as_slice().len(), 3309);
    assert_eq!(between.signature().as_slice().len(), 4627);
}

#[test]
fn sides_places_and_profiles_have_separate_keys_and_certificates() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path());
    let profile = Profile::default();
    let chain = keys("p256@p256@p256");
    let server = store.identity(&chain, Side::Server, &profile, NOW).unwrap();
    let client = store.identity(&chain, Side::Client, &profile, NOW).unwrap();
    assert_ne!(server.key, client.key);
    assert_ne!(server.root, client.root);
    let public = |der: &[u8]| openssl::x509::X509::from_der(der).unwrap().public_key().unwrap();
    assert!(!public(&server.chain[0]).public_eq(&public(&server.chain[1])));
    assert!(!public(&server.chain[1]).public_eq(&public(&server.root)));
    // Another store reads the same identity from disk.
    assert_eq!(Store::open(folder.path()).identity(&chain, Side::Server, &profile, NOW).unwrap(), server);
    let other = Profile { serial_bytes: 8, ..profile };
    let shorter = store.identity(&chain, Side::Server, &other, NOW).unwrap();
    assert_eq!(shorter.chain[0].len() + 8, server.chain[0].len());
    assert_eq!(shorter.key, server.key, "keys do not hang on the profile");
}

#[test]
fn equal_descriptions_give_certificates_of_equal_length() {
    for names in ["p256@p256", "dsa1024@dsa1024", "rsa1024@rsa1024", "p521@sect163k1", "ed25519@ed25519"] {
        let lengths = [(); 4].map(|()| {
            let folder = tempfile::tempdir().unwrap();
            let store = Store::open(folder.path());
            let identity = store.identity(&keys(names), Side::Server, &Profile::default(), NOW).unwrap();
            (identity.chain[0].len(), identity.root.len())
        });
        assert!(lengths.iter().all(|pair| *pair == lengths[0]), "{names}: {lengths:?}");
    }
}

#[test]
fn damaged_files_are_regenerated_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path());
    let chain = keys("p256@p256");
    let first = store.identity(&chain, Side::Server, &Profile::default(), NOW).unwrap();
    assert!(store.take_notices().is_empty());
    let mut files = Vec::new();
    for folder in [folder.path().join("keys-1"), folder.path().join("x509-1")] {
        let mut folders = vec![folder];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { folders.push(path) } else { files.push(path) }
            }
        }
    }
    assert_eq!(files.len(), 3);
    // An issuer's key is not read again once its certificates exist.
    files.retain(|path| !path.ends_with("server-1-p256.pem"));
    for path in files {
        let whole = std::fs::read(&path).unwrap();
        let mut flipped = whole.clone();
        let middle = whole.len() / 2;
        flipped[middle] ^= 1;
        for damaged in [flipped, whole[..whole.len() - 1].to_vec(), Vec::new(), vec![0xff; 10]] {
            std::fs::write(&path, damaged).unwrap();
            let again = store.identity(&chain, Side::Server, &Profile::default(), NOW).unwrap();
            let notices = store.take_notices();
            assert!(notices[0].contains(&path.display().to_string()), "{notices:?}");
            assert_eq!(again.chain.len(), first.chain.len());
            assert!(
                Store::open(folder.path()).identity(&chain, Side::Server, &Profile::default(), NOW).unwrap()
                    == again
            );
        }
    }
}

#[test]
fn valid_file_under_a_wrong_name_is_not_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path());
    store.temporary_key(KeyType::Ed25519).unwrap();
    store.temporary_key(KeyType::from_name("p256").unwrap()).unwrap();
    let keys = folder.path().join("keys-1");
    std::fs::copy(keys.join("temporary-0-p256.pem"), keys.join("temporary-0-ed25519.pem")).unwrap();
    let key = store.temporary_key(KeyType::Ed25519).unwrap();
    assert_eq!(
        shakedown_pki::keys::key_type(&shakedown_pki::keys::from_pkcs8(&key).unwrap()),
        Some(KeyType::Ed25519)
    );
    assert!(store.take_notices()[0].contains("a key of another kind"));
}

#[test]
fn concurrent_stores_return_the_same_identity() {
    let folder = tempfile::tempdir().unwrap();
    let identities: Vec<_> = std::thread::scope(|scope| {
        let make = || {
            let store = Store::open(folder.path());
            store.identity(&keys("p256@p256@p256"), Side::Server, &Profile::default(), NOW).unwrap()
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(make)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(identities.iter().all(|identity| *identity == identities[0]));
}

#[test]
fn private_keys_are_readable_only_by_their_owner() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("cache");
    Store::open(&root).temporary_key(KeyType::Ed25519).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&root), 0o700);
    assert_eq!(mode(&root.join("keys-1")), 0o700);
    assert_eq!(mode(&root.join("keys-1/temporary-0-ed25519.pem")), 0o600);
}

#[test]
fn impossible_requests_have_their_error() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path());
    let profile = Profile::default();
    let short = store.identity(&keys("p256"), Side::Server, &profile, NOW).unwrap_err();
    assert!(matches!(short, PkiError::ChainTooShort { given: 1 }));
    let late = store.identity(&keys("p256@p256"), Side::Server, &profile, 2_600_000_000).unwrap_err();
    assert!(late.to_string().contains("is valid from 2020-01-01 00:00:00 UTC to 2049-12-24"), "{late}");
    let text = include_str!("../profiles/lab.toml").replace("rsa = \"sha256\"", "rsa = \"sha512\"");
    let long = Profile::parse(&text, "long").unwrap();
    let digest = store.identity(&keys("p256@rsa512"), Side::Server, &long, NOW).unwrap_err();
    assert_eq!(
        digest.to_string(),
        "the sha512 digest is too long for a signature by a rsa512 key; take a shorter one in the profile"
    );
    let nowhere = Store::open(Path::new("/proc/nowhere")).temporary_key(KeyType::Ed25519).unwrap_err();
    assert!(nowhere.to_string().contains("/proc/nowhere/keys-1"), "{nowhere}");
}
