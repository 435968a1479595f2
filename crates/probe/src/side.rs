//! What the commands have in common: how they end; and of `load` and `serve` their side's certificates, signals, JSON.

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

/// Runs a command of these options; what is wrong is the status and a line.
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

/// Takes the fields that are options of handshakes: the suites, with the keys of user-supplied certificates where there
/// are any, and the settings.
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

/// An array of one object, as `--json` prints it.
pub fn document(object: &impl Serialize) -> Result<String, (u8, String)> {
    let text = serde_json::to_string_pretty(&[object]).map_err(|error| (1, error.to_string()))?;
    Ok(text + "\n")
}

/// SIGTERM and Ctrl-C, which threads that begin later leave to this one.
pub struct Stopping(SignalFd);

impl Stopping {
    /// Keeps the signals from ending the process.
    pub fn begin() -> Result<Self, String> {
        let signals: SigSet = [Signal::SIGTERM, Signal::SIGINT].into_iter().collect();
        let kept =
            signals.thread_block().and_then(|()| SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK));
        kept.map(Self).map_err(|error| format!("cannot wait for signals: {error}"))
    }

    /// Whether one has come since this was asked last.
    pub fn asked(&self) -> bool {
        matches!(self.0.read_signal(), Ok(Some(_)))
    }
}
