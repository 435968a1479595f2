//! A connection of a capture in the shape in which handshakes are measured and priced.
//!
//! Messages and bytes are the capture's; the public-key operations follow from the suite by rule. Nothing here
//! has a time: what the operations cost is a device profile's to say. Symmetric work and the import of keys
//! are not told, for a capture does not show them; prices made from such a trace leave them out.

use crate::report::{Bytes, Connection, Message};
use crate::suite::group_family;
use serde::Serialize;
use shakedown_trace::suite::{Authentication, Group, KeyExchange, KeyType, Mode, Protocol, Suite};
use shakedown_trace::{Class, Operation, Primitive, Side};

/// A message, as in a measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceMessage {
    /// Place among the messages, from 0.
    pub index: usize,
    /// `client` or `server`.
    pub from: &'static str,
    /// RFC name.
    pub name: String,
    /// Which run of messages of one sender, from 1; `None` for tickets after a TLS 1.3 handshake.
    pub flight: Option<u32>,
    /// On the wire.
    pub bytes: u64,
}

/// An operation, as in a measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceOperation {
    /// Who does it.
    pub side: Side,
    /// Index of the message it is done for.
    pub message: Option<usize>,
    /// What is done.
    pub operation: Operation,
    /// By which family.
    pub algorithm: &'static str,
    /// With which size or curve.
    pub parameters: &'static str,
    /// What for.
    pub class: Class,
    /// Always 1.
    pub count: u64,
    /// Always 0.
    pub bytes: u64,
}

/// A handshake without times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CapturedTrace {
    /// Canonical name.
    pub suite: String,
    /// How it was obtained: `captured`.
    pub kind: &'static str,
    /// Handshake bytes.
    pub bytes: Bytes,
    /// Runs of messages of one sender.
    pub flights: u32,
    /// In the order in which they were sent.
    pub messages: Vec<TraceMessage>,
    /// Public-key calls, in the order of their messages.
    pub operations: Vec<TraceOperation>,
}

/// Why a connection is no trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTrace {
    /// The suite could not be told.
    #[error(
        "connection {index}: not everything that a suite's name says was visible (an abbreviated handshake, \
         or TLS 1.3 without a key log)"
    )]
    UnknownSuite {
        /// The connection's index.
        index: u64,
    },
    /// The handshake did not end well, or not in the capture.
    #[error("connection {index}: the handshake is not complete")]
    Incomplete {
        /// The connection's index.
        index: u64,
    },
    /// Part of the handshake stayed closed.
    #[error(
        "connection {index}: {bytes} bytes of the handshake are encrypted and the key log does not open them"
    )]
    Encrypted {
        /// The connection's index.
        index: u64,
        /// How much.
        bytes: u64,
    },
}

/// Makes a trace of a connection.
///
/// # Errors
/// [`NoTrace`] where the capture does not show enough.
pub fn of(connection: &Connection) -> Result<CapturedTrace, NoTrace> {
    let index = connection.index;
    if !connection.complete {
        return Err(NoTrace::Incomplete { index });
    }
    let sealed = connection.encrypted.client_to_server.bytes + connection.encrypted.server_to_client.bytes;
    let suite: Option<Suite> = connection.suite.as_deref().and_then(|name| name.parse().ok());
    match suite {
        _ if sealed > 0 => Err(NoTrace::Encrypted { index, bytes: sealed }),
        None => Err(NoTrace::UnknownSuite { index }),
        Some(suite) => Ok(CapturedTrace {
            suite: suite.to_string(),
            kind: "captured",
            bytes: connection.bytes,
            flights: connection.flights,
            messages: connection.messages.iter().map(message).collect(),
            operations: operations(&suite, &connection.messages),
        }),
    }
}

fn message(message: &Message) -> TraceMessage {
    TraceMessage {
        index: message.index,
        from: message.from,
        name: message.name.clone(),
        flight: message.flight,
        bytes: message.bytes,
    }
}

/// Books operations to messages.
struct Book<'a> {
    messages: &'a [Message],
    operations: Vec<TraceOperation>,
}

impl Book<'_> {
    /// Adds an operation done for the first of these messages that is there.
    fn add(&mut self, side: Side, primitive: Primitive, candidates: &[(Side, &str)]) {
        let find = |&(from, name): &(Side, &str)| {
            self.messages
                .iter()
                .rposition(|one| one.from == from.as_str() && one.name == name && one.flight.is_some())
        };
        self.operations.push(TraceOperation {
            side,
            message: candidates.iter().find_map(find),
            operation: primitive.operation,
            algorithm: primitive.algorithm,
            parameters: primitive.parameters,
            class: primitive.operation.class(),
            count: 1,
            bytes: 0,
        });
    }

    /// `verifier` checks the other side's chain: every certificate but the root, each by its issuer's key.
    fn chain(&mut self, verifier: Side, suite: &Suite) {
        for issuer in suite.keys.iter().skip(1) {
            self.add(verifier, signature(Operation::Verify, *issuer), &[(verifier.peer(), "Certificate")]);
        }
    }
}

