//! After any change of a datagram of a handshake, the two sides never establish connections with different
//! transcripts.

#![allow(clippy::unwrap_used)]

mod support;

use proptest::prelude::*;
use shakedown_wtls::provider::openssl::OpenSsl;
use shakedown_wtls::*;
use std::sync::{Arc, LazyLock};
use support::*;

type Configs = (Arc<ClientConfig<OpenSsl>>, Arc<ServerConfig<OpenSsl>>, Option<Session>);

static FLOWS: LazyLock<Vec<Configs>> = LazyLock::new(|| {
    let shared = |(client, server)| (Arc::new(client), Arc::new(server), None);
    let ec = [Kind::Ec(Curve::Wtls8)];
    let curve = ParameterSpecifier::of_curve(Curve::Wtls8, false);
    let anonymous = || anonymous_pair(offer(KeyExchangeSuite::EcdhAnon, curve.clone()));
    let mut flows = vec![
        shared(anonymous()),
        shared(certified_pair(&ec, ClientAuthentication::None, false, false)),
        shared(certified_pair(&ec, ClientAuthentication::Required, true, false)),
        shared(certified_pair(&[Kind::Rsa(512)], ClientAuthentication::Requested, false, false)),
        shared(certified_pair(&[Kind::Rsa(512)], ClientAuthentication::Required, true, false)),
    ];
    let (mut client, mut server) = certified_pair(&ec, ClientAuthentication::Required, true, false);
    let chain = Chain::new("client", &ec, 2, false);
    client.key_exchanges[0].identifier = Identifier::KeyHash(chain.leaf_hash());
    let known = KnownClient::new(&*PROVIDER, chain.certificates[0].clone(), false).unwrap();
    server.known_clients.push(known);
    flows.push(shared((client, server)));
    let (client, server) = anonymous();
    let (client, server) = (Arc::new(client), Arc::new(server));
    let mut first = Pair::new(&client, &server, None, 77);
    first.run();
    let session = first.client.session().cloned();
    flows.push((client, server, session));
    flows
});

#[derive(Debug, Clone)]
enum Change {
    Xor { at: usize, with: u8 },
    Insert { at: usize, byte: u8 },
    Remove { at: usize },
    Truncate { at: usize },
    Swap { at: usize, by: usize },
}

impl Change {
    fn apply(&self, datagram: &mut Vec<u8>) {
        let length = datagram.len();
        match *self {
            Self::Xor { at, with } => datagram[at % length] ^= with,
            Self::Insert { at, byte } => datagram.insert(at % (length + 1), byte),
            Self::Remove { at } => {
                let _ = datagram.remove(at % length);
            }
            Self::Truncate { at } => datagram.truncate(at % length),
            Self::Swap { at, by } => datagram.swap(at % length, by % length),
        }
    }
}

fn change() -> impl Strategy<Value = Change> {
    let at = 0usize..4096;
    prop_oneof![
        6 => (at.clone(), 1u8..).prop_map(|(at, with)| Change::Xor { at, with }),
        1 => (at.clone(), any::<u8>()).prop_map(|(at, byte)| Change::Insert { at, byte }),
        1 => at.clone().prop_map(|at| Change::Remove { at }),
        1 => at.clone().prop_map(|at| Change::Truncate { at }),
        1 => (at.clone(), at).prop_map(|(at, by)| Change::Swap { at, by }),
    ]
}

/// Runs a handshake with one datagram changed, with retransmissions, and checks the result.
fn run(flow: usize, index: usize, change: &Change) {
    let (client, server, session) = &FLOWS[flow];
    let mut pair = Pair::new(client, server, session.clone(), 3);
    let mut sent = 0;
    for _ in 0..20 {
        let mut quiet = true;
        loop {
            let (from_client, mut datagram) = match pair.client.poll_transmit() {
                Some(datagram) => (true, datagram),
                None => match pair.server.poll_transmit() {
                    Some(datagram) => (false, datagram),
                    None => break,
                },
            };
            quiet = false;
            if sent == index {
                change.apply(&mut datagram);
            }
            sent += 1;
            if from_client {
                pair.deliver_to_server(&datagram);
            } else {
                pair.deliver_to_client(&datagram);
            }
        }
        let over = closed(&pair.client_events).is_some();
        if over || (quiet && !pair.advance()) {
            break;
        }
    }
    if let (Some(client), Some(server)) = (established(&pair.client_events), established(&pair.server_events))
    {
        assert_eq!(client.transcript, server.transcript);
        assert_eq!(client.mode, server.mode);
        assert_eq!(client.cipher_suite, server.cipher_suite);
        assert_eq!(client.session_id, server.session_id);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_datagram_never_leaves_the_sides_in_disagreement(
        flow in 0usize..7,
        index in 0usize..4,
        change in change(),
    ) {
        run(flow, index, &change);
    }
}

#[test]
fn any_flipped_bit_in_two_flows_is_handled() {
    // One flow in which the client finishes first, and one in which the server does.
    for flow in [0, 6] {
        let (client, server, session) = &FLOWS[flow];
        let mut pair = Pair::new(client, server, session.clone(), 3);
        pair.run();
        for (index, (_, datagram)) in pair.wire.iter().enumerate() {
            for at in 0..datagram.len() {
                for bit in 0..8 {
                    run(flow, index, &Change::Xor { at, with: 1 << bit });
                }
            }
        }
    }
}
