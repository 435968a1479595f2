#![allow(clippy::unwrap_used)]

use super::*;
#[cfg(feature = "decrypt")]
use crate::message::Span;
use crate::tls::ServerHello;

fn negotiated(version: u16, cipher_suite: u16) -> Negotiation {
    let hello = ServerHello { version, cipher_suite, ..ServerHello::default() };
    Negotiation { client: Some(0), server_hello: Some(hello), ..Negotiation::default() }
}

fn name(negotiation: &Negotiation, seen: &[Seen]) -> Option<String> {
    tls_suite(negotiation, seen, 0, Some(false)).map(|found| found.suite.to_string())
}

/// The content of a TLS 1.2 Certificate message with these certificates.
#[cfg(feature = "decrypt")]
fn certificate_message(ders: &[Vec<u8>]) -> Presented {
    let three = |length: usize| [(length >> 16) as u8, (length >> 8) as u8, length as u8];
    let list: Vec<u8> = ders.iter().flat_map(|der| [&three(der.len())[..], der].concat()).collect();
    Presented::read(&[&three(list.len())[..], &list].concat(), false)
}

#[cfg(feature = "decrypt")]
type Key = openssl::pkey::PKey<openssl::pkey::Private>;

#[cfg(feature = "decrypt")]
fn self_signed(key: &Key) -> Vec<u8> {
    signed(key, "someone", key)
}

/// A certificate for `key`, signed by the key `by` of `issuer`.
#[cfg(feature = "decrypt")]
fn signed(key: &Key, issuer: &str, by: &Key) -> Vec<u8> {
    let name = |text| {
        let mut name = openssl::x509::X509Name::builder().unwrap();
        name.append_entry_by_text("CN", text).unwrap();
        name.build()
    };
    let mut builder = openssl::x509::X509::builder().unwrap();
    builder.set_subject_name(&name("someone")).unwrap();
    builder.set_issuer_name(&name(issuer)).unwrap();
    builder.set_pubkey(key).unwrap();
    builder.set_not_before(&openssl::asn1::Asn1Time::days_from_now(0).unwrap()).unwrap();
    builder.set_not_after(&openssl::asn1::Asn1Time::days_from_now(9).unwrap()).unwrap();
    builder.sign(by, openssl::hash::MessageDigest::sha256()).unwrap();
    builder.build().to_der().unwrap()
}

#[cfg(feature = "decrypt")]
fn curve_key(name: &str) -> Key {
    let nid = openssl_nid(Curve::from_name(name).unwrap());
    let mut group = openssl::ec::EcGroup::from_curve_name(nid).unwrap();
    group.set_asn1_flag(openssl::ec::Asn1Flag::NAMED_CURVE);
    Key::from_ec_key(openssl::ec::EcKey::generate(&group).unwrap()).unwrap()
}

#[cfg(feature = "decrypt")]
fn openssl_nid(curve: Curve) -> openssl::nid::Nid {
    openssl::asn1::Asn1Object::from_str(curve.openssl_name()).unwrap().nid()
}

#[cfg(feature = "decrypt")]
fn rsa_key(bits: u32, exponent: u32) -> Key {
    let exponent = openssl::bn::BigNum::from_u32(exponent).unwrap();
    Key::from_rsa(openssl::rsa::Rsa::generate_with_e(bits, &exponent).unwrap()).unwrap()
}

#[test]
fn suites_without_certificates_need_none() {
    assert_eq!(name(&negotiated(0x0303, 0x00a8), &[]).as_deref(), Some("tls1.2/psk"));
    let mut anonymous = negotiated(0x0302, 0xc018);
    assert_eq!(name(&anonymous, &[]), None);
    anonymous.note_key_exchange(&[3, 0, 23, 1, 4]);
    assert_eq!(name(&anonymous, &[]).as_deref(), Some("tls1.1/ecdh_anon+p256/aes128-sha"));
}

#[test]
fn group_is_identified_by_its_prime() {
    for (start, bits, expected) in [
        (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xad, 0xf8, 0x54, 0x58][..], 2048, "ffdhe2048"),
        (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xc9, 0x0f, 0xda, 0xa2], 3072, "ffdhe3072"),
        (&[0xc1, 2, 3], 1024, "dh1024"),
    ] {
        let mut prime = start.to_vec();
        prime.resize(bits / 8, 7);
        let mut body = vec![0, 0];
        body.extend_from_slice(&((bits / 8) as u16).to_be_bytes());
        body.extend_from_slice(&prime);
        let mut negotiation = negotiated(0x0303, 0x00aa);
        negotiation.note_key_exchange(&body);
        assert_eq!(name(&negotiation, &[]), Some(format!("tls1.2/dhe_psk+{expected}")));
    }
}

