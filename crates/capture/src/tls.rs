//! SSL 3.0 to TLS 1.3 and DTLS as seen from outside.
//!
//! # What counts as a message's bytes
//!
//! A message's bytes include its record headers, padding, MAC or tag. Where several messages share a record,
//! its overhead goes to the first message that begins in it; a message that spans several records has the
//! overhead of each in which no other begins. So the messages always sum to the handshake's bytes.
//! ChangeCipherSpec is listed as a message.

pub(crate) mod alert;
pub(crate) mod cipher_suite;
mod connection;
mod handshake;
mod hello;
pub mod keylog;
mod negotiation;
mod record;
mod secrets;

pub(crate) use connection::{TlsConnection, Undecrypted};
pub(crate) use handshake::Message;
#[cfg(test)]
pub(crate) use hello::ServerHello;
pub(crate) use hello::{Fields, SessionName};
pub(crate) use negotiation::{Negotiation, protocol_name};
pub(crate) use record::{Input, Piece, looks_like_record, looks_like_version_2};
pub(crate) use secrets::LegacyDecryptor;
