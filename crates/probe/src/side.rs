//! Common parts of the commands: their end; for `load` and `serve` also credentials, signals and JSON.

use crate::options::{self, Given, Named};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use serde::Serialize;
use serde_json::Map;
use shakedown_stacks::Settings;
use shakedown_stacks::options::Options;
use shakedown_trace::Suite;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// Runs a command with these options. An error is an exit status and one line.
pub fn main(
    arguments: impl IntoIterator<Item = OsString>,
    help: &str,
    known: &[Named],
    command: impl FnOnce(Given) -> Result<(String, u8), (u8, String)>,
) -> ExitCode {
    let done = options::read(arguments, known)
        .map_err(|wrong| (2, wrong))
        .and_then(|given| if given.help { Ok((help.to_owned(), 0)) } else { command(given) });
    let (text, status) = done.unwrap_or_else(|(status, message)| {
        eprintln!("shakedown-probe: {message}");
        (String::new(), status)
    });
    // A reader may have closed the pipe.
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::from(status)
}

/// Removes the handshake options from `given`. Returns the suites, with the key types of user-supplied certificates,
/// and the settings.
pub fn settings(
    given: &mut Given,
    suites: &[Suite],
    fields: &[&str],
) -> Result<(Vec<Suite>, Settings), (u8, String)> {
    let mut taken: Map<_, _> = fields.iter().filter_map(|name| given.fields.remove_entry(*name)).collect();
    if let Ok(password) = std::env::var("SHAKEDOWN_PASSWORD") {
        taken.insert("password".into(), password.into());
    }
    let options: Options =
        serde_json::from_value(taken.into()).map_err(|error| (2, format!("options: {error}")))?;
    options.for_suites(suites).map_err(|error| (2, error.to_string()))
}

/// A JSON array of one object, as `--json` prints it.
pub fn document(object: &impl Serialize) -> Result<String, (u8, String)> {
    let text = serde_json::to_string_pretty(&[object]).map_err(|error| (1, error.to_string()))?;
    Ok(text + "\n")
}

/// Receives SIGTERM and SIGINT, which threads that begin later inherit as blocked.
pub struct Stopping(SignalFd);

impl Stopping {
    /// Blocks the signals, so that they do not end the process.
    pub fn begin() -> Result<Self, String> {
        let signals: SigSet = [Signal::SIGTERM, Signal::SIGINT].into_iter().collect();
        let kept =
            signals.thread_block().and_then(|()| SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK));
        kept.map(Self).map_err(|error| format!("cannot wait for signals: {error}"))
    }

    /// Whether a signal has arrived since the last call.
    pub fn asked(&self) -> bool {
        matches!(self.0.read_signal(), Ok(Some(_)))
    }
}