#[cfg(feature = "decrypt")]
#[test]
fn keys_are_read_from_certificates() {
    use openssl::{ec, nid, pkey::PKey, rsa};
    let rsa = self_signed(&PKey::from_rsa(rsa::Rsa::generate(1024).unwrap()).unwrap());
    let group = ec::EcGroup::from_curve_name(nid::Nid::SECP384R1).unwrap();
    let curve = self_signed(&PKey::from_ec_key(ec::EcKey::generate(&group).unwrap()).unwrap());
    let mut negotiation = negotiated(0x0303, 0x009c);
    negotiation.presented[1] = Some(certificate_message(std::slice::from_ref(&rsa)));
    assert_eq!(name(&negotiation, &[]).as_deref(), Some("tls1.2/rsa/rsa1024/server"));
    let mut negotiation = negotiated(0x0303, 0xc02b);
    negotiation.note_key_exchange(&[3, 0, 29]);
    negotiation.presented[1] = Some(certificate_message(std::slice::from_ref(&curve)));
    assert_eq!(name(&negotiation, &[]).as_deref(), Some("tls1.2/ecdhe_ecdsa+x25519/p384/server"));
    // The client presents no certificate, then one with the same kind of key, then one with another kind.
    let request = Seen {
        direction: 1,
        name: Name::Known(MessageName::CertificateRequest),
        bytes: 1,
        span: Span::default(),
        after_handshake: false,
    };
    negotiation.presented[0] = Some(certificate_message(&[]));
    assert_eq!(name(&negotiation, &[request]).as_deref(), Some("tls1.2/ecdhe_ecdsa+x25519/p384/requested"));
    negotiation.presented[0] = Some(certificate_message(&[curve]));
    assert_eq!(name(&negotiation, &[request]).as_deref(), Some("tls1.2/ecdhe_ecdsa+x25519/p384/mutual"));
    negotiation.presented[0] = Some(certificate_message(&[rsa]));
    assert_eq!(name(&negotiation, &[request]), None);
}

#[test]
fn resumed_handshakes_have_no_suite_before_tls_1_3() {
    assert!(tls_suite(&negotiated(0x0303, 0x009c), &[], 0, Some(true)).is_none());
    let mut modern = negotiated(0x0304, 0x1301);
    if let Some(hello) = &mut modern.server_hello {
        hello.pre_shared_key = true;
        hello.group = Some(29);
    }
    let found = tls_suite(&modern, &[], 0, Some(true)).unwrap();
    assert_eq!(found.suite.to_string(), "tls1.3/psk_dhe+x25519");
}

#[cfg(feature = "decrypt")]
#[test]
fn every_curve_is_read_from_its_certificate() {
    for curve in Curve::all() {
        let der = self_signed(&curve_key(curve.name()));
        for family in [root::ProtocolFamily::Tls, root::ProtocolFamily::Wtls] {
            let chain = certificate::describe(&[&der], family).unwrap();
            assert_eq!((chain.keys(), chain.remark()), (format!("{0}@{0}", curve.name()), None));
        }
        let group = openssl::ec::EcGroup::from_curve_name(openssl_nid(curve)).unwrap();
        let mut order = openssl::bn::BigNum::new().unwrap();
        group.order(&mut order, &mut openssl::bn::BigNumContext::new().unwrap()).unwrap();
        let next = order.to_vec().iter().take(2).fold(0_u32, |all, &byte| all << 8 | u32::from(byte));
        // An order just above a power of two has one more bit than the numbers below it.
        let excess = i32::from(next.is_power_of_two());
        assert_eq!(root::order_bits(curve) as i32, order.num_bits() - excess, "{}", curve.name());
    }
}

