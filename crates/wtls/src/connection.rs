//! An established connection of either side: data, alerts, duplicates and closing.
//!
//! Only records that authenticate with its keys affect it. Its owner processes unencrypted records, which cannot
//! end it.

use crate::alert::{Alert, AlertDescription, AlertLevel, AlertMessage, Checksum};
use crate::codec::Codec;
use crate::config::{MAX_DATAGRAM_BYTES, Settings};
use crate::context::Context;
use crate::crypto::Provider;
use crate::error::{Error, WriteError, record_alert};
use crate::event::{CloseReason, Event};
use crate::flight::{Outbound, Place};
use crate::limiter::{Bucket, Budget};
use crate::message::Frame;
use crate::numbers::{ContentType, HandshakeType};
use crate::protection::{RecordDecryptor, RecordError, SequenceExhausted};
use crate::record::Record;
use crate::session::Session;
use crate::timer::{Expiry, Timer};
use core::time::Duration;
use std::collections::VecDeque;

/// Maximum overhead of a data record in any suite: header, MAC, padding.
const OVERHEAD_BYTES: usize = 5 + 20 + 8;

/// The longest data that fits into a datagram in any suite: the largest UDP payload over IPv4, less header, MAC,
/// padding, and ChangeCipherSpec and Finished in front of it.
pub const MAX_DATA_BYTES: usize = MAX_DATAGRAM_BYTES - OVERHEAD_BYTES - 64;

/// Limit of warnings about unreadable records. Each warning uses one of 65,536 sequence numbers, and an attacker can
/// send any number of such records.
const WARNINGS: Budget = Budget::per_minute(8);

/// Limit of responses to a repeated Finished. Each response uses a sequence number, and an attacker can replay a
/// Finished.
const DUPLICATES: Budget = Budget::per_minute(64);

/// Limit of retransmissions of a flight in response to a repeated flight of the peer.
pub(crate) const RESENDS: Budget = Budget::per_second(16, 1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    Connection,
    Session,
}

impl Close {
    pub(crate) fn alert(self) -> Alert {
        match self {
            Self::Connection => Alert::critical(AlertDescription::ConnectionCloseNotify),
            Self::Session => Alert::fatal(AlertDescription::SessionCloseNotify),
        }
    }
}

/// Datagrams and events for the caller.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub datagrams: VecDeque<Vec<u8>>,
    pub events: VecDeque<Event>,
}

impl Output {
    /// Sends an alert in a separate datagram, if a sequence number is left.
    pub fn alert<P: Provider>(
        &mut self,
        provider: &P,
        outbound: &mut Outbound,
        alert: Alert,
        about: Checksum,
    ) {
        if let Some(datagram) = outbound.alert(provider, alert, about) {
            self.datagrams.push_back(datagram);
            self.events.push_back(Event::AlertSent(alert));
        }
    }
}

/// The result of a protected record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It was protected with the connection's keys, and has been processed.
    Authentic,
    /// Its number was received before, or is too old. Whether it is the same record is not known.
    Duplicate,
    /// It was not protected with the connection's keys.
    Foreign(RecordError),
}

/// This side's last flight, and the datagram to which it is the response.
struct Reply {
    request: Vec<u8>,
    flight: Vec<u8>,
    resends: Bucket,
}

/// The end of the handshake on this side.
pub(crate) enum Ending {
    /// The peer's Finished was the response to this side's.
    Answered,
    /// This side's Finished was the response to the peer's. It is retransmitted if the peer's is repeated.
    Reply { request: Vec<u8>, flight: Vec<u8> },
    /// This side is the client and its Finished was the last: it is sent in front of data until the server responds.
    ClientLast { flight: Vec<u8>, timer: Timer },
    /// The peer is the client and its Finished was the last: a repetition is acknowledged.
    ServerFirst,
}

pub(crate) struct Connection {
    settings: Settings,
    outbound: Outbound,
    decryptor: RecordDecryptor,
    pub session: Option<Session>,
    /// The session must not be resumed. The owner removes it from the session store.
    pub session_ended: bool,
    reply: Option<Reply>,
    /// The client's last flight, until the server has responded.
    last_flight: Option<Vec<u8>>,
    timer: Option<Timer>,
    /// Whether the peer may repeat its Finished in front of data.
    peer_repeats_finished: bool,
    finished_came_again: bool,
    /// Whether the peer is known to have received this side's last flight.
    pub confirmed: bool,
    plaintext: Vec<u8>,
    last_received: Checksum,
    warnings: Bucket,
    duplicates: Bucket,
    /// The time of the last authentic record.
    pub last_input_at: Duration,
    pub closed: bool,
    pub output: Output,
}

