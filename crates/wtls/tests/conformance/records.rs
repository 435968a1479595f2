//! Records: lengths, unknown types, warnings and data where they do not belong.

use super::*;

#[test]
fn every_length_field_of_every_message_is_checked() {
    for configs in [mutual(RSA), mutual(EC), of(EC)] {
        let script = at_server(&configs);
        for kind in [H::Certificate, H::ClientKeyExchange, H::CertificateVerify] {
            if !records(&script.last).iter().any(|raw| is_message(raw, kind)) {
                continue;
            }
            let good = body(&script.last, kind);
            for changed in [[&good[..], &[0]].concat(), good[..good.len() - 1].to_vec(), Vec::new()] {
                let datagram = with_body(&script.last, kind, &changed);
                let (error, alert) = at_server(&configs).server_rejects(&datagram);
                // An RSA ciphertext may lack its length field, so another length may be parsed in this form.
                let ciphertext = matches!(error, Error::Crypto(crypto::CryptoError::BadCiphertext));
                assert!(matches!(error, Error::Malformed(_)) || ciphertext, "{kind}: {error}");
                assert_eq!(alert, error.alert(), "{kind}");
            }
            // The message's length field does not match that of its record.
            let fragment = [&[kind.number(), 0, 1][..], &good].concat();
            let datagram = with_fragment(&script.last, kind, &fragment);
            let (error, _) = at_server(&configs).server_rejects(&datagram);
            assert!(matches!(error, Error::Malformed(_)), "{kind}: {error}");
        }
        let script = at_client(&configs);
        for kind in [H::ServerHello, H::Certificate, H::CertificateRequest, H::ServerHelloDone] {
            if !records(&script.answer).iter().any(|raw| is_message(raw, kind)) {
                continue;
            }
            let good = body(&script.answer, kind);
            let longer = [&good[..], &[0]].concat();
            let shorter = good[..good.len().saturating_sub(1)].to_vec();
            for changed in [longer, shorter].into_iter().filter(|changed| *changed != good) {
                let datagram = with_body(&script.answer, kind, &changed);
                let (error, alert) = at_client(&configs).client_rejects(&datagram);
                assert_eq!(alert, Alert::fatal(D::DecodeError), "{kind}: {error}");
            }
        }
    }
}

#[test]
fn message_of_an_unknown_type_is_refused() {
    let script = at_server(&of(RSA));
    let mut all = records(&script.last);
    all.insert(0, plain(ContentType::Handshake, 1, &[99, 0, 0]));
    let datagram = renumbered(&all);
    let (error, alert) = script.server_rejects(&datagram);
    assert!(matches!(error, Error::Malformed(codec::DecodeError::Unassigned { value: 99, .. })), "{error}");
    assert_eq!(alert, Alert::fatal(D::DecodeError));
}

#[test]
fn records_of_unknown_types_are_ignored_anywhere() {
    let configs = mutual(RSA);
    let unknown = |number: u16| -> Vec<u8> {
        let strange = [0xC5, 0xCF, 0xD3, 0xF4, 0xC0];
        let raws = strange.iter().map(|kind| [&[*kind][..], &number.to_be_bytes(), &[0, 2, 9, 9]].concat());
        raws.collect::<Vec<_>>().concat()
    };
    let surround = |datagram: &[u8]| -> Vec<u8> {
        let mut result = Vec::new();
        for raw in records(datagram) {
            result.extend(unknown(3));
            result.extend(raw);
        }
        result.extend(unknown(9));
        result
    };
    let mut pair = Pair::new(&configs.0, &configs.1, None, 1);
    for _ in 0..4 {
        while let Some(datagram) = pair.client.poll_transmit() {
            // A ClientHello is recognised only in the first record.
            let datagram = if pair.server.is_idle() { datagram } else { surround(&datagram) };
            pair.deliver_to_server(&datagram);
        }
        while let Some(datagram) = pair.server.poll_transmit() {
            pair.deliver_to_client(&surround(&datagram));
        }
    }
    assert!(pair.client.is_open() && pair.server.is_open());
    pair.client_write(b"data");
    let datagram = pair.client.poll_transmit().unwrap();
    pair.deliver_to_server(&surround(&datagram));
    assert_eq!(data(&pair.server_events), [b"data"]);
    assert_eq!(pair.server.poll_transmit(), None);
}

#[test]
fn warnings_within_a_flight_are_reported_and_do_not_end_it() {
    let configs = of(RSA);
    let script = at_server(&configs);
    let about = Checksum::of(records(&script.answer).last().unwrap());
    let warning = Alert::warning(D::UserCanceled);
    let mut all = records(&script.last);
    all.insert(1, plain_alert(2, warning, about));
    let datagram = renumbered(&all);
    let mut pair = script.pair;
    pair.deliver_to_server(&datagram);
    assert!(pair.server.is_open());
    assert!(pair.server_events.contains(&Event::AlertReceived(warning)));
}

#[test]
fn data_before_finished_or_in_clear_text_is_dropped() {
    let mut pair = at_server(&of(RSA)).pair;
    pair.deliver_to_server(&plain(ContentType::ApplicationData, 1, b"GET /"));
    pair.deliver_to_server(&protected(ContentType::ApplicationData, 1, &[1; 32]));
    assert!(pair.server_events.is_empty());
    let mut pair = Pair::new(&of(EC).0, &of(EC).1, None, 1);
    pair.run();
    pair.deliver_to_server(&plain(ContentType::ApplicationData, 9, b"GET /"));
    pair.deliver_to_client(&plain(ContentType::ApplicationData, 9, b"HTTP/1.0"));
    assert!(data(&pair.server_events).is_empty() && data(&pair.client_events).is_empty());
}
