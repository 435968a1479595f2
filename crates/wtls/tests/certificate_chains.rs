//! Reasons to reject a chain of WTLS certificates, and the alerts that report them.

#![allow(clippy::unwrap_used)]

mod support;

use shakedown_wtls::certificate::*;
use shakedown_wtls::crypto::CryptoError;
use shakedown_wtls::message::{CertificateEntry, CertificateList};
use shakedown_wtls::*;
use std::sync::Arc;
use support::*;

const EC: Kind = Kind::Ec(Curve::Secp160r1);

fn policy(kind: Kind) -> ChainPolicy<'static> {
    let family = match kind {
        Kind::Rsa(_) => KeyExchangeFamily::Rsa,
        Kind::Ec(_) => KeyExchangeFamily::EcdhEcdsa,
    };
    ChainPolicy { holder: Holder::Server, family, now_unix_s: NOW_UNIX_S, private_curves: false, name: None }
}

fn verify(chain: &[Certificate], chain_of: &Chain, policy: &ChainPolicy<'_>) -> Result<(), CertificateError> {
    let chain: Vec<ChainCertificate> = chain.iter().cloned().map(Into::into).collect();
    verify_chain(&*PROVIDER, &chain, &[chain_of.anchor()], policy).map(drop)
}

/// A certificate with one changed field and a valid signature.
fn issued(issuer: (&str, Kind, usize), leaf: Kind, change: impl FnOnce(&mut Subject)) -> Certificate {
    let (name, kind, index) = issuer;
    let key = private_key(leaf, 500);
    let mut subject = subject("odd; Test; US; odd.test", certified(&key, leaf, true, false));
    change(&mut subject);
    let issuer = Issuer { name: &Identifier::text(name), key: &private_key(kind, index) };
    issue(&*PROVIDER, &issuer, subject, &mut random()).unwrap()
}

#[test]
fn chains_of_any_depth_verify() {
    for kind in [Kind::Rsa(1024), EC] {
        for depth in 1..=6 {
            let chain = Chain::new("deep", &vec![kind; depth + 1], 3, false);
            assert_eq!(chain.certificates.len(), depth);
            verify(&chain.certificates, &chain, &policy(kind)).unwrap();
            // The root itself may be sent too; it is ignored.
            let with_root = [&chain.certificates[..], std::slice::from_ref(&chain.root)].concat();
            verify(&with_root, &chain, &policy(kind)).unwrap();
        }
    }
}

#[test]
fn missing_or_misplaced_certificate_is_an_unknown_issuer() {
    let chain = Chain::new("gap", &[EC; 4], 3, false);
    let [leaf, lower, upper] = [0, 1, 2].map(|index| chain.certificates[index].clone());
    let unknown = |links: &[&Certificate]| {
        let links: Vec<_> = links.iter().map(|link| (*link).clone()).collect();
        let error = verify(&links, &chain, &policy(EC)).unwrap_err();
        assert!(matches!(error, CertificateError::UnknownIssuer { .. }), "{error}");
    };
    unknown(&[&leaf]);
    unknown(&[&leaf, &upper]);
    unknown(&[&leaf, &lower]);
    unknown(&[&leaf, &upper, &lower]);
    assert_eq!(verify(&[], &chain, &policy(EC)), Err(CertificateError::Missing));
    // The chain begins with an intermediate, whose key is not for key agreement.
    let error = verify(&[lower, upper], &chain, &policy(EC)).unwrap_err();
    assert!(matches!(error, CertificateError::Unsuitable { .. }), "{error}");
}

