//! Flights: messages that are missing, repeated, misplaced or malformed.

use super::*;

#[test]
fn server_accepts_only_a_hello_first() {
    let (client, server) = of(EC);
    let Script { hello, answer, last, .. } = Script::server(&client, &server);
    let mut first = records(&last);
    first.push(protected(ContentType::ApplicationData, 1, &[1; 32]));
    first.push(protected(ContentType::Handshake, 0, &[1; 40]));
    first.push(plain(ContentType::ApplicationData, 0, b"GET /"));
    first.push(plain(ContentType::ApplicationData, 0, b""));
    first.extend(records(&answer));
    first.push(last);
    for datagram in first {
        let mut pair = Pair::new(&client, &server, None, 1);
        pair.deliver_to_server(&datagram);
        assert!(pair.server.is_idle() && pair.server_events.is_empty(), "{datagram:02x?}");
        let alert = pair.server.poll_transmit().unwrap();
        let expected = Alert::critical(D::NoConnection);
        assert_eq!(alert, plain_alert(u16::MAX, expected, Checksum::of(&records(&datagram)[0])));
        // A ClientHello after that gets a response.
        pair.deliver_to_server(&hello);
        assert!(pair.server.poll_transmit().is_some());
    }
}

#[test]
fn client_accepts_only_a_server_hello_first() {
    let configs = mutual(RSA);
    let answer = records(&at_client(&configs).answer);
    for skipped in 1..answer.len() {
        let (error, alert) = at_client(&configs).client_rejects(&renumbered(&answer[skipped..]));
        assert!(unexpected(&error), "{error}");
        assert_eq!(alert, Alert::fatal(D::UnexpectedMessage));
    }
    // An incomplete flight gets no alert, because the rest of it may follow.
    let mut pair = at_client(&configs).pair;
    for datagram in [
        plain(ContentType::ChangeCipherSpec, 0, &[1]),
        protected(ContentType::Handshake, 0, &[1; 40]),
        protected(ContentType::ApplicationData, 0, &[1; 40]),
        plain(ContentType::ApplicationData, 0, b"HTTP/1.0"),
        handshake(0, H::ClientHello, &[1; 40]),
    ] {
        pair.deliver_to_client(&datagram);
        assert!(pair.client_events.is_empty(), "{:?}", pair.client_events);
    }
}

#[test]
fn missing_client_messages_are_refused() {
    for (configs, kinds) in [
        (mutual(RSA), &[H::Certificate, H::ClientKeyExchange, H::CertificateVerify][..]),
        (mutual(EC), &[H::Certificate]),
        (of(RSA), &[H::ClientKeyExchange]),
        (of(EC), &[H::ClientKeyExchange]),
    ] {
        for kind in kinds {
            let script = at_server(&configs);
            let datagram = without(&script.last, *kind);
            let (error, alert) = script.server_rejects(&datagram);
            assert!(unexpected(&error), "{kind}: {error}");
            assert_eq!(alert, Alert::fatal(D::UnexpectedMessage), "{kind}");
        }
    }
}

#[test]
fn repeated_or_reordered_client_messages_are_refused() {
    let configs = mutual(RSA);
    for kind in [H::Certificate, H::ClientKeyExchange, H::CertificateVerify] {
        let script = at_server(&configs);
        let datagram = twice(&script.last, kind);
        let (error, _) = script.server_rejects(&datagram);
        assert!(unexpected(&error), "{kind}: {error}");
    }
    for (first, second) in [(0, 1), (1, 2), (0, 2), (2, 3)] {
        let script = at_server(&configs);
        let mut all = records(&script.last);
        all.swap(first, second);
        let datagram = renumbered(&all);
        let (error, _) = script.server_rejects(&datagram);
        assert!(unexpected(&error), "{first} {second}: {error}");
    }
}

