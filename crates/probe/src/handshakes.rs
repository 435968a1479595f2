//! Handshakes of every protocol in memory: the TLS stack's time beyond the primitives.
//!
//! The figures are those of `shakedown measure --json`; `shakedown devices import` makes a profile of them.

use shakedown_stacks::Settings;
use shakedown_stacks::measure::{self, Measurement, profile_suites};
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Handshakes of each suite in a round, so few that some rounds run without a preemption.
const REPEAT: usize = 5;

/// Measures every supported suite `rounds` times, in turn, and returns the fastest round of each.
///
/// `progress` gets the number of completed measurements, their total number, and the next suite.
pub fn measure_all(
    rounds: usize,
    cache: Option<&PathBuf>,
    progress: &mut dyn FnMut(usize, usize, &str),
) -> Vec<Measurement> {
    let suites: Vec<(&str, u32)> = profile_suites().collect();
    let mut best: Vec<Option<Measurement>> = suites.iter().map(|_| None).collect();
    for number in 0..rounds * suites.len() {
        let (name, tickets) = suites[number % suites.len()];
        progress(number, rounds * suites.len(), name);
        let settings = Settings { tickets, cache: cache.cloned(), ..Settings::default() };
        let Ok(suite) = name.parse() else { continue };
        let step = &mut |_| ControlFlow::Continue(());
        let Ok(found) = measure::measure(&suite, REPEAT, &settings, step) else { continue };
        let best = &mut best[number % suites.len()];
        if best.as_ref().is_none_or(|best| took_us(&found) < took_us(best)) {
            *best = Some(found);
        }
    }
    best.into_iter().flatten().collect()
}

/// Sum of both sides' medians.
fn took_us(found: &Measurement) -> f64 {
    found.handshake.client_us.summary.median + found.handshake.server_us.summary.median
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use shakedown_trace::Suite;

    #[test]
    fn every_line_names_a_suite() {
        assert!(profile_suites().count() > 100);
        for one in profile_suites() {
            assert!(one.0.parse::<Suite>().is_ok(), "{}", one.0);
        }
        assert_eq!(profile_suites().find(|one| one.0 == "tls1.3/x25519/p384/server").unwrap().1, 2);
    }
}
