//! A suite, recorded once and given costs; its endpoints; the same scenario run and replayed.

use serde_json::json;
use shakedown_link::{BearerSpec, DistributionSpec};
use shakedown_sim::{
    ArrivalSpec, ClassSpec, HandshakeSpec, MessageSpec, Outcome, Retransmission, Scenario, Sender,
    ServerSpec, Simulation, TransportKind,
};
use shakedown_stacks::{Peers, Settings, prepare};
use shakedown_trace::driver::Loopback;
use shakedown_trace::endpoint::Transport;
use shakedown_trace::{Counter, Recorded, Recording, Side, Trace};
use shakedown_virtual::{EndpointSimulation, Ends, VirtualError};
use std::ops::ControlFlow;
use std::path::Path;

/// WTLS (WAP-261): only the client has a timer; the server answers a retransmitted flight.
const WTLS: Retransmission = Retransmission {
    initial_s: 3.0,
    maximum_s: 3600.0,
    sends: 5,
    server_timer: false,
    answers_duplicates: true,
    fragment_bytes: None,
};

/// OpenSSL writes a flight to TCP in pieces of its buffer's size.
const WRITE_BYTES: u32 = 4096;

/// A suite on one stack.
pub struct Subject {
    pub name: &'static str,
    pub stack: &'static str,
}

pub fn openssl(name: &'static str) -> Subject {
    Subject { name, stack: "openssl" }
}

pub fn rustls(name: &'static str) -> Subject {
    Subject { name, stack: "rustls" }
}

pub fn wtls(name: &'static str) -> Subject {
    Subject { name, stack: "wtls" }
}

impl Subject {
    pub fn peers(&self) -> Peers {
        let stack = Some(self.stack.to_owned());
        let settings = Settings {
            cache: Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("keys")),
            client_stack: stack.clone(),
            server_stack: stack,
            seed: (self.stack != "rustls").then_some(1),
            ..Settings::default()
        };
        prepare(&self.name.parse().unwrap(), &settings).unwrap()
    }

    /// Its messages and their costs: the server spends 1 ms on a sent message and 2 ms on a received one, the client
    /// four times as much.
    pub fn spec(&self) -> HandshakeSpec {
        let peers = self.peers();
        let pair = peers.pair().unwrap();
        let transport = pair.client.transport();
        let recording = || Recording::new(Counter::NANOSECONDS);
        let mut client = Recorded::new(pair.client, recording());
        let mut server = Recorded::new(pair.server, recording());
        Loopback::new().handshake(&mut client, &mut server, &mut ()).unwrap();
        let trace = Trace::join(&client.half_trace().unwrap(), &server.half_trace().unwrap()).unwrap();
        let last = trace.messages.iter().filter_map(|message| message.flight).max().unwrap();
        let messages = trace.messages.iter().map(|message| {
            let is_clients = message.from == Side::Client;
            let [generate_s, process_s] = if is_clients { [0.004, 0.002] } else { [0.001, 0.008] };
            MessageSpec {
                from: if is_clients { Sender::Client } else { Sender::Server },
                name: message.name.as_str().into(),
                bytes: message.bytes,
                flight: message.flight.unwrap_or(last + 1),
                unit: message.unit,
                generate: DistributionSpec::Constant { s: generate_s },
                process: DistributionSpec::Constant { s: process_s },
            }
        });
        let is_stream = transport == Transport::Stream;
        HandshakeSpec {
            name: self.name.into(),
            transport: if is_stream { TransportKind::Stream } else { TransportKind::Datagram },
            messages: messages.collect(),
            write_bytes: is_stream.then_some(WRITE_BYTES),
            retransmission: (!is_stream).then_some(WTLS),
            client_cpu_w: Some(1.0),
            client_idle_w: Some(0.1),
        }
    }
}

pub fn scenario(handshake: HandshakeSpec, bearer: BearerSpec, clients: u64) -> Scenario {
    Scenario {
        classes: vec![ClassSpec {
            weight: 1.0,
            handshake,
            resumed: None,
            resumption: 0.0,
            resumption_steps: Vec::new(),
            bearer,
            cell: None,
            record_work_s: 0.0,
        }],
        clients: Some(clients),
        // So rarely that no client waits for another.
        arrivals: ArrivalSpec::Deterministic { per_s: 0.01 },
        server: ServerSpec::default(),
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

/// Runs the engines.
pub fn run(subject: &Subject, scenario: &Scenario) -> Result<Outcome, VirtualError> {
    let mut peers = subject.peers();
    let seeded = peers.seed.is_some();
    let mut make = |number: u64| {
        if seeded {
            peers.seed = Some(scenario.seed << 32 ^ number);
        }
        let pair = peers.pair().map_err(|error| error.to_string())?;
        Ok(Ends { client: pair.client, server: pair.server })
    };
    let simulation = EndpointSimulation::new(scenario.clone())?;
    Ok(simulation.run(&mut make, &mut |_| ControlFlow::Continue(()))?.unwrap())
}

/// Replays the recorded messages.
pub fn replay(scenario: &Scenario) -> Outcome {
    Simulation::new(scenario.clone()).unwrap().run(&mut |_| ControlFlow::Continue(())).unwrap()
}

/// Rates in bit/s, one-way delay in ms.
pub fn path(up: f64, down: f64, delay_ms: f64) -> BearerSpec {
    let spec = json!({"up_bits_per_s": up, "down_bits_per_s": down, "traversal_s": delay_ms / 1e3});
    serde_json::from_value(spec).unwrap()
}

/// The bearers on which Linux was measured.
pub fn bearers() -> [(&'static str, BearerSpec); 5] {
    [
        ("GSM CSD", path(9600.0, 9600.0, 391.0)),
        ("GPRS", path(10_500.0, 18_800.0, 376.0)),
        ("NB-IoT", path(30e3, 60e3, 800.0)),
        ("LTE", path(12e6, 12e6, 35.0)),
        ("GEO", path(10e6, 10e6, 300.0)),
    ]
}
