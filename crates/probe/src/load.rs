//! `shakedown-probe load`: the load generator, with the options and the JSON of `shakedown load`.

use crate::options::{Given, Kind, Named};
use crate::side::{Stopping, document, settings};
use serde::Serialize;
use shakedown_live::load::{Arrivals, Config, LoadError, Outcome, merge, run};
use shakedown_stacks::SetupError;
use shakedown_trace::Suite;
use std::ops::ControlFlow;

pub const HELP: &str = "\
Loads a TLS server or a WTLS gateway, and prints what its clients saw, as 'shakedown load --json' does.

Usage: shakedown-probe load TARGET [SUITE] [OPTIONS]

TARGET is HOST:PORT, tls://HOST:PORT or wtls://HOST:PORT. Options are those of 'shakedown load', one for one:
  --rate R --arrivals poisson|deterministic|closed --background R --duration T --count N --clients N
  --resumption SHARE --seed N --timeout T --max-open N --http PATH --await-first-byte
  --ca FILE --server-name NAME --no-check --client-stack NAME --client-chain FILE --client-key FILE
  --authorized-target HOST --no-rate-cap; and --cache FOLDER, where generated keys are kept
";

pub const OPTIONS: &[Named] = &[
    ("rate", "rate_per_s", Kind::PerSecond),
    ("arrivals", "arrivals", Kind::OneOf(&["poisson", "deterministic", "closed"])),
    ("background", "background_per_s", Kind::PerSecond),
    ("duration", "duration_s", Kind::Seconds),
    ("count", "max_starts", Kind::Number),
    ("clients", "clients", Kind::Number),
    ("resumption", "resumption", Kind::Number),
    ("seed", "seed", Kind::Number),
    ("timeout", "timeout_s", Kind::Seconds),
    ("max-open", "max_open", Kind::Number),
    ("http", "http", Kind::Text),
    ("await-first-byte", "await_first_byte", Kind::Flag(true)),
    ("ca", "ca", Kind::Text),
    ("server-name", "server_name", Kind::Text),
    ("no-check", "check", Kind::Flag(false)),
    ("client-stack", "client_stack", Kind::Text),
    ("client-chain", "client_chain", Kind::Text),
    ("client-key", "client_key", Kind::Text),
    ("authorized-target", "authorized_target", Kind::Text),
    ("no-rate-cap", "rate_cap", Kind::Flag(false)),
    ("cache", "cache", Kind::Text),
];

const OF_HANDSHAKES: [&str; 4] = ["client_stack", "client_chain", "client_key", "cache"];

/// Output of `shakedown load --json`, without requirements and sampled handshakes.
#[derive(Serialize)]
struct Run<'a> {
    kind: &'static str,
    target: &'a str,
    suite: Option<String>,
    arrivals: Arrivals,
    duration_s: f64,
    clients: usize,
    seed: u64,
    requirements: [(); 0],
    emulate_device: Option<()>,
    time_spent: Option<()>,
    #[serde(flatten)]
    figures: Outcome,
}

pub fn load(mut given: Given) -> Result<(String, u8), (u8, String)> {
    let wrong = |message: String| (2, message);
    let suite = match &given.words[..] {
        [_] => None,
        [_, suite] => Some(suite.parse::<Suite>().map_err(|error| wrong(error.to_string()))?),
        _ => return Err(wrong("accepted: one TARGET, and one SUITE at most; see --help".into())),
    };
    let (suites, settings) = settings(&mut given, suite.as_slice(), &OF_HANDSHAKES)?;
    let suite = suites.first();
    let request = given.text("http");
    let has_background = given.fields.contains_key("background_per_s");
    let mut config: Config = serde_json::from_value(given.fields.clone().into())
        .map_err(|error| wrong(format!("options: {error}")))?;
    // The defaults of `shakedown load` with a background load.
    if has_background && !given.fields.contains_key("arrivals") && config.rate_per_s.is_none() {
        config.arrivals = Arrivals::Closed;
    }
    if has_background && !given.fields.contains_key("clients") {
        config.clients = 1;
    }
    config.target.clone_from(&given.words[0]);
    config.request = request.map(|path| http_request(&path, &config)).transpose().map_err(wrong)?;
    let stopping = Stopping::begin().map_err(|error| (1, error))?;
    let counted = run(&config, suite, &settings, &mut |_| {
        if stopping.asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let counted = counted.map_err(|error| (status(&error), error.to_string()))?;
    let Some(figures) = merge(vec![counted]) else { return Err((1, "nothing was counted".into())) };
    let (interrupted, completed) = (figures.interrupted, figures.completed);
    let document = document(&Run {
        kind: "live",
        target: &config.target,
        suite: suite.map(ToString::to_string),
        arrivals: config.arrivals,
        duration_s: config.duration_s,
        clients: config.clients,
        seed: config.seed,
        requirements: [],
        emulate_device: None,
        time_spent: None,
        figures: Outcome { traces: None, ..figures },
    })?;
    Ok((document, if interrupted { 130 } else { u8::from(completed == 0) }))
}

fn status(error: &LoadError) -> u8 {
    let setup = matches!(error, LoadError::Setup(SetupError::Unsupported(_) | SetupError::Pki(_)));
    if setup || error.is_input() { 2 } else { 1 }
}

/// A request after whose response the server closes the connection.
fn http_request(path: &str, config: &Config) -> Result<String, String> {
    let target = config.server_name.as_ref().unwrap_or(&config.target);
    let host = target.split_once("://").map_or(target.as_str(), |(_, rest)| rest).trim_end_matches('/');
    if !path.starts_with('/') || path.chars().chain(host.chars()).any(|letter| letter <= ' ') {
        return Err(format!("--http is '{path}'; accepted: a path such as / or /index.html"));
    }
    Ok(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
}
