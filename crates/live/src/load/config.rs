//! Configuration of a load.

use super::error::LoadError;
use super::starts::Arrivals;
use super::target::Target;
use serde::Deserialize;
use std::path::PathBuf;
use std::time::Duration;

/// Limit of the rate at which another host is loaded (handshakes/s), unless it is lifted.
pub const CAP_PER_S: f64 = 50.0;

/// Minimum number of clients of a background load, each with its own session.
const BACKGROUND_CLIENTS: usize = 16;
/// Distinguishes the seed of a background load from that of the main load.
const BACKGROUND_SEED: u64 = 0x6261_636b;

const MAX_DURATION_S: f64 = 7.0 * 24.0 * 3600.0;
/// Higher rates are beyond what one thread can generate.
const MAX_RATE_PER_S: f64 = 1e6;
const MAX_CLIENTS: usize = 100_000;
/// Maximum number of sampled handshakes, which are all kept until the end.
const MAX_TRACES: usize = 10_000;
/// Maximum slowdown of a client relative to this machine; beyond it, no handshake ends within an hour.
const MAX_SLOWDOWN: f64 = 1e6;
const MAX_TIMEOUT_S: f64 = 3600.0;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// `HOST:PORT`, `tls://HOST:PORT` or `wtls://HOST:PORT`.
    pub target: String,
    pub arrivals: Arrivals,
    /// New connections per second; `None` in a closed loop.
    pub rate_per_s: Option<f64>,
    /// Period in which connections are started.
    pub duration_s: f64,
    /// Maximum number of connections; `None`: all that are due in the period.
    pub max_starts: Option<u64>,
    /// Number of clients, each with its own session and, with mutual authentication, a generated certificate. In a
    /// closed loop each has one connection at a time.
    pub clients: usize,
    /// Share of connections that offer a session for resumption.
    pub resumption: f64,
    /// The random seed of arrivals and choices.
    pub seed: u64,
    /// Maximum duration of a connection, from its start.
    pub timeout_s: f64,
    /// Maximum number of open connections; `None`: as many as the descriptor limit allows.
    pub max_open: Option<usize>,
    /// Request that is sent after the handshake.
    pub request: Option<String>,
    /// Wait for the server's first byte although nothing is sent.
    pub await_first_byte: bool,
    pub ca: Option<PathBuf>,
    /// Server name that is sent and checked; `None`: the target's host.
    pub server_name: Option<String>,
    /// Check the server's certificate if there are certificates to check it against.
    pub check: bool,
    /// Another host that the user is authorized to load.
    pub authorized_target: Option<String>,
    /// Limit the rate on other hosts to `CAP_PER_S`.
    pub rate_cap: bool,
    pub trace_count: usize,
    /// Factor by which the processing times of a handshake's steps are stretched, to emulate a slower client.
    pub slowdown: Option<f64>,
    /// Processing time of a full handshake on the emulated client (s); the factor then follows the measured times.
    pub client_s: Option<f64>,
    /// New connections per second of a simultaneous background load, with exponential gaps.
    pub background_per_s: Option<f64>,
    /// Number of load generators that run at the same time; the rate cap applies to all of them together.
    pub generators: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            target: String::new(),
            arrivals: Arrivals::Poisson,
            rate_per_s: None,
            duration_s: 10.0,
            max_starts: None,
            clients: 16,
            resumption: 0.0,
            seed: 1,
            timeout_s: 10.0,
            max_open: None,
            request: None,
            await_first_byte: false,
            ca: None,
            server_name: None,
            check: true,
            authorized_target: None,
            rate_cap: true,
            trace_count: 0,
            slowdown: None,
            client_s: None,
            background_per_s: None,
            generators: 1,
        }
    }
}

impl Config {
    /// Rejects invalid values.
    pub fn validate(&self) -> Result<(), LoadError> {
        let within = |what, value: f64, min: f64, max: f64, unit: &str| {
            if value >= min && value <= max {
                return Ok(());
            }
            let accepted = format!("{min} to {max}{unit}");
            Err(LoadError::Option { what, given: value.to_string(), accepted })
        };
        within("duration", self.duration_s, 0.001, MAX_DURATION_S, " s")?;
        within("timeout", self.timeout_s, 0.001, MAX_TIMEOUT_S, " s")?;
        within("resumed share", self.resumption, 0.0, 1.0, "")?;
        within("clients", self.clients as f64, 1.0, MAX_CLIENTS as f64, "")?;
        within("sampled handshakes", self.trace_count as f64, 0.0, MAX_TRACES as f64, "")?;
        within("client's slowdown", self.slowdown.unwrap_or(1.0), 1.0, MAX_SLOWDOWN, " times this machine")?;
        within("client's time", self.client_s.unwrap_or(1.0), 1e-9, MAX_TIMEOUT_S, " s")?;
        within("background rate", self.background_per_s.unwrap_or(1.0), 1e-3, MAX_RATE_PER_S, "/s")?;
        match (self.arrivals, self.rate_per_s) {
            (Arrivals::Closed, None) => Ok(()),
            (Arrivals::Closed, Some(rate)) => Err(LoadError::Option {
                what: "rate",
                given: format!("{rate}/s in a closed loop"),
                accepted: "no rate: the clients of a closed loop set it".into(),
            }),
            (_, Some(rate)) => within("rate", rate, 1e-3, MAX_RATE_PER_S, "/s"),
            (_, None) => Err(LoadError::Option {
                what: "rate",
                given: "none".into(),
                accepted: "handshakes a second, or closed arrivals".into(),
            }),
        }
    }

    /// Rejects targets that are not this machine unless the user is authorized to load them, and rates above the cap.
    pub fn permit(&self, target: &Target) -> Result<(), LoadError> {
        if target.is_own {
            return Ok(());
        }
        let host = target.host.clone();
        if self.authorized_target.as_ref() != Some(&host) {
            return Err(LoadError::NotPermitted { host, address: target.address.ip() });
        }
        let all = |rate: f64| (rate + self.background_per_s.unwrap_or(0.0)) * self.generators.max(1) as f64;
        let asked = match self.rate_per_s.map(all) {
            Some(rate) if rate <= CAP_PER_S => return Ok(()),
            Some(rate) => format!("{rate}/s"),
            None => "a closed loop's rate".into(),
        };
        if self.rate_cap { Err(LoadError::RateCap { host, asked, cap: CAP_PER_S }) } else { Ok(()) }
    }

    /// The background load, if there is one: the same clients at a separate rate.
    pub(super) fn background(&self) -> Option<Self> {
        let rate_per_s = self.background_per_s?;
        Some(Self {
            arrivals: Arrivals::Poisson,
            rate_per_s: Some(rate_per_s),
            max_starts: None,
            clients: self.clients.max(BACKGROUND_CLIENTS),
            // Makes its gaps independent of those of the main load.
            seed: self.seed ^ BACKGROUND_SEED,
            trace_count: 0,
            slowdown: None,
            client_s: None,
            background_per_s: None,
            ..self.clone()
        })
    }

    pub(super) fn timeout(&self) -> Duration {
        Duration::from_secs_f64(self.timeout_s)
    }

    pub(super) fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.duration_s)
    }
}
