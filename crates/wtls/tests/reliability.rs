//! Scripted conversations with lost, duplicated and reordered datagrams.

#![allow(clippy::unwrap_used)]

mod support;

use shakedown_wtls::provider::openssl::OpenSsl;
use shakedown_wtls::record::Records;
use shakedown_wtls::*;
use std::sync::Arc;
use std::time::Duration;
use support::*;

type Configs = (Arc<ClientConfig<OpenSsl>>, Arc<ServerConfig<OpenSsl>>);

fn shared((client, server): (ClientConfig<OpenSsl>, ServerConfig<OpenSsl>)) -> Configs {
    (Arc::new(client), Arc::new(server))
}

fn anonymous() -> Configs {
    let curve = ParameterSpecifier::of_curve(Curve::Wtls8, false);
    shared(anonymous_pair(offer(KeyExchangeSuite::EcdhAnon, curve)))
}

/// One configuration of each flow, and a session to be resumed.
fn every_flow() -> Vec<(&'static str, Configs, Option<Session>)> {
    let ec = [Kind::Ec(Curve::Secp160r1)];
    let mutual = shared(certified_pair(&ec, ClientAuthentication::Required, true, false));
    let rsa = [Kind::Rsa(1024)];
    let rsa = shared(certified_pair(&rsa, ClientAuthentication::Required, true, false));
    let (mut client, mut server) = certified_pair(&ec, ClientAuthentication::Required, true, false);
    let chain = Chain::new("client", &ec, 2, false);
    client.key_exchanges[0].identifier = Identifier::KeyHash(chain.leaf_hash());
    let known = KnownClient::new(&*PROVIDER, chain.certificates[0].clone(), false).unwrap();
    server.known_clients.push(known);
    let optimised = shared((client, server));
    let resumed = anonymous();
    let mut first = Pair::new(&resumed.0, &resumed.1, None, 77);
    first.run();
    let session = first.client.session().cloned();
    assert!(session.is_some());
    vec![
        ("anonymous", anonymous(), None),
        ("mutual", mutual, None),
        ("RSA", rsa, None),
        ("optimised", optimised, None),
        ("resumed", resumed, session),
    ]
}

#[test]
fn unanswered_hello_is_sent_five_times_and_then_abandoned() {
    let (client, server) = anonymous();
    let mut pair = Pair::new(&client, &server, None, 1);
    let begin = pair.now;
    let hello = pair.client.poll_transmit().unwrap();
    for seconds in [3, 9, 21, 45] {
        assert_eq!(pair.client.poll_transmit(), None);
        assert_eq!(pair.client.poll_timeout(), Some(begin + Duration::from_secs(seconds)));
        // A slightly early call has no effect.
        let early = begin + Duration::from_millis(1000 * seconds - 1);
        pair.client.handle_timeout(&mut pair.client_environment.cx(early));
        assert_eq!(pair.client.poll_transmit(), None);
        assert!(pair.advance());
        assert_eq!(pair.client.poll_transmit(), Some(hello.clone()), "the same bytes again");
    }
    assert_eq!(pair.client.poll_timeout(), Some(begin + Duration::from_secs(93)));
    assert!(pair.advance());
    assert_eq!(closed(&pair.client_events), Some(&CloseReason::TimedOut));
    assert_eq!(pair.client.poll_transmit(), None);
    assert_eq!(pair.client.poll_timeout(), None);
    assert!(pair.server.is_idle());
}

#[test]
fn a_server_answers_the_same_hello_with_the_same_flight() {
    let (client, server) = anonymous();
    let mut pair = Pair::new(&client, &server, None, 1);
    let hello = pair.client.poll_transmit().unwrap();
    pair.deliver_to_server(&hello);
    let flight = pair.server.poll_transmit().unwrap();
    assert_eq!(pair.server.poll_transmit(), None);
    for _ in 0..16 {
        pair.deliver_to_server(&hello);
        assert_eq!(pair.server.poll_transmit(), Some(flight.clone()));
        assert_eq!(pair.server.poll_transmit(), None);
    }
    pair.deliver_to_server(&hello);
    assert_eq!(pair.server.poll_transmit(), None, "not for ever");
    assert_eq!(pair.server_environment.log.messages().len(), 4, "nothing was processed twice");

    // Another hello begins another handshake.
    let other = Pair::new(&client, &server, None, 2).client.poll_transmit().unwrap();
    pair.deliver_to_server(&other);
    assert_ne!(pair.server.poll_transmit().unwrap(), flight);
}

