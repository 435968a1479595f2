//! The server's state for one peer, which is identified by its address: handshakes in progress, and connections.
//!
//! * Every new ClientHello begins a separate [`Attempt`], besides other attempts and connections. An attempt ends at
//!   its deadline, or when too many others have begun. A flight that it cannot read does not change it.
//! * Each attempt in turn tries to read the client's flight. The attempt whose keys protect the Finished opens a
//!   connection.
//! * A protected record belongs to the connection whose keys decrypt it, and does not affect the others.

use super::attempt::{Attempt, Rejection};
use super::finish::Accepted;
use crate::alert::{AlertDescription, AlertMessage, Checksum, SentChecksums, is_clear_text};
use crate::codec::Codec;
use crate::config::ServerConfig;
use crate::connection::{Close, Connection, Verdict};
use crate::context::Context;
use crate::crypto::Provider;
use crate::error::WriteError;
use crate::event::{CloseReason, Event};
use crate::flight::{Assembly, EarlyRecords, Extent, Outbound, Part, extent, leading_hello, no_connection};
use crate::limiter::{Bucket, Budget};
use crate::numbers::ContentType;
use crate::protection::RecordError;
use crate::record::{Record, Records};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

/// Limit of concurrent handshakes of one peer. A genuine client has one or two.
const ATTEMPTS: usize = 8;

/// Limit of flights that attempts read; each needs public-key operations.
const TRIALS: Budget = Budget::per_second(64, 16);

/// Limit of alerts about a peer's flight.
const ALERTS: Budget = Budget::per_second(8, 1);

/// Identifies a handshake or a connection of a server. An identifier is not reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(u64);

/// The state that all peers of a server share.
pub(crate) struct Shared<'a> {
    pub next_id: &'a mut u64,
    /// The budget of public-key operations that ClientHellos cause, and the number of ClientHellos that were
    /// rejected because of it; `None` without a limit.
    pub operations: Option<(&'a mut Bucket, &'a mut u64)>,
}

impl Shared<'_> {
    fn next_id(&mut self) -> ConnectionId {
        *self.next_id += 1;
        ConnectionId(*self.next_id)
    }

    /// Whether a ClientHello may cause a public-key operation.
    fn admit(&mut self, now: Duration) -> bool {
        let Some((operations, refused)) = &mut self.operations else { return true };
        let admitted = operations.take(1, now);
        **refused += u64::from(!admitted);
        admitted
    }
}

/// A change of attempts or connections, for the tables of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    AttemptBegun(ConnectionId),
    /// The attempt's first connection; true if its response to the ClientHello needed a public-key operation.
    AttemptSucceeded(ConnectionId, bool),
    AttemptEnded(ConnectionId),
    ConnectionOpened(ConnectionId),
    ConnectionClosed(ConnectionId),
}

struct Slot {
    id: ConnectionId,
    origin: ConnectionId,
    connection: Box<Connection>,
}

/// How the connections received the protected records of a datagram.
#[derive(Default)]
struct Reading {
    authentic: bool,
    duplicate: bool,
    foreign: Option<(RecordError, Checksum)>,
}

pub(crate) struct Peer<P: Provider> {
    config: Arc<ServerConfig<P>>,
    max_connections: usize,
    /// Oldest first.
    attempts: VecDeque<(ConnectionId, Box<Attempt<P>>)>,
    /// Oldest first.
    connections: Vec<Slot>,
    assembly: Assembly,
    early: EarlyRecords,
    /// The checksums of sent records, to which alerts in clear text may refer.
    sent: SentChecksums,
    trials: Bucket,
    alerts: Bucket,
    /// The reason to report if no handshake succeeds.
    failure_reason: Option<CloseReason>,
    pub datagrams: VecDeque<Vec<u8>>,
    pub events: VecDeque<(ConnectionId, Event)>,
    pub changes: Vec<Change>,
}

impl<P: Provider> Peer<P> {
    /// Upper bound of the memory of a peer with one attempt, without its messages: its entry, the attempt, its state,
    /// and the minimum allocation of lists.
    pub const FIXED_BYTES: usize = size_of::<Self>() + size_of::<Attempt<P>>() + 1_536;

