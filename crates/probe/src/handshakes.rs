//! Real handshakes in memory, of every protocol: what a device's TLS stack takes beside the primitives.
//!
//! The figures are those of `shakedown measure --json`; `shakedown devices import` makes a profile of them.

use shakedown_stacks::Settings;
use shakedown_stacks::measure::{self, Measurement, profile_suites};
use shakedown_trace::Suite;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Handshakes of each suite in a round: of several short rounds some are undisturbed.
const REPEAT: usize = 5;

/// A suite that is measured, and the best round so far.
struct Candidate {
    suite: Suite,
    settings: Settings,
    best: Option<Measurement>,
}

/// Measures every suite that runs here, in turn, `rounds` times; of each the round that took least.
///
/// `progress` is told what is done, of how much, and what comes next. A suite that does not run is left out.
pub fn measure_all(
    rounds: usize,
    cache: Option<&PathBuf>,
    progress: &mut dyn FnMut(usize, usize, &str),
) -> Vec<Measurement> {
    let mut candidates: Vec<Candidate> = profile_suites().filter_map(|one| candidate(one, cache)).collect();
    let total = rounds * candidates.len();
    let mut done = 0;
    for _ in 0..rounds {
        for one in &mut candidates {
            progress(done, total, &one.suite.to_string());
            done += 1;
            let step = &mut |_| ControlFlow::Continue(());
            let Ok(found) = measure::measure(&one.suite, REPEAT, &one.settings, step) else { continue };
            if one.best.as_ref().is_none_or(|best| took_us(&found) < took_us(best)) {
                one.best = Some(found);
            }
        }
    }
    candidates.into_iter().filter_map(|one| one.best).collect()
}

fn candidate((name, tickets): (&str, u32), cache: Option<&PathBuf>) -> Option<Candidate> {
    let settings = Settings { tickets, cache: cache.cloned(), ..Settings::default() };
    Some(Candidate { suite: name.parse().ok()?, settings, best: None })
}

/// Both sides' medians.
fn took_us(found: &Measurement) -> f64 {
    found.handshake.client_us.summary.median + found.handshake.server_us.summary.median
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_line_names_a_suite() {
        assert!(profile_suites().count() > 100);
        for one in profile_suites() {
            assert!(candidate(one, None).is_some(), "{}", one.0);
        }
        assert_eq!(profile_suites().find(|one| one.0 == "tls1.3/x25519/p384/server").unwrap().1, 2);
    }
}
