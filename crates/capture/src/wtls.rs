//! WTLS (WAP-261): records in datagrams, every handshake message in a record of its own.
//!
//! The plain part is readable; the one protected handshake record that follows ChangeCipherSpec is Finished,
//! so that names and bytes are certain without keys.

use crate::message::{Mark, Name, Problems, Seen, SeenAlert, push_alert, push_message};
use crate::tcp::Counts;
use shakedown_trace::suite::{Cipher, WtlsBulk, WtlsMac};
use shakedown_trace::{MessageName, Suite};
use std::sync::Arc;

const HAS_LENGTH: u8 = 0x80;
const HAS_SEQUENCE: u8 = 0x40;
const PROTECTED: u8 = 0x20;
const RESERVED: u8 = 0x10;
const CHANGE_CIPHER_SPEC: u8 = 1;
const ALERT: u8 = 2;
const HANDSHAKE: u8 = 3;
const APPLICATION_DATA: u8 = 4;

/// A record (WAP-261 section 9.2).
struct Record<'a> {
    kind: u8,
    protected: bool,
    sequence: Option<u16>,
    body: &'a [u8],
    wire_bytes: usize,
}

fn record(bytes: &[u8]) -> Option<Record<'_>> {
    let flags = *bytes.first()?;
    let kind = flags & 0x0f;
    if flags & RESERVED != 0 || !(CHANGE_CIPHER_SPEC..=APPLICATION_DATA).contains(&kind) {
        return None;
    }
    let mut at = 1;
    let mut half = |present: bool| {
        if !present {
            return Some(None);
        }
        let value = u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]);
        at += 2;
        Some(Some(value))
    };
    let sequence = half(flags & HAS_SEQUENCE != 0)?;
    let length = half(flags & HAS_LENGTH != 0)?;
    // Without a length it is the last record of the datagram.
    let end = length.map_or(bytes.len(), |length| at + usize::from(length));
    let body = bytes.get(at..end)?;
    Some(Record { kind, protected: flags & PROTECTED != 0, sequence, body, wire_bytes: end })
}

/// A plain handshake message: its type and content.
fn message(body: &[u8]) -> Option<(u8, &[u8])> {
    let (&[kind, high, low], content) = body.split_first_chunk::<3>()?;
    (content.len() == usize::from(u16::from_be_bytes([high, low]))).then_some((kind, content))
}

/// True where a datagram begins a WTLS handshake: with a ClientHello or ServerHello of version 1.
pub(crate) fn begins(datagram: &[u8]) -> bool {
    let Some(record) = record(datagram) else { return false };
    if record.kind != HANDSHAKE || record.protected || record.sequence.is_none() {
        return false;
    }
    // Version, random, and the rest.
    matches!(message(record.body), Some((1 | 2, content)) if content.first() == Some(&1) && content.len() >= 24)
}

/// What a ClientHello or ServerHello says.
#[derive(Debug, Default)]
struct Hello {
    random: [u8; 16],
    session_id: Vec<u8>,
    /// What follows the session identifier.
    rest: Vec<u8>,
}

fn hello(content: &[u8]) -> Option<Hello> {
    let random = content.get(1..17)?.try_into().ok()?;
    let length = usize::from(*content.get(17)?);
    let session_id = content.get(18..18 + length)?.to_vec();
    Some(Hello { random, session_id, rest: content.get(18 + length..)?.to_vec() })
}

#[derive(Default)]
struct Direction {
    /// Highest number of a plain record.
    plain: Option<u16>,
    /// Highest number of a protected record.
    protected: Option<u16>,
    changed: bool,
    finished: bool,
    counts: Counts,
    application_bytes: u64,
}

impl Direction {
    fn repeated(&mut self, bytes: u64) {
        self.counts.retransmitted_segments += 1;
        self.counts.retransmitted_bytes += bytes;
    }

    /// True where a record with this number came before.
    fn is_repeated(&mut self, record: &Record<'_>) -> bool {
        let highest = if record.protected { &mut self.protected } else { &mut self.plain };
        match (record.sequence, *highest) {
            (Some(number), Some(seen)) if number <= seen => true,
            (Some(number), _) => {
                *highest = Some(number);
                false
            }
            (None, _) => false,
        }
    }
}

#[derive(Default)]
pub(crate) struct WtlsConnection {
    directions: [Direction; 2],
    pub(crate) client: Option<usize>,
    client_hello: Option<Hello>,
    server_hello: Option<Hello>,
    pub(crate) certificates: [Option<Box<[u8]>>; 2],
    pub(crate) server_key_exchange: Option<Box<[u8]>>,
    pub(crate) seen: Vec<Seen>,
    /// The handshake is over, and the suite is known if it ever will be.
    pub(crate) settled: bool,
    pub(crate) suite: Option<Arc<Suite>>,
    pub(crate) alerts: Vec<SeenAlert>,
    pub(crate) problems: Problems,
}

