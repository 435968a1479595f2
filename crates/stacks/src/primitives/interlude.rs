//! What happens between two rounds.

use super::Failure;
use crate::rig::{Rig, Settings, prepare};
use shakedown_trace::driver::Wire;
use shakedown_trace::recorder;

/// What runs before each round, unrecorded.
///
/// In a loop of nothing else a primitive finds the processor's caches and branch predictors full of itself, as it
/// never does inside a handshake. So a handshake without public keys comes in between.
pub struct Interlude {
    handshake: Option<(Box<dyn Rig>, Wire)>,
}

impl Interlude {
    /// A handshake with a pre-shared key.
    pub fn handshake() -> Result<Self, Failure> {
        let suite =
            "tls1.2/psk".parse().map_err(|_| Failure::Interlude { reason: "its suite is unknown".into() })?;
        let rig = prepare(&suite, &Settings::default()).map_err(interlude)?;
        Ok(Self { handshake: Some((rig, Wire::new())) })
    }

    /// Nothing: rounds follow each other, as in the benchmarks of libraries.
    pub fn none() -> Self {
        Self { handshake: None }
    }

    /// Runs it once.
    pub fn play(&mut self) -> Result<(), Failure> {
        let Some((rig, wire)) = &mut self.handshake else { return Ok(()) };
        debug_assert!(!recorder::is_recording());
        let mut pair = rig.pair().map_err(interlude)?;
        wire.handshake(pair.client.as_mut(), pair.server.as_mut(), &mut ()).map_err(interlude)?;
        Ok(())
    }
}

fn interlude(error: impl std::fmt::Display) -> Failure {
    Failure::Interlude { reason: error.to_string() }
}
