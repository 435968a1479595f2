//! Flights: the records that one side sends before it waits for the other.
//!
//! A flight is one datagram (§10.4), so it is processed as a whole. It has an effect only if all of its
//! records are valid, including Finished if it contains one, because before this check an attacker may have
//! sent it. Therefore a forged datagram does not change the state of a handshake.

mod assembly;
mod reader;
mod writer;

pub(crate) use assembly::{Assembly, EARLY_BYTES, EarlyRecords, HELD_BYTES};
pub(crate) use reader::FlightReader;
pub(crate) use writer::{FlightWriter, Outbound, Place, no_connection};

use crate::message::HEADER_BYTES;
use crate::numbers::{ContentType, HandshakeType};
use crate::record::{Record, Records};

/// All handshake messages of a handshake, in order, without record headers. Finished and CertificateVerify
/// are computed over them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Transcript(Vec<u8>);

impl Transcript {
    pub fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// A copy with capacity for `more` bytes of further messages.
    pub fn continued(&self, more: usize) -> Self {
        let mut bytes = Vec::with_capacity(self.0.len() + more);
        bytes.extend_from_slice(&self.0);
        Self(bytes)
    }

    pub fn push(&mut self, message: &[u8]) {
        self.0.extend_from_slice(message);
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub fn shrink(&mut self) {
        self.0.shrink_to_fit();
    }
}

/// The part of a flight that a datagram contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// No record of a handshake.
    None,
    /// Records of a handshake, of which others may be missing.
    Partial,
    /// All records up to the end: ServerHelloDone, or a protected message after ChangeCipherSpec.
    Complete,
}

/// The role of a record in a flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Message(HandshakeType),
    /// A message in clear text whose type is not known.
    Unknown,
    ChangeCipherSpec,
    /// A protected message. Its type is known only after decryption.
    Protected,
}

impl Part {
    /// `None` for records that belong to no flight: alerts, data, unencrypted records without a sequence number
    /// (records of handshakes always have one), and HelloRequest, which may arrive at any time.
    pub fn of(record: &Record<'_>) -> Option<Self> {
        let protected = record.record_type.is_protected();
        match record.record_type.content()? {
            ContentType::Handshake if protected => Some(Self::Protected),
            ContentType::Handshake if record.sequence.is_some() => {
                let kind = record.fragment.first().copied().unwrap_or(u8::MAX);
                match HandshakeType::from_number(kind) {
                    Ok(HandshakeType::HelloRequest) => None,
                    Ok(kind) => Some(Self::Message(kind)),
                    Err(_) => Some(Self::Unknown),
                }
            }
            ContentType::ChangeCipherSpec if !protected && record.sequence.is_some() => {
                Some(Self::ChangeCipherSpec)
            }
            _ => None,
        }
    }
}

/// Determines the part of a flight that a datagram contains.
pub(crate) fn extent(datagram: &[u8]) -> Extent {
    let mut extent = Extent::None;
    let mut changed = false;
    for record in Records::new(datagram).map_while(Result::ok) {
        match Part::of(&record) {
            Some(Part::Message(HandshakeType::ServerHelloDone)) => return Extent::Complete,
            Some(Part::Protected) if changed => return Extent::Complete,
            Some(part) => {
                changed |= part == Part::ChangeCipherSpec;
                extent = Extent::Partial;
            }
            None => {}
        }
    }
    extent
}

/// The record of an unencrypted ClientHello at the beginning of a datagram, if there is one.
pub(crate) fn leading_hello(datagram: &[u8]) -> Option<Record<'_>> {
    let record = Records::new(datagram).next()?.ok()?;
    let is_hello = Part::of(&record) == Some(Part::Message(HandshakeType::ClientHello))
        && record.fragment.len() >= HEADER_BYTES;
    is_hello.then_some(record)
}
