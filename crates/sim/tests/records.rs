//! Records after the handshake: two traces calculated by hand, and steady loads compared with theory.

mod common;

use common::{class, constant, instant, run, scenario, service};
use shakedown_sim::histogram::Histogram;
use shakedown_sim::outcome::Outcome;
use shakedown_sim::{
    AdmissionSpec, ArrivalSpec, Balance, Discipline, HandshakeSpec, RecordsSpec, Refusal, ScalingSpec,
    Scenario, Simulation,
};
use std::ops::ControlFlow;

/// Handshakes of 10 ms, and two records per client: 4 ms, every 25 ms. A client is ready at once, without a wait.
fn three_clients(discipline: Discipline) -> Outcome {
    let mut kind = class(service(constant(0.010)), instant());
    kind.record_work_s = 0.004;
    let arrivals = ArrivalSpec::Times { at_s: vec![0.0, 0.024, 0.051] };
    let mut fleet = scenario(vec![kind], 3, arrivals);
    fleet.records = Some(RecordsSpec { interval_s: 0.025, count: 2 });
    fleet.server.discipline = discipline;
    run(fleet)
}

/// All values of a small histogram, in milliseconds.
fn all_ms(times: &Histogram) -> Vec<f64> {
    let values = times.buckets().flat_map(|(least, _, count)| std::iter::repeat_n(least, count as usize));
    values.map(|ns| ns as f64 * 1e-6).collect()
}

fn are_about(found: &[f64], expected: &[f64]) {
    let near = |(one, other): (&f64, &f64)| (one - other).abs() <= 0.001 * other;
    assert!(found.len() == expected.len() && found.iter().zip(expected).all(near), "{found:?}, {expected:?}");
}

/// In ms. Handshakes: 0 to 10, 24 to 34, 51 to 67 after two records. Records: at 25, waits for a handshake until 34; at
/// 49; at 50, waits until 53. The second client's other record is due at 74, after the last client is ready.
#[test]
fn records_wait_in_the_queue() {
    let found = three_clients(Discipline::Fifo);
    assert_eq!((found.wait.count(), found.wait.sum()), (3, 6_000_000));
    assert_eq!(found.wait.range(), Some((0, 6_000_000)));
    assert_eq!((found.sojourn.sum(), found.sojourn.range()), (36_000_000, Some((10_000_000, 16_000_000))));
    let records = found.records.expect("records");
    assert_eq!((records.wait.count(), records.wait.sum()), (3, 12_000_000));
    are_about(&all_ms(&records.wait), &[0.0, 3.0, 9.0]);
    // Up to the last arrival at 51, by when one record is finished.
    assert_eq!((records.work_ns, found.busy_ns, found.virtual_ns), (4_000_000, 26_000_000, 67_000_000));
    assert_eq!(records.peak_open, 2, "the first is closed at 50, the third is open from 51 on");
    assert_eq!(found.client_wait.sum(), 6_000_000, "a record's wait is not its client's");
    assert_eq!(found.ready.sum(), 0);
    assert_eq!(found.completed, 3);
}

/// In ms. The second handshake has the worker until 25, half of it until the record ends at 33, and ends at 38. The
/// record of 49 has the worker for 1, half for 1, a third for 7.5: it ends at 58.5. The record of 50 then has 3 of its
/// 4, half the worker for 2, and ends at 60.5. The third handshake then has 3.5, and ends at 67.
#[test]
fn records_share_the_worker() {
    let found = three_clients(Discipline::Ps);
    assert_eq!((found.sojourn.sum(), found.sojourn.range()), (40_000_000, Some((10_000_000, 16_000_000))));
    are_about(&all_ms(&found.sojourn), &[10.0, 14.0, 16.0]);
    let records = found.records.expect("records");
    // From 25 to 33, 49 to 58.5 and 50 to 60.5, of which 4 ms each are work.
    assert_eq!((records.wait.count(), records.wait.sum()), (3, 4_000_000 + 5_500_000 + 6_500_000));
    are_about(&all_ms(&records.wait), &[4.0, 5.5, 6.5]);
    // Up to the last arrival at 51, by when one record is finished.
    assert_eq!((records.work_ns, found.busy_ns, found.virtual_ns), (4_000_000, 26_000_000, 67_000_000));
}

