//! Scenarios that several tests use.
#![allow(dead_code)] // each test file uses its own part

use shakedown_link::{BearerSpec, DistributionSpec};
use shakedown_sim::histogram::Histogram;
use shakedown_sim::{
    ArrivalSpec, ClassSpec, HandshakeSpec, MessageSpec, Outcome, Scenario, Sender, ServerSpec, Simulation,
    TransportKind,
};
use std::ops::ControlFlow;

pub fn constant(s: f64) -> DistributionSpec {
    DistributionSpec::Constant { s }
}

pub fn message(from: Sender, name: &str, bytes: u32, flight: u32, unit: u32) -> MessageSpec {
    MessageSpec {
        from,
        name: name.into(),
        bytes,
        flight,
        unit,
        generate: constant(0.0),
        process: constant(0.0),
    }
}

/// The share of values that are at most `value`, to within a bucket.
pub fn share_up_to(times: &Histogram, value: u64) -> f64 {
    let below: u64 = times.buckets().filter(|(least, ..)| *least <= value).map(|(.., count)| count).sum();
    below as f64 / times.count() as f64
}

pub fn bearer(text: &str) -> BearerSpec {
    serde_json::from_str(text).expect("a bearer")
}

/// No delay and no loss.
pub fn instant() -> BearerSpec {
    bearer(r#"{"up_bits_per_s": null, "down_bits_per_s": null, "traversal_s": 0}"#)
}

pub fn handshake(transport: TransportKind, messages: Vec<MessageSpec>) -> HandshakeSpec {
    HandshakeSpec {
        name: "test".into(),
        transport,
        messages,
        write_bytes: None,
        retransmission: None,
        client_cpu_w: None,
        client_idle_w: None,
    }
}

/// TLS 1.3 with a chain: flights as OpenSSL sends them, about 0.35 kB and the chain.
pub fn tls13(chain_bytes: u32) -> HandshakeSpec {
    use Sender::{Client, Server};
    let mut handshake = handshake(
        TransportKind::Stream,
        vec![
            message(Client, "ClientHello", 224, 1, 1),
            message(Server, "ServerHello", 127, 2, 1),
            message(Server, "EncryptedExtensions", 28, 2, 1),
            message(Server, "Certificate", chain_bytes, 2, 1),
            message(Server, "CertificateVerify", 101, 2, 1),
            message(Server, "Finished", 74, 2, 1),
            message(Client, "Finished", 80, 3, 2),
        ],
    );
    handshake.write_bytes = Some(4096);
    handshake
}

/// A request that a server serves, without a network: a queue.
pub fn service(time: DistributionSpec) -> HandshakeSpec {
    let mut request = message(Sender::Client, "Request", 1, 1, 1);
    request.process = time;
    handshake(TransportKind::Ideal, vec![request])
}

pub fn class(handshake: HandshakeSpec, bearer: BearerSpec) -> ClassSpec {
    ClassSpec {
        weight: 1.0,
        handshake,
        resumed: None,
        resumption: 0.0,
        resumption_steps: Vec::new(),
        bearer,
        cell: None,
        record_work_s: 0.0,
    }
}

pub fn scenario(classes: Vec<ClassSpec>, clients: u64, arrivals: ArrivalSpec) -> Scenario {
    Scenario {
        classes,
        clients: Some(clients),
        arrivals,
        server: ServerSpec { workers: 1, ..ServerSpec::default() },
        tcp: Default::default(),
        timeout_s: None,
        retry: None,
        warmup_clients: 0,
        cooldown_clients: 0,
        records: None,
        precision: None,
        series_s: 0.0,
        seed: 1,
        replications: 1,
        first_replication: 0,
    }
}

pub fn run(scenario: Scenario) -> Outcome {
    let simulation = Simulation::new(scenario).expect("a valid scenario");
    simulation.run(&mut |_| ControlFlow::Continue(())).expect("not broken off")
}
