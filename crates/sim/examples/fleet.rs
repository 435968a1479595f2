//! How fast one core simulates a fleet: full TLS 1.3 handshakes over TCP, and customers of a plain queue.
//!
//! `cargo run --release -p shakedown-sim --example fleet -- [fleet|storm|queue] [CLIENTS [PER_S]]` prints one JSON object:
//! events and handshakes a second of processor time (which a busy machine doesn't stretch), and the largest resident size.

use serde_json::json;
use shakedown_link::{BearerSpec, DistributionSpec};
use shakedown_sim::{
    ArrivalSpec, PricedHandshake, PricedMessage, Scenario, Sender, Simulation, TransportKind,
};
use std::ops::ControlFlow;
use std::time::Instant;

fn constant(s: f64) -> DistributionSpec {
    DistributionSpec::Constant { s }
}

/// (sender, name, bytes, flight, unit, time to make, time to process)
type Row = (Sender, &'static str, u32, u32, u32, f64, f64);

fn handshake(transport: TransportKind, rows: &[Row]) -> PricedHandshake {
    let messages =
        rows.iter().map(|&(from, name, bytes, flight, unit, generate_s, process_s)| PricedMessage {
            from,
            name: name.into(),
            bytes,
            flight,
            unit,
            generate: constant(generate_s),
            process: constant(process_s),
        });
    PricedHandshake {
        name: "fleet".into(),
        transport,
        messages: messages.collect(),
        write_bytes: Some(4096),
        retransmission: None,
        client_cpu_w: None,
        client_idle_w: None,
    }
}

/// TLS 1.3 with one certificate, as OpenSSL sends it.
fn tls13() -> PricedHandshake {
    use Sender::{Client, Server};
    handshake(
        TransportKind::Stream,
        &[
            (Client, "ClientHello", 224, 1, 1, 60e-6, 20e-6),
            (Server, "ServerHello", 127, 2, 1, 60e-6, 60e-6),
            (Server, "EncryptedExtensions", 28, 2, 1, 2e-6, 2e-6),
            (Server, "Certificate", 620, 2, 1, 5e-6, 150e-6),
            (Server, "CertificateVerify", 101, 2, 1, 40e-6, 90e-6),
            (Server, "Finished", 74, 2, 1, 10e-6, 10e-6),
            (Client, "Finished", 74, 3, 2, 10e-6, 10e-6),
        ],
    )
}

fn scenario(kind: &str, clients: u64, per_s: Option<f64>) -> Option<Scenario> {
    let (handshake, bearer, arrivals, workers) = match kind {
        "fleet" => {
            let bearer = BearerSpec::of_rates(Some(12e6), Some(12e6), 0.035);
            (tls13(), bearer, ArrivalSpec::Poisson { per_s: per_s.unwrap_or(50_000.0) }, 8)
        }
        "storm" => {
            let bearer = BearerSpec { loss: 0.01, ..BearerSpec::of_rates(Some(18e3), Some(24e3), 0.1) };
            (tls13(), bearer, ArrivalSpec::Storm { within_s: 10.0 }, 8)
        }
        "queue" => {
            let service = handshake(TransportKind::Ideal, &[(Sender::Client, "Request", 1, 1, 1, 0.0, 0.01)]);
            (
                service,
                BearerSpec::of_rates(None, None, 0.0),
                ArrivalSpec::Poisson { per_s: per_s.unwrap_or(80.0) },
                1,
            )
        }
        _ => return None,
    };
    let class = json!({ "handshake": handshake, "bearer": bearer });
    let text = json!({
        "classes": [class], "clients": clients, "arrivals": arrivals, "server": { "workers": workers }, "seed": 1,
    });
    serde_json::from_value(text).ok()
}

/// The largest resident size so far, in MiB (Linux).
fn peak_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<f64>().ok()? / 1024.0)
}

/// Processor time of this process so far (Linux, in ticks of 10 ms); elsewhere `None`.
fn processor_s() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = stat.rsplit(')').next()?.split_whitespace().skip(11);
    let ticks = fields.next()?.parse::<f64>().ok()? + fields.next()?.parse::<f64>().ok()?;
    Some(ticks / 100.0)
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_else(|| "fleet".into());
    let clients = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(200_000);
    let per_s = arguments.next().and_then(|text| text.parse().ok());
    let simulation = scenario(&kind, clients, per_s).and_then(|scenario| Simulation::new(scenario).ok());
    let Some(simulation) = simulation else {
        eprintln!("fleet: accepted: fleet, storm or queue, and a number of clients");
        std::process::exit(2);
    };
    let begun = Instant::now();
    let outcome = simulation.run(&mut |_| ControlFlow::Continue(()));
    let wall_s = begun.elapsed().as_secs_f64();
    let took_s = processor_s().unwrap_or(wall_s);
    let Some(report) = outcome.map(|outcome| outcome.report()) else { return };
    let row = json!({
        "scenario": kind,
        "clients": report.clients,
        "completed": report.completed,
        "p50_s": report.handshake_s.p50,
        "p95_s": report.handshake_s.p95,
        "queue_wait_s": report.queue_wait_s.mean,
        "utilisation": report.utilisation,
        "packets": report.traffic.packets,
        "events": report.events,
        "peak_in_flight": report.peak_in_flight,
        "wall_s": wall_s,
        "processor_s": took_s,
        "events_per_s": report.events as f64 / took_s,
        "handshakes_per_s": report.completed as f64 / took_s,
        "peak_mib": peak_mib(),
    });
    println!("{row}");
}
