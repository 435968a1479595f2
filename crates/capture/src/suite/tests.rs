#![allow(clippy::unwrap_used)]

use super::*;
use crate::message::Mark;
use crate::tls::ServerHello;

fn negotiated(version: u16, cipher_suite: u16) -> Negotiation {
    let hello = ServerHello { version, cipher_suite, ..ServerHello::default() };
    Negotiation { client: Some(0), server_hello: Some(hello), ..Negotiation::default() }
}

fn name(negotiation: &Negotiation, seen: &[Seen]) -> Option<String> {
    tls_suite(negotiation, seen, 0, Some(false)).map(|suite| suite.to_string())
}

/// What a Certificate message of TLS 1.2 with these certificates shows.
#[cfg(feature = "decrypt")]
fn certificate_message(ders: &[Vec<u8>]) -> Shown {
    let three = |length: usize| [(length >> 16) as u8, (length >> 8) as u8, length as u8];
    let list: Vec<u8> = ders.iter().flat_map(|der| [&three(der.len())[..], der].concat()).collect();
    Shown::read(&[&three(list.len())[..], &list].concat(), false)
}

#[cfg(feature = "decrypt")]
fn self_signed(key: &openssl::pkey::PKey<openssl::pkey::Private>) -> Vec<u8> {
    let mut name = openssl::x509::X509Name::builder().unwrap();
    name.append_entry_by_text("CN", "someone").unwrap();
    let name = name.build();
    let mut builder = openssl::x509::X509::builder().unwrap();
    builder.set_subject_name(&name).unwrap();
    builder.set_issuer_name(&name).unwrap();
    builder.set_pubkey(key).unwrap();
    builder.set_not_before(&openssl::asn1::Asn1Time::days_from_now(0).unwrap()).unwrap();
    builder.set_not_after(&openssl::asn1::Asn1Time::days_from_now(9).unwrap()).unwrap();
    builder.sign(key, openssl::hash::MessageDigest::sha256()).unwrap();
    builder.build().to_der().unwrap()
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
fn group_is_told_by_its_prime() {
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
    negotiation.shown[1] = Some(certificate_message(std::slice::from_ref(&rsa)));
    assert_eq!(name(&negotiation, &[]).as_deref(), Some("tls1.2/rsa/rsa1024/server"));
    let mut negotiation = negotiated(0x0303, 0xc02b);
    negotiation.note_key_exchange(&[3, 0, 29]);
    negotiation.shown[1] = Some(certificate_message(std::slice::from_ref(&curve)));
    assert_eq!(name(&negotiation, &[]).as_deref(), Some("tls1.2/ecdhe_ecdsa+x25519/p384/server"));
    // Asked for a certificate, the client shows none, then one of the same kind, then another's.
    let request = Seen {
        direction: 1,
        name: Name::Known(MessageName::CertificateRequest),
        bytes: 1,
        start: Mark::default(),
        end: Mark::default(),
        end_offset: 0,
        after_handshake: false,
    };
    negotiation.shown[0] = Some(certificate_message(&[]));
    assert_eq!(name(&negotiation, &[request]).as_deref(), Some("tls1.2/ecdhe_ecdsa+x25519/p384/requested"));
    negotiation.shown[0] = Some(certificate_message(&[curve]));
    assert_eq!(name(&negotiation, &[request]).as_deref(), Some("tls1.2/ecdhe_ecdsa+x25519/p384/mutual"));
    negotiation.shown[0] = Some(certificate_message(&[rsa]));
    assert_eq!(name(&negotiation, &[request]), None);
}

#[test]
fn resumption_shows_too_little_before_1_3() {
    assert_eq!(tls_suite(&negotiated(0x0303, 0x009c), &[], 0, Some(true)), None);
    let mut modern = negotiated(0x0304, 0x1301);
    if let Some(hello) = &mut modern.server_hello {
        hello.pre_shared_key = true;
        hello.group = Some(29);
    }
    let suite = tls_suite(&modern, &[], 0, Some(true)).unwrap();
    assert_eq!(suite.to_string(), "tls1.3/psk_dhe+x25519");
}
