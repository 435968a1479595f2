//! Queues compared with theory: means and percentiles of waiting times agree within their intervals.
//!
//! The general engine is used: a client sends a request without a network, and a worker serves it. Sources: L.
//! Kleinrock, "Queueing Systems" I (M/M/1, M/M/c, Pollaczek–Khinchine) and II (processor sharing); the 95th percentile
//! of M/D/1 from Erlang's series.

mod common;

use common::{class, constant, instant, run, scenario, service};
use shakedown_link::DistributionSpec;
use shakedown_sim::{ArrivalSpec, Discipline, Outcome, ServerSpec};

const REPLICATIONS: u32 = 12;
const UTILISATIONS: [f64; 5] = [0.3, 0.5, 0.7, 0.85, 0.95];

fn queue(
    time: &DistributionSpec,
    mean_s: f64,
    utilisation: f64,
    workers: u32,
    discipline: Discipline,
) -> Outcome {
    // Longer if the relaxation time of the queue is longer: it is proportional to 1 / (1 - ρ)².
    let counted = (2_000.0 / (1.0 - utilisation).powi(2)).clamp(15_000.0, 200_000.0) as u64;
    let per_s = utilisation * f64::from(workers) / mean_s;
    let arrivals = ArrivalSpec::Poisson { per_s };
    let mut scenario = scenario(vec![class(service(time.clone()), instant())], counted * 5 / 4, arrivals);
    scenario.warmup_clients = counted / 4;
    scenario.server = ServerSpec { workers, discipline, ..ServerSpec::default() };
    scenario.replications = REPLICATIONS;
    run(scenario)
}

/// Mean over replications, and the half width of an interval that holds it 999 times in 1000 (t with 11 degrees).
fn interval(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let values: Vec<f64> = values.collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, 4.437 * (variance / n).sqrt())
}

fn agrees(what: &str, utilisation: f64, (mean, margin): (f64, f64), expected: f64) {
    assert!(
        (mean - expected).abs() <= margin + 1e-3 * expected,
        "{what} at {utilisation}: {mean} ± {margin}, expected {expected}"
    );
    // A very wide interval would contain any value.
    assert!(margin < 0.35 * expected + 1e-4, "{what} at {utilisation}: ± {margin} of {expected}");
}

fn check(what: &str, outcome: &Outcome, utilisation: f64, mean_s: f64, p95_s: Option<f64>) {
    agrees(
        what,
        utilisation,
        interval(outcome.replications.iter().map(|each| each.wait.mean_s().unwrap_or(0.0))),
        mean_s,
    );
    if let Some(p95_s) = p95_s.filter(|p95_s| *p95_s > 0.0) {
        let what = format!("{what}, p95");
        agrees(
            &what,
            utilisation,
            interval(outcome.replications.iter().map(|each| each.wait.percentile_s(2))),
            p95_s,
        );
    }
    let measured = outcome.report().utilisation;
    assert!(
        (measured / utilisation - 1.0).abs() < 0.02,
        "{what}: utilisation {measured}, expected {utilisation}"
    );
}

#[test]
fn mm1_matches_theory() {
    let time = DistributionSpec::Exponential { minimum_s: 0.0, mean_s: 0.01 };
    for utilisation in UTILISATIONS {
        let outcome = queue(&time, 0.01, utilisation, 1, Discipline::Fifo);
        // P(W > t) = ρ e^(-(1-ρ) t / s).
        let mean = utilisation * 0.01 / (1.0 - utilisation);
        let p95 = (0.01 / (1.0 - utilisation) * (utilisation / 0.05).ln()).max(0.0);
        check("M/M/1", &outcome, utilisation, mean, Some(p95));
    }
}

/// P(W ≤ t) in M/D/1: (1-ρ) Σ_{k ≤ t/s} e^{λ(t-ks)} (-λ(t-ks))^k / k!.
fn m_d_1_cdf(utilisation: f64, t: f64) -> f64 {
    let mut sum = 0.0;
    for k in 0..=t.floor() as i32 {
        let x = utilisation * (t - f64::from(k));
        let mut term = x.exp();
        for factor in 1..=k {
            term *= -x / f64::from(factor);
        }
        sum += term;
    }
    (1.0 - utilisation) * sum
}