/// A steady load. The run may be much shorter than a connection: also then, records arrive at the rate of a steady
/// state.
fn steady(arrivals: ArrivalSpec, seconds: f64) -> Scenario {
    let mut kind = class(service(constant(0.010)), instant());
    kind.record_work_s = 0.001;
    let clients = (arrivals.rate_per_s().expect("a rate") * seconds) as u64;
    let mut fleet = scenario(vec![kind], clients * 5 / 4, arrivals);
    fleet.warmup_clients = clients / 4;
    fleet.records = Some(RecordsSpec { interval_s: 5.0, count: 20 });
    fleet
}

/// A handshake whose client is ready with the server's answer.
fn answered() -> HandshakeSpec {
    let mut handshake = service(constant(0.010));
    handshake.messages.push(common::message(shakedown_sim::Sender::Server, "Finished", 1, 2, 2));
    handshake
}

/// Mean over replications, and the half width of an interval that holds it 999 times in 1000 (t with 19 degrees).
fn interval(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    assert_eq!(values.len(), 20);
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, 3.883 * (variance / n).sqrt())
}

/// Pollaczek–Khinchine for two kinds of jobs: records come from many connections, so their arrivals are almost Poisson,
/// and almost independent of the present handshakes. Both kinds wait λ Σ E[S²] / (2 (1 - ρ)).
#[test]
fn handshake_and_record_waits_match_pollaczek_khinchine() {
    for (per_s, load) in [(10.0, 0.3), (20.0, 0.6), (26.0, 0.78)] {
        let mut fleet = steady(ArrivalSpec::Poisson { per_s }, 2_000.0);
        fleet.replications = 20;
        let found = run(fleet);
        let expected = per_s * (0.010 * 0.010 + 20.0 * 0.001 * 0.001) / (2.0 * (1.0 - load));
        let waits: Vec<f64> = found.replications.iter().filter_map(|one| one.wait.mean_s()).collect();
        let (mean, margin) = interval(&waits);
        assert!((mean - expected).abs() <= margin, "{load}: waits {mean} ± {margin}, expected {expected}");
        assert!((mean / expected - 1.0).abs() < 0.02, "{load}: waits {mean}, expected {expected}");
        let report = found.report();
        let records = report.records.expect("records");
        let wait = records.wait_s.mean.expect("waits");
        assert!((wait / expected - 1.0).abs() < 0.02, "{load}: records wait {wait}, expected {expected}");
        assert_eq!(found.offered_e9, Some((load * 1e9_f64).round() as u64));
        assert!((report.utilisation / load - 1.0).abs() < 0.01, "{} of {load}", report.utilisation);
        // Two thirds of the work is on records: 20 × 1 ms, and 10 ms on the handshake.
        let share = records.utilisation / report.utilisation;
        assert!((share * 1.5 - 1.0).abs() < 0.01, "{share}");
        let open = per_s * 100.0;
        assert!((records.peak_open as f64 / open - 1.0).abs() < 0.25, "{} open", records.peak_open);
    }
}

/// The load is complete from the start, for all arrival processes: a run of 60 s with connections that last 100 s.
#[test]
fn run_starts_with_steady_state_connections() {
    for arrivals in [
        ArrivalSpec::Poisson { per_s: 20.0 },
        ArrivalSpec::Deterministic { per_s: 20.0 },
        ArrivalSpec::Bursts { per_s: 4.0, size: 5 },
    ] {
        let mut fleet = steady(arrivals.clone(), 60.0);
        fleet.replications = 20;
        let found = run(fleet);
        let of = |one: &Outcome| one.report().records.expect("records").utilisation;
        assert!((of(&found) / 0.4 - 1.0).abs() < 0.02, "{arrivals:?}: {}", of(&found));
        assert_eq!(found.offered_e9, Some(600_000_000), "{arrivals:?}");
    }
    // Exactly the connections of deterministic arrivals, 0.05 to 99.95 s old, and the first of the run; and one that
    // opens when the oldest closes.
    let mut fleet = steady(ArrivalSpec::Deterministic { per_s: 20.0 }, 60.0);
    fleet.series_s = 1.0;
    let found = run(fleet);
    assert_eq!(found.records.expect("records").peak_open, 2001);
}

