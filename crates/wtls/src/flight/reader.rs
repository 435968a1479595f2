//! Reads a flight of the peer, message by message, in the order of the handshake.

use super::{Part, Transcript};
use crate::alert::Checksum;
use crate::codec::DecodeError;
use crate::context::Context;
use crate::crypto::Provider;
use crate::error::Error;
use crate::message::Frame;
use crate::numbers::HandshakeType;
use crate::observer::Message;
use crate::protection::RecordDecryptor;
use crate::record::{Record, Records};

/// A flight and the read position. The observer is notified before and after the processing of a message; for a
/// rejected message, only before.
pub(crate) struct FlightReader<'a> {
    records: Records<'a>,
    next: Option<(Part, Record<'a>)>,
    /// Sequence numbers increase within a flight. Other records are duplicates.
    last_number: Option<u16>,
    checksum: Checksum,
}

impl<'a> FlightReader<'a> {
    pub fn new(datagram: &'a [u8]) -> Self {
        let records = Records::new(datagram);
        Self { records, next: None, last_number: None, checksum: Checksum::NOTHING }
    }

    /// The next record that belongs to a flight.
    fn peek(&mut self) -> Option<(Part, Record<'a>)> {
        while self.next.is_none() {
            let record = self.records.next()?.ok()?;
            let Some(part) = Part::of(&record) else { continue };
            if part != Part::Protected {
                if record.sequence <= self.last_number {
                    continue;
                }
                self.last_number = record.sequence;
            }
            self.next = Some((part, record));
        }
        self.next
    }

    /// The next message, if it is unencrypted.
    pub fn peek_message(&mut self) -> Option<Message> {
        match self.peek()?.0 {
            Part::Message(kind) => Some(Message::Handshake(kind)),
            Part::ChangeCipherSpec => Some(Message::ChangeCipherSpec),
            Part::Unknown | Part::Protected => None,
        }
    }

    /// Takes the next record. `expected` names the message in an error.
    fn advance(&mut self, expected: &'static str) -> Result<(Part, Record<'a>), Error> {
        let next = self.peek().ok_or(Error::Incomplete { expected })?;
        self.next = None;
        self.checksum = Checksum::of(next.1.raw);
        Ok(next)
    }

    /// The error for a record other than the expected one.
    fn unexpected(part: Part, record: &Record<'_>, expected: &'static str) -> Error {
        let received = match part {
            Part::Message(kind) => Message::Handshake(kind),
            Part::ChangeCipherSpec => Message::ChangeCipherSpec,
            Part::Protected => Message::Handshake(HandshakeType::Finished),
            Part::Unknown => {
                let value = record.fragment.first().copied().unwrap_or(0).into();
                return DecodeError::Unassigned { field: "handshake type", value }.into();
            }
        };
        Error::UnexpectedMessage { expected, received }
    }

    /// Reads the message `wanted`. `work` processes it, given the messages before it; then it is added to the
    /// transcript.
    pub fn message<P: Provider, T>(
        &mut self,
        cx: &mut Context<'_, P>,
        transcript: &mut Transcript,
        wanted: HandshakeType,
        work: impl FnOnce(&mut Context<'_, P>, &Transcript, Frame<'a>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (part, record) = self.advance(wanted.name())?;
        if part != Part::Message(wanted) {
            return Err(Self::unexpected(part, &record, wanted.name()));
        }
        let message = Message::Handshake(wanted);
        cx.observer.processing(message);
        let frame = Frame::parse(record.fragment)?;
        let done = work(cx, transcript, frame)?;
        transcript.push(frame.raw);
        cx.observer.processed(message, record.raw.len());
        Ok(done)
    }

    /// Reads ChangeCipherSpec. `work` creates the decryptor of the records after it.
    pub fn change_cipher_spec<P: Provider, T>(
        &mut self,
        cx: &mut Context<'_, P>,
        work: impl FnOnce(&mut Context<'_, P>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let expected = Message::ChangeCipherSpec.name();
        let (part, record) = self.advance(expected)?;
        if part != Part::ChangeCipherSpec {
            return Err(Self::unexpected(part, &record, expected));
        }
        cx.observer.processing(Message::ChangeCipherSpec);
        if record.fragment != [1] {
            let value = record.fragment.first().copied().unwrap_or(0).into();
            return Err(DecodeError::Unassigned { field: "change_cipher_spec", value }.into());
        }
        let done = work(cx)?;
        cx.observer.processed(Message::ChangeCipherSpec, record.raw.len());
        Ok(done)
    }

    /// Decrypts Finished, lets `check` verify it, then adds it to the transcript.
    pub fn finished<P: Provider, T>(
        &mut self,
        cx: &mut Context<'_, P>,
        transcript: &mut Transcript,
        decryptor: &mut RecordDecryptor,
        check: impl FnOnce(&mut Context<'_, P>, &Transcript, Frame<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let finished = HandshakeType::Finished;
        let (part, record) = self.advance(finished.name())?;
        if part != Part::Protected {
            return Err(Self::unexpected(part, &record, finished.name()));
        }
        let message = Message::Handshake(finished);
        cx.observer.processing(message);
        let mut plaintext = Vec::new();
        decryptor.decrypt(cx.provider, &record, &mut plaintext)?;
        let frame = Frame::parse(&plaintext)?;
        if frame.handshake_type != finished {
            let received = Message::Handshake(frame.handshake_type);
            return Err(Error::UnexpectedMessage { expected: finished.name(), received });
        }
        let done = check(cx, transcript, frame)?;
        transcript.push(frame.raw);
        cx.observer.processed(message, record.raw.len());
        Ok(done)
    }

    /// The checksum of the last record read, for an alert about it.
    pub fn checksum(&self) -> Checksum {
        self.checksum
    }

    /// The bytes after the records read so far.
    pub fn rest(&self) -> &'a [u8] {
        match self.next {
            Some((_, record)) => record.raw,
            None => self.records.rest(),
        }
    }
}
