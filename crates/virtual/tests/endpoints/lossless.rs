//! Without loss a replay takes the same time as the engines, within 1 %.

use super::common::{Subject, bearers, openssl, path, replay, run, rustls, scenario, wtls};
use shakedown_link::DistributionSpec;
use shakedown_sim::{ArrivalSpec, Outcome, RetrySpec, Sender, ServerSpec};

const SUBJECTS: [fn() -> Subject; 14] = [
    || openssl("tls1.3/x25519/p256/server"),
    || openssl("tls1.3/x25519/rsa2048/mutual"),
    || openssl("tls1.3/mlkem1024/p384/server"),
    || openssl("tls1.2/ecdhe_ecdsa+p256/p256/mutual"),
    || openssl("tls1.2/rsa/rsa2048/server/resumed"),
    || openssl("tls1.2/ecdhe_ecdsa+p256/p256/server/ticket"),
    || openssl("tls1.3/x25519/p256/server/resumed"),
    || rustls("tls1.3/x25519/p256/server"),
    || rustls("tls1.3/x25519/p256/server/resumed"),
    || rustls("tls1.2/ecdhe_ecdsa+p256/p256/server"),
    || rustls("tls1.2/ecdhe_ecdsa+p256/p256/server/resumed"),
    || wtls("wtls/ecdh_ecdsa/163k/mutual"),
    || wtls("wtls/rsa/rsa2048/server"),
    || wtls("wtls/rsa/rsa2048/server/resumed"),
];

fn seconds(histogram: &shakedown_sim::histogram::Histogram) -> f64 {
    histogram.mean().unwrap() * 1e-9
}

fn compare(what: &str, engines: &Outcome, replayed: &Outcome) {
    assert_eq!(engines.completed, engines.counted, "{what}");
    for (name, of) in [
        ("ready", |outcome: &Outcome| seconds(&outcome.ready)),
        ("done", |outcome: &Outcome| seconds(&outcome.done)),
    ] as [(&str, fn(&Outcome) -> f64); 2]
    {
        let (ours, theirs) = (of(engines), of(replayed));
        println!(
            "{what}, {name}: engines {ours:.4} s, replayed {theirs:.4} s, {:+.3} %",
            100.0 * (theirs / ours - 1.0)
        );
        assert!(
            (theirs / ours - 1.0).abs() <= 0.01,
            "{what}, {name}: engines {ours:.4} s, replayed {theirs:.4} s"
        );
    }
}

#[test]
fn replay_times_match_the_engines() {
    for subject in SUBJECTS {
        let subject = subject();
        let handshake = subject.spec();
        for (name, bearer) in bearers() {
            let scenario = scenario(handshake.clone(), bearer, 3);
            let engines = run(&subject, &scenario).unwrap();
            compare(&format!("{}/{} over {name}", subject.stack, subject.name), &engines, &replay(&scenario));
        }
    }
}

/// Flights are longer than one packet, and longer than one transmission of the radio.
#[test]
fn replay_matches_engines_with_short_packets_and_half_duplex() {
    for subject in [openssl("tls1.2/ecdhe_ecdsa+p256/p256/mutual"), wtls("wtls/rsa/rsa2048/server")] {
        let mut bearer = path(50e3, 50e3, 20.0);
        bearer.mtu_bytes = 600;
        bearer.half_duplex = true;
        let scenario = scenario(subject.spec(), bearer, 3);
        let engines = run(&subject, &scenario).unwrap();
        compare(subject.name, &engines, &replay(&scenario));
    }
}

/// An engine's clock stops while its processor computes: a device that computes longer than the first timeout still
/// waits the whole timeout before it retransmits.
#[test]
fn only_a_slow_server_causes_retransmissions() {
    let subject = wtls("wtls/ecdh_ecdsa/163k/mutual");
    for (server_s, again) in [(0.001, false), (1.5, true)] {
        let mut handshake = subject.spec();
        handshake.client_idle_w = Some(0.0);
        for message in &mut handshake.messages {
            let is_clients = message.from == Sender::Client;
            let [generate_s, process_s] = if is_clients { [1.5, server_s] } else { [server_s, 1.5] };
            message.generate = DistributionSpec::Constant { s: generate_s };
            message.process = DistributionSpec::Constant { s: process_s };
        }
        let scenario = scenario(handshake, path(9600.0, 9600.0, 391.0), 2);
        let engines = run(&subject, &scenario).unwrap();
        let replayed = replay(&scenario);
        let [ours, theirs] = [&engines, &replayed].map(|outcome| outcome.report());
        // At 1 W: the client computes for more than 9 s.
        assert!(ours.energy_j.mean.unwrap() > 9.0, "{:?}", ours.energy_j);
        assert_eq!(ours.traffic.retransmissions > 0, again, "{:?}", ours.traffic);
        assert_eq!(ours.traffic.retransmissions, theirs.traffic.retransmissions);
        assert_eq!(ours.traffic.packets, theirs.traffic.packets);
        compare(subject.name, &engines, &replayed);
    }
}