    pub fn new(config: Arc<ServerConfig<P>>, max_connections: usize) -> Self {
        Self {
            config,
            max_connections,
            attempts: VecDeque::new(),
            connections: Vec::new(),
            assembly: Assembly::default(),
            early: EarlyRecords::default(),
            sent: SentChecksums::default(),
            trials: Bucket::new(TRIALS),
            alerts: Bucket::new(ALERTS),
            failure_reason: None,
            datagrams: VecDeque::new(),
            events: VecDeque::new(),
            changes: Vec::new(),
        }
    }

    /// Whether the peer has neither attempts nor connections.
    pub fn is_idle(&self) -> bool {
        self.attempts.is_empty() && self.connections.is_empty()
    }

    pub fn has_connections(&self) -> bool {
        !self.connections.is_empty()
    }

    /// The connection that was opened last.
    pub fn current(&self) -> Option<(ConnectionId, &Connection)> {
        self.connections.last().map(|slot| (slot.id, &*slot.connection))
    }

    pub fn connection(&self, id: ConnectionId) -> Option<&Connection> {
        self.connections.iter().find(|slot| slot.id == id).map(|slot| &*slot.connection)
    }

    /// Whether the server has already responded to this ClientHello.
    pub fn knows(&self, hello: &Record<'_>) -> bool {
        self.attempts.iter().any(|(_, attempt)| attempt.hello == hello.raw)
    }

    /// Processes a datagram from the peer's address.
    pub fn handle_input(&mut self, cx: &mut Context<'_, P>, shared: &mut Shared<'_>, datagram: &[u8]) {
        match leading_hello(datagram) {
            Some(hello) => self.handle_hello(cx, shared, &hello),
            None => self.handle_other(cx, shared, datagram),
        }
        self.collect();
    }

    /// Repeats the response to a known ClientHello. Any other ClientHello begins an attempt.
    fn handle_hello(&mut self, cx: &mut Context<'_, P>, shared: &mut Shared<'_>, hello: &Record<'_>) {
        let now = cx.now.elapsed;
        if let Some((id, attempt)) = self.attempts.iter_mut().find(|(_, known)| known.hello == hello.raw) {
            // When the client is known to have finished, old requests get no response.
            let of_attempt = |slot: &Slot| slot.origin == *id && slot.connection.confirmed;
            let answer =
                if self.connections.iter().any(of_attempt) { None } else { attempt.answer_again(now) };
            self.send(answer);
            return;
        }
        let mut outbound = Outbound::new(&self.config.settings);
        let begun = Attempt::begin(cx, &self.config, hello, &mut outbound, |cx| shared.admit(cx.now.elapsed));
        match begun {
            Ok(None) => {}
            Ok(Some(attempt)) => {
                if self.attempts.len() == ATTEMPTS
                    && let Some((oldest, _)) = self.attempts.pop_front()
                {
                    self.changes.push(Change::AttemptEnded(oldest));
                }
                let id = shared.next_id();
                self.changes.push(Change::AttemptBegun(id));
                self.send(Some(attempt.flight.clone()));
                self.attempts.push_back((id, Box::new(attempt)));
            }
            Err(rejection) => {
                let id = shared.next_id();
                self.reject(cx, id, &mut outbound, rejection);
            }
        }
    }

    fn handle_other(&mut self, cx: &mut Context<'_, P>, shared: &mut Shared<'_>, datagram: &[u8]) {
        if self.is_idle() {
            let first = Records::new(datagram).next().and_then(Result::ok);
            let answer = first.and_then(|record| no_connection_alert(&record));
            return self.send(answer);
        }
        let now = cx.now.elapsed;
        if self.connections.iter_mut().any(|slot| slot.connection.answer_again(now, datagram)) {
            return;
        }
        let reading = self.read_protected(cx, datagram);
        let accepted = !reading.authentic && self.read_flight(cx, shared, datagram, reading.duplicate);
        if accepted {
            return;
        }
        for slot in &mut self.connections {
            slot.connection.end_of_datagram(cx);
        }
        if reading.authentic || reading.duplicate || self.is_waiting() {
            return;
        }
        match (reading.foreign, self.connections.last_mut()) {
            (Some((error, about)), Some(slot)) => slot.connection.warn(cx, error, about),
            (_, Some(_)) => {}
            (_, None) if self.alerts.take(1, now) => {
                let first = Records::new(datagram).next().and_then(Result::ok);
                self.send(first.and_then(|record| no_connection_alert(&record)));
            }
            (_, None) => {}
        }
    }

