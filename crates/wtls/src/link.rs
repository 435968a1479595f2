//! One connection's way to its peer: read and write state, the datagram under construction, what is
//! ready to be sent, and what is to be reported. Knows records and alerts, not handshakes.

use crate::alert::{Alert, AlertDescription, AlertMessage, Checksum, SentChecksums};
use crate::codec::{Codec, Writer};
use crate::config::Settings;
use crate::context::Context;
use crate::crypto::Provider;
use crate::error::Error;
use crate::event::Event;
use crate::key_schedule::TrafficSecret;
use crate::numbers::{ContentType, HandshakeType};
use crate::observer::Message;
use crate::protection::{Opener, Sealer, SequenceExhausted};
use crate::record::{RecordType, write_header};
use crate::session::Session;
use std::collections::VecDeque;

/// All handshake messages of a handshake, in order, without record headers: what Finished and
/// CertificateVerify are about.
#[derive(Debug, Clone, Default)]
pub(crate) struct Transcript(Vec<u8>);

impl Transcript {
    pub fn push(&mut self, message: &[u8]) {
        self.0.extend_from_slice(message);
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// Proof that the peer's ChangeCipherSpec has come; only the connection can make it, on receiving
/// the record in its turn, and the read state can't be switched without it.
#[derive(Debug)]
pub(crate) struct CipherSpecChanged(());

impl CipherSpecChanged {
    /// To be called on a record that says so, and nowhere else.
    pub fn received() -> Self {
        Self(())
    }
}

/// Where in its datagram a record stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Another record follows or may follow.
    Middle,
    /// It is the last one and may go without a length.
    Last,
}

#[derive(Default)]
pub(crate) struct Link {
    pub settings: Settings,
    next_plain: u16,
    sealer: Option<Sealer>,
    pub opener: Option<Opener>,
    pub sent: SentChecksums,
    /// The record that an alert would refer to.
    pub last_received: Checksum,
    building: Vec<u8>,
    /// A flight that is complete, to be sent and kept by the connection.
    pub flight: Option<Vec<u8>>,
    /// The client's last flight of an abbreviated handshake, which goes in front of its data until
    /// the server is known to have it.
    pub prefix: Option<Vec<u8>>,
    pub outgoing: VecDeque<Vec<u8>>,
    pub events: VecDeque<Event>,
    pub session: Option<Session>,
}

impl Link {
    pub fn new(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Makes a handshake message: announces it, lets `fill` do the work and write the body, and
    /// appends the record to the flight.
    pub fn generate<P: Provider>(
        &mut self,
        cx: &mut Context<'_, P>,
        transcript: &mut Transcript,
        handshake_type: HandshakeType,
        place: Place,
        fill: impl FnOnce(&mut Context<'_, P>, &Transcript, &mut Writer) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let message = Message::Handshake(handshake_type);
        cx.observer.generating(message);
        let mut writer = Writer::default();
        writer.u8(handshake_type.number());
        writer.v16_with("handshake body", |writer| fill(cx, transcript, writer))?;
        let bytes = writer.into_bytes();
        transcript.push(&bytes);
        let wire_bytes = self.append(cx.provider, ContentType::Handshake, &bytes, place)?;
        cx.observer.generated(message, wire_bytes);
        Ok(())
    }

    /// Makes ChangeCipherSpec and switches the write state.
    pub fn change_cipher_spec<P: Provider>(
        &mut self,
        cx: &mut Context<'_, P>,
        secret: TrafficSecret,
    ) -> Result<(), Error> {
        cx.observer.generating(Message::ChangeCipherSpec);
        let content = ContentType::ChangeCipherSpec;
        let wire_bytes = self.append(cx.provider, content, &[1], Place::Middle)?;
        self.sealer = Some(Sealer::new(cx.provider, secret));
        cx.observer.generated(Message::ChangeCipherSpec, wire_bytes);
        Ok(())
    }

    /// Switches the read state.
    pub fn switch_read<P: Provider>(
        &mut self,
        cx: &mut Context<'_, P>,
        secret: TrafficSecret,
        _proof: CipherSpecChanged,
    ) {
        let opener = Opener::new(cx.provider, secret);
        self.opener = Some(opener.telling_padding(self.settings.distinguish_record_errors));
    }

    /// Ends the flight under construction.
    pub fn end_flight(&mut self) {
        self.flight = Some(core::mem::take(&mut self.building));
    }

    /// Appends a record under the current write state and returns its length.
    fn append<P: Provider>(
        &mut self,
        provider: &P,
        content: ContentType,
        fragment: &[u8],
        place: Place,
    ) -> Result<usize, SequenceExhausted> {
        let start = self.building.len();
        let with_length = place == Place::Middle || !self.settings.omit_last_length;
        match &mut self.sealer {
            Some(sealer) => {
                sealer.seal(provider, &mut self.building, content, fragment, with_length)?;
            }
            None => {
                let sequence = self.next_plain;
                self.next_plain = sequence.checked_add(1).ok_or(SequenceExhausted)?;
                self.append_plain(content, sequence, fragment, with_length);
            }
        }
        self.sent.remember(&self.building[start..]);
        Ok(self.building.len() - start)
    }

    fn append_plain(&mut self, content: ContentType, sequence: u16, fragment: &[u8], with_length: bool) {
        let record_type = RecordType::new(content, false, true, with_length);
        write_header(&mut self.building, record_type, sequence, fragment.len() as u16);
        self.building.extend_from_slice(fragment);
    }

    /// How many records can still be protected.
    pub fn numbers_left(&self) -> u32 {
        self.sealer.as_ref().map_or(0, Sealer::numbers_left)
    }

    /// Sends application data, behind the prefix if there is one.
    pub fn send_data<P: Provider>(&mut self, provider: &P, data: &[u8]) -> Result<(), SequenceExhausted> {
        self.building.clear();
        if let Some(prefix) = &self.prefix {
            self.building.extend_from_slice(prefix);
        }
        let appended = self.append(provider, ContentType::ApplicationData, data, Place::Last);
        let datagram = core::mem::take(&mut self.building);
        appended?;
        self.outgoing.push_back(datagram);
        Ok(())
    }

    /// Sends an alert in a datagram of its own: under the current write state, or in clear text
    /// where the specification says so. What was under construction is dropped.
    pub fn send_alert<P: Provider>(&mut self, provider: &P, alert: Alert) {
        self.building.clear();
        let message = AlertMessage { alert, checksum: self.last_received };
        let Ok(bytes) = message.to_bytes() else { return };
        let clear = is_clear_text(alert.description);
        let number = match &mut self.sealer {
            Some(sealer) if clear => Some(sealer.take_number()),
            _ => None,
        };
        let appended = match number {
            Some(Ok(sequence)) => {
                let with_length = !self.settings.omit_last_length;
                self.append_plain(ContentType::Alert, sequence, &bytes, with_length);
                self.sent.remember(&self.building);
                Ok(0)
            }
            Some(Err(exhausted)) => Err(exhausted),
            None => self.append(provider, ContentType::Alert, &bytes, Place::Last),
        };
        let datagram = core::mem::take(&mut self.building);
        // Without a number left there is no way to tell the peer anything.
        if appended.is_ok() {
            self.outgoing.push_back(datagram);
            self.events.push_back(Event::AlertSent(alert));
        }
    }
}

/// The alerts that are sent in clear text even when there are keys (§10.2.2): they are about records
/// that could not be read, so the peer's keys may not be ours.
pub(crate) fn is_clear_text(description: AlertDescription) -> bool {
    matches!(
        description,
        AlertDescription::NoConnection
            | AlertDescription::BadRecordMac
            | AlertDescription::DecryptionFailed
            | AlertDescription::RecordOverflow
            | AlertDescription::DecompressionFailure
    )
}

/// The datagram that tells a stranger that its record belongs to no connection.
pub(crate) fn no_connection(record: &[u8]) -> Vec<u8> {
    let alert = Alert::critical(AlertDescription::NoConnection);
    let message = AlertMessage { alert, checksum: Checksum::of(record) };
    let mut link = Link::default();
    let bytes = message.to_bytes().unwrap_or_default();
    link.append_plain(ContentType::Alert, u16::MAX, &bytes, true);
    link.building
}
