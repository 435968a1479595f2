//! What client and server have in common: taking datagrams apart, order and duplicates, alerts,
//! timers and data. Handshakes are left to a [`State`], which is given one message at a time.

use crate::alert::{Alert, AlertDescription, AlertLevel, AlertMessage, Checksum};
use crate::codec::{Codec, DecodeError};
use crate::config::Settings;
use crate::context::{Context, Time};
use crate::crypto::Provider;
use crate::error::{Error, SendError};
use crate::event::{CloseReason, Event};
use crate::inbox::{Inbox, Turn};
use crate::link::{CipherSpecChanged, Link, is_clear_text};
use crate::message::Frame;
use crate::numbers::{ContentType, HandshakeType};
use crate::observer::Message;
use crate::protection::OpenError;
use crate::record::{Record, Records};
use crate::timer::{Expiry, Timer};
use core::time::Duration;

/// The longest data that fits into a datagram whatever the suite: the greatest UDP payload over
/// IPv4, less header, MAC, padding and a prefix of ChangeCipherSpec and Finished.
pub const MAX_DATA_BYTES: usize = 65_507 - 5 - 20 - 8 - 64;

/// Protected records that came before their keys; more than these are left to retransmission.
const EARLY_RECORDS: usize = 4;
pub(crate) const EARLY_BYTES: usize = 1024;

/// How many warnings are sent about records that do not open. An attacker who can make us send
/// must not be able to do so for ever.
const WARNINGS: u32 = 8;

/// How often a client is told that its Finished has come before. Each time uses up a number, and
/// anybody can send a Finished again that was seen on the way.
const DUPLICATES_TOLD: u32 = 64;

/// How often a server answers the same datagram again.
const RESENDS: u32 = 16;

/// How a connection is to be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    /// The session can be resumed.
    Connection,
    /// The session is over too.
    Session,
}

/// One message, given to a state in its turn.
pub(crate) enum Input<'a> {
    Handshake(Frame<'a>),
    ChangeCipherSpec(CipherSpecChanged),
}

impl Input<'_> {
    pub fn message(&self) -> Message {
        match self {
            Self::Handshake(frame) => Message::Handshake(frame.handshake_type),
            Self::ChangeCipherSpec(_) => Message::ChangeCipherSpec,
        }
    }

    /// The error of a state that has no use for this message.
    pub fn unexpected(&self, expected: &'static str) -> Error {
        Error::UnexpectedMessage { expected, received: self.message() }
    }
}

/// A side's handshake: each state takes the one message that it expects and becomes the next.
pub(crate) trait State: Sized {
    /// What does the cryptography.
    type Provider: Provider;

    /// Whether this side sends flights again on its own account.
    const OWNS_RETRANSMISSION: bool;

    /// Takes a message.
    fn handle(
        self,
        input: Input<'_>,
        link: &mut Link,
        cx: &mut Context<'_, Self::Provider>,
    ) -> Result<Self, Error>;

    /// Makes the flight that is due, if any.
    fn respond(self, link: &mut Link, cx: &mut Context<'_, Self::Provider>) -> Result<Self, Error>;

    /// Whether the handshake is over.
    fn is_open(&self) -> bool;

    /// The session must not be resumed any more.
    fn forget_session(&self, link: &mut Link);
}

/// A server's last flight and the datagram that asked for it.
struct Reply {
    trigger: Vec<u8>,
    datagram: Vec<u8>,
    resends: u32,
}

pub(crate) struct Connection<S> {
    pub link: Link,
    state: Option<S>,
    inbox: Inbox,
    early: Vec<Vec<u8>>,
    plaintext: Vec<u8>,
    /// The client's last flight, until it is answered.
    unanswered: Vec<u8>,
    timer: Option<Timer>,
    reply: Option<Reply>,
    /// When a handshake that is not over is given up.
    deadline: Option<Duration>,
    warnings_sent: u32,
    finished_came_again: bool,
    duplicates_told: u32,
}

impl<S: State> Connection<S> {
    pub fn new(settings: Settings, state: S) -> Self {
        Self {
            link: Link::new(settings),
            state: Some(state),
            inbox: Inbox::default(),
            early: Vec::new(),
            plaintext: Vec::new(),
            unanswered: Vec::new(),
            timer: None,
            reply: None,
            deadline: None,
            warnings_sent: 0,
            finished_came_again: false,
            duplicates_told: 0,
        }
    }

