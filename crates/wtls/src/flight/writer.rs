//! Generates a flight, message by message, and its records.

use super::Transcript;
use crate::alert::{Alert, AlertMessage, Checksum, is_clear_text};
use crate::codec::{Codec, Writer};
use crate::config::Settings;
use crate::context::Context;
use crate::crypto::Provider;
use crate::error::Error;
use crate::key_schedule::TrafficSecret;
use crate::numbers::{ContentType, HandshakeType};
use crate::observer::Message;
use crate::protection::{RecordEncryptor, SequenceExhausted};
use crate::record::{RecordType, write_header};

/// The position of a record in its datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Another record follows or may follow.
    Middle,
    /// The last record, which may lack a length field.
    Last,
}

/// The write state: unencrypted records until ChangeCipherSpec, then protected ones.
#[derive(Clone)]
pub(crate) struct Outbound {
    omit_last_length: bool,
    next_plain: u16,
    encryptor: Option<RecordEncryptor>,
}

impl Outbound {
    pub fn new(settings: &Settings) -> Self {
        Self { omit_last_length: settings.omit_last_length, next_plain: 0, encryptor: None }
    }

    /// Appends a record to a datagram and returns its length.
    pub fn append<P: Provider>(
        &mut self,
        provider: &P,
        datagram: &mut Vec<u8>,
        content: ContentType,
        fragment: &[u8],
        place: Place,
    ) -> Result<usize, SequenceExhausted> {
        let start = datagram.len();
        let with_length = place == Place::Middle || !self.omit_last_length;
        match &mut self.encryptor {
            Some(encryptor) => encryptor.encrypt(provider, datagram, content, fragment, with_length)?,
            None => {
                let sequence = self.next_plain;
                self.next_plain = sequence.checked_add(1).ok_or(SequenceExhausted)?;
                append_plain(datagram, content, sequence, fragment, with_length);
            }
        }
        Ok(datagram.len() - start)
    }

    /// A datagram with an alert: under the current write state, or unencrypted if the specification requires it.
    /// `None` if no sequence number is left.
    pub fn alert<P: Provider>(&mut self, provider: &P, alert: Alert, about: Checksum) -> Option<Vec<u8>> {
        if is_clear_text(alert.description) {
            return self.plain_alert(alert, about);
        }
        let bytes = AlertMessage { alert, checksum: about }.to_bytes().ok()?;
        let mut datagram = Vec::new();
        self.append(provider, &mut datagram, ContentType::Alert, &bytes, Place::Last).ok()?;
        Some(datagram)
    }

    /// A datagram with an unencrypted alert of any description.
    pub fn plain_alert(&mut self, alert: Alert, about: Checksum) -> Option<Vec<u8>> {
        let bytes = AlertMessage { alert, checksum: about }.to_bytes().ok()?;
        let sequence = match &mut self.encryptor {
            Some(encryptor) => encryptor.take_number().ok()?,
            None => {
                let sequence = self.next_plain;
                self.next_plain = sequence.checked_add(1)?;
                sequence
            }
        };
        let mut datagram = Vec::new();
        append_plain(&mut datagram, ContentType::Alert, sequence, &bytes, !self.omit_last_length);
        Some(datagram)
    }

    /// How many records can still be protected.
    pub fn numbers_left(&self) -> u32 {
        self.encryptor.as_ref().map_or(0, RecordEncryptor::numbers_left)
    }
}

fn append_plain(
    datagram: &mut Vec<u8>,
    content: ContentType,
    sequence: u16,
    fragment: &[u8],
    with_length: bool,
) {
    let record_type = RecordType::new(content, false, true, with_length);
    write_header(datagram, record_type, sequence, fragment.len() as u16);
    datagram.extend_from_slice(fragment);
}

/// The response to a record that belongs to no connection. Its sequence number is a constant.
pub(crate) fn no_connection(record: &[u8]) -> Vec<u8> {
    let alert = Alert::critical(crate::alert::AlertDescription::NoConnection);
    let message = AlertMessage { alert, checksum: Checksum::of(record) };
    let mut datagram = Vec::new();
    let bytes = message.to_bytes().unwrap_or_default();
    append_plain(&mut datagram, ContentType::Alert, u16::MAX, &bytes, true);
    datagram
}

/// A flight under construction.
pub(crate) struct FlightWriter {
    outbound: Outbound,
    datagram: Vec<u8>,
    message: Vec<u8>,
}

impl FlightWriter {
    pub fn new(outbound: Outbound) -> Self {
        Self { outbound, datagram: Vec::with_capacity(256), message: Vec::with_capacity(128) }
    }

    /// Generates a handshake message: notifies the observer, lets `fill` write the body, and appends the record.
    pub fn message<P: Provider, T>(
        &mut self,
        cx: &mut Context<'_, P>,
        transcript: &mut Transcript,
        kind: HandshakeType,
        place: Place,
        fill: impl FnOnce(&mut Context<'_, P>, &Transcript, &mut Writer) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let message = Message::Handshake(kind);
        cx.observer.generating(message);
        self.message.clear();
        let mut writer = Writer::appending_to(core::mem::take(&mut self.message));
        writer.u8(kind.number());
        let done = writer.v16_with("handshake body", |writer| fill(cx, transcript, writer))?;
        self.message = writer.into_bytes();
        transcript.push(&self.message);
        let Self { outbound, datagram, message: fragment } = self;
        let wire_bytes = outbound.append(cx.provider, datagram, ContentType::Handshake, fragment, place)?;
        cx.observer.generated(message, wire_bytes);
        Ok(done)
    }

    /// Generates ChangeCipherSpec and switches the write state.
    pub fn change_cipher_spec<P: Provider>(
        &mut self,
        cx: &mut Context<'_, P>,
        secret: TrafficSecret,
    ) -> Result<(), Error> {
        cx.observer.generating(Message::ChangeCipherSpec);
        let Self { outbound, datagram, .. } = self;
        let content = ContentType::ChangeCipherSpec;
        let wire_bytes = outbound.append(cx.provider, datagram, content, &[1], Place::Middle)?;
        outbound.encryptor = Some(RecordEncryptor::new(cx.provider, secret));
        cx.observer.generated(Message::ChangeCipherSpec, wire_bytes);
        Ok(())
    }

    /// The datagram, and the write state after it.
    pub fn finish(self) -> (Vec<u8>, Outbound) {
        (self.datagram, self.outbound)
    }
}
