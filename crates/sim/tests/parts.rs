//! The parts of a fleet give the same bytes as the whole.

use proptest::prelude::*;
use serde_json::{Value, json};
use shakedown_sim::outcome::MergeError;
use shakedown_sim::{ArrivalSpec, Merger, Outcome, Scenario, Simulation};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

fn run(scenario: &Scenario) -> Outcome {
    let simulation = Simulation::new(scenario.clone()).expect("valid");
    simulation.run(&mut |_| ControlFlow::Continue(())).expect("not broken off")
}

fn text(outcome: &Outcome) -> String {
    serde_json::to_string(outcome).expect("serialises")
}

/// All parts of all replications, the last first.
fn parts(scenario: &Scenario, of: u32) -> Vec<Outcome> {
    let simulation = Simulation::new(scenario.clone()).expect("valid");
    let pieces = (0..scenario.replications).flat_map(|number| (0..of).map(move |part| (number, part)));
    let one = |(number, part)| {
        let part = scenario.part(part, of).expect("a part");
        simulation
            .replication(number, Some(part), &mut |_| ControlFlow::Continue(()))
            .expect("not broken off")
    };
    pieces.map(one).rev().collect()
}

fn merged(outcomes: Vec<Outcome>) -> Result<Option<Outcome>, MergeError> {
    let mut all = Merger::default();
    outcomes.into_iter().try_for_each(|one| all.add(one))?;
    all.end()
}

fn class(bytes: u32, takes: Value, cells: bool) -> Value {
    let message = |from: &str, name: &str, flight: u32, bytes: u32, process: &Value| {
        json!({"from": from, "name": name, "bytes": bytes, "flight": flight, "unit": flight,
               "generate": {"kind": "constant", "s": 0.0}, "process": process})
    };
    let nothing = json!({"kind": "constant", "s": 0.0});
    json!({
        "handshake": {"name": format!("of {bytes}"), "transport": "stream", "messages": [
            message("client", "ClientHello", 1, 200, &takes),
            message("server", "Certificate", 2, bytes, &nothing),
            message("client", "Finished", 3, 60, &nothing),
        ]},
        "bearer": {"up_bits_per_s": 100_000.0, "down_bits_per_s": 200_000.0, "traversal_s": 0.02, "loss": 0.02},
        "cell": cells.then(|| json!({"count": 7, "medium": "air"})),
    })
}

