//! Steady loads with a required precision: intervals contain the exact values, and runs that are too short are marked.

mod common;

use common::{bearer, class, constant, handshake, instant, message, scenario, service};
use shakedown_link::DistributionSpec;
use shakedown_sim::access::CellSpec;
use shakedown_sim::access::outcome::Directions;
use shakedown_sim::{
    ArrivalSpec, Discipline, Outcome, PrecisionSpec, Scenario, Sender, Simulation, TransportKind,
};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

const SERVICE_S: f64 = 0.01;

fn exponential() -> DistributionSpec {
    DistributionSpec::Exponential { minimum_s: 0.0, mean_s: SERVICE_S }
}

fn queue(time: DistributionSpec, utilisation: f64, precision: PrecisionSpec) -> Scenario {
    let arrivals = ArrivalSpec::Poisson { per_s: utilisation / SERVICE_S };
    Scenario {
        warmup_clients: 250,
        replications: 10,
        precision: Some(precision),
        ..scenario(vec![class(service(time), instant())], 1250, arrivals)
    }
}

fn on(threads: usize, scenario: Scenario) -> Outcome {
    let simulation = Simulation::new(scenario).expect("valid");
    let threads = NonZeroUsize::new(threads).expect("not 0");
    simulation.run_on(threads, &mut |_| ControlFlow::Continue(())).expect("not broken off")
}

fn text(outcome: &Outcome) -> String {
    serde_json::to_string(outcome).expect("serialises")
}

const FIVE: PrecisionSpec = PrecisionSpec { relative: 0.05, max_events: 100_000_000, least_counted: 0 };

#[test]
fn run_continues_until_its_precision_is_met_and_is_right() {
    // Pollaczek–Khinchine: ρ s (1 + c²) / (2 (1 - ρ)).
    for (time, square) in [(exponential(), 2.0), (constant(SERVICE_S), 1.0)] {
        for utilisation in [0.3, 0.8, 0.9] {
            let outcome = on(1, queue(time.clone(), utilisation, FIVE));
            let report = outcome.report();
            let precision = report.precision.expect("asked for");
            assert!(precision.is_met, "{utilisation}: {precision:?}");
            assert!(outcome.counted > 10 * 1000, "{utilisation}: {}", outcome.counted);
            let exact = utilisation * SERVICE_S * square / (2.0 * (1.0 - utilisation));
            let (mean, margin) =
                (report.client_wait_s.mean.expect("a mean"), report.client_wait_s.mean_margin.expect("ten"));
            // t with 9 degrees of freedom: 999 of 1000.
            assert!(
                (mean - exact).abs() < margin * 4.781 / 2.262,
                "{utilisation}: {mean} ± {margin}, {exact}"
            );
        }
    }
}

#[test]
fn run_length_does_not_depend_on_threads() {
    let asked = || queue(exponential(), 0.8, FIVE);
    let one = text(&on(1, asked()));
    for threads in [2, 5] {
        assert_eq!(text(&on(threads, asked())), one, "{threads} threads");
    }
}

#[test]
fn max_events_ends_a_run_and_reached_precision_is_reported() {
    for max_events in [0, 300_000] {
        let outcome =
            on(1, queue(exponential(), 0.99, PrecisionSpec { relative: 0.05, max_events, least_counted: 0 }));
        let precision = outcome.report().precision.expect("asked for");
        assert!(!precision.is_met && !precision.is_settled, "{precision:?}");
        assert!(outcome.events <= max_events.max(60_000), "{}", outcome.events);
    }
}

/// The interval of a run that is too short may be narrow by chance.
#[test]
fn run_shorter_than_required_by_the_previous_is_not_precise() {
    let first = on(1, queue(exponential(), 0.8, PrecisionSpec { max_events: 0, ..FIVE }));
    let simulation = Simulation::new(queue(exponential(), 0.8, FIVE)).expect("valid");
    let next = |spent| {
        let next = simulation.longer(&first, spent).expect("longer");
        (
            next.clients.expect("counted") - next.warmup_clients,
            next.precision.expect("asked for").least_counted,
        )
    };
    let (enough, asked) = next(first.events);
    assert!(enough == asked && enough > 1000, "{enough} {asked}");
    let (fewer, asked_again) = next(FIVE.max_events - first.events * 2);
    assert!(fewer < asked && asked_again >= asked, "{fewer} {asked_again}");
    for (least_counted, is_long_enough) in [(1000, true), (1001, false)] {
        let wide = PrecisionSpec { relative: 0.5, max_events: 0, least_counted };
        let precision = on(1, queue(exponential(), 0.5, wide)).report().precision.expect("asked for");
        assert!(precision.is_settled && precision.reached.expect("ten") <= 0.5, "{precision:?}");
        assert_eq!((precision.is_long_enough, precision.is_met), (is_long_enough, is_long_enough));
    }
}

