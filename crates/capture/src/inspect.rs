//! Reads the handshakes of a capture.
//!
//! [`Inspector`] is an iterator. It yields a connection as soon as the connection has ended; connections whose end is
//! not in the capture come last, in the order of their indices. An index numbers connections in the order in which they
//! were first recognised. [`Limits`] bounds memory, independently of the size of the capture; evicted connections are
//! marked. Secrets in the capture itself are kept for [`MAX_CARRIED`] connections; a key log is kept whole.
//!
//! # Times and waits
//!
//! All times are those of the capture point. A message's time is that of the packet with which the message was
//! complete. Its wait is the time since the previous message.
//!
//! If the message responds to the other side, the wait has two parts:
//!
//! - *The network's*: the round trip between the capture point and the responding end, and the time lost if the other
//!   side's message was retransmitted. The round trip is the shortest one that TCP's acknowledgements show, including
//!   those of TCP's handshake.
//! - *The peer's*: the rest, in which the responding end computed, or waited for something else.
//!
//! The first message's wait begins with the opening of the connection; its network part is both round trips of TCP's
//! handshake. Both parts are absent if the message follows another one of the same sender, or if no round trip was seen
//! (UDP, or a connection whose beginning is not in the capture).

mod flow;
mod proxy;
mod sessions;
mod sniff;
mod summary;
mod table;
mod tcp_flow;
mod udp_flow;

use crate::CaptureError;
use crate::file::{CaptureReader, RawPacket};
use crate::message::Mark;
use crate::packet::{self, Endpoint, InternetPacket, PROTOCOL_TCP, PROTOCOL_UDP, Reassembler};
use crate::report::{Connection, Summary};
use crate::tls::keylog::{KeyLog, MAX_CARRIED};
use flow::Flow;
use sessions::Sessions;
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::num::NonZeroUsize;
use std::path::Path;
use table::{Key, Table, bounded};
use tcp_flow::{Arrival, TcpFlow};
use udp_flow::UdpFlow;

/// Limits of the memory of an inspection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// For out-of-order segments in one direction of a connection; beyond it, gaps count as missing.
    pub reordering_bytes: usize,
    /// For the state of all connections; beyond it, connections are emitted early: first those whose handshake ended
    /// first, then the one that was idle longest.
    pub total_bytes: usize,
    /// Connections at a time; beyond it, the one that was idle longest is evicted.
    pub connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { reordering_bytes: 1 << 19, total_bytes: 128 << 20, connections: 1 << 18 }
    }
}

/// How long a connection is kept after its end, so that late retransmissions are still attributed to it.
const LINGER_NS: u64 = 2_000_000_000;
/// Limit of emitted connections that are remembered, with about 100 bytes each: enough for any burst of connections
/// that end at the same time.
const MAX_CLOSED: NonZeroUsize = NonZeroUsize::new(1 << 16).expect("above 0");
/// Limit of the connections that are kept after their end.
const MAX_LINGERING: usize = 4096;

/// Reads a capture and yields the connections that speak TLS, DTLS or WTLS.
pub struct Inspector<R> {
    reader: CaptureReader<R>,
    state: State,
    /// After the end of the capture: the connections that are still open, in the reverse order of their emission.
    left: Option<Vec<Key>>,
    error: Option<CaptureError>,
}

/// The result of a [step](Inspector::step).
#[derive(Debug)]
pub enum Step {
    Connection(Box<Connection>),
    /// The requested number of packets was read, and no connection has ended.
    NoneYet,
    /// The capture has ended.
    End,
}

/// Why a connection is emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// The connection or the capture has ended.
    End,
    /// The limit of memory was reached.
    Memory,
    /// The limit of connections was reached.
    Places,
}

/// The state of an inspection, without the file.
struct State {
    keys: KeyLog,
    limits: Limits,
    flows: Table<Key, Flow>,
    /// Connections that have ended and were emitted.
    closed: Table<Key, ()>,
    sessions: Sessions,
    held_bytes: usize,
    fragments: Reassembler,
    /// Number of evicted flows, whose packets are skipped.
    evicted_flows: usize,
    /// Connections that have ended, with the time of their end.
    lingering: VecDeque<(Key, u64, u64)>,
    /// Connections whose handshake has ended, in the order of these ends; some of them were removed since.
    settled: VecDeque<(Key, u64)>,
    ready: VecDeque<Connection>,
    summary: Summary,
    first_ns: Option<u64>,
    last_ns: u64,
    next_index: u64,
    /// Number of the next flow, to distinguish successive users of the same addresses.
    next_flow: u64,
}

