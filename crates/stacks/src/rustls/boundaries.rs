//! Message boundaries of a rustls connection, detected from outside.
//!
//! rustls has no callback per message. But its `CryptoProvider` consists of objects that it calls: the transcript hash
//! gets each handshake message as a whole, record protection is called once per record, and the key schedule derives
//! the keys when they change. Together with the records that enter and leave the connection, these calls determine
//! which message is being processed.
//!
//! Differences from libssl's callbacks (see [`super`] for their effect on a comparison):
//!
//! - a sent message is marked when it has been encoded; a received message when it is hashed, which rustls does at the
//!   start of most handlers, but for CertificateVerify and Finished after the check;
//! - secrets that are derived directly after ServerHello (TLS 1.3) and ClientKeyExchange (TLS 1.2) belong to them;
//! - a record's header and tag, and the time of its protection, belong to the last message in it.

use shakedown_trace::{MessageName, Side, recorder};
use std::cell::RefCell;
use std::collections::VecDeque;

const HEADER: usize = 5;
/// Bytes of a handshake message's type and length.
const MESSAGE_HEADER: usize = 4;
/// A compatibility record, and the actual one of TLS 1.2 before protection.
const CHANGE_CIPHER_SPEC_BYTES: u32 = 6;
const CHANGE_CIPHER_SPEC: u8 = 20;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;
const CLIENT_HELLO: u8 = 1;
const NEW_SESSION_TICKET: u8 = 4;
const MESSAGE_HASH: u8 = 254;

thread_local! {
    /// The boundaries of the connection that runs on this thread.
    static CURRENT: RefCell<Option<Box<Boundaries>>> = const { RefCell::new(None) };
}

/// A handshake message of the peer that has been read and not yet hashed.
struct Incoming {
    kind: u8,
    length: usize,
    /// Bytes on the wire, of the records that have been read.
    bytes: u32,
}

/// A message of this side that has been encoded and not yet written.
enum Outgoing {
    Handshake {
        /// Bytes of the message that are not in a record yet.
        left: usize,
        bytes: u32,
    },
    ChangeCipherSpec,
    /// The client's first message, whose length is known only from its record.
    Hello,
}

/// A connection's state between the provider's calls.
pub struct Boundaries {
    side: Side,
    tls13: bool,
    incoming: VecDeque<Incoming>,
    /// The received bytes of a peer's message that continues in the next record.
    partial: Vec<u8>,
    partial_bytes: u32,
    record_bytes: u32,
    /// The peer's records are protected (TLS 1.2, in which the record type does not show it).
    peer_protects: bool,
    outgoing: VecDeque<Outgoing>,
    /// Plaintext lengths of the records that have been protected and not yet written; `None`: no handshake message.
    protected: VecDeque<Option<usize>>,
    /// The work that follows belongs to the message before, until keys change.
    tail: bool,
    changed: bool,
    /// ChangeCipherSpec has been written, so later records are protected (TLS 1.2).
    protects: bool,
}

/// Updates the boundaries of the connection that runs on this thread, if it is being recorded.
pub fn update_boundaries(update: impl FnOnce(&mut Boundaries)) {
    if recorder::is_recording() {
        CURRENT.with_borrow_mut(|current| current.as_deref_mut().map(update));
    }
}

impl Boundaries {
    pub fn new(side: Side, tls13: bool) -> Box<Self> {
        Box::new(Self {
            side,
            tls13,
            incoming: VecDeque::new(),
            partial: Vec::new(),
            partial_bytes: 0,
            record_bytes: 0,
            peer_protects: false,
            outgoing: VecDeque::new(),
            protected: VecDeque::new(),
            tail: false,
            changed: false,
            protects: false,
        })
    }

