//! What the tests of this crate share: one handshake, its trace, and the books of a trace.

use shakedown_stacks::measure::{self, Measurement};
use shakedown_stacks::{Settings, prepare};
use shakedown_trace::driver::Wire;
use shakedown_trace::recorder::{self, Tape};
use shakedown_trace::{Side, Suite, Trace};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

/// Who compares times runs alone; everybody else shares.
static PROCESSORS: RwLock<()> = RwLock::new(());

/// Keeps the other tests of this program still for as long as the guard lives.
pub fn alone() -> impl Drop {
    PROCESSORS.write().unwrap_or_else(PoisonError::into_inner)
}

/// Takes part in what runs side by side.
pub fn shared() -> impl Drop {
    PROCESSORS.read().unwrap_or_else(PoisonError::into_inner)
}

/// Keys are slow to make, so tests keep theirs between runs, apart from the user's.
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

/// Runs one handshake under the instrument, checks that it is the one asked for and that all of its bytes
/// are in messages.
pub fn trace(suite: &Suite, settings: &Settings) -> Result<Trace, String> {
    let mut rig = prepare(suite, settings).map_err(|error| error.to_string())?;
    let mut pair = rig.pair().map_err(|error| error.to_string())?;
    recorder::start(Tape::default());
    let outcome = Wire::new().handshake(pair.client.as_mut(), pair.server.as_mut(), &mut ());
    let tape = recorder::stop();
    let travelled = outcome.map_err(|error| error.to_string())?;
    pair.client.confirm()?;
    pair.server.confirm()?;
    let trace = Trace::from_tape(&tape).map_err(|error| error.to_string())?;
    let bytes = [trace.bytes_from(Side::Client), trace.bytes_from(Side::Server)];
    if bytes != [travelled.client_to_server, travelled.server_to_client] {
        return Err(format!("messages hold {bytes:?} bytes of {travelled:?}"));
    }
    Ok(trace)
}

/// What does not balance in a trace; nothing where the books are right.
pub fn imbalances(trace: &Trace) -> Vec<String> {
    let mut found = Vec::new();
    for side in [Side::Client, Side::Server] {
        let spent = |from: Side, generate: u64, process: u64| if from == side { generate } else { process };
        let mut in_messages = 0;
        for (index, message) in trace.messages.iter().enumerate() {
            let whole = spent(message.from, message.generate_ns, message.process_ns);
            in_messages += whole;
            let inside =
                trace.operations.iter().filter(|record| record.side == side && record.message == Some(index));
            let inside: u64 = inside.map(|record| record.ns).sum();
            if inside > whole {
                found.push(format!("{side}: operations of {} take {inside} of its {whole} ns", message.name));
            }
        }
        let outside =
            trace.operations.iter().filter(|record| record.side == side && record.message.is_none());
        let outside: u64 = outside.map(|record| record.ns).sum();
        let (marked, remainder) = (trace.marked_ns[side as usize], trace.remainder_ns[side as usize]);
        if in_messages + remainder != marked {
            found.push(format!(
                "{side}: messages {in_messages} and remainder {remainder} are not {marked} ns"
            ));
        }
        if outside > remainder {
            found.push(format!("{side}: operations outside messages take {outside} of {remainder} ns"));
        }
    }
    found
}
