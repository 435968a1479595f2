//! WTLS identities: accepted by the engine's verification, kept in the store, and user-supplied.
#![allow(clippy::unwrap_used)]

use shakedown_certs::{CertsError, describe, wtls};
use shakedown_pki::inspect::{Criteria, Reason};
use shakedown_pki::{PkiError, Profile, Store, UserError, keys};
use shakedown_trace::Side;
use shakedown_trace::suite::{Curve, KeyType};
use shakedown_wtls::KeyExchangeFamily;
use shakedown_wtls::certificate::{Certificate, ChainPolicy, Holder, TrustAnchor, verify_chain};
use shakedown_wtls::crypto::Key;
use shakedown_wtls::provider::openssl::OpenSsl;
use std::path::{Path, PathBuf};

/// 2026-01-01.
const NOW: i64 = 1_767_225_600;

fn kinds(names: &str) -> Vec<KeyType> {
    names.split('@').map(|name| KeyType::from_name(name).unwrap()).collect()
}

fn criteria() -> Criteria {
    Criteria { now_unix_s: NOW, security_level: 2, host: None, side: Side::Server }
}

fn file(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    path
}

fn pem<'a>(certificates: impl IntoIterator<Item = &'a Certificate>) -> String {
    certificates.into_iter().map(Certificate::to_pem).collect()
}

#[test]
fn the_engine_accepts_chains_on_every_curve_and_of_rsa() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path());
    let provider = OpenSsl::new().unwrap();
    let mut chains: Vec<Vec<KeyType>> = Curve::all()
        .filter(|curve| curve.wtls_name().is_some())
        .map(|curve| vec![KeyType::Ec(curve); 2])
        .collect();
    assert!(chains.len() > 10);
    chains.extend([
        kinds("rsa1024@rsa1024"),
        kinds("rsa512@rsa1024e3@rsa2048"),
        kinds("160p@233k@256p@283k"),
    ]);
    for chain in chains {
        for private_curves in [false, true] {
            let identity =
                wtls::identity(&store, &chain, Side::Client, &Profile::default(), NOW, private_curves)
                    .unwrap();
            assert_eq!(identity.chain.len() + 1, chain.len());
            let anchor = TrustAnchor::from_certificate(&provider, &identity.root, private_curves).unwrap();
            let is_rsa = matches!(chain[0], KeyType::Rsa { .. });
            let policy = ChainPolicy {
                holder: Holder::Server,
                family: if is_rsa { KeyExchangeFamily::Rsa } else { KeyExchangeFamily::EcdhEcdsa },
                now_unix_s: u64::try_from(NOW).unwrap(),
                private_curves,
                name: Some("client.shakedown.test"),
            };
            let sent: Vec<_> = identity.chain.iter().cloned().map(Into::into).collect();
            let verified = verify_chain(&provider, &sent, &[anchor], &policy);
            let verified = verified.unwrap_or_else(|error| panic!("{chain:?}: {error}"));
            let own = wtls::private_key(&provider, &identity.key).unwrap();
            assert_eq!(own.kind(), verified.key.kind());
            assert_eq!(identity.subject, "client.shakedown.test");
        }
    }
}

#[test]
fn cached_chains_are_reused_and_damaged_ones_regenerated() {
    let folder = tempfile::tempdir().unwrap();
    let identity = |side| {
        let store = Store::open(folder.path());
        let identity =
            wtls::identity(&store, &kinds("163k@233k"), side, &Profile::default(), NOW, false).unwrap();
        (identity, store.take_notices())
    };
    let (first, _) = identity(Side::Server);
    assert_eq!(identity(Side::Server), (first.clone(), vec![]));
    assert_ne!(identity(Side::Client).0.key, first.key);
    let profile = std::fs::read_dir(folder.path().join("wtls-1")).unwrap().next().unwrap().unwrap().path();
    let path = profile.join("server-sect163k1@sect233k1.pem");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("BEGIN", "BEGUN")).unwrap();
    let (again, notices) = identity(Side::Server);
    assert_eq!(again.key, first.key);
    assert!(notices[0].contains("server-sect163k1@sect233k1.pem"), "{notices:?}");
}

