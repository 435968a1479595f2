//! User-supplied certificates and keys: every format, and every violation.
#![allow(clippy::unwrap_used)]

mod common;

use common::{NOW, chain, criteria, file, key_pem, kinds, openssl, pem, pems};
use shakedown_pki::credentials::ReadError;
use shakedown_pki::inspect::{self, Criteria, Description, Reason};
use shakedown_pki::issue::{self, Issued, Overrides, Place};
use shakedown_pki::{Profile, UserError, UserIdentity, keys};
use shakedown_trace::Side;
use shakedown_trace::suite::{Protocol, chain_name};
use std::path::{Path, PathBuf};

struct Laid {
    folder: tempfile::TempDir,
    issued: Vec<Issued>,
}

impl Laid {
    fn out(names: &str) -> Self {
        let issued = chain(&Profile::default(), Side::Server, names);
        Self { folder: tempfile::tempdir().unwrap(), issued }
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        file(self.folder.path(), name, content)
    }

    fn key(&self) -> PathBuf {
        self.file("key.pem", key_pem(&self.issued[0]))
    }

    fn load(&self, chain: &Path, ca: Option<&Path>) -> Result<UserIdentity, UserError> {
        UserIdentity::load(chain, Some(&self.key()), ca, None, NOW)
    }
}

fn reasons(description: &Description) -> Vec<Reason> {
    description.violations.iter().map(|violation| violation.reason).collect()
}

#[test]
fn every_file_format_gives_the_same_identity() {
    let laid = Laid::out("p256@rsa1024@rsa2048");
    let root = laid.file("root.pem", pem(&laid.issued[2].certificate));
    let sent = laid.file("sent.pem", pems(&laid.issued[..2]));
    let wanted = laid.load(&sent, Some(&root)).unwrap();
    assert_eq!(wanted.keys, kinds("p256@rsa1024@rsa2048"));
    assert_eq!(wanted.identity.subject, "server.shakedown.test");
    assert_eq!(
        wanted.identity.chain,
        [laid.issued[0].certificate.clone(), laid.issued[1].certificate.clone()]
    );
    assert_eq!(wanted.identity.root, laid.issued[2].certificate);

    let whole = laid.file("whole.pem", pems(&laid.issued));
    let together = laid.file("together.pem", [key_pem(&laid.issued[0]), pems(&laid.issued)].concat());
    let der = laid.file("chain.der", [&laid.issued[0].certificate[..], &laid.issued[1].certificate].concat());
    let der_key = laid.file("key.der", &laid.issued[0].key);
    let root_der = laid.file("root.der", &laid.issued[2].certificate);
    let archive = laid.file("all.p12", issue::pkcs12(&laid.issued, "secret").unwrap());
    let key = keys::from_pkcs8(&laid.issued[0].key).unwrap();
    let traditional = laid.file("key-sec1.pem", key.ec_key().unwrap().private_key_to_pem().unwrap());
    let cipher = openssl::symm::Cipher::aes_256_cbc();
    let locked = laid.file("locked.pem", key.private_key_to_pem_pkcs8_passphrase(cipher, b"secret").unwrap());
    let locked_der = laid.file("locked.der", key.private_key_to_pkcs8_passphrase(cipher, b"secret").unwrap());
    for (chain, key, ca, password) in [
        (&whole, Some(&der_key), None, None),
        (&together, None, None, None),
        (&der, Some(&der_key), Some(&root_der), None),
        (&archive, None, None, Some("secret")),
        (&sent, Some(&archive), Some(&root), Some("secret")),
        (&sent, Some(&traditional), Some(&root), None),
        (&sent, Some(&locked), Some(&root), Some("secret")),
        (&sent, Some(&locked_der), Some(&root), Some("secret")),
    ] {
        let path = |path: Option<&PathBuf>| path.map(PathBuf::as_path).map(Path::to_path_buf);
        let loaded = UserIdentity::load(chain, path(key).as_deref(), path(ca).as_deref(), password, NOW);
        let loaded = loaded.unwrap_or_else(|error| panic!("{}: {error}", chain.display()));
        assert_eq!(loaded.identity.chain, wanted.identity.chain);
        assert_eq!(loaded.identity.root, wanted.identity.root);
        assert_eq!(loaded.keys, wanted.keys);
    }
}