#[test]
fn a_server_answers_the_same_last_flight_with_the_same_finished() {
    let (client, server) = anonymous();
    let mut pair = Pair::new(&client, &server, None, 1);
    let hello = pair.client.poll_transmit().unwrap();
    pair.deliver_to_server(&hello);
    let flight = pair.server.poll_transmit().unwrap();
    pair.deliver_to_client(&flight);
    let last = pair.client.poll_transmit().unwrap();
    pair.deliver_to_server(&last);
    let finished = pair.server.poll_transmit().unwrap();
    assert!(pair.server.is_open());
    // The response and the first repetition are lost.
    pair.advance();
    assert_eq!(pair.client.poll_transmit(), Some(last.clone()));
    pair.advance();
    assert_eq!(pair.client.poll_transmit(), Some(last.clone()));
    pair.deliver_to_server(&last);
    assert_eq!(pair.server.poll_transmit(), Some(finished.clone()));
    pair.deliver_to_client(&finished);
    assert!(pair.client.is_open());
    assert_eq!(pair.client.poll_timeout(), None);
    // After data, old requests get no response.
    pair.client_write(b"data");
    let data = pair.client.poll_transmit().unwrap();
    pair.deliver_to_server(&data);
    pair.deliver_to_server(&hello);
    assert_eq!(pair.server.poll_transmit(), None);
}

#[test]
fn client_that_finishes_last_repeats_its_flight_before_data() {
    let (client, server) = anonymous();
    let mut first = Pair::new(&client, &server, None, 1);
    first.run();
    let session = first.client.session().cloned();
    let mut pair = Pair::new(&client, &server, session, 2);
    let hello = pair.client.poll_transmit().unwrap();
    pair.deliver_to_server(&hello);
    let flight = pair.server.poll_transmit().unwrap();
    pair.deliver_to_client(&flight);
    let finish = pair.client.poll_transmit().unwrap();
    assert!(pair.client.is_open() && !pair.server.is_open());
    // This flight is lost, and so is the first data, which is sent after the same records.
    pair.client_write(b"one");
    assert!(pair.client.poll_transmit().unwrap().starts_with(&finish));
    pair.client_write(b"two");
    let two = pair.client.poll_transmit().unwrap();
    assert!(two.starts_with(&finish));
    pair.deliver_to_server(&two);
    assert!(pair.server.is_open());
    pair.client_write(b"three");
    let three = pair.client.poll_transmit().unwrap();
    pair.deliver_to_server(&three);
    assert_eq!(data(&pair.server_events), [b"two".as_slice(), b"three"]);
    // The server only responds that it has received a duplicate.
    let alert = pair.server.poll_transmit().unwrap();
    pair.deliver_to_client(&alert);
    let duplicate = Alert::warning(AlertDescription::DuplicateFinishedReceived);
    assert!(pair.client_events.contains(&Event::AlertReceived(duplicate)));
    pair.client_write(b"four");
    assert!(!pair.client.poll_transmit().unwrap().starts_with(&finish));
    assert_eq!(pair.client.poll_timeout(), None);
}

#[test]
fn server_data_acknowledges_the_last_flight() {
    let (client, server) = anonymous();
    let mut first = Pair::new(&client, &server, None, 1);
    first.run();
    let session = first.client.session().cloned();
    let mut pair = Pair::new(&client, &server, session, 2);
    pair.run();
    assert!(pair.client.poll_timeout().is_some(), "nothing has been heard yet");
    pair.server_write(b"here I am");
    pair.run();
    assert_eq!(pair.client.poll_timeout(), None);
    pair.client_write(b"short");
    assert_eq!(pair.client.poll_transmit().unwrap().len(), 5 + 32);
}