/// Whitt's mean wait of regulated Brownian motion: (t / 5 %)² relaxation times in all, twice that with the reserve.
#[test]
fn run_shorter_than_required_by_theory_is_not_precise() {
    // A relaxation time has λ (2 λ E[S²] / (1 - ρ)² + E[S²] / E[S]) = 5 clients. 2.262: Student's t, 10 replications.
    let asked = (2.0 * (2.262_f64 / 0.05).powi(2) * 5.0 / 10.0) as u64;
    for (counted, is_long_enough) in [(asked - 5, false), (asked + 5, true)] {
        let mut one = queue(exponential(), 0.5, PrecisionSpec { max_events: 0, ..FIVE });
        one.clients = Some(counted + one.warmup_clients);
        let precision = on(1, one).report().precision.expect("asked for");
        assert_eq!(precision.is_long_enough, is_long_enough, "{counted}: {precision:?}");
    }
}

#[test]
fn a_run_without_a_warm_up_is_repeated_with_five_relaxation_times() {
    let mut cold = queue(exponential(), 0.9, FIVE);
    cold.warmup_clients = 0;
    cold.clients = Some(1000);
    let outcome = on(1, cold);
    let precision = outcome.report().precision.expect("asked for");
    assert!(precision.is_met, "{precision:?}");
    // Five relaxation times of the queue, of 4ρ² / (1 - ρ)² clients each.
    assert!(outcome.arrived - outcome.counted >= 10 * 1620, "{}", outcome.arrived - outcome.counted);
}

