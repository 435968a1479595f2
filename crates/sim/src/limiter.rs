//! Rate-based admission: each server has a token bucket; how refused connections are treated.

use crate::error::{ScenarioError, check};
use serde::{Deserialize, Serialize};
use shakedown_link::Ns;

/// How a server refuses a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Refusal {
    /// A reset answers the SYN: the attempt fails after a round trip.
    #[default]
    Reset,
    /// The connection is opened and the client's first flight processed; an alert answers it.
    Alert,
    /// The SYN or datagram is dropped: the client's transport sends it again.
    Silence,
}

/// Limit of the connections that a server accepts per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdmissionSpec {
    /// Tokens per second; each connection uses one.
    pub per_s: f64,
    /// Tokens that a full bucket holds.
    #[serde(default = "one")]
    pub burst: u32,
    /// How a connection without a token is refused.
    #[serde(default)]
    pub refusal: Refusal,
}

fn one() -> u32 {
    1
}

impl AdmissionSpec {
    pub(crate) fn check(&self) -> Result<(), ScenarioError> {
        let within = (1e-6..=1e9).contains(&self.per_s);
        check("server.admission.per_s", self.per_s, "1e-6 to 1e9", within)?;
        let within = (1..=1_000_000_000).contains(&self.burst);
        check("server.admission.burst", f64::from(self.burst), "1 to 1000000000", within)
    }
}

/// Admitted connections, and refused SYNs, datagrams or handshakes (by an alert).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admissions {
    pub admitted: u64,
    pub refused: u64,
}

/// A token bucket that is full at first and fills at a steady rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    /// Time at which the bucket would be full again, in 2⁻³² ns.
    full_at: u128,
    /// Time to add one token, and to fill the bucket, in 2⁻³² ns.
    token: u128,
    whole: u128,
}

const FRACTION_BITS: u32 = 32;

impl Bucket {
    pub fn new(spec: &AdmissionSpec) -> Self {
        let token = (1e9 / spec.per_s * f64::from(1_u32 << 16) * f64::from(1_u32 << 16)) as u128;
        Self { full_at: 0, token, whole: token * u128::from(spec.burst) }
    }

    /// Takes a token; false if there is none.
    pub fn takes(&mut self, now: Ns) -> bool {
        let now = u128::from(now.0) << FRACTION_BITS;
        let full_at = self.full_at.max(now) + self.token;
        let is_there = full_at <= now + self.whole;
        if is_there {
            self.full_at = full_at;
        }
        is_there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two tokens per second, three at first: three connections at 0 s, none at 0.4 s (0.8 tokens), one at 0.5 s.
    #[test]
    fn tokens_are_added_at_their_rate_up_to_a_full_bucket() {
        let spec = AdmissionSpec { per_s: 2.0, burst: 3, refusal: Refusal::Reset };
        let mut bucket = Bucket::new(&spec);
        let mut takes = |ms| bucket.takes(Ns::from_ms(ms));
        assert_eq!([0, 0, 0, 0].map(&mut takes), [true, true, true, false]);
        assert_eq!([400, 500, 500, 1000, 1400].map(&mut takes), [false, true, false, true, false]);
        // The bucket is full again after 1.5 s without a connection, and holds no more than three tokens.
        assert_eq!([9000, 9000, 9000, 9000].map(&mut takes), [true, true, true, false]);
    }
}
