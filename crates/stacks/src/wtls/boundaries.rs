//! Reports the engine's messages to the recorder.

use shakedown_trace::{MessageName, recorder};
use shakedown_wtls::{Message, Observer};

pub struct Boundaries;

/// The engine's names are the specification's; that of ChangeCipherSpec is the same in TLS.
fn name(message: Message) -> Option<MessageName> {
    MessageName::from_name(message.name())
}

impl Observer for Boundaries {
    fn processing(&mut self, _: Message) {
        recorder::boundary();
    }

    fn processed(&mut self, message: Message, wire_bytes: usize) {
        if let Some(name) = name(message) {
            recorder::received(name, u32::try_from(wire_bytes).unwrap_or(u32::MAX));
            recorder::boundary();
        }
    }

    fn generating(&mut self, _: Message) {
        recorder::boundary();
    }

    fn generated(&mut self, message: Message, wire_bytes: usize) {
        if let Some(name) = name(message) {
            recorder::sent(name, u32::try_from(wire_bytes).unwrap_or(u32::MAX));
            recorder::boundary();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shakedown_wtls::HandshakeType;

    #[test]
    fn every_message_of_the_engine_has_a_name_in_the_trace() {
        for number in 0..=u8::MAX {
            if let Ok(kind) = HandshakeType::from_number(number) {
                assert!(name(Message::Handshake(kind)).is_some(), "{kind:?}");
            }
        }
        assert_eq!(name(Message::ChangeCipherSpec), Some(MessageName::ChangeCipherSpec));
    }
}