impl WtlsConnection {
    pub(crate) fn held_bytes(&self) -> usize {
        let certificates = self.certificates.iter().flatten().map(|body| body.len()).sum::<usize>();
        let hellos = [&self.client_hello, &self.server_hello].into_iter().flatten();
        certificates
            + self.server_key_exchange.as_ref().map_or(0, |body| body.len())
            + hellos.map(|hello| hello.session_id.len() + hello.rest.len()).sum::<usize>()
            + self.seen.capacity() * size_of::<Seen>()
    }

    /// The session's identifier, if it can be resumed.
    pub(crate) fn session_id(&self) -> Option<&[u8]> {
        let hello = self.server_hello.as_ref()?;
        Some(&*hello.session_id).filter(|id| !id.is_empty())
    }

    /// Once the suite is known, what it was known from takes only room.
    pub(crate) fn forget_presented(&mut self) {
        (self.certificates, self.server_key_exchange) = ([None, None], None);
        if let Some(hello) = &mut self.client_hello {
            hello.rest = Vec::new();
        }
    }

    pub(crate) fn is_finished(&self, direction: usize) -> bool {
        self.directions[direction].finished
    }

    /// True once both sides have finished.
    pub(crate) fn is_over(&self) -> bool {
        self.directions.iter().all(|direction| direction.finished)
    }

    pub(crate) fn application_bytes(&self, direction: usize) -> u64 {
        self.directions[direction].application_bytes
    }

    pub(crate) fn counts(&self) -> [Counts; 2] {
        [self.directions[0].counts, self.directions[1].counts]
    }

    /// True where a datagram begins another handshake than this one.
    pub(crate) fn is_another(&self, datagram: &[u8]) -> bool {
        let Some(known) = &self.client_hello else { return false };
        if !begins(datagram) || !self.directions.iter().all(|direction| direction.finished) {
            return false;
        }
        let content = record(datagram).and_then(|record| message(record.body).map(|message| message.1));
        content.and_then(hello).is_some_and(|other| other.random != known.random)
    }

    /// Takes a datagram; `missing` bytes of it were not captured.
    pub(crate) fn read(&mut self, direction: usize, datagram: &[u8], missing: usize, mark: Mark) {
        let counts = &mut self.directions[direction].counts;
        counts.segments += 1;
        counts.payload_bytes += (datagram.len() + missing) as u64;
        if missing > 0 {
            counts.gaps += 1;
            counts.gap_bytes += missing as u64;
        }
        let mut rest = datagram;
        while !rest.is_empty() {
            let Some(record) = record(rest) else {
                let text = if missing > 0 {
                    "datagrams were cut by the snap length"
                } else {
                    "a datagram is not all WTLS"
                };
                self.problems.add(text);
                break;
            };
            rest = &rest[record.wire_bytes..];
            self.record(direction, &record, mark);
        }
    }

    fn record(&mut self, direction: usize, record: &Record<'_>, mark: Mark) {
        let bytes = record.wire_bytes as u64;
        let slot = &mut self.directions[direction];
        if slot.is_repeated(record) {
            slot.repeated(bytes);
            return;
        }
        let name = match (record.kind, record.protected) {
            (CHANGE_CIPHER_SPEC, _) => {
                if std::mem::replace(&mut slot.changed, true) {
                    slot.repeated(bytes);
                    return;
                }
                Name::Known(MessageName::ChangeCipherSpec)
            }
            (HANDSHAKE, true) => {
                if slot.finished {
                    slot.repeated(bytes);
                    return;
                }
                Name::Known(MessageName::Finished)
            }
            (HANDSHAKE, false) => match message(record.body) {
                Some((kind, content)) => self.note(direction, kind, content),
                None => {
                    self.problems.add("a handshake record cannot be read");
                    return;
                }
            },
            (ALERT, protected) => {
                let content = match record.body {
                    &[level, description, ..] if !protected => Some((level, description)),
                    _ => None,
                };
                push_alert(&mut self.alerts, direction, mark, content);
                return;
            }
            _ => {
                slot.application_bytes += bytes;
                return;
            }
        };
        let finished = name == Name::Known(MessageName::Finished);
        let after_handshake = self.directions[direction].finished;
        self.directions[direction].finished |= finished;
        let seen = Seen { direction, name, bytes, start: mark, end: mark, end_offset: 0, after_handshake };
        push_message(&mut self.seen, &mut self.problems, seen);
    }

