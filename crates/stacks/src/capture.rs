//! Handshakes as packets: each suite runs once, and the transferred bytes are written as a capture.

use crate::measure::{MeasureError, Step};
use crate::peers::prepare;
use crate::settings::Settings;
use crate::stack::KeyLog;
use shakedown_capture::write::{Chunk, Conversation, WriteError, Writer};
use shakedown_trace::driver::{Loopback, Tap};
use shakedown_trace::endpoint::Transport;
use shakedown_trace::{Side, Suite};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

#[derive(Debug, thiserror::Error)]
pub enum CapturingError {
    #[error(transparent)]
    Handshake(#[from] MeasureError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("{path}: {error}")]
    KeyLog { path: String, error: std::io::Error },
}

struct Stopwatch {
    start: Instant,
    /// The sender of each unit, the time since the start, and the bytes.
    units: Vec<(Side, Duration, Vec<u8>)>,
}

impl Tap for Stopwatch {
    fn unit(&mut self, from: Side, bytes: &[u8]) {
        self.units.push((from, self.start.elapsed(), bytes.to_vec()));
    }
}

/// Runs one handshake, and returns the transferred units.
fn run(suite: &Suite, settings: &Settings) -> Result<(Transport, Stopwatch), MeasureError> {
    let peers = prepare(suite, settings)?;
    // The handshake that establishes a session is not in the capture, so its secrets are not logged.
    if let Some(log) = &settings.key_log {
        log.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
    let mut pair = peers.pair()?;
    let transport = pair.client.transport();
    let mut tap = Stopwatch { start: Instant::now(), units: Vec::new() };
    let outcome = Loopback::new().handshake(pair.client.as_mut(), pair.server.as_mut(), &mut tap);
    outcome.map_err(|error| MeasureError::Handshake { suite: suite.to_string(), error })?;
    Ok((transport, tap))
}

/// The servers' port in a capture: HTTPS, and WAP's port for WTLS with WTP.
fn server_port(transport: Transport) -> u16 {
    match transport {
        Transport::Stream => 443,
        Transport::Datagram => 9203,
    }
}

/// Runs each suite once, with its number of tickets, and writes all connections to one capture, their secrets to a key
/// log. `progress` receives the number of finished suites, and may stop the work.
///
/// # Errors
/// [`CapturingError`]. No file is created.
pub fn write_capture(
    suites: &[(Suite, u32)],
    settings: &Settings,
    capture: &Path,
    key_log: Option<&Path>,
    progress: Step<'_>,
) -> Result<(), CapturingError> {
    let mut writer = Writer::create(capture)?;
    let mut secrets = Vec::new();
    let mut start = Duration::from_secs(u64::try_from(settings.now_unix_s).unwrap_or(0));
    for (done, (suite, tickets)) in suites.iter().enumerate() {
        if progress(done).is_break() {
            return Err(MeasureError::Interrupted.into());
        }
        let log = KeyLog::default();
        let key_log = Some(log.clone());
        let logged = Settings { key_log, instrumented: false, tickets: *tickets, ..settings.clone() };
        let (transport, sent) = run(suite, &logged)?;
        let chunks: Vec<Chunk<'_>> =
            sent.units.iter().map(|(from, time, bytes)| Chunk { from: *from, time: *time, bytes }).collect();
        let (client, server) = writer.addresses(server_port(transport));
        writer.connection(&Conversation { transport, client, server, start, chunks: &chunks })?;
        secrets.append(&mut log.lock().unwrap_or_else(PoisonError::into_inner));
        start += Duration::from_secs(1);
    }
    // Written before the capture gets its name: after an error, neither file exists, so the call can be repeated.
    if let Some(path) = key_log {
        write_key_log(path, &secrets)
            .map_err(|error| CapturingError::KeyLog { path: path.display().to_string(), error })?;
    }
    writer.finish().inspect_err(|_| key_log.into_iter().for_each(remove))?;
    Ok(())
}

/// Writes a new file; an error leaves none.
fn write_key_log(path: &Path, secrets: &[String]) -> std::io::Result<()> {
    let mut file = File::create_new(path)?;
    secrets.iter().try_for_each(|line| writeln!(file, "{line}")).inspect_err(|_| remove(path))
}

fn remove(path: &Path) {
    let _ = std::fs::remove_file(path);
}