    /// Gives the handshake up at `deadline`.
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    pub fn is_closed(&self) -> bool {
        self.state.is_none()
    }

    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.link.outgoing.pop_front()
    }

    pub fn poll_event(&mut self) -> Option<Event> {
        self.link.events.pop_front()
    }

    /// Bytes held on the heap for this connection, to within what the allocator adds.
    pub fn heap_bytes(&self) -> usize {
        let reply = self.reply.as_ref().map_or(0, |reply| reply.trigger.len() + reply.datagram.len());
        let early: usize = self.early.iter().map(Vec::len).sum();
        let outgoing: usize = self.link.outgoing.iter().map(Vec::len).sum();
        reply + early + outgoing + self.inbox.held_bytes() + self.unanswered.len() + self.plaintext.capacity()
    }

    /// Bytes that the state holds, as `count` counts them.
    pub fn state_heap_bytes(&self, count: impl FnOnce(&S) -> usize) -> usize {
        self.state.as_ref().map_or(0, count)
    }

    pub fn is_open(&self) -> bool {
        self.state.as_ref().is_some_and(S::is_open)
    }

    pub fn poll_timeout(&self) -> Option<Duration> {
        let timer = self.timer.as_ref().map(Timer::deadline);
        match (timer, self.deadline) {
            (Some(timer), Some(deadline)) => Some(timer.min(deadline)),
            (timer, deadline) => timer.or(deadline),
        }
    }

    /// Lets the first state speak, for the side that speaks first.
    pub fn start(&mut self, cx: &mut Context<'_, S::Provider>) {
        self.respond(cx, &[]);
    }

