//! Open connections: errors of an authenticated peer, alerts, closing.

use super::*;

/// Two sides that are connected.
fn connected() -> Pair {
    let configs = of(EC);
    let mut pair = Pair::new(&configs.0, &configs.1, None, 1);
    pair.run();
    pair.client_events.clear();
    pair.server_events.clear();
    pair
}

/// The write state of a connection's client, for arbitrary records.
fn forger(pair: &Pair) -> protection::RecordEncryptor {
    let session = pair.client.session().unwrap();
    let random = |from_client: bool, kind| {
        let (_, datagram) = pair.wire.iter().find(|(client, _)| *client == from_client).unwrap();
        body(datagram, kind)[1..17].try_into().unwrap()
    };
    let randoms =
        key_schedule::Randoms { client: random(true, H::ClientHello), server: random(false, H::ServerHello) };
    let direction = key_schedule::Direction::ClientToServer;
    let refresh = key_schedule::KeyRefresh(8);
    let secret =
        key_schedule::TrafficSecret::new(&session.master, &randoms, direction, session.cipher_suite, refresh);
    let mut encryptor = protection::RecordEncryptor::new(&*PROVIDER, secret);
    encryptor.take_number().unwrap();
    encryptor
}

#[test]
fn errors_of_an_authenticated_peer_are_answered_under_protection() {
    let mut pair = connected();
    let mut encryptor = forger(&pair);
    let mut deliver = |pair: &mut Pair, content, fragment: &[u8]| {
        let mut datagram = Vec::new();
        encryptor.encrypt(&*PROVIDER, &mut datagram, content, fragment, true).unwrap();
        pair.deliver_to_server(&datagram);
    };
    // A second handshake, a second ChangeCipherSpec and misplaced messages cause a warning each.
    deliver(&mut pair, ContentType::Handshake, &[1, 0, 0]);
    deliver(&mut pair, ContentType::Handshake, &[20, 0, 0]);
    deliver(&mut pair, ContentType::ChangeCipherSpec, &[1]);
    deliver(&mut pair, ContentType::Alert, &[1, 90, 0, 0, 0, 0]);
    deliver(&mut pair, ContentType::ApplicationData, b"data");
    let warning = |description| Event::AlertSent(Alert::warning(description));
    let expected = [
        warning(D::NoRenegotiation),
        warning(D::UnexpectedMessage),
        warning(D::UnexpectedMessage),
        Event::AlertReceived(Alert::warning(D::UserCanceled)),
        Event::Data(b"data".to_vec()),
    ];
    assert_eq!(pair.server_events, expected);
    let protected = std::iter::from_fn(|| pair.server.poll_transmit()).all(|datagram| datagram[0] == 0xE2);
    assert!(protected);
    // A malformed alert or message ends the connection.
    for (content, fragment) in [
        (ContentType::Alert, &[1, 90][..]),
        (ContentType::Alert, &[4, 90, 0, 0, 0, 0]),
        (ContentType::Alert, &[1, 41, 0, 0, 0, 0]),
        (ContentType::Alert, &[]),
        (ContentType::Handshake, &[1, 0, 9]),
    ] {
        let mut pair = connected();
        let mut encryptor = forger(&pair);
        let mut datagram = Vec::new();
        encryptor.encrypt(&*PROVIDER, &mut datagram, content, fragment, true).unwrap();
        pair.deliver_to_server(&datagram);
        assert!(matches!(closed(&pair.server_events), Some(CloseReason::Failed(Error::Malformed(_)))));
        pair.run();
        let alert = Alert::fatal(D::DecodeError);
        assert_eq!(
            closed(&pair.client_events),
            Some(&CloseReason::Alert(alert)),
            "and the client is notified of it"
        );
        assert!(pair.client.session().is_none(), "a fatal alert ends the session too");
    }
}

#[test]
fn every_protected_alert_acts_by_its_level() {
    for &description in D::ALL {
        for &level in AlertLevel::ALL {
            let mut pair = connected();
            let mut encryptor = forger(&pair);
            let mut datagram = Vec::new();
            let fragment = [level.number(), description.number(), 0, 0, 0, 0];
            encryptor.encrypt(&*PROVIDER, &mut datagram, ContentType::Alert, &fragment, true).unwrap();
            pair.deliver_to_server(&datagram);
            let goodbye = matches!(description, D::ConnectionCloseNotify | D::SessionCloseNotify);
            let confirms = description == D::DuplicateFinishedReceived;
            let ends = goodbye || (level != AlertLevel::Warning && !confirms);
            assert_eq!(!pair.server.is_open(), ends, "{description} {level}");
            assert_eq!(pair.server.poll_transmit().is_some(), goodbye, "only a goodbye is answered");
        }
    }
}

#[test]
fn close_notify_is_answered_and_later_data_is_ignored() {
    let mut pair = connected();
    pair.client_write(b"before");
    let before = pair.client.poll_transmit().unwrap();
    pair.client_write(b"late");
    let late = pair.client.poll_transmit().unwrap();
    pair.client.close(&mut pair.client_environment.cx(pair.now), Close::Connection);
    let goodbye = pair.client.poll_transmit().unwrap();
    pair.deliver_to_server(&before);
    pair.deliver_to_server(&goodbye);
    pair.deliver_to_server(&late);
    assert_eq!(data(&pair.server_events), [b"before"]);
    assert_eq!(closed(&pair.server_events), Some(&CloseReason::Peer));
    let cx = &mut pair.server_environment.cx(pair.now);
    assert_eq!(pair.server.write(cx, b"no"), Err(WriteError::NotOpen));
    let cx = &mut pair.client_environment.cx(pair.now);
    assert_eq!(pair.client.write(cx, b"no"), Err(WriteError::NotOpen));
}

#[test]
fn a_hello_request_is_ignored_in_clear_text_and_declined_under_protection() {
    // A client must not send it either; it belongs to no handshake.
    let configs = of(EC);
    let mut pair = Pair::new(&configs.0, &configs.1, None, 1);
    for number in 0..3 {
        pair.deliver_to_client(&handshake(number, H::HelloRequest, &[]));
        pair.deliver_to_server(&handshake(number, H::HelloRequest, &[]));
    }
    assert!(pair.client_events.is_empty());
    pair.run();
    assert!(pair.client.is_open());
    let events = pair.client_events.len();
    pair.deliver_to_client(&handshake(9, H::HelloRequest, &[]));
    pair.deliver_to_client(&handshake(9, H::ServerHello, &[1; 24]));
    assert_eq!((pair.client_events.len(), pair.client.poll_transmit()), (events, None));
}

#[test]
fn record_that_fails_to_authenticate_does_not_affect_later_ones() {
    let mut pair = connected();
    let datagrams: Vec<_> = (0..40u8)
        .map(|index| {
            pair.client_write(&[index]);
            pair.client.poll_transmit().unwrap()
        })
        .collect();
    for (index, datagram) in datagrams.iter().enumerate() {
        // Every byte of the record in turn, header included.
        let mut changed = datagram.clone();
        changed[index % datagram.len()] ^= 0x40;
        pair.deliver_to_server(&changed);
        pair.deliver_to_server(datagram);
    }
    let received: Vec<u8> = data(&pair.server_events).concat();
    assert_eq!(received, (0..40).collect::<Vec<_>>());
}
