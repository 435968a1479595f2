//! Converts the records of a TLS connection to messages, decrypted if the key log has the secrets.

use super::handshake::{Message, MessageReader, NEW_SESSION_TICKET};
use super::keylog::{KeyLog, Label};
use super::negotiation::Negotiation;
use super::record::{ALERT, APPLICATION_DATA, CHANGE_CIPHER_SPEC, HANDSHAKE, Input, Record, RecordReader};
use super::secrets::{LegacyDecryptor, ModernDecryptor};
use crate::message::{Name, Problems, Seen, SeenAlert, Span, push_alert, push_message};
use shakedown_trace::MessageName;
use std::collections::VecDeque;

/// Limit of the bytes of records that wait for both hello messages.
const MAX_WAITING_BYTES: usize = 1 << 18;
/// Approximate memory of a cipher's state.
const DECRYPTOR_BYTES: usize = 1024;
/// Limit of remembered undecrypted records per direction; the handshake is among the first.
const MAX_UNDECRYPTED: usize = 48;

/// A record that could not be decrypted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Undecrypted {
    pub(crate) wire_bytes: usize,
    pub(crate) span: Span,
}

/// The TLS 1.3 secret that protects a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Start,
    Early,
    Handshake,
    Application,
}

#[derive(Default)]
pub(crate) struct Direction {
    reader: RecordReader,
    messages: MessageReader,
    /// Records that wait until it is known how to read them.
    waiting: VecDeque<Record<'static>>,
    waiting_bytes: usize,
    /// Up to TLS 1.2: ChangeCipherSpec was seen.
    protected: bool,
    finished: bool,
    legacy: Option<Box<LegacyDecryptor>>,
    stage: Stage,
    modern: Option<Box<ModernDecryptor>>,
    /// Records before the next may be missing.
    lossy: bool,
    losses: u32,
    pub(crate) undecrypted: Vec<Undecrypted>,
    pub(crate) undecrypted_after_handshake: u64,
    pub(crate) application_bytes: u64,
}

#[derive(Default)]
pub(crate) struct TlsConnection {
    pub(crate) directions: [Direction; 2],
    pub(crate) negotiation: Negotiation,
    pub(crate) seen: Vec<Seen>,
    pub(crate) alerts: Vec<SeenAlert>,
    pub(crate) problems: Problems,
    /// True once records no longer wait for a missing hello.
    gave_up: bool,
    /// Whether the key log has secrets of the connection; `None` while records wait for the hellos.
    has_secrets: Option<bool>,
}

impl TlsConnection {
    /// `begun`: whether the first byte of each direction was captured; other directions start in the middle.
    pub(crate) fn new(begun: [bool; 2]) -> Self {
        let mut connection = Self::default();
        for (direction, begun) in connection.directions.iter_mut().zip(begun) {
            if !begun {
                direction.reader = RecordReader::lost();
            }
        }
        connection
    }

    /// Memory held beyond the structure itself.
    pub(crate) fn held_bytes(&self) -> usize {
        let directions = self.directions.iter().map(|direction| {
            direction.reader.held_bytes()
                + direction.messages.held_bytes()
                + direction.waiting_bytes
                + direction.undecrypted.capacity() * size_of::<Undecrypted>()
                + (usize::from(direction.legacy.is_some()) + usize::from(direction.modern.is_some()))
                    * DECRYPTOR_BYTES
        });
        directions.sum::<usize>() + self.negotiation.held_bytes() + self.seen.capacity() * size_of::<Seen>()
    }

    /// Reads the next piece of a direction's stream.
    pub(crate) fn read(&mut self, keys: &KeyLog, direction: usize, mut input: Input<'_>) {
        let mut reader = std::mem::take(&mut self.directions[direction].reader);
        loop {
            let wanted = self.wants_application_data(keys, direction);
            let Some(record) = reader.next(&mut input, |kind| kind != APPLICATION_DATA || wanted) else {
                break;
            };
            self.record(keys, direction, &record);
        }
        reader.release_if_idle();
        let slot = &mut self.directions[direction];
        let lost = reader.losses != slot.losses;
        slot.losses = reader.losses;
        slot.reader = reader;
        if lost {
            slot.lossy = true;
            slot.messages = MessageReader::default();
            let text = format!(
                "bytes of the {} are missing, and messages may be missing too",
                self.sender(direction)
            );
            self.problems.add(text);
        }
    }

