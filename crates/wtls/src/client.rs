//! The client.
//!
//! A handshake is ClientHello, and then flights of the server that are read whole ([`crate::flight`]):
//!
//! | what has been sent | what is read | what follows |
//! | --- | --- | --- |
//! | ClientHello (`HelloSent`) | ServerHello … ServerHelloDone | our second flight: a `Candidate` |
//! | | ServerHello … Finished (resumed, optimised, shared secret) | ours, and the connection |
//! | the second flight (`Candidate`) | ChangeCipherSpec, Finished | the connection |
//!
//! Nothing in the server's first flight proves where it comes from, so it does not replace the
//! ClientHello that it answers: each such flight makes a candidate of its own, and the one whose keys
//! the server's Finished was made with becomes the connection. Flights that make no sense and alerts
//! are reported, and end the handshake only if nothing better comes in time.

mod candidate;
mod exchange;
mod handshake;
mod hello;

use crate::alert::{AlertMessage, SentChecksums, is_clear_text};
use crate::codec::Codec;
use crate::config::ClientConfig;
use crate::connection::{Close, Connection, Output, Verdict};
use crate::context::Context;
use crate::crypto::Provider;
use crate::error::WriteError;
use crate::event::{CloseReason, Event};
use crate::numbers::ContentType;
use crate::record::Records;
use crate::session::Session;
use candidate::Opened;
use core::time::Duration;
use handshake::Handshake;
use std::sync::Arc;

/// A client's connection: see the crate's documentation for how to drive it.
pub struct Client<P: Provider> {
    stage: Stage<P>,
    /// The records that alerts in clear text may refer to.
    sent: SentChecksums,
    output: Output,
}

enum Stage<P: Provider> {
    Handshake(Box<Handshake<P>>),
    /// Established, until it is closed and afterwards.
    Connection(Box<Connection>),
    /// Without ever having been established.
    Failed,
}

impl<P: Provider> Client<P> {
    /// Begins a handshake, resuming `session` if there is one that may still be resumed. The ClientHello
    /// is ready to be taken from [`poll_transmit`](Self::poll_transmit).
    pub fn new(config: Arc<ClientConfig<P>>, session: Option<Session>, cx: &mut Context<'_, P>) -> Self {
        let mut output = Output::default();
        let stage = match Handshake::start(config, session, cx, &mut output) {
            Ok(handshake) => Stage::Handshake(Box::new(handshake)),
            Err(error) => {
                output.events.push_back(Event::Closed(CloseReason::Failed(error)));
                Stage::Failed
            }
        };
        let mut client = Self { stage, sent: SentChecksums::default(), output };
        client.remember_sent(0);
        client
    }

    /// Takes a datagram from the server.
    pub fn handle_input(&mut self, cx: &mut Context<'_, P>, datagram: &[u8]) {
        let before = self.output.datagrams.len();
        self.handle_plain_alerts(cx, datagram);
        match &mut self.stage {
            Stage::Handshake(handshake) => {
                if let Some(opened) = handshake.handle_input(cx, datagram, &mut self.output) {
                    self.open(cx, opened);
                }
            }
            Stage::Connection(_) => self.handle_records(cx, datagram, true),
            Stage::Failed => {}
        }
        self.collect(before);
    }

    /// Takes over a connection, and what has come for it so far.
    fn open(&mut self, cx: &mut Context<'_, P>, opened: Opened) {
        let Opened { connection, established, rest, early } = opened;
        self.output.events.push_back(Event::Established(established));
        self.stage = Stage::Connection(Box::new(connection));
        for datagram in early.iter().chain([&rest]) {
            self.handle_records(cx, datagram, false);
        }
    }

    /// Gives the protected records of a datagram to the connection. It warns of those that it cannot
    /// read, unless they may be from before it was there.
    fn handle_records(&mut self, cx: &mut Context<'_, P>, datagram: &[u8], warn: bool) {
        let Stage::Connection(connection) = &mut self.stage else { return };
        for record in Records::new(datagram).map_while(Result::ok) {
            let protected = record.record_type.is_protected() && !connection.closed;
            let Some(content) = record.record_type.content().filter(|_| protected) else { continue };
            if let (Verdict::Foreign(error), true) = (connection.receive(cx, content, &record), warn) {
                connection.warn(cx, error, crate::alert::Checksum::of(record.raw));
            }
        }
        connection.end_of_datagram(cx);
    }