/// Also if a handshake is long compared with the run: here none ends before 2 s, and all clients arrive within 3 s.
/// Clients from before the run become ready until the first client of the run is ready.
#[test]
fn records_are_sent_before_any_client_of_the_run_is_ready() {
    // Deterministic arrivals miss what falls on the ends of the run: one of 60 connections, and one of 59 times.
    for (arrivals, near) in
        [(ArrivalSpec::Poisson { per_s: 20.0 }, 0.02), (ArrivalSpec::Deterministic { per_s: 20.0 }, 0.04)]
    {
        let mut fleet = steady(arrivals.clone(), 3.0);
        (fleet.clients, fleet.warmup_clients) = (Some(60), 0);
        // A connection is open for 3 s: without those from before the run, a third of the records would be missing.
        fleet.records = Some(RecordsSpec { interval_s: 0.2, count: 15 });
        fleet.classes[0].handshake = answered();
        fleet.classes[0].bearer.traversal_s = 1.0;
        fleet.replications = 200;
        let found = run(fleet.clone());
        assert!(found.ready.range().expect("ready").0 >= 2_000_000_000);
        let records = found.report().records.expect("records");
        // 20 a second × 15 × 1 ms.
        assert!((records.utilisation / 0.3 - 1.0).abs() < near, "{arrivals:?}: {}", records.utilisation);
        // The run also ends if all clients give up.
        fleet.timeout_s = Some(0.5);
        fleet.replications = 1;
        let found = run(fleet);
        assert_eq!((found.completed, found.failed.values().sum::<u64>()), (0, 60));
        assert!(found.virtual_ns < 5_000_000_000, "{} ns", found.virtual_ns);
    }
}

/// A storm begins without open connections: all clients reconnect.
#[test]
fn a_storm_starts_without_connections() {
    let mut kind = class(service(constant(0.001)), instant());
    kind.record_work_s = 0.001;
    let mut storm = scenario(vec![kind], 100, ArrivalSpec::Storm { within_s: 10.0 });
    storm.records = Some(RecordsSpec { interval_s: 1.0, count: 100 });
    storm.series_s = 1.0;
    storm.server.servers = 2;
    storm.server.balance = Balance::Hash;
    assert_eq!(storm.parts(), 1);
    let found = run(storm);
    let records = found.records.expect("records");
    assert_eq!((found.completed, records.peak_open), (100, 100));
    // Each client sends one per second from its arrival until the last arrival: 450 in all, on average.
    assert!((350..550).contains(&records.wait.count()), "{}", records.wait.count());
    assert!(found.virtual_ns < 10_100_000_000, "{} ns", found.virtual_ns);
}

/// A bucket admits half of the clients: half as many connections are open, also at the start.
#[test]
fn refused_clients_send_no_records() {
    let mut fleet = steady(ArrivalSpec::Poisson { per_s: 40.0 }, 100.0);
    fleet.server.admission = Some(AdmissionSpec { per_s: 20.0, burst: 10, refusal: Refusal::Silence });
    // A refused client does not become ready, because it waits for an answer.
    fleet.classes[0].handshake = answered();
    let found = run(fleet);
    let report = found.report();
    assert_eq!(found.offered_e9, Some(600_000_000));
    let records = report.records.expect("records");
    assert!((records.utilisation / 0.4 - 1.0).abs() < 0.06, "{}", records.utilisation);
}

