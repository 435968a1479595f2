//! The stack `wtls`: the engine of `shakedown-wtls`, whose messages are told to the recorder and whose primitives are
//! timed.

mod config;
mod endpoint;
mod listener;
mod marks;
pub(crate) mod provider;
mod stack;

pub use stack::{CertificateForm, Options, Wtls};

const NAME: &str = "wtls";
