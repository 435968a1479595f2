//! Single forgeries, and their effects.

#![allow(clippy::unwrap_used)]

mod support;

use shakedown_wtls::provider::openssl::OpenSsl;
use shakedown_wtls::record::Records;
use shakedown_wtls::*;
use std::sync::Arc;
use std::time::Duration;
use support::network::*;
use support::*;

type Configs = (Arc<ClientConfig<OpenSsl>>, Arc<ServerConfig<OpenSsl>>);

fn shared((client, server): (ClientConfig<OpenSsl>, ServerConfig<OpenSsl>)) -> Configs {
    (Arc::new(client), Arc::new(server))
}

fn rsa() -> Configs {
    shared(certified_pair(&[Kind::Rsa(1024)], ClientAuthentication::None, false, false))
}

fn ecdh() -> Configs {
    shared(certified_pair(&[Kind::Ec(Curve::Secp160r1)], ClientAuthentication::None, false, false))
}

fn mutual() -> Configs {
    shared(certified_pair(&[Kind::Ec(Curve::Secp160r1)], ClientAuthentication::Required, true, false))
}

/// A ClientHello of another client with the same configuration.
fn other_hello(config: &Arc<ClientConfig<OpenSsl>>, seed: u64) -> Vec<u8> {
    let mut environment = Environment::new(1_000_000 + seed);
    let mut client = Client::new(Arc::clone(config), None, &mut environment.cx(Duration::from_secs(1)));
    client.poll_transmit().unwrap()
}

/// Bytes with the form of a client's second flight, made without any connection's keys.
fn forged_flight(exchange: &[u8]) -> Vec<u8> {
    let finished = [7; 40];
    [
        handshake(1, HandshakeType::ClientKeyExchange, exchange),
        plain(ContentType::ChangeCipherSpec, 2, &[1]),
        protected(ContentType::Handshake, 0, &finished),
    ]
    .concat()
}

#[test]
fn two_forged_datagrams_do_not_silence_a_connection() {
    let (client, server) = rsa();
    let mut network = Network::new(&client, &server, None, Limits::default(), 1);
    network.pass(Duration::from_secs(1));
    let connection = network.connection().unwrap();
    // An attacker who has observed nothing begins a handshake from the client's address.
    network.deliver(true, &other_hello(&client, 1));
    let exchange = [&[0, 128][..], &[1; 128]].concat();
    let flight = forged_flight(&exchange);
    network.deliver(true, &flight[..flight.len() - 45]);
    network.pass(Duration::from_secs(1));
    for minute in 0..240u32 {
        network.client_write(&minute.to_be_bytes());
        network.pass(Duration::from_secs(60));
        assert_eq!(network.received(connection).len(), 1 + minute as usize, "minute {minute}");
    }
    assert_eq!(network.listener.half_open(), 0, "the handshake that was begun has timed out");
    assert_eq!(network.listener.established(), 1);
}

#[test]
fn only_authenticated_records_reset_the_idle_timer() {
    let (client, server) = ecdh();
    let limits = Limits { idle: Duration::from_secs(600), ..Limits::default() };
    let mut network = Network::new(&client, &server, None, limits, 1);
    network.pass(Duration::from_secs(1));
    let connection = network.connection().unwrap();
    for _ in 0..5 {
        network.client_write(b"here");
        network.pass(Duration::from_secs(590));
        assert_eq!(network.listener.established(), 1);
    }
    for number in 0..20 {
        network.deliver(true, &protected(ContentType::ApplicationData, number, &[7; 32]));
        network.deliver(true, &other_hello(&client, number.into()));
        let seen = network.sent.iter().rev().find(|(to_server, _)| *to_server).unwrap().1.clone();
        network.deliver(true, &seen);
        network.pass(Duration::from_secs(60));
    }
    assert!(network.server_events.contains(&(connection, Event::Closed(CloseReason::Idle))));
    assert_eq!(network.listener.established(), 0);
}

#[test]
fn a_forged_hello_does_not_end_a_handshake() {
    for (client, server) in [rsa(), ecdh(), mutual()] {
        // Before the genuine ClientHello, after it, and after the response to it.
        for delay_ms in [0, 60, 110] {
            let mut network = Network::new(&client, &server, None, Limits::default(), 1);
            network.pass(Duration::from_millis(delay_ms));
            network.deliver(true, &other_hello(&client, 1));
            network.pass(Duration::from_secs(1));
            let connection = network.connection().unwrap();
            network.client_write(b"question");
            network.pass(DELAY);
            assert_eq!(network.received(connection), [b"question"], "{delay_ms} ms");
        }
    }
}

