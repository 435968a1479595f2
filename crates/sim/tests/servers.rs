//! Several servers behind a balancer, compared with theory: a random split gives independent M/M/1 queues, round robin
//! gives Erlang arrivals at each, and least connections is the shortest queue.

mod common;

use common::{class, instant, message, run, scenario, service};
use shakedown_link::DistributionSpec;
use shakedown_sim::{ArrivalSpec, Balance, PrecisionSpec, Report, Scenario, Sender, ServerSpec, Simulation};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

const SERVICE_S: f64 = 0.01;

fn balanced(servers: u32, balance: Balance, utilisation: f64) -> Scenario {
    let time = DistributionSpec::Exponential { minimum_s: 0.0, mean_s: SERVICE_S };
    let per_s = utilisation * f64::from(servers) / SERVICE_S;
    Scenario {
        server: ServerSpec { servers, balance, ..ServerSpec::default() },
        warmup_clients: 1000,
        replications: 20,
        precision: Some(PrecisionSpec { relative: 0.03, max_events: 100_000_000, least_counted: 0 }),
        ..scenario(vec![class(service(time), instant())], 5000, ArrivalSpec::Poisson { per_s })
    }
}

fn report(scenario: Scenario) -> Report {
    let simulation = Simulation::new(scenario).expect("valid");
    let outcome = simulation.run_on(NonZeroUsize::MIN, &mut |_| ControlFlow::Continue(()));
    outcome.expect("not broken off").report()
}

fn check(what: &str, report: &Report, exact_s: f64) {
    let (mean, margin) =
        (report.client_wait_s.mean.expect("a mean"), report.client_wait_s.mean_margin.expect("several"));
    assert!(report.precision.as_ref().expect("asked for").is_met, "{what}: {:?}", report.precision);
    // t with 19 degrees of freedom: 999 of 1000.
    let wide = margin * 3.883 / 2.093;
    assert!((mean - exact_s).abs() <= wide, "{what}: {mean} ± {wide}, expected {exact_s}");
}

#[test]
fn hash_balance_gives_separate_queues() {
    for (servers, utilisation) in [(4, 0.7), (10, 0.85)] {
        let found = report(balanced(servers, Balance::Hash, utilisation));
        check("hash", &found, utilisation * SERVICE_S / (1.0 - utilisation));
        assert!((found.utilisation / utilisation - 1.0).abs() < 0.02, "{}", found.utilisation);
    }
}

/// G/M/1 with every n-th of Poisson arrivals: the wait is σ s / (1 - σ), σ = (nρ / (nρ + 1 - σ))ⁿ (Kleinrock I, 6.4).
#[test]
fn round_robin_gives_erlang_arrivals() {
    for (servers, utilisation) in [(2, 0.8), (5, 0.9)] {
        let rate = utilisation * f64::from(servers);
        let mut sigma = 0.5_f64;
        for _ in 0..10_000 {
            sigma = (rate / (rate + 1.0 - sigma)).powi(servers as i32);
        }
        let found = report(balanced(servers, Balance::RoundRobin, utilisation));
        check("round robin", &found, sigma * SERVICE_S / (1.0 - sigma));
    }
}

/// The mean number of clients at two servers if each client joins the shorter queue, from the stationary distribution.
fn shortest_of_two_l(utilisation: f64) -> f64 {
    const MOST: usize = 60;
    let arrival = 2.0 * utilisation;
    let rate = arrival + 2.0;
    let mut now = vec![[0.0; MOST]; MOST];
    now[0][0] = 1.0;
    loop {
        let mut next = vec![[0.0; MOST]; MOST];
        for i in 0..MOST {
            for j in 0..MOST {
                let share = now[i][j] / rate;
                next[i.saturating_sub(1)][j] += share;
                next[i][j.saturating_sub(1)] += share;
                let (more, other) = ((i + 1).min(MOST - 1), (j + 1).min(MOST - 1));
                let first = if i < j {
                    1.0
                } else if i == j {
                    0.5
                } else {
                    0.0
                };
                next[more][j] += share * arrival * first;
                next[i][other] += share * arrival * (1.0 - first);
            }
        }
        let moved: f64 =
            now.iter().flatten().zip(next.iter().flatten()).map(|(a, b): (&f64, &f64)| (a - b).abs()).sum();
        now = next;
        if moved < 1e-10 {
            break;
        }
    }
    now.iter()
        .enumerate()
        .flat_map(|(i, row)| row.iter().enumerate().map(move |(j, p)| (i + j) as f64 * p))
        .sum()
}

#[test]
fn least_connections_matches_the_shortest_queue() {
    for utilisation in [0.5, 0.8] {
        let exact = shortest_of_two_l(utilisation) / (2.0 * utilisation) * SERVICE_S - SERVICE_S;
        let found = report(balanced(2, Balance::LeastConnections, utilisation));
        check("least connections", &found, exact);
    }
}

/// If connections cannot wait, clients of a full server are lost: each server serves as many as its limit.
#[test]
fn limits_apply_to_each_server() {
    for (servers, most) in [(1, 1), (3, 1), (3, 4)] {
        let mut few = balanced(servers, Balance::RoundRobin, 0.5);
        few.precision = None;
        few.server.max_handshakes = Some(most);
        few.arrivals = ArrivalSpec::Storm { within_s: 0.0 };
        few.warmup_clients = 0;
        few.replications = 1;
        few.classes[0].handshake.messages.push(message(Sender::Server, "Finished", 1, 2, 2));
        few.clients = Some(300);
        assert_eq!(run(few).completed, u64::from(servers * most), "{servers} servers, {most} each");
    }
}