#[test]
fn archives_of_system_openssl_are_read_including_legacy_ciphers() {
    let laid = Laid::out("rsa1024@rsa1024@rsa1024");
    laid.key();
    laid.file("leaf.pem", pem(&laid.issued[0].certificate));
    laid.file("rest.pem", pems(&laid.issued[1..]));
    let common = ["pkcs12", "-export", "-inkey", "key.pem", "-in", "leaf.pem", "-certfile", "rest.pem"];
    for (name, more) in [("today.p12", &[][..]), ("old.p12", &["-legacy"][..])] {
        let output = ["-passout", "pass:secret", "-out", name];
        let (made, said) = openssl(laid.folder.path(), &[&common[..], &output, more].concat());
        assert!(made, "{said}");
        let loaded =
            UserIdentity::load(&laid.folder.path().join(name), None, None, Some("secret"), NOW).unwrap();
        assert_eq!(loaded.keys, kinds("rsa1024@rsa1024@rsa1024"));
    }
}

#[test]
fn single_self_signed_certificate_is_its_own_root() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        "key.pem",
        "-out",
        "cert.pem",
        "-days",
        "36500",
        "-subj",
        "/CN=box.example",
        "-addext",
        "subjectAltName=DNS:*.box.example",
    ];
    let (made, said) = openssl(folder.path(), &arguments);
    assert!(made, "{said}");
    // The certificate is valid from today on; this time is later than today on any machine.
    let later = 4_000_000_000;
    let (chain, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    let loaded = UserIdentity::load(&chain, Some(&key), None, None, later).unwrap();
    assert_eq!(chain_name(&loaded.keys, Protocol::Tls12), "rsa2048");
    assert_eq!(loaded.identity.chain, std::slice::from_ref(&loaded.identity.root));
    assert_eq!(loaded.identity.subject, "host.box.example");
}

#[test]
fn wrong_chain_order_is_reported_with_the_right_one() {
    let laid = Laid::out("p256@p256@p256");
    let wrong = laid.file("wrong.pem", pems(laid.issued.iter().rev()));
    let error = laid.load(&wrong, None).unwrap_err();
    assert!(matches!(error, UserError::WrongOrder { .. }));
    let right = "server.shakedown.test | Shakedown Intermediate CA 1 | Shakedown Root CA";
    assert!(error.to_string().ends_with(&format!("the right one, leaf first: {right}")), "{error}");
    let description = inspect::describe(&wrong, None, None, None, &criteria(Side::Server)).unwrap();
    assert_eq!(description.right_order, [2, 1, 0]);
    assert_eq!(reasons(&description), [Reason::WrongOrder]);
    let right = "'server.shakedown.test', 'Shakedown Intermediate CA 1', 'Shakedown Root CA'";
    assert_eq!(description.violations[0].detail, format!("the right order, leaf first: {right}"));
}