    /// Runs `work` with these boundaries as the thread's current ones.
    pub fn scope<T>(slot: &mut Option<Box<Self>>, work: impl FnOnce() -> T) -> T {
        CURRENT.with_borrow_mut(|current| std::mem::swap(current, slot));
        let result = work();
        CURRENT.with_borrow_mut(|current| std::mem::swap(current, slot));
        result
    }

    /// A record will be passed to the connection.
    pub fn record(&mut self, kind: u8, body: &[u8]) {
        recorder::boundary();
        self.record_bytes = u32::try_from(HEADER + body.len()).unwrap_or(u32::MAX);
        match kind {
            CHANGE_CIPHER_SPEC => {
                self.peer_protects = true;
                recorder::received(MessageName::ChangeCipherSpec, CHANGE_CIPHER_SPEC_BYTES);
            }
            HANDSHAKE if !self.peer_protects || self.tls13 => self.read(body),
            _ => {}
        }
    }

    /// Processes the messages of one handshake record, from its plaintext.
    pub fn read(&mut self, plaintext: &[u8]) {
        let overhead = self.record_bytes.saturating_sub(u32::try_from(plaintext.len()).unwrap_or(u32::MAX));
        let mut rest = plaintext;
        while !rest.is_empty() {
            let wanted = message_length(&self.partial).unwrap_or(MESSAGE_HEADER) - self.partial.len();
            let (taken, further) = rest.split_at(wanted.min(rest.len()));
            self.partial.extend_from_slice(taken);
            self.partial_bytes += u32::try_from(taken.len()).unwrap_or(u32::MAX);
            rest = further;
            // The record's header and tag are attributed to the message with which it ends.
            if rest.is_empty() {
                self.partial_bytes += overhead;
            }
            if message_length(&self.partial) == Some(self.partial.len()) {
                let (kind, length) = (self.partial[0], self.partial.len());
                self.incoming.push_back(Incoming {
                    kind,
                    length,
                    bytes: std::mem::take(&mut self.partial_bytes),
                });
                self.partial.clear();
            }
        }
        // TLS 1.3 tickets are not hashed.
        if self.tls13 && self.incoming.front().is_some_and(|message| message.kind == NEW_SESSION_TICKET) {
            while let Some(ticket) = pop_if(&mut self.incoming, |message| message.kind == NEW_SESSION_TICKET)
            {
                recorder::received(MessageName::NewSessionTicket, ticket.bytes);
            }
        }
    }

    /// `data` has been added to the transcript hash.
    pub fn hashed(&mut self, data: &[u8]) {
        let Some(length) = message_length(data) else { return };
        let kind = data[0];
        // A ClientHello shorter than its stated length is hashed for a binder; 254 stands for the hash of a first
        // hello.
        if length != data.len() || kind == MESSAGE_HASH {
            return;
        }
        let Some(name) = MessageName::from_tls(kind) else { return };
        let arrived = |message: &Incoming| message.kind == kind && message.length == length;
        if let Some(message) = pop_if(&mut self.incoming, arrived) {
            recorder::received(name, message.bytes);
            return;
        }
        // The client hashes its own hello late, when ServerHello selects the hash; it was marked when it was built.
        if kind == CLIENT_HELLO {
            return;
        }
        self.sent(name, length);
    }

    /// A client's first flight has been built.
    pub fn hello(&mut self) {
        recorder::sent(MessageName::ClientHello, recorder::UNSIZED);
        self.outgoing.push_back(Outgoing::Hello);
    }

    /// Complete records have been written.
    pub fn unit(&mut self, mut bytes: &[u8]) {
        while let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() {
            let body = usize::from(u16::from_be_bytes([header[3], header[4]]));
            self.written(header[0], body);
            bytes = rest.get(body..).unwrap_or_default();
        }
    }