#[test]
fn certificates_are_refused_outside_their_validity() {
    for kind in [Kind::Rsa(1024), EC] {
        let chain = Chain::new("brief", &[kind; 3], 3, false);
        let (from, to) = (NOW_UNIX_S - 1000, NOW_UNIX_S + 100_000_000);
        for (now_unix_s, holds) in [(from - 1, false), (from, true), (to, true), (to + 1, false)] {
            let found = verify(&chain.certificates, &chain, &ChainPolicy { now_unix_s, ..policy(kind) });
            match found {
                Ok(()) => assert!(holds),
                Err(CertificateError::NotValidNow { now_unix_s: reported, .. }) => {
                    assert!(!holds);
                    assert_eq!(reported, now_unix_s);
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
}

#[test]
fn intermediates_must_be_authorities() {
    let root = Chain::new("marked", &[EC, EC], 3, false);
    let root_name = ("marked root; Test; US", EC, 399);
    // A genuine leaf of the root issues a certificate as if it were an authority.
    let key = private_key(EC, 500);
    let impostor = issued(root_name, EC, |subject| {
        subject.public_key = certified(&key, EC, false, false);
    });
    let victim = issued(("odd; Test; US; odd.test", EC, 500), EC, |subject| {
        subject.name = Identifier::text("victim; Test; US; bank.test");
    });
    let chain = [victim, impostor];
    let error = verify(&chain, &root, &policy(EC)).unwrap_err();
    assert!(
        matches!(&error, CertificateError::NotAuthority { subject } if subject.starts_with("odd")),
        "{error}"
    );
}

#[test]
fn keys_and_signatures_must_fit_the_key_exchange() {
    let rsa = Chain::new("mixed", &[Kind::Rsa(1024); 2], 3, false);
    let ec = Chain::new("mixed", &[EC; 2], 4, false);
    for (chain, other) in [(&rsa, EC), (&ec, Kind::Rsa(1024))] {
        let error = verify(&chain.certificates, chain, &policy(other)).unwrap_err();
        assert!(matches!(error, CertificateError::Unsuitable { .. }), "{error}");
    }
    // An EC key signed with RSA, and an RSA key signed with ECDSA.
    let by_rsa = issued(("mixed root; Test; US", Kind::Rsa(1024), 399), EC, |_| {});
    let by_ec = issued(("mixed root; Test; US", EC, 499), Kind::Rsa(1024), |_| {});
    for (certificate, chain, kind) in [(by_rsa, &rsa, EC), (by_ec, &ec, Kind::Rsa(1024))] {
        let error = verify(&[certificate], chain, &policy(kind)).unwrap_err();
        assert!(matches!(error, CertificateError::Unsuitable { .. }), "{error}");
    }
}

#[test]
fn other_root_with_the_same_name_is_refused() {
    for kind in [Kind::Rsa(1024), EC] {
        let (trusted, namesake) =
            (Chain::new("same", &[kind; 2], 3, false), Chain::new("same", &[kind; 2], 4, false));
        let error = verify(&namesake.certificates, &trusted, &policy(kind)).unwrap_err();
        assert_eq!(error, CertificateError::Crypto(CryptoError::BadSignature));
        // If both are trusted, the right one is found.
        let chain: Vec<ChainCertificate> = namesake.certificates.into_iter().map(Into::into).collect();
        let anchors = [trusted.anchor(), Chain::new("same", &[kind; 2], 4, false).anchor()];
        verify_chain(&*PROVIDER, &chain, &anchors, &policy(kind)).unwrap();
    }
}

#[test]
fn any_changed_byte_is_refused() {
    for kind in [Kind::Rsa(1024), EC] {
        let chain = Chain::new("bytes", &[kind; 3], 3, false);
        for (place, certificate) in chain.certificates.iter().enumerate() {
            for at in 0..certificate.as_bytes().len() {
                let mut bytes = certificate.as_bytes().to_vec();
                bytes[at] ^= 0x10;
                let Ok(changed) = <Certificate as codec::Codec>::from_bytes("Certificate", &bytes) else {
                    continue;
                };
                let mut certificates = chain.certificates.clone();
                certificates[place] = changed;
                let found = verify(&certificates, &chain, &policy(kind));
                assert!(found.is_err(), "byte {at} of certificate {place}, {kind:?}");
            }
        }
    }
}

#[test]
fn server_must_have_the_expected_name() {
    let chain = Chain::new("gw", &[EC; 2], 3, false);
    let named = |name| verify(&chain.certificates, &chain, &ChainPolicy { name: Some(name), ..policy(EC) });
    named("gw.test").unwrap();
    let error = named("gw").unwrap_err();
    assert_eq!(error.to_string(), r#"the certificate names "gw.test", wanted is "gw""#);
}

/// Runs a full handshake in which the server presents `entries`; returns the client's error and alert.
fn presented(entries: Vec<CertificateEntry>) -> Option<(String, AlertDescription)> {
    let (client, server) = certified_pair(&[EC; 2], ClientAuthentication::None, false, false);
    let mut pair = Pair::new(&Arc::new(client), &Arc::new(server), None, 1);
    let hello = pair.client.poll_transmit().unwrap();
    pair.deliver_to_server(&hello);
    let flight = pair.server.poll_transmit().unwrap();
    let list = CertificateList(entries);
    let mut records = Vec::new();
    for record in record::Records::new(&flight).flatten() {
        let mut raw = record.raw.to_vec();
        if record.fragment[0] == HandshakeType::Certificate.number() {
            let body = codec::Codec::to_bytes(&list).unwrap();
            let length = |bytes: usize| u16::try_from(bytes).unwrap().to_be_bytes();
            let header = [raw[0], raw[1], raw[2]];
            raw = [&header[..], &length(body.len() + 3), &[record.fragment[0]], &length(body.len()), &body]
                .concat();
        }
        records.extend(raw);
    }
    pair.deliver_to_client(&records);
    let error = rejected(&pair.client_events)?;
    let alert = error.alert();
    assert!(pair.client_events.contains(&Event::AlertSent(alert)));
    Some((error.to_string(), alert.description))
}

#[test]
fn each_certificate_error_has_its_alert() {
    use AlertDescription as D;
    let good = Chain::new("server", &[EC; 2], 1, false).certificates[0].clone();
    assert_eq!(presented(vec![CertificateEntry::Wtls(good.clone())]), None);
    let root = ("server root; Test; US", EC, 199);
    let entry = |certificate| vec![CertificateEntry::Wtls(certificate)];
    let expired = issued(root, EC, |subject| subject.valid_not_after_unix_s = NOW_UNIX_S as u32 - 1);
    let unknown_issuer = issued(("stranger; Test; US", EC, 7), EC, |_| {});
    let forged = issued(("server root; Test; US", EC, 7), EC, |_| {});
    let unknown_curve = issued(root, EC, |subject| {
        let CertifiedKey::Ecdh(point) = &mut subject.public_key else { panic!() };
        point.parameters = ParameterSpecifier::Index(200);
    });
    let off_the_curve = issued(root, EC, |subject| {
        let CertifiedKey::Ecdh(point) = &mut subject.public_key else { panic!() };
        point.point = vec![4; 41];
    });
    let other_curve = issued(root, Kind::Ec(Curve::Sect163k1), |_| {});
    let cases = [
        (vec![], "there is no certificate", D::BadCertificate),
        (entry(expired), "is valid from", D::CertificateExpired),
        (entry(unknown_issuer), "who issued the certificate", D::UnknownCa),
        (entry(forged), "the signature does not verify", D::BadCertificate),
        (entry(unknown_curve), "parameter index 200", D::UnknownParameterIndex),
        (entry(off_the_curve), "the public key is not valid", D::BadCertificate),
        (entry(other_curve), "chose a curve that was not offered", D::IllegalParameter),
        (vec![CertificateEntry::X968(vec![1, 2])], "of this format", D::UnsupportedCertificate),
        (vec![CertificateEntry::Url(b"http://a".to_vec())], "of this format", D::UnsupportedCertificate),
        (vec![CertificateEntry::X509(vec![0x30, 0])], "not an X.509 certificate in DER", D::BadCertificate),
    ];
    for (entries, words, alert) in cases {
        let (message, sent) = presented(entries).unwrap();
        assert!(message.contains(words), "{message}");
        assert_eq!(sent, alert, "{message}");
    }
}
