//! A server as options describe it: each may be omitted, and anything else is refused by name.

use super::config::{Config, PayloadWhen, ServeError};
use serde::Deserialize;
use shakedown_certs::supplied::AnyIdentity;
use shakedown_pki::Identity;
use shakedown_trace::Suite;
use shakedown_trace::suite::Authentication;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// What may be given beside the options of a suite.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub listen: SocketAddr,
    pub metrics: Option<SocketAddr>,
    pub workers: Option<usize>,
    pub payload_bytes: Option<u64>,
    pub payload_when: Option<PayloadWhen>,
    pub handshake_timeout_s: Option<f64>,
    pub idle_timeout_s: Option<f64>,
    pub drain_timeout_s: Option<f64>,
    pub max_handshakes: Option<usize>,
    pub max_connections: Option<usize>,
    pub client_ca: Option<PathBuf>,
    pub traces_out: Option<PathBuf>,
    pub sample: Option<u64>,
    pub queue_times: Option<bool>,
    pub max_queue_traces: Option<usize>,
}

impl Request {
    /// The server of these suites, with defaults for what was left out.
    pub fn config(self, suites: Vec<Suite>) -> Result<Config, ServeError> {
        let defaults = Config::new(suites, self.listen);
        let seconds = |given: Option<f64>, default: Duration| match given {
            None => Ok(default),
            Some(seconds) => {
                Duration::try_from_secs_f64(seconds).map_err(|error| ServeError::Time { seconds, error })
            }
        };
        Ok(Config {
            metrics: self.metrics,
            workers: self.workers.unwrap_or(defaults.workers),
            payload_bytes: self.payload_bytes.unwrap_or(defaults.payload_bytes),
            payload_when: self.payload_when.unwrap_or(defaults.payload_when),
            handshake_timeout: seconds(self.handshake_timeout_s, defaults.handshake_timeout)?,
            idle_timeout: seconds(self.idle_timeout_s, defaults.idle_timeout)?,
            drain_timeout: seconds(self.drain_timeout_s, defaults.drain_timeout)?,
            max_handshakes: self.max_handshakes.unwrap_or(defaults.max_handshakes),
            max_connections: self.max_connections.unwrap_or(defaults.max_connections),
            traces: self.traces_out,
            sample: self.sample.unwrap_or(defaults.sample),
            queue_times: self.queue_times.unwrap_or(defaults.queue_times),
            max_queue_traces: self.max_queue_traces.unwrap_or(defaults.max_queue_traces),
            ..defaults
        })
    }

    /// Clients known by their root alone: a server needs no more of them. `None` where no root was given.
    pub fn clients(&self, suites: &[Suite]) -> Result<Option<AnyIdentity>, ServeError> {
        let Some(path) = &self.client_ca else { return Ok(None) };
        let asks = |suite: &Suite| {
            matches!(suite.authentication, Some(Authentication::Requested | Authentication::Mutual))
        };
        if !suites.iter().any(asks) {
            let message = "a root of clients goes with suites that ask clients for certificates";
            return Err(ServeError::ClientCa(message.into()));
        }
        let root = Identity::trusted(path, None).map_err(|error| ServeError::ClientCa(error.to_string()))?;
        Ok(Some(AnyIdentity::X509(root)))
    }
}
