//! Causes of failed connections, as texts that are few enough to be counted.

use serde::{Deserialize, Serialize};
use shakedown_trace::endpoint::{CloseReason, Failure};
use std::collections::BTreeMap;
use std::io::{Error, ErrorKind};

/// Number of causes that are counted separately; further ones are counted as "other".
const MAX_CAUSES: usize = 64;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Causes(BTreeMap<String, u64>);

impl Causes {
    pub fn add(&mut self, cause: &str, count: u64) {
        if count == 0 {
            return;
        }
        if let Some(known) = self.0.get_mut(cause) {
            *known += count;
            return;
        }
        let cause = if self.0.len() < MAX_CAUSES { cause } else { "other" };
        *self.0.entry(cause.to_owned()).or_default() += count;
    }

    pub fn has(&self, cause: &str) -> bool {
        self.0.contains_key(cause)
    }

    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    pub fn into_map(self) -> BTreeMap<String, u64> {
        self.0
    }

    /// The most frequent cause.
    pub fn first(&self) -> Option<&str> {
        self.0.iter().max_by_key(|(_, count)| **count).map(|(cause, _)| cause.as_str())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    Connecting,
    Handshaking,
    /// Waiting for the server's first byte.
    Awaiting,
}

impl Activity {
    fn as_str(self) -> &'static str {
        match self {
            Self::Connecting => "connect",
            Self::Handshaking => "handshake",
            Self::Awaiting => "first byte",
        }
    }
}

pub fn timeout(activity: Activity) -> String {
    format!("timeout: {}", activity.as_str())
}

pub const NO_DESCRIPTOR: &str = "no file descriptor left";
pub const NO_PORT: &str = "no local port left";
/// The connection was due, but the limit of open connections was reached until the run ended.
pub const NOT_STARTED: &str = "not started";

pub fn of_io(error: &Error, activity: Activity) -> String {
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => return NO_DESCRIPTOR.into(),
        Some(libc::EADDRNOTAVAIL) => return NO_PORT.into(),
        _ => {}
    }
    match error.kind() {
        ErrorKind::ConnectionRefused => "connection refused".into(),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
            format!("connection reset: {}", activity.as_str())
        }
        ErrorKind::TimedOut => timeout(activity),
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => "unreachable".into(),
        kind => format!("{kind}: {}", activity.as_str()),
    }
}

/// libssl's errors for bytes that are not TLS records.
const NOT_TLS: [&str; 6] = [
    "wrong version number",
    "http request",
    "https proxy request",
    "packet length too long",
    "bad record type",
    "unsupported protocol version",
];

/// The server's certificate was rejected.
pub const CERTIFICATE: &str = "certificate verify failed";

/// Cause of an unexpected close.
pub fn of_close(reason: &CloseReason, activity: Activity) -> String {
    match reason {
        CloseReason::Failed(failure) => of_failure(failure),
        CloseReason::Local | CloseReason::Peer | CloseReason::Truncated => {
            format!("closed by the server: {}", activity.as_str())
        }
    }
}

fn of_failure(failure: &Failure) -> String {
    if NOT_TLS.contains(&failure.reason.as_str()) {
        return format!("not TLS ({})", failure.reason);
    }
    match &failure.alert {
        Some(alert) => format!("{} (alert {alert})", failure.reason),
        None => failure.reason.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_causes_is_limited() {
        let mut causes = Causes::default();
        for number in 0..1000 {
            causes.add(&number.to_string(), 1);
        }
        causes.add("0", 5);
        causes.add("none", 0);
        assert_eq!(causes.total(), 1005);
        assert_eq!(causes.first(), Some("other"));
        assert_eq!(causes.into_map().len(), MAX_CAUSES + 1);
    }

    #[test]
    fn system_errors_have_names() {
        let of = |number| of_io(&Error::from_raw_os_error(number), Activity::Connecting);
        assert_eq!(of(libc::ECONNREFUSED), "connection refused");
        assert_eq!(of(libc::EMFILE), NO_DESCRIPTOR);
        assert_eq!(of(libc::EADDRNOTAVAIL), NO_PORT);
        assert_eq!(of(libc::ECONNRESET), "connection reset: connect");
    }
}
