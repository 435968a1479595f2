//! Every kind of handshake, end to end: who sends what, what both sides agree on, data both ways.

#![allow(clippy::unwrap_used)]

mod support;

use shakedown_wtls::*;
use std::sync::Arc;
use support::*;

type Configs = (ClientConfig<provider::openssl::OpenSsl>, ServerConfig<provider::openssl::OpenSsl>);

/// Runs a handshake, sends data both ways and closes; returns the pair for further looks.
fn complete((client, server): Configs) -> Pair {
    let (client, server) = (Arc::new(client), Arc::new(server));
    let mut pair = Pair::new(&client, &server, None, 1);
    pair.run();
    check(&mut pair);
    pair
}

fn check(pair: &mut Pair) {
    let client = established(&pair.client_events);
    let client = client.unwrap_or_else(|| panic!("{:?} {:?}", pair.client_events, pair.server_events));
    let server = established(&pair.server_events).unwrap();
    assert_eq!(client.mode, server.mode);
    assert_eq!(client.key_exchange, server.key_exchange);
    assert_eq!(client.cipher_suite, server.cipher_suite);
    assert_eq!(client.session_id, server.session_id);
    assert_eq!(client.exchanged, server.exchanged);
    pair.client_send(b"from the client");
    pair.run();
    pair.server_send(b"from the server");
    pair.run();
    pair.client_send(b"again");
    pair.run();
    assert_eq!(data(&pair.server_events), [&b"from the client"[..], b"again"]);
    assert_eq!(data(&pair.client_events), [b"from the server"]);
    let cx = &mut pair.client_world.cx(pair.now);
    pair.client.close(cx, Close::Connection);
    pair.run();
    pair.collect();
    assert_eq!(closed(&pair.client_events), Some(&CloseReason::Local));
    assert_eq!(closed(&pair.server_events), Some(&CloseReason::Peer));
}

const FULL: [&str; 9] = [
    "> ClientHello",
    "< ServerHello",
    "< Certificate",
    "< ServerHelloDone",
    "> ClientKeyExchange",
    "> ChangeCipherSpec",
    "> Finished",
    "< ChangeCipherSpec",
    "< Finished",
];

#[test]
fn server_authentication_with_ecdh_ecdsa() {
    let kinds = [Kind::Ec(Curve::Secp160r1)];
    let pair = complete(certified_pair(&kinds, ClientAuthentication::None, false, false));
    assert_eq!(pair.client_world.log.messages(), FULL);
}

#[test]
fn server_authentication_with_rsa() {
    let kinds = [Kind::Rsa(1024)];
    let pair = complete(certified_pair(&kinds, ClientAuthentication::None, false, false));
    assert_eq!(pair.client_world.log.messages(), FULL);
}
