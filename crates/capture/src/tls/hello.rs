//! The parts of hello messages that determine the kind of handshake.

use std::hash::{DefaultHasher, Hash, Hasher};

const SERVER_NAME: u16 = 0;
const ENCRYPT_THEN_MAC: u16 = 22;
const SESSION_TICKET: u16 = 35;
const PRE_SHARED_KEY: u16 = 41;
const EARLY_DATA: u16 = 42;
const SUPPORTED_VERSIONS: u16 = 43;
const KEY_SHARE: u16 = 51;

/// Drafts of TLS 1.3 are numbered from here (draft-ietf-tls-tls13-18 section 4.2.1).
pub(super) const DRAFT_VERSIONS: u16 = 0x7f00;
/// Draft 21; from draft 22 on, ServerHello has the format of TLS 1.2 again.
const LAST_SHORT_DRAFT: u16 = 0x7f15;

/// SHA-256 of "HelloRetryRequest" (RFC 8446 section 4.1.3).
const RETRY_RANDOM: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2,
    0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// Limit of pre-shared key identities that are read from a ClientHello.
const MAX_IDENTITIES: usize = 8;

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(crate) enum SessionName<'a> {
    /// The identifier that the server assigned.
    Id(&'a [u8]),
    /// A ticket, which the client stores instead of the server.
    Ticket(&'a [u8]),
    /// WTLS: the server's address and port, and the identifier, which is too short to be unique.
    Local(u128, u16, &'a [u8]),
}

impl SessionName<'_> {
    /// A digest, which needs less memory than a ticket.
    pub(crate) fn digest(self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    fn of_id(id: &[u8]) -> Option<u64> {
        (!id.is_empty()).then(|| SessionName::Id(id).digest())
    }
}

/// Reads a message's fields in order; `None` if the message is too short.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    pub(crate) fn half(&mut self) -> Option<u16> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// A vector that follows its length of `length_bytes` bytes.
    pub(crate) fn vector(&mut self, length_bytes: usize) -> Option<&'a [u8]> {
        let length = self.take(length_bytes)?.iter().fold(0, |length, &byte| length << 8 | usize::from(byte));
        self.take(length)
    }

    fn random(&mut self) -> Option<[u8; 32]> {
        self.take(32)?.try_into().ok()
    }

    /// Types and contents of the optional extensions at the end of the message.
    fn extensions(&mut self) -> impl Iterator<Item = (u16, &'a [u8])> + use<'a> {
        let mut rest = Fields(self.vector(2).unwrap_or_default());
        std::iter::from_fn(move || Some((rest.half()?, rest.vector(2)?)))
    }
}

/// Fields of a ClientHello; sessions, tickets and identities as digests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientHello {
    pub(crate) random: [u8; 32],
    pub(crate) session: Option<u64>,
    /// The offered ticket (RFC 5077).
    pub(crate) ticket: Option<u64>,
    /// TLS 1.3: the first identities of pre-shared keys.
    pub(crate) identities: Vec<u64>,
    pub(crate) server_name: Option<Box<str>>,
    pub(crate) early_data: bool,
}

/// Fields of a ServerHello (or HelloRetryRequest).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerHello {
    /// The negotiated version, as on the wire.
    pub(crate) version: u16,
    pub(crate) random: [u8; 32],
    pub(crate) session: Option<u64>,
    pub(crate) cipher_suite: u16,
    pub(crate) compressed: bool,
    pub(crate) encrypt_then_mac: bool,
    /// TLS 1.3: the server selected a pre-shared key.
    pub(crate) pre_shared_key: bool,
    /// TLS 1.3: index of the selected identity.
    pub(crate) identity: u16,
    /// TLS 1.3: the group of the key exchange.
    pub(crate) group: Option<u16>,
    pub(crate) is_retry: bool,
}

