//! An open-loop load generator for TLS servers and WTLS gateways.
//!
//! Starts follow a [`Schedule`], which knows nothing of the server: a connection's times count from the moment at which
//! it was *planned* to start, so that neither a stalled server nor a busy generator can hide a wait. One thread runs one
//! event loop over a slab of sans-IO endpoints ([`engine`]); [`run`] wires a plan, a target and its clients together.
//!
//! Whether a session was resumed is what the endpoint negotiated with the server, never what was asked for.

mod cause;
mod client;
mod config;
mod connection;
mod engine;
mod error;
mod figures;
mod outcome;
mod schedule;
mod socket;
mod starts;
mod target;

pub use client::Checked;
pub use config::Config;
pub use error::LoadError;
pub use figures::{Figures, Histogram};
pub use outcome::{Outcome, Rates, Resumed};
pub use schedule::{Arrivals, Schedule};
pub use target::Target;

use client::Clients;
use engine::Engine;
use shakedown_stacks::Settings;
use shakedown_trace::Suite;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// How often whoever waits is told of progress.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// What a run has come to so far.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Progress {
    /// Since the first planned start could be.
    pub elapsed_s: f64,
    /// Starts that were due.
    pub planned: u64,
    /// Connections that were started.
    pub started: u64,
    /// Handshakes that were completed.
    pub completed: u64,
    /// Those that failed.
    pub failed: u64,
    /// Connections that are open.
    pub open: usize,
    /// Handshake times so far, from the planned start.
    pub handshake_s: Figures,
}

/// Loads a target as a configuration says, and says what came of it.
///
/// The generator has a thread of its own; `report` is called on the caller's, and ends the run early by `Break`.
///
/// # Errors
/// [`LoadError`] where nothing was loaded: a target that isn't there, isn't TLS or isn't to be loaded, or options that
/// are no good. What fails later is counted.
pub fn run(
    config: &Config,
    suite: Option<&Suite>,
    settings: &Settings,
    report: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Outcome, LoadError> {
    config.validate()?;
    // A suite that resumes says so for all of its connections, unless a share is given.
    let resumes = suite.is_some_and(Suite::is_resumption) && config.resume_ratio == 0.0;
    let config = &Config { resume_ratio: if resumes { 1.0 } else { config.resume_ratio }, ..config.clone() };
    let target = Target::resolve(&config.target, suite)?;
    config.permit(&target)?;
    let stopped = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // One place: a report that nobody has taken yet is as good as the next.
        let (sender, receiver) = sync_channel(1);
        let (target, stopped) = (&target, &stopped);
        let generator = std::thread::Builder::new().name("load".into()).spawn_scoped(scope, move || {
            let clients = Clients::make(config, suite, settings, target)?;
            let mut engine = Engine::new(config, target, clients, stopped)?;
            engine.prepare()?;
            engine.load(&mut |progress| drop(sender.try_send(progress)))
        });
        let generator = generator.map_err(|error| LoadError::System { what: "start a thread", error })?;
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
        generator.join().unwrap_or(Err(LoadError::Panicked))
    })
}
