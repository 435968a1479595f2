//! Autoscaling, calculated by hand.

mod common;

use common::{class, constant, instant, run, scenario, service};
use shakedown_sim::{ArrivalSpec, Balance, ScalingSpec, Scenario, Simulation};

/// Half a second of work, four times a second for a minute: twice a server's capacity. Then once in five seconds.
fn fleet() -> Scenario {
    let busy = (0..240).map(|number| f64::from(number) * 0.25);
    let calm = (0..11).map(|number| 82.5 + 5.0 * f64::from(number));
    let at_s: Vec<f64> = busy.chain(calm).collect();
    let clients = at_s.len() as u64;
    let arrivals = ArrivalSpec::Times { at_s };
    let mut fleet = scenario(vec![class(service(constant(0.5)), instant())], clients, arrivals);
    fleet.series_s = 5.0;
    fleet.server.scaling = Some(ScalingSpec {
        max_servers: 3,
        interval_s: 10.0,
        up: 0.8,
        up_waiting: None,
        step: 1,
        startup_s: 15.0,
        down: 0.3,
        cooldown_s: 20.0,
    });
    fleet
}

/// At 10 and 20 s all servers are busy: servers start, and serve from 25 and 35 s on. The first server's backlog keeps
/// the utilisation above 30 % until 70 s; then one stops at 90 s, after 20 s of low utilisation, and one at 110 s.
#[test]
fn servers_start_after_their_delay_and_stop_after_the_cooldown() {
    let found = run(fleet());
    let seconds: Vec<(f64, f64)> = found
        .series
        .intervals
        .iter()
        .map(|one| (one.servers.0 as f64 / 5e9, one.starting.0 as f64 / 5e9))
        .collect();
    let at = |s: usize| seconds[s / 5];
    for (from, until, servers, starting) in [
        (0, 10, 1.0, 0.0),
        (10, 20, 1.0, 1.0),
        (20, 25, 1.0, 2.0),
        (25, 35, 2.0, 1.0),
        (35, 90, 3.0, 0.0),
        (90, 110, 2.0, 0.0),
        (110, 130, 1.0, 0.0),
    ] {
        for s in (from..until).step_by(5) {
            assert_eq!(at(s), (servers, starting), "at {s} s");
        }
    }
    let report = found.report();
    let scaling = report.scaling.expect("asked for");
    assert_eq!((scaling.peak, scaling.started, scaling.stopped), (3, 2, 2));
    // 25 + 10 × 2 + 55 × 3 + 20 × 2 + 23 seconds, to the end of the last client's work at 133 s.
    let counted = found.scaling.expect("asked for");
    assert_eq!((counted.serving_ns, counted.starting_ns), (273_000_000_000, 30_000_000_000));
    // 251 clients' work, in the time up to the last arrival, half a second before the last of it was done.
    assert!((report.utilisation - (251.0 * 0.5 - 0.5) / 272.5).abs() < 1e-9, "{}", report.utilisation);
}

/// 40 jobs arrive at 0.5 s at two workers. At 4 s these were busy for 7/8 of the time, and 26 jobs wait.
#[test]
fn queue_length_starts_servers() {
    let servers_from_4_to_8_s = |up_waiting| {
        let mut fleet = fleet();
        (fleet.arrivals, fleet.clients) = (ArrivalSpec::Times { at_s: vec![0.5; 40] }, Some(40));
        (fleet.server.workers, fleet.series_s) = (2, 4.0);
        if let Some(scaling) = &mut fleet.server.scaling {
            (scaling.interval_s, scaling.up, scaling.startup_s) = (4.0, 0.9, 0.0);
            scaling.up_waiting = up_waiting;
        }
        run(fleet).series.intervals[1].servers.0 as f64 / 4e9
    };
    assert_eq!([None, Some(27.0), Some(26.0)].map(servers_from_4_to_8_s), [1.0, 1.0, 2.0]);
}

#[test]
fn autoscaling_with_hash_or_too_few_servers_is_refused() {
    let mut fleet = fleet();
    fleet.server.balance = Balance::Hash;
    let error = Simulation::new(fleet.clone()).expect_err("a hash").to_string();
    assert!(error.contains("accepted with it: round-robin, least-connections"), "{error}");
    fleet.server.balance = Balance::LeastConnections;
    fleet.server.servers = 4;
    let error = Simulation::new(fleet).expect_err("fewer at most").to_string();
    assert!(error.contains("server.scaling.max_servers is 3; accepted: servers to 10000"), "{error}");
}
