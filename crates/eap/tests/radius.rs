//! RADIUS packets: the RFCs' examples, and damaged packets.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use shakedown_eap::radius::{
    AuthenticatorError, BuildError, Builder, MAX_PACKET_BYTES, Packet, PacketError, Secret, add_msk,
    attribute, code, take_msk,
};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// RFC 2865 section 7.1: a request and its response.
const REQUEST: &str =
    "01 00 00 38 0f 40 3f 94 73 97 80 57 bd 83 d5 cb 98 f4 22 7a 01 06 6e 65 6d 6f 02 12 0d be 70 8d
    93 d4 13 ce 31 96 e4 3f 78 2a 0a ee 04 06 c0 a8 01 10 05 06 00 00 00 03";
const ACCEPT: &str =
    "02 00 00 26 86 fe 22 0e 76 24 ba 2a 10 05 f6 bf 9b 55 e0 b2 06 06 00 00 00 01 0f 06 00 00 00 00
    0e 06 c0 a8 01 03";

/// RFC 5997 section 6.1: a Status-Server with a Message-Authenticator, and the response, which has none.
const STATUS: &str =
    "0c da 00 26 8a 54 f4 68 6f b3 94 c5 28 66 e3 02 18 5d 06 23 50 12 5a 66 5e 2e 1e 84 11 f3 e2 43
    82 20 97 c8 4f a3";
const STATUS_ACCEPT: &str = "02 da 00 14 ef 0d 55 2a 4b f2 d6 93 ec 2b 6f e8 b5 41 1d 66";

#[test]
fn rfc_examples_are_parsed() {
    let request = bytes(REQUEST);
    let packet = Packet::parse(&request).unwrap();
    assert_eq!((packet.code(), packet.identifier()), (code::ACCESS_REQUEST, 0));
    assert_eq!(packet.first(attribute::USER_NAME), Some(&b"nemo"[..]));
    assert_eq!(packet.first(4), Some(&[192, 168, 1, 16][..]));
    assert_eq!(packet.attributes().count(), 4);
    assert_eq!(packet.eap_message(), None);
    let secret = Secret::new("xyzzy5461");
    assert_eq!(secret.check_request(&packet), Err(AuthenticatorError::Missing));
}

#[test]
fn rfc_authenticators_are_verified() {
    let secret = Secret::new("xyzzy5461");
    let status = bytes(STATUS);
    let packet = Packet::parse(&status).unwrap();
    assert_eq!(secret.check_request(&packet), Ok(()));
    assert_eq!(Secret::new("xyzzy5462").check_request(&packet), Err(AuthenticatorError::Message));
    // The builder generates the same packet.
    let built = Builder::new(code::STATUS_SERVER, 0xda).request(&secret, &packet.authenticator());
    assert_eq!(built, status);
    // The responses have no Message-Authenticator.
    for (request, answer) in [(REQUEST, ACCEPT), (STATUS, STATUS_ACCEPT)] {
        let (request, answer) = (bytes(request), bytes(answer));
        let request = Packet::parse(&request).unwrap().authenticator();
        let answer = Packet::parse(&answer).unwrap();
        assert_eq!(secret.check_response(&answer, &request), Err(AuthenticatorError::Missing));
    }
}

#[test]
fn each_kind_of_damage_has_its_error() {
    let good = bytes(REQUEST);
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut packet = good.clone();
        change(&mut packet);
        Packet::parse(&packet).map(drop)
    };
    assert_eq!(with(&|packet| packet.truncate(19)), Err(PacketError::TooShort { bytes: 19 }));
    assert_eq!(with(&|packet| packet.truncate(30)), Err(PacketError::Cut { length: 56, bytes: 30 }));
    assert_eq!(with(&|packet| packet[3] = 19), Err(PacketError::Length { length: 19 }));
    assert_eq!(with(&|packet| packet[2] = 0x11), Err(PacketError::Length { length: 0x1138 }));
    assert_eq!(with(&|packet| packet[21] = 1), Err(PacketError::AttributeHeader { offset: 20 }));
    assert_eq!(with(&|packet| packet[3] = 21), Err(PacketError::AttributeHeader { offset: 20 }));
    assert_eq!(
        with(&|packet| packet[21] = 37),
        Err(PacketError::AttributeLength { offset: 20, length: 37, left: 36 })
    );
    assert_eq!(with(&|packet| packet.extend([1, 2, 3])), Ok(()), "padding is not part of the packet");
}