/// Runs a handshake in which the datagrams of these indices are lost.
fn survives(configs: &Configs, session: Option<Session>, lost: &[usize]) -> Pair {
    let mut pair = Pair::new(&configs.0, &configs.1, session, 5);
    let mut index = 0;
    for _ in 0..40 {
        let mut quiet = true;
        while let Some(datagram) = pair.client.poll_transmit() {
            quiet = false;
            if !lost.contains(&index) {
                pair.deliver_to_server(&datagram);
            }
            index += 1;
        }
        while let Some(datagram) = pair.server.poll_transmit() {
            quiet = false;
            if !lost.contains(&index) {
                pair.deliver_to_client(&datagram);
            }
            index += 1;
        }
        if pair.client.is_open() && pair.server.is_open() {
            break;
        }
        if quiet {
            pair.advance();
        }
    }
    pair
}

#[test]
fn handshake_survives_the_loss_of_any_two_datagrams() {
    for (name, configs, session) in every_flow() {
        for first in 0..8 {
            for second in first..8 {
                let mut pair = survives(&configs, session.clone(), &[first, second]);
                let open = pair.client.is_open() && pair.server.is_open();
                assert!(open, "{name}: {first} and {second} lost");
                pair.run();
                pair.client_write(b"data");
                pair.run();
                assert_eq!(data(&pair.server_events), [b"data"], "{name}");
            }
        }
    }
}

#[test]
fn duplicated_datagrams_are_accepted() {
    for (name, configs, session) in every_flow() {
        let mut pair = Pair::new(&configs.0, &configs.1, session, 5);
        for _ in 0..10 {
            while let Some(datagram) = pair.client.poll_transmit() {
                pair.deliver_to_server(&datagram);
                pair.deliver_to_server(&datagram);
            }
            while let Some(datagram) = pair.server.poll_transmit() {
                pair.deliver_to_client(&datagram);
                pair.deliver_to_client(&datagram);
            }
        }
        assert!(pair.client.is_open() && pair.server.is_open(), "{name}");
        pair.client_write(b"data");
        let datagram = pair.client.poll_transmit().unwrap();
        pair.deliver_to_server(&datagram);
        pair.deliver_to_server(&datagram);
        assert_eq!(data(&pair.server_events), [b"data"], "{name}: data is delivered once");
    }
}

/// All permutations of the numbers below `count`.
fn permutations(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![vec![]];
    }
    let mut orders = Vec::new();
    for order in permutations(count - 1) {
        for place in 0..count {
            let mut order = order.clone();
            order.insert(place, count - 1);
            orders.push(order);
        }
    }
    orders
}

#[test]
fn a_flight_split_into_records_may_come_in_any_order() {
    for (name, configs, session) in every_flow() {
        for order in permutations(5) {
            let mut pair = Pair::new(&configs.0, &configs.1, session.clone(), 5);
            let in_order = |datagram: &[u8]| -> Vec<Vec<u8>> {
                let records: Vec<_> = Records::new(datagram).map(|record| record.unwrap().raw).collect();
                let order = order.iter().filter(|index| **index < records.len());
                order.map(|index| records[*index].to_vec()).collect()
            };
            for _ in 0..4 {
                while let Some(datagram) = pair.client.poll_transmit() {
                    in_order(&datagram).iter().for_each(|record| pair.deliver_to_server(record));
                }
                while let Some(datagram) = pair.server.poll_transmit() {
                    in_order(&datagram).iter().for_each(|record| pair.deliver_to_client(record));
                }
            }
            assert!(pair.client.is_open() && pair.server.is_open(), "{name} {order:?}");
        }
    }
}