#[test]
fn record_with_a_repeated_number_is_ignored() {
    let script = at_server(&mutual(RSA));
    let doubled: Vec<u8> = records(&script.last).into_iter().flat_map(|raw| raw.repeat(2)).collect();
    let mut pair = script.pair;
    pair.deliver_to_server(&doubled);
    assert!(pair.server.is_open());
}

#[test]
fn second_hello_within_a_flight_is_refused() {
    for configs in [of(RSA), of(EC)] {
        let script = at_server(&configs);
        let mut all = records(&script.last);
        all.insert(1, script.hello.clone());
        let datagram = renumbered(&all);
        let (error, alert) = script.server_rejects(&datagram);
        assert!(unexpected(&error), "{error}");
        assert_eq!(alert, Alert::fatal(D::UnexpectedMessage));
    }
}

#[test]
fn finished_without_change_cipher_spec_or_protection_is_ignored() {
    let configs = of(RSA);
    // Without ChangeCipherSpec the flight is incomplete.
    let mut script = at_server(&configs);
    let mut all = records(&script.last);
    all.remove(1);
    script.pair.deliver_to_server(&renumbered(&all));
    assert!(!script.pair.server.is_open() && rejected(&script.pair.server_events).is_none());
    let last = script.last.clone();
    script.pair.deliver_to_server(&last);
    assert!(script.pair.server.is_open());
    // An unencrypted Finished in place of the protected one.
    let script = at_server(&configs);
    let mut all = records(&script.last);
    all.insert(2, handshake(9, H::Finished, &[0; 12]));
    let datagram = renumbered(&all);
    let (error, _) = script.server_rejects(&datagram);
    assert!(unexpected(&error), "{error}");
}

#[test]
fn change_cipher_spec_must_have_the_value_one() {
    for content in [&[0][..], &[2], &[255], &[], &[1, 1]] {
        for by_server in [false, true] {
            let configs = of(RSA);
            let mut script = at_server(&configs);
            let change = |datagram: &[u8]| -> Vec<u8> {
                let changed = |raw: Vec<u8>| match parts(&raw) {
                    (ContentType::ChangeCipherSpec, number, _) => {
                        plain(ContentType::ChangeCipherSpec, number, content)
                    }
                    _ => raw,
                };
                records(datagram).into_iter().flat_map(changed).collect()
            };
            let (error, alert) = if by_server {
                let last = script.last.clone();
                script.pair.deliver_to_server(&last);
                let finish = script.pair.server.poll_transmit().unwrap();
                script.pair.deliver_to_client(&change(&finish));
                assert!(!script.pair.client.is_open());
                let found = rejection(&script.pair.client_events);
                script.pair.deliver_to_client(&finish);
                assert!(script.pair.client.is_open());
                found
            } else {
                let datagram = change(&script.last);
                script.server_rejects(&datagram)
            };
            assert!(matches!(error, Error::Malformed(_)), "{content:?}: {error}");
            assert_eq!(alert, Alert::fatal(D::DecodeError), "{content:?}");
        }
    }
}

#[test]
fn finished_with_any_changed_bit_is_refused() {
    let configs = of(EC);
    let script = at_server(&configs);
    let start = script.last.len() - 40;
    let (mut pair, last) = (script.pair, script.last);
    for at in start..last.len() {
        let mut changed = last.clone();
        changed[at] ^= 1 << (at % 8);
        pair.deliver_to_server(&changed);
        assert!(!pair.server.is_open(), "byte {at}");
        pair.now += std::time::Duration::from_millis(200);
    }
    pair.deliver_to_server(&last);
    let finish = pair.server.poll_transmit();
    let finish = std::iter::from_fn(|| pair.server.poll_transmit()).last().or(finish).unwrap();
    for at in 6..finish.len() {
        let mut changed = finish.clone();
        changed[at] ^= 1 << (at % 8);
        pair.deliver_to_client(&changed);
        assert!(!pair.client.is_open(), "byte {at}");
    }
    pair.deliver_to_client(&finish);
    assert!(pair.client.is_open());
}
