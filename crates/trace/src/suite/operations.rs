//! The public-key operations of a handshake: one table for every protocol, key exchange and mode.
//!
//! Each side verifies every certificate of the peer's chain except the root, each with its issuer's key, and one
//! signature if the peer signs. Symmetric work is not listed, because its amount depends on the stack; nor are imports
//! of keys, whose place depends on the stack.
//!
//! Resumption needs no public-key operation up to TLS 1.2 and in WTLS; in TLS 1.3 it has a new key exchange.
//! `tls1.3/psk` generates one unused share: clients offer a pre-shared key with and without a key exchange, and the
//! server selects the latter.

use super::{Authentication, Group, KeyExchange, KeyType, Mode, Protocol, Suite};
use crate::endpoint::Side;
use crate::message::MessageName;
use crate::operation::{Operation, Primitive};

/// A public-key call that the protocol requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExpectedOperation {
    pub side: Side,
    pub from: Side,
    /// The message to which it belongs; if the message is sent twice (ClientHello), the last one.
    pub message: MessageName,
    pub primitive: Primitive,
}

impl Suite {
    /// The public-key calls of this handshake, in the order of its messages.
    ///
    /// Operations of one message and side are in the order in which they are performed.
    pub fn operations(&self) -> Vec<ExpectedOperation> {
        let mut table = Table { suite: self, rows: Vec::new() };
        match (self.protocol, self.mode) {
            (Protocol::Tls13, _) => table.tls13(),
            (_, Mode::Resumed | Mode::Ticket) => {}
            _ if self.key_exchange == KeyExchange::EcdhEcdsa => table.static_agreement(),
            _ => table.classic(),
        }
        table.rows
    }

    fn is_mutual(&self) -> bool {
        self.authentication == Some(Authentication::Mutual)
    }
}

struct Table<'a> {
    suite: &'a Suite,
    rows: Vec<ExpectedOperation>,
}

type Place = (Side, MessageName);

impl Table<'_> {
    fn row(&mut self, side: Side, (from, message): Place, primitive: Primitive) {
        self.rows.push(ExpectedOperation { side, from, message, primitive });
    }

    /// Operations of `side` in the group.
    fn group(&mut self, side: Side, place: Place, group: Group, operations: &[Operation]) {
        for &operation in operations {
            self.row(side, place, group.primitive(operation, self.suite.protocol));
        }
    }

    /// The peer verifies every certificate of `sender`'s chain except the root, each with its issuer's key.
    fn chain(&mut self, sender: Side, place: Place) {
        for issuer in self.suite.keys.iter().skip(1) {
            self.row(sender.peer(), place, issuer.primitive(Operation::Verify));
        }
    }

    /// `signer` signs in its message `place`, and the peer verifies.
    fn signature(&mut self, signer: Side, place: Place, key: KeyType) {
        self.row(signer, place, key.primitive(Operation::Sign));
        self.row(signer.peer(), place, key.primitive(Operation::Verify));
    }

    fn tls13(&mut self) {
        use Operation::{Decapsulate, Derive, Encapsulate, Keygen};
        use Side::{Client, Server};
        let (client_hello, server_hello) =
            ((Client, MessageName::ClientHello), (Server, MessageName::ServerHello));
        let group = self.suite.group.unwrap_or(Group::X25519);
        self.group(Client, client_hello, group, &[Keygen]);
        if self.suite.key_exchange == KeyExchange::Psk {
            return;
        }
        if group.is_kem() {
            self.group(Server, server_hello, group, &[Encapsulate]);
            self.group(Client, server_hello, group, &[Decapsulate]);
        } else {
            self.group(Server, server_hello, group, &[Keygen, Derive]);
            self.group(Client, server_hello, group, &[Derive]);
        }
        let Some(&leaf) = self.suite.keys.first() else { return };
        if self.suite.is_resumption() {
            return;
        }
        for signer in [Server, Client] {
            if signer == Server || self.suite.is_mutual() {
                self.chain(signer, (signer, MessageName::Certificate));
                self.signature(signer, (signer, MessageName::CertificateVerify), leaf);
            }
        }
    }

    /// SSL 3.0 to TLS 1.2, DTLS 1.2, and WTLS except for static key agreement.
    fn classic(&mut self) {
        use Operation::{Decrypt, Derive, Encrypt, Keygen};
        use Side::{Client, Server};
        let certified = self.suite.has_certificates();
        let leaf = self.suite.keys.first().copied();
        if certified {
            self.chain(Server, (Server, MessageName::Certificate));
        }
        let server_exchange = (Server, MessageName::ServerKeyExchange);
        if let Some(group) = self.suite.group {
            self.group(Server, server_exchange, group, &[Keygen]);
            if let (true, Some(leaf)) = (certified, leaf) {
                self.signature(Server, server_exchange, leaf);
            }
        }
        if certified && self.suite.is_mutual() {
            self.chain(Client, (Client, MessageName::Certificate));
        }
        let client_exchange = (Client, MessageName::ClientKeyExchange);
        match (self.suite.group, leaf) {
            (Some(group), _) => {
                self.group(Client, client_exchange, group, &[Keygen, Derive]);
                self.group(Server, client_exchange, group, &[Derive]);
            }
            (None, Some(leaf)) => {
                self.row(Client, client_exchange, leaf.primitive(Encrypt));
                self.row(Server, client_exchange, leaf.primitive(Decrypt));
            }
            (None, None) => {}
        }
        if let (true, Some(leaf)) = (self.suite.is_mutual(), leaf) {
            self.signature(Client, (Client, MessageName::CertificateVerify), leaf);
        }
    }

    /// WTLS with key-agreement keys in certificates: neither side signs in the handshake, and if both sides present a
    /// certificate there is no ClientKeyExchange.
    fn static_agreement(&mut self) {
        use Operation::{Derive, Keygen};
        use Side::{Client, Server};
        let Some(&KeyType::Ec(curve)) = self.suite.keys.first() else { return };
        let group = Group::Curve(curve);
        self.chain(Server, (Server, MessageName::Certificate));
        if !self.suite.is_mutual() {
            let exchange = (Client, MessageName::ClientKeyExchange);
            self.group(Client, exchange, group, &[Keygen, Derive]);
            self.group(Server, exchange, group, &[Derive]);
            return;
        }
        // The server has verified the client's certificate before an optimised handshake begins.
        let optimized = self.suite.mode == Mode::Optimized;
        let exchange = if optimized {
            (Server, MessageName::ChangeCipherSpec)
        } else {
            (Client, MessageName::Certificate)
        };
        if !optimized {
            self.chain(Client, exchange);
        }
        self.group(Client, exchange, group, &[Derive]);
        self.group(Server, exchange, group, &[Derive]);
    }
}
