//! The handshake between two rounds.

use super::Failure;
use crate::peers::{Peers, prepare};
use crate::settings::Settings;
use shakedown_trace::driver::Loopback;
use shakedown_trace::recorder;

/// Runs before each round, unrecorded.
///
/// In a loop without other work, the processor's caches and branch predictors are full of the primitive's own code and
/// data, which is never the case inside a handshake. So a handshake without public keys runs between the rounds.
pub struct CacheDisturbingHandshake {
    handshake: Option<(Peers, Loopback)>,
}

impl CacheDisturbingHandshake {
    /// A handshake with a pre-shared key.
    pub fn handshake() -> Result<Self, Failure> {
        let unknown = Failure::CacheDisturbing { reason: "its suite is unknown".into() };
        let suite = "tls1.2/psk".parse().map_err(|_| unknown)?;
        let peers = prepare(&suite, &Settings::default()).map_err(failed)?;
        Ok(Self { handshake: Some((peers, Loopback::new())) })
    }

    /// No handshake: rounds follow each other, as in the benchmarks of libraries.
    pub fn none() -> Self {
        Self { handshake: None }
    }

    pub fn run(&mut self) -> Result<(), Failure> {
        let Some((peers, loopback)) = &mut self.handshake else { return Ok(()) };
        debug_assert!(!recorder::is_recording());
        let mut pair = peers.pair().map_err(failed)?;
        loopback.handshake(pair.client.as_mut(), pair.server.as_mut(), &mut ()).map_err(failed)?;
        Ok(())
    }
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::CacheDisturbing { reason: error.to_string() }
}
