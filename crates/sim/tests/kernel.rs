//! Linux's own TCP, measured through a link that loses packets (`tests/models/kernel_tcp.json`, made by `kernel_tcp.py`),
//! against the simulated one: times of handshakes with flights of one to twelve segments at losses from 1 to 20 %.

mod common;

use common::{bearer, class, handshake, message, run, scenario};
use serde::Deserialize;
use shakedown_sim::metrics::Histogram;
use shakedown_sim::{ArrivalSpec, Flush, Outcome, Sender, TransportKind};

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

/// So many of ours that theirs alone decide how far a comparison can tell.
const CLIENTS: u64 = 40_000;

fn simulated(row: &Row) -> Outcome {
    let mut messages = vec![message(Sender::Client, "ClientHello", row.client_bytes[0], 1, 1)];
    for (bytes, unit) in row.server_writes_bytes.iter().zip(1..) {
        messages.push(message(Sender::Server, "Finished", *bytes, 2, unit));
    }
    messages.push(message(Sender::Client, "Finished", row.client_bytes[1], 3, 2));
    let path = bearer(&format!(
        r#"{{"up_bits_per_s": {rate}, "down_bits_per_s": {rate}, "traversal_s": {}, "loss": {}}}"#,
        row.round_trip_s / 2.0,
        row.loss,
        rate = row.rate_bits_per_s,
    ));
    let arrivals = ArrivalSpec::Poisson { per_s: 10.0 };
    let mut scenario =
        scenario(vec![class(handshake(TransportKind::Stream, messages), path)], CLIENTS, arrivals);
    // Each write by itself.
    scenario.flush = Flush::Message;
    run(scenario)
}

/// What the loaded machine that they were measured on adds to each handshake.
const LATE_S: f64 = 0.010;

#[test]
fn handshakes_under_loss_take_what_the_kernel_takes() {
    let text = include_str!("../../../tests/models/kernel_tcp.json");
    let measured: Measured = serde_json::from_str(text).expect("rows");
    let mut wrong = Vec::new();
    for row in &measured.rows {
        let outcome = simulated(row);
        for (name, theirs, ours) in
            [("ready", &row.ready, &outcome.ready), ("done", &row.done, &outcome.done)]
        {
            let mean_s = ours.mean().expect("handshakes") * 1e-9;
            let off = mean_s - theirs.mean_s;
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
            let mut line = title.clone();
            for (share, s) in quantiles {
                // The share of ours that takes no longer than their quantile, what their machine adds taken off.
                let found = share_up_to(ours, s);
                line += &format!(" p{:.0} at {:.1}", share * 100.0, found * 100.0);
            }
            println!("{line} n {}", row.handshakes);
            if off.abs() > 0.03 * theirs.mean_s + 3.0 * theirs.standard_error_s + LATE_S {
                wrong.push(title);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn share_up_to(times: &Histogram, s: f64) -> f64 {
    times.share_up_to(((s - LATE_S / 2.0) * 1e9) as u64).expect("handshakes")
}