#[test]
fn md1_matches_theory() {
    for utilisation in UTILISATIONS {
        let outcome = queue(&constant(0.01), 0.01, utilisation, 1, Discipline::Fifo);
        let mean = utilisation * 0.01 / (2.0 * (1.0 - utilisation));
        // The alternating series is precise while its terms are small; otherwise only the mean is checked.
        let p95 = (utilisation <= 0.85).then(|| {
            let (mut low, mut high) = (0.0, 15.0);
            while high - low > 1e-6 {
                let middle = (low + high) / 2.0;
                if m_d_1_cdf(utilisation, middle) < 0.95 { low = middle } else { high = middle }
            }
            low * 0.01
        });
        check("M/D/1", &outcome, utilisation, mean, p95);
    }
}

/// The 95th percentile of waiting in M/G/1, by Beneš's series: the wait is a geometric number of residual services,
/// whose distribution is computed recursively on a lattice (Panjer). Services are multiples of `step_s`; residuals are
/// uniform within a step, and represented by its middle.
fn m_g_1_p95(utilisation: f64, samples: &[f64], step_s: f64) -> f64 {
    let mean = samples.iter().sum::<f64>() / samples.len() as f64;
    let longest = samples.iter().fold(0.0, |longest: f64, sample| longest.max(*sample));
    let residual: Vec<f64> = (0..(longest / step_s).round() as usize)
        .map(|k| {
            let longer = samples.iter().filter(|sample| **sample > (k as f64 + 0.5) * step_s).count();
            longer as f64 / samples.len() as f64 * step_s / mean
        })
        .collect();
    // A residual is half a step after k on average: cells k and k + 1 share it.
    let mut spread = vec![0.0; residual.len() + 1];
    for (k, share) in residual.iter().enumerate() {
        spread[k] += share / 2.0;
        spread[k + 1] += share / 2.0;
    }
    let stays = 1.0 - utilisation * spread[0];
    let mut waits = vec![(1.0 - utilisation) / stays];
    let mut below = waits[0];
    while below < 0.95 {
        let k = waits.len();
        let sum: f64 = (1..=k.min(spread.len() - 1)).map(|j| spread[j] * waits[k - j]).sum();
        waits.push(utilisation * sum / stays);
        below += waits[k];
    }
    (waits.len() - 1) as f64 * step_s
}

/// Pollaczek–Khinchine for a mixture like that of the reproduced thesis: few long messages among many short ones.
#[test]
fn mg1_matches_pollaczek_khinchine() {
    let samples: Vec<f64> = [vec![0.052; 3], vec![0.0021; 12], vec![0.0004; 15]].concat();
    let n = samples.len() as f64;
    let mean_s = samples.iter().sum::<f64>() / n;
    let square = samples.iter().map(|sample| sample * sample).sum::<f64>() / n;
    let time = DistributionSpec::Samples { s: samples.clone() };
    for utilisation in UTILISATIONS {
        let outcome = queue(&time, mean_s, utilisation, 1, Discipline::Fifo);
        let mean = utilisation / mean_s * square / (2.0 * (1.0 - utilisation));
        // At 0.95, services that vary so much would need a far longer run for a useful interval.
        let p95 = (utilisation <= 0.85).then(|| m_g_1_p95(utilisation, &samples, 1e-4));
        check("M/G/1", &outcome, utilisation, mean, p95);
    }
}

#[test]
fn mmc_matches_erlang_c() {
    let time = DistributionSpec::Exponential { minimum_s: 0.0, mean_s: 0.01 };
    for (workers, utilisation) in [(2, 0.5), (2, 0.9), (4, 0.7), (4, 0.95), (16, 0.85)] {
        let outcome = queue(&time, 0.01, utilisation, workers, Discipline::Fifo);
        // Erlang's C by the recursion of B.
        let load = utilisation * f64::from(workers);
        let blocking = (1..=workers).fold(1.0, |b, k| load * b / (f64::from(k) + load * b));
        let waits = blocking / (1.0 - utilisation * (1.0 - blocking));
        let rate = f64::from(workers) / 0.01 * (1.0 - utilisation);
        let p95 = if waits > 0.05 { (waits / 0.05).ln() / rate } else { 0.0 };
        let wide = p95 > 0.1 * 0.01;
        check("M/M/c", &outcome, utilisation, waits / rate, wide.then_some(p95));
    }
}

