#![no_main]
//! Arbitrary RADIUS packets: attributes, authenticators, keys.

use libfuzzer_sys::fuzz_target;
use shakedown_eap::radius::{MAX_PACKET_BYTES, Packet, Secret, take_msk};

fuzz_target!(|input: &[u8]| {
    let Ok(packet) = Packet::parse(input) else { return };
    let secret = Secret::new("secret");
    let request = [7; 16];
    let bytes: usize = packet.attributes().map(|attribute| attribute.value.len() + 2).sum();
    assert!(bytes + 20 == packet.as_bytes().len() && bytes <= MAX_PACKET_BYTES);
    assert!(packet.eap_message().is_none_or(|eap| eap.len() <= bytes));
    let _ = secret.check_request(&packet);
    let _ = secret.check_response(&packet, &request);
    let _ = take_msk(&packet, &secret, &request);
});