impl Inspector<File> {
    /// Opens a capture file, with a key log if there is one.
    pub fn open(path: &Path, key_log: Option<&Path>, limits: Limits) -> Result<Self, CaptureError> {
        let keys = key_log.map(KeyLog::open).transpose()?.unwrap_or_default();
        let file =
            File::open(path).map_err(|source| CaptureError::Open { path: path.to_path_buf(), source })?;
        Self::new(file, keys, limits)
    }
}

impl<R: Read> Inspector<R> {
    /// Reads a capture's header.
    pub fn new(source: R, keys: KeyLog, limits: Limits) -> Result<Self, CaptureError> {
        let reader = CaptureReader::new(source)?;
        Ok(Self { reader, state: State::new(keys, limits), left: None, error: None })
    }

    /// The summary of the capture; complete when the iterator has ended.
    pub fn summary(&self) -> Summary {
        let mut summary = self.state.summary.clone();
        summary.duration_s =
            seconds(self.state.last_ns.saturating_sub(self.state.first_ns.unwrap_or_default()));
        summary.incomplete_fragments = self.state.fragments.incomplete();
        summary.problems = self.error.iter().map(ToString::to_string).collect();
        if self.state.keys.let_go() > 0 {
            summary.problems.push(format!(
                "the capture carries secrets of more than {MAX_CARRIED} connections: those of {} earlier ones were let \
                 go; a key log file is kept whole",
                self.state.keys.let_go()
            ));
        }
        if let Some(unreadable) = self.state.keys.unreadable() {
            summary.problems.push(format!(
                "invalid lines in the key logs of the capture: {}; the first: {}",
                unreadable.lines, unreadable.first
            ));
        }
        for (link, packets) in self.reader.passed_over() {
            summary.problems.push(format!("skipped packets of unknown link type {link}: {packets}"));
        }
        summary
    }

    /// The error that ended the reading before the end of the file. Earlier connections have been yielded.
    pub fn error(&self) -> Option<&CaptureError> {
        self.error.as_ref()
    }

    /// Reads until a connection has ended, but at most `most_packets` packets, so that callers can do other work.
    pub fn step(&mut self, most_packets: usize) -> Step {
        for _ in 0..most_packets.max(1) {
            if let Some(connection) = self.state.ready.pop_front() {
                return Step::Connection(Box::new(connection));
            }
            if let Some(left) = &mut self.left {
                let Some(key) = left.pop() else { return Step::End };
                self.state.emit(&key, Cause::End);
                continue;
            }
            match self.reader.next_packet(&mut self.state.keys) {
                Ok(Some(packet)) => self.state.packet(&packet),
                Ok(None) => self.left = Some(self.state.open_flows()),
                Err(error) => {
                    self.error = Some(error);
                    self.left = Some(self.state.open_flows());
                }
            }
        }
        Step::NoneYet
    }

    /// Bytes of the state of connections.
    pub(crate) fn held_bytes(&self) -> usize {
        self.state.held_bytes
    }

    /// Number of bytes read from the file.
    pub fn bytes_read(&self) -> u64 {
        self.reader.bytes_read()
    }
}

impl<R: Read> Iterator for Inspector<R> {
    type Item = Connection;

    fn next(&mut self) -> Option<Connection> {
        loop {
            match self.step(usize::MAX) {
                Step::Connection(connection) => return Some(*connection),
                Step::NoneYet => {}
                Step::End => return None,
            }
        }
    }
}

impl State {
    fn new(keys: KeyLog, limits: Limits) -> Self {
        Self {
            keys,
            limits,
            flows: Table::unbounded(),
            closed: bounded(MAX_CLOSED),
            sessions: Sessions::default(),
            held_bytes: 0,
            fragments: Reassembler::default(),
            evicted_flows: 0,
            lingering: VecDeque::new(),
            settled: VecDeque::new(),
            ready: VecDeque::new(),
            summary: Summary::default(),
            first_ns: None,
            last_ns: 0,
            next_index: 0,
            next_flow: 0,
        }
    }

    fn packet(&mut self, raw: &RawPacket<'_>) {
        self.summary.packets += 1;
        self.summary.captured_bytes += raw.data.len() as u64;
        self.first_ns.get_or_insert(raw.time_ns);
        self.last_ns = self.last_ns.max(raw.time_ns);
        let packet = packet::internet_packet(raw.link, raw.data).and_then(|at| {
            let bytes = raw.data.get(at..)?;
            packet::decode_internet(bytes, raw.original_bytes - at)
        });
        let Some(internet) = packet else {
            self.summary.other_packets += 1;
            return;
        };
        if internet.fragment.is_some() {
            if let Some(whole) = self.fragments.add(&internet) {
                let (payload, payload_bytes) = (&whole.payload[..], whole.payload_bytes);
                self.transport(raw, &InternetPacket { payload, payload_bytes, fragment: None, ..internet });
            }
        } else {
            self.transport(raw, &internet);
        }
        self.emit_lingering(raw.time_ns);
    }

