//! Records after the handshake: the data that clients send, and the server's work on it.
//!
//! A client that is ready sends a fixed number of records at equal intervals, and closes its connection with the last.
//! Each record is a job of the client's server, in the same queue as handshakes. Records take the server's processor
//! and nothing else: they cross no link and no cell, and cost the client nothing.

use crate::error::{ScenarioError, check};
use crate::histogram::{Histogram, Summary};
use serde::{Deserialize, Serialize};
use shakedown_link::{MAX_SECONDS, Ns};

/// Limit of the connections that are open at once in a steady state; each uses 24 bytes.
const MAX_OPEN: f64 = 1e9;

/// The records that every client sends after its handshake. Each class defines the server's work on a record.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordsSpec {
    /// Time from a client being ready to its first record, and between two records.
    pub interval_s: f64,
    /// Records per client.
    pub count: u32,
}

impl RecordsSpec {
    /// How long a connection is open after its handshake.
    #[must_use]
    pub fn lifetime(&self) -> Ns {
        Ns(self.interval().0.saturating_mul(self.count.into()))
    }

    /// The time between two records.
    #[must_use]
    pub fn interval(&self) -> Ns {
        Ns::from_secs_f64(self.interval_s)
    }

    /// Checks the settings, for clients that become ready at a rate.
    pub(crate) fn check(&self, ready_per_s: f64) -> Result<(), ScenarioError> {
        let interval_s = self.interval_s;
        check("records.interval_s", interval_s, "1e-6 to 1e9", (1e-6..=MAX_SECONDS).contains(&interval_s))?;
        check("records.count", f64::from(self.count), "1 or more", self.count > 0)?;
        let lifetime_s = interval_s * f64::from(self.count);
        check("records.interval_s × records.count", lifetime_s, "1e9 at most", lifetime_s <= MAX_SECONDS)?;
        let open = ready_per_s * lifetime_s;
        check("connections open for records at once", open, "1e9 at most", open <= MAX_OPEN)
    }
}

/// Results on records, over all replications.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordsOutcome {
    /// How long records waited for a worker, after the warm-up.
    pub wait: Histogram,
    /// Worker time that records used while clients arrived.
    #[serde(with = "crate::histogram::decimal")]
    pub work_ns: u128,
    /// The maximum number of connections open at once after their handshakes, in any replication.
    pub peak_open: u64,
}

impl RecordsOutcome {
    /// Adds another replication.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.wait.merge(&other.wait);
        self.work_ns += other.work_ns;
        self.peak_open = self.peak_open.max(other.peak_open);
    }

    /// The report, for the available worker time.
    pub(crate) fn report(&self, capacity_ns: u128) -> RecordsReport {
        RecordsReport {
            wait_s: self.wait.summary(1e9),
            utilisation: if capacity_ns == 0 { 0.0 } else { self.work_ns as f64 / capacity_ns as f64 },
            peak_open: self.peak_open,
        }
    }
}

/// Records in the report; `utilisation` is their share of the workers' time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordsReport {
    pub wait_s: Summary,
    pub utilisation: f64,
    pub peak_open: u64,
}