#[test]
fn keys_without_wtls_support_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path());
    let identity = |names: &str| {
        wtls::identity(&store, &kinds(names), Side::Server, &Profile::default(), NOW, false).unwrap_err()
    };
    assert!(matches!(identity("ed25519@160p"), CertsError::NoWtlsKey { .. }));
    assert!(matches!(identity("p384@p384"), CertsError::NoWtlsKey { .. }));
    assert_eq!(
        identity("160p@rsa1024").to_string(),
        "a WTLS chain has either RSA keys or EC keys throughout, not both: 160p@rsa1024"
    );
    assert!(matches!(identity("160p"), CertsError::Pki(PkiError::ChainTooShort { given: 1 })));
    let late =
        wtls::identity(&store, &kinds("160p@160p"), Side::Server, &Profile::default(), 0, false).unwrap_err();
    assert!(late.to_string().contains("is valid from 2020-01-01 00:00:00 UTC"), "{late}");
}

#[test]
fn chains_are_described_part_by_part() {
    let folder = tempfile::tempdir().unwrap();
    for (names, printed) in
        [("163k@233k@283k", "163k@233k@283k"), ("rsa1024@rsa1024", "rsa1024"), ("256p@256p", "256p")]
    {
        let chain = wtls::new_chain(&Profile::default(), Side::Server, &kinds(names)).unwrap();
        let certificates: Vec<Certificate> = chain.iter().map(|row| row.0.clone()).collect();
        let text = file(folder.path(), "chain.pem", pem(&certificates));
        let raw: Vec<u8> = certificates.iter().flat_map(|one| one.as_bytes().to_vec()).collect();
        let raw = file(folder.path(), "chain.wtls", raw);
        let key = keys::from_pkcs8(&chain[0].1).unwrap().private_key_to_pem_pkcs8().unwrap();
        let key = file(folder.path(), "key.pem", key);
        for path in [text, raw] {
            let description = describe(&path, Some(&key), None, None, &criteria()).unwrap();
            assert!(description.violations.is_empty(), "{names}: {:?}", description.violations);
            assert_eq!(description.keys_name.as_deref(), Some(printed));
            for (described, certificate) in description.certificates.iter().zip(&certificates) {
                assert_eq!(described.kind, "WTLS");
                assert_eq!(described.bytes, certificate.as_bytes().len());
                assert_eq!(described.parts.iter().map(|part| part.bytes).sum::<usize>(), described.bytes);
            }
            let sent = certificates.len() - 1;
            let bytes: usize = certificates[..sent].iter().map(|one| one.as_bytes().len()).sum();
            assert_eq!(description.bytes_sent, bytes);
        }
    }
}