/// The 95th percentile of the time in M/M/1-PS, in service times: a customer that finds n others (geometric) leaves at
/// rate 1/(n + 1), the others at n/(n + 1), more arrive at ρ. Solved by the midpoint method.
fn m_m_1_ps_p95(utilisation: f64) -> f64 {
    let states = (12.0 / (1.0 - utilisation)) as usize + 40;
    let mut there: Vec<f64> = (0..states).map(|n| (1.0 - utilisation) * utilisation.powi(n as i32)).collect();
    let step = 0.002;
    let mut time = 0.0;
    let mut before = (0.0, 1.0);
    loop {
        let left: f64 = there.iter().sum();
        if left < 0.05 {
            // Linear interpolation between the last two steps.
            return before.0 + step * (before.1 - 0.05) / (before.1 - left);
        }
        before = (time, left);
        // Midpoint method: the whole step is made with the rates at its middle.
        let rates = |from: &[f64]| -> Vec<f64> {
            (0..states)
                .map(|n| {
                    let up = if n > 0 { utilisation * from[n - 1] } else { 0.0 };
                    let down = from.get(n + 1).map_or(0.0, |more| more * (n as f64 + 1.0) / (n as f64 + 2.0));
                    up + down - (utilisation + 1.0) * from[n]
                })
                .collect()
        };
        let first = rates(&there);
        let middle: Vec<f64> = there.iter().zip(&first).map(|(n, change)| n + step / 2.0 * change).collect();
        let second = rates(&middle);
        there.iter_mut().zip(&second).for_each(|(n, change)| *n += step * change);
        time += step;
    }
}

/// Under processor sharing the time in the system depends on the mean alone: s / (1 - ρ) for any distribution.
#[test]
fn mg1_processor_sharing_matches_theory() {
    let samples: Vec<f64> = [vec![0.05; 2], vec![0.002; 18]].concat();
    let mean_s = samples.iter().sum::<f64>() / samples.len() as f64;
    for (time, mean_s) in [
        (DistributionSpec::Samples { s: samples }, mean_s),
        (constant(0.01), 0.01),
        (DistributionSpec::Exponential { minimum_s: 0.0, mean_s: 0.01 }, 0.01),
    ] {
        for utilisation in [0.3, 0.7, 0.9] {
            let outcome = queue(&time, mean_s, utilisation, 1, Discipline::Ps);
            let sojourn =
                interval(outcome.replications.iter().map(|each| each.sojourn.mean_s().unwrap_or(0.0)));
            agrees("M/G/1-PS", utilisation, sojourn, mean_s / (1.0 - utilisation));
            if matches!(time, DistributionSpec::Exponential { .. }) {
                let p95 = interval(outcome.replications.iter().map(|each| each.sojourn.percentile_s(2)));
                agrees("M/M/1-PS, p95", utilisation, p95, mean_s * m_m_1_ps_p95(utilisation));
            }
        }
    }
}

#[test]
fn overload_is_simulated_and_marked_unstable() {
    let time = constant(0.01);
    let arrivals = ArrivalSpec::Deterministic { per_s: 200.0 };
    let outcome = run(scenario(vec![class(service(time), instant())], 1000, arrivals));
    let report = outcome.report();
    assert!(report.unstable && report.offered == Some(2.0));
    // The k-th waits for k times half a service: no client fails, and the last waits longest.
    assert_eq!(report.completed, 1000);
    assert!((report.queue_wait_s.max.expect("values") - 999.0 * 0.005).abs() < 1e-6);
    assert!((report.utilisation - 1.0).abs() < 0.003, "{}", report.utilisation);
}
