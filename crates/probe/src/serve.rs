//! `shakedown-probe serve`: the server, with the options and the JSON of `shakedown serve`.

use crate::options::{Given, Kind, Named};
use crate::side::{Stopping, document, settings};
use openssl::x509::X509;
use shakedown_live::serve::{Config, Server};
use shakedown_trace::Suite;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub const HELP: &str = "\
Serves suites on a socket until SIGTERM or Ctrl-C, then prints what it counted, as 'shakedown serve --json' does.

Usage: shakedown-probe serve SUITE... --listen HOST:PORT [OPTIONS]

Options are those of 'shakedown serve', one for one:
  --stack NAME --server-workers N --payload BYTES --payload-when request|handshake
  --handshake-timeout T --idle-timeout T --drain-timeout T --max-handshakes N --max-connections N
  --client-ca FILE --metrics HOST:PORT --traces-out FILE --sample N --queue-times
  --chain FILE --key FILE --ca FILE --ca-out FILE --tickets N; and --cache FOLDER, where generated keys are kept
";

pub const OPTIONS: &[Named] = &[
    ("listen", "listen", Kind::Text),
    ("metrics", "metrics", Kind::Text),
    ("stack", "stack", Kind::Text),
    ("server-workers", "workers", Kind::Number),
    ("payload", "payload_bytes", Kind::Number),
    ("payload-when", "payload_when", Kind::OneOf(&["request", "handshake"])),
    ("handshake-timeout", "handshake_timeout_s", Kind::Seconds),
    ("idle-timeout", "idle_timeout_s", Kind::Seconds),
    ("drain-timeout", "drain_timeout_s", Kind::Seconds),
    ("max-handshakes", "max_handshakes", Kind::Number),
    ("max-connections", "max_connections", Kind::Number),
    ("client-ca", "client_ca", Kind::Text),
    ("traces-out", "traces_out", Kind::Text),
    ("sample", "sample", Kind::Number),
    ("queue-times", "queue_times", Kind::Flag(true)),
    ("chain", "chain", Kind::Text),
    ("key", "key", Kind::Text),
    ("ca", "ca", Kind::Text),
    ("ca-out", "ca_out", Kind::Text),
    ("tickets", "tickets", Kind::Number),
    ("cache", "cache", Kind::Text),
];

const OF_HANDSHAKES: [&str; 7] = ["stack", "chain", "key", "ca", "tickets", "cache", "now"];

/// Interval of checks for signals during the wait for the server.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Serves until a stop is requested.
pub fn serve(mut given: Given) -> Result<(String, u8), (u8, String)> {
    let wrong = |message: String| (2, message);
    let suites: Vec<Suite> = given
        .words
        .iter()
        .map(|name| name.parse())
        .collect::<Result<_, _>>()
        .map_err(|error: shakedown_trace::suite::SuiteError| wrong(error.to_string()))?;
    // Servers on a network use the present time, not the fixed date of measurements.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|error| wrong(error.to_string()))?;
    given.fields.insert("now".into(), now.as_secs().into());
    let (suites, mut settings) = settings(&mut given, &suites, &OF_HANDSHAKES)?;
    let ca_out = given.text("ca_out");
    for option in ["listen", "metrics"] {
        if let Some(text) = given.text(option) {
            given.fields.insert(option.into(), address(option, &text).map_err(wrong)?.to_string().into());
        }
    }
    if !given.fields.contains_key("listen") {
        return Err(wrong(
            "missing --listen; accepted: HOST:PORT such as 127.0.0.1:8443; port 0: any free port".into(),
        ));
    }
    let mut config: Config =
        serde_json::from_value(given.fields.into()).map_err(|error| wrong(format!("options: {error}")))?;
    // Before other threads begin, so that they inherit the blocked signals.
    let stopping = Stopping::begin().map_err(|error| (1, error))?;
    let failed = |error: shakedown_live::serve::ServeError| {
        (if error.is_wrong_input() { 2 } else { 1 }, error.to_string())
    };
    config.suites = suites;
    let clients = config.clients().map_err(failed)?;
    settings.client_identity = clients.or(settings.client_identity);
    let names = config.suites.iter().map(Suite::to_string).collect::<Vec<_>>().join(", ");
    let mut server = Server::start(config, &settings).map_err(failed)?;
    if let Some(path) = ca_out {
        write_roots(&path, server.roots()).map_err(|error| (1, format!("{path}: {error}")))?;
    }
    let stack = server.stack();
    eprint!("listening on {} ({names}; {} {})", server.address(), stack.name, stack.version);
    match server.metrics_address() {
        Some(address) => eprintln!(", metrics at http://{address}/metrics"),
        None => eprintln!(),
    }
    let mut asked = false;
    while !server.wait(LOOK_EVERY).map_err(failed)? {
        if stopping.asked() {
            // The first signal stops the server gracefully, the second immediately.
            if asked {
                server.cut()
            } else {
                server.stop()
            }
            asked = true;
        }
    }
    Ok((document(&server.summary())?, 0))
}

fn address(option: &str, text: &str) -> Result<SocketAddr, String> {
    let found = text.to_socket_addrs().ok().and_then(|mut found| found.next());
    found.ok_or_else(|| format!("--{option} is '{text}'; accepted: HOST:PORT such as 127.0.0.1:8443"))
}

fn write_roots(path: &str, roots: &[Vec<u8>]) -> Result<(), String> {
    let mut text = Vec::new();
    for root in roots {
        text.extend(X509::from_der(root).and_then(|root| root.to_pem()).map_err(|error| error.to_string())?);
    }
    std::fs::write(path, text).map_err(|error| error.to_string())
}
