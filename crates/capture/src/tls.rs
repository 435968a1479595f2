//! Reads captured SSL 3.0 to TLS 1.3, including what DTLS shares.
//!
//! # What counts as a message's bytes
//!
//! A message's bytes include its record headers, padding, MAC or tag. The overhead of a record is attributed to the
//! first message that begins in it or, if none begins, to the message that continues in it. The bytes of all messages
//! therefore add up to those of the handshake. ChangeCipherSpec is listed as a message.

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
