//! A replayed handshake, compared with the same handshake of many clients in a simulation.

mod common;

use common::{bearer, class, constant, handshake, message, run, scenario, tls13};
use shakedown_link::BearerSpec;
use shakedown_sim::replay::Times;
use shakedown_sim::tcp::TcpConfig;
use shakedown_sim::{
    ArrivalSpec, HandshakeSpec, Replay, Replayed, Report, Retransmission, Sender, TransportKind,
};

const WTLS: Retransmission = Retransmission {
    initial_s: 3.0,
    maximum_s: 48.0,
    sends: 5,
    server_timer: false,
    answers_duplicates: true,
    fragment_bytes: None,
};

fn worked(mut handshake: HandshakeSpec) -> HandshakeSpec {
    for (number, message) in handshake.messages.iter_mut().enumerate() {
        message.generate = constant(0.0003 * (number + 1) as f64);
        message.process = constant(0.002 / (number + 1) as f64);
    }
    handshake
}

fn datagrams(chain: u32, retransmission: Retransmission) -> HandshakeSpec {
    use Sender::{Client, Server};
    let mut found = handshake(
        TransportKind::Datagram,
        vec![
            message(Client, "ClientHello", 224, 1, 1),
            message(Server, "ServerHello", 127, 2, 1),
            message(Server, "Certificate", chain, 2, 2),
            message(Server, "ServerHelloDone", 74, 2, 3),
            message(Client, "Finished", 80, 3, 2),
            message(Server, "Finished", 80, 4, 4),
        ],
    );
    found.retransmission = Some(retransmission);
    found
}

fn with_tickets(chain: u32) -> HandshakeSpec {
    let mut found = tls13(chain);
    found.messages.push(message(Sender::Server, "NewSessionTicket", 250, 4, 3));
    found
}

fn replay(handshake: &HandshakeSpec, bearer: &BearerSpec, seed: u64) -> Replayed {
    let replay = Replay {
        handshake: handshake.clone(),
        bearer: bearer.clone(),
        tcp: TcpConfig::default(),
        seed,
        coarse: false,
    };
    replay.run().expect("valid")
}

/// Independent clients.
fn simulate(handshake: &HandshakeSpec, bearer: &BearerSpec, clients: u64) -> Report {
    let arrivals = ArrivalSpec::Deterministic { per_s: 1e-4 };
    run(scenario(vec![class(handshake.clone(), bearer.clone())], clients, arrivals)).report()
}

fn path(rate: f64, delay_ms: f64, more: &str) -> BearerSpec {
    bearer(&format!(
        r#"{{"up_bits_per_s": {rate}, "down_bits_per_s": {rate}, "traversal_s": {}, "packet_overhead_bytes": 14{more}}}"#,
        delay_ms / 1e3
    ))
}

fn handshakes() -> [HandshakeSpec; 5] {
    [
        worked(tls13(1000)),
        worked(with_tickets(22_000)),
        tls13(5000),
        worked(datagrams(3000, Retransmission::DTLS)),
        worked(datagrams(1700, WTLS)),
    ]
}

