//! ClientHello: offers, missing fields and errors.

use super::*;

/// The body of ServerHello after a changed ClientHello, or the server's error and alert.
fn hello_answered(
    configs: &Configs,
    change: impl FnOnce(&mut message::ClientHello),
) -> Result<Vec<u8>, (Error, Alert)> {
    let mut pair = Pair::new(&configs.0, &configs.1, None, 1);
    let hello = pair.client.poll_transmit().unwrap();
    let bytes = body(&hello, H::ClientHello);
    let mut parsed: message::ClientHello = codec::Codec::from_bytes("ClientHello", &bytes).unwrap();
    change(&mut parsed);
    let bytes = codec::Codec::to_bytes(&parsed).unwrap();
    pair.deliver_to_server(&with_body(&hello, H::ClientHello, &bytes));
    match rejected(&pair.server_events) {
        Some(_) => Err(rejection(&pair.server_events)),
        None => Ok(body(&pair.server.poll_transmit().unwrap(), H::ServerHello)),
    }
}

#[test]
fn unknown_values_offered_in_a_hello_are_ignored() {
    let configs = of(RSA);
    let chosen = |answer: Result<Vec<u8>, (Error, Alert)>| -> message::ServerHello {
        codec::Codec::from_bytes("ServerHello", &answer.unwrap()).unwrap()
    };
    let plain_hello = chosen(hello_answered(&configs, |_| {}));
    let hello = chosen(hello_answered(&configs, |hello| hello.version = 7));
    assert_eq!(hello.version, 1, "a higher version is answered with ours");
    let unknown =
        |bulk, mac| -> OfferedCipherSuite { codec::Codec::from_bytes("cipher suite", &[bulk, mac]).unwrap() };
    let hello = chosen(hello_answered(&configs, |hello| {
        hello
            .cipher_suites
            .splice(0..0, [unknown(200, 3), unknown(3, 200), unknown(3, 4), unknown(255, 255)]);
    }));
    assert_eq!(hello.cipher_suite, plain_hello.cipher_suite);
    let hello = chosen(hello_answered(&configs, |hello| {
        let mut strange = hello.client_key_ids[0].clone();
        strange.suite = 99;
        hello.client_key_ids.insert(0, strange);
    }));
    assert_eq!(hello.client_key_id, 2);
    let hello = chosen(hello_answered(&configs, |hello| hello.compression_methods = vec![7, 255, 0]));
    assert_eq!(hello.compression_method, 0);
    for mode in [SequenceNumberMode::Off, SequenceNumberMode::Implicit] {
        let hello = chosen(hello_answered(&configs, |hello| hello.sequence_number_mode = mode));
        assert_eq!(hello.sequence_number_mode, SequenceNumberMode::Explicit);
    }
    let hello = chosen(hello_answered(&configs, |hello| {
        hello.session_id = codec::Codec::from_bytes("session id", &[4, 1, 2, 3, 4]).unwrap();
    }));
    assert_ne!(hello.session_id.as_bytes(), [1, 2, 3, 4], "an unknown session ID starts a new session");
    let hello = chosen(hello_answered(&configs, |hello| {
        hello.cipher_suites = vec![hello.cipher_suites[0]; 127];
        hello.compression_methods = vec![0; 255];
    }));
    assert_eq!(hello.cipher_suite, plain_hello.cipher_suite);
}

#[test]
fn each_unusable_hello_gets_its_alert() {
    let configs = of(RSA);
    let refused = |change: &dyn Fn(&mut message::ClientHello)| hello_answered(&configs, change).unwrap_err();
    let (error, alert) = refused(&|hello| hello.version = 0);
    assert_eq!((error, alert), (Error::Version { version: 0 }, Alert::fatal(D::ProtocolVersion)));
    let (error, alert) = refused(&|hello| hello.compression_methods = vec![1, 2]);
    assert_eq!((error, alert), (Error::NoCommonCompression, Alert::fatal(D::HandshakeFailure)));
    let (error, alert) = refused(&|hello| {
        hello.cipher_suites = vec![codec::Codec::from_bytes("cipher suite", &[200, 200]).unwrap()];
    });
    assert_eq!((error, alert), (Error::NoCommonCipherSuite, Alert::fatal(D::HandshakeFailure)));
    let (error, alert) = refused(&|hello| hello.client_key_ids.clear());
    assert_eq!((error, alert), (Error::NoCommonKeyExchange, Alert::fatal(D::UnknownKeyId)));
}

#[test]
fn malformed_hello_is_a_decode_error() {
    let configs = of(RSA);
    let hello = Pair::new(&configs.0, &configs.1, None, 1).client.poll_transmit().unwrap();
    let good = body(&hello, H::ClientHello);
    let mut cases: Vec<Vec<u8>> = (0..good.len()).map(|length| good[..length].to_vec()).collect();
    cases.push([&good[..], &[0]].concat());
    // A session identifier of nine bytes; an odd number of bytes of cipher suites; an unassigned mode.
    cases.push([&good[..17], &[9; 10], &good[18..]].concat());
    let end = good.len();
    let mut odd = good.clone();
    odd[end - 7] = 1;
    odd.remove(end - 6);
    cases.push(odd);
    let mut mode = good.clone();
    mode[end - 2] = 3;
    cases.push(mode);
    for body in cases {
        let mut pair = Pair::new(&configs.0, &configs.1, None, 1);
        pair.deliver_to_server(&with_body(&hello, H::ClientHello, &body));
        let (error, alert) = rejection(&pair.server_events);
        assert!(matches!(error, Error::Malformed(_)), "{error}: {body:02x?}");
        assert_eq!(alert, Alert::fatal(D::DecodeError));
        assert!(pair.server.is_idle(), "nothing is kept of it");
    }
}