    /// Alerts in clear text. They are believed as far as that goes if they refer to a record of ours.
    fn handle_plain_alerts(&mut self, cx: &mut Context<'_, P>, datagram: &[u8]) {
        for record in Records::new(datagram).map_while(Result::ok) {
            let kind = record.record_type;
            if kind.is_protected() || kind.content() != Some(ContentType::Alert) {
                continue;
            }
            let Ok(message) = AlertMessage::from_bytes("alert", record.fragment) else { continue };
            if !self.sent.matches(message.checksum) {
                continue;
            }
            match &mut self.stage {
                Stage::Handshake(handshake) => handshake.handle_plain_alert(cx.now.elapsed, message.alert),
                // Once there are keys, only alerts about records that could not be read go without them.
                Stage::Connection(connection) if connection.closed => continue,
                Stage::Connection(_) if is_clear_text(message.alert.description) => {}
                Stage::Connection(_) | Stage::Failed => continue,
            }
            self.output.events.push_back(Event::AlertReceived(message.alert));
        }
    }

    /// Takes what the connection has to send and to report. What was waiting to be sent `before` is
    /// remembered already.
    fn collect(&mut self, before: usize) {
        if let Stage::Connection(connection) = &mut self.stage {
            self.output.datagrams.append(&mut connection.output.datagrams);
            self.output.events.append(&mut connection.output.events);
        }
        self.remember_sent(before);
    }

    fn remember_sent(&mut self, before: usize) {
        self.output.datagrams.iter().skip(before).for_each(|datagram| self.sent.remember(datagram));
    }

    /// To be called when the time of [`poll_timeout`](Self::poll_timeout) has come. Too early does
    /// no harm.
    pub fn handle_timeout(&mut self, cx: &mut Context<'_, P>) {
        let before = self.output.datagrams.len();
        match &mut self.stage {
            Stage::Handshake(handshake) => {
                if let Some(reason) = handshake.handle_timeout(cx.now.elapsed, &mut self.output) {
                    self.output.events.push_back(Event::Closed(reason));
                    self.stage = Stage::Failed;
                }
            }
            Stage::Connection(connection) => connection.handle_timeout(cx.now.elapsed),
            Stage::Failed => {}
        }
        self.collect(before);
    }

    /// The next datagram for the server.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.output.datagrams.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called, on the clock of
    /// [`Time::elapsed`](crate::Time::elapsed).
    pub fn poll_timeout(&self) -> Option<Duration> {
        match &self.stage {
            Stage::Handshake(handshake) => Some(handshake.poll_timeout()),
            Stage::Connection(connection) => connection.poll_timeout(),
            Stage::Failed => None,
        }
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.output.events.pop_front()
    }

    /// Sends data. Each call is one record in one datagram, which may get lost.
    pub fn write(&mut self, cx: &mut Context<'_, P>, data: &[u8]) -> Result<(), WriteError> {
        let before = self.output.datagrams.len();
        let Stage::Connection(connection) = &mut self.stage else { return Err(WriteError::NotOpen) };
        if connection.closed {
            return Err(WriteError::NotOpen);
        }
        let written = connection.write(cx, data);
        self.collect(before);
        written
    }

    /// Tells the server that this is the end.
    pub fn close(&mut self, cx: &mut Context<'_, P>, close: Close) {
        let before = self.output.datagrams.len();
        match &mut self.stage {
            Stage::Handshake(handshake) => {
                handshake.close(cx, close, &mut self.output);
                self.output.events.push_back(Event::Closed(CloseReason::Local));
                self.stage = Stage::Failed;
            }
            Stage::Connection(connection) if !connection.closed => connection.close(cx, close),
            Stage::Connection(_) | Stage::Failed => {}
        }
        self.collect(before);
    }

    /// Whether data can be sent.
    pub fn is_open(&self) -> bool {
        matches!(&self.stage, Stage::Connection(connection) if !connection.closed)
    }

    /// Whether the connection is over.
    pub fn is_closed(&self) -> bool {
        match &self.stage {
            Stage::Handshake(_) => false,
            Stage::Connection(connection) => connection.closed,
            Stage::Failed => true,
        }
    }

    /// The session, to be resumed by another connection; none before the handshake is over, if the
    /// server gave it no name, or once it has been ended.
    pub fn session(&self) -> Option<&Session> {
        match &self.stage {
            Stage::Connection(connection) if !connection.session_ended => connection.session.as_ref(),
            _ => None,
        }
    }
}
