//! The stack `wtls`: the engine of `shakedown-wtls`, with marks and a stopwatch around its primitives.

mod config;
mod endpoint;
mod marks;
pub(crate) mod provider;
mod rig;

pub use rig::{WtlsRig, supports};
