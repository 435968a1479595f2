//! Files from untrusted sources: no content may cause a failure other than an error.
#![allow(clippy::unwrap_used)]

mod common;

use common::{NOW, chain, criteria, file, kinds, pem};
use proptest::prelude::*;
use shakedown_pki::credentials::CredentialFile;
use shakedown_pki::inspect::{self, Criteria, Description, InspectError};
use shakedown_pki::{Profile, Store, UserIdentity};
use shakedown_trace::Side;
use std::path::Path;
use std::sync::LazyLock;

static CERTIFICATE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let (profile, _) = Profile::named("style-extended").unwrap();
    chain(&profile, Side::Server, "p256@p256").swap_remove(0).certificate
});

/// The description of a file with these bytes.
fn described(der: &[u8]) -> Result<Description, InspectError> {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "certificate.der", der);
    inspect::describe(&path, None, None, None, &criteria(Side::Server))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn changed_certificates_are_described_or_refused(changes in prop::collection::vec((any::<u16>(), any::<u8>()), 1..4)) {
        let mut bytes = CERTIFICATE.clone();
        for (place, value) in changes {
            let place = usize::from(place) % bytes.len();
            bytes[place] = value;
        }
        if let Ok(description) = described(&bytes) {
            let certificate = &description.certificates[0];
            let sum: usize = certificate.parts.iter().map(|part| part.bytes).sum();
            prop_assert!(certificate.parts.is_empty() || sum == certificate.bytes);
            let values = certificate.extensions.iter().map(|extension| extension.value.clone());
            let shown = [certificate.subject.clone(), certificate.issuer.clone()].into_iter().chain(values);
            prop_assert!(shown.into_iter().all(|text| !text.contains(char::is_control)));
        }
    }

    #[test]
    fn noise_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(CredentialFile::read(&bytes, Path::new("x"), None).is_err());
    }

    #[test]
    fn pem_of_noise_is_refused(label in "[A-Z ]{0,20}", text in "[ -~\n]{0,200}") {
        let pem = format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n");
        prop_assert!(CredentialFile::read(pem.as_bytes(), Path::new("x"), None).is_err());
    }
}

#[test]
fn truncated_certificate_is_refused() {
    for length in 0..CERTIFICATE.len() {
        let result = CredentialFile::read(&CERTIFICATE[..length], Path::new("x"), None);
        assert!(result.is_err(), "{length} bytes of {} were read", CERTIFICATE.len());
    }
}

#[test]
fn endless_files_and_folders_are_refused() {
    let error = UserIdentity::load(Path::new("/dev/zero"), None, None, None, NOW).unwrap_err().to_string();
    assert!(error.contains("/dev/zero: larger than 16 MiB"), "{error}");
    let error = UserIdentity::load(Path::new("/"), None, None, None, NOW).unwrap_err().to_string();
    assert!(error.starts_with("/: Is a directory"), "{error}");
}

#[test]
fn control_characters_in_names_are_escaped() {
    let profile = Profile::default();
    let overrides = shakedown_pki::issue::Overrides {
        common_name: Some("a\u{1b}[31mred\n".into()),
        ..Default::default()
    };
    let profile = profile.with(shakedown_pki::issue::Place::Root, &overrides).unwrap();
    let issued = chain(&profile, Side::Server, "p256@p256");
    let description = described(&issued[1].certificate).unwrap();
    assert_eq!(description.certificates[0].subject, "O=Shakedown Laboratory, CN=a\\u{1b}[31mred\\n");
}

/// Asserts that the error for a file beyond a limit is one line that names the file and what is accepted.
fn in_one_line(message: &str, wanted: &str) {
    assert!(message.contains(wanted) && message.contains("accepted: "), "{message}");
    assert!(!message.contains(char::is_control) && message.len() < 500, "{} bytes: {message}", message.len());
}

