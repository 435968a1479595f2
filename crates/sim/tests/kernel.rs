//! Linux's TCP, measured over a link that loses packets (`tests/predict/kernel_tcp.json`, made by `kernel_tcp.py`),
//! compared with the simulated one: handshakes with flights of one to twelve segments at losses from 1 to 20 %. Means
//! agree within 3 % and chance, quantiles within two points of their shares.

mod common;

use common::{bearer, class, handshake, message, run, scenario};
use serde::Deserialize;
use shakedown_sim::histogram::Histogram;
use shakedown_sim::{ArrivalSpec, Outcome, Sender, TransportKind};

#[derive(Deserialize)]
struct Measured {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    round_trip_s: f64,
    rate_bits_per_s: f64,
    loss: f64,
    client_bytes: [u32; 2],
    server_writes_bytes: Vec<u32>,
    handshakes: u32,
    ready: Times,
    done: Times,
}

#[derive(Deserialize)]
struct Times {
    mean_s: f64,
    standard_error_s: f64,
    p50_s: f64,
    p75_s: f64,
    p90_s: f64,
    p95_s: f64,
    p99_s: f64,
}

/// So many clients that only the size of the measured sample limits the comparison.
const CLIENTS: u64 = 40_000;

fn simulated(row: &Row) -> Outcome {
    let mut messages = vec![message(Sender::Client, "ClientHello", row.client_bytes[0], 1, 1)];
    // Each write is a flight of its own, so that it is sent separately.
    for (bytes, flight) in row.server_writes_bytes.iter().zip(2..) {
        messages.push(message(Sender::Server, "Finished", *bytes, flight, 1));
    }
    let last_flight = 2 + row.server_writes_bytes.len() as u32;
    messages.push(message(Sender::Client, "Finished", row.client_bytes[1], last_flight, 2));
    let path = bearer(&format!(
        r#"{{"up_bits_per_s": {rate}, "down_bits_per_s": {rate}, "traversal_s": {}, "loss": {}}}"#,
        row.round_trip_s / 2.0,
        row.loss,
        rate = row.rate_bits_per_s,
    ));
    let arrivals = ArrivalSpec::Poisson { per_s: 10.0 };
    run(scenario(vec![class(handshake(TransportKind::Stream, messages), path)], CLIENTS, arrivals))
}

/// Time that the loaded machine of the measurement adds to each handshake, if a row does not show it.
const LATE_S: f64 = 0.010;

/// The same for one row: at low losses, more than half of the handshakes lose nothing and differ only in this time.
fn late_s(theirs: &Times, ours: &Histogram) -> f64 {
    let quantile_s = |share| ours.quantile(share).expect("handshakes") * 1e-9;
    let (least_s, median_s) = (quantile_s(0.01), quantile_s(0.55));
    if median_s < 1.01 * least_s { (theirs.p50_s - median_s).max(LATE_S) } else { LATE_S }
}

#[test]
fn handshake_times_under_loss_match_the_kernel() {
    let text = include_str!("../../../tests/predict/kernel_tcp.json");
    let measured: Measured = serde_json::from_str(text).expect("rows");
    let mut wrong = Vec::new();
    for row in &measured.rows {
        let outcome = simulated(row);
        for (name, theirs, ours) in
            [("ready", &row.ready, &outcome.ready), ("done", &row.done, &outcome.done)]
        {
            let mean_s = ours.mean().expect("handshakes") * 1e-9;
            let off = mean_s - theirs.mean_s;
            let late_s = late_s(theirs, ours);
            let title = format!(
                "{name}, {} s, {}, {:?}: mean {mean_s:.3} ({:.3} ± {:.3}, {:+.1} %)",
                row.round_trip_s,
                row.loss,
                row.server_writes_bytes,
                theirs.mean_s,
                theirs.standard_error_s,
                100.0 * off / theirs.mean_s,
            );
            let quantiles = [
                (0.5, theirs.p50_s),
                (0.75, theirs.p75_s),
                (0.9, theirs.p90_s),
                (0.95, theirs.p95_s),
                (0.99, theirs.p99_s),
            ];
            println!("{title}");
            for (share, s) in quantiles {
                // Must lie between simulated quantiles two points and chance below and above its share.
                let chance = 3.0 * (share * (1.0 - share) / f64::from(row.handshakes)).sqrt();
                let [low_s, high_s] = [-1.0, 1.0]
                    .map(|sign| ours.quantile(share + sign * (0.02 + chance)).expect("handshakes") * 1e-9);
                if s < 0.98 * low_s || s > 1.02 * high_s + 1.5 * late_s {
                    wrong.push(format!("{title}: {s} at {share}, ours {low_s:.3} to {high_s:.3}"));
                }
            }
            if off.abs() > 0.03 * theirs.mean_s + 3.0 * theirs.standard_error_s + late_s {
                wrong.push(title);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
