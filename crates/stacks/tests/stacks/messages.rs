//! The messages and flights of handshakes, as in the RFCs' figures.

use super::common;
use shakedown_trace::Trace;

/// Flights, beginning with the client's, separated by `>`; RFC 6101 5.5, RFC 5246 7.3, RFC 5077 3.1, RFC 8446 2.
const FLOWS: &[(&str, &str)] = &[
    (
        "ssl3/rsa",
        "ClientHello > ServerHello Certificate ServerHelloDone > ClientKeyExchange ChangeCipherSpec Finished > \
         ChangeCipherSpec Finished",
    ),
    // An SSL 3.0 client without a certificate responds with an alert; there is no empty list (RFC 6101 5.6.6).
    (
        "ssl3/rsa/requested",
        "ClientHello > ServerHello Certificate CertificateRequest ServerHelloDone > ClientKeyExchange \
         ChangeCipherSpec Finished > ChangeCipherSpec Finished",
    ),
    (
        "tls1.0/rsa/requested",
        "ClientHello > ServerHello Certificate CertificateRequest ServerHelloDone > Certificate ClientKeyExchange \
         ChangeCipherSpec Finished > ChangeCipherSpec Finished",
    ),
    (
        "tls1.1/dhe_dss+dh1024/dsa1024/mutual",
        "ClientHello > ServerHello Certificate ServerKeyExchange CertificateRequest ServerHelloDone > Certificate \
         ClientKeyExchange CertificateVerify ChangeCipherSpec Finished > ChangeCipherSpec Finished",
    ),
    (
        "tls1.2/ecdhe_ecdsa",
        "ClientHello > ServerHello Certificate ServerKeyExchange ServerHelloDone > ClientKeyExchange \
         ChangeCipherSpec Finished > ChangeCipherSpec Finished",
    ),
    (
        "tls1.2/dh_anon",
        "ClientHello > ServerHello ServerKeyExchange ServerHelloDone > ClientKeyExchange ChangeCipherSpec Finished > \
         ChangeCipherSpec Finished",
    ),
    (
        "tls1.2/psk",
        "ClientHello > ServerHello ServerHelloDone > ClientKeyExchange ChangeCipherSpec Finished > ChangeCipherSpec \
         Finished",
    ),
    (
        "tls1.2/rsa_psk",
        "ClientHello > ServerHello Certificate ServerHelloDone > ClientKeyExchange ChangeCipherSpec Finished > \
         ChangeCipherSpec Finished",
    ),
    ("tls1.2/rsa/resumed", "ClientHello > ServerHello ChangeCipherSpec Finished > ChangeCipherSpec Finished"),
    (
        "tls1.2/rsa/mutual/ticket",
        "ClientHello > ServerHello ChangeCipherSpec Finished > ChangeCipherSpec Finished",
    ),
    // The ChangeCipherSpecs of TLS 1.3 are for compatibility with middleboxes (RFC 8446 D.4).
    (
        "tls1.3/x25519",
        "ClientHello > ServerHello ChangeCipherSpec EncryptedExtensions Certificate CertificateVerify Finished > \
         ChangeCipherSpec Finished",
    ),
    (
        "tls1.3/x25519/requested",
        "ClientHello > ServerHello ChangeCipherSpec EncryptedExtensions CertificateRequest Certificate \
         CertificateVerify Finished > ChangeCipherSpec Certificate Finished",
    ),
    (
        "tls1.3/x25519mlkem768/mldsa44/mutual",
        "ClientHello > ServerHello ChangeCipherSpec EncryptedExtensions CertificateRequest Certificate \
         CertificateVerify Finished > ChangeCipherSpec Certificate CertificateVerify Finished",
    ),
    (
        "tls1.3/psk",
        "ClientHello > ServerHello ChangeCipherSpec EncryptedExtensions Finished > ChangeCipherSpec Finished",
    ),
    (
        "tls1.3/p256/server/resumed",
        "ClientHello > ServerHello ChangeCipherSpec EncryptedExtensions Finished > ChangeCipherSpec Finished",
    ),
];

fn flow(trace: &Trace) -> String {
    let flight = |number: u32| {
        let messages = trace.messages.iter().filter(|message| message.flight == Some(number));
        messages.map(|message| message.name.as_str()).collect::<Vec<_>>().join(" ")
    };
    (1..=common::flights(trace)).map(flight).collect::<Vec<_>>().join(" > ")
}

#[test]
fn flights_match_the_rfcs() {
    let _shared = common::shared();
    let mut failures = Vec::new();
    for (name, expected) in FLOWS {
        let trace = common::trace(&common::suite(name), &common::settings()).unwrap();
        let found = flow(&trace);
        if found != *expected {
            failures.push(format!("{name}:\n  expected {expected}\n  found    {found}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Requested tickets are sent after the handshake in TLS 1.3, and inside it in earlier versions.
#[test]
fn tickets_are_issued_on_request() {
    let _shared = common::shared();
    let with = |tickets| shakedown_stacks::Settings { tickets, ..common::settings() };
    let trace = |name, tickets| common::trace(&common::suite(name), &with(tickets)).unwrap();
    let tickets = |trace: &Trace| {
        let all = trace.messages.iter().filter(|message| message.name.as_str() == "NewSessionTicket");
        all.map(|message| message.flight).collect::<Vec<_>>()
    };
    for suite in ["tls1.2/rsa", "tls1.3/x25519"] {
        assert!(tickets(&trace(suite, 0)).is_empty(), "{suite}");
    }
    assert_eq!(tickets(&trace("tls1.2/rsa", 1)), [Some(4)]);
    assert_eq!(tickets(&trace("tls1.3/x25519", 2)), [None, None]);
    assert_eq!(common::flights(&trace("tls1.3/x25519", 2)), 3);
}