    fn transport(&mut self, raw: &RawPacket<'_>, internet: &InternetPacket<'_>) {
        let internet = internet.past_authentication();
        let done = match internet.protocol {
            PROTOCOL_TCP => self.tcp(raw, &internet),
            PROTOCOL_UDP => self.udp(raw, &internet),
            other => {
                if let Some(name) = packet::unread_protocol(other, internet.is_version_6()) {
                    *self.summary.unread.entry(name).or_default() += 1;
                }
                None
            }
        };
        if done.is_none() {
            self.summary.other_packets += 1;
        }
    }

    fn tcp(&mut self, raw: &RawPacket<'_>, internet: &InternetPacket<'_>) -> Option<()> {
        let segment = packet::tcp(internet.payload, internet.payload_bytes)?;
        let source = Endpoint { address: internet.source, port: segment.source_port };
        let destination = Endpoint { address: internet.destination, port: segment.destination_port };
        let (key, direction) = Key::of(source, destination, PROTOCOL_TCP);
        let opens = segment.syn && segment.acknowledgement.is_none();
        let (known, another) = match self.flows.get_mut(&key) {
            Some(Flow::Tcp(flow)) => (true, flow.is_another(direction, &segment)),
            Some(Flow::Evicted { .. }) if !opens => return Some(()),
            Some(_) => (true, true),
            None => (false, false),
        };
        if another {
            self.emit(&key, Cause::End);
        }
        let known = known && !another;
        if !known {
            // Skips packets of a connection that was emitted before.
            let begins = segment.syn || sniff::begins_client_hello(segment.payload);
            if (segment.payload_bytes == 0 && !segment.syn) || (!begins && self.closed.peek(&key).is_some()) {
                return Some(());
            }
            self.closed.pop(&key);
            self.make_room();
            self.next_flow += 1;
            let flow = TcpFlow::new(self.next_flow, raw.time_ns, !segment.syn);
            self.flows.put(key, Flow::Tcp(Box::new(flow)));
        }
        let Some(Flow::Tcp(flow)) = self.flows.get_mut(&key) else { return Some(()) };
        let (was_over, was_settled) = (flow.is_over(), flow.is_settled());
        let before = flow.accounted_bytes();
        let (keys, room) = (&self.keys, self.limits.reordering_bytes);
        let arrival = Arrival { direction, segment: &segment, raw, keys, room };
        flow.segment(arrival, &mut self.next_index);
        flow.settle(&mut self.sessions);
        let over = !was_over && flow.is_over();
        let settled = !was_settled && flow.is_settled();
        let number = flow.number();
        self.held_bytes = (self.held_bytes + flow.account()).saturating_sub(before);
        if over {
            self.lingering.push_back((key, number, raw.time_ns));
        }
        if settled {
            self.note_settled(key, number);
        }
        self.shed();
        Some(())
    }

    fn udp(&mut self, raw: &RawPacket<'_>, internet: &InternetPacket<'_>) -> Option<()> {
        let datagram = packet::udp(internet.payload, internet.payload_bytes)?;
        let source = Endpoint { address: internet.source, port: datagram.source_port };
        let destination = Endpoint { address: internet.destination, port: datagram.destination_port };
        let (key, direction) = Key::of(source, destination, PROTOCOL_UDP);
        let (known, another) = match self.flows.get_mut(&key) {
            Some(Flow::Udp(flow)) => (true, flow.is_another(datagram.payload)),
            Some(Flow::Evicted { .. }) if !udp_flow::begins(datagram.payload) => return Some(()),
            Some(_) => (true, true),
            None => (false, false),
        };
        if another {
            self.emit(&key, Cause::End);
        }
        let known = known && !another;
        if !known {
            self.make_room();
            self.next_flow += 1;
            let flow = UdpFlow::new(self.next_flow, raw.time_ns, direction);
            self.flows.put(key, Flow::Udp(Box::new(flow)));
        }
        let Some(Flow::Udp(flow)) = self.flows.get_mut(&key) else { return Some(()) };
        let (before, was_settled) = (flow.accounted_bytes(), flow.is_settled());
        let mark = Mark { packet: raw.number, time_ns: raw.time_ns, peer_acknowledged: 0 };
        flow.datagram(direction, &datagram, mark, &self.keys, &mut self.next_index);
        flow.settle(&key, &mut self.sessions);
        if let Some(name) = flow.unread() {
            *self.summary.unread.entry(name).or_default() += 1;
        }
        let (settled, number) = (!was_settled && flow.is_settled(), flow.number());
        self.held_bytes = (self.held_bytes + flow.account()).saturating_sub(before);
        if settled {
            self.note_settled(key, number);
        }
        self.shed();
        Some(())
    }