    pub fn handle_timeout(&mut self, cx: &mut Context<'_, S::Provider>) {
        let now = cx.now.elapsed;
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            return self.closed(CloseReason::TimedOut);
        }
        let Some(timer) = &mut self.timer else { return };
        match timer.expire(now) {
            Expiry::NotYet => {}
            Expiry::SendAgain => self.link.outgoing.push_back(self.unanswered.clone()),
            // An open client has done all it can to get its last flight across; the next data will
            // carry it again.
            Expiry::GiveUp if self.is_open() => self.timer = None,
            Expiry::GiveUp => self.closed(CloseReason::TimedOut),
        }
    }

    pub fn handle_datagram(&mut self, cx: &mut Context<'_, S::Provider>, datagram: &[u8]) {
        if self.is_closed() || self.answer_again(datagram) {
            return;
        }
        self.finished_came_again = false;
        for record in Records::new(datagram).map_while(Result::ok) {
            self.handle_record(cx, &record, datagram);
            if self.is_closed() {
                return;
            }
        }
        let told = self.duplicates_told >= DUPLICATES_TOLD;
        if self.finished_came_again && !told && !S::OWNS_RETRANSMISSION && self.is_open() {
            self.duplicates_told += 1;
            let alert = Alert::warning(AlertDescription::DuplicateFinishedReceived);
            self.link.send_alert(cx.provider, alert);
        }
    }

    /// Sends the last flight once more if the datagram that asked for it came once more.
    fn answer_again(&mut self, datagram: &[u8]) -> bool {
        match &mut self.reply {
            Some(reply) if reply.trigger == datagram => {
                if reply.resends < RESENDS {
                    reply.resends += 1;
                    self.link.outgoing.push_back(reply.datagram.clone());
                }
                true
            }
            _ => false,
        }
    }

    fn handle_record(&mut self, cx: &mut Context<'_, S::Provider>, record: &Record<'_>, datagram: &[u8]) {
        let Some(content) = record.record_type.content() else { return };
        if record.record_type.is_protected() {
            self.handle_protected(cx, content, record, datagram);
        } else {
            self.handle_plain(cx, content, record, datagram);
        }
    }

    fn handle_plain(
        &mut self,
        cx: &mut Context<'_, S::Provider>,
        content: ContentType,
        record: &Record<'_>,
        datagram: &[u8],
    ) {
        match (content, record.sequence) {
            (ContentType::Alert, sequence) => self.handle_plain_alert(cx, record, sequence),
            // Handshake messages always carry their number; a plain one is none of an open
            // connection's business; plain data is nobody's.
            (ContentType::ApplicationData, _) | (_, None) => {}
            _ if self.is_open() => {}
            (_, Some(sequence)) => {
                if self.inbox.offer(sequence, record.raw) != Turn::Now {
                    return;
                }
                self.handle_in_turn(cx, content, record, datagram);
                while let (false, Some(raw)) = (self.is_closed(), self.inbox.next()) {
                    for record in Records::new(&raw).map_while(Result::ok) {
                        if let Some(content) = record.record_type.content() {
                            self.handle_in_turn(cx, content, &record, datagram);
                        }
                    }
                }
            }
        }
    }

    fn handle_in_turn(
        &mut self,
        cx: &mut Context<'_, S::Provider>,
        content: ContentType,
        record: &Record<'_>,
        datagram: &[u8],
    ) {
        self.link.last_received = Checksum::of(record.raw);
        let input = match content {
            ContentType::ChangeCipherSpec if record.fragment == [1] => {
                cx.observer.processing(Message::ChangeCipherSpec);
                Ok(Input::ChangeCipherSpec(CipherSpecChanged::received()))
            }
            ContentType::ChangeCipherSpec => {
                let field = "change_cipher_spec";
                let value = record.fragment.first().copied().unwrap_or(0).into();
                Err(DecodeError::Unassigned { field, value })
            }
            _ => Frame::parse(record.fragment).map(|frame| {
                cx.observer.processing(Message::Handshake(frame.handshake_type));
                Input::Handshake(frame)
            }),
        };
        match input {
            // It may come at any time and belongs to no handshake.
            Ok(Input::Handshake(frame)) if frame.handshake_type == HandshakeType::HelloRequest => {}
            Ok(input) => self.advance(cx, input, record.raw.len(), datagram),
            Err(error) => self.fail(cx, error.into()),
        }
    }

    /// Gives a message to the state and lets it answer.
    fn advance(
        &mut self,
        cx: &mut Context<'_, S::Provider>,
        input: Input<'_>,
        wire_bytes: usize,
        datagram: &[u8],
    ) {
        let Some(state) = self.state.take() else { return };
        let message = input.message();
        match state.handle(input, &mut self.link, cx) {
            Ok(state) => {
                cx.observer.processed(message, wire_bytes);
                self.state = Some(state);
                self.respond(cx, datagram);
                self.retry_early(cx, datagram);
            }
            Err(error) => self.fail(cx, error),
        }
    }

    fn respond(&mut self, cx: &mut Context<'_, S::Provider>, datagram: &[u8]) {
        let Some(state) = self.state.take() else { return };
        match state.respond(&mut self.link, cx) {
            Ok(state) => {
                if state.is_open() {
                    self.timer = None;
                    self.deadline = None;
                    self.reply = None;
                    self.unanswered = Vec::new();
                }
                self.state = Some(state);
                self.send_flight(cx.now, S::OWNS_RETRANSMISSION, datagram);
            }
            Err(error) => self.fail(cx, error),
        }
    }

    fn send_flight(&mut self, now: Time, owns_retransmission: bool, trigger: &[u8]) {
        let Some(flight) = self.link.flight.take() else { return };
        if owns_retransmission {
            self.timer = Some(Timer::start(self.link.settings.retransmission, now.elapsed));
            self.unanswered = flight.clone();
        } else {
            let trigger = trigger.to_vec();
            self.reply = Some(Reply { trigger, datagram: flight.clone(), resends: 0 });
        }
        self.link.outgoing.push_back(flight);
    }

    fn handle_protected(
        &mut self,
        cx: &mut Context<'_, S::Provider>,
        content: ContentType,
        record: &Record<'_>,
        datagram: &[u8],
    ) {
        let is_open = self.is_open();
        let too_early = content == ContentType::ApplicationData && !is_open;
        let Some(opener) = self.link.opener.as_mut().filter(|_| !too_early) else {
            return self.keep_early(record);
        };
        let finished = content == ContentType::Handshake && !is_open;
        if record.sequence.is_some_and(|sequence| opener.is_replay(sequence)) {
            self.finished_came_again |= content == ContentType::Handshake;
            return;
        }
        if finished {
            cx.observer.processing(Message::Handshake(HandshakeType::Finished));
        }
        let mut plaintext = core::mem::take(&mut self.plaintext);
        let opened = opener.open(cx.provider, record, &mut plaintext);
        self.link.last_received = Checksum::of(record.raw);
        match opened {
            Ok(()) => self.handle_opened(cx, content, &plaintext, record.raw.len(), datagram),
            Err(OpenError::Replayed) => {}
            Err(error) if is_open => self.warn(cx, error),
            Err(error) => self.fail(cx, error.into()),
        }
        self.plaintext = plaintext;
    }

    fn handle_opened(
        &mut self,
        cx: &mut Context<'_, S::Provider>,
        content: ContentType,
        plaintext: &[u8],
        wire_bytes: usize,
        datagram: &[u8],
    ) {
        match content {
            ContentType::Handshake => match Frame::parse(plaintext) {
                Ok(frame) if self.is_open() => self.refuse_handshake(cx, frame.handshake_type),
                Ok(frame) => self.advance(cx, Input::Handshake(frame), wire_bytes, datagram),
                Err(error) => self.fail(cx, error.into()),
            },
            ContentType::ApplicationData => {
                self.peer_is_open();
                self.link.events.push_back(Event::Data(plaintext.to_vec()));
            }
            ContentType::Alert => match AlertMessage::from_bytes("alert", plaintext) {
                Ok(message) => self.handle_alert(cx, message.alert, true),
                Err(error) => self.fail(cx, error.into()),
            },
            // There is no second handshake on a connection, so no second change either.
            ContentType::ChangeCipherSpec => {
                let alert = Alert::warning(AlertDescription::UnexpectedMessage);
                self.link.send_alert(cx.provider, alert);
            }
        }
    }

    /// Handshakes on a live connection are not taken part in; either side may refuse them (§10.2.2).
    fn refuse_handshake(&mut self, cx: &mut Context<'_, S::Provider>, handshake_type: HandshakeType) {
        let description = match handshake_type {
            HandshakeType::HelloRequest | HandshakeType::ClientHello => AlertDescription::NoRenegotiation,
            _ => AlertDescription::UnexpectedMessage,
        };
        self.link.send_alert(cx.provider, Alert::warning(description));
    }

    /// The peer has shown that it holds our last flight.
    fn peer_is_open(&mut self) {
        self.link.prefix = None;
        self.timer = None;
        self.unanswered = Vec::new();
        self.reply = None;
    }

    fn keep_early(&mut self, record: &Record<'_>) {
        let bytes: usize = self.early.iter().map(Vec::len).sum();
        let room = self.early.len() < EARLY_RECORDS && bytes + record.raw.len() <= EARLY_BYTES;
        if room && !self.early.iter().any(|early| early == record.raw) {
            self.early.push(record.raw.to_vec());
        }
    }

    /// Looks again at records that came before their keys.
    fn retry_early(&mut self, cx: &mut Context<'_, S::Provider>, datagram: &[u8]) {
        for raw in core::mem::take(&mut self.early) {
            for record in Records::new(&raw).map_while(Result::ok) {
                self.handle_record(cx, &record, datagram);
            }
        }
    }

    /// An alert in clear text is believed if its checksum shows that the sender saw a record of
    /// ours. Before the first answer it may have seen none.
    fn handle_plain_alert(
        &mut self,
        cx: &mut Context<'_, S::Provider>,
        record: &Record<'_>,
        sequence: Option<u16>,
    ) {
        let Ok(message) = AlertMessage::from_bytes("alert", record.fragment) else { return };
        let saw_nothing =
            message.checksum == Checksum::NOTHING && self.link.last_received == Checksum::NOTHING;
        if !saw_nothing && !self.link.sent.matches(message.checksum) {
            return;
        }
        // Once there are keys, only alerts about records that could not be read go without them.
        if self.is_open() && !is_clear_text(message.alert.description) {
            return;
        }
        self.link.last_received = Checksum::of(record.raw);
        if let (Some(sequence), false) = (sequence, self.is_open()) {
            self.inbox.pass(sequence);
        }
        self.handle_alert(cx, message.alert, false);
    }

    fn handle_alert(&mut self, cx: &mut Context<'_, S::Provider>, alert: Alert, protected: bool) {
        self.link.events.push_back(Event::AlertReceived(alert));
        match alert.description {
            AlertDescription::ConnectionCloseNotify | AlertDescription::SessionCloseNotify => {
                if alert.description == AlertDescription::SessionCloseNotify && protected {
                    self.forget_session();
                }
                self.link.send_alert(cx.provider, alert);
                self.closed(CloseReason::Peer);
            }
            AlertDescription::DuplicateFinishedReceived if self.is_open() => self.peer_is_open(),
            AlertDescription::TimeRequired => {
                if let Some(timer) = &mut self.timer {
                    timer.extend(cx.now.elapsed);
                }
            }
            _ if alert.ends_connection() => {
                // What anybody could have sent does not end a session (§10.2.2).
                if alert.level == AlertLevel::Fatal && protected {
                    self.forget_session();
                }
                self.closed(CloseReason::Alert(alert));
            }
            _ => {}
        }
    }

    fn warn(&mut self, cx: &mut Context<'_, S::Provider>, error: OpenError) {
        if self.warnings_sent < WARNINGS {
            self.warnings_sent += 1;
            let alert = Alert::warning(record_alert(error, &self.link.settings));
            self.link.send_alert(cx.provider, alert);
        }
    }

    fn fail(&mut self, cx: &mut Context<'_, S::Provider>, error: Error) {
        let mut alert = error.alert();
        if let Error::Record(record_error) = &error {
            alert.description = record_alert(*record_error, &self.link.settings);
        }
        self.link.send_alert(cx.provider, alert);
        self.forget_session();
        self.closed(CloseReason::Failed(error));
    }

    fn forget_session(&mut self) {
        if let Some(state) = &self.state {
            state.forget_session(&mut self.link);
        }
        self.link.session = None;
    }

    fn closed(&mut self, reason: CloseReason) {
        self.state = None;
        self.timer = None;
        self.deadline = None;
        self.reply = None;
        self.early = Vec::new();
        self.link.opener = None;
        self.link.events.push_back(Event::Closed(reason));
    }

    pub fn send(&mut self, cx: &mut Context<'_, S::Provider>, data: &[u8]) -> Result<(), SendError> {
        if !self.is_open() {
            return Err(SendError::NotOpen);
        }
        if data.is_empty() {
            return Err(SendError::Empty);
        }
        if data.len() > MAX_DATA_BYTES {
            return Err(SendError::TooLong { length: data.len(), max: MAX_DATA_BYTES });
        }
        // The last number is for saying goodbye.
        if self.link.numbers_left() <= 1 {
            self.close(cx, Close::Connection);
            return Err(crate::protection::SequenceExhausted.into());
        }
        Ok(self.link.send_data(cx.provider, data)?)
    }

    pub fn close(&mut self, cx: &mut Context<'_, S::Provider>, close: Close) {
        if self.is_closed() {
            return;
        }
        let alert = match close {
            Close::Connection => Alert::critical(AlertDescription::ConnectionCloseNotify),
            Close::Session => Alert::fatal(AlertDescription::SessionCloseNotify),
        };
        self.link.send_alert(cx.provider, alert);
        if close == Close::Session {
            self.forget_session();
        }
        self.closed(CloseReason::Local);
    }
}

/// The alert about a record that does not open: always the same one, unless the specification's two
/// are asked for.
fn record_alert(error: OpenError, settings: &Settings) -> AlertDescription {
    match error {
        OpenError::BadPadding | OpenError::BadLength if settings.distinguish_record_errors => {
            AlertDescription::DecryptionFailed
        }
        _ => AlertDescription::BadRecordMac,
    }
}