#[test]
fn each_invalid_input_has_its_own_error() {
    let laid = Laid::out("p256@p256@p256");
    let other = Laid::out("rsa1024@p256@p256");
    let whole = laid.file("whole.pem", pems(&laid.issued));
    let sent = laid.file("sent.pem", pems(&laid.issued[..2]));
    let root = laid.file("root.pem", pem(&laid.issued[2].certificate));
    let key = laid.key();
    let check = |result: Result<UserIdentity, UserError>, variant: fn(&UserError) -> bool, said: &str| {
        let error = result.unwrap_err();
        assert!(variant(&error), "{error:?}");
        let message = error.to_string();
        assert!(message.contains(said) && !message.contains('\n'), "{message}");
    };
    let load =
        |chain: &Path, key: &Path, ca: Option<&Path>| UserIdentity::load(chain, Some(key), ca, None, NOW);

    check(
        load(&whole, &other.key(), None),
        |error| matches!(error, UserError::KeyMismatch { .. }),
        "the leaf 'server.shakedown.test' has another (p256)",
    );
    check(load(&sent, &key, None), |error| matches!(error, UserError::NoRoot { .. }), "CN=Shakedown Root CA");
    let foreign = laid.file("foreign.pem", pem(&other.issued[2].certificate));
    check(
        load(&sent, &key, Some(&foreign)),
        |error| matches!(error, UserError::ForeignRoot { .. }),
        "issued none of the certificates in",
    );
    let gap =
        laid.file("gap.pem", [pem(&laid.issued[0].certificate), pem(&laid.issued[2].certificate)].concat());
    check(
        load(&gap, &key, Some(&root)),
        |error| matches!(error, UserError::BrokenChain { .. }),
        "CN=Shakedown Intermediate CA 1', whose certificate is missing",
    );
    let mut der = laid.issued[0].certificate.clone();
    *der.last_mut().unwrap() ^= 1;
    let forged = laid.file("forged.pem", [pem(&der), pem(&laid.issued[1].certificate)].concat());
    check(
        load(&forged, &key, Some(&root)),
        |error| matches!(error, UserError::BadSignature { .. }),
        "does not verify under the key of its issuer 'Shakedown Intermediate CA 1'",
    );
    check(
        UserIdentity::load(&whole, Some(&key), None, None, 2_600_000_000),
        |error| matches!(error, UserError::Expired { .. }),
        "expired at 2049-12-24 00:00:00 UTC; it is 2052-05-22",
    );
    check(
        UserIdentity::load(&whole, Some(&key), None, None, 0),
        |error| matches!(error, UserError::NotYetValid { .. }),
        "is not valid before 2020-01-01 00:00:00 UTC; it is 1970-01-01",
    );
    check(
        load(&key, &key, None),
        |error| matches!(error, UserError::Read(ReadError::NoCertificate { .. })),
        "holds no certificate",
    );
    check(
        load(&whole, &whole, None),
        |error| matches!(error, UserError::Read(ReadError::NoKey { .. })),
        "holds no private key",
    );
    let missing = laid.folder.path().join("missing.pem");
    check(
        load(&missing, &key, None),
        |error| matches!(error, UserError::Read(ReadError::File { .. })),
        "missing.pem: No such file",
    );
    let noise = laid.file("noise.pem", [0x30, 0x82, 0xff, 0xff, 1, 2, 3]);
    check(
        load(&noise, &key, None),
        |error| matches!(error, UserError::Read(ReadError::Unreadable { .. })),
        "unreadable as certificates or keys; accepted: PEM, DER, PKCS #12",
    );
    let text = String::from_utf8(pems(&laid.issued)).unwrap();
    let cut = laid.file("cut.pem", &text[..text.len() - 200]);
    check(
        load(&cut, &key, None),
        |error| matches!(error, UserError::Read(ReadError::BadCertificate { place: 3, .. })),
        "certificate 3 (line ",
    );
}

#[test]
fn missing_and_wrong_passwords_are_refused() {
    let laid = Laid::out("p256@p256");
    let archive = laid.file("all.p12", issue::pkcs12(&laid.issued, "secret").unwrap());
    let load = |password| UserIdentity::load(&archive, None, None, password, NOW);
    assert!(matches!(load(None), Err(UserError::Read(ReadError::PasswordNeeded { .. }))));
    assert!(matches!(load(Some("wrong")), Err(UserError::Read(ReadError::WrongPassword { .. }))));
    assert!(matches!(load(Some("sec\0ret")), Err(UserError::Read(ReadError::WrongPassword { .. }))));
    assert!(load(Some("secret")).is_ok());
    let key = keys::from_pkcs8(&laid.issued[0].key).unwrap();
    let locked =
        key.private_key_to_pem_pkcs8_passphrase(openssl::symm::Cipher::aes_128_cbc(), b"secret").unwrap();
    let locked = laid.file("locked.pem", locked);
    let whole = laid.file("whole.pem", pems(&laid.issued));
    let load = |password| UserIdentity::load(&whole, Some(&locked), None, password, NOW);
    assert!(matches!(load(None), Err(UserError::Read(ReadError::PasswordNeeded { .. }))));
    assert!(matches!(load(Some("wrong")), Err(UserError::Read(ReadError::WrongPassword { .. }))));
}

#[test]
fn unsupported_keys_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [
        "req",
        "-x509",
        "-newkey",
        "rsa:2056",
        "-nodes",
        "-keyout",
        "key.pem",
        "-out",
        "cert.pem",
        "-days",
        "36500",
        "-subj",
        "/CN=box.example",
    ];
    assert!(openssl(folder.path(), &arguments).0);
    let (chain, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    let error = UserIdentity::load(&chain, Some(&key), None, None, 4_000_000_000).unwrap_err();
    assert!(matches!(error, UserError::UnusableKey { .. }));
    assert!(
        error.to_string().contains("(RSA of 2056 bits, e = 65537); accepted: RSA of 512, 768"),
        "{error}"
    );
}