#[test]
fn oversized_attributes_and_packets_are_refused() {
    let mut builder = Builder::new(code::ACCESS_REQUEST, 1);
    assert_eq!(builder.add(1, &[0; 254]).err(), Some(BuildError::Value { kind: 1, bytes: 254 }));
    builder.add_eap(&[0; 3950]).unwrap();
    assert!(matches!(builder.add(1, &[0; 100]).err(), Some(BuildError::Packet { .. })));
}

#[test]
fn second_message_authenticator_is_refused() {
    let secret = Secret::new("s");
    let mut builder = Builder::new(code::ACCESS_REQUEST, 1);
    builder.add(attribute::MESSAGE_AUTHENTICATOR, &[0; 16]).unwrap();
    let packet = builder.request(&secret, &[7; 16]);
    let repeated = secret.check_request(&Packet::parse(&packet).unwrap());
    assert_eq!(repeated, Err(AuthenticatorError::Repeated));
}

proptest! {
    #[test]
    fn any_datagram_is_parsed_or_refused(datagram in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(packet) = Packet::parse(&datagram) {
            let bytes: usize = packet.attributes().map(|attribute| attribute.value.len() + 2).sum();
            prop_assert_eq!(bytes + 20, packet.as_bytes().len());
            prop_assert!(Secret::new("s").check_request(&packet).is_err());
        }
    }

    #[test]
    fn packet_contains_the_added_attributes(
        eap in proptest::collection::vec(any::<u8>(), 0..3000),
        state in proptest::collection::vec(any::<u8>(), 0..253),
        authenticator: [u8; 16],
    ) {
        let secret = Secret::new("a secret");
        let mut builder = Builder::new(code::ACCESS_REQUEST, 9);
        builder.add_eap(&eap).unwrap().add(attribute::STATE, &state).unwrap();
        let bytes = builder.request(&secret, &authenticator);
        prop_assert!(bytes.len() <= MAX_PACKET_BYTES);
        let packet = Packet::parse(&bytes).unwrap();
        prop_assert_eq!(packet.eap_message().unwrap_or_default(), eap);
        prop_assert_eq!(packet.first(attribute::STATE), Some(&state[..]));
        prop_assert_eq!(secret.check_request(&packet), Ok(()));
    }

    #[test]
    fn altered_response_is_refused(flip in 0_usize..8 * 140, authenticator: [u8; 16]) {
        let secret = Secret::new("a secret");
        let mut builder = Builder::new(code::ACCESS_ACCEPT, 9);
        builder.add_eap(&[3, 1, 0, 4]).unwrap();
        add_msk(&mut builder, &[5; 64], &secret, &authenticator, [1, 2]).unwrap();
        let mut bytes = builder.response(&secret, &authenticator);
        prop_assert_eq!(secret.check_response(&Packet::parse(&bytes).unwrap(), &authenticator), Ok(()));
        let place = flip / 8 % bytes.len();
        bytes[place] ^= 1 << (flip % 8);
        let believed = Packet::parse(&bytes).is_ok_and(|packet| {
            secret.check_response(&packet, &authenticator).is_ok()
        });
        prop_assert!(!believed);
    }

    #[test]
    fn encrypted_keys_are_decrypted_unchanged(halves: [[u8; 32]; 2], salts: [u8; 2], authenticator: [u8; 16]) {
        let secret = Secret::new("a secret");
        let mut msk = [0; 64];
        msk[..32].copy_from_slice(&halves[0]);
        msk[32..].copy_from_slice(&halves[1]);
        let mut builder = Builder::new(code::ACCESS_ACCEPT, 9);
        add_msk(&mut builder, &msk, &secret, &authenticator, salts).unwrap();
        let bytes = builder.response(&secret, &authenticator);
        let packet = Packet::parse(&bytes).unwrap();
        prop_assert_eq!(take_msk(&packet, &secret, &authenticator), Ok(msk));
        prop_assert!(packet.as_bytes().windows(32).all(|window| window != halves[0] && window != halves[1]));
        prop_assert_ne!(take_msk(&packet, &Secret::new("another"), &authenticator), Ok(msk));
    }
}
