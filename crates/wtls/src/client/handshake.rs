//! A client's handshake: candidates, timers, and flights that may be forged.

use super::candidate::{Candidate, Opened};
use super::hello::{Answer, HelloSent};
use crate::alert::{Alert, AlertDescription, Checksum};
use crate::config::{ClientConfig, Settings};
use crate::connection::{Close, Output};
use crate::context::Context;
use crate::crypto::Provider;
use crate::error::Error;
use crate::event::{CloseReason, Event};
use crate::flight::{Assembly, EarlyRecords, Extent, FlightReader, Outbound, Part, extent};
use crate::limiter::{Bucket, Budget};
use crate::observer::Message;
use crate::record::Records;
use crate::session::Session;
use crate::timer::{Expiry, Timer};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

/// Limit of server flights to which the client responds concurrently. All but one are forged; each is kept until this
/// many others have arrived.
const CANDIDATES: usize = 8;

/// Limit of responses to a first flight of the server; each needs public-key operations.
const ANSWERS: Budget = Budget::per_second(16, 4);

/// Limit of alerts about the server's flight.
const ALERTS: Budget = Budget::per_second(8, 1);

/// Number of transmissions of the second flight before ClientHello is repeated with it: the flight to which it responds
/// may have been forged.
const SENDS_ALONE: u32 = 3;

/// Why a flight was rejected, and the checksum of the record that caused it.
type Rejection = (Error, Checksum);

/// The result of a flight that was not rejected.
#[allow(clippy::large_enum_variant)] // returned once per flight
enum Read {
    /// The client has already responded, the flight belongs to no handshake, or the limit is reached.
    Ignored,
    Answered,
    Opened(Opened),
}

pub(super) struct Handshake<P: Provider> {
    hello: HelloSent<P>,
    hello_datagram: Vec<u8>,
    /// The write state of records in clear text.
    outbound: Outbound,
    /// Oldest first.
    candidates: VecDeque<Candidate>,
    assembly: Assembly,
    early: EarlyRecords,
    timer: Timer,
    /// Whether the server has had more time since the last send.
    extended: bool,
    /// The reason to report if the handshake fails.
    failure_reason: Option<CloseReason>,
    answers: Bucket,
    alerts: Bucket,
}

impl<P: Provider> Handshake<P> {
    /// Generates ClientHello.
    pub fn start(
        config: Arc<ClientConfig<P>>,
        session: Option<Session>,
        cx: &mut Context<'_, P>,
        output: &mut Output,
    ) -> Result<Self, Error> {
        let timer = Timer::start(config.settings.retransmission, cx.now.elapsed);
        let (hello, hello_datagram, outbound) = HelloSent::start(config, session, cx)?;
        output.datagrams.push_back(hello_datagram.clone());
        Ok(Self {
            hello,
            hello_datagram,
            outbound,
            candidates: VecDeque::new(),
            assembly: Assembly::default(),
            early: EarlyRecords::default(),
            timer,
            extended: false,
            failure_reason: None,
            answers: Bucket::new(ANSWERS),
            alerts: Bucket::new(ALERTS),
        })
    }

    fn settings(&self) -> &Settings {
        &self.hello.config.settings
    }

    pub fn poll_timeout(&self) -> Duration {
        self.timer.deadline()
    }

    /// Retransmits flights without a response, or returns why the handshake has failed.
    pub fn handle_timeout(&mut self, now: Duration, output: &mut Output) -> Option<CloseReason> {
        match self.timer.expire(now) {
            Expiry::NotYet => return None,
            Expiry::GiveUp => return Some(self.failure_reason.take().unwrap_or(CloseReason::TimedOut)),
            Expiry::SendAgain => {}
        }
        self.extended = false;
        output.datagrams.extend(self.candidates.iter().map(|candidate| candidate.flight.clone()));
        if self.candidates.is_empty() || self.timer.sends() > SENDS_ALONE {
            output.datagrams.push_back(self.hello_datagram.clone());
        }
        None
    }

    /// Processes an unencrypted alert that refers to a sent record. Any observer of that record can forge it.
    pub fn handle_plain_alert(&mut self, now: Duration, alert: Alert) {
        match alert.description {
            AlertDescription::TimeRequired if !self.extended => {
                self.extended = true;
                self.timer.extend(now);
            }
            AlertDescription::ConnectionCloseNotify | AlertDescription::SessionCloseNotify => {
                self.failure_reason = Some(CloseReason::Peer);
            }
            _ if alert.ends_connection() => self.failure_reason = Some(CloseReason::Alert(alert)),
            _ => {}
        }
    }