    fn note(&mut self, direction: usize, kind: u8, content: &[u8]) -> Name {
        let Some(name) = MessageName::from_tls(kind) else {
            self.problems.add(format!("handshake type {kind} has no name"));
            return Name::Unknown(kind);
        };
        match name {
            MessageName::ClientHello => {
                self.client = Some(direction);
                self.client_hello = hello(content);
            }
            MessageName::ServerHello => {
                self.client = self.client.or(Some(1 - direction));
                self.server_hello = hello(content);
            }
            MessageName::Certificate => self.certificates[direction] = Some(content.into()),
            MessageName::ServerKeyExchange => self.server_key_exchange = Some(content.into()),
            _ => {}
        }
        Name::Known(name)
    }

    pub(crate) fn has_server_hello(&self) -> bool {
        self.server_hello.is_some()
    }

    /// The cipher agreed on: the bytes after the index of the client's key identifier.
    pub(crate) fn cipher(&self) -> Option<Cipher> {
        let &[_, bulk, mac, ..] = self.server_hello.as_ref()?.rest.as_slice() else { return None };
        let bulk = WtlsBulk::ALL.iter().map(|row| row.0).find(|one| one.number() == bulk)?;
        let mac = WtlsMac::ALL.iter().map(|row| row.0).find(|one| one.number() == mac)?;
        Some(Cipher::Wtls(bulk, mac))
    }

    /// Whether the server resumed the session that the client named.
    pub(crate) fn is_resumed(&self) -> Option<bool> {
        let (client, server) = (self.client_hello.as_ref()?, self.server_hello.as_ref()?);
        Some(!client.session_id.is_empty() && client.session_id == server.session_id)
    }

    /// The key exchange suite and its parameters that the server chose among the client's.
    pub(crate) fn key_exchange(&self) -> Option<(u8, Parameters<'_>)> {
        let chosen = usize::from(*self.server_hello.as_ref()?.rest.first()?).checked_sub(1)?;
        let mut list = vector(&self.client_hello.as_ref()?.rest)?;
        for _ in 0..chosen {
            list = key_identifier(list)?.1;
        }
        Some(key_identifier(list)?.0)
    }

    /// Suites and parameters of the keys that the client trusts, as far as it names them.
    pub(crate) fn trusted_keys(&self) -> Vec<(u8, Parameters<'_>)> {
        let list = || {
            let rest = &self.client_hello.as_ref()?.rest;
            let own = vector(rest)?;
            vector(rest.get(2 + own.len()..)?)
        };
        list().map(key_identifiers).unwrap_or_default()
    }
}

/// The suite and parameters of each entry of a list, as far as it can be read.
fn key_identifiers(mut list: &[u8]) -> Vec<(u8, Parameters<'_>)> {
    let mut found = Vec::new();
    while let Some((one, rest)) = key_identifier(list) {
        found.push(one);
        list = rest;
    }
    found
}

/// A vector with its length in two bytes before it.
fn vector(bytes: &[u8]) -> Option<&[u8]> {
    let (&length, rest) = bytes.split_first_chunk::<2>()?;
    rest.get(..usize::from(u16::from_be_bytes(length)))
}

/// Parameters by their number, or spelt out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parameters<'a> {
    Index(u8),
    Explicit(&'a [u8]),
}

impl<'a> Parameters<'a> {
    /// The parameters that bytes begin with, and the rest.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        match bytes.split_first()? {
            (255, rest) => {
                let set = vector(rest)?;
                Some((Self::Explicit(set), rest.get(2 + set.len()..)?))
            }
            (&index, rest) => Some((Self::Index(index), rest)),
        }
    }
}

/// The suite and parameters of the first entry of a list, and the rest of the list.
fn key_identifier(list: &[u8]) -> Option<((u8, Parameters<'_>), &[u8])> {
    let (&suite, rest) = list.split_first()?;
    let (parameters, rest) = Parameters::read(rest)?;
    let (&kind, rest) = rest.split_first()?;
    let length = match kind {
        0 => 0,
        1 => 3 + usize::from(*rest.get(2)?),
        2 | 255 => 1 + usize::from(*rest.first()?),
        254 => 20,
        _ => return None,
    };
    Some(((suite, parameters), rest.get(length..)?))
}

/// The name of an alert description (WAP-261 section 10.2).
pub(crate) fn alert_description(number: u8) -> String {
    let name = match number {
        0 => "connection_close_notify",
        1 => "session_close_notify",
        5 => "no_connection",
        11 => "time_required",
        52 => "unknown_key_id",
        53 => "disabled_key_id",
        54 => "key_exchange_disabled",
        55 => "session_not_ready",
        56 => "unknown_parameter_index",
        57 => "duplicate_finished_received",
        other => return crate::tls::alert::description(other),
    };
    name.to_owned()
}

pub(crate) fn alert_level(number: u8) -> String {
    match number {
        1 => "warning".to_owned(),
        2 => "critical".to_owned(),
        3 => "fatal".to_owned(),
        other => format!("level {other}"),
    }
}

#[cfg(test)]
mod tests;
