//! The stack `wtls`: the engine of `shakedown-wtls`, with messages reported to the recorder and timed primitives.

mod boundaries;
mod config;
mod endpoint;
mod listener;
pub(crate) mod provider;
mod stack;

pub use stack::{CertificateForm, Options, Wtls};

const NAME: &str = "wtls";
