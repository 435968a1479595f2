//! The cost of each primitive on this machine, identified by the same triples as in traces.
//!
//! The calls are libssl's own, in the timed library context, so the same trampolines time them as inside a handshake:
//! the triples and the boundaries are the same. A peer's key is decoded again for each use, as in a handshake; a
//! server's private key is reused, as in a server. Between two rounds a handshake without public keys runs, so that the
//! processor's caches are in the same state as inside one.

mod cache_disturbing;
pub(crate) mod evp;
mod ffi;
mod profile;
mod sampling;
mod symmetric;
mod target;
mod timing;
mod workload;
mod wtls;

pub use profile::{About, device_profile};
pub use timing::{Spread, Timing};

use crate::processor::Pinned;
use crate::stack::SetupError;
use cache_disturbing::CacheDisturbingHandshake;
use evp::Evp;
use sampling::Readings;
use shakedown_ossl::Library;
use shakedown_pki::{PkiError, Store};
pub use shakedown_trace::Primitive;
use shakedown_trace::suite::KeyType;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use target::Target;

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("the WTLS engine's primitives failed: {0}")]
    Wtls(#[from] shakedown_wtls::crypto::CryptoError),
    #[error("two sides disagree about {what}")]
    Disagreement { what: &'static str },
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Keys(#[from] PkiError),
    #[error("the handshake between two rounds failed: {reason}")]
    CacheDisturbing { reason: String },
    #[error(
        "no primitive matches '{filter}'; accepted: beginnings of operations, algorithms and parameters, such as 'sign', 'verify rsa', 'ecdh p256', 'aes-128-gcm'"
    )]
    NoMatch { filter: String },
    #[error("{seconds} seconds for each key or algorithm; accepted: more than 0, up to 3600")]
    Seconds { seconds: f64 },
    #[error("interrupted")]
    Interrupted,
}

pub enum Workload {
    /// Public-key calls; one round has the calls of one handshake.
    PublicKey(Box<dyn FnMut() -> Result<(), Failure>>),
    Symmetric(Box<dyn FnMut(usize) -> Result<(), Failure>>),
}

#[derive(Clone, Debug)]
pub struct Options {
    /// Beginnings of operations, algorithms or parameters, all of which a primitive must match; empty: all primitives.
    pub filter: Vec<String>,
    /// Time for each key, group or algorithm, in seconds; less if the results are precise enough earlier.
    pub seconds: f64,
    /// Times primitives in loops without other work, as libraries' benchmarks do.
    pub back_to_back: bool,
    /// Folder that stores keys between runs; `None`: the store's default folder.
    pub cache: Option<PathBuf>,
}

/// Default time for each key, group or algorithm, in seconds.
pub const DEFAULT_SECONDS: f64 = 1.0;