#[cfg(feature = "decrypt")]
#[test]
fn unseen_root_is_marked_uncertain_if_ambiguous() {
    use root::ProtocolFamily::{Tls, Wtls};
    let found = |family, key: &Key, root: &Key| {
        let chain = certificate::describe(&[&signed(key, "another", root)], family).unwrap();
        (chain.keys(), chain.remark().unwrap_or_default())
    };
    let curves = |family, leaf: &str, root: &str| found(family, &curve_key(leaf), &curve_key(root));
    // The usual ones.
    for (leaf, root) in [("p256", "p256"), ("p256", "p384"), ("sect283k1", "p521"), ("p224", "p224")] {
        assert_eq!(curves(Tls, leaf, root), (format!("{leaf}@{root}"), String::new()));
    }
    assert_eq!(curves(Tls, "p384", "secp256k1"), ("p384@p256".to_owned(), String::new()));
    let (keys, remark) = curves(Tls, "secp256k1", "p256");
    assert_eq!(keys, "secp256k1@secp256k1");
    assert_eq!(
        remark,
        "the root's curve is not visible; assumed: secp256k1, possible: p256 or brainpoolp256r1"
    );
    let (keys, remark) = curves(Wtls, "163k", "163r");
    assert_eq!(keys, "sect163k1@163k");
    let (_, others) = remark.split_once("; assumed: 163k, possible: ").unwrap();
    assert!(others.contains("163r or wtls5") || others.contains("160p"), "{others}");
    for _ in 0..20 {
        let (keys, remark) = curves(Wtls, "163k", "160p");
        assert_eq!(keys, "sect163k1@163k");
        assert!(remark.contains("160p"), "{remark}");
        // Without leading zeros, which occur once in 16,000 signatures.
        assert_eq!(curves(Wtls, "233k", "224p").0, "sect233k1@224p");
    }
    assert_eq!(found(Wtls, &curve_key("256p"), &curve_key("256p")), ("p256@256p".to_owned(), String::new()));
    let (usual, small) = (rsa_key(1024, 65537), rsa_key(1024, 3));
    assert_eq!(found(Tls, &usual, &usual), ("rsa1024@rsa1024".to_owned(), String::new()));
    assert_eq!(
        found(Tls, &small, &usual),
        (
            "rsa1024e3@rsa1024e3".to_owned(),
            "the exponent of the root's key is not visible; assumed: 3, possible: 65537".to_owned()
        )
    );
}

#[cfg(feature = "decrypt")]
#[test]
fn root_is_inferred_from_the_chains_of_both_sides() {
    let (leaf, root, other) = (curve_key("160p"), curve_key("160p"), curve_key("p384"));
    let describe = |chain: &[&[u8]]| certificate::describe(chain, root::ProtocolFamily::Wtls).unwrap();
    let authority = signed(&root, "someone", &root);
    let (lone, whole) = (signed(&leaf, "another", &root), [signed(&leaf, "another", &root), authority]);
    let (lone, whole) = (describe(&[&lone]), describe(&[&whole[0], &whole[1]]));
    for (one, another) in [(&lone, &whole), (&whole, &lone)] {
        let shared = one.clone().shared(another).unwrap();
        assert_eq!((shared.keys(), shared.remark()), ("secp160r1@secp160r1".to_owned(), None));
    }
    assert!(lone.remark().is_some());
    let elsewhere = signed(&leaf, "another", &curve_key("256p"));
    assert_eq!(lone.clone().shared(&describe(&[&elsewhere])), None);
    assert_eq!(lone.shared(&describe(&[&signed(&other, "another", &root)])), None);
}

#[test]
fn root_named_by_the_client_is_used() {
    let curve = |name| Curve::from_name(name).unwrap();
    let root = root::Root::of_ecdsa(root::ProtocolFamily::Wtls, 160, |_| true).unwrap();
    let mut chain = root::Chain::new(vec!["163k".to_owned()], root);
    assert_eq!(chain.keys(), "163k@163k");
    chain.prefer(&[curve("256p"), curve("160p")]);
    assert_eq!(chain.keys(), "163k@160p");
    let remark = chain.remark().unwrap();
    assert!(remark.contains("assumed: 160p, possible: wtls9, 163k, 163r or wtls5"), "{remark}");
    chain.prefer(&[curve("163r"), curve("160p")]);
    assert_eq!(chain.keys(), "163k@163k");
}

#[test]
fn only_the_value_three_is_exponent_three() {
    for (exponent, expected) in [
        (&[3][..], "rsa1024e3"),
        (&[0, 3], "rsa1024e3"),
        (&[1, 0, 1], "rsa1024"),
        (&[0xff, 1, 3], "rsa1024"),
        (&[], "rsa1024"),
    ] {
        let modulus = [&[0, 0x80][..], &[7; 127]].concat();
        assert_eq!(certificate::rsa_name(&modulus, exponent), expected);
    }
}