#[test]
fn certificate_problems_for_a_peer_are_found() {
    let laid = Laid::out("rsa1024@p256@p256");
    let whole = laid.file("whole.pem", pems(&laid.issued));
    let findings = |chain: &Path, key: Option<&Path>, ca: Option<&Path>, criteria: &Criteria| {
        inspect::describe(chain, key, ca, None, criteria).unwrap()
    };
    let server = criteria(Side::Server);
    assert!(findings(&whole, Some(&laid.key()), None, &server).violations.is_empty());

    let late = Criteria { now_unix_s: 2_600_000_000, ..server.clone() };
    assert_eq!(reasons(&findings(&whole, None, None, &late)), [Reason::Expired; 3]);
    let early = Criteria { now_unix_s: 0, ..server.clone() };
    assert_eq!(reasons(&findings(&whole, None, None, &early)), [Reason::NotYetValid; 3]);
    let strict = Criteria { security_level: 2, ..server.clone() };
    let weak = findings(&whole, None, None, &strict);
    assert_eq!(reasons(&weak), [Reason::WeakKey]);
    assert_eq!(weak.violations[0].detail, "rsa1024 has a strength of 80 bits; security level 2 requires 112");
    assert_eq!(weak.security_level, 1);
    let sent = laid.file("sent.pem", pems(&laid.issued[..2]));
    assert!(
        findings(&sent, None, None, &server).violations.is_empty(),
        "the peer may trust who issued the last"
    );
    let strictest = Criteria { security_level: 4, ..server.clone() };
    let root = laid.file("root.pem", pem(&laid.issued[2].certificate));
    let rooted = findings(&sent, None, Some(&root), &strictest);
    assert!(
        rooted.violations.iter().any(|violation| violation
            .detail
            .starts_with("the trusted root's p256 has a strength of 128 bits"))
    );
    let elsewhere = Criteria { host: Some("elsewhere.test".into()), ..server.clone() };
    let wrong = findings(&whole, None, None, &elsewhere);
    assert_eq!(reasons(&wrong), [Reason::WrongName]);
    assert_eq!(wrong.violations[0].detail, "is not for 'elsewhere.test' but for dns:server.shakedown.test");
    let client = Criteria { side: Side::Client, ..server.clone() };
    assert_eq!(reasons(&findings(&whole, None, None, &client)), [Reason::WrongPurpose]);
    let other = laid.file("other.pem", key_pem(&laid.issued[1]));
    let holder = laid.file("leaf-only.pem", pem(&laid.issued[0].certificate));
    let root = laid.file("root.pem", pem(&laid.issued[2].certificate));
    let alone = findings(&holder, Some(&other), Some(&root), &server);
    assert_eq!(reasons(&alone), [Reason::IssuerMissing, Reason::KeyMismatch]);
    assert_eq!(alone.violations[1].detail, "the private key (p256) is not that of the leaf (rsa1024)");
    let stranger = Laid::out("p256@p256");
    let mixed = laid.file("mixed.pem", [pems(&laid.issued), pem(&stranger.issued[0].certificate)].concat());
    assert_eq!(reasons(&findings(&mixed, Some(&laid.key()), None, &server)), [Reason::Unrelated]);
    let mut forged = laid.issued[0].certificate.clone();
    *forged.last_mut().unwrap() ^= 1;
    let forged = laid.file("forged.pem", [pem(&forged), pem(&laid.issued[1].certificate)].concat());
    assert!(reasons(&findings(&forged, None, Some(&root), &server)).contains(&Reason::BadSignature));
}

#[test]
fn flaws_of_profiles_are_found() {
    let lab = include_str!("../profiles/lab.toml");
    let criteria = criteria(Side::Server);
    let findings = |text: &str| {
        let profile = Profile::parse(text, "flawed").unwrap();
        let issued = chain(&profile, Side::Server, "p256@p256@p256@p256");
        let folder = tempfile::tempdir().unwrap();
        inspect::describe(&file(folder.path(), "chain.pem", pems(&issued)), None, None, None, &criteria)
            .unwrap()
    };
    assert!(findings(lab).violations.is_empty());
    let nameless = lab.replace("subject_alternative_names = [\"dns:server.shakedown.test\"]", "");
    assert_eq!(reasons(&findings(&nameless)), [Reason::NoAlternativeName]);
    let (root, between) = lab.split_once("[[intermediate]]").unwrap();
    let no_ca = format!("{root}[[intermediate]]{}", between.replacen("ca = true", "ca = false", 1));
    assert_eq!(reasons(&findings(&no_ca)), [Reason::IssuerIsNoCa; 2]);
    let no_signing = format!("{root}[[intermediate]]{}", between.replacen("\"key_cert_sign\", ", "", 1));
    assert_eq!(reasons(&findings(&no_signing)), [Reason::IssuerIsNoCa; 2]);
    let short = lab.replacen("ca = true }", "ca = true, path_length = 1 }", 1);
    let found = findings(&short);
    assert_eq!(reasons(&found), [Reason::PathTooLong]);
    assert_eq!(found.violations[0].detail, "allows 1 CA(s) between itself and the leaf; there are 2");
    let sha1 = lab.replace("ec = \"sha256\"", "ec = \"sha1\"");
    assert_eq!(reasons(&findings(&sha1)), [Reason::WeakDigest; 3]);
    let unknown =
        lab.replace("[server]", "[server]\nopaque = [{ oid = \"1.2.3.4.5\", critical = true, bytes = 40 }]");
    let found = findings(&unknown);
    assert_eq!(reasons(&found), [Reason::UnknownCriticalExtension]);
    let extension = found.certificates[0].extensions.last().unwrap();
    assert_eq!((&extension.oid[..], &extension.value[..], extension.bytes), ("1.2.3.4.5", "40 bytes", 53));
}

