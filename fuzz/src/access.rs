//! An endpoint without cryptography for EAP-TLS, and seed packets.

use crate::scripted::{End, Script, Scripted};
use shakedown_eap::radius::{Builder, Secret, add_msk, attribute, code};
use shakedown_trace::suite::Protocol;
use shakedown_trace::{Event, Side};

/// Accepts any flight, responds to the first with a flight, and is established after the second.
pub struct Sponge {
    protocol: Protocol,
    flights: usize,
}

/// Bytes of each flight.
const FLIGHT_BYTES: usize = 700;

impl Sponge {
    /// A new endpoint.
    pub fn endpoint(side: Side, protocol: Protocol) -> Scripted<Self> {
        let output = if side == Side::Client { vec![1; FLIGHT_BYTES] } else { Vec::new() };
        Scripted::new(side, output, Self { protocol, flights: 0 })
    }
}

impl Script for Sponge {
    fn input(&mut self, end: &mut End, bytes: &[u8]) {
        self.flights += 1;
        match self.flights {
            1 => end.output.extend([2; FLIGHT_BYTES]),
            2 => {
                end.establish(self.protocol, false);
                if let Some(last) = bytes.last().filter(|_| self.protocol == Protocol::Tls13) {
                    end.events.push_back(Event::Data(vec![*last]));
                }
            }
            _ => end.events.push_back(Event::Data(bytes.to_vec())),
        }
    }
}

/// An Access-Accept with an EAP message, a State and the MSK.
pub fn radius_seed() -> Vec<u8> {
    let secret = Secret::new("secret");
    let request = [7; 16];
    let mut builder = Builder::new(code::ACCESS_ACCEPT, 1);
    let filled =
        builder.add_eap(&[3, 1, 0, 4]).and_then(|builder| builder.add(attribute::STATE, b"state")).is_ok();
    assert!(filled && add_msk(&mut builder, &[5; 64], &secret, &request, [1, 2]).is_ok());
    builder.response(&secret, &request)
}

/// A conversation as input of the target `eap`: side, fragment size, then packets, each after its length.
pub fn conversation_seed(side: u8) -> Vec<u8> {
    let mut seed = vec![side, 200];
    let code = if side == 0 { 1 } else { 2 };
    let data = |flags: u8, bytes: usize| [vec![13, flags], vec![9; bytes]].concat();
    let contents =
        [vec![1, b'a'], data(0x20, 0), data(0, 100), data(0, 0), data(0, 0), data(0, 0), data(0, 1)];
    for (identifier, content) in contents.iter().enumerate() {
        let length = u16::try_from(content.len() + 4).unwrap_or(u16::MAX).to_be_bytes();
        seed.extend(length);
        seed.extend([code, u8::try_from(identifier).unwrap_or(0)]);
        seed.extend(length);
        seed.extend(content);
    }
    seed
}