    /// Whether an attempt has not led to a connection yet.
    pub fn is_waiting(&self) -> bool {
        self.attempts.iter().any(|(_, attempt)| !attempt.has_succeeded())
    }

    /// Passes protected records to the connections whose keys decrypt them.
    fn read_protected(&mut self, cx: &mut Context<'_, P>, datagram: &[u8]) -> Reading {
        let mut reading = Reading::default();
        for record in Records::new(datagram).map_while(Result::ok) {
            let Some(content) = record.record_type.content() else { continue };
            if !record.record_type.is_protected() {
                if content == ContentType::Alert {
                    self.handle_plain_alert(&record);
                }
                continue;
            }
            let mut known = false;
            for slot in &mut self.connections {
                match slot.connection.receive(cx, content, &record) {
                    Verdict::Authentic => {
                        (reading.authentic, known) = (true, true);
                        break;
                    }
                    Verdict::Duplicate => (reading.duplicate, known) = (true, true),
                    Verdict::Foreign(error) => {
                        reading.foreign.get_or_insert((error, Checksum::of(record.raw)));
                    }
                }
            }
            if !known && Part::of(&record).is_none() && self.is_waiting() {
                self.early.keep(&record);
            }
        }
        reading
    }

    /// An unencrypted alert is reported if it refers to a sent record. It ends neither a handshake nor a connection,
    /// because any observer of that record can forge it.
    fn handle_plain_alert(&mut self, record: &Record<'_>) {
        let Ok(message) = AlertMessage::from_bytes("alert", record.fragment) else { return };
        let alert = message.alert;
        if !self.sent.matches(message.checksum) {
            return;
        }
        let id = match (self.connections.last(), self.attempts.back()) {
            // Once keys exist, only alerts about undecryptable records are sent in clear text.
            (Some(slot), _) if is_clear_text(alert.description) => slot.id,
            (None, Some((id, _))) => *id,
            _ => return,
        };
        match alert.description {
            AlertDescription::ConnectionCloseNotify | AlertDescription::SessionCloseNotify => {
                self.failure_reason = Some(CloseReason::Peer);
            }
            _ if alert.ends_connection() => self.failure_reason = Some(CloseReason::Alert(alert)),
            _ => {}
        }
        self.events.push_back((id, Event::AlertReceived(alert)));
    }

    /// Reads a flight, or assembles one from several datagrams. Returns whether it was accepted. If a connection
    /// may have received the datagram before (`duplicate`), a rejection is not reported.
    fn read_flight(
        &mut self,
        cx: &mut Context<'_, P>,
        shared: &mut Shared<'_>,
        datagram: &[u8],
        duplicate: bool,
    ) -> bool {
        let whole = match extent(datagram) {
            Extent::None => return false,
            _ if self.attempts.is_empty() => return false,
            Extent::Complete => self.try_attempts(cx, shared, datagram),
            Extent::Partial => Ok(false),
        };
        if whole == Ok(true) {
            return true;
        }
        // The datagram may be part of a flight whose records arrive separately. Forged records among them are
        // detected only when the flight is read, so the rejection of an assembled flight is not reported.
        let assembled = self.assembly.add(datagram).filter(|flight| flight != datagram);
        if assembled.is_some_and(|flight| self.try_attempts(cx, shared, &flight) == Ok(true)) {
            return true;
        }
        if let Err((index, rejection)) = whole
            && !duplicate
            && let Some((id, attempt)) = self.attempts.get_mut(index)
        {
            let (id, mut outbound) = (*id, attempt.outbound.clone());
            self.reject(cx, id, &mut outbound, rejection);
            self.attempts[index].1.outbound = outbound;
        }
        false
    }

