#![no_main]
//! Every handshake message: a parsed message is encoded to the same bytes.

use libfuzzer_sys::fuzz_target;
use shakedown_wtls::codec::{Codec, Writer};
use shakedown_wtls::message::*;
use shakedown_wtls::{AlertMessage, HandshakeType, KeyExchangeFamily};

const FAMILIES: [KeyExchangeFamily; 7] = [
    KeyExchangeFamily::Null,
    KeyExchangeFamily::SharedSecret,
    KeyExchangeFamily::DhAnon,
    KeyExchangeFamily::RsaAnon,
    KeyExchangeFamily::Rsa,
    KeyExchangeFamily::EcdhAnon,
    KeyExchangeFamily::EcdhEcdsa,
];

fn again<T: Codec>(body: &[u8]) {
    if let Ok(value) = T::from_bytes("message", body) {
        assert_eq!(value.to_bytes().expect("what was parsed fits"), body);
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((choice, raw)) = input.split_first() else { return };
    again::<AlertMessage>(raw);
    let Ok(frame) = Frame::parse(raw) else { return };
    let family = FAMILIES[usize::from(*choice) % FAMILIES.len()];
    match frame.handshake_type {
        HandshakeType::ClientHello => again::<ClientHello>(frame.body),
        HandshakeType::ServerHello => again::<ServerHello>(frame.body),
        HandshakeType::Certificate => again::<CertificateList>(frame.body),
        HandshakeType::CertificateRequest => again::<CertificateRequest>(frame.body),
        HandshakeType::CertificateVerify => again::<CertificateVerify>(frame.body),
        HandshakeType::Finished => again::<Finished>(frame.body),
        HandshakeType::ServerKeyExchange => {
            if let Ok(message) = ServerKeyExchange::decode(family, frame.body) {
                let mut writer = Writer::default();
                message.encode(&mut writer).expect("what was parsed fits");
                assert_eq!(writer.into_bytes(), frame.body);
                let _ = (message.parameters.curve(true), message.parameters.group());
            }
        }
        HandshakeType::ClientKeyExchange => {
            // No body has this length, so that the form without a length, which is not encoded again, is excluded.
            if let Ok(message) = ClientKeyExchange::decode(family, usize::MAX, frame.body) {
                let mut writer = Writer::default();
                message.encode(&mut writer).expect("what was parsed fits");
                assert_eq!(writer.into_bytes(), frame.body);
            }
        }
        HandshakeType::ServerHelloDone | HandshakeType::HelloRequest => {}
    }
});