fn signature(operation: Operation, key: KeyType) -> Primitive {
    let algorithm = match key {
        KeyType::Rsa { .. } => "rsa",
        KeyType::Dsa(_) => "dsa",
        KeyType::Ec(_) => "ecdsa",
        KeyType::Ed25519 => "eddsa",
        KeyType::MlDsa(_) => "mldsa",
    };
    Primitive::new(operation, algorithm, key.standard_name())
}

fn agreement(operation: Operation, group: Group) -> Primitive {
    Primitive::new(operation, group_family(group), group.name(Protocol::Tls12))
}

/// The public-key operations that a suite has (import of keys left out), booked to the messages.
fn operations(suite: &Suite, messages: &[Message]) -> Vec<TraceOperation> {
    let mut book = Book { messages, operations: Vec::new() };
    if suite.mode == Mode::Full || suite.mode == Mode::Optimized {
        match (suite.protocol, suite.key_exchange) {
            (Protocol::Tls13, _) => tls_1_3(&mut book, suite),
            (Protocol::Wtls, KeyExchange::EcdhEcdsa) => static_exchange(&mut book, suite),
            _ => classic(&mut book, suite),
        }
    }
    book.operations.sort_by_key(|one| (one.side, one.message));
    book.operations
}

fn tls_1_3(book: &mut Book<'_>, suite: &Suite) {
    use Side::{Client, Server};
    let (client_hello, server_hello) = ([(Client, "ClientHello")], [(Server, "ServerHello")]);
    let group = suite.group.unwrap_or(Group::X25519);
    book.add(Client, agreement(Operation::Keygen, group), &client_hello);
    if suite.key_exchange == KeyExchange::Psk {
        return;
    }
    if matches!(group_family(group), "mlkem" | "hybrid") {
        book.add(Server, agreement(Operation::Encapsulate, group), &server_hello);
        book.add(Client, agreement(Operation::Decapsulate, group), &server_hello);
    } else {
        book.add(Server, agreement(Operation::Keygen, group), &server_hello);
        book.add(Server, agreement(Operation::Derive, group), &server_hello);
        book.add(Client, agreement(Operation::Derive, group), &server_hello);
    }
    if suite.key_exchange != KeyExchange::Ephemeral {
        return;
    }
    for signer in [Server, Client] {
        if signer == Client && suite.authentication != Some(Authentication::Mutual) {
            break;
        }
        let verify = [(signer, "CertificateVerify")];
        book.chain(signer.peer(), suite);
        book.add(signer, signature(Operation::Sign, suite.keys[0]), &verify);
        book.add(signer.peer(), signature(Operation::Verify, suite.keys[0]), &verify);
    }
}

/// WTLS: both sides hold agreement keys, or the client makes one.
fn static_exchange(book: &mut Book<'_>, suite: &Suite) {
    use Side::{Client, Server};
    let Some(KeyType::Ec(curve)) = suite.keys.first().copied() else { return };
    let group = Group::Curve(curve);
    book.chain(Client, suite);
    let exchange = [(Client, "ClientKeyExchange"), (Client, "Certificate"), (Client, "ChangeCipherSpec")];
    if suite.authentication == Some(Authentication::Mutual) {
        book.chain(Server, suite);
    } else {
        book.add(Client, agreement(Operation::Keygen, group), &exchange);
    }
    book.add(Client, agreement(Operation::Derive, group), &exchange);
    book.add(Server, agreement(Operation::Derive, group), &exchange);
}

fn classic(book: &mut Book<'_>, suite: &Suite) {
    use Side::{Client, Server};
    let (server_exchange, client_exchange) =
        ([(Server, "ServerKeyExchange")], [(Client, "ClientKeyExchange")]);
    if suite.has_certificates() {
        book.chain(Client, suite);
    }
    if let Some(group) = suite.group {
        book.add(Server, agreement(Operation::Keygen, group), &server_exchange);
        if suite.has_certificates() {
            book.add(Server, signature(Operation::Sign, suite.keys[0]), &server_exchange);
            book.add(Client, signature(Operation::Verify, suite.keys[0]), &server_exchange);
        }
        book.add(Client, agreement(Operation::Keygen, group), &client_exchange);
        book.add(Client, agreement(Operation::Derive, group), &client_exchange);
        book.add(Server, agreement(Operation::Derive, group), &client_exchange);
    } else if let Some(key) = suite.keys.first() {
        book.add(Client, signature(Operation::Encrypt, *key), &client_exchange);
        book.add(Server, signature(Operation::Decrypt, *key), &client_exchange);
    }
    if suite.authentication == Some(Authentication::Mutual) {
        let verify = [(Client, "CertificateVerify")];
        book.chain(Server, suite);
        book.add(Client, signature(Operation::Sign, suite.keys[0]), &verify);
        book.add(Server, signature(Operation::Verify, suite.keys[0]), &verify);
    }
}