#[test]
fn only_a_completed_handshake_replaces_an_open_connection() {
    let (client, server) = anonymous();
    let mut old = Pair::new(&client, &server, None, 1);
    old.run();
    let mut new = Pair::new(&client, &server, None, 2);
    // The new client connects to the server that has the old connection.
    let hello = new.client.poll_transmit().unwrap();
    old.deliver_to_server(&hello);
    let flight = old.server.poll_transmit().unwrap();
    old.client_write(b"still here");
    let datagram = old.client.poll_transmit().unwrap();
    old.deliver_to_server(&datagram);
    assert_eq!(data(&old.server_events), [b"still here"]);
    assert!(old.server.is_open());

    new.deliver_to_client(&flight);
    let last = new.client.poll_transmit().unwrap();
    old.deliver_to_server(&last);
    let finished = old.server.poll_transmit().unwrap();
    new.deliver_to_client(&finished);
    assert!(new.client.is_open());
    new.client_write(b"me now");
    let datagram = new.client.poll_transmit().unwrap();
    old.deliver_to_server(&datagram);
    assert_eq!(data(&old.server_events), [b"still here".as_slice(), b"me now"]);
    let handshakes = old.server_events.iter().filter(|event| matches!(event, Event::Established(_)));
    assert_eq!(handshakes.count(), 2);
}

#[test]
fn failed_handshake_does_not_affect_an_open_connection() {
    let (client, server) = anonymous();
    let mut pair = Pair::new(&client, &server, None, 1);
    pair.run();
    let other = ClientConfig::<OpenSsl>::new(Vec::new());
    let hello = Pair::new(&Arc::new(other), &server, None, 2).client.poll_transmit().unwrap();
    pair.deliver_to_server(&hello);
    assert_eq!(closed(&pair.server_events), None);
    assert!(pair.server.is_open());
    let alert = pair.server.poll_transmit().unwrap();
    assert_eq!(alert[0], 0xC2, "the sender of the second hello gets the reason");
    pair.client_write(b"still here");
    pair.run();
    assert_eq!(data(&pair.server_events), [b"still here"]);
}

#[test]
fn time_required_gives_the_server_more_time() {
    let (client, server) = anonymous();
    let mut pair = Pair::new(&client, &server, None, 1);
    let hello = pair.client.poll_transmit().unwrap();
    pair.now += Duration::from_secs(2);
    let alert = Alert::warning(AlertDescription::TimeRequired);
    let checksum = Checksum::of(&hello);
    let message = codec::Codec::to_bytes(&AlertMessage { alert, checksum }).unwrap();
    let datagram = [&[0xC2, 0, 0, 0, 6][..], &message].concat();
    pair.deliver_to_client(&datagram);
    assert_eq!(pair.client_events, [Event::AlertReceived(alert)]);
    assert_eq!(pair.client.poll_timeout(), Some(pair.now + Duration::from_secs(3)));
}

#[test]
fn clear_text_alert_with_a_wrong_checksum_is_ignored() {
    let (client, server) = anonymous();
    let mut pair = Pair::new(&client, &server, None, 1);
    pair.run();
    let alert = Alert::fatal(AlertDescription::NoConnection);
    for checksum in [Checksum::NOTHING, Checksum(*b"0000"), Checksum([1, 2, 3, 4])] {
        let message = codec::Codec::to_bytes(&AlertMessage { alert, checksum }).unwrap();
        let datagram = [&[0xC2, 0xFF, 0xFF, 0, 6][..], &message].concat();
        pair.deliver_to_client(&datagram);
        pair.deliver_to_server(&datagram);
    }
    assert!(pair.client.is_open() && pair.server.is_open());
}

#[test]
fn forged_clear_text_close_notify_is_ignored() {
    let (client, server) = anonymous();
    let mut pair = Pair::new(&client, &server, None, 1);
    pair.run();
    // The attacker has observed the last record of the client.
    let (_, last) = pair.wire.iter().rev().find(|(from_client, _)| *from_client).unwrap();
    let last = Records::new(last).last().unwrap().unwrap().raw.to_vec();
    let alert = Alert::critical(AlertDescription::ConnectionCloseNotify);
    let message = AlertMessage { alert, checksum: Checksum::of(&last) };
    let message = codec::Codec::to_bytes(&message).unwrap();
    pair.deliver_to_client(&[&[0xC2, 0, 9, 0, 6][..], &message].concat());
    assert!(pair.client.is_open());
}

