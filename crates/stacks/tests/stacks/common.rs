//! Shared by the tests of this crate: one handshake, its trace, and the accounting of a trace.

use shakedown_stacks::measure::{self, Measurement};
use shakedown_stacks::{Settings, prepare};
use shakedown_trace::driver::Loopback;
use shakedown_trace::{Counter, HalfTrace, Recorded, Recording, Side, Suite, Trace};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

/// Tests that compare times hold it exclusively, all others as readers.
static PROCESSORS: RwLock<()> = RwLock::new(());

/// Waits until no other test of this program runs, and blocks others while the guard lives.
pub fn alone() -> impl Drop {
    PROCESSORS.write().unwrap_or_else(PoisonError::into_inner)
}

/// Runs concurrently with other tests, but not with one that compares times.
pub fn shared() -> impl Drop {
    PROCESSORS.read().unwrap_or_else(PoisonError::into_inner)
}

/// Generating keys is slow, so tests keep theirs between runs, separate from the user's.
pub fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("keys")
}

pub fn settings() -> Settings {
    Settings { cache: Some(cache()), ..Settings::default() }
}

pub fn suite(name: &str) -> Suite {
    name.parse().unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub fn measure(name: &str, repeat: usize) -> Measurement {
    measure::measure(&suite(name), repeat, &settings(), &mut |_| ControlFlow::Continue(()))
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Runs one instrumented handshake, and checks that it is the requested one and that its messages contain all bytes.
pub fn trace(suite: &Suite, settings: &Settings) -> Result<Trace, String> {
    let peers = prepare(suite, settings).map_err(|error| error.to_string())?;
    let pair = peers.pair().map_err(|error| error.to_string())?;
    let mut client = Recorded::new(pair.client, Recording::new(Counter::NANOSECONDS));
    let mut server = Recorded::new(pair.server, Recording::new(Counter::NANOSECONDS));
    let outcome = Loopback::new().handshake(&mut client, &mut server, &mut ());
    let handshake = outcome.map_err(|error| error.to_string())?;
    for negotiated in [&handshake.client, &handshake.server] {
        if let Some(difference) = negotiated.difference(suite) {
            return Err(difference);
        }
    }
    let half = |endpoint: &Recorded<_>| endpoint.half_trace().map_err(|error| error.to_string());
    let (client, server) = (half(&client)?, half(&server)?);
    let trace = Trace::join(&client, &server).map_err(|error| error.to_string())?;
    let transferred = handshake.transferred;
    let bytes = [trace.bytes_from(Side::Client), trace.bytes_from(Side::Server)];
    if bytes != [transferred.client_to_server, transferred.server_to_client] {
        return Err(format!("messages hold {bytes:?} bytes of {transferred:?}"));
    }
    // The receiver counted the same bytes as the sender.
    let read = [bytes_from(&server, Side::Client), bytes_from(&client, Side::Server)];
    if bytes != read {
        return Err(format!("messages hold {bytes:?} bytes as sent and {read:?} as received"));
    }
    Ok(trace)
}

/// Errors in a trace's accounting; empty if it is correct.
pub fn imbalances(trace: &Trace) -> Vec<String> {
    let mut found = Vec::new();
    for side in [Side::Client, Side::Server] {
        let spent = |from: Side, generate: u64, process: u64| if from == side { generate } else { process };
        let mut in_messages = 0;
        for (index, message) in trace.messages.iter().enumerate() {
            let whole = spent(message.from, message.generate, message.process);
            in_messages += whole;
            let inside =
                trace.operations.iter().filter(|record| record.side == side && record.message == Some(index));
            let inside: u64 = inside.map(|record| record.spent).sum();
            if inside > whole {
                found.push(format!("{side}: operations of {} take {inside} of its {whole} ns", message.name));
            }
        }
        let outside =
            trace.operations.iter().filter(|record| record.side == side && record.message.is_none());
        let outside: u64 = outside.map(|record| record.spent).sum();
        let (total, unattributed) = (trace.total[side as usize], trace.unattributed[side as usize]);
        if in_messages + unattributed != total {
            found.push(format!(
                "{side}: messages {in_messages} and unattributed {unattributed} are not {total} ns"
            ));
        }
        if outside > unattributed {
            found.push(format!("{side}: operations outside messages take {outside} of {unattributed} ns"));
        }
    }
    found
}

/// Bytes of the messages that a side sent, as recorded in this half.
pub fn bytes_from(half: &HalfTrace, side: Side) -> u64 {
    let sent = half.messages.iter().filter(|message| message.from == side);
    sent.map(|message| u64::from(message.bytes)).sum()
}

pub fn flights(trace: &Trace) -> u32 {
    trace.messages.iter().filter_map(|message| message.flight).max().unwrap_or(0)
}