#[test]
fn forged_flight_with_another_key_exchange_is_ignored() {
    let (client, server) = rsa();
    let mut network = Network::new(&client, &server, None, Limits::default(), 1);
    network.pass(DELAY);
    let exchange = [&[0, 128][..], &[1; 128]].concat();
    network.deliver(true, &forged_flight(&exchange));
    // The server processes the RSA block as if it were valid (Bleichenbacher), so only Finished fails.
    let error = Error::Record(protection::RecordError::BadRecord);
    let events: Vec<_> = network.server_events.iter().map(|(_, event)| event.clone()).collect();
    assert_eq!(rejected(&events), Some(&error));
    network.pass(Duration::from_secs(1));
    assert!(network.connection().is_some());
}

#[test]
fn undecryptable_finished_causes_a_clear_text_warning() {
    let (client, server) = rsa();
    let mut pair = Pair::new(&client, &server, None, 1);
    let hello = pair.client.poll_transmit().unwrap();
    pair.deliver_to_server(&hello);
    let flight = pair.server.poll_transmit().unwrap();
    pair.deliver_to_client(&flight);
    let mut last = pair.client.poll_transmit().unwrap();
    let genuine = last.clone();
    *last.last_mut().unwrap() ^= 1;
    pair.deliver_to_server(&last);
    let warning = Alert::warning(AlertDescription::BadRecordMac);
    assert!(pair.server_events.contains(&Event::AlertSent(warning)));
    let alert = pair.server.poll_transmit().unwrap();
    assert_eq!((alert[0], alert.len()), (0xC2, 11), "in clear text");
    assert!(!pair.server.is_closed());
    // The client ignores the alert, which refers to none of its records. The server still accepts the genuine
    // flight.
    pair.deliver_to_client(&alert);
    assert_eq!(pair.client_events, []);
    pair.deliver_to_server(&genuine);
    assert!(pair.server.is_open());
    pair.run();
    assert!(pair.client.is_open());
}

#[test]
fn finished_over_wrong_messages_is_fatal() {
    // The client's keys are right, but the server has received another ClientHello.
    let (client, server) = ecdh();
    let mut pair = Pair::new(&client, &server, None, 1);
    let mut hello = pair.client.poll_transmit().unwrap();
    // The last byte of the ClientHello is the refresh rate, which affects Finished but not the keys.
    *hello.last_mut().unwrap() += 1;
    pair.deliver_to_server(&hello);
    let flight = pair.server.poll_transmit().unwrap();
    pair.deliver_to_client(&flight);
    let last = pair.client.poll_transmit().unwrap();
    pair.deliver_to_server(&last);
    assert_eq!(rejected(&pair.server_events), Some(&Error::FinishedMismatch));
    assert!(pair.server_events.contains(&Event::AlertSent(Alert::fatal(AlertDescription::DecryptError))));
    assert!(!pair.server.is_open());
}

/// Every alert, at every level, about the last record that a side has sent.
fn believable_alerts(about: &[u8]) -> Vec<Vec<u8>> {
    let last = Records::new(about).last().unwrap().unwrap().raw;
    let alerts = AlertDescription::ALL.iter().flat_map(|description| {
        AlertLevel::ALL.iter().map(|level| Alert { level: *level, description: *description })
    });
    alerts.map(|alert| plain_alert(9, alert, Checksum::of(last))).collect()
}

#[test]
fn no_alert_in_clear_text_ends_a_handshake_or_a_connection() {
    for (client, server) in [rsa(), mutual()] {
        for step in 0..4 {
            let mut network = Network::new(&client, &server, None, Limits::default(), 1);
            network.pass(DELAY * step);
            for to_server in [false, true] {
                let about = network.sent.iter().rev().find(|(to, _)| *to != to_server);
                let Some((_, about)) = about.cloned() else { continue };
                for alert in believable_alerts(&about) {
                    network.deliver(to_server, &alert);
                }
            }
            network.pass(Duration::from_secs(1));
            let connection = network.connection().unwrap();
            network.client_write(b"question");
            network.pass(DELAY);
            assert_eq!(network.received(connection), [b"question"], "step {step}");
        }
    }
}

