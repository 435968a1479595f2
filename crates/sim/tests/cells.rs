//! Cells, and the media that their clients share.

mod common;

use common::{bearer, class, run, scenario, tls13};
use serde_json::json;
use shakedown_sim::access::CellSpec;
use shakedown_sim::{ArrivalSpec, Outcome, Scenario, Simulation, TransportKind};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

const CLIENTS: u64 = 200;

fn storm(cell: Option<serde_json::Value>) -> Scenario {
    let bearer = bearer(r#"{"up_bits_per_s": 18000, "down_bits_per_s": 24000, "traversal_s": 0.05}"#);
    let mut handshake = tls13(600);
    handshake.transport = TransportKind::Ideal;
    let mut one = class(handshake, bearer);
    one.cell = cell.map(|cell| serde_json::from_value::<CellSpec>(cell).expect("a cell"));
    scenario(vec![one], CLIENTS, ArrivalSpec::Storm { within_s: 1.0 })
}

fn last_s(outcome: &Outcome) -> f64 {
    outcome.last_ready_ns as f64 * 1e-9
}

/// One cell carries no more than its rate, and is busy to the end of a storm.
#[test]
fn storm_duration_follows_the_cell_rate() {
    for scheduler in ["first-come", "round-robin", "proportional"] {
        let outcome =
            run(storm(Some(json!({"count": 1, "up_bits_per_s": 18000.0, "down_bits_per_s": 24000.0,
                                            "scheduler": scheduler}))));
        let down_s = outcome.traffic.down_bytes as f64 * 8.0 / 24_000.0;
        assert_eq!(outcome.completed, CLIENTS, "{scheduler}");
        assert!(last_s(&outcome) >= down_s, "{scheduler}: {} s for {down_s} s of bytes", last_s(&outcome));
        assert!(
            last_s(&outcome) <= 1.3 * down_s,
            "{scheduler}: {} s for {down_s} s of bytes",
            last_s(&outcome)
        );
    }
}

/// With as many cells as clients, each client has its own link; the cell's rate is the client's.
#[test]
fn one_cell_per_client_equals_separate_links() {
    let own = run(storm(None));
    let cells = run(storm(Some(json!({"count": CLIENTS}))));
    let (own_ns, cells_ns) = (own.ready.mean().expect("ready"), cells.ready.mean().expect("ready"));
    assert!((own_ns - cells_ns).abs() < 10.0, "{own_ns} {cells_ns}");
    assert_eq!(own.traffic, cells.traffic);
}

/// Recovery time falls with the number of cells.
#[test]
fn recovery_time_falls_with_more_cells() {
    let of = |count: u64| last_s(&run(storm(Some(json!({"count": count})))));
    let (one, four, sixteen) = (of(1), of(4), of(16));
    assert!(one > 3.0 * four && four > 3.0 * sixteen, "{one} {four} {sixteen}");
}

/// Classes with the same medium share it; a class that describes it differently is refused.
#[test]
fn classes_share_a_medium_by_name() {
    let cell = |medium: &str, count: u32| json!({"count": count, "medium": medium});
    let of = |first, second| {
        let mut both = storm(Some(first));
        both.classes.push(storm(Some(second)).classes.remove(0));
        both
    };
    let (shared, apart) = (run(of(cell("a", 1), cell("a", 1))), run(of(cell("a", 1), cell("b", 1))));
    assert!(last_s(&shared) > 1.7 * last_s(&apart), "{} {}", last_s(&shared), last_s(&apart));
    let error = Simulation::new(of(cell("a", 1), cell("a", 2))).expect_err("differ");
    assert!(error.to_string().contains("accepted: another medium, or the same count"), "{error}");
}

/// At any load, an access succeeds or uses up its attempts.
#[test]
fn every_access_succeeds_or_uses_up_its_attempts() {
    let entry = json!({"kind": "random-access", "opportunity_s": 0.005, "preambles": 54, "attempts": 10,
        "response_s": 0.008, "connect_s": 0.015, "backoff_s": 0.02, "grants": 15, "detection": "ramping",
        "repetition": 0.1, "repetition_s": 0.008, "transmissions": 5});
    for clients in [100, 5_000, 30_000] {
        let mut all =
            storm(Some(json!({"count": 1, "up_bits_per_s": 1e9, "down_bits_per_s": 1e9, "entry": entry})));
        all.clients = Some(clients);
        let access = run(all).access;
        let counts = access.all.counts;
        assert_eq!((counts.requests, counts.admitted + counts.refused), (clients, clients));
        assert_eq!(access.attempts.count(), counts.admitted);
        assert!(access.attempts.range().expect("some").1 <= 10);
    }
}

/// A packet that lasts longer than an interval of the series is counted in all its intervals; a cell with several
/// channels has the time of all of them.
#[test]
fn cell_utilisation_never_exceeds_one() {
    for (part, most) in [
        (json!({}), 1.0..=1.0),
        (json!({"half_duplex": true}), 0.9..=1.0),
        (
            json!({"contention": {"kind": "aloha", "channels": 3, "attempts": 8, "backoff_s": 200.0}}),
            0.1..=1.0,
        ),
        (
            json!({"contention": {"kind": "csma", "slot_s": 1e-3, "window": 16, "max_window": 256, "attempts": 4,
                               "frame_s": 0.0, "acknowledgement_s": 0.0, "idle_s": 0.0}}),
            0.9..=1.0,
        ),
    ] {
        let mut cell = json!({"count": 1, "up_bits_per_s": 900.0, "down_bits_per_s": 1000.0});
        cell.as_object_mut().expect("an object").extend(part.as_object().expect("an object").clone());
        let mut all = storm(Some(cell));
        all.series_s = 0.5;
        let access = run(all).report().access.expect("cells");
        let channels = if part.to_string().contains("aloha") { 3.0 } else { 1.0 };
        for (way, airtime_s) in access.airtime_s.into_iter().enumerate() {
            let used: Vec<f64> = access.series.iter().map(|one| one.utilisation[way]).collect();
            let sum_s = used.iter().sum::<f64>() * 0.5 * channels;
            assert!(
                airtime_s > 0.0 && (sum_s / airtime_s - 1.0).abs() < 1e-9,
                "{part}: {sum_s} s of {airtime_s} s"
            );
            assert!(used.iter().all(|share| *share <= 1.0), "{part}: {used:?}");
        }
        let down = access.series.iter().map(|one| one.utilisation[1]).fold(0.0, f64::max);
        assert!(most.contains(&down), "{part}: {down}");
    }
}

/// A frame that finds the channel busy too often is given up without being sent. Frames here are sent once, so each that
/// collided is given up, too.
#[test]
fn frames_given_up_unsent_are_not_counted_as_collided() {
    let outcome =
        run(storm(Some(json!({"count": 1, "contention": {"kind": "aloha", "attempts": 1, "sense":
        {"unit_s": 1e-3, "min_exponent": 3, "max_exponent": 5, "busy": 1, "turnaround_s": 1e-3}}}))));
    let dropped = |cause| outcome.traffic.dropped.get(cause).copied().unwrap_or(0);
    let collided = outcome.access.all.counts.collided;
    assert!((1..=collided).contains(&dropped("collided")), "{} of {collided}", dropped("collided"));
    assert!(dropped("channel-busy") > collided);
}

/// For each kind of cell, replications on several threads give the same bytes as on one thread.
#[test]
fn outcomes_do_not_depend_on_threads() {
    for part in [
        json!({"scheduler": "proportional"}),
        json!({"entry": {"kind": "random-access", "opportunity_s": 0.1, "preambles": 6, "attempts": 5,
                         "response_s": 0.05, "connect_s": 0.1, "backoff_s": 0.5}}),
        json!({"entry": {"kind": "circuits", "channels": 20}}),
        json!({"contention": {"kind": "csma", "slot_s": 1e-3, "window": 16, "max_window": 256, "attempts": 4,
                              "frame_s": 1e-3, "acknowledgement_s": 1e-3, "idle_s": 1e-3}}),
        json!({"contention": {"kind": "aloha", "channels": 3, "attempts": 3, "backoff_s": 5.0}}),
        json!({"contention": {"kind": "aloha", "attempts": 4, "sense":
                              {"unit_s": 1e-3, "min_exponent": 3, "max_exponent": 5, "busy": 4, "turnaround_s": 1e-3}}}),
    ] {
        let mut cell = json!({"count": 7});
        cell.as_object_mut().expect("an object").extend(part.as_object().expect("an object").clone());
        let mut all = storm(Some(cell));
        all.replications = 4;
        all.series_s = 1.0;
        let simulation = Simulation::new(all).expect("a valid scenario");
        let text = |threads| {
            let threads = NonZeroUsize::new(threads).expect("some");
            let outcome =
                simulation.run_on(threads, &mut |_| ControlFlow::Continue(())).expect("not broken off");
            serde_json::to_string(&outcome).expect("serialises")
        };
        assert_eq!(text(1), text(3));
    }
}