fn scenario() -> impl Strategy<Value = Value> {
    // Times on a grid, at which several events happen at once, and continuous times.
    let arrivals = prop_oneof![
        Just(json!({"kind": "storm", "within_s": 0.0})),
        Just(json!({"kind": "storm", "within_s": 3.0})),
        Just(json!({"kind": "curve", "points": [[0.0, 0.0], [2.0, 80.0], [3.0, 0.0]]})),
        Just(json!({"kind": "times", "at_s": (0..90).map(|n| f64::from(n / 3) * 0.25).collect::<Vec<_>>()})),
    ];
    let takes = prop_oneof![
        Just(json!({"kind": "constant", "s": 0.25})),
        Just(json!({"kind": "exponential", "minimum_s": 0.01, "mean_s": 0.1})),
    ];
    let retry = prop::option::of(Just(json!({"attempts": 3, "delay_s": 0.5, "factor": 2.0, "jitter": 0.5})));
    let admission = prop::option::of(prop::sample::select(&["reset", "alert", "silence"][..]));
    let server = (2_u32..6, any::<bool>(), any::<bool>(), (prop::option::of(1_u32..4), admission));
    (arrivals, takes, retry, server, 0_u64..1000).prop_map(
        |(arrivals, takes, retry, (servers, by_cell, shares, (handshakes, refusal)), seed)| {
            let admission = refusal.map(|refusal| json!({"per_s": 4.0, "burst": 3, "refusal": refusal}));
            let clients = (arrivals["kind"] == "storm").then_some(90);
            json!({"classes": [class(900, takes.clone(), by_cell), class(4000, takes, by_cell)],
                   "clients": clients, "arrivals": arrivals, "timeout_s": retry.is_some().then_some(2.0), "retry": retry,
                   "server": {"servers": servers, "balance": if by_cell { "cell" } else { "hash" }, "workers": 2,
                              "discipline": if shares { "ps" } else { "fifo" }, "max_handshakes": handshakes, "admission": admission},
                   "series_s": 0.5, "seed": seed, "replications": 2})
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn parts_of_any_number_merge_to_the_whole(spec in scenario()) {
        let scenario: Scenario = serde_json::from_value(spec).expect("a scenario");
        let whole = text(&run(&scenario));
        prop_assert_eq!(scenario.parts(), scenario.server.servers);
        for of in 1..=scenario.parts() {
            let merged = merged(parts(&scenario, of)).expect("merges").expect("some");
            prop_assert_eq!(text(&merged), &whole[..], "{} parts", of);
        }
    }
}

fn four_servers(balance: &str) -> Scenario {
    serde_json::from_value(json!({
        "classes": [class(900, json!({"kind": "constant", "s": 0.1}), balance == "cell")], "clients": 40,
        "arrivals": {"kind": "storm", "within_s": 1.0}, "server": {"servers": 4, "balance": balance},
        "series_s": 0.1, "seed": 1,
    }))
    .expect("a scenario")
}

#[test]
fn missing_or_duplicate_part_is_refused() {
    let mut found = parts(&four_servers("hash"), 4);
    found.pop();
    let missing = MergeError::Parts { replication: 0, of: 4, there: 3 };
    assert_eq!(merged(found.clone()), Err(missing));
    found.push(found[0].clone());
    assert!(matches!(merged(found.clone()), Err(MergeError::Parts { .. })));
    assert!(found[0].clone().merge(&found[1]).is_err());
}

#[test]
fn fleets_with_shared_servers_are_not_divided() {
    for (balance, parts) in [("round-robin", 1), ("least-connections", 1), ("hash", 4), ("cell", 4)] {
        assert_eq!(four_servers(balance).parts(), parts, "{balance}");
    }
    let mut cells = four_servers("cell");
    cells.server.balance = shakedown_sim::Balance::Hash;
    assert_eq!(cells.parts(), 1, "a cell's clients go to all servers");
    let error = cells.part(0, 2).expect_err("no parts").to_string();
    assert!(error.contains("part 0 of 2; accepted"), "{error}");
    let mut without = four_servers("hash");
    without.server.balance = shakedown_sim::Balance::Cell;
    let error = Simulation::new(without).expect_err("no cells").to_string();
    assert!(error.contains("class 0 has no cells"), "{error}");
}

/// The clients of a cell use the cell's server: with as many servers as cells, all have the same share of the clients.
#[test]
fn cells_are_distributed_over_servers() {
    let mut scenario = four_servers("cell");
    scenario.clients = Some(70);
    scenario.server.servers = 7;
    for part in parts(&scenario, 7) {
        assert_eq!(part.arrived, 10);
    }
}

/// A replication of a storm is divided for several threads; the outcome is the same.
#[test]
fn storm_outcome_does_not_depend_on_threads() {
    let simulation = Simulation::new(four_servers("cell")).expect("valid");
    assert_eq!((simulation.parts(1), simulation.parts(2), simulation.parts(100)), (1, 4, 4));
    let go = &mut |_| ControlFlow::Continue(());
    let one = simulation.run(go).expect("not broken off");
    let several = simulation.run_on(NonZeroUsize::new(3).expect("not 0"), go).expect("not broken off");
    assert_eq!(text(&several), text(&one));
}

/// Many clients are simulated in parts on one thread, too, so that fewer are in flight.
#[test]
fn large_fleets_are_divided_to_fit_memory() {
    let parts = |clients, servers, within_s| {
        let mut scenario = four_servers("hash");
        (scenario.clients, scenario.server.servers) = (Some(clients), servers);
        scenario.arrivals = ArrivalSpec::Storm { within_s };
        Simulation::new(scenario).expect("valid").parts(1)
    };
    assert_eq!((parts(1000, 9, 10.0), parts(400_000, 9, 3600.0), parts(400_000, 4, 10.0)), (1, 8, 4));
    assert_eq!(parts(100_000_000, 1000, 10.0), 256);
    // The clients of a day are not in flight together, so there are fewer parts: each draws the arrivals of all.
    assert_eq!(parts(100_000_000, 1000, 86_400.0), 84);
}
