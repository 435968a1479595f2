//! Cases of conformance suites for TLS and DTLS (tlsfuzzer's scripts, TLS-Anvil's tests) that apply to
//! WTLS and stand in no other file. `docs/background/wtls-conformance.md` has the whole list.
//!
//! Where those suites want a fatal alert and the end of the connection, the alert is sent here too, but
//! the handshake goes on: anybody could have sent the datagram, and the genuine one still does.

#![allow(clippy::unwrap_used)]

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

#[test]
fn a_server_is_not_begun_with_anything_but_a_hello() {
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
        // The hello that comes then is answered.
        pair.deliver_to_server(&hello);
        assert!(pair.server.poll_transmit().is_some());
    }
}

#[test]
fn a_client_is_not_begun_with_anything_but_a_server_hello() {
    let configs = mutual(RSA);
    let answer = records(&at_client(&configs).answer);
    for skipped in 1..answer.len() {
        let (error, alert) = at_client(&configs).client_rejects(&renumbered(&answer[skipped..]));
        assert!(unexpected(&error), "{error}");
        assert_eq!(alert, Alert::fatal(D::UnexpectedMessage));
    }
    // What is the end of no flight may be the beginning of one that is on its way in parts.
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
fn no_message_of_the_clients_flight_may_be_missing() {
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
fn no_message_of_the_clients_flight_may_come_twice_or_in_another_order() {
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
fn a_record_that_comes_twice_with_its_number_is_a_duplicate() {
    let script = at_server(&mutual(RSA));
    let doubled: Vec<u8> = records(&script.last).into_iter().flat_map(|raw| raw.repeat(2)).collect();
    let mut pair = script.pair;
    pair.deliver_to_server(&doubled);
    assert!(pair.server.is_open());
}

#[test]
fn a_second_hello_in_the_midst_of_a_flight_is_out_of_place() {
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
fn finished_without_change_cipher_spec_or_in_clear_text_finishes_nothing() {
    let configs = of(RSA);
    // Without ChangeCipherSpec it is the end of no flight.
    let mut script = at_server(&configs);
    let mut all = records(&script.last);
    all.remove(1);
    script.pair.deliver_to_server(&renumbered(&all));
    assert!(!script.pair.server.is_open() && rejected(&script.pair.server_events).is_none());
    let last = script.last.clone();
    script.pair.deliver_to_server(&last);
    assert!(script.pair.server.is_open());
    // In clear text it stands where the protected one should.
    let script = at_server(&configs);
    let mut all = records(&script.last);
    all.insert(2, handshake(9, H::Finished, &[0; 12]));
    let datagram = renumbered(&all);
    let (error, _) = script.server_rejects(&datagram);
    assert!(unexpected(&error), "{error}");
}

#[test]
fn change_cipher_spec_says_one_and_nothing_else() {
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
fn finished_must_be_right_to_the_last_bit() {
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

/// What a server says to a hello with this body.
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
fn what_a_hello_offers_beyond_what_is_known_does_no_harm() {
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
    assert_ne!(hello.session_id.as_bytes(), [1, 2, 3, 4], "a session that nobody knows is a new one");
    let hello = chosen(hello_answered(&configs, |hello| {
        hello.cipher_suites = vec![hello.cipher_suites[0]; 127];
        hello.compression_methods = vec![0; 255];
    }));
    assert_eq!(hello.cipher_suite, plain_hello.cipher_suite);
}

#[test]
fn what_a_hello_lacks_is_said_by_the_alert_about_it() {
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
fn a_hello_that_is_malformed_in_any_place_is_a_decode_error() {
    let configs = of(RSA);
    let hello = Pair::new(&configs.0, &configs.1, None, 1).client.poll_transmit().unwrap();
    let good = body(&hello, H::ClientHello);
    let mut cases: Vec<Vec<u8>> = (0..good.len()).map(|length| good[..length].to_vec()).collect();
    cases.push([&good[..], &[0]].concat());
    // A session name of nine bytes; an odd number of bytes of cipher suites; an unassigned mode.
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
                // An RSA ciphertext may go without its length, so another length is another form.
                let ciphertext = matches!(error, Error::Crypto(crypto::CryptoError::BadCiphertext));
                assert!(matches!(error, Error::Malformed(_)) || ciphertext, "{kind}: {error}");
                assert_eq!(alert, error.alert(), "{kind}");
            }
            // The length of the message itself, against that of its record.
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
fn a_message_of_an_unknown_type_is_out_of_place() {
    let script = at_server(&of(RSA));
    let mut all = records(&script.last);
    all.insert(0, plain(ContentType::Handshake, 1, &[99, 0, 0]));
    let datagram = renumbered(&all);
    let (error, alert) = script.server_rejects(&datagram);
    assert!(matches!(error, Error::Malformed(codec::DecodeError::Unassigned { value: 99, .. })), "{error}");
    assert_eq!(alert, Alert::fatal(D::DecodeError));
}

#[test]
fn records_of_unknown_types_are_ignored_wherever_they_stand() {
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
            // A hello is recognised as the first record.
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
fn warnings_in_the_midst_of_a_flight_are_heard_and_do_not_disturb_it() {
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
fn data_before_finished_or_in_clear_text_is_nobodys() {
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

#[test]
fn whatever_an_rsa_block_holds_the_outside_sees_the_same() {
    let configs = of(RSA);
    let key = private_key(RSA, 100);
    let (exponent, modulus) = PROVIDER.rsa_public(&key).unwrap();
    let public = openssl::rsa::Rsa::from_public_components(
        openssl::bn::BigNum::from_slice(&modulus).unwrap(),
        openssl::bn::BigNum::from_slice(&exponent).unwrap(),
    )
    .unwrap();
    let size = modulus.len();
    let good = || -> Vec<u8> {
        let mut block = vec![0xAB; size];
        block[..2].copy_from_slice(&[0, 2]);
        block[size - 21] = 0;
        block[size - 20] = 1;
        block
    };
    let mut blocks = vec![good()];
    let mut with = |at: usize, byte: u8| {
        let mut block = good();
        block[at] = byte;
        blocks.push(block);
    };
    with(0, 1);
    with(1, 0);
    with(1, 1);
    with(2, 0);
    with(9, 0);
    with(40, 0);
    with(size - 21, 1);
    with(size - 22, 0);
    with(size - 20, 0);
    with(size - 20, 2);
    blocks.push([&[0u8, 2][..], &vec![7; size - 2]].concat());
    blocks.push([&[0u8; 1][..], &vec![0; size - 1]].concat());
    let mut seen = BTreeSet::new();
    for block in blocks {
        let mut ciphertext = vec![0; size];
        public.public_encrypt(&block, &mut ciphertext, openssl::rsa::Padding::NONE).unwrap();
        let body = [&(size as u16).to_be_bytes()[..], &ciphertext].concat();
        let script = at_server(&configs);
        let datagram = with_body(&script.last, H::ClientKeyExchange, &body);
        let (error, alert) = script.server_rejects(&datagram);
        seen.insert(format!("{error} {alert}"));
    }
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert!(seen.first().unwrap().contains("bad_record_mac (warning)"), "{seen:?}");
    // A ciphertext that is no number below the modulus anybody can tell from others.
    for body in [
        [&(size as u16).to_be_bytes()[..], &vec![0xFF; size]].concat(),
        [&(size as u16 - 1).to_be_bytes()[..], &vec![1; size - 1]].concat(),
        vec![0, 0],
    ] {
        let script = at_server(&configs);
        let datagram = with_body(&script.last, H::ClientKeyExchange, &body);
        let (error, alert) = script.server_rejects(&datagram);
        assert_eq!(error, Error::Crypto(crypto::CryptoError::BadCiphertext));
        assert_eq!(alert, Alert::fatal(D::DecryptError));
    }
}

#[test]
fn points_off_the_curve_or_of_small_order_are_not_agreed_with() {
    for curve in [Curve::Secp160r1, Curve::Sect163k1, Curve::Sect233k1, Curve::Wtls1] {
        let configs = anonymous(KeyExchangeSuite::EcdhAnon, ParameterSpecifier::of_curve(curve, false));
        let field = curve.field_bytes();
        let mut one = vec![0; field];
        one[field - 1] = 1;
        let points = [
            vec![0],
            [&[4][..], &vec![0; 2 * field]].concat(),
            [&[4][..], &vec![1; 2 * field]].concat(),
            [&[2][..], &vec![0xFF; field]].concat(),
            [&[6][..], &vec![1; 2 * field]].concat(),
            [&[5][..], &vec![1; field]].concat(),
            [&[2][..], &vec![1; field - 1]].concat(),
            [&[2][..], &vec![1; field + 1]].concat(),
        ];
        let mut points = points.to_vec();
        if curve.cofactor() > 1 {
            points.push([&[2][..], &vec![0; field]].concat());
        }
        if curve.cofactor() == 4 {
            points.push([&[2][..], &one].concat());
        }
        for point in points {
            let body = [&[point.len() as u8][..], &point].concat();
            let script = at_server(&configs);
            let datagram = with_body(&script.last, H::ClientKeyExchange, &body);
            let (error, alert) = script.server_rejects(&datagram);
            assert_eq!(error, Error::Crypto(crypto::CryptoError::InvalidKey), "{curve} {point:02x?}");
            assert_eq!(alert, Alert::fatal(D::IllegalParameter));
            let script = at_client(&configs);
            let datagram = with_body(
                &script.answer,
                H::ServerKeyExchange,
                &[&[0, point.len() as u8][..], &point].concat(),
            );
            let (error, alert) = script.client_rejects(&datagram);
            assert_eq!(error, Error::Crypto(crypto::CryptoError::InvalidKey), "{curve} {point:02x?}");
            assert_eq!(alert, Alert::fatal(D::IllegalParameter));
        }
    }
}

#[test]
fn degenerate_diffie_hellman_values_are_not_agreed_with() {
    let group = DhGroup::group_1();
    let configs = anonymous(KeyExchangeSuite::DhAnon, ParameterSpecifier::Index(1));
    let mut less_one = group.prime.clone();
    *less_one.last_mut().unwrap() -= 1;
    for value in [vec![], vec![0], vec![1], less_one, group.prime.clone(), vec![0xFF; 64], vec![1; 65]] {
        let body = [&(value.len() as u16).to_be_bytes()[..], &value].concat();
        let script = at_server(&configs);
        let datagram = with_body(&script.last, H::ClientKeyExchange, &body);
        let (error, alert) = script.server_rejects(&datagram);
        assert_eq!(error, Error::Crypto(crypto::CryptoError::InvalidKey), "{value:02x?}");
        assert_eq!(alert, Alert::fatal(D::IllegalParameter));
        let script = at_client(&configs);
        let datagram = with_body(&script.answer, H::ServerKeyExchange, &[&[0][..], &body].concat());
        let (error, _) = script.client_rejects(&datagram);
        assert_eq!(error, Error::Crypto(crypto::CryptoError::InvalidKey), "{value:02x?}");
    }
}

#[test]
fn a_full_exponent_stays_below_a_prime_that_begins_with_a_one() {
    // 2^520 + 2^516 - 1 need not be prime: its size is what matters.
    for (first, second) in [(1, 0x0F), (1, 0), (2, 0), (3, 0xFF), (0x80, 0), (0xFF, 0xFF)] {
        let mut prime = vec![0xFF; 66];
        (prime[0], prime[1]) = (first, second);
        let group = Arc::new(DhGroup { number: None, prime, generator: vec![2], exponent_bytes: 66 });
        let mut random = |out: &mut [u8]| out.fill(0xFF);
        let one = PROVIDER.generate(Group::Dh(&group), &mut random).unwrap();
        let other = PROVIDER.generate(Group::Dh(&group), &mut Seeded::new(5)).unwrap();
        let public = |key| {
            let value = PROVIDER.public_value(key, PointForm::Compressed).unwrap();
            PROVIDER.import(crypto::PublicKeyRef::Dh { group: &group, value: &value }).unwrap()
        };
        let secret = PROVIDER.derive(&one, &public(&other)).unwrap();
        assert_eq!(secret, PROVIDER.derive(&other, &public(&one)).unwrap());
    }
}

#[test]
fn certificate_verify_must_be_of_this_handshake_and_this_key() {
    let configs = mutual(RSA);
    let script = at_server(&configs);
    let good = body(&script.last, H::CertificateVerify);
    // The signature of another handshake of the same client.
    let other = {
        let mut pair = Pair::new(&configs.0, &configs.1, None, 2);
        let hello = pair.client.poll_transmit().unwrap();
        pair.deliver_to_server(&hello);
        let answer = pair.server.poll_transmit().unwrap();
        pair.deliver_to_client(&answer);
        body(&pair.client.poll_transmit().unwrap(), H::CertificateVerify)
    };
    let mut cases = vec![other, [&[0, 128][..], &[0; 128]].concat(), vec![0, 0]];
    for at in [2, 60, good.len() - 1] {
        let mut changed = good.clone();
        changed[at] ^= 0x10;
        cases.push(changed);
    }
    cases.push([&[0, 127][..], &good[3..]].concat());
    for case in cases {
        let script = at_server(&configs);
        let datagram = with_body(&script.last, H::CertificateVerify, &case);
        let (error, alert) = script.server_rejects(&datagram);
        assert_eq!(error, Error::Crypto(crypto::CryptoError::BadSignature));
        assert_eq!(alert, Alert::fatal(D::DecryptError));
    }
}

/// What a client says to a ServerHello with this change.
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
fn a_server_may_choose_nothing_that_was_not_offered() {
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
fn no_message_of_the_servers_flight_may_be_missing_or_come_twice() {
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
fn a_server_with_a_certificate_sends_no_temporary_key() {
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
fn a_server_cannot_resume_what_was_not_offered() {
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

/// A session of two sides, and they.
fn with_session(configs: &Configs) -> Session {
    let mut pair = Pair::new(&configs.0, &configs.1, None, 77);
    pair.run();
    pair.client.session().cloned().unwrap()
}

#[test]
fn a_resumed_session_keeps_its_cipher_suite() {
    // The client does not offer it any more: the server begins another session.
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
    // The server answers with another one: the client does not go along.
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
fn a_resumption_that_fails_costs_nobody_the_session() {
    let configs = of(EC);
    let session = with_session(&configs);
    // Somebody who has seen the session's name, but not its secret.
    let thief = Session { master: key_schedule::MasterSecret::from_bytes([9; 20]), ..session.clone() };
    let mut pair = Pair::new(&configs.0, &configs.1, Some(thief), 1);
    pair.run_out();
    assert!(!pair.client.is_open() && !pair.server.is_open());
    let mut pair = Pair::new(&configs.0, &configs.1, Some(session), 2);
    pair.run();
    assert_eq!(established(&pair.server_events).unwrap().mode, HandshakeMode::Resumed);
}

/// Two sides that are connected.
fn connected() -> Pair {
    let configs = of(EC);
    let mut pair = Pair::new(&configs.0, &configs.1, None, 1);
    pair.run();
    pair.client_events.clear();
    pair.server_events.clear();
    pair
}

/// What writes as the client of a connection does, whatever is to be written.
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
fn what_an_authenticated_peer_gets_wrong_is_answered_under_protection() {
    let mut pair = connected();
    let mut encryptor = forger(&pair);
    let mut deliver = |pair: &mut Pair, content, fragment: &[u8]| {
        let mut datagram = Vec::new();
        encryptor.encrypt(&*PROVIDER, &mut datagram, content, fragment, true).unwrap();
        pair.deliver_to_server(&datagram);
    };
    // No second handshake, no second change, nothing that is out of place: a warning each.
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
    // A malformed alert or message is the end.
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
fn every_protected_alert_does_what_its_level_says() {
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
fn a_goodbye_is_answered_and_nothing_is_received_after_it() {
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
    // By a client, it is out of place for anybody; it belongs to no handshake.
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
fn a_record_that_fails_to_authenticate_does_no_harm_to_those_behind_it() {
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
