//! Every kind of handshake, end to end: its messages, the negotiated parameters, and data in both directions.

#![allow(clippy::unwrap_used)]

mod support;

use shakedown_wtls::crypto::Provider;
use shakedown_wtls::*;
use std::sync::Arc;
use support::*;

type Configs = (ClientConfig<provider::openssl::OpenSsl>, ServerConfig<provider::openssl::OpenSsl>);

/// Runs a handshake, sends data both ways and closes; returns the pair for further checks.
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
    pair.client_write(b"from the client");
    pair.run();
    pair.server_write(b"from the server");
    pair.run();
    pair.client_write(b"again");
    pair.run();
    assert_eq!(data(&pair.server_events), [&b"from the client"[..], b"again"]);
    assert_eq!(data(&pair.client_events), [b"from the server"]);
    let cx = &mut pair.client_environment.cx(pair.now);
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
fn server_authentication_with_ecdh_ecdsa_completes() {
    let kinds = [Kind::Ec(Curve::Secp160r1)];
    let pair = complete(certified_pair(&kinds, ClientAuthentication::None, false, false));
    assert_eq!(pair.client_environment.log.messages(), FULL);
}

#[test]
fn server_authentication_with_rsa_completes() {
    for bits in [1024, 2048, 3072] {
        let kinds = [Kind::Rsa(bits)];
        let pair = complete(certified_pair(&kinds, ClientAuthentication::None, false, false));
        assert_eq!(pair.client_environment.log.messages(), FULL);
    }
}