    /// Each attempt tries to read a flight, the newest first. Returns the first error if all fail.
    fn try_attempts(
        &mut self,
        cx: &mut Context<'_, P>,
        shared: &mut Shared<'_>,
        flight: &[u8],
    ) -> Result<bool, (usize, Rejection)> {
        let mut rejection = None;
        for index in (0..self.attempts.len()).rev() {
            let (id, attempt) = &mut self.attempts[index];
            let first = !attempt.has_succeeded();
            match attempt.receive(cx, flight, &mut self.trials) {
                Ok(Some(accepted)) => {
                    let (origin, costly) = (*id, attempt.costly);
                    if first {
                        self.changes.push(Change::AttemptSucceeded(origin, costly));
                    }
                    self.open(cx, shared, origin, accepted);
                    return Ok(true);
                }
                Ok(None) => {}
                Err(error) => rejection = rejection.or(Some((index, error))),
            }
        }
        rejection.map_or(Ok(false), Err)
    }

    /// Opens a connection, and passes it the records that arrived early.
    fn open(
        &mut self,
        cx: &mut Context<'_, P>,
        shared: &mut Shared<'_>,
        origin: ConnectionId,
        accepted: Accepted,
    ) {
        let Accepted { mut connection, established, flight, rest, .. } = accepted;
        let id = shared.next_id();
        self.changes.push(Change::ConnectionOpened(id));
        self.send(flight);
        self.events.push_back((id, Event::Established(established)));
        self.failure_reason = None;
        self.assembly.clear();
        for datagram in self.early.take().iter().chain([&rest]) {
            for record in Records::new(datagram).map_while(Result::ok) {
                let content = record.record_type.content().filter(|_| record.record_type.is_protected());
                if let (Some(content), false) = (content, connection.closed) {
                    connection.receive(cx, content, &record);
                }
            }
        }
        self.connections.push(Slot { id, origin, connection: Box::new(connection) });
        if self.connections.len() > self.max_connections {
            // The new connection is the last one. Of the others, the one that was idle longest is dropped.
            let others = &self.connections[..self.connections.len() - 1];
            let silent = others.iter().min_by_key(|slot| slot.connection.last_input_at).map(|slot| slot.id);
            self.collect();
            silent.into_iter().for_each(|id| self.drop_connection(id, CloseReason::Evicted));
        }
    }

    /// Reports a rejected ClientHello or flight, without a change of state. The alert is in clear text even if keys
    /// exist: the client would trust a protected alert, but an attacker may have sent the flight.
    fn reject(
        &mut self,
        cx: &mut Context<'_, P>,
        id: ConnectionId,
        outbound: &mut Outbound,
        (error, about): Rejection,
    ) {
        if self.alerts.take(1, cx.now.elapsed) {
            let alert = error.flight_alert(&self.config.settings);
            if let Some(datagram) = outbound.plain_alert(alert, about) {
                self.send(Some(datagram));
                self.events.push_back((id, Event::AlertSent(alert)));
            }
        }
        self.failure_reason = Some(CloseReason::Failed(error.clone()));
        self.events.push_back((id, Event::Rejected(error)));
    }

    fn send(&mut self, datagram: Option<Vec<u8>>) {
        if let Some(datagram) = datagram {
            self.sent.remember(&datagram);
            self.datagrams.push_back(datagram);
        }
    }

    /// Collects the datagrams and events of the connections, and removes closed connections.
    fn collect(&mut self) {
        let Self { connections, sent, datagrams, events, changes, config, .. } = self;
        connections.retain_mut(|Slot { id, connection, .. }| {
            connection.output.datagrams.iter().for_each(|datagram| sent.remember(datagram));
            datagrams.append(&mut connection.output.datagrams);
            events.extend(connection.output.events.drain(..).map(|event| (*id, event)));
            if let (true, Some(session)) = (connection.session_ended, &connection.session) {
                config.sessions.remove(&session.id);
            }
            if connection.closed {
                changes.push(Change::ConnectionClosed(*id));
            }
            !connection.closed
        });
    }

