//! Options of a measurement, from a Python mapping.

use crate::errors::CoreError;
use pyo3::prelude::*;
use serde::Deserialize;
use shakedown_pki::Profile;
use shakedown_stacks::Settings;
use std::path::PathBuf;

/// What may be given; anything else is refused by name.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// Time at which certificates must be valid, in seconds since 1970.
    now: Option<i64>,
    /// Tickets after a full handshake.
    tickets: Option<u32>,
    /// A certificate profile.
    profile: Option<PathBuf>,
    /// Where keys and certificates are kept.
    cache: Option<PathBuf>,
    /// Recorded with results; measurements draw their randomness from the operating system.
    #[allow(dead_code)] // accepted so that one set of options serves every command
    seed: Option<u64>,
}

impl Options {
    /// Reads a mapping; nothing gives the defaults.
    pub fn read(given: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let Some(given) = given else { return Ok(Self::default()) };
        pythonize::depythonize(given).map_err(|error| CoreError::new_err(format!("options: {error}")))
    }

    /// The settings of a rig.
    pub fn settings(self) -> PyResult<Settings> {
        let defaults = Settings::default();
        let profile = match &self.profile {
            Some(path) => Profile::load(path).map_err(|error| CoreError::new_err(error.to_string()))?,
            None => defaults.profile,
        };
        Ok(Settings {
            now_unix_s: self.now.unwrap_or(defaults.now_unix_s),
            tickets: self.tickets.unwrap_or(defaults.tickets),
            profile,
            cache: self.cache.or(defaults.cache),
            ..Settings::default()
        })
    }
}
