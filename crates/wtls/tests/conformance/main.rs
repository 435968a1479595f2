//! Cases of conformance suites for TLS and DTLS (tlsfuzzer's scripts, TLS-Anvil's tests) that apply to
//! WTLS and are in no other file. `docs/validation/wtls-conformance.md` lists all cases.
//!
//! Where those suites require a fatal alert and the end of the connection, the engine also sends the alert, but
//! the handshake continues: the datagram may be forged, and the genuine one is still accepted.

#![allow(clippy::unwrap_used)]

mod answers;
mod connected;
mod exchanges;
mod flights;
mod hellos;
mod records;
#[path = "../support/mod.rs"]
mod support;

use shakedown_wtls::crypto::{Group, Provider};
use shakedown_wtls::provider::openssl::OpenSsl;
use shakedown_wtls::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use support::network::{handshake, plain, plain_alert, protected};
use support::script::*;
use support::*;

use AlertDescription as D;
use HandshakeType as H;

type Configs = (Arc<ClientConfig<OpenSsl>>, Arc<ServerConfig<OpenSsl>>);

const EC: Kind = Kind::Ec(Curve::Secp160r1);
const RSA: Kind = Kind::Rsa(1024);

fn shared((client, server): (ClientConfig<OpenSsl>, ServerConfig<OpenSsl>)) -> Configs {
    (Arc::new(client), Arc::new(server))
}

fn of(kind: Kind) -> Configs {
    shared(certified_pair(&[kind], ClientAuthentication::None, false, false))
}

fn mutual(kind: Kind) -> Configs {
    shared(certified_pair(&[kind], ClientAuthentication::Required, true, false))
}

fn anonymous(suite: KeyExchangeSuite, parameters: ParameterSpecifier) -> Configs {
    shared(anonymous_pair(offer(suite, parameters)))
}

fn at_server(configs: &Configs) -> Script {
    Script::server(&configs.0, &configs.1)
}

fn at_client(configs: &Configs) -> Script {
    Script::client(&configs.0, &configs.1, None)
}

/// The place of a message among the records of a datagram.
fn place(datagram: &[u8], kind: H) -> usize {
    records(datagram).iter().position(|raw| is_message(raw, kind)).unwrap()
}

fn without(datagram: &[u8], kind: H) -> Vec<u8> {
    let mut left = records(datagram);
    left.remove(place(datagram, kind));
    renumbered(&left)
}

fn twice(datagram: &[u8], kind: H) -> Vec<u8> {
    let mut all = records(datagram);
    let at = place(datagram, kind);
    all.insert(at + 1, all[at].clone());
    renumbered(&all)
}

fn unexpected(error: &Error) -> bool {
    matches!(error, Error::UnexpectedMessage { .. } | Error::Incomplete { .. })
}