impl Connection {
    pub fn new(
        settings: Settings,
        outbound: Outbound,
        decryptor: RecordDecryptor,
        session: Option<Session>,
        ending: Ending,
        now: Duration,
    ) -> Self {
        let mut connection = Self {
            settings,
            outbound,
            decryptor,
            session,
            session_ended: false,
            reply: None,
            last_flight: None,
            timer: None,
            peer_repeats_finished: false,
            finished_came_again: false,
            confirmed: false,
            plaintext: Vec::new(),
            last_received: Checksum::NOTHING,
            warnings: Bucket::new(WARNINGS),
            duplicates: Bucket::new(DUPLICATES),
            last_input_at: now,
            closed: false,
            output: Output::default(),
        };
        match ending {
            Ending::Answered => connection.confirmed = true,
            Ending::Reply { request, flight } => {
                connection.reply = Some(Reply { request, flight, resends: Bucket::new(RESENDS) });
            }
            Ending::ClientLast { flight, timer } => {
                connection.last_flight = Some(flight);
                connection.timer = Some(timer);
            }
            Ending::ServerFirst => {
                connection.confirmed = true;
                connection.peer_repeats_finished = true;
            }
        }
        connection
    }

    /// Bytes in use on the heap, without the allocator's overhead.
    pub fn heap_bytes(&self) -> usize {
        let reply = self.reply.as_ref().map_or(0, |reply| reply.request.len() + reply.flight.len());
        let outgoing: usize = self.output.datagrams.iter().map(Vec::len).sum();
        reply + outgoing + self.last_flight.as_ref().map_or(0, Vec::len) + self.plaintext.capacity()
    }

    pub fn poll_timeout(&self) -> Option<Duration> {
        self.timer.as_ref().map(Timer::deadline)
    }

    pub fn handle_timeout(&mut self, now: Duration) {
        let Some(timer) = &mut self.timer else { return };
        match timer.expire(now) {
            Expiry::NotYet => {}
            Expiry::SendAgain => self.output.datagrams.extend(self.last_flight.clone()),
            // The last flight is not retransmitted any more, but is still sent in front of data.
            Expiry::GiveUp => self.timer = None,
        }
    }

    /// Retransmits the last flight if the peer repeated the datagram to which it responds.
    pub fn answer_again(&mut self, now: Duration, datagram: &[u8]) -> bool {
        let Some(reply) = self.reply.as_mut().filter(|reply| reply.request == datagram) else { return false };
        if reply.resends.take(1, now) {
            self.output.datagrams.push_back(reply.flight.clone());
        }
        true
    }

    /// Processes a protected record.
    pub fn receive<P: Provider>(
        &mut self,
        cx: &mut Context<'_, P>,
        content: ContentType,
        record: &Record<'_>,
    ) -> Verdict {
        if record.sequence.is_some_and(|sequence| self.decryptor.is_replay(sequence)) {
            self.finished_came_again |= content == ContentType::Handshake;
            return Verdict::Duplicate;
        }
        let mut plaintext = core::mem::take(&mut self.plaintext);
        let verdict = match self.decryptor.decrypt(cx.provider, record, &mut plaintext) {
            Ok(()) => {
                self.last_received = Checksum::of(record.raw);
                self.last_input_at = cx.now.elapsed;
                self.handle(cx, content, &plaintext);
                Verdict::Authentic
            }
            Err(RecordError::Replayed) => Verdict::Duplicate,
            Err(error) => Verdict::Foreign(error),
        };
        self.plaintext = plaintext;
        verdict
    }

    /// Must be called when all records of a datagram have been received. Acknowledges a repeated Finished of the
    /// client, which otherwise repeats it in front of all its data.
    pub fn end_of_datagram<P: Provider>(&mut self, cx: &mut Context<'_, P>) {
        let came_again = core::mem::take(&mut self.finished_came_again) && self.peer_repeats_finished;
        if came_again && !self.closed && self.duplicates.take(1, cx.now.elapsed) {
            let alert = Alert::warning(AlertDescription::DuplicateFinishedReceived);
            self.alert(cx, alert);
        }
    }

    /// Warns the peer of a record that could not be decrypted.
    pub fn warn<P: Provider>(&mut self, cx: &mut Context<'_, P>, error: RecordError, about: Checksum) {
        if self.warnings.take(1, cx.now.elapsed) {
            let alert = Alert::warning(record_alert(error, &self.settings));
            self.output.alert(cx.provider, &mut self.outbound, alert, about);
        }
    }

