//! An open-loop load generator for TLS servers and WTLS gateways.
//!
//! Starts follow a schedule (`starts`) that is independent of the server. A connection's times begin at its *planned*
//! start, so that neither a stalled server nor a busy generator can hide a wait. One thread runs one event loop over a
//! slab of sans-IO endpoints (`engine`). [`run`] combines a schedule, a target and its clients.
//!
//! A session counts as resumed if the endpoint negotiated this with the server, whatever was requested.

mod cause;
mod client;
mod config;
mod connection;
mod engine;
mod error;
mod figures;
mod outcome;
mod pace;
mod sampling;
mod socket;
mod starts;
mod target;

pub use client::Checked;
pub use config::Config;
pub use error::LoadError;
pub use figures::Figures;
pub use outcome::{Outcome, Part, Parts, Rates, Resumed, Traces, merge};
pub use starts::Arrivals;
pub use target::Target;

use client::{Clients, given_roots};
use engine::Engine;
use shakedown_stacks::Settings;
use shakedown_trace::Suite;
use std::ops::ControlFlow;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

const REPORT_EVERY: Duration = Duration::from_millis(100);

/// Counts of a run in progress.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Progress {
    /// Time since the earliest possible start.
    pub elapsed_s: f64,
    pub planned: u64,
    pub started: u64,
    pub completed: u64,
    pub failed: u64,
    pub open: usize,
    /// Handshake times so far, from the planned start.
    pub handshake_s: Figures,
}

/// Loads a target as configured, and returns the generators' counts.
///
/// The generator and the background load each have a thread. `report` is called on the caller's thread; `Break` ends
/// the run early.
///
/// # Errors
/// [`LoadError`] if nothing was loaded: the target is unreachable, does not speak TLS or must not be loaded, or an
/// option is invalid. Later failures are counted.
pub fn run(
    config: &Config,
    suite: Option<&Suite>,
    settings: &Settings,
    report: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Parts, LoadError> {
    config.validate()?;
    // With a resumption suite, all connections resume, unless a share is given.
    let resumes = suite.is_some_and(Suite::is_resumption) && config.resumption == 0.0;
    let config = &Config { resumption: if resumes { 1.0 } else { config.resumption }, ..config.clone() };
    let target = &Target::resolve(&config.target, suite)?;
    config.permit(target)?;
    // Read once, on the caller's thread, which can be interrupted: the file may be a pipe.
    let roots = &given_roots(config)?;
    let background = &config.background();
    let all = Barrier::new(1 + usize::from(background.is_some()));
    let (stopped, gate) = (&AtomicBool::new(false), &Gate { all, failed: AtomicBool::new(false) });
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel(1);
        let spawn = |config, sender: Option<SyncSender<Progress>>| {
            let name = if sender.is_some() { "load" } else { "background" };
            let generator = std::thread::Builder::new().name(name.into()).spawn_scoped(scope, move || {
                let prepared = || -> Result<_, LoadError> {
                    let clients = Clients::make(config, suite, settings, target, roots.clone())?;
                    let mut engine = Engine::new(config, target, clients, stopped)?;
                    engine.prepare()?;
                    Ok(engine)
                };
                let engine = prepared();
                if !gate.pass(engine.is_ok()) {
                    return Err(engine.err().unwrap_or(LoadError::Companion));
                }
                engine?.load(&mut |progress| {
                    if let Some(sender) = &sender {
                        // If the previous report has not been read yet, this one is dropped.
                        let _ = sender.try_send(progress);
                    }
                })
            });
            generator.map_err(|error| LoadError::System { what: "start a thread", error })
        };
        let background_thread = background.as_ref().map(|background| spawn(background, None)).transpose()?;
        let generator = match spawn(config, Some(sender)) {
            Ok(generator) => generator,
            Err(error) => {
                gate.pass(false);
                return Err(error);
            }
        };
        let mut latest = Progress::default();
        loop {
            match receiver.recv_timeout(REPORT_EVERY) {
                Ok(progress) => latest = progress,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if report(&latest).is_break() {
                stopped.store(true, Ordering::Relaxed);
            }
        }
        let load = generator.join().unwrap_or(Err(LoadError::Panicked));
        let background_load =
            background_thread.map(|thread| thread.join().unwrap_or(Err(LoadError::Panicked))).transpose();
        match (load, background_load) {
            // `Companion` only means that the background load failed, whose error has the cause.
            (Err(LoadError::Companion), Err(error)) | (Err(error), _) | (_, Err(error)) => Err(error),
            (Ok(load), Ok(background)) => Ok(Parts { load, background }),
        }
    })
}

/// Generators begin when all are ready; if one fails, none begins.
struct Gate {
    all: Barrier,
    failed: AtomicBool,
}

impl Gate {
    /// Waits for all generators. False if one of them failed.
    fn pass(&self, is_ready: bool) -> bool {
        self.failed.fetch_or(!is_ready, Ordering::SeqCst);
        self.all.wait();
        !self.failed.load(Ordering::SeqCst)
    }
}