/// Many clients arrive at once and wait for two workers.
#[test]
fn server_queue_matches_the_replay() {
    for subject in [openssl("tls1.3/x25519/p256/server"), wtls("wtls/ecdh_ecdsa/163k/mutual")] {
        let mut scenario = scenario(subject.spec(), path(1e6, 1e6, 20.0), 60);
        scenario.arrivals = ArrivalSpec::Storm { within_s: 0.0 };
        scenario.server = ServerSpec { workers: 2, ..ServerSpec::default() };
        let engines = run(&subject, &scenario).unwrap();
        let replayed = replay(&scenario);
        compare(subject.name, &engines, &replayed);
        let (ours, theirs) = (engines.report(), replayed.report());
        for (name, ours, theirs) in [
            ("wait", ours.client_wait_s.mean, theirs.client_wait_s.mean),
            ("p95", ours.handshake_s.p95, theirs.handshake_s.p95),
            ("energy", ours.energy_j.mean, theirs.energy_j.mean),
            ("utilisation", Some(ours.utilisation), Some(theirs.utilisation)),
        ] {
            let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
            assert!((theirs / ours - 1.0).abs() < 0.01, "{}, {name}: {ours}, {theirs}", subject.name);
        }
        assert!(ours.client_wait_s.mean.unwrap() > 0.05, "{:?}", ours.client_wait_s);
    }
}

#[test]
fn computation_without_cost_takes_no_time() {
    let subject = openssl("tls1.3/x25519/p256/server");
    let mut scenario = scenario(subject.spec(), path(12e6, 12e6, 35.0), 2);
    // At 1 W while it computes, the client's energy in joules is its processor time in seconds.
    scenario.classes[0].handshake.client_idle_w = Some(0.0);
    let (mut without_cost, free) = (scenario.clone(), DistributionSpec::Constant { s: 0.0 });
    for message in &mut without_cost.classes[0].handshake.messages {
        (message.generate, message.process) = (free.clone(), free.clone());
    }
    let free = run(&subject, &without_cost).unwrap().report();
    assert_eq!(free.energy_j.max, Some(0.0));
    let with_costs = run(&subject, &scenario).unwrap().report();
    let between = with_costs.handshake_s.mean.unwrap() - free.handshake_s.mean.unwrap();
    // Not all of it: the server's 2 ms each for Finished and the message before it fall after the client is ready.
    let server_s = with_costs.server_s.mean.unwrap() * with_costs.server_s.n as f64 / 2.0;
    let work = with_costs.energy_j.mean.unwrap() + server_s;
    assert!(between > 0.02 && between <= work, "{between} of {work}");
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    for subject in [openssl("tls1.2/ecdhe_ecdsa+p256/p256/mutual"), wtls("wtls/ecdh_ecdsa/163k/mutual")] {
        let mut bearer = path(60e3, 30e3, 90.0);
        bearer.loss = 0.1;
        bearer.duplication = 0.05;
        bearer.reordering = 0.05;
        bearer.reordering_s = 0.2;
        let mut one = scenario(subject.spec(), bearer, 20);
        one.series_s = 10.0;
        one.replications = 2;
        let text = |outcome| serde_json::to_string(&outcome).unwrap();
        let first = text(run(&subject, &one).unwrap());
        assert_eq!(first, text(run(&subject, &one).unwrap()), "{}", subject.name);
        one.seed = 2;
        assert_ne!(first, text(run(&subject, &one).unwrap()), "{}", subject.name);
    }
}

/// Clients that time out retry, and the server still processes the messages of abandoned attempts.
#[test]
fn timeouts_load_the_server_as_in_the_replay() {
    let subject = openssl("tls1.3/x25519/rsa2048/server");
    let mut scenario = scenario(subject.spec(), path(1e7, 1e7, 20.0), 120);
    scenario.arrivals = ArrivalSpec::Storm { within_s: 0.2 };
    scenario.timeout_s = Some(0.6);
    scenario.retry = Some(RetrySpec { attempts: 3, delay_s: 0.3, factor: 1.0, maximum_s: 1.0, jitter: 0.0 });
    let [ours, theirs] =
        [run(&subject, &scenario).unwrap(), replay(&scenario)].map(|outcome| outcome.report());
    assert!(ours.attempts > 150, "{ours:?}");
    assert_eq!(ours.completed + ours.failed.values().sum::<u64>(), 120);
    for (name, ours, theirs) in [
        ("attempts", ours.attempts as f64, theirs.attempts as f64),
        ("completed", ours.completed as f64, theirs.completed as f64),
        ("server's work", ours.utilisation * ours.virtual_s, theirs.utilisation * theirs.virtual_s),
    ] {
        assert!((theirs / ours - 1.0).abs() < 0.1, "{name}: {ours}, replayed {theirs}");
    }
}
