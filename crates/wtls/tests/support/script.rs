//! A genuine peer whose flights are split into records and reassembled with changes.

use super::network::{handshake, plain};
use super::*;
use shakedown_wtls::record::Records;

pub fn records(datagram: &[u8]) -> Vec<Vec<u8>> {
    Records::new(datagram).map(|record| record.unwrap().raw.to_vec()).collect()
}

/// Content, number and fragment of a record.
pub fn parts(raw: &[u8]) -> (ContentType, u16, Vec<u8>) {
    let record = Records::new(raw).next().unwrap().unwrap();
    (record.record_type.content().unwrap(), record.sequence.unwrap(), record.fragment.to_vec())
}

/// Whether a record holds this message in clear text.
pub fn is_message(raw: &[u8], kind: HandshakeType) -> bool {
    let record = Records::new(raw).next().unwrap().unwrap();
    !record.record_type.is_protected()
        && record.record_type.content() == Some(ContentType::Handshake)
        && record.fragment.first() == Some(&kind.number())
}

pub fn body(datagram: &[u8], kind: HandshakeType) -> Vec<u8> {
    let raw = records(datagram).into_iter().find(|raw| is_message(raw, kind)).unwrap();
    parts(&raw).2[3..].to_vec()
}

/// A datagram in which one message has another body.
pub fn with_body(datagram: &[u8], kind: HandshakeType, body: &[u8]) -> Vec<u8> {
    let changed = |raw: Vec<u8>| match is_message(&raw, kind) {
        true => handshake(parts(&raw).1, kind, body),
        false => raw,
    };
    records(datagram).into_iter().flat_map(changed).collect()
}

/// A datagram in which one message has another fragment.
pub fn with_fragment(datagram: &[u8], kind: HandshakeType, fragment: &[u8]) -> Vec<u8> {
    let changed = |raw: Vec<u8>| match is_message(&raw, kind) {
        true => plain(ContentType::Handshake, parts(&raw).1, fragment),
        false => raw,
    };
    records(datagram).into_iter().flat_map(changed).collect()
}

/// Numbers the unencrypted records consecutively, from the first one's number on.
pub fn renumbered(raws: &[Vec<u8>]) -> Vec<u8> {
    let mut next = None;
    let mut datagram = Vec::new();
    for raw in raws {
        if raw[0] & 0x20 == 0 {
            let (content, number, fragment) = parts(raw);
            let number = next.unwrap_or(number);
            next = Some(number + 1);
            datagram.extend(plain(content, number, &fragment));
        } else {
            datagram.extend(raw);
        }
    }
    datagram
}

/// The flights of a handshake: the client's hello, the server's response, and the client's last flight. The flight
/// under test has not been delivered.
pub struct Script {
    pub pair: Pair,
    pub hello: Vec<u8>,
    pub answer: Vec<u8>,
    pub last: Vec<u8>,
}

impl Script {
    /// A server that has responded to a ClientHello, and waits for the client's last flight.
    pub fn server(client: &Arc<ClientConfig<OpenSsl>>, server: &Arc<ServerConfig<OpenSsl>>) -> Self {
        let mut pair = Pair::new(client, server, None, 1);
        let hello = pair.client.poll_transmit().unwrap();
        pair.deliver_to_server(&hello);
        let answer = pair.server.poll_transmit().unwrap();
        pair.deliver_to_client(&answer);
        let last = pair.client.poll_transmit().unwrap();
        Self { pair, hello, answer, last }
    }

    /// A client that waits for the response to its ClientHello.
    pub fn client(
        client: &Arc<ClientConfig<OpenSsl>>,
        server: &Arc<ServerConfig<OpenSsl>>,
        session: Option<Session>,
    ) -> Self {
        let mut pair = Pair::new(client, server, session, 1);
        let hello = pair.client.poll_transmit().unwrap();
        pair.deliver_to_server(&hello);
        let answer = pair.server.poll_transmit().unwrap();
        Self { pair, hello, answer, last: Vec::new() }
    }

    /// The server's error and alert for a datagram in place of the client's last flight. The genuine flight must
    /// still be accepted.
    pub fn server_rejects(mut self, datagram: &[u8]) -> (Error, Alert) {
        self.pair.deliver_to_server(datagram);
        assert!(!self.pair.server.is_open(), "accepted");
        let found = rejection(&self.pair.server_events);
        let last = self.last.clone();
        self.pair.deliver_to_server(&last);
        assert!(self.pair.server.is_open(), "the genuine flight does no more");
        found
    }

    /// The client's error and alert for a datagram in place of the server's first flight.
    pub fn client_rejects(mut self, datagram: &[u8]) -> (Error, Alert) {
        self.pair.deliver_to_client(datagram);
        assert!(!self.pair.client.is_open(), "accepted");
        let found = rejection(&self.pair.client_events);
        while self.pair.client.poll_transmit().is_some() {}
        let answer = self.answer.clone();
        self.pair.deliver_to_client(&answer);
        let last = self.pair.client.poll_transmit().expect("the genuine flight is answered");
        self.pair.deliver_to_server(&last);
        self.pair.run();
        assert!(self.pair.client.is_open(), "the genuine flight does no more");
        found
    }
}

/// The error, and the alert that reports it.
pub fn rejection(events: &[Event]) -> (Error, Alert) {
    let error = rejected(events).unwrap_or_else(|| panic!("not rejected: {events:?}")).clone();
    let alert = events.iter().rev().find_map(|event| match event {
        Event::AlertSent(alert) => Some(*alert),
        _ => None,
    });
    (error, alert.expect("an alert"))
}