#[test]
fn replay_without_loss_equals_a_simulated_client() {
    for path in [path(1e9, 0.05, ""), path(10e6, 35.0, ""), path(100e6, 2.0, r#", "half_duplex": true"#)] {
        for handshake in handshakes() {
            let (found, report) = (replay(&handshake, &path, 7), simulate(&handshake, &path, 1));
            assert_eq!(found.handshakes, 1);
            assert_eq!((found.failed, found.ready.weights.as_slice()), (0.0, [1.0].as_slice()));
            for (ours, theirs) in [(&found.ready, report.handshake_s.mean), (&found.done, report.done_s.mean)]
            {
                let [ours] = ours.values_s[..] else { panic!("{ours:?}") };
                assert!((ours - theirs.expect("a time")).abs() < 1e-12);
            }
            assert_eq!(found.p99_interval_s, [found.ready.values_s[0]; 2]);
            assert_eq!(found.setup_s, 0.0);
            let sent = [report.traffic.up_bytes, report.traffic.down_bytes];
            for (bytes, network) in found.link_bytes.into_iter().zip(sent) {
                // A simulation counts the packets of the whole run, without the link's overhead.
                assert!(bytes > 0.9 * network as f64 && bytes < 1.5 * network as f64);
            }
        }
    }
}

#[test]
fn mean_setup_time_is_added_to_the_mean_handshake() {
    let [stream, ..] = handshakes();
    let awake = replay(&stream, &path(10e6, 35.0, ""), 7);
    let set_up = r#", "setup": {"kind": "uniform", "minimum_s": 0.1, "maximum_s": 0.9}"#;
    let woken = replay(&stream, &path(10e6, 35.0, set_up), 7);
    let [awake_s, woken_s] = [awake, woken.clone()].map(|one| one.done.mean_s().expect("times"));
    assert!((0.45..0.55).contains(&woken.setup_s));
    assert!((woken_s - woken.setup_s - awake_s).abs() < 1e-6);
}

/// The smallest time that is not exceeded with a probability of `share`.
fn quantile_s(times: &Times, share: f64) -> Option<f64> {
    let mut sum = 0.0;
    for (value, weight) in times.values_s.iter().zip(&times.weights) {
        sum += weight;
        if sum >= share * (1.0 - 1e-12) {
            return Some(*value);
        }
    }
    times.values_s.last().copied()
}

/// Allows for the random error of a percentile's share in a sample of `count`.
fn agrees(name: &str, found: &Times, simulated: [Option<f64>; 4], count: f64) {
    let [mean, rest @ ..] = simulated.map(|time| time.expect("a time"));
    let off = found.mean_s().expect("times") - mean;
    let squares = found.values_s.iter().zip(&found.weights).map(|(at, weight)| weight * (at - mean).powi(2));
    let sd_s = squares.sum::<f64>().sqrt();
    assert!(off.abs() < 0.012 * mean + 4.0 * sd_s / count.sqrt(), "{name}: mean off by {off} of {mean}");
    for (share, theirs) in [0.5, 0.95, 0.99].into_iter().zip(rest) {
        // Five standard deviations of the shares of the simulation and of the replay.
        let off = 5.0 * (share * (1.0 - share) * (1.0 / count + 1.0 / 2000.0)).sqrt();
        let low = quantile_s(found, (share - off).max(0.0)).expect("times");
        let high = quantile_s(found, (share + off).min(1.0)).expect("times");
        assert!(
            (0.997 * low..=1.003 * high).contains(&theirs),
            "{name}: {share}: {theirs} is not from {low} to {high}"
        );
    }
}

#[test]
fn replay_percentiles_match_many_simulated_clients() {
    let jitter = r#", "traversal_sd_s": 0.01"#;
    let bursts = r#", "loss": 0.03, "loss_burst_packets": 4"#;
    let paths = [
        path(10e6, 35.0, r#", "loss": 0.005"#),
        path(10e6, 35.0, r#", "loss": 0.05"#),
        path(1e9, 0.1, r#", "loss": 0.2"#),
        path(10e6, 35.0, bursts),
        path(10e6, 35.0, jitter),
        path(10e6, 35.0, &format!("{jitter}{bursts}")),
        path(60e3, 376.0, r#", "loss": 0.02, "half_duplex": true"#),
        path(
            10e6,
            35.0,
            r#", "setup": {"kind": "uniform", "minimum_s": 0.1, "maximum_s": 0.9}, "loss_up": 0.1"#,
        ),
    ];
    for (number, path) in paths.iter().enumerate() {
        for (kind, handshake) in handshakes().iter().enumerate() {
            let name = format!("path {number}, handshake {kind}");
            let clients = 6000;
            let (found, report) = (replay(handshake, path, 3), simulate(handshake, path, clients));
            let ready = &report.handshake_s;
            let count = report.completed as f64;
            agrees(&name, &found.ready, [ready.mean, ready.p50, ready.p95, ready.p99], count);
            let done = &report.done_s;
            agrees(&name, &found.done, [done.mean, done.p50, done.p95, done.p99], count);
            let failed = 1.0 - report.completed as f64 / report.clients as f64;
            let off = 5.0 * (failed.max(1e-4) / clients as f64).sqrt() + 1e-3;
            assert!((found.failed - failed).abs() < off, "{name}: {} fail, not {failed}", found.failed);
            let [low, high] = found.p99_interval_s;
            let p99 = quantile_s(&found.ready, 0.99).expect("times");
            assert!(low <= 1.001 * p99 && p99 <= 1.001 * high, "{name}: {p99} is not from {low} to {high}");
        }
    }
}

#[test]
fn equal_seeds_give_equal_bytes_and_others_similar_results() {
    let (handshake, path) = (worked(tls13(5000)), path(10e6, 35.0, r#", "loss": 0.02"#));
    let text = |seed| serde_json::to_string(&replay(&handshake, &path, seed)).expect("serialises");
    assert_eq!(text(1), text(1));
    assert_ne!(text(1), text(2));
    let (one, two) = (replay(&handshake, &path, 1), replay(&handshake, &path, 2));
    assert!(one.p99_interval_s[0] <= two.p99_interval_s[1] && two.p99_interval_s[0] <= one.p99_interval_s[1]);
    let [one, two] = [one, two].map(|found| found.ready.mean_s().expect("times"));
    assert!((one / two - 1.0).abs() < 0.02);
}

#[test]
fn rare_events_have_their_weight_and_cost_little_time() {
    let handshake = worked(tls13(1000));
    let clear = replay(&handshake, &path(10e6, 35.0, ""), 1);
    let rare = replay(&handshake, &path(10e6, 35.0, r#", "loss": 1e-6"#), 1);
    assert_eq!(quantile_s(&rare.ready, 0.99), quantile_s(&clear.ready, 0.99));
    let [clear_s, rare_s] = [clear, rare].map(|found| found.ready.mean_s().expect("times"));
    // About nine packets; the loss of one costs 70 ms to 1 s.
    assert!(rare_s > clear_s && rare_s - clear_s < 9e-6, "{clear_s}, {rare_s}");
}

#[test]
fn a_path_that_loses_everything_fails_every_handshake() {
    for handshake in [tls13(1000), datagrams(1000, Retransmission::DTLS)] {
        let found = replay(&handshake, &path(10e6, 35.0, r#", "loss": 1.0"#), 1);
        assert_eq!((found.failed, found.ready, found.done), (1.0, Times::default(), Times::default()));
    }
}

/// The queue includes the packet in service, so no packet enters this one, and none can be lost.
#[test]
fn a_queue_smaller_than_a_packet_fails_every_handshake() {
    let found = replay(&tls13(1000), &path(18e3, 95.0, r#", "loss": 0.005, "queue_bytes": 1"#), 1);
    assert_eq!((found.failed, found.link_bytes), (1.0, [0.0, 0.0]));
}

#[test]
fn coarse_replay_is_close_with_a_fifth_of_the_handshakes() {
    let varying = r#", "setup": {"kind": "uniform", "minimum_s": 0.1, "maximum_s": 0.9}, "loss": 0.02"#;
    let mut replay = Replay {
        handshake: tls13(3000),
        bearer: path(100e3, 100.0, varying),
        tcp: TcpConfig::default(),
        seed: 1,
        coarse: false,
    };
    let whole = replay.run().expect("valid");
    replay.coarse = true;
    let coarse = replay.run().expect("valid");
    assert!(coarse.handshakes * 5 < whole.handshakes, "{} of {}", coarse.handshakes, whole.handshakes);
    let means = [&coarse, &whole].map(|one| one.ready.mean_s().expect("some"));
    assert!((means[0] / means[1] - 1.0).abs() < 0.05, "{means:?}");
    let widths = [&coarse, &whole].map(|one| one.p99_interval_s[1] - one.p99_interval_s[0]);
    assert!(widths[0] > widths[1], "{widths:?}");
}

#[test]
fn invalid_replay_is_refused_by_key() {
    let mut replay = Replay {
        handshake: tls13(1000),
        bearer: path(10e6, 35.0, ""),
        tcp: TcpConfig { hz: 0, ..TcpConfig::default() },
        seed: 1,
        coarse: false,
    };
    let error = replay.run().expect_err("no clock");
    assert!(error.to_string().starts_with("tcp.hz is 0"), "{error}");
    replay.tcp = TcpConfig::default();
    replay.bearer.mtu_bytes = 52;
    let error = replay.run().expect_err("no room");
    assert!(error.to_string().contains("packets of 52 bytes have no room beside 52 bytes"), "{error}");
    // A packet takes longer than any of TCP's timers: each handshake is given up.
    replay.bearer = path(5.0, 1.0, "");
    assert_eq!(replay.run().expect("valid").failed, 1.0);
}

#[test]
fn completed_handshakes_and_determined_quantiles_are_counted() {
    // Set-up times vary, so no handshake stands for others.
    let varying = r#", "setup": {"kind": "uniform", "minimum_s": 0.1, "maximum_s": 0.9}, "loss": 0.2"#;
    let often = replay(&tls13(1000), &path(10e6, 35.0, varying), 7);
    let completed = often.completed.expect("none is exact");
    assert!(completed <= often.handshakes && completed as f64 > 0.9 * often.handshakes as f64);
    let beyond = 1.0 - often.failed - often.highest_share;
    assert!(0.0 < beyond && beyond < 0.01, "{beyond}");

    // Without loss all are equal.
    let seldom = replay(&tls13(1000), &path(10e6, 35.0, r#", "loss": 0.01"#), 7);
    assert_eq!(seldom.completed, None);
    assert!(0.99 < seldom.highest_share && seldom.highest_share < 1.0);
    let never = replay(&tls13(1000), &path(10e6, 35.0, ""), 7);
    assert_eq!((never.completed, never.highest_share), (None, 1.0));
}