#[test]
fn oversized_profiles_are_refused_in_one_line() {
    let lab = include_str!("../profiles/lab.toml");
    let load = |path: &Path| Profile::load(path).unwrap_err().to_string();
    in_one_line(&load(Path::new("/dev/zero")), "/dev/zero: larger than 1024 KiB");
    let folder = tempfile::tempdir().unwrap();
    let large = file(folder.path(), "large.toml", format!("{lab}#{}", " ".repeat(1 << 20)));
    in_one_line(&load(&large), "large.toml: larger than 1024 KiB");
    let value = |from: &str, to: &str| {
        Profile::parse(&lab.replacen(from, to, 1), "mine.toml").unwrap_err().to_string()
    };
    in_one_line(
        &value("not_before = \"2020-01-01\"", "not_before = \"2020\\n01\""),
        "'2020\\n01' is not accepted",
    );
    in_one_line(&value("2020-01-01", &"9".repeat(5000)), "not_before: '999");
    // Ten thousand days later is after the last date of the calendar.
    in_one_line(&value("2020-01-01", "9990-01-01"), "days: '10950' is not accepted");
    // A number of 5,000 digits, lists in lists, tables in tables.
    let number = value("days = 10950", &format!("days = {}", "9".repeat(5000)));
    assert!(number.starts_with("certificate profile mine.toml line 7: "), "{number}");
    assert!(!number.contains(char::is_control) && number.len() < 500, "{number}");
    let lists = format!("days = {}{}", "[".repeat(20_000), "]".repeat(20_000));
    let tables = "a.".repeat(20_000) + "b = 1\ndays = 1";
    for deep in [lists, tables] {
        in_one_line(&value("days = 10950", &deep), "nested too deep");
    }
}

#[test]
fn files_with_very_many_blocks_are_refused_quickly() {
    let read =
        |bytes: &[u8]| CredentialFile::read(bytes, Path::new("x"), None).err().map(|error| error.to_string());
    // 600,000 blocks without an end: scanning the rest of the text for each would read terabytes.
    let begun = "-----BEGIN X-----\n".repeat(600_000);
    in_one_line(&read(begun.as_bytes()).unwrap(), "x: holds more than 1000 certificates or other blocks");
    let certificate = pem(&CERTIFICATE);
    in_one_line(&read(&certificate.repeat(1001)).unwrap(), "x: holds more than 1000");
    in_one_line(&read(&CERTIFICATE.repeat(1001)).unwrap(), "x: holds more than 1000");
    assert_eq!(read(&certificate.repeat(1000)), None);
}

#[test]
fn unterminated_block_is_reported_with_its_line() {
    let text = format!(
        "first\n\n-----BEGIN CERTIFICATE-----\nAAAA\n{}",
        String::from_utf8_lossy(&pem(&CERTIFICATE))
    );
    let message =
        CredentialFile::read(text.as_bytes(), Path::new("x"), None).err().map(|error| error.to_string());
    assert!(
        message.as_ref().is_some_and(|text| text.contains("certificate 1 (line 3) is unreadable")),
        "{message:?}"
    );
}

#[test]
fn chains_that_are_too_long_are_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "chain.pem", pem(&CERTIFICATE).repeat(101));
    let error = UserIdentity::load(&path, None, None, None, NOW).unwrap_err().to_string();
    in_one_line(&error, "chain.pem: a chain of 101 certificates; accepted: at most 100");
}

#[test]
fn times_beyond_the_calendar_are_refused_in_one_line() {
    let store = tempfile::tempdir().unwrap();
    for now in [i64::MIN, i64::MAX] {
        let wanted = format!("{now} is no time to validate certificates at");
        let keys = kinds("p256@p256");
        let made = Store::open(store.path()).identity(&keys, Side::Server, &Profile::default(), now);
        in_one_line(&made.unwrap_err().to_string(), &wanted);
        let loaded = UserIdentity::load(Path::new("x"), None, None, None, now);
        in_one_line(&loaded.unwrap_err().to_string(), &wanted);
        let criteria = Criteria { now_unix_s: now, ..criteria(Side::Server) };
        let described = inspect::describe(Path::new("x"), None, None, None, &criteria);
        in_one_line(&described.unwrap_err().to_string(), &wanted);
    }
}

/// A cached file is regenerated if it was replaced by an endless device or a key of megabytes.
#[test]
fn endless_cached_file_is_regenerated() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path());
    let keys = kinds("p256@p256");
    let identity = |store: &Store| store.identity(&keys, Side::Server, &Profile::default(), NOW).unwrap();
    identity(&store);
    let key = folder.path().join("keys-1/server-0-p256.pem");
    std::fs::remove_file(&key).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &key).unwrap();
    identity(&store);
    assert!(store.take_notices().iter().any(|notice| notice.contains("too large; regenerated")));
    assert!(!std::fs::symlink_metadata(&key).unwrap().is_symlink());
}
