//! The client.
//!
//! A handshake begins with a ClientHello. Then each flight of the server is processed as a whole ([`crate::flight`]):
//!
//! | sent | expected | then |
//! | --- | --- | --- |
//! | ClientHello (`HelloSent`) | ServerHello … ServerHelloDone | the client's second flight: a `Candidate` |
//! | | ServerHello … Finished (resumed, optimised, shared secret) | the client's Finished, the connection |
//! | the second flight (`Candidate`) | ChangeCipherSpec, Finished | the connection |
//!
//! The server's first flight is not authenticated, so it does not replace the state after the ClientHello. Each such
//! flight creates a separate candidate; the candidate whose keys protect the server's Finished becomes the connection.
//! Invalid flights and alerts are reported. They end the handshake only if no valid flight arrives in time.

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
    /// The checksums of sent records, to which alerts in clear text may refer.
    sent: SentChecksums,
    output: Output,
}

enum Stage<P: Provider> {
    Handshake(Box<Handshake<P>>),
    /// Established, even if it is closed now.
    Connection(Box<Connection>),
    /// Closed without a connection.
    Failed,
}

impl<P: Provider> Client<P> {
    /// Begins a handshake, which resumes `session` if it may still be resumed. [`poll_transmit`](Self::poll_transmit)
    /// returns the ClientHello.
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

    /// Processes a datagram from the server.
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

    /// Switches to an established connection, and passes it the records that arrived early.
    fn open(&mut self, cx: &mut Context<'_, P>, opened: Opened) {
        let Opened { connection, established, rest, early } = opened;
        self.output.events.push_back(Event::Established(established));
        self.stage = Stage::Connection(Box::new(connection));
        for datagram in early.iter().chain([&rest]) {
            self.handle_records(cx, datagram, false);
        }
    }

    /// Passes the protected records of a datagram to the connection. With `warn`, it warns the server of records that
    /// it cannot decrypt. Early records cause no warning.
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

    /// Reports unencrypted alerts that refer to a sent record. They do not end a connection.
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
                // Once keys exist, only alerts about undecryptable records are sent in clear text.
                Stage::Connection(connection) if connection.closed => continue,
                Stage::Connection(_) if is_clear_text(message.alert.description) => {}
                Stage::Connection(_) | Stage::Failed => continue,
            }
            self.output.events.push_back(Event::AlertReceived(message.alert));
        }
    }

    /// Collects the datagrams and events of the connection. The checksums of the first `before` datagrams are
    /// already stored.
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

    /// Must be called at the time of [`poll_timeout`](Self::poll_timeout). An earlier call has no effect.
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

    /// The time at which to call [`handle_timeout`](Self::handle_timeout), on the clock of
    /// [`Time::elapsed`](crate::Time::elapsed).
    pub fn poll_timeout(&self) -> Option<Duration> {
        match &self.stage {
            Stage::Handshake(handshake) => Some(handshake.poll_timeout()),
            Stage::Connection(connection) => connection.poll_timeout(),
            Stage::Failed => None,
        }
    }

    /// The next event.
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

    /// Closes the connection, or ends the handshake, and notifies the server.
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

    /// Whether the connection is closed, or the handshake has failed.
    pub fn is_closed(&self) -> bool {
        match &self.stage {
            Stage::Handshake(_) => false,
            Stage::Connection(connection) => connection.closed,
            Stage::Failed => true,
        }
    }

    /// The session, which another connection can resume. `None` before the handshake is complete, if the server
    /// assigned no identifier, or if the session was ended.
    pub fn session(&self) -> Option<&Session> {
        match &self.stage {
            Stage::Connection(connection) if !connection.session_ended => connection.session.as_ref(),
            _ => None,
        }
    }
}