/// In the first run, the last 500 clients of each replication reach the server after the last arrival.
#[test]
fn run_over_a_slow_network_is_counted_after_clients_have_reached_the_server() {
    let far = bearer(r#"{"up_bits_per_s": null, "down_bits_per_s": null, "traversal_s": 10.0}"#);
    let slow = |max_events| {
        let loose = PrecisionSpec { relative: 0.2, max_events, least_counted: 0 };
        let classes = vec![class(service(constant(SERVICE_S)), far.clone())];
        on(1, Scenario { classes, ..queue(constant(SERVICE_S), 0.5, loose) })
    };
    let first = slow(0).report();
    assert!(first.utilisation < 0.4, "{}", first.utilisation);
    assert!(!first.precision.expect("asked for").is_settled);
    let report = slow(FIVE.max_events).report();
    let precision = report.precision.expect("asked for");
    assert!(precision.is_met, "{precision:?}");
    assert!((report.utilisation / 0.5 - 1.0).abs() < 0.03, "{}", report.utilisation);
    assert!(report.cooldown_clients >= 10 * 500, "{}", report.cooldown_clients);
}

#[test]
fn a_load_without_a_steady_state_has_no_precision() {
    let outcome = on(1, queue(exponential(), 1.2, FIVE));
    assert_eq!(outcome.report().precision, None);
    assert!(outcome.report().unstable);
}

#[test]
fn other_disciplines_and_bursts_reach_their_precision() {
    // Processor sharing: the sojourn of M/G/1-PS is s / (1 - ρ) whatever the service's distribution.
    let mut shared = queue(constant(SERVICE_S), 0.8, FIVE);
    shared.server.discipline = Discipline::Ps;
    let report = on(1, shared).report();
    assert!(report.precision.expect("asked for").is_met);
    let (mean, margin) = (report.server_s.mean.expect("a mean"), report.server_s.mean_margin.expect("ten"));
    assert!((mean - SERVICE_S / 0.2).abs() < margin * 4.781 / 2.262, "{mean} ± {margin}");
    // Batches of k at an M[k]/D/1: ρ s / (2 (1 - ρ)) + (k - 1) s / (2 (1 - ρ)).
    let mut bursts = queue(constant(SERVICE_S), 0.8, FIVE);
    bursts.arrivals = ArrivalSpec::Bursts { per_s: 0.8 / SERVICE_S / 5.0, size: 5 };
    let report = on(1, bursts).report();
    assert!(report.precision.expect("asked for").is_met);
    let (mean, margin) =
        (report.client_wait_s.mean.expect("a mean"), report.client_wait_s.mean_margin.expect("ten"));
    let exact = SERVICE_S * (0.8 + 4.0) / (2.0 * 0.2);
    assert!((mean - exact).abs() < margin * 4.781 / 2.262, "{mean} ± {margin}, {exact}");
}

/// One packet of 10 ms for each client, over one cell: an M/D/1 queue, whatever the server does.
fn cell(load: f64, precision: PrecisionSpec) -> Scenario {
    let (packet, answer) =
        (message(Sender::Client, "Packet", 125, 1, 1), message(Sender::Server, "Answer", 1, 2, 1));
    let mut one = class(handshake(TransportKind::Ideal, vec![packet, answer]), instant());
    one.cell = Some(CellSpec { count: 1, up_bits_per_s: Some(100_000.0), ..CellSpec::default() });
    Scenario {
        classes: vec![one],
        arrivals: ArrivalSpec::Poisson { per_s: load / SERVICE_S },
        ..queue(constant(0.0), load, precision)
    }
}

#[test]
fn run_length_includes_the_relaxation_time_of_cells() {
    // The first run has a precision of 50 %: only the relaxation time of the cell requires a longer one.
    let loose = PrecisionSpec { relative: 0.5, max_events: 100_000_000, least_counted: 0 };
    let outcome = on(1, cell(0.95, loose));
    let precision = outcome.report().precision.expect("asked for");
    assert!(precision.is_met, "{precision:?}");
    // ρ (1 + 2ρ / (1 - ρ)²) clients to a relaxation time; five of warm-up, twenty counted, in ten replications.
    let memory = 0.95 * (1.0 + 2.0 * 0.95 / (0.05 * 0.05));
    let warmup = (outcome.arrived - outcome.counted) as f64;
    assert!(
        warmup >= 50.0 * memory && outcome.counted as f64 >= 200.0 * memory,
        "{memory}: {warmup} {}",
        outcome.counted
    );
    let ready = outcome.report().handshake_s;
    let (mean, margin) = (ready.mean.expect("a mean"), ready.mean_margin.expect("ten"));
    let exact = SERVICE_S * (1.0 + 0.95 / (2.0 * 0.05));
    assert!((mean - exact).abs() < margin * 4.781 / 2.262, "{mean} ± {margin}, {exact}");
}

#[test]
fn nearly_saturated_cells_use_all_events_and_saturated_ones_none() {
    let few = PrecisionSpec { relative: 0.5, max_events: 400_000, least_counted: 0 };
    let [near, beyond] = [0.995, 1.1].map(|load| on(1, cell(load, few)));
    for outcome in [&near, &beyond] {
        let precision = outcome.report().precision.expect("asked for");
        assert!(!precision.is_settled && !precision.is_met, "{precision:?}");
    }
    assert!(near.arrived > 2 * beyond.arrived && near.events <= 400_000, "{} {}", near.arrived, near.events);
    assert_eq!(beyond.arrived, 10 * 1250);
}

#[test]
fn only_saturated_cells_are_named() {
    let few = PrecisionSpec { relative: 0.5, max_events: 100_000, least_counted: 0 };
    for load in [0.9, 1.1] {
        // Every second client is in a cell of another medium, which is idle for most of the time.
        let mut two = cell(load, few);
        two.arrivals = ArrivalSpec::Poisson { per_s: 2.0 * load / SERVICE_S };
        let mut wide = two.classes[0].clone();
        let of = |medium: &str, up_bits_per_s| CellSpec {
            medium: medium.into(),
            count: 1,
            up_bits_per_s: Some(up_bits_per_s),
            ..CellSpec::default()
        };
        two.classes[0].cell = Some(of("narrow", 100_000.0));
        wide.cell = Some(of("wide", 1e6));
        two.classes.push(wide);
        let saturated = on(1, two).report().access.expect("cells").saturated;
        assert_eq!(saturated.len(), usize::from(load > 1.0), "{saturated:?}");
        for one in saturated {
            assert_eq!((one.medium.as_str(), one.ways), ("narrow", Directions::Up));
            assert!((one.offered / load - 1.0).abs() < 0.05, "{}", one.offered);
        }
    }
}
