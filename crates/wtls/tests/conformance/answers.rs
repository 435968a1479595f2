//! The server's first flight: parameters that were not offered, missing and excess messages, sessions.

use super::*;

/// The client's error and alert for a ServerHello with this change.
fn answer_refused(configs: &Configs, change: impl FnOnce(&mut message::ServerHello)) -> (Error, Alert) {
    let script = at_client(configs);
    let bytes = body(&script.answer, H::ServerHello);
    let mut parsed: message::ServerHello = codec::Codec::from_bytes("ServerHello", &bytes).unwrap();
    change(&mut parsed);
    let bytes = codec::Codec::to_bytes(&parsed).unwrap();
    let datagram = with_body(&script.answer, H::ServerHello, &bytes);
    script.client_rejects(&datagram)
}

#[test]
fn server_choice_that_was_not_offered_is_refused() {
    let configs = of(RSA);
    let not_offered = |change: &dyn Fn(&mut message::ServerHello)| {
        let (error, alert) = answer_refused(&configs, change);
        assert!(matches!(error, Error::NotOffered { .. } | Error::SequenceMode), "{error}");
        assert_eq!(alert, Alert::fatal(D::IllegalParameter), "{error}");
    };
    not_offered(&|hello| hello.client_key_id = 0);
    not_offered(&|hello| hello.client_key_id = 2);
    not_offered(&|hello| hello.client_key_id = 255);
    let des = CipherSuite { bulk: BulkCipher::DesCbc40, mac: MacAlgorithm::Sha };
    not_offered(&move |hello| hello.cipher_suite = des.into());
    not_offered(&|hello| hello.compression_method = 1);
    not_offered(&|hello| hello.key_refresh = key_schedule::KeyRefresh(9));
    not_offered(&|hello| hello.sequence_number_mode = SequenceNumberMode::Off);
    not_offered(&|hello| hello.sequence_number_mode = SequenceNumberMode::Implicit);
    for version in [0, 2] {
        let (error, alert) = answer_refused(&configs, |hello| hello.version = version);
        assert_eq!((error, alert), (Error::Version { version }, Alert::fatal(D::ProtocolVersion)));
    }
    let (_, alert) = answer_refused(&configs, |hello| {
        hello.cipher_suite = codec::Codec::from_bytes("cipher suite", &[200, 200]).unwrap();
    });
    assert_eq!(alert, Alert::fatal(D::DecodeError), "a number without a meaning");
}

#[test]
fn missing_or_repeated_server_messages_are_refused() {
    let anonymous = anonymous(KeyExchangeSuite::EcdhAnon, ParameterSpecifier::Index(8));
    for (configs, missing, doubled) in [
        (
            mutual(RSA),
            &[H::ServerHello, H::Certificate][..],
            &[H::ServerHello, H::Certificate, H::CertificateRequest][..],
        ),
        (of(EC), &[H::ServerHello, H::Certificate], &[H::ServerHello, H::Certificate]),
        (anonymous, &[H::ServerHello, H::ServerKeyExchange], &[H::ServerHello, H::ServerKeyExchange]),
    ] {
        for kind in missing {
            let script = at_client(&configs);
            let datagram = without(&script.answer, *kind);
            let (error, alert) = script.client_rejects(&datagram);
            assert!(unexpected(&error), "without {kind}: {error}");
            assert_eq!(alert, Alert::fatal(D::UnexpectedMessage));
        }
        for kind in doubled {
            let script = at_client(&configs);
            let datagram = twice(&script.answer, *kind);
            let (error, _) = script.client_rejects(&datagram);
            assert!(unexpected(&error), "{kind} twice: {error}");
        }
    }
}

#[test]
fn temporary_key_beside_a_certificate_is_refused() {
    let curve = ParameterSpecifier::of_curve(Curve::Secp160r1, false);
    let key = at_client(&anonymous(KeyExchangeSuite::EcdhAnon, curve)).answer;
    let key = records(&key).into_iter().find(|raw| is_message(raw, H::ServerKeyExchange)).unwrap();
    for configs in [of(RSA), of(EC)] {
        let script = at_client(&configs);
        let mut all = records(&script.answer);
        all.insert(2, key.clone());
        let datagram = renumbered(&all);
        let (error, _) = script.client_rejects(&datagram);
        assert!(unexpected(&error), "{error}");
    }
}

