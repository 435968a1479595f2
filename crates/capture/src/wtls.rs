//! Reads captured WTLS (WAP-261): records in datagrams, one handshake message per record.
//!
//! Names and bytes of all messages are known without keys: the only protected handshake record, after
//! ChangeCipherSpec, is Finished.

use crate::message::{Mark, Name, Problems, Seen, SeenAlert, Span, push_alert, push_message};
use crate::tcp::Counts;
use shakedown_trace::suite::{Cipher, WtlsBulk, WtlsMac};
use shakedown_trace::{MessageName, Suite};
use shakedown_wtls::codec::{Codec, Reader};
use shakedown_wtls::key_schedule::HelloRandom;
use shakedown_wtls::message::{ClientHello, ServerHello};
use shakedown_wtls::record::{Record, Records};
use shakedown_wtls::{AlertDescription, AlertLevel, ContentType, KeyExchangeId, SessionId};
use std::sync::Arc;

/// A plain handshake message: its type and content.
fn message(body: &[u8]) -> Option<(u8, &[u8])> {
    let mut reader = Reader::new(body);
    let found = (reader.u8("type").ok()?, reader.v16("content").ok()?);
    reader.is_empty().then_some(found)
}

/// The message of a datagram that begins a WTLS handshake: a ClientHello or ServerHello of version 1.
fn first_message(datagram: &[u8]) -> Option<&[u8]> {
    let record = Records::new(datagram).next()?.ok()?;
    let of_handshake = record.record_type.content() == Some(ContentType::Handshake);
    if !of_handshake || record.record_type.is_protected() || record.sequence.is_none() {
        return None;
    }
    let (kind, content) = message(record.fragment)?;
    // Version 1; the shortest ServerHello has 24 bytes.
    (matches!(kind, 1 | 2) && content.first() == Some(&1) && content.len() >= 24).then_some(content)
}

/// True if a datagram begins a WTLS handshake.
pub(crate) fn begins(datagram: &[u8]) -> bool {
    first_message(datagram).is_some()
}

/// Random and session identifier, which follow the version in both hellos.
fn hello(content: &[u8]) -> Option<(HelloRandom, SessionId)> {
    let mut reader = Reader::new(content.get(1..)?);
    Some((reader.array("random").ok()?, SessionId::decode(&mut reader).ok()?))
}

#[derive(Default)]
pub(crate) struct Direction {
    /// Highest number of a plain record.
    plain: Option<u16>,
    /// Highest number of a protected record.
    protected: Option<u16>,
    changed: bool,
    pub(crate) finished: bool,
    pub(crate) counts: Counts,
    pub(crate) application_bytes: u64,
}

impl Direction {
    /// True if a record with this number, or a higher one, was seen before.
    fn is_repeated(&mut self, record: &Record<'_>) -> bool {
        let is_protected = record.record_type.is_protected();
        let highest = if is_protected { &mut self.protected } else { &mut self.plain };
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
    pub(crate) directions: [Direction; 2],
    pub(crate) client: Option<usize>,
    /// Random and session identifier of the ClientHello; `client_hello` is kept only until the suite is known.
    began: Option<(HelloRandom, SessionId)>,
    client_hello: Option<Box<[u8]>>,
    pub(crate) server_hello: Option<ServerHello>,
    pub(crate) certificates: [Option<Box<[u8]>>; 2],
    pub(crate) server_key_exchange: Option<Box<[u8]>>,
    pub(crate) seen: Vec<Seen>,
    /// The handshake is over, and its suite has been determined if possible.
    pub(crate) settled: bool,
    pub(crate) suite: Option<Arc<Suite>>,
    pub(crate) alerts: Vec<SeenAlert>,
    pub(crate) problems: Problems,
}

impl WtlsConnection {
    pub(crate) fn held_bytes(&self) -> usize {
        let bodies = self.certificates.iter().chain([&self.server_key_exchange, &self.client_hello]);
        bodies.flatten().map(|body| body.len()).sum::<usize>() + self.seen.capacity() * size_of::<Seen>()
    }

    /// The identifier of the session, if the session can be resumed.
    pub(crate) fn session_id(&self) -> Option<&[u8]> {
        let hello = self.server_hello.as_ref()?;
        Some(hello.session_id.as_bytes()).filter(|id| !id.is_empty())
    }

    /// Frees the messages from which the suite was determined.
    pub(crate) fn forget_presented(&mut self) {
        (self.certificates, self.server_key_exchange, self.client_hello) = ([None, None], None, None);
    }

    /// True once both sides have finished.
    pub(crate) fn is_over(&self) -> bool {
        self.directions.iter().all(|direction| direction.finished)
    }