pub(crate) fn client_hello(body: &[u8], datagram: bool) -> Option<ClientHello> {
    let mut fields = Fields(body);
    fields.half()?;
    let random = fields.random()?;
    let session = SessionName::of_id(fields.vector(1)?);
    if datagram {
        fields.vector(1)?;
    }
    fields.vector(2)?;
    fields.vector(1)?;
    let mut hello = ClientHello { random, session, ..ClientHello::default() };
    for (kind, content) in fields.extensions() {
        match kind {
            SERVER_NAME => hello.server_name = server_name(content),
            EARLY_DATA => hello.early_data = true,
            SESSION_TICKET if !content.is_empty() => {
                hello.ticket = Some(SessionName::Ticket(content).digest());
            }
            PRE_SHARED_KEY => hello.identities = identities(content),
            _ => {}
        }
    }
    Some(hello)
}

/// A ClientHello in SSL 2.0's format: version, three lengths, and the fields with these lengths.
pub(crate) fn client_hello_version_2(body: &[u8]) -> Option<ClientHello> {
    let mut fields = Fields(body);
    fields.take(3)?;
    let (ciphers, session_id, challenge) = (fields.half()?, fields.half()?, fields.half()?);
    fields.take(usize::from(ciphers))?;
    let session = SessionName::of_id(fields.take(usize::from(session_id))?);
    let challenge = fields.take(usize::from(challenge))?;
    // The challenge is the end of the random; if it is shorter, zeros precede it.
    let tail = &challenge[challenge.len().saturating_sub(32)..];
    let mut random = [0; 32];
    random[32 - tail.len()..].copy_from_slice(tail);
    Some(ClientHello { random, session, ..ClientHello::default() })
}

pub(crate) fn server_hello(body: &[u8]) -> Option<ServerHello> {
    let mut fields = Fields(body);
    let mut hello =
        ServerHello { version: fields.half()?, random: fields.random()?, ..ServerHello::default() };
    // Drafts of TLS 1.3 up to 21 have their version here, and neither session identifier nor compression.
    let is_early_draft = (DRAFT_VERSIONS..=LAST_SHORT_DRAFT).contains(&hello.version);
    if !is_early_draft {
        hello.session = SessionName::of_id(fields.vector(1)?);
    }
    hello.cipher_suite = fields.half()?;
    hello.compressed = !is_early_draft && fields.byte()? != 0;
    hello.is_retry = hello.random == RETRY_RANDOM;
    for (kind, content) in fields.extensions() {
        match (kind, content) {
            (SUPPORTED_VERSIONS, &[major, minor]) => hello.version = u16::from_be_bytes([major, minor]),
            (ENCRYPT_THEN_MAC, _) => hello.encrypt_then_mac = true,
            (PRE_SHARED_KEY, _) => {
                hello.pre_shared_key = true;
                hello.identity = Fields(content).half().unwrap_or_default();
            }
            (KEY_SHARE, _) => hello.group = Fields(content).half(),
            _ => {}
        }
    }
    Some(hello)
}

/// Digests of pre-shared key identities (RFC 8446 section 4.2.11).
fn identities(content: &[u8]) -> Vec<u64> {
    let mut list = Fields(Fields(content).vector(2).unwrap_or_default());
    let next = || {
        let identity = list.vector(2)?;
        list.take(4)?;
        Some(SessionName::Ticket(identity).digest())
    };
    std::iter::from_fn(next).take(MAX_IDENTITIES).collect()
}

/// Digest of the ticket in a NewSessionTicket message (RFC 5077 section 3.3, RFC 8446 section 4.6.1).
pub(crate) fn issued_ticket(body: &[u8], modern: bool) -> Option<u64> {
    let mut fields = Fields(body);
    fields.take(4)?;
    if modern {
        fields.take(4)?;
        fields.vector(1)?;
    }
    let ticket = fields.vector(2).filter(|ticket| !ticket.is_empty())?;
    Some(SessionName::Ticket(ticket).digest())
}

fn server_name(content: &[u8]) -> Option<Box<str>> {
    let mut list = Fields(Fields(content).vector(2)?);
    // The only defined name type is host_name, 0.
    if list.byte()? != 0 {
        return None;
    }
    let name = list.vector(2)?;
    let text = std::str::from_utf8(name).ok()?;
    text.bytes().all(|byte| byte.is_ascii_graphic()).then(|| text.into())
}