#[test]
fn resumption_that_was_not_offered_is_refused() {
    // ServerHello and ChangeCipherSpec, as if there were a session.
    for configs in [of(RSA), mutual(EC)] {
        let script = at_client(&configs);
        let hello = records(&script.answer).remove(0);
        let change = plain(ContentType::ChangeCipherSpec, 1, &[1]);
        let datagram = [hello, change, protected(ContentType::Handshake, 0, &[7; 40])].concat();
        let (error, alert) = script.client_rejects(&datagram);
        assert!(unexpected(&error), "{error}");
        assert_eq!(alert, Alert::fatal(D::UnexpectedMessage));
    }
}

/// A session of the two sides.
fn with_session(configs: &Configs) -> Session {
    let mut pair = Pair::new(&configs.0, &configs.1, None, 77);
    pair.run();
    pair.client.session().cloned().unwrap()
}

#[test]
fn a_resumed_session_keeps_its_cipher_suite() {
    // The client does not offer the suite any more: the server begins another session.
    let (client, server) = certified_pair(&[RSA], ClientAuthentication::None, false, false);
    let mut server = server;
    let des = CipherSuite { bulk: BulkCipher::DesCbc, mac: MacAlgorithm::Sha };
    server.cipher_suites.push(des);
    let configs = shared((client, server));
    let session = with_session(&configs);
    let mut pair = Pair::new(&configs.0, &configs.1, Some(session.clone()), 1);
    let hello = pair.client.poll_transmit().unwrap();
    let mut parsed: message::ClientHello =
        codec::Codec::from_bytes("ClientHello", &body(&hello, H::ClientHello)).unwrap();
    parsed.cipher_suites = vec![des.into()];
    let bytes = codec::Codec::to_bytes(&parsed).unwrap();
    pair.deliver_to_server(&with_body(&hello, H::ClientHello, &bytes));
    let answer = body(&pair.server.poll_transmit().unwrap(), H::ServerHello);
    let answer: message::ServerHello = codec::Codec::from_bytes("ServerHello", &answer).unwrap();
    assert_ne!(answer.session_id, session.id);
    // The server selects another suite: the client rejects it.
    let script = Script::client(&configs.0, &configs.1, Some(session.clone()));
    let mut parsed: message::ServerHello =
        codec::Codec::from_bytes("ServerHello", &body(&script.answer, H::ServerHello)).unwrap();
    assert_eq!(parsed.session_id, session.id);
    parsed.cipher_suite = des.into();
    let bytes = codec::Codec::to_bytes(&parsed).unwrap();
    let mut pair = script.pair;
    pair.deliver_to_client(&with_body(&script.answer, H::ServerHello, &bytes));
    let (error, alert) = rejection(&pair.client_events);
    assert!(matches!(error, Error::NotOffered { .. }), "{error}");
    assert_eq!(alert, Alert::fatal(D::IllegalParameter));
    pair.deliver_to_client(&script.answer);
    assert!(pair.client.is_open());
}

#[test]
fn failed_resumption_keeps_the_session_of_the_client() {
    let configs = of(EC);
    let session = with_session(&configs);
    // An attacker who knows the session's identifier, but not its secret.
    let thief = Session { master: key_schedule::MasterSecret::from_bytes([9; 20]), ..session.clone() };
    let mut pair = Pair::new(&configs.0, &configs.1, Some(thief), 1);
    pair.run_out();
    assert!(!pair.client.is_open() && !pair.server.is_open());
    let mut pair = Pair::new(&configs.0, &configs.1, Some(session), 2);
    pair.run();
    assert_eq!(established(&pair.server_events).unwrap().mode, HandshakeMode::Resumed);
}