    /// True if a datagram begins another handshake than this one.
    pub(crate) fn is_another(&self, datagram: &[u8]) -> bool {
        let (Some((known, _)), true) = (self.began, self.is_over()) else { return false };
        first_message(datagram).and_then(hello).is_some_and(|(random, _)| random != known)
    }

    /// Reads a datagram; `missing` bytes of it were not captured.
    pub(crate) fn read(&mut self, direction: usize, datagram: &[u8], missing: usize, mark: Mark) {
        self.directions[direction].counts.datagram(datagram.len(), missing);
        for record in Records::new(datagram) {
            let record = record.ok().and_then(|record| Some((record.record_type.content()?, record)));
            let Some((content, record)) = record else {
                let text = if missing > 0 {
                    "datagrams were cut by the snap length"
                } else {
                    "a datagram is not all WTLS"
                };
                self.problems.add(text);
                break;
            };
            self.record(direction, content, &record, mark);
        }
    }

    fn record(&mut self, direction: usize, content: ContentType, record: &Record<'_>, mark: Mark) {
        let bytes = record.raw.len() as u64;
        let slot = &mut self.directions[direction];
        if slot.is_repeated(record) {
            slot.counts.repeated(bytes);
            return;
        }
        let name = match (content, record.record_type.is_protected()) {
            (ContentType::ChangeCipherSpec, _) => {
                if std::mem::replace(&mut slot.changed, true) {
                    slot.counts.repeated(bytes);
                    return;
                }
                Name::Known(MessageName::ChangeCipherSpec)
            }
            (ContentType::Handshake, true) => {
                if slot.finished {
                    slot.counts.repeated(bytes);
                    return;
                }
                Name::Known(MessageName::Finished)
            }
            (ContentType::Handshake, false) => match message(record.fragment) {
                Some((kind, content)) => self.note(direction, kind, content),
                None => {
                    self.problems.add("a handshake record cannot be read");
                    return;
                }
            },
            (ContentType::Alert, protected) => {
                let content = record.fragment.get(..2).filter(|_| !protected);
                push_alert(&mut self.alerts, direction, mark, content);
                return;
            }
            (ContentType::ApplicationData, _) => {
                slot.application_bytes += bytes;
                return;
            }
        };
        let finished = name == Name::Known(MessageName::Finished);
        let after_handshake = self.directions[direction].finished;
        self.directions[direction].finished |= finished;
        let seen = Seen { direction, name, bytes, span: Span::at(mark), after_handshake };
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
                (self.began, self.client_hello) = (hello(content), Some(content.into()));
            }
            MessageName::ServerHello => {
                self.client = self.client.or(Some(1 - direction));
                self.server_hello = ServerHello::from_bytes("ServerHello", content).ok();
            }
            MessageName::Certificate => self.certificates[direction] = Some(content.into()),
            MessageName::ServerKeyExchange => self.server_key_exchange = Some(content.into()),
            _ => {}
        }
        Name::Known(name)
    }

    /// The negotiated cipher.
    pub(crate) fn cipher(&self) -> Option<Cipher> {
        let agreed = self.server_hello.as_ref()?.cipher_suite;
        let bulk = WtlsBulk::ALL.iter().map(|row| row.0).find(|one| one.number() == agreed.bulk)?;
        let mac = WtlsMac::ALL.iter().map(|row| row.0).find(|one| one.number() == agreed.mac)?;
        Some(Cipher::Wtls(bulk, mac))
    }

    /// Whether the server resumed the session that the client named.
    pub(crate) fn is_resumed(&self) -> Option<bool> {
        let ((_, named), server) = (self.began?, self.server_hello.as_ref()?);
        Some(!named.is_none() && named == server.session_id)
    }

    /// The key exchange that the server chose from the client's list, and the client's trusted keys.
    pub(crate) fn key_exchange(&self) -> Option<(KeyExchangeId, Vec<KeyExchangeId>)> {
        let chosen = usize::from(self.server_hello.as_ref()?.client_key_id).checked_sub(1)?;
        let mut offered = ClientHello::from_bytes("ClientHello", self.client_hello.as_ref()?).ok()?;
        let chosen =
            (chosen < offered.client_key_ids.len()).then(|| offered.client_key_ids.swap_remove(chosen))?;
        Some((chosen, offered.trusted_key_ids))
    }
}

/// The name of an alert description (WAP-261 section 10.2).
pub(crate) fn alert_description(number: u8) -> String {
    let known = AlertDescription::from_number(number);
    known.map_or_else(|_| crate::tls::alert::description(number), |known| known.name().to_owned())
}

pub(crate) fn alert_level(number: u8) -> String {
    AlertLevel::from_number(number)
        .map_or_else(|_| format!("level {number}"), |known| known.name().to_owned())
}

#[cfg(test)]
mod tests;