#[test]
fn certificate_is_issued_under_an_existing_issuer() {
    let laid = Laid::out("p256@rsa2048");
    let issuer = openssl::x509::X509::from_der(&laid.issued[1].certificate).unwrap();
    let issuer_key = keys::from_pkcs8(&laid.issued[1].key).unwrap();
    let overrides = Overrides {
        common_name: Some("gateway.example".into()),
        alternative_names: vec!["dns:gateway.example".into(), "ip:192.0.2.1".into(), "ip:2001:db8::1".into()],
        not_before: Some("2024-02-29".into()),
        days: Some(1000),
    };
    let profile = Profile::default().with(Place::Server, &overrides).unwrap();
    let made =
        issue::one(&profile, Place::Server, kinds("ed25519")[0], Some((&issuer, &issuer_key))).unwrap();
    let leaf = laid.file("leaf.pem", pem(&made.certificate));
    let root = laid.file("root.pem", pem(&laid.issued[1].certificate));
    let criteria = Criteria { host: Some("2001:db8::1".into()), ..criteria(Side::Server) };
    let description = inspect::describe(&leaf, None, Some(&root), None, &criteria).unwrap();
    assert!(description.violations.is_empty(), "{:?}", description.violations);
    let certificate = &description.certificates[0];
    assert_eq!(certificate.subject, "CN=gateway.example");
    assert_eq!(certificate.alternative_names, ["dns:gateway.example", "ip:192.0.2.1", "ip:2001:db8::1"]);
    assert_eq!(certificate.not_before, "2024-02-29 00:00:00 UTC");
    assert_eq!(certificate.not_after, "2026-11-25 00:00:00 UTC");
    assert_eq!(description.keys_name.as_deref(), Some("ed25519@rsa2048"));

    let leaf_key = keys::from_pkcs8(&laid.issued[0].key).unwrap();
    let error = |result: Result<Issued, shakedown_pki::PkiError>| result.err().unwrap().to_string();
    let one = |place, issuer| issue::one(&profile, place, kinds("p256")[0], issuer);
    assert!(error(one(Place::Server, None)).starts_with("an issuer is needed"));
    assert!(error(one(Place::Root, Some((&issuer, &issuer_key)))).starts_with("a root issues itself"));
    assert!(error(one(Place::Client, Some((&issuer, &leaf_key)))).contains("not that of its certificate"));
    let bad = Profile::default()
        .with(Place::Server, &Overrides { alternative_names: vec!["x".into()], ..overrides });
    assert!(error(bad.map(|_| made)).contains("subject_alternative_names: 'x' is not accepted"));
}

#[test]
fn post_quantum_and_old_chains_are_described() {
    for (names, printed, level) in [
        ("mldsa65@mldsa87", "mldsa65@mldsa87", 4),
        ("dsa512@dsa512", "dsa512", 0),
        ("sect163k1@sect283k1", "sect163k1@sect283k1", 1),
    ] {
        let laid = Laid::out(names);
        let whole = laid.file("whole.pem", pems(&laid.issued));
        let criteria = Criteria { security_level: 0, ..criteria(Side::Server) };
        let description = inspect::describe(&whole, Some(&laid.key()), None, None, &criteria).unwrap();
        assert!(description.violations.is_empty(), "{names}: {:?}", description.violations);
        assert_eq!(description.security_level, level, "{names}");
        assert_eq!(description.keys_name.as_deref(), Some(printed));
        let sum: usize = description.certificates[0].parts.iter().map(|part| part.bytes).sum();
        assert_eq!(sum, description.certificates[0].bytes);
    }
}
