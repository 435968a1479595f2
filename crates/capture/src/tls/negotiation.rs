//! The negotiated parameters, as far as they were seen, for TLS and DTLS.

use super::cipher_suite::{self, Protection};
use super::handshake::{CERTIFICATE, CLIENT_HELLO, NEW_SESSION_TICKET, SERVER_HELLO, SERVER_KEY_EXCHANGE};
use super::hello::{self, ClientHello, ServerHello};
use super::keylog::{KeyLog, Label, Secrets};
use super::secrets::{LegacyDecryptor, LegacyKeys, ModernDecryptor};
use crate::message::Name;
use crate::suite::{self, Presented};
use shakedown_trace::operation::intern;
use shakedown_trace::{MessageName, Suite};
use std::sync::Arc;

pub(crate) const TLS_1_3: u16 = 0x0304;
/// Limit of tickets in `issued`.
const MAX_ISSUED: usize = 16;
const DTLS_1_0_BAD: u16 = 0x0100;
const DTLS_1_0: u16 = 0xfeff;
const DTLS_1_2: u16 = 0xfefd;
const DTLS_1_3: u16 = 0xfefc;

/// True for a draft of TLS 1.3; its number is the lower byte.
fn is_draft(version: u16) -> bool {
    version & 0xff00 == hello::DRAFT_VERSIONS
}

/// The name of a protocol by its version number on the wire.
pub(crate) fn protocol_name(version: u16) -> Option<&'static str> {
    Some(match version {
        0x0300 => "ssl3",
        0x0301 => "tls1.0",
        0x0302 => "tls1.1",
        0x0303 => "tls1.2",
        TLS_1_3 => "tls1.3",
        DTLS_1_0_BAD | DTLS_1_0 => "dtls1.0",
        DTLS_1_2 => "dtls1.2",
        DTLS_1_3 => "dtls1.3",
        draft if is_draft(draft) => intern(&format!("tls1.3-draft{}", draft & 0xff)),
        _ => return None,
    })
}

/// The content of the hello messages, certificates and tickets.
#[derive(Debug, Default)]
pub(crate) struct Negotiation {
    pub(crate) datagram: bool,
    pub(crate) client: Option<usize>,
    pub(crate) client_hello: Option<ClientHello>,
    pub(crate) server_hello: Option<ServerHello>,
    /// A HelloRetryRequest, which determines the version and cipher suite of the following ServerHello.
    pub(crate) retry: Option<Box<ServerHello>>,
    /// Contents of the Certificate messages, by direction.
    pub(crate) presented: [Option<Presented>; 2],
    /// Up to TLS 1.2: the group in ServerKeyExchange.
    pub(crate) group: Option<Box<str>>,
    /// Tickets that the server issued and that are not in the table of sessions yet.
    pub(crate) issued: Vec<u64>,
    /// The handshake is over, and its suite has been determined if possible.
    pub(crate) settled: bool,
    pub(crate) suite: Option<Arc<Suite>>,
    /// Remark about assumed parts of the suite.
    pub(crate) remark: Option<Box<str>>,
    pub(crate) origin: Option<Arc<Suite>>,
}

impl Negotiation {
    pub(crate) fn version(&self) -> Option<u16> {
        self.server_hello.as_ref().map(|hello| hello.version)
    }

    pub(crate) fn is_tls_1_3(&self) -> bool {
        self.version().is_some_and(|version| matches!(version, TLS_1_3 | DTLS_1_3) || is_draft(version))
    }

    /// True once both hellos are known, and therefore how protected records are read.
    pub(crate) fn is_settled(&self) -> bool {
        self.client_hello.is_some() && self.server_hello.is_some()
    }

    pub(crate) fn held_bytes(&self) -> usize {
        let presented = self.presented.iter().flatten().map(Presented::held_bytes).sum::<usize>();
        let hello = self.client_hello.as_ref().map_or(0, |hello| {
            hello.identities.capacity() * size_of::<u64>()
                + hello.server_name.as_ref().map_or(0, |name| name.len())
        });
        presented
            + hello
            + self.group.as_ref().map_or(0, |group| group.len())
            + self.remark.as_ref().map_or(0, |remark| remark.len())
            + self.retry.as_ref().map_or(0, |_| size_of::<ServerHello>())
            + self.issued.capacity() * size_of::<u64>()
    }