/// Also if very many are refused: drawing all arrivals would take too long.
#[test]
fn few_of_very_many_clients_are_admitted() {
    let mut fleet = steady(ArrivalSpec::Poisson { per_s: 1e9 }, 1.0);
    (fleet.clients, fleet.warmup_clients) = (Some(100), 0);
    fleet.server.admission = Some(AdmissionSpec { per_s: 0.001, burst: 1, refusal: Refusal::Silence });
    fleet.classes[0].handshake = answered();
    fleet.timeout_s = Some(1.0);
    fleet.retry = None;
    let found = run(fleet);
    assert_eq!(found.completed + found.failed.values().sum::<u64>(), 100);
}

/// A connection stays at its server: while it is open, the balancer counts it and its server does not end.
#[test]
fn open_connections_keep_their_servers_running() {
    let mut fleet = steady(ArrivalSpec::Poisson { per_s: 20.0 }, 300.0);
    fleet.server.servers = 4;
    fleet.server.balance = Balance::LeastConnections;
    fleet.replications = 4;
    let found = run(fleet.clone());
    assert_eq!(found.offered_e9, Some(150_000_000));
    assert!((found.report().utilisation / 0.15 - 1.0).abs() < 0.03, "{}", found.report().utilisation);
    let mut scaled = fleet;
    scaled.server.servers = 1;
    scaled.server.scaling = Some(ScalingSpec {
        max_servers: 4,
        interval_s: 5.0,
        up: 0.5,
        up_waiting: None,
        step: 1,
        startup_s: 1.0,
        down: 0.1,
        cooldown_s: 10.0,
    });
    let found = run(scaled);
    assert!(found.scaling.expect("autoscaling").peak >= 2);
    assert_eq!(found.completed, found.counted);
}

/// Outcomes merge to the same bytes on any number of threads, and have no field for records without records.
#[test]
fn outcomes_with_records_merge() {
    let mut fleet = steady(ArrivalSpec::Poisson { per_s: 20.0 }, 20.0);
    fleet.replications = 3;
    let simulation = Simulation::new(fleet.clone()).expect("valid");
    let go = &mut |_| ControlFlow::Continue(());
    let one = simulation.run(go).expect("not broken off");
    let several =
        simulation.run_on(std::num::NonZeroUsize::new(3).expect("not 0"), go).expect("not broken off");
    let text = |outcome: &Outcome| serde_json::to_string(outcome).expect("serialises");
    assert_eq!(text(&one), text(&several));
    fleet.records = None;
    assert!(!text(&run(fleet)).contains("peak_open"));
}

#[test]
fn invalid_records_are_refused() {
    let refused = |change: &dyn Fn(&mut Scenario)| {
        let mut fleet = steady(ArrivalSpec::Poisson { per_s: 20.0 }, 20.0);
        change(&mut fleet);
        Simulation::new(fleet).expect_err("refused").to_string()
    };
    let records = |interval_s, count| {
        move |fleet: &mut Scenario| fleet.records = Some(RecordsSpec { interval_s, count })
    };
    assert!(refused(&records(0.0, 1)).starts_with("records.interval_s is 0; accepted"));
    assert!(refused(&records(1.0, 0)).starts_with("records.count is 0; accepted"));
    assert!(refused(&records(1e6, 1_000_000)).contains("1e9 at most"));
    assert!(
        refused(&records(1e3, 1_000_000)).starts_with("connections open for records at once is 20000000000")
    );
    // A curve begins with the open connections of its first rate.
    let curve = |fleet: &mut Scenario| {
        records(1e3, 1_000_000)(fleet);
        fleet.arrivals = ArrivalSpec::Curve { points: vec![(0.0, 20.0), (1.0, 0.0)] };
    };
    assert!(refused(&curve).starts_with("connections open for records at once is 20000000000"));
    assert!(refused(&|fleet| fleet.classes[0].record_work_s = -1.0).starts_with("record_work_s is -1"));
}
