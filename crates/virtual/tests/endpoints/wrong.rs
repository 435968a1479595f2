//! Mismatched endpoints and scenarios are rejected with a one-line error.

use super::common::{openssl, path, run, scenario, wtls};
use shakedown_sim::{Discipline, Scenario, Sender};

#[test]
fn handshakes_that_differ_from_the_scenario_are_reported() {
    let subject = openssl("tls1.3/x25519/p256/server");
    let other = |change: fn(&mut Scenario)| {
        let mut scenario = scenario(subject.spec(), path(1e6, 1e6, 20.0), 1);
        change(&mut scenario);
        run(&subject, &scenario).unwrap_err().to_string()
    };
    for (message, change) in [
        (
            "the client finished its handshake without CertificateRequest, which has a cost",
            (|scenario| {
                let messages = &mut scenario.classes[0].handshake.messages;
                let mut more = messages[1].clone();
                more.name = "CertificateRequest".into();
                messages.insert(2, more);
            }) as fn(&mut Scenario),
        ),
        ("the server exchanged CertificateVerify, which has no cost", |scenario| {
            scenario.classes[0].handshake.messages.retain(|message| message.name != "CertificateVerify");
        }),
        ("server.discipline: not with endpoints; accepted: fifo", |scenario| {
            scenario.server.discipline = Discipline::Ps;
        }),
        ("server.max_handshakes and server.accept_queue: not", |scenario| {
            scenario.server.max_handshakes = Some(3);
        }),
        ("classes: not with endpoints", |scenario| scenario.classes.push(scenario.classes[0].clone())),
        ("server.workers is 0", |scenario| scenario.server.workers = 0),
    ] {
        let error = other(change);
        assert!(error.starts_with(message), "{error}");
    }
    let datagrams = wtls("wtls/ecdh_ecdsa/163k/mutual");
    let mut mixed = scenario(datagrams.spec(), path(1e6, 1e6, 20.0), 1);
    let error = run(&subject, &mixed).unwrap_err().to_string();
    assert!(error.starts_with("the endpoints use a stream and the recorded handshake datagrams"), "{error}");
    mixed.classes[0].handshake.messages.retain(|message| message.from == Sender::Client);
    assert!(run(&datagrams, &mixed).is_err());
}