    fn alert<P: Provider>(&mut self, cx: &mut Context<'_, P>, alert: Alert) {
        self.output.alert(cx.provider, &mut self.outbound, alert, self.last_received);
    }

    fn handle<P: Provider>(&mut self, cx: &mut Context<'_, P>, content: ContentType, plaintext: &[u8]) {
        match content {
            ContentType::Handshake => match Frame::parse(plaintext) {
                Ok(frame) => self.refuse_handshake(cx, frame.handshake_type),
                Err(error) => self.fail(cx, error.into()),
            },
            ContentType::ApplicationData => {
                self.confirm();
                self.output.events.push_back(Event::Data(plaintext.to_vec()));
            }
            ContentType::Alert => match AlertMessage::from_bytes("alert", plaintext) {
                Ok(message) => self.handle_alert(cx, message.alert),
                Err(error) => self.fail(cx, error.into()),
            },
            // There is no second handshake on a connection, so ChangeCipherSpec is unexpected.
            ContentType::ChangeCipherSpec => {
                self.alert(cx, Alert::warning(AlertDescription::UnexpectedMessage));
            }
        }
    }

    /// Rejects a handshake within an established connection, as either side may (§10.2.2).
    fn refuse_handshake<P: Provider>(&mut self, cx: &mut Context<'_, P>, handshake_type: HandshakeType) {
        let description = match handshake_type {
            HandshakeType::HelloRequest | HandshakeType::ClientHello => AlertDescription::NoRenegotiation,
            _ => AlertDescription::UnexpectedMessage,
        };
        self.alert(cx, Alert::warning(description));
    }

    /// The peer has proved that it received this side's last flight.
    fn confirm(&mut self) {
        self.confirmed = true;
        self.last_flight = None;
        self.timer = None;
        self.reply = None;
    }

    fn handle_alert<P: Provider>(&mut self, cx: &mut Context<'_, P>, alert: Alert) {
        self.output.events.push_back(Event::AlertReceived(alert));
        match alert.description {
            AlertDescription::ConnectionCloseNotify | AlertDescription::SessionCloseNotify => {
                if alert.description == AlertDescription::SessionCloseNotify {
                    self.end_session();
                }
                self.alert(cx, alert);
                self.end(CloseReason::Peer);
            }
            AlertDescription::DuplicateFinishedReceived => self.confirm(),
            _ if alert.ends_connection() => {
                if alert.level == AlertLevel::Fatal {
                    self.end_session();
                }
                self.end(CloseReason::Alert(alert));
            }
            _ => {}
        }
    }

    fn fail<P: Provider>(&mut self, cx: &mut Context<'_, P>, error: Error) {
        self.alert(cx, error.alert());
        self.end_session();
        self.end(CloseReason::Failed(error));
    }

    fn end_session(&mut self) {
        self.session_ended |= self.session.is_some();
    }

    pub fn end(&mut self, reason: CloseReason) {
        self.closed = true;
        self.timer = None;
        self.reply = None;
        self.last_flight = None;
        self.output.events.push_back(Event::Closed(reason));
    }

    pub fn write<P: Provider>(&mut self, cx: &mut Context<'_, P>, data: &[u8]) -> Result<(), WriteError> {
        if data.is_empty() {
            return Err(WriteError::Empty);
        }
        let largest = self.settings.max_datagram_bytes;
        let max = largest.saturating_sub(OVERHEAD_BYTES).min(MAX_DATA_BYTES);
        if data.len() > max {
            return Err(WriteError::TooLong { length: data.len(), max });
        }
        // The last sequence number is reserved for close_notify.
        if self.outbound.numbers_left() <= 1 {
            self.close(cx, Close::Connection);
            return Err(SequenceExhausted.into());
        }
        let mut datagram = self.last_flight.clone().unwrap_or_default();
        // If both do not fit into one datagram, the flight is sent separately, before the data.
        if datagram.len() + OVERHEAD_BYTES + data.len() > largest {
            self.output
                .datagrams
                .extend(Some(core::mem::take(&mut datagram)).filter(|flight| !flight.is_empty()));
        }
        let content = ContentType::ApplicationData;
        self.outbound.append(cx.provider, &mut datagram, content, data, Place::Last)?;
        self.output.datagrams.push_back(datagram);
        Ok(())
    }

    pub fn close<P: Provider>(&mut self, cx: &mut Context<'_, P>, close: Close) {
        self.alert(cx, close.alert());
        if close == Close::Session {
            self.end_session();
        }
        self.end(CloseReason::Local);
    }
}
