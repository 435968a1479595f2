//! What a run is told.

use super::error::LoadError;
use super::starts::Arrivals;
use super::target::Target;
use serde::Deserialize;
use std::path::PathBuf;
use std::time::Duration;

/// Handshakes a second that another host is loaded with unless the cap is lifted.
pub const CAP_PER_S: f64 = 50.0;

/// The fewest clients of a background, each of which has a session of its own.
const BACKGROUND_CLIENTS: usize = 16;
/// Tells a background's seed from that of the load beside it.
const BACKGROUND_SEED: u64 = 0x6261_636b;

const MAX_DURATION_S: f64 = 7.0 * 24.0 * 3600.0;
/// The highest rate that means anything for one thread.
const MAX_RATE_PER_S: f64 = 1e6;
const MAX_CLIENTS: usize = 100_000;
/// The most sampled handshakes: each is kept until the end.
const MAX_TRACES: usize = 10_000;
/// The slowest client, as a multiple of this machine's time: beyond, no handshake is over in an hour.
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
    /// How long connections are started.
    pub duration_s: f64,
    /// Stop after so many connections; `None`: as many as are due in the time.
    pub max_starts: Option<u64>,
    /// Clients: each has an identity and a session of its own. In a closed loop each has one connection at a time.
    pub clients: usize,
    /// Share of starts that ask for resumption.
    pub resumption: f64,
    /// The random seed of arrivals and choices.
    pub seed: u64,
    /// How long a connection may take from its start.
    pub timeout_s: f64,
    /// The most open connections; `None`: what the descriptor limit allows.
    pub max_open: Option<usize>,
    /// What is sent once the handshake is over.
    pub request: Option<String>,
    /// Wait for the server's first byte although nothing is sent.
    pub await_first_byte: bool,
    pub ca: Option<PathBuf>,
    /// The name asked for and checked, where it is not the target's host.
    pub server_name: Option<String>,
    /// Check the server's certificate where there is something to check it against.
    pub check: bool,
    /// A host that is not this machine and may be loaded.
    pub authorized_target: Option<String>,
    /// Keep other hosts below `CAP_PER_S`.
    pub rate_cap: bool,
    pub trace_count: usize,
    /// How many times as long a handshake's steps take the client, as if it were slower by that.
    pub slowdown: Option<f64>,
    /// What a full handshake shall take such a client in all (s): the factor then follows what this one's take.
    pub client_s: Option<f64>,
    /// New connections per second of a load beside this one, at exponential gaps.
    pub background_per_s: Option<f64>,
    /// Generators like this one that run at the same time: limits hold for all of them together.
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
    /// Refuses what no run can follow.
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
                accepted: "none, for its clients set the rate".into(),
            }),
            (_, Some(rate)) => within("rate", rate, 1e-3, MAX_RATE_PER_S, "/s"),
            (_, None) => Err(LoadError::Option {
                what: "rate",
                given: "none".into(),
                accepted: "handshakes a second, or closed arrivals".into(),
            }),
        }
    }

    /// Refuses targets that are not this machine, unless the user vouches for them.
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

    /// The load beside this one, if there is any: clients like this one's, at a rate of their own.
    pub(super) fn background(&self) -> Option<Self> {
        let rate_per_s = self.background_per_s?;
        Some(Self {
            arrivals: Arrivals::Poisson,
            rate_per_s: Some(rate_per_s),
            max_starts: None,
            clients: self.clients.max(BACKGROUND_CLIENTS),
            // Its gaps have nothing to do with the load's.
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

    /// How long connections are started.
    pub(super) fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.duration_s)
    }
}
