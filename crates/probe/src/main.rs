//! `shakedown-probe` measures the costs of cryptographic primitives, of TLS stacks and of connections on the device
//! where it runs, and contains the load generator and the server of `shakedown`.
//!
//! It is one file without Python or shared libraries, to be copied to a device. It writes the device profile that
//! `shakedown predict --device FILE` reads; `load` and `serve` print what `shakedown` prints with `--json`.

#![forbid(unsafe_code)]

mod arguments;
mod connection;
mod handshakes;
mod load;
mod options;
mod serve;
mod side;

use arguments::Arguments;
use connection::ConnectionCost;
use options::Given;
use shakedown_pki::date;
use shakedown_pki::draft::Draft;
use shakedown_stacks::machine::Machine;
use shakedown_stacks::measure::Measurement;
use shakedown_stacks::primitives::{self, About, Failure};
use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1).peekable();
    match words.peek().and_then(|word| word.to_str()) {
        Some("load") => side::main(words.skip(1), load::HELP, load::OPTIONS, load::load),
        Some("serve") => side::main(words.skip(1), serve::HELP, serve::OPTIONS, serve::serve),
        _ => side::main(words, arguments::HELP, arguments::OPTIONS, measure),
    }
}

fn list(filter: &[String]) -> String {
    let line = |primitive: primitives::Primitive| {
        let name = [primitive.operation.as_str(), primitive.algorithm, primitive.parameters].join(" ");
        name.trim_end().to_owned() + "\n"
    };
    primitives::list(filter).into_iter().map(line).collect()
}

fn measure(given: Given) -> Result<(String, u8), (u8, String)> {
    let arguments = Arguments::of(given).map_err(|wrong| (2, wrong))?;
    if arguments.version {
        return Ok((concat!("shakedown-probe ", env!("CARGO_PKG_VERSION"), "\n").into(), 0));
    }
    if arguments.list {
        return Ok((list(&arguments.filter), 0));
    }
    let options = primitives::Options {
        filter: arguments.filter.clone(),
        seconds: arguments.seconds.unwrap_or(primitives::DEFAULT_SECONDS),
        back_to_back: arguments.back_to_back,
        cache: arguments.cache.clone(),
    };
    let mut line = Line::new(arguments.quiet);
    let timed = primitives::time(&options, &mut |progress| {
        let name = [progress.now.algorithm, progress.now.parameters].join(" ");
        line.say(progress.done, progress.total, name.trim_end());
        ControlFlow::Continue(())
    });
    line.clear();
    let timings = timed.map_err(|error| {
        let input = matches!(error, Failure::NoMatch { .. } | Failure::Seconds { .. });
        (if input { 2 } else { 1 }, error.to_string())
    })?;
    let text = text(&arguments, &timings).map_err(|error| (1, error))?;
    let Some(path) = &arguments.out else { return Ok((text, 0)) };
    write(path, &text).map_err(|error| (1, format!("{}: {error}", path.display())))?;
    eprintln!("{} primitives written to {}", timings.len(), path.display());
    Ok((String::new(), 0))
}

/// A profile, or JSON: of the primitives, or of handshakes and a connection too.
fn text(arguments: &Arguments, timings: &[primitives::Timing]) -> Result<String, String> {
    let machine = Machine::detect();
    if arguments.rounds() == 0 && !arguments.json {
        let about = About {
            name: arguments.name(),
            title: arguments.title.clone().unwrap_or_else(|| machine.cpu.clone()),
            date: arguments.date.clone().unwrap_or_else(today),
            source: format!("shakedown-probe {} on the device itself", env!("CARGO_PKG_VERSION")),
            machine,
        };
        return primitives::device_profile(&about, timings);
    }
    let json = if arguments.rounds() == 0 {
        serde_json::to_string_pretty(timings)
    } else {
        let cache = arguments.cache.as_ref();
        let mut line = Line::new(arguments.quiet);
        let connection = connection::connection_cost(cache, &mut |done, total, name| {
            line.say(done, total, name);
        });
        line.clear();
        // Without the cost of a connection, the importer assumes one; the other figures are still useful.
        let connection = connection.inspect_err(|error| eprintln!("shakedown-probe: {error}")).ok();
        let measured = handshakes::measure_all(arguments.rounds(), cache, &mut |done, total, name| {
            line.say(done, total, name);
        });
        line.clear();
        eprintln!("{} suites", measured.len());
        serde_json::to_string(&Everything {
            machine: &machine,
            primitives: timings,
            handshakes: &measured,
            connection: connection.as_ref(),
        })
    };
    json.map(|text| text + "\n").map_err(|error| error.to_string())
}

/// Today in UTC, as `YYYY-MM-DD`.
fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut time = date::print(i64::try_from(since.as_secs()).unwrap_or(0));
    time.truncate("YYYY-MM-DD".len());
    time
}

/// Output with handshakes.
#[derive(serde::Serialize)]
struct Everything<'a> {
    machine: &'a Machine,
    primitives: &'a [primitives::Timing],
    handshakes: &'a [Measurement],
    /// None if it could not be measured.
    connection: Option<&'a ConnectionCost>,
}

/// Replaces a regular file atomically, so that a full disk leaves no partial profile. Devices and pipes are written to.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if path.metadata().is_ok_and(|there| !there.is_file()) {
        return std::fs::OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Draft::write(folder, 0o666, text.as_bytes())?.replace(path)
}

/// Progress: one line that is overwritten on a terminal, otherwise a line for every tenth target.
struct Line {
    quiet: bool,
    terminal: bool,
    shown: Option<usize>,
}

impl Line {
    fn new(quiet: bool) -> Self {
        Self { quiet, terminal: std::io::stderr().is_terminal(), shown: None }
    }

    fn say(&mut self, done: usize, total: usize, name: &str) {
        // The count restarts at 0 for a second list.
        let begun = self.shown.is_some_and(|shown| done >= shown);
        let due = !begun || self.shown.is_none_or(|shown| done >= shown + if self.terminal { 1 } else { 10 });
        if self.quiet || !due {
            return;
        }
        self.shown = Some(done);
        let text = format!("{:3} of {total}: {name}", done + 1);
        if self.terminal {
            eprint!("\r\x1b[K{text}");
        } else {
            eprintln!("{text}");
        }
    }

    fn clear(&self) {
        if self.terminal && self.shown.is_some() {
            eprint!("\r\x1b[K");
        }
    }
}
