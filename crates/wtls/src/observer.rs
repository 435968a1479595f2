//! Callbacks that report the engine's progress immediately.
//!
//! The engine reports only the beginning and the end of each message. The observer measures the cost of the
//! message. A primitive that is called between beginning and end belongs to the message.

use crate::numbers::HandshakeType;

/// The message that a callback reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Message {
    Handshake(HandshakeType),
    /// ChangeCipherSpec, which stands between handshake messages but is not one.
    ChangeCipherSpec,
}

impl Message {
    /// The name, as the specification writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Handshake(handshake_type) => handshake_type.name(),
            Self::ChangeCipherSpec => "ChangeCipherSpec",
        }
    }
}

impl core::fmt::Display for Message {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str(self.name())
    }
}

/// An observer. By default the callbacks do nothing; `()` is an observer without effect.
///
/// Duplicates and retransmissions are not announced: they are neither processed nor generated
/// again. A beginning without an end means that the message was rejected.
pub trait Observer {
    /// A received message is about to be processed, decryption included.
    fn processing(&mut self, message: Message) {
        let _ = message;
    }

    /// The message has been processed. `wire_bytes` counts its record, header included.
    fn processed(&mut self, message: Message, wire_bytes: usize) {
        let _ = (message, wire_bytes);
    }

    /// A message is about to be generated.
    fn generating(&mut self, message: Message) {
        let _ = message;
    }

    /// The message is ready to be sent. `wire_bytes` counts its record, header included.
    fn generated(&mut self, message: Message, wire_bytes: usize) {
        let _ = (message, wire_bytes);
    }
}

impl Observer for () {}
