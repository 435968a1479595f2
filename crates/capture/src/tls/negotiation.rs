//! What both ends have agreed on, as far as it was seen; the same for streams and datagrams.

use super::cipher_suite::{self, Protection};
use super::handshake::{CERTIFICATE, CLIENT_HELLO, SERVER_HELLO, SERVER_KEY_EXCHANGE};
use super::hello::{self, ClientHello, ServerHello};
use super::keylog::{KeyLog, Label, Secrets};
use super::secrets::{LegacyKeys, LegacyOpener, ModernOpener};
use crate::message::Name;
use shakedown_trace::MessageName;

pub(crate) const TLS_1_3: u16 = 0x0304;
const DTLS_1_0_BAD: u16 = 0x0100;
const DTLS_1_0: u16 = 0xfeff;
const DTLS_1_2: u16 = 0xfefd;
const DTLS_1_3: u16 = 0xfefc;

/// Names of protocols by their number on the wire.
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
        _ => return None,
    })
}

/// What hello messages and certificates have told.
#[derive(Debug, Default)]
pub(crate) struct Negotiation {
    pub(crate) datagram: bool,
    /// Which direction is the client's.
    pub(crate) client: Option<usize>,
    pub(crate) client_hello: Option<ClientHello>,
    pub(crate) server_hello: Option<ServerHello>,
    /// A HelloRetryRequest, which binds version and cipher suite of the ServerHello to come.
    pub(crate) retry: Option<ServerHello>,
    /// Certificate messages by direction.
    pub(crate) certificates: [Option<Box<[u8]>>; 2],
    pub(crate) server_key_exchange: Option<Box<[u8]>>,
}

impl Negotiation {
    pub(crate) fn version(&self) -> Option<u16> {
        self.server_hello.as_ref().map(|hello| hello.version)
    }

    pub(crate) fn is_tls_1_3(&self) -> bool {
        matches!(self.version(), Some(TLS_1_3 | DTLS_1_3))
    }

    /// True once it is known how protected records are to be read.
    pub(crate) fn is_settled(&self) -> bool {
        self.client_hello.is_some() && self.server_hello.is_some()
    }

    /// Memory held.
    pub(crate) fn held_bytes(&self) -> usize {
        let certificates = self.certificates.iter().flatten().map(|body| body.len()).sum::<usize>();
        certificates + self.server_key_exchange.as_ref().map_or(0, |body| body.len())
    }

    /// Takes note of a message of the first handshake and gives it its name.
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
                    self.retry = hello;
                    return Name::Known(MessageName::HelloRetryRequest);
                }
                self.server_hello = hello.or(self.server_hello.take());
            }
            (CERTIFICATE, Some(body)) => self.certificates[direction] = Some(body.into_boxed_slice()),
            (SERVER_KEY_EXCHANGE, Some(body)) => self.server_key_exchange = Some(body.into_boxed_slice()),
            _ => {}
        }
        name
    }

    /// A ClientHello in the clothes of SSL 2.0.
    pub(crate) fn note_version_2(&mut self, direction: usize, body: &[u8]) -> Name {
        self.client = Some(direction);
        self.client_hello = hello::client_hello_version_2(body);
        Name::Known(MessageName::ClientHello)
    }

    /// The ServerHello will not come: what a retry said of it holds.
    pub(crate) fn give_up(&mut self) {
        if self.server_hello.is_none() {
            self.server_hello = self.retry.take();
        }
    }

    fn protection(&self) -> Option<Protection> {
        cipher_suite::protection(self.server_hello.as_ref()?.cipher_suite)
    }

    pub(crate) fn secrets<'a>(&self, keys: &'a KeyLog) -> Option<&'a Secrets> {
        keys.find(&self.client_hello.as_ref()?.random)
    }

    /// What opens a direction's records after ChangeCipherSpec; `None` without the secret.
    pub(crate) fn legacy_opener(&self, keys: &KeyLog, direction: usize) -> Option<LegacyOpener> {
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
        LegacyOpener::new(&keys, self.client == Some(direction))
    }

    /// What opens TLS 1.3 records under one of the key log's secrets; `None` without it.
    pub(crate) fn modern_opener(&self, keys: &KeyLog, label: Label) -> Option<ModernOpener> {
        ModernOpener::new(self.protection()?, self.secrets(keys)?.get(label)?)
    }
}