impl Default for Options {
    fn default() -> Self {
        Self { filter: Vec::new(), seconds: DEFAULT_SECONDS, back_to_back: false, cache: None }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Number of finished keys, groups and algorithms.
    pub done: usize,
    pub total: usize,
    /// The first primitive of the key, group or algorithm that is being timed.
    pub now: &'a Primitive,
    /// The timings of the one before, when the next begins; else empty.
    pub finished: &'a [Timing],
}

/// The primitives that [`time`] returns for a filter, in the same order.
pub fn list(filter: &[String]) -> Vec<Primitive> {
    Target::all()
        .into_iter()
        .flat_map(Target::primitives)
        .filter(|primitive| matches(primitive, filter))
        .collect()
}

fn matches(primitive: &Primitive, filter: &[String]) -> bool {
    filter.iter().flat_map(|words| words.split_whitespace()).all(|word| {
        let word = word.to_ascii_lowercase();
        let parts = [primitive.operation.as_str(), primitive.algorithm, primitive.parameters];
        parts.iter().any(|part| part.starts_with(&word))
    })
}

/// Times primitives. `progress` is called at intervals, and may stop the work.
///
/// # Errors
/// [`Failure`]; [`Failure::NoMatch`] and [`Failure::Seconds`] are errors of the user's input.
pub fn time(
    options: &Options,
    progress: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
) -> Result<Vec<Timing>, Failure> {
    if !(options.seconds > 0.0 && options.seconds <= 3600.0) {
        return Err(Failure::Seconds { seconds: options.seconds });
    }
    let wanted: Vec<(Target, Vec<Primitive>)> = Target::all()
        .into_iter()
        .map(|target| {
            let all = target.primitives().into_iter();
            (target, all.filter(|primitive| matches(primitive, &options.filter)).collect())
        })
        .filter(|(_, primitives): &(_, Vec<_>)| !primitives.is_empty())
        .collect();
    if wanted.is_empty() {
        return Err(Failure::NoMatch { filter: options.filter.join(" ") });
    }
    let evp = Evp::new(Library::timed().map_err(SetupError::from)?);
    let _pinned = Pinned::to_current_processor();
    let mut between = if options.back_to_back {
        CacheDisturbingHandshake::none()
    } else {
        CacheDisturbingHandshake::handshake()?
    };
    let budget = Duration::from_secs_f64(options.seconds);
    let mut timings = Vec::new();
    let mut reported = 0;
    let total = wanted.len();
    for (done, (target, primitives)) in wanted.into_iter().enumerate() {
        let now = primitives[0];
        if progress(Progress { done, total, now: &now, finished: &timings[reported..] }).is_break() {
            return Err(Failure::Interrupted);
        }
        reported = timings.len();
        let mut workload = workload::prepare(target, evp, &|key| private_key(key, options))?;
        let mut last = Instant::now();
        let mut breathe = || {
            if last.elapsed() < POLL_INTERVAL {
                return ControlFlow::Continue(());
            }
            last = Instant::now();
            progress(Progress { done, total, now: &now, finished: &[] })
        };
        let readings = Readings::take(&mut workload, primitives, budget, &mut between, &mut breathe)?;
        timings.extend(readings.timings());
    }
    Ok(timings)
}

/// Interval of calls of `progress` within one target.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A private key from the store; without a folder for it, a new key that is not stored.
fn private_key(key: KeyType, options: &Options) -> Result<Vec<u8>, Failure> {
    let folder = match &options.cache {
        Some(folder) => Some(folder.clone()),
        None => Store::default_dir().ok(),
    };
    if let Some(folder) = folder {
        match Store::open(&folder).temporary_key(key) {
            Err(PkiError::File { .. }) => {}
            found => return Ok(found?),
        }
    }
    Ok(shakedown_pki::keys::to_pkcs8(&*shakedown_pki::keys::generate(key)?)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use shakedown_trace::{Counter, Recording};
    use std::collections::HashSet;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn every_workload_runs_exactly_its_primitive() {
        let folder = std::env::temp_dir().join(format!("shakedown-primitives-{}", std::process::id()));
        let options = Options { cache: Some(folder.clone()), ..Options::default() };
        let evp = Evp::new(Library::timed().unwrap());
        for target in Target::all() {
            let mut workload = workload::prepare(target, evp, &|key| private_key(key, &options)).unwrap();
            // The first round may have more operations than later ones.
            for round in 0..2 {
                let mut recording = Recording::new(Counter::NANOSECONDS);
                sampling::record(&mut recording, || match &mut workload {
                    Workload::PublicKey(work) => work(),
                    // Whole blocks, as in a record.
                    Workload::Symmetric(work) => work(96),
                })
                .unwrap();
                let found: HashSet<_> = sampling::completed(&recording).into_iter().collect();
                let said: HashSet<_> = target.primitives().into_iter().collect();
                let found: HashSet<_> = match workload {
                    Workload::PublicKey(_) => {
                        found.into_iter().filter(|p| !p.operation.is_symmetric()).collect()
                    }
                    Workload::Symmetric(_) => found,
                };
                assert!(said.is_subset(&found), "{target:?}, round {round}: {said:?}, but {found:?}");
                // For a curve that TLS has too, the WTLS engine's workload is used for only one of its primitives.
                let more = matches!(target, Target::Wtls(_));
                assert!(more || found == said, "{target:?}, round {round}: {found:?}, not {said:?}");
            }
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn no_primitive_is_listed_twice() {
        let all = list(&[]);
        let distinct: HashSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
        assert!(all.len() > 300, "{}", all.len());
    }

    #[test]
    fn filter_matches_word_prefixes() {
        let names = |filter: &[&str]| -> Vec<String> {
            let found = list(&words(filter));
            found
                .iter()
                .map(|p| format!("{} {} {}", p.operation.as_str(), p.algorithm, p.parameters))
                .collect()
        };
        assert_eq!(names(&["sign rsa2048"]), ["sign rsa rsa2048", "sign rsa rsa2048e3"]);
        assert_eq!(names(&["SIGN", "dsa", "dsa1"]), ["sign dsa dsa1024"]);
        assert_eq!(names(&["derive", "x25519"]), ["derive ecdh x25519"]);
        assert!(names(&["rsa9999"]).is_empty());
    }

    #[test]
    fn wrong_options_are_refused() {
        let mut silent = |_: Progress<'_>| ControlFlow::Continue(());
        let none = Options { filter: words(&["sgin"]), ..Options::default() };
        assert!(matches!(time(&none, &mut silent), Err(Failure::NoMatch { filter }) if filter == "sgin"));
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let odd = Options { seconds, ..Options::default() };
            assert!(matches!(time(&odd, &mut silent), Err(Failure::Seconds { .. })), "{seconds}");
        }
    }

    #[test]
    fn timings_are_in_order_and_progress_can_stop_them() {
        let options = Options { filter: words(&["x25519"]), seconds: 0.02, ..Options::default() };
        let mut told = 0;
        let mut reported = Vec::new();
        let timings = time(&options, &mut |progress| {
            told += 1;
            assert!(progress.done < progress.total);
            reported.extend_from_slice(progress.finished);
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(timings.len(), list(&options.filter).len());
        assert!(!reported.is_empty() && timings.starts_with(&reported) && reported.len() < timings.len());
        assert!(told >= 2);
        for timing in timings {
            let us = timing.us;
            assert!(
                0.0 < us.min
                    && us.min <= us.low
                    && us.low <= us.median
                    && us.median <= us.high
                    && us.high <= us.max
            );
            assert!(us.n >= 3);
        }
        let stopped = time(&options, &mut |_| ControlFlow::Break(()));
        assert!(matches!(stopped, Err(Failure::Interrupted)));
    }
}