#[test]
fn connection_ends_before_its_sequence_numbers_are_used_up() {
    let (client, server) = anonymous();
    let mut pair = Pair::new(&client, &server, None, 1);
    pair.run();
    // Finished used number 0, and the last number is reserved for close_notify.
    for index in 1..65_535u32 {
        pair.client_write(&index.to_be_bytes());
        let datagram = pair.client.poll_transmit().unwrap();
        if index % 1000 == 0 {
            pair.deliver_to_server(&datagram);
        }
    }
    let cx = &mut pair.client_environment.cx(pair.now);
    let sent = pair.client.write(cx, b"one too many");
    assert!(matches!(sent, Err(WriteError::SequenceExhausted(_))));
    pair.run();
    assert_eq!(closed(&pair.client_events), Some(&CloseReason::Local));
    assert_eq!(closed(&pair.server_events), Some(&CloseReason::Peer));
    assert_eq!(data(&pair.server_events).len(), 65);
}

#[test]
fn invalid_writes_are_refused() {
    let (client, server) = anonymous();
    let mut pair = Pair::new(&client, &server, None, 1);
    let cx = &mut pair.client_environment.cx(pair.now);
    assert_eq!(pair.client.write(cx, b"too early"), Err(WriteError::NotOpen));
    pair.run();
    let cx = &mut pair.client_environment.cx(pair.now);
    assert_eq!(pair.client.write(cx, b""), Err(WriteError::Empty));
    let too_long = vec![0; MAX_DATA_BYTES + 1];
    let error = WriteError::TooLong { length: MAX_DATA_BYTES + 1, max: MAX_DATA_BYTES };
    assert_eq!(pair.client.write(cx, &too_long), Err(error));
    pair.client.write(cx, &too_long[1..]).unwrap();
    let datagram = pair.client.poll_transmit().unwrap();
    assert!(datagram.len() <= 65_507);
    pair.deliver_to_server(&datagram);
    assert_eq!(data(&pair.server_events)[0].len(), MAX_DATA_BYTES);
}

/// No datagram with data is larger than configured; a flight that does not fit before the data is sent separately.
#[test]
fn data_fits_into_the_largest_datagram() {
    const LARGEST: usize = 200;
    const FITS: usize = LARGEST - 5 - 20 - 8;
    let (mut client, mut server) =
        anonymous_pair(offer(KeyExchangeSuite::EcdhAnon, ParameterSpecifier::of_curve(Curve::Wtls8, false)));
    client.settings.max_datagram_bytes = LARGEST;
    server.settings.max_datagram_bytes = LARGEST;
    let (client, server) = shared((client, server));
    let mut first = Pair::new(&client, &server, None, 1);
    first.run();
    let session = first.client.session().cloned();
    for (mode, session) in [("full", None), ("resumed", session)] {
        let mut pair = Pair::new(&client, &server, session, 2);
        pair.run();
        let mut ahead = 0;
        for length in [1, FITS - 64, FITS] {
            let before = data(&pair.server_events).len();
            let cx = &mut pair.client_environment.cx(pair.now);
            pair.client.write(cx, &vec![7; length]).unwrap();
            let mut datagrams = 0;
            while let Some(datagram) = pair.client.poll_transmit() {
                assert!(datagram.len() <= LARGEST, "{mode}: {} bytes", datagram.len());
                pair.deliver_to_server(&datagram);
                datagrams += 1;
            }
            ahead += datagrams - 1;
            assert_eq!(data(&pair.server_events)[before..], [vec![7; length]], "{mode}");
        }
        assert_eq!(ahead > 0, mode == "resumed", "{mode}: {ahead} flights went ahead");
        let cx = &mut pair.client_environment.cx(pair.now);
        let error = WriteError::TooLong { length: FITS + 1, max: FITS };
        assert_eq!(pair.client.write(cx, &[0; FITS + 1]), Err(error));
    }
}