#[test]
fn clear_text_refusal_is_the_reason_after_the_timeout() {
    let (client, server) = certified_pair(&[Kind::Rsa(1024)], ClientAuthentication::None, false, false);
    let mut server = server;
    server.cipher_suites.clear();
    let (client, server) = shared((client, server));
    let mut network = Network::new(&client, &server, None, Limits::default(), 1);
    let begin = network.now;
    network.pass(DELAY * 2);
    let alert = Alert::fatal(AlertDescription::HandshakeFailure);
    assert!(network.client_events.contains(&Event::AlertReceived(alert)), "it is reported at once");
    assert_eq!(closed(&network.client_events), None);
    while closed(&network.client_events).is_none() {
        assert!(network.step(Duration::from_secs(1_000)));
    }
    assert_eq!(closed(&network.client_events), Some(&CloseReason::Alert(alert)));
    let policy = client.settings.retransmission;
    assert_eq!(
        network.now - begin,
        policy.initial * (2u32.pow(policy.sends) - 1),
        "all sends, and their answers"
    );
    let hellos = network.sent.iter().filter(|(to_server, _)| *to_server);
    assert_eq!(hellos.count(), policy.sends as usize);
}

#[test]
fn eight_handshakes_per_address_are_kept() {
    let (client, server) = ecdh();
    for (forged, survives) in [(7, true), (8, false)] {
        let mut pair = Pair::new(&client, &server, None, 1);
        let hello = pair.client.poll_transmit().unwrap();
        pair.deliver_to_server(&hello);
        let flight = pair.server.poll_transmit().unwrap();
        for seed in 0..forged {
            pair.deliver_to_server(&other_hello(&client, seed));
            assert!(pair.server.poll_transmit().is_some());
        }
        pair.deliver_to_client(&flight);
        let last = pair.client.poll_transmit().unwrap();
        pair.deliver_to_server(&last);
        assert_eq!(pair.server.is_open(), survives);
        // The client repeats its ClientHello later, and the server begins another handshake.
        if !survives {
            for _ in 0..8 {
                pair.run();
                pair.advance();
            }
            assert!(pair.client.is_open() && pair.server.is_open());
        }
    }
}

#[test]
fn attacker_at_the_client_address_does_not_take_its_connection() {
    let (client, server) = ecdh();
    let mut network = Network::new(&client, &server, None, Limits::default(), 1);
    network.pass(Duration::from_secs(1));
    let first = network.connection().unwrap();
    // An attacker who observes all datagrams opens three more connections.
    for seed in 0..3 {
        let mut environment = Environment::new(500 + seed);
        let mut attacker = Client::new(Arc::clone(&client), None, &mut environment.cx(network.now));
        network.sent.clear();
        for _ in 0..3 {
            while let Some(datagram) = attacker.poll_transmit() {
                network.deliver(true, &datagram);
            }
            for (_, datagram) in network.sent.drain(..).filter(|(to_server, _)| !to_server) {
                attacker.handle_input(&mut environment.cx(network.now), &datagram);
            }
        }
        attacker.write(&mut environment.cx(network.now), b"mine").unwrap();
        network.deliver(true, &attacker.poll_transmit().unwrap());
    }
    assert_eq!(network.listener.established(), 4);
    network.pass(Duration::from_secs(1));
    network.client_write(b"still mine");
    network.pass(DELAY);
    assert_eq!(network.received(first), [b"still mine"]);
    let all = network.server_events.iter().filter(|(_, event)| matches!(event, Event::Data(_)));
    assert_eq!(all.count(), 4, "each on a connection of its own");
    let connection = network.connection().unwrap();
    network.server_write(connection, b"yours");
    network.pass(DELAY);
    assert_eq!(data(&network.client_events), [b"yours"]);
}

#[test]
fn replayed_flight_makes_no_second_connection() {
    for (client, server) in [rsa(), mutual()] {
        let mut network = Network::new(&client, &server, None, Limits::default(), 1);
        network.pass(Duration::from_secs(1));
        network.client_write(b"once");
        network.pass(Duration::from_secs(1));
        let seen: Vec<_> = network.sent.iter().filter(|(to_server, _)| *to_server).cloned().collect();
        for _ in 0..3 {
            for (_, datagram) in &seen {
                network.deliver(true, datagram);
            }
        }
        assert_eq!(network.listener.established(), 1);
        assert_eq!(network.received(network.connection().unwrap()), [b"once"]);
    }
}