    /// Processes a datagram; returns the connection if the datagram completes it.
    pub fn handle_input(
        &mut self,
        cx: &mut Context<'_, P>,
        datagram: &[u8],
        output: &mut Output,
    ) -> Option<Opened> {
        let extent = extent(datagram);
        let whole = match extent {
            Extent::Complete => self.read(cx, datagram, output),
            Extent::Partial | Extent::None => Ok(Read::Ignored),
        };
        let read = match (&whole, extent) {
            (Ok(_), Extent::Complete) | (_, Extent::None) => whole,
            // The datagram may be part of a flight whose records arrive separately. Forged records among them are
            // detected only when the flight is read, so the rejection of an assembled flight is not reported.
            _ => match self.assembly.add(datagram).filter(|flight| flight != datagram) {
                Some(flight) => match self.read(cx, &flight, output) {
                    Ok(Read::Ignored) | Err(_) => whole,
                    accepted => accepted,
                },
                None => whole,
            },
        };
        match read {
            Ok(Read::Opened(mut opened)) => {
                opened.early = self.early.take();
                return Some(opened);
            }
            Ok(Read::Answered) => self.assembly.clear(),
            Ok(Read::Ignored) => {}
            Err((error, about)) => self.reject(cx, error, about, output),
        }
        self.keep_early(datagram);
        None
    }

    fn keep_early(&mut self, datagram: &[u8]) {
        for record in Records::new(datagram).map_while(Result::ok) {
            let is_early = record.record_type.is_protected() && Part::of(&record).is_none();
            if is_early && record.record_type.content().is_some() {
                self.early.keep(&record);
            }
        }
    }

    /// Reads a flight: the server's first, or its ChangeCipherSpec and Finished.
    fn read(
        &mut self,
        cx: &mut Context<'_, P>,
        flight: &[u8],
        output: &mut Output,
    ) -> Result<Read, Rejection> {
        match FlightReader::new(flight).peek_message() {
            Some(Message::ChangeCipherSpec) => self.read_last(cx, flight),
            _ => self.read_first(cx, flight, output),
        }
    }

    /// The candidate whose keys protect the server's Finished becomes the connection.
    fn read_last(&mut self, cx: &mut Context<'_, P>, flight: &[u8]) -> Result<Read, Rejection> {
        let mut rejection = None;
        for candidate in &self.candidates {
            let mut reader = FlightReader::new(flight);
            match candidate.finish(cx, &self.hello.config.settings, &mut reader) {
                Ok(opened) => return Ok(Read::Opened(opened)),
                Err(error) => rejection = rejection.or(Some((error, reader.checksum()))),
            }
        }
        rejection.map_or(Ok(Read::Ignored), Err)
    }

    fn read_first(
        &mut self,
        cx: &mut Context<'_, P>,
        flight: &[u8],
        output: &mut Output,
    ) -> Result<Read, Rejection> {
        let answered = self.candidates.iter().any(|candidate| candidate.request == flight);
        if answered || !self.answers.take(1, cx.now.elapsed) {
            return Ok(Read::Ignored);
        }
        let mut reader = FlightReader::new(flight);
        let answer = self.hello.answer(cx, &mut reader, self.outbound.clone());
        match answer.map_err(|error| (error, reader.checksum()))? {
            Answer::Candidate(mut candidate) => {
                candidate.request = flight.to_vec();
                output.datagrams.push_back(candidate.flight.clone());
                if self.candidates.is_empty() {
                    // Only once: otherwise forged flights could postpone the timer indefinitely.
                    self.timer = Timer::start(self.settings().retransmission, cx.now.elapsed);
                    self.failure_reason = None;
                }
                if self.candidates.len() == CANDIDATES {
                    self.candidates.pop_front();
                }
                self.candidates.push_back(candidate);
                Ok(Read::Answered)
            }
            Answer::Opened { opened, flight } => {
                output.datagrams.push_back(flight);
                Ok(Read::Opened(opened))
            }
        }
    }

    /// Reports a rejected flight. The handshake continues.
    fn reject(&mut self, cx: &mut Context<'_, P>, error: Error, about: Checksum, output: &mut Output) {
        if self.alerts.take(1, cx.now.elapsed) {
            let alert = error.flight_alert(self.settings());
            if let Some(datagram) = self.outbound.plain_alert(alert, about) {
                output.datagrams.push_back(datagram);
                output.events.push_back(Event::AlertSent(alert));
            }
        }
        self.failure_reason = Some(CloseReason::Failed(error.clone()));
        output.events.push_back(Event::Rejected(error));
    }

    /// Notifies the server of the end of the handshake.
    pub fn close(&mut self, cx: &mut Context<'_, P>, close: Close, output: &mut Output) {
        output.alert(cx.provider, &mut self.outbound, close.alert(), Checksum::NOTHING);
    }
}
