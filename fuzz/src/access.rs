//! An endpoint without cryptography for EAP-TLS, and packets to start from.

use shakedown_eap::radius::{Builder, MppeKeys, Secret, attribute, code};
use shakedown_trace::endpoint::{Time, Transport};
use shakedown_trace::suite::Protocol;
use shakedown_trace::{Endpoint, Event, ExportError, Negotiated, Side, WriteError};

/// Takes any flight, answers each with one of its own, and is established after two.
pub struct Sponge {
    side: Side,
    protocol: Protocol,
    flights: usize,
    output: Vec<u8>,
    events: Vec<Event>,
}

/// Bytes of each flight.
const FLIGHT_BYTES: usize = 700;

impl Sponge {
    /// One that has done nothing yet.
    pub fn new(side: Side, protocol: Protocol) -> Self {
        let output = if side == Side::Client { vec![1; FLIGHT_BYTES] } else { Vec::new() };
        Self { side, protocol, flights: 0, output, events: Vec::new() }
    }
}

impl Endpoint for Sponge {
    fn side(&self) -> Side {
        self.side
    }

    fn transport(&self) -> Transport {
        Transport::Stream
    }

    fn handle_input(&mut self, _: Time, bytes: &[u8]) {
        self.flights += 1;
        match self.flights {
            1 => self.output.extend([2; FLIGHT_BYTES]),
            2 => {
                self.events.push(Event::Established(Box::new(Negotiated {
                    protocol: self.protocol,
                    key_exchange: None,
                    cipher: None,
                    cipher_suite: "none",
                    group: None,
                    resumed: false,
                    optimized: false,
                })));
                if let Some(last) = bytes.last().filter(|_| self.protocol == Protocol::Tls13) {
                    self.events.insert(0, Event::Data(vec![*last]));
                }
            }
            _ => self.events.push(Event::Data(bytes.to_vec())),
        }
    }

    fn handle_close(&mut self, _: Time) {}

    fn write(&mut self, _: Time, data: &[u8]) -> Result<(), WriteError> {
        self.output.extend(data);
        Ok(())
    }

    fn close(&mut self, _: Time) {}

    fn poll_transmit(&mut self, _: Time, buffer: &mut Vec<u8>) -> bool {
        let any = !self.output.is_empty();
        buffer.append(&mut self.output);
        any
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    fn state(&self) -> String {
        "sponge".into()
    }

    fn export_keying_material(&self, _: &mut [u8], _: &str, _: Option<&[u8]>) -> Result<(), ExportError> {
        Ok(())
    }
}

/// An Access-Accept with everything in it.
pub fn radius_seed() -> Vec<u8> {
    let secret = Secret::new("secret");
    let request = [7; 16];
    let mut builder = Builder::new(code::ACCESS_ACCEPT, 1);
    let filled =
        builder.add_eap(&[3, 1, 0, 4]).and_then(|builder| builder.add(attribute::STATE, b"state")).is_ok();
    assert!(filled && MppeKeys::of(&[5; 64]).add_to(&mut builder, &secret, &request, [1, 2]).is_ok());
    builder.response(&secret, &request)
}

/// A conversation as the target `eap` reads it: side, size of fragments, then packets after their lengths.
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
