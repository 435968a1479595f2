//! Real handshakes in memory, of every protocol: what a device's TLS stack takes beside the primitives.
//!
//! The figures are those of `shakedown measure --json`; `shakedown devices import` makes a profile of them.

use shakedown_stacks::Settings;
use shakedown_stacks::measure::{self, Measurement};
use shakedown_trace::Suite;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// The suites, one a line, as `shakedown devices measure` takes them; a number after one is its tickets.
const SUITES: &str = include_str!("suites.txt");
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
    let mut candidates: Vec<Candidate> = SUITES.lines().filter_map(|line| candidate(line, cache)).collect();
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

fn candidate(line: &str, cache: Option<&PathBuf>) -> Option<Candidate> {
    let (name, tickets) = line.split_once(' ').unwrap_or((line, "0"));
    let settings = Settings { tickets: tickets.parse().ok()?, cache: cache.cloned(), ..Settings::default() };
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
        let lines: Vec<&str> = SUITES.lines().collect();
        assert!(lines.len() > 100);
        for line in lines {
            assert!(candidate(line, None).is_some(), "{line}");
        }
        assert_eq!(candidate("tls1.3/x25519/p384/server 2", None).unwrap().settings.tickets, 2);
    }
}