    /// A message of this side has been encoded.
    fn sent(&mut self, name: MessageName, length: usize) {
        recorder::sent(name, recorder::UNSIZED);
        self.outgoing.push_back(Outgoing::Handshake { left: length, bytes: 0 });
        match name {
            MessageName::ServerHello if self.tls13 => self.tail = true,
            MessageName::ClientKeyExchange => self.tail = true,
            // The secrets are computed after it, and belong to the message before.
            MessageName::CertificateVerify if !self.tls13 => recorder::attribute_to_previous(),
            MessageName::Finished => {}
            _ => recorder::boundary(),
        }
    }

    /// TLS 1.2's PRF will run with `label`.
    pub fn prf(&mut self, label: &[u8]) {
        let own: &[u8] = match self.side {
            Side::Client => b"client finished",
            Side::Server => b"server finished",
        };
        if label == b"key expansion" {
            self.tail = false;
            recorder::boundary();
        } else if label == own {
            self.change_cipher_spec();
        } else if self.next_is(MessageName::Finished) {
            // The check of the peer's Finished begins here.
            recorder::boundary();
        }
    }

    /// TLS 1.3 has derived keys for writing: first those of the handshake, later those of application data.
    pub fn write_keys(&mut self) {
        if !self.changed {
            self.tail = false;
            recorder::boundary();
            self.change_cipher_spec();
        }
    }

    /// A record has been protected; `handshake` is the length of its plaintext if it contains handshake messages.
    pub fn protected(&mut self, handshake: Option<usize>) {
        self.protected.push_back(handshake);
    }

    /// This side's ChangeCipherSpec precedes its next message.
    fn change_cipher_spec(&mut self) {
        if !std::mem::replace(&mut self.changed, true) {
            recorder::sent(MessageName::ChangeCipherSpec, CHANGE_CIPHER_SPEC_BYTES);
            recorder::boundary();
            self.outgoing.push_back(Outgoing::ChangeCipherSpec);
        }
    }

    /// A record has been written: reports the bytes of its messages on the wire.
    fn written(&mut self, kind: u8, body: usize) {
        let protected = if self.tls13 { kind == APPLICATION_DATA } else { self.protects };
        let payload = match kind {
            CHANGE_CIPHER_SPEC => {
                self.protects = true;
                pop_if(&mut self.outgoing, |message| matches!(message, Outgoing::ChangeCipherSpec));
                return;
            }
            _ if protected => self.protected.pop_front().flatten(),
            HANDSHAKE => Some(body),
            _ => None,
        };
        let Some(payload) = payload else { return };
        if pop_if(&mut self.outgoing, |message| matches!(message, Outgoing::Hello)).is_some() {
            recorder::size_sent(u32::try_from(HEADER + body).unwrap_or(u32::MAX));
            return;
        }
        let overhead = u32::try_from(HEADER + body - payload.min(body)).unwrap_or(u32::MAX);
        let mut left = payload;
        while left > 0 {
            let Some(Outgoing::Handshake { left: wanted, bytes }) = self.outgoing.front_mut() else { return };
            let taken = left.min(*wanted);
            *wanted -= taken;
            left -= taken;
            *bytes += u32::try_from(taken).unwrap_or(u32::MAX);
            if left == 0 {
                *bytes += overhead;
            }
            if *wanted == 0 {
                recorder::size_sent(*bytes);
                self.outgoing.pop_front();
            }
        }
    }

    pub fn next_is(&self, name: MessageName) -> bool {
        self.incoming.front().and_then(|message| MessageName::from_tls(message.kind)) == Some(name)
    }
}

/// The length of the message that starts with `bytes`, including the header; `None` if the header is incomplete.
fn message_length(bytes: &[u8]) -> Option<usize> {
    let [_, high, middle, low, ..] = *bytes else { return None };
    let body = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
    Some(MESSAGE_HEADER + body)
}

/// Removes and returns the first element of a queue if it satisfies `wanted`.
fn pop_if<T>(queue: &mut VecDeque<T>, wanted: impl FnOnce(&T) -> bool) -> Option<T> {
    if queue.front().is_some_and(wanted) { queue.pop_front() } else { None }
}
