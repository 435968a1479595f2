//! Files from strangers: anything may be in them, and nothing may fall over.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{NOW, chain, judge};
use proptest::prelude::*;
use shakedown_pki::inspect;
use shakedown_pki::material::Material;
use shakedown_pki::{Profile, UserIdentity};
use shakedown_trace::Side;
use std::path::Path;
use std::sync::LazyLock;

static CERTIFICATE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let (profile, _) = Profile::named("style-extended").unwrap();
    chain(&profile, Side::Server, "p256@p256").swap_remove(0).certificate
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn changed_certificates_are_described_or_refused(changes in prop::collection::vec((any::<u16>(), any::<u8>()), 1..4)) {
        let mut bytes = CERTIFICATE.clone();
        for (place, value) in changes {
            let place = usize::from(place) % bytes.len();
            bytes[place] = value;
        }
        if let Ok(description) = inspect::describe_der(&[bytes], Path::new("x"), &judge(Side::Server)) {
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
        prop_assert!(Material::read(&bytes, Path::new("x"), None).is_err());
    }

    #[test]
    fn pem_of_noise_is_refused(label in "[A-Z ]{0,20}", text in "[ -~\n]{0,200}") {
        let pem = format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n");
        prop_assert!(Material::read(pem.as_bytes(), Path::new("x"), None).is_err());
    }
}

#[test]
fn a_certificate_cut_anywhere_is_refused() {
    for length in 0..CERTIFICATE.len() {
        let result = Material::read(&CERTIFICATE[..length], Path::new("x"), None);
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
fn names_cannot_write_on_the_terminal() {
    let profile = Profile::default();
    let wishes =
        shakedown_pki::issue::Wishes { common_name: Some("a\u{1b}[31mred\n".into()), ..Default::default() };
    let profile = profile.with(shakedown_pki::issue::Place::Root, &wishes).unwrap();
    let issued = chain(&profile, Side::Server, "p256@p256");
    let description =
        inspect::describe_der(&[issued[1].certificate.clone()], Path::new("x"), &judge(Side::Server))
            .unwrap();
    assert_eq!(description.certificates[0].subject, "O=Shakedown Laboratory, CN=a\\u{1b}[31mred\\n");
}