    /// Emits connections that ended long enough ago.
    fn emit_lingering(&mut self, now_ns: u64) {
        while let Some(&(key, number, ended_ns)) = self.lingering.front() {
            if now_ns < ended_ns.saturating_add(LINGER_NS) && self.lingering.len() <= MAX_LINGERING {
                break;
            }
            self.lingering.pop_front();
            // A connection that continued has another entry for its later end.
            if let Some(Flow::Tcp(flow)) = self.flows.peek(&key)
                && flow.number() == number
                && flow.over_since_ns() == Some(ended_ns)
            {
                self.emit(&key, Cause::End);
            }
        }
    }

    /// Removes a flow and emits it, if it is in the table.
    fn emit(&mut self, key: &Key, cause: Cause) {
        let Some(flow) = self.flows.pop(key) else { return };
        self.held_bytes = self.held_bytes.saturating_sub(flow.accounted_bytes());
        if matches!(flow, Flow::Evicted { .. }) {
            self.evicted_flows -= 1;
            return;
        }
        let evicted = cause != Cause::End;
        if matches!(&flow, Flow::Tcp(flow) if flow.is_over()) {
            // Alerts and FINs that are retransmitted long after the end are not a new connection.
            self.closed.put(*key, ());
        }
        if cause == Cause::Memory && flow.index().is_some() {
            // Otherwise its later packets would be taken for another connection.
            let rest = Flow::Evicted { number: flow.number() };
            self.held_bytes += rest.accounted_bytes();
            self.flows.put(*key, rest);
            self.evicted_flows += 1;
        }
        let start_ns = self.first_ns.unwrap_or_default();
        let (keys, sessions) = (&self.keys, &mut self.sessions);
        let connection = flow.emit(key, keys, start_ns, evicted, &mut self.next_index, sessions);
        match connection {
            Some(connection) => {
                self.summary.connections += 1;
                self.summary.handshakes += u64::from(connection.has_handshake());
                self.summary.evicted += u64::from(evicted);
                self.ready.push_back(connection);
            }
            None => self.summary.other_flows += 1,
        }
    }

    fn make_room(&mut self) {
        while self.flows.len() >= self.limits.connections
            && let Some(oldest) = self.oldest()
        {
            self.emit(&oldest, Cause::Places);
        }
    }

    /// Emits flows until the state is within the limit: first those whose handshake has ended, then those that were
    /// idle longest.
    fn shed(&mut self) {
        while self.held_bytes > self.limits.total_bytes {
            let settled = std::iter::from_fn(|| self.settled.pop_front())
                .find(|(key, number)| self.flows.peek(key).is_some_and(|flow| flow.is_live(*number)));
            let Some(key) = settled.map(|(key, _)| key).or_else(|| self.oldest_to_let_go()) else { break };
            self.emit(&key, Cause::Memory);
        }
    }

    /// The flow that was idle longest. Evicted flows come last, unless they are at least half of all flows: they use
    /// little memory, and prevent a connection from being emitted twice.
    fn oldest_to_let_go(&mut self) -> Option<Key> {
        for _ in 0..self.flows.len() {
            let oldest = self.oldest()?;
            match self.flows.peek(&oldest) {
                Some(Flow::Evicted { .. }) if self.evicted_flows < self.flows.len() / 2 => {
                    self.flows.promote(&oldest);
                }
                _ => break,
            }
        }
        self.oldest()
    }

    /// The flow that was idle longest.
    fn oldest(&self) -> Option<Key> {
        self.flows.peek_lru().map(|(key, _)| *key)
    }

    fn note_settled(&mut self, key: Key, number: u64) {
        self.settled.push_back((key, number));
        if self.settled.len() > 1024 + 2 * self.flows.len() {
            self.settled
                .retain(|(key, number)| self.flows.peek(key).is_some_and(|flow| flow.is_live(*number)));
        }
    }

    /// Flows that are open at the end of the capture; those recognised last come first.
    fn open_flows(&self) -> Vec<Key> {
        let mut open: Vec<_> = self.flows.iter().collect();
        open.sort_by_key(|(_, flow)| Reverse((flow.index().unwrap_or(u64::MAX), flow.number())));
        open.into_iter().map(|(key, _)| *key).collect()
    }
}

fn seconds(nanoseconds: u64) -> f64 {
    // Whole seconds are converted separately, so that no digit of the nanoseconds is lost.
    (nanoseconds / 1_000_000_000) as f64 + (nanoseconds % 1_000_000_000) as f64 / 1e9
}