    /// Finishes the connection when no more data will come.
    pub(crate) fn end(&mut self, keys: &KeyLog) {
        self.give_up(keys);
        if !keys.is_empty() && self.has_secrets == Some(false) && self.negotiation.is_tls_1_3() {
            self.problems.add("the key log has no secrets of this connection");
        }
        for direction in 0..2 {
            let slot = &self.directions[direction];
            if slot.messages.is_within_message() || (slot.reader.is_within_record() && !slot.finished) {
                self.problems
                    .add(format!("the last message of the {} is incomplete", self.sender(direction)));
            }
        }
    }

    /// True if the handshake is over, and its suite is not determined yet or new tickets were issued.
    pub(crate) fn wants_settling(&self) -> bool {
        self.is_over() && (!self.negotiation.settled || !self.negotiation.issued.is_empty())
    }

    /// True once both sides have finished.
    pub(crate) fn is_over(&self) -> bool {
        self.directions.iter().all(|direction| direction.finished)
    }

    fn sender(&self, direction: usize) -> &'static str {
        match self.negotiation.client {
            Some(client) if client == direction => "client",
            Some(_) => "server",
            None => "stream",
        }
    }

    fn wants_application_data(&self, keys: &KeyLog, direction: usize) -> bool {
        if keys.is_empty() {
            return false;
        }
        match self.has_secrets {
            None => !self.gave_up,
            Some(false) => false,
            Some(true) if self.negotiation.is_tls_1_3() => true,
            Some(true) => self.directions[direction]
                .legacy
                .as_ref()
                .is_some_and(|decryptor| decryptor.needs_every_record()),
        }
    }

    fn record(&mut self, keys: &KeyLog, direction: usize, record: &Record<'_>) {
        let slot = &mut self.directions[direction];
        let settled = self.gave_up || self.negotiation.is_settled();
        let plain = match record.kind {
            HANDSHAKE => record.version_2 || slot.waiting.is_empty() || is_hello(&record.body),
            ALERT => slot.waiting.is_empty(),
            _ => false,
        };
        if !settled && !plain {
            slot.waiting_bytes += record.body.len() + size_of::<Record<'_>>();
            slot.waiting.push_back(record.to_owned());
            if slot.waiting_bytes > MAX_WAITING_BYTES {
                self.give_up(keys);
            }
            return;
        }
        self.accept(keys, direction, record);
        if !settled && self.negotiation.is_settled() {
            self.release_waiting(keys);
        }
    }

    /// Stops waiting for hellos; the waiting records are read as far as possible.
    fn give_up(&mut self, keys: &KeyLog) {
        self.gave_up = true;
        self.negotiation.give_up();
        self.release_waiting(keys);
    }

    fn release_waiting(&mut self, keys: &KeyLog) {
        self.has_secrets = Some(self.negotiation.secrets(keys).is_some());
        for direction in 0..2 {
            let waiting = std::mem::take(&mut self.directions[direction].waiting);
            self.directions[direction].waiting_bytes = 0;
            for record in waiting {
                self.accept(keys, direction, &record);
            }
        }
    }

    fn accept(&mut self, keys: &KeyLog, direction: usize, record: &Record<'_>) {
        let modern = self.negotiation.is_tls_1_3();
        match record.kind {
            CHANGE_CIPHER_SPEC => self.change_cipher_spec(keys, direction, record, modern),
            APPLICATION_DATA if modern => self.protected_modern(keys, direction, record),
            APPLICATION_DATA => {
                let slot = &mut self.directions[direction];
                slot.application_bytes += record.wire_bytes as u64;
                if let Some(decryptor) = &mut slot.legacy {
                    if decryptor.needs_every_record() && record.kept {
                        let _ = decryptor.open(record.kind, record.version, &record.body, slot.lossy);
                    } else {
                        decryptor.pass();
                    }
                }
            }
            ALERT => self.alert_record(direction, record),
            HANDSHAKE if record.version_2 => self.version_2(direction, record),
            HANDSHAKE => {
                let slot = &mut self.directions[direction];
                // After a loss, a record that is no message is assumed to follow a lost ChangeCipherSpec.
                if slot.lossy && !slot.messages.is_within_message() && !modern && !is_message(&record.body) {
                    slot.protected = true;
                }
                if slot.protected {
                    self.protected_legacy(keys, direction, record);
                } else {
                    self.messages(keys, direction, record, &record.body);
                }
            }
            _ => {}
        }
    }

    fn change_cipher_spec(&mut self, keys: &KeyLog, direction: usize, record: &Record<'_>, modern: bool) {
        let after_handshake = self.directions[direction].finished;
        self.push_record(direction, record, Name::Known(MessageName::ChangeCipherSpec), after_handshake);
        if modern {
            return;
        }
        let renegotiated = self.directions[direction].protected;
        let decryptor = if renegotiated { None } else { self.negotiation.legacy_decryptor(keys, direction) };
        if renegotiated {
            self.problems.add("the connection was renegotiated: only the first handshake is reported");
        }
        let slot = &mut self.directions[direction];
        slot.protected = true;
        slot.legacy = decryptor;
    }

    fn version_2(&mut self, direction: usize, record: &Record<'_>) {
        let name = self.negotiation.note_version_2(direction, &record.body);
        self.push_record(direction, record, name, false);
    }

    fn alert_record(&mut self, direction: usize, record: &Record<'_>) {
        let slot = &mut self.directions[direction];
        let lossy = slot.lossy;
        let content = match &mut slot.legacy {
            _ if !slot.protected => Some(record.body.to_vec()),
            Some(decryptor) => decryptor.open(record.kind, record.version, &record.body, lossy),
            None => None,
        };
        push_alert(&mut self.alerts, direction, record.span.end, content.as_deref());
    }

    /// Reads plaintext handshake content.
    fn messages(&mut self, keys: &KeyLog, direction: usize, record: &Record<'_>, plain: &[u8]) {
        let mut messages = Vec::new();
        if self.directions[direction].messages.read(record, plain, &mut messages).is_err() {
            self.problems.add(format!("a handshake record of the {} cannot be read", self.sender(direction)));
            self.directions[direction].lossy = true;
        }
        for message in messages {
            self.message(keys, direction, message);
        }
    }

    fn message(&mut self, keys: &KeyLog, direction: usize, message: Message) {
        let after_handshake = self.directions[direction].finished;
        let name = if after_handshake {
            if message.kind == NEW_SESSION_TICKET
                && let Some(body) = &message.body
            {
                self.negotiation.note_ticket(body);
            }
            MessageName::from_tls(message.kind).map_or(Name::Unknown(message.kind), Name::Known)
        } else {
            self.negotiation.note(direction, message.kind, message.body)
        };
        if let Name::Unknown(number) = name {
            self.problems.add(format!("handshake type {number} has no name"));
        }
        self.push(Seen { direction, name, bytes: message.bytes, span: message.span, after_handshake });
        let modern = self.negotiation.is_tls_1_3();
        let is_client = self.negotiation.client == Some(direction);
        match name {
            Name::Known(MessageName::Finished) => {
                self.directions[direction].finished = true;
                if modern {
                    let label = if is_client { Label::ClientTraffic } else { Label::ServerTraffic };
                    self.enter(keys, direction, Stage::Application, label);
                }
            }
            Name::Known(MessageName::EndOfEarlyData) if modern => {
                self.enter(keys, direction, Stage::Handshake, Label::ClientHandshakeTraffic);
            }
            Name::Known(MessageName::KeyUpdate) if modern => {
                let slot = &mut self.directions[direction];
                slot.modern = slot.modern.as_ref().and_then(|decryptor| decryptor.updated()).map(Box::new);
            }
            _ => {}
        }
    }

    /// Switches a direction to another TLS 1.3 secret.
    fn enter(&mut self, keys: &KeyLog, direction: usize, stage: Stage, label: Label) {
        let slot = &mut self.directions[direction];
        slot.modern = self.negotiation.modern_decryptor(keys, label);
        slot.stage = stage;
    }

    /// Reads a handshake record after ChangeCipherSpec, up to TLS 1.2.
    fn protected_legacy(&mut self, keys: &KeyLog, direction: usize, record: &Record<'_>) {
        let slot = &mut self.directions[direction];
        let lossy = slot.lossy;
        let opened = match &mut slot.legacy {
            Some(decryptor) if record.holes.is_empty() => {
                let opened = decryptor.open(record.kind, record.version, &record.body, lossy);
                let opened = opened.filter(|plain| slot.messages.is_within_message() || is_message(plain));
                if opened.is_none() {
                    slot.legacy = None;
                    self.problems.add("the key log's secret does not decrypt this connection's records");
                }
                opened
            }
            Some(decryptor) => {
                decryptor.pass();
                None
            }
            None => None,
        };
        if let Some(plain) = opened {
            self.messages(keys, direction, record, &plain);
            return;
        }
        let slot = &mut self.directions[direction];
        if std::mem::replace(&mut slot.finished, true) {
            slot.undecrypted_after_handshake += record.wire_bytes as u64;
            return;
        }
        // The message after ChangeCipherSpec is Finished (RFC 5246 section 7.4.9).
        self.push_record(direction, record, Name::Known(MessageName::Finished), false);
    }

    /// Reads an encrypted record of TLS 1.3.
    fn protected_modern(&mut self, keys: &KeyLog, direction: usize, record: &Record<'_>) {
        let is_client = self.negotiation.client == Some(direction);
        if self.directions[direction].stage == Stage::Start && self.has_secrets == Some(true) {
            let label = if is_client { Label::ClientHandshakeTraffic } else { Label::ServerHandshakeTraffic };
            self.enter(keys, direction, Stage::Handshake, label);
            let early =
                is_client && self.negotiation.client_hello.as_ref().is_some_and(|hello| hello.early_data);
            if early
                && let Some(decryptor) = self.negotiation.modern_decryptor(keys, Label::ClientEarlyTraffic)
            {
                self.directions[direction].modern = Some(decryptor);
                self.directions[direction].stage = Stage::Early;
            }
        }
        let mut opened = self.open_modern(direction, record);
        if opened.is_none() && self.directions[direction].stage == Stage::Early {
            // The server rejected early data: the record belongs to the handshake.
            let early = self.directions[direction].modern.take();
            self.directions[direction].modern =
                self.negotiation.modern_decryptor(keys, Label::ClientHandshakeTraffic);
            opened = self.open_modern(direction, record);
            if opened.is_some() {
                self.directions[direction].stage = Stage::Handshake;
            } else {
                self.directions[direction].modern = early;
            }
        }
        let Some((kind, plain)) = opened else {
            self.unopened(direction, record, is_client);
            return;
        };
        match kind {
            HANDSHAKE => self.messages(keys, direction, record, &plain),
            ALERT => push_alert(&mut self.alerts, direction, record.span.end, Some(&plain)),
            _ => self.directions[direction].application_bytes += record.wire_bytes as u64,
        }
    }

    fn open_modern(&mut self, direction: usize, record: &Record<'_>) -> Option<(u8, Vec<u8>)> {
        let slot = &mut self.directions[direction];
        if !record.kept || !record.holes.is_empty() {
            slot.lossy = true;
            return None;
        }
        let opened = slot.modern.as_mut()?.open(&record.header, &record.body, slot.lossy);
        if opened.is_some() {
            slot.lossy = false;
        }
        opened
    }

    fn unopened(&mut self, direction: usize, record: &Record<'_>, is_client: bool) {
        let early = is_client && self.negotiation.client_hello.as_ref().is_some_and(|hello| hello.early_data);
        let slot = &mut self.directions[direction];
        if slot.finished {
            slot.application_bytes += record.wire_bytes as u64;
            return;
        }
        if slot.modern.is_some() && !early {
            self.problems.add("the key log's secrets do not decrypt this connection's records");
        }
        if slot.undecrypted.len() < MAX_UNDECRYPTED {
            slot.undecrypted.push(Undecrypted { wire_bytes: record.wire_bytes, span: record.span });
        } else {
            slot.application_bytes += record.wire_bytes as u64;
        }
    }

    /// Adds a record that is reported as one message.
    fn push_record(&mut self, direction: usize, record: &Record<'_>, name: Name, after_handshake: bool) {
        let bytes = record.wire_bytes as u64;
        self.push(Seen { direction, name, bytes, span: record.span, after_handshake });
    }

    fn push(&mut self, seen: Seen) {
        push_message(&mut self.seen, &mut self.problems, seen);
    }
}

/// True if a complete hello message begins here.
fn is_hello(body: &[u8]) -> bool {
    let &[1 | 2, high, middle, low, 3, ..] = body else { return false };
    let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
    length + 4 <= body.len()
}

/// True if a message header may begin here.
fn is_message(body: &[u8]) -> bool {
    matches!(body, [kind, 0 | 1, _, _, ..] if MessageName::from_tls(*kind).is_some())
}
