//! With loss the times of engines and of replays have the same distribution: Kolmogorov–Smirnov test at 1 %, with
//! different losses in each.

use super::common::{Subject, openssl, path, replay, run, rustls, scenario, wtls};
use shakedown_link::{BearerSpec, SuperPackets};
use shakedown_sim::ArrivalSpec;
use shakedown_sim::outcome::Cause;
use shakedown_virtual::agreement::{critical, distance};

const LEVEL: f64 = 0.01;
const REPLAYED: u64 = 40_000;

/// `tolerance`: relative difference at which times count as equal; 0 if all messages always have the same length.
fn agree(subject: &Subject, loss: f64, clients: u64, tolerance: f64) {
    let mut bearer = path(60e3, 30e3, 90.0);
    bearer.loss = loss;
    agree_over(subject, bearer, clients, tolerance);
}

fn agree_over(subject: &Subject, bearer: BearerSpec, clients: u64, tolerance: f64) {
    let loss = bearer.loss;
    let mut scenario = scenario(subject.spec(), bearer, clients);
    // At all phases of the server's clock, but hardly any two clients at once.
    scenario.arrivals = ArrivalSpec::Poisson { per_s: 0.01 };
    let engines = run(subject, &scenario).unwrap();
    scenario.clients = Some(REPLAYED);
    scenario.seed = 2;
    let replayed = replay(&scenario);
    let apart = distance(&engines.ready, &replayed.ready, tolerance).unwrap();
    let most = critical(engines.ready.count(), replayed.ready.count(), LEVEL);
    let share = |outcome: &shakedown_sim::Outcome| {
        outcome.failed.values().sum::<u64>() as f64 / outcome.counted as f64
    };
    println!(
        "{}/{} at {loss}: {apart:.4}, critical {most:.4}; means {:.4} s and {:.4} s; failed {:.4} and {:.4}",
        subject.stack,
        subject.name,
        engines.ready.mean().unwrap() * 1e-9,
        replayed.ready.mean().unwrap() * 1e-9,
        share(&engines),
        share(&replayed),
    );
    for (p, q) in
        [0.5, 0.9, 0.99].map(|share| (engines.ready.quantile(share), replayed.ready.quantile(share)))
    {
        println!("  {:.3} s, {:.3} s", p.unwrap() * 1e-9, q.unwrap() * 1e-9);
    }
    assert!(apart <= most, "{} at {loss}: {apart:.4} apart, {most:.4} at 1 %", subject.name);
    // Three standard deviations of a share of so few clients.
    let failed = share(&replayed);
    let spread = 3.0 * (failed * (1.0 - failed) / clients as f64).sqrt() + 1.0 / clients as f64;
    assert!((share(&engines) - failed).abs() <= spread, "{} of {failed} failed", share(&engines));
    assert!(engines.failed.keys().all(|cause| matches!(cause, Cause::Transport | Cause::Connect)));
}

#[test]
fn tls_1_3_under_loss_matches_its_replay() {
    let subject = openssl("tls1.3/x25519/rsa2048/server");
    agree(&subject, 0.05, 1500, 0.0);
    agree(&subject, 0.2, 1500, 0.0);
}

#[test]
fn other_handshakes_and_stacks_under_loss_match_their_replay() {
    // ECDSA signatures are 70 to 72 bytes long, at random: up to half a millisecond on this bearer.
    agree(&openssl("tls1.2/ecdhe_ecdsa+p256/p256/mutual"), 0.05, 700, 0.002);
    agree(&rustls("tls1.3/x25519/p256/server"), 0.05, 700, 0.002);
}

#[test]
fn resumed_sessions_under_loss_match_their_replay() {
    for subject in [
        openssl("tls1.2/rsa/rsa2048/server/resumed"),
        openssl("tls1.3/x25519/p256/server/resumed"),
        rustls("tls1.3/x25519/p256/server/resumed"),
        wtls("wtls/rsa/rsa2048/server/resumed"),
    ] {
        agree(&subject, 0.05, 500, 0.002);
    }
}

/// As in test-beds: segments of different writes are lost together.
#[test]
fn super_packets_under_loss_match_their_replay() {
    let subject = openssl("tls1.3/x25519/mldsa65/server");
    for super_packets in [SuperPackets::Cut, SuperPackets::Whole] {
        let mut bearer = path(1e9, 1e9, 98.0);
        (bearer.loss, bearer.super_packets) = (0.1, super_packets);
        agree_over(&subject, bearer, 500, 0.002);
    }
}

#[test]
fn wtls_under_loss_matches_its_replay() {
    let subject = wtls("wtls/ecdh_ecdsa/163k/mutual");
    agree(&subject, 0.05, 1500, 0.002);
    agree(&subject, 0.2, 1500, 0.002);
}
