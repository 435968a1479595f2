//! What `load` and `serve` have in common: their side's certificates, signals, JSON.

use crate::options::{self, Given, Named};
use crate::{fail, print};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use serde::Serialize;
use shakedown_certs::CertsError;
use shakedown_certs::supplied::{self, SuppliedFiles};
use shakedown_stacks::Settings;
use shakedown_trace::{Side, Suite};
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

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
    match done {
        Ok((text, status)) => {
            print(&text);
            ExitCode::from(status)
        }
        Err((status, message)) => fail(status, &message),
    }
}

/// The suites, with the keys of user-supplied certificates where there are any, and the settings of a side.
pub fn settings(
    given: &mut Given,
    suites: &[Suite],
    side: Side,
) -> Result<(Vec<Suite>, Settings), (u8, String)> {
    let wrong = |message: String| (2, message);
    let key = given.text("key");
    // The load generator has a `ca` of its own: what it trusts.
    let ca = if side == Side::Server { given.text("ca") } else { None };
    let files = given.text("chain").map(|chain| SuppliedFiles {
        chain: chain.into(),
        key: key.map(Into::into),
        ca: ca.map(Into::into),
        password: std::env::var("SHAKEDOWN_PASSWORD").ok(),
    });
    let mut settings = Settings { cache: given.text("cache").map(Into::into), ..Settings::default() };
    let stack = given.text("stack");
    if let Some(name) = &stack {
        settings.registry.get(name).map_err(|error| wrong(error.to_string()))?;
    }
    match side {
        Side::Client => settings.client_stack = stack,
        Side::Server => {
            settings.server_stack = stack;
            // Servers on a network live today, not on the laboratory's fixed day.
            let now =
                SystemTime::now().duration_since(UNIX_EPOCH).map_err(|error| wrong(error.to_string()))?;
            settings.now_unix_s = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        }
    }
    if let Some(tickets) = given.fields.remove("tickets") {
        let tickets = tickets.as_u64().and_then(|tickets| u32::try_from(tickets).ok());
        settings.tickets = tickets
            .filter(|tickets| *tickets <= MAX_TICKETS)
            .ok_or_else(|| wrong(format!("--tickets: accepted: 0 to {MAX_TICKETS}")))?;
    }
    let mut named = Vec::new();
    for suite in suites {
        let (server, client) = match side {
            Side::Server => (files.as_ref(), None),
            Side::Client => (None, files.as_ref()),
        };
        let loaded = supplied::load(suite, server, client, settings.now_unix_s)
            .map_err(|error: CertsError| wrong(error.to_string()))?;
        named.push(loaded.suite);
        settings.server_identity = settings.server_identity.or(loaded.server);
        settings.client_identity = settings.client_identity.or(loaded.client);
    }
    Ok((named, settings))
}

const MAX_TICKETS: u32 = 16;

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