#[test]
fn user_supplied_chain_is_read_and_each_error_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let chain = wtls::new_chain(&Profile::default(), Side::Server, &kinds("160p@233k@256p")).unwrap();
    let other = wtls::new_chain(&Profile::default(), Side::Server, &kinds("163k@163k")).unwrap();
    let certificates: Vec<&Certificate> = chain.iter().map(|row| &row.0).collect();
    let key_file = |name: &str, pkcs8: &[u8]| {
        file(folder, name, keys::from_pkcs8(pkcs8).unwrap().private_key_to_pem_pkcs8().unwrap())
    };
    let key = key_file("key.pem", &chain[0].1);
    let root = file(folder, "root.pem", pem([certificates[2]]));
    let sent = file(folder, "sent.pem", pem([certificates[0], certificates[1]]));
    let whole = file(folder, "whole.pem", pem(certificates.iter().copied()));
    for (path, ca) in [(&sent, Some(root.as_path())), (&whole, None), (&whole, Some(root.as_path()))] {
        let (identity, kinds_found) = wtls::load(path, &key, ca, None, NOW).unwrap();
        assert_eq!(kinds_found, kinds("160p@233k@256p"));
        assert_eq!(identity.chain.len(), 2);
        assert_eq!(identity.root, *certificates[2]);
        assert_eq!(identity.subject, "server.shakedown.test");
    }

    let load = |path: &Path, key: &Path, ca: Option<&Path>, now| match wtls::load(path, key, ca, None, now) {
        Err(CertsError::User(error)) => error,
        other => panic!("{other:?}"),
    };
    let reversed = file(folder, "reversed.pem", pem(certificates.iter().rev().copied()));
    let error = load(&reversed, &key, None, NOW);
    assert!(matches!(error, UserError::WrongOrder { .. }));
    let description = describe(&reversed, None, None, None, &criteria()).unwrap();
    assert_eq!(description.violations[0].reason, Reason::WrongOrder);
    assert_eq!(description.right_order, [2, 1, 0]);
    let foreign_key = key_file("foreign.pem", &other[0].1);
    let error = load(&whole, &foreign_key, None, NOW);
    assert!(matches!(&error, UserError::KeyMismatch { leaf_key, .. } if leaf_key == "160p"), "{error}");
    let description = describe(&whole, Some(&foreign_key), None, None, &criteria()).unwrap();
    assert_eq!(
        description.violations[0].detail,
        "the private key (sect163k1) is not that of the leaf (160p)"
    );
    assert!(matches!(load(&sent, &key, None, NOW), UserError::NoRoot { .. }));
    let foreign_root = file(folder, "foreign-root.pem", pem([&other[1].0]));
    assert!(matches!(load(&sent, &key, Some(&foreign_root), NOW), UserError::ForeignRoot { .. }));
    assert!(matches!(load(&whole, &key, None, 2_600_000_000), UserError::Expired { .. }));
    assert!(matches!(load(&whole, &key, None, 0), UserError::NotYetValid { .. }));
    let gap = file(folder, "gap.pem", pem([certificates[0], certificates[2]]));
    assert!(matches!(load(&gap, &key, None, NOW), UserError::BrokenChain { .. }));

    let mut forged = certificates[0].as_bytes().to_vec();
    *forged.last_mut().unwrap() ^= 1;
    forged.extend(certificates[1].as_bytes());
    let forged = file(folder, "forged.wtls", forged);
    assert!(matches!(load(&forged, &key, Some(&root), NOW), UserError::BadSignature { .. }));
    let description = describe(&forged, None, Some(&root), None, &criteria()).unwrap();
    assert!(description.violations.iter().any(|violation| violation.reason == Reason::BadSignature));
}

#[test]
fn ca_without_the_authority_extension_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let unmarked = include_str!("../../pki/profiles/lab.toml").replace("; ; T=ca", "");
    let profile = Profile::parse(&unmarked, "unmarked").unwrap();
    let chain = wtls::new_chain(&profile, Side::Server, &kinds("163k@163k@163k")).unwrap();
    let path = file(folder.path(), "chain.pem", pem(chain.iter().map(|row| &row.0)));
    let wanted = Criteria { host: Some("elsewhere".into()), ..criteria() };
    let description = describe(&path, None, None, None, &wanted).unwrap();
    let reasons: Vec<Reason> = description.violations.iter().map(|violation| violation.reason).collect();
    assert_eq!(reasons, [Reason::IssuerIsNoCa, Reason::WrongName]);
}

#[test]
fn profiles_without_wtls_names_use_their_x509_names() {
    let (profile, _) = Profile::named("style-extended").unwrap();
    let chain = wtls::new_chain(&profile, Side::Server, &kinds("163k@163k@163k")).unwrap();
    let subjects: Vec<String> = chain.iter().map(|row| row.0.fields().subject.to_string()).collect();
    assert_eq!(
        subjects,
        [
            "; Example International Savings and Payment Services Holding GmbH; ZZ; online-banking.payments.example.com",
            "ExampleCert SHA2 Extended Validation Server CA; ExampleCert Incorporated; ZZ; ; T=ca",
            "ExampleCert High Assurance EV Root CA; ExampleCert Incorporated; ZZ",
        ]
    );
}

#[test]
fn truncated_certificates_and_noise_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let chain = wtls::new_chain(&Profile::default(), Side::Server, &kinds("rsa512@rsa512")).unwrap();
    let bytes = chain[0].0.as_bytes();
    for length in 0..bytes.len() {
        let path = file(folder.path(), "cut.wtls", &bytes[..length]);
        let error = describe(&path, None, None, None, &criteria()).unwrap_err();
        assert!(matches!(error, CertsError::Unreadable { .. }), "{length}: {error}");
    }
    let text = chain[0].0.to_pem();
    let path = file(folder.path(), "cut.pem", &text[..text.len() / 2]);
    let error = describe(&path, None, None, None, &criteria()).unwrap_err().to_string();
    assert!(error.contains("cut.pem: certificate 1 is unreadable as a WTLS certificate"), "{error}");
}