    /// Notes the content of a message of the first handshake and returns its name.
    pub(crate) fn note(&mut self, direction: usize, kind: u8, body: Option<Vec<u8>>) -> Name {
        let name = MessageName::from_tls(kind).map_or(Name::Unknown(kind), Name::Known);
        match (kind, body) {
            (CLIENT_HELLO, body) => {
                self.client = Some(direction);
                self.client_hello = body
                    .and_then(|body| hello::client_hello(&body, self.datagram))
                    .or(self.client_hello.take());
            }
            (SERVER_HELLO, body) => {
                self.client = self.client.or(Some(1 - direction));
                let hello = body.and_then(|body| hello::server_hello(&body));
                if hello.as_ref().is_some_and(|hello| hello.is_retry) {
                    self.retry = hello.map(Box::new);
                    return Name::Known(MessageName::HelloRetryRequest);
                }
                self.server_hello = hello.or(self.server_hello.take());
            }
            (CERTIFICATE, Some(body)) => {
                self.presented[direction] = Some(Presented::read(&body, self.is_tls_1_3()));
            }
            (SERVER_KEY_EXCHANGE, Some(body)) => self.note_key_exchange(&body),
            (NEW_SESSION_TICKET, Some(body)) => self.note_ticket(&body),
            _ => {}
        }
        name
    }

    /// Notes the group of a ServerKeyExchange.
    pub(crate) fn note_key_exchange(&mut self, body: &[u8]) {
        let cipher_suite = self.server_hello.as_ref().map_or(0, |hello| hello.cipher_suite);
        self.group = suite::exchange_group(cipher_suite, body).map(String::into_boxed_str);
    }

    /// Notes the ticket of a NewSessionTicket, during or after the handshake.
    pub(crate) fn note_ticket(&mut self, body: &[u8]) {
        if self.issued.len() < MAX_ISSUED {
            self.issued.extend(hello::issued_ticket(body, self.is_tls_1_3()));
        }
    }

    /// Up to TLS 1.2: the identifier of the session that a full handshake created.
    pub(crate) fn session_made(&self) -> Option<u64> {
        self.server_hello.as_ref().filter(|_| !self.is_tls_1_3())?.session
    }

    /// The ticket and the identifier with which the client offered the resumed session.
    pub(crate) fn sessions_offered(&self) -> (Option<u64>, Option<u64>) {
        let (Some(client), Some(server)) = (&self.client_hello, &self.server_hello) else {
            return (None, None);
        };
        if self.is_tls_1_3() {
            return (client.identities.get(usize::from(server.identity)).copied(), None);
        }
        (client.ticket, client.session.filter(|_| client.session == server.session))
    }

    /// Frees the data from which the suite was determined.
    pub(crate) fn forget_presented(&mut self) {
        (self.presented, self.group, self.retry) = ([None, None], None, None);
        if let Some(hello) = &mut self.client_hello {
            hello.identities = Vec::new();
        }
    }

    /// Notes a ClientHello in the format of SSL 2.0.
    pub(crate) fn note_version_2(&mut self, direction: usize, body: &[u8]) -> Name {
        self.client = Some(direction);
        self.client_hello = hello::client_hello_version_2(body);
        Name::Known(MessageName::ClientHello)
    }

    /// Uses the HelloRetryRequest in place of a ServerHello that was not captured.
    pub(crate) fn give_up(&mut self) {
        if self.server_hello.is_none() {
            self.server_hello = self.retry.take().map(|retry| *retry);
        }
    }

    fn protection(&self) -> Option<Protection> {
        cipher_suite::protection(self.server_hello.as_ref()?.cipher_suite)
    }

    pub(crate) fn secrets<'a>(&self, keys: &'a KeyLog) -> Option<&'a Secrets> {
        keys.find(&self.client_hello.as_ref()?.random)
    }

    /// The decryptor of a direction's records after ChangeCipherSpec; `None` without the secret.
    pub(crate) fn legacy_decryptor(&self, keys: &KeyLog, direction: usize) -> Option<Box<LegacyDecryptor>> {
        let (client, server) = (self.client_hello.as_ref()?, self.server_hello.as_ref()?);
        if server.compressed {
            return None;
        }
        let keys = LegacyKeys {
            version: match server.version {
                DTLS_1_0_BAD | DTLS_1_0 => 0x0302,
                DTLS_1_2 => 0x0303,
                version => version,
            },
            protection: self.protection()?,
            master: self.secrets(keys)?.get(Label::Master)?,
            client_random: &client.random,
            server_random: &server.random,
            encrypt_then_mac: server.encrypt_then_mac,
        };
        LegacyDecryptor::new(&keys, self.client == Some(direction)).map(Box::new)
    }

    /// The decryptor of TLS 1.3 records under the secret with this label; `None` without the secret.
    pub(crate) fn modern_decryptor(&self, keys: &KeyLog, label: Label) -> Option<Box<ModernDecryptor>> {
        ModernDecryptor::new(self.protection()?, self.secrets(keys)?.get(label)?).map(Box::new)
    }
}