    /// Drops a connection without notifying the peer.
    pub fn drop_connection(&mut self, id: ConnectionId, reason: CloseReason) {
        if let Some(index) = self.connections.iter().position(|slot| slot.id == id) {
            self.connections.remove(index);
            self.changes.push(Change::ConnectionClosed(id));
            self.events.push_back((id, Event::Closed(reason)));
        }
    }

    /// Drops an attempt, if it is still there.
    pub fn drop_attempt(&mut self, id: ConnectionId) {
        if let Some(index) = self.attempts.iter().position(|(known, _)| *known == id) {
            self.attempts.remove(index);
            self.changes.push(Change::AttemptEnded(id));
        }
    }

    /// Drops expired attempts. If the peer then has neither attempts nor connections, the failure is reported.
    pub fn handle_timeout(&mut self, now: Duration) {
        while let Some((id, attempt)) = self.attempts.front() {
            if now < attempt.deadline {
                return;
            }
            let (id, failed) = (*id, !attempt.has_succeeded());
            self.drop_attempt(id);
            if failed && self.is_idle() {
                let reason = self.failure_reason.take().unwrap_or(CloseReason::TimedOut);
                self.events.push_back((id, Event::Closed(reason)));
            }
        }
    }

    /// The deadline of the oldest attempt.
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.attempts.front().map(|(_, attempt)| attempt.deadline)
    }

    pub fn write(
        &mut self,
        cx: &mut Context<'_, P>,
        id: ConnectionId,
        data: &[u8],
    ) -> Result<(), WriteError> {
        let slot = self.connections.iter_mut().find(|slot| slot.id == id).ok_or(WriteError::NotOpen)?;
        let written = slot.connection.write(cx, data);
        self.collect();
        written
    }

    pub fn close(&mut self, cx: &mut Context<'_, P>, id: ConnectionId, close: Close) {
        if let Some(slot) = self.connections.iter_mut().find(|slot| slot.id == id) {
            slot.connection.close(cx, close);
            self.collect();
        }
    }

    /// Drops all attempts. Notifies the peer, unless the newest attempt has led to a connection.
    pub fn abandon(&mut self, cx: &mut Context<'_, P>, close: Close) {
        let Some((id, mut attempt)) = self.attempts.pop_back() else { return };
        if !attempt.has_succeeded()
            && let Some(datagram) = attempt.outbound.alert(cx.provider, close.alert(), Checksum::NOTHING)
        {
            self.send(Some(datagram));
            self.events.push_back((id, Event::AlertSent(close.alert())));
            self.events.push_back((id, Event::Closed(CloseReason::Local)));
        }
        self.changes.push(Change::AttemptEnded(id));
        self.changes.extend(self.attempts.drain(..).map(|(id, _)| Change::AttemptEnded(id)));
    }

    /// Bytes in use, without the allocator's overhead.
    pub fn memory_bytes(&self) -> usize {
        let attempts: usize = self.attempts.iter().map(|(_, attempt)| attempt.heap_bytes()).sum();
        let connections: usize = self.connections.iter().map(|slot| slot.connection.heap_bytes()).sum();
        let outgoing: usize = self.datagrams.iter().map(Vec::len).sum();
        size_of::<Self>()
            + self.attempts.len() * size_of::<Attempt<P>>()
            + self.connections.len() * size_of::<Connection>()
            + attempts
            + connections
            + outgoing
            + self.assembly.held_bytes()
            + self.early.held_bytes()
    }
}

/// The response to a record without a connection: an alert, except to an alert, so that two such peers do not send each
/// other alerts forever.
pub(crate) fn no_connection_alert(record: &Record<'_>) -> Option<Vec<u8>> {
    match record.record_type.content() {
        Some(ContentType::Alert) | None => None,
        Some(_) => Some(no_connection(record.raw)),
    }
}