/// The client's log of a full handshake, in which the client sends these messages between ServerHelloDone and
/// ChangeCipherSpec.
fn requested(own: &[&'static str]) -> Vec<&'static str> {
    let mut messages = FULL.to_vec();
    messages.insert(3, "< CertificateRequest");
    messages.splice(5..6, own.iter().copied());
    messages
}

#[test]
fn a_client_without_a_certificate_answers_a_request_with_an_empty_list() {
    for kind in [Kind::Ec(Curve::Sect163k1), Kind::Rsa(1024)] {
        let pair = complete(certified_pair(&[kind], ClientAuthentication::Requested, false, false));
        let own = ["> Certificate", "> ClientKeyExchange"];
        assert_eq!(pair.client_environment.log.messages(), requested(&own));
        let certificate = pair.client_environment.log.0.iter().find(|line| line.starts_with("> Certificate"));
        assert_eq!(certificate.unwrap(), "> Certificate 10");
        assert!(peer_certificates(established(&pair.server_events).unwrap()).is_empty());
    }
}

#[test]
fn a_server_that_requires_a_certificate_refuses_an_empty_list() {
    let kinds = [Kind::Ec(Curve::Secp160r1)];
    let (client, server) = certified_pair(&kinds, ClientAuthentication::Required, false, false);
    let mut pair = Pair::new(&Arc::new(client), &Arc::new(server), None, 1);
    pair.run_out();
    assert_eq!(rejected(&pair.server_events), Some(&Error::NoClientCertificate));
    let alert = Alert::fatal(AlertDescription::HandshakeFailure);
    assert_eq!(closed(&pair.client_events), Some(&CloseReason::Alert(alert)));
}

#[test]
fn mutual_authentication_with_rsa_signs_the_handshake() {
    for bits in [1024, 2048, 3072] {
        let kinds = [Kind::Rsa(bits)];
        let pair = complete(certified_pair(&kinds, ClientAuthentication::Required, true, false));
        let own = ["> Certificate", "> ClientKeyExchange", "> CertificateVerify"];
        assert_eq!(pair.client_environment.log.messages(), requested(&own));
        let peer = peer_certificates(established(&pair.server_events).unwrap());
        assert_eq!(peer[0].subject().as_text(), Some("client; Test; US; client.test"));
    }
}

#[test]
fn mutual_ecdh_ecdsa_exchanges_only_certificates() {
    for curve in Curve::ALL {
        let kinds = [Kind::Ec(curve)];
        let pair = complete(certified_pair(&kinds, ClientAuthentication::Required, true, false));
        assert_eq!(pair.client_environment.log.messages(), requested(&["> Certificate"]), "{curve}");
        let exchanged = established(&pair.server_events).unwrap().exchanged;
        assert_eq!(exchanged, Some(crypto::KeyKind::Ec(curve)));
    }
}

#[test]
fn every_curve_works_with_ecdh_ecdsa_and_ecdh_anon() {
    for curve in Curve::ALL {
        complete(certified_pair(&[Kind::Ec(curve)], ClientAuthentication::None, false, false));
        for suite in [KeyExchangeSuite::EcdhAnon, KeyExchangeSuite::EcdhAnonUncompressed] {
            let parameters = ParameterSpecifier::of_curve(curve, false);
            complete(anonymous_pair(offer(suite, parameters)));
        }
    }
}

#[test]
fn unnumbered_curves_may_use_private_numbers() {
    for curve in [Curve::Sect163r2, Curve::Prime256v1, Curve::Sect283k1, Curve::Sect283r1] {
        let kinds = [Kind::Ec(curve), Kind::Ec(Curve::Sect283r1)];
        let in_full = complete(certified_pair(&kinds, ClientAuthentication::Required, true, false));
        let numbered = complete(certified_pair(&kinds, ClientAuthentication::Required, true, true));
        let bytes = |pair: &Pair| pair.wire.iter().map(|(_, datagram)| datagram.len()).sum::<usize>();
        assert!(bytes(&numbered) + 4 * 100 < bytes(&in_full), "{curve}");
    }
    // A server without the setting does not accept private numbers.
    let (client, mut server) =
        certified_pair(&[Kind::Ec(Curve::Prime256v1)], ClientAuthentication::None, false, true);
    server.settings.private_curves = false;
    let mut pair = Pair::new(&Arc::new(client), &Arc::new(server), None, 1);
    pair.run();
    let unknown = Error::Parameters(ParameterError::UnknownIndex { index: 241 });
    assert_eq!(rejected(&pair.server_events), Some(&unknown));
}

#[test]
fn deep_and_mixed_chains_are_accepted() {
    let ec = Kind::Ec;
    let chains: [&[Kind]; 4] = [
        &[ec(Curve::Secp160r1), ec(Curve::Prime256v1)],
        &[ec(Curve::Sect233k1), ec(Curve::Secp224r1), ec(Curve::Sect283k1)],
        &[Kind::Rsa(1024), Kind::Rsa(2048), Kind::Rsa(1024), Kind::Rsa(3072)],
        &[ec(Curve::Secp160r1); 20],
    ];
    for kinds in chains {
        for (authentication, has) in
            [(ClientAuthentication::None, false), (ClientAuthentication::Required, true)]
        {
            complete(certified_pair(kinds, authentication, has, false));
        }
    }
}

#[test]
fn anonymous_suites_of_every_size_complete() {
    use KeyExchangeSuite as S;
    let group = ParameterSpecifier::Index;
    let curve = |curve| ParameterSpecifier::of_curve(curve, false);
    let none = ParameterSpecifier::NONE;
    let offers = [
        (S::RsaAnon, none.clone(), 1024),
        (S::RsaAnon512, none.clone(), 512),
        (S::RsaAnon768, none.clone(), 768),
        (S::DhAnon, group(2), 768),
        (S::DhAnon, none.clone(), 768),
        (S::DhAnon512, group(1), 512),
        (S::DhAnon512, none.clone(), 512),
        (S::DhAnon768, group(2), 768),
        (S::EcdhAnon, none.clone(), 113),
        (S::EcdhAnon113, curve(Curve::Sect113r1), 113),
        (S::EcdhAnon113, curve(Curve::Wtls1), 113),
        (S::EcdhAnon131, curve(Curve::Wtls8), 112),
        (S::EcdhAnon131, none, 113),
        (S::EcdhAnonUncompressed113, curve(Curve::Sect113r1), 113),
        (S::EcdhAnonUncompressed131, curve(Curve::Wtls6), 112),
    ];
    for (suite, parameters, bits) in offers {
        let pair = complete(anonymous_pair(offer(suite, parameters)));
        let messages = pair.client_environment.log.messages();
        assert_eq!(messages[2..5], ["< ServerKeyExchange", "< ServerHelloDone", "> ClientKeyExchange"]);
        let established = established(&pair.client_events).unwrap();
        assert_eq!(established.exchanged.unwrap().size_bits(), bits, "{suite}");
        assert_eq!(established.key_exchange, suite);
    }
}

#[test]
fn explicit_groups_are_accepted_if_the_server_has_them() {
    let group = |exponent_bytes| {
        let DhGroup { prime, generator, .. } = &*DhGroup::group_2();
        let (prime, generator) = (prime.clone(), generator.clone());
        Arc::new(DhGroup { number: None, prime, generator, exponent_bytes })
    };
    let parameters = ParameterSpecifier::of_group(&group(96)).unwrap();
    for (groups, served) in [(vec![group(96)], true), (vec![group(32)], false)] {
        let (client, mut server) = anonymous_pair(offer(KeyExchangeSuite::DhAnon, parameters.clone()));
        server.groups = groups;
        let mut pair = Pair::new(&Arc::new(client), &Arc::new(server), None, 1);
        pair.run();
        assert_eq!(established(&pair.client_events).is_some(), served);
    }
}

#[test]
fn key_above_the_suite_limit_is_refused_by_either_side() {
    let curve = ParameterSpecifier::of_curve(Curve::Secp160r1, false);
    let (client, server) = anonymous_pair(offer(KeyExchangeSuite::EcdhAnon131, curve));
    let mut pair = Pair::new(&Arc::new(client), &Arc::new(server), None, 1);
    pair.run_out();
    assert!(matches!(rejected(&pair.server_events), Some(Error::Parameters(_))));
    assert!(matches!(closed(&pair.client_events), Some(CloseReason::Alert(_))));
}

/// Messages of a handshake in which the server finishes first.
const ABBREVIATED: [&str; 6] = [
    "> ClientHello",
    "< ServerHello",
    "< ChangeCipherSpec",
    "< Finished",
    "> ChangeCipherSpec",
    "> Finished",
];

#[test]
fn a_session_is_resumed() {
    let kinds = [Kind::Ec(Curve::Secp160r1)];
    let (client, server) = certified_pair(&kinds, ClientAuthentication::Required, true, false);
    let (client, server) = (Arc::new(client), Arc::new(server));
    let mut first = Pair::new(&client, &server, None, 1);
    first.run();
    let session = first.client.session().cloned().unwrap();
    let mut pair = Pair::new(&client, &server, Some(session.clone()), 2);
    pair.run();
    assert_eq!(pair.client_environment.log.messages(), ABBREVIATED);
    let resumed = established(&pair.server_events).unwrap();
    assert_eq!(resumed.mode, HandshakeMode::Resumed);
    assert_eq!(resumed.session_id, session.id);
    assert_eq!(peer_certificates(resumed).len(), 1, "the client is still who it was");
    check(&mut pair);

    // A server that no longer stores the session begins a new one.
    server.sessions.remove(&session.id);
    let mut pair = Pair::new(&client, &server, Some(session), 3);
    pair.run();
    assert_eq!(established(&pair.client_events).unwrap().mode, HandshakeMode::Full);
    check(&mut pair);
}

#[test]
fn closed_session_cannot_be_resumed() {
    let kinds = [Kind::Ec(Curve::Secp160r1)];
    let (client, server) = certified_pair(&kinds, ClientAuthentication::None, false, false);
    let (client, server) = (Arc::new(client), Arc::new(server));
    for (close, kept) in [(Close::Connection, true), (Close::Session, false)] {
        let mut pair = Pair::new(&client, &server, None, 1);
        pair.run();
        let id = pair.client.session().unwrap().id;
        pair.client.close(&mut pair.client_environment.cx(pair.now), close);
        pair.run();
        assert_eq!(server.sessions.find(&id).is_some(), kept);
        assert_eq!(pair.client.session().is_some(), kept);
    }
}

#[test]
fn optimised_handshake_uses_a_certificate_known_to_the_server() {
    for curve in [Curve::Secp160r1, Curve::Sect233k1, Curve::Prime256v1] {
        let kinds = [Kind::Ec(curve), Kind::Ec(Curve::Sect283k1)];
        let (mut client, mut server) = certified_pair(&kinds, ClientAuthentication::Required, true, false);
        let chain = Chain::new("client", &kinds, 2, false);
        client.key_exchanges[0].identifier = Identifier::KeyHash(chain.leaf_hash());
        let known = KnownClient::new(&*PROVIDER, chain.certificates[0].clone(), false).unwrap();
        server.known_clients.push(known);
        let pair = complete((client, server));
        let mut messages = ABBREVIATED.to_vec();
        messages.insert(2, "< Certificate");
        assert_eq!(pair.client_environment.log.messages(), messages);
        let peer = established(&pair.server_events).unwrap();
        assert_eq!(peer.mode, HandshakeMode::Optimised);
        assert_eq!(peer_certificates(peer), [chain.certificates[0].clone().into()]);
    }
}

#[test]
fn an_unknown_client_that_names_its_key_gets_a_full_handshake() {
    let kinds = [Kind::Ec(Curve::Secp160r1)];
    let (mut client, server) = certified_pair(&kinds, ClientAuthentication::Required, true, false);
    let chain = Chain::new("client", &kinds, 2, false);
    client.key_exchanges[0].identifier = Identifier::KeyHash(chain.leaf_hash());
    let pair = complete((client, server));
    assert_eq!(established(&pair.client_events).unwrap().mode, HandshakeMode::Full);
}

fn shared_secret_pair(client_secret: &[u8], server_secret: &[u8]) -> Configs {
    let identifier = Identifier::Binary(b"subscriber 7".to_vec());
    let offer =
        KeyExchangeId::new(KeyExchangeSuite::SharedSecret, ParameterSpecifier::NONE, identifier.clone());
    let (mut client, mut server) = anonymous_pair(offer);
    let secret =
        |secret: &[u8]| SharedSecret { identifier: identifier.clone(), secret: secret.to_vec().into() };
    client.shared_secrets.push(secret(client_secret));
    server.shared_secrets.push(secret(server_secret));
    (client, server)
}

#[test]
fn shared_secret_uses_the_abbreviated_handshake() {
    let pair = complete(shared_secret_pair(b"0123456789abcdef", b"0123456789abcdef"));
    assert_eq!(pair.client_environment.log.messages(), ABBREVIATED);
    assert_eq!(established(&pair.client_events).unwrap().mode, HandshakeMode::Abbreviated);
}

#[test]
fn different_shared_secrets_do_not_connect() {
    let (client, server) = shared_secret_pair(b"0123456789abcdef", b"0123456789abcdeF");
    let mut pair = Pair::new(&Arc::new(client), &Arc::new(server), None, 1);
    pair.run_out();
    assert!(matches!(closed(&pair.client_events), Some(CloseReason::Failed(Error::Record(_)))));
    assert!(established(&pair.server_events).is_none());
    let warning = Alert::warning(AlertDescription::BadRecordMac);
    assert!(pair.server_events.contains(&Event::AlertReceived(warning)));
    // Only the timeout has ended the server's handshake.
    while pair.advance() {}
    assert_eq!(closed(&pair.server_events), Some(&CloseReason::TimedOut));
}

#[test]
fn null_suite_connects_if_both_sides_enable_it() {
    let offer = offer(KeyExchangeSuite::Null, ParameterSpecifier::NONE);
    let pair = complete(anonymous_pair(offer));
    assert_eq!(pair.client_environment.log.messages(), ABBREVIATED);
}

#[test]
fn every_cipher_suite_protects_a_connection() {
    let curve = ParameterSpecifier::of_curve(Curve::Secp160r1, false);
    for &bulk in BulkCipher::ALL {
        for &mac in MacAlgorithm::ALL {
            let (mut client, mut server) = anonymous_pair(offer(KeyExchangeSuite::EcdhAnon, curve.clone()));
            let suite = CipherSuite { bulk, mac };
            client.cipher_suites = vec![suite];
            server.cipher_suites = vec![suite];
            let pair = complete((client, server));
            assert_eq!(established(&pair.client_events).unwrap().cipher_suite, suite);
        }
    }
}

#[test]
fn keys_are_refreshed_at_the_shorter_interval_of_both_sides() {
    let curve = ParameterSpecifier::of_curve(Curve::Secp160r1, false);
    for refresh in [0, 1, 3, 16, 255] {
        let (mut client, server) = anonymous_pair(offer(KeyExchangeSuite::EcdhAnon, curve.clone()));
        client.key_refresh = key_schedule::KeyRefresh(refresh);
        let mut pair = Pair::new(&Arc::new(client), &Arc::new(server), None, 1);
        pair.run();
        for index in 0..50u8 {
            pair.client_write(&[index]);
            pair.run();
        }
        let received: Vec<u8> = data(&pair.server_events).concat();
        assert_eq!(received, (0..50).collect::<Vec<_>>());
    }
}

#[test]
fn last_record_of_a_datagram_may_omit_its_length() {
    let kinds = [Kind::Ec(Curve::Secp160r1)];
    let (mut client, mut server) = certified_pair(&kinds, ClientAuthentication::Required, true, false);
    client.settings.omit_last_length = true;
    server.settings.omit_last_length = true;
    let pair = complete((client, server));
    assert_eq!(pair.wire[0].1[0], 0x43, "ClientHello");
    let with = complete(certified_pair(&kinds, ClientAuthentication::Required, true, false));
    for ((_, short), (_, long)) in pair.wire.iter().zip(&with.wire) {
        assert_eq!(short.len() + 2, long.len());
    }
}

#[test]
fn server_presents_the_certificate_that_the_client_trusts() {
    let first = Chain::new("first", &[Kind::Ec(Curve::Secp160r1)], 4, false);
    let second = Chain::new("second", &[Kind::Ec(Curve::Secp160r1)], 5, false);
    let offer = certified_offer(Kind::Ec(Curve::Secp160r1), false);
    let mut server = ServerConfig::new(vec![KeyExchangeSuite::EcdhEcdsa]);
    server.identities = vec![first.identity(), second.identity()];
    let server = Arc::new(server);
    for (anchors, found) in [(vec![second.anchor()], true), (vec![], false)] {
        let mut client = ClientConfig::new(vec![offer.clone()]);
        client.anchors = anchors;
        let mut pair = Pair::new(&Arc::new(client), &server, None, 1);
        pair.run();
        // A client that names no trusted key receives the first certificate, which it does not trust.
        assert_eq!(established(&pair.client_events).is_some(), found);
    }
    let mut client = ClientConfig::new(vec![offer]);
    client.anchors = vec![Chain::new("third", &[Kind::Ec(Curve::Secp160r1)], 6, false).anchor()];
    let mut pair = Pair::new(&Arc::new(client), &server, None, 1);
    pair.run();
    assert_eq!(rejected(&pair.server_events), Some(&Error::NotTrustedByClient));
}

#[test]
fn client_checks_the_server_name_if_configured() {
    for (name, right) in [("server.test", true), ("other.test", false)] {
        let kinds = [Kind::Ec(Curve::Secp160r1)];
        let (mut client, server) = certified_pair(&kinds, ClientAuthentication::None, false, false);
        client.server_name = Some(name.to_owned());
        let mut pair = Pair::new(&Arc::new(client), &Arc::new(server), None, 1);
        pair.run();
        assert_eq!(established(&pair.client_events).is_some(), right);
    }
}

#[test]
fn no_common_parameter_causes_the_right_alert() {
    use AlertDescription as D;
    let run = |change: &dyn Fn(&mut Configs)| {
        let curve = ParameterSpecifier::of_curve(Curve::Secp160r1, false);
        let mut configs = anonymous_pair(offer(KeyExchangeSuite::EcdhAnon, curve));
        change(&mut configs);
        let mut pair = Pair::new(&Arc::new(configs.0), &Arc::new(configs.1), None, 1);
        pair.run_out();
        match closed(&pair.client_events) {
            Some(CloseReason::Alert(alert)) => alert.description,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(run(&|(_, server)| server.suites.clear()), D::UnknownKeyId);
    assert_eq!(run(&|(client, _)| client.key_exchanges.clear()), D::UnknownKeyId);
    assert_eq!(run(&|(_, server)| server.cipher_suites.clear()), D::HandshakeFailure);
    assert_eq!(run(&|(_, server)| server.curves.clear()), D::UnknownParameterIndex);
}

#[test]
fn diffie_hellman_values_are_as_long_as_the_prime() {
    let group = DhGroup::group_1();
    let mut random = random();
    // One value in 256 begins with a zero.
    let lengths = (0..1000).map(|_| {
        let key = PROVIDER.generate(crypto::Group::Dh(&group), &mut random).unwrap();
        PROVIDER.public_value(&key, PointForm::Compressed).unwrap().len()
    });
    assert!(lengths.into_iter().all(|length| length == 64));
}
