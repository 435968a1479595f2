//! What the fuzz targets share: synthetic cryptography, configurations, a genuine conversation to start
//! from, and captures of such conversations.
//!
//! The cryptography is of the right shapes and sizes but keeps no secrets: every signature of the
//! right length verifies, every MAC is zero, encryption leaves data as it is. So a fuzzer gets past
//! it to the code behind.

#![forbid(unsafe_code)]

mod access;
mod attaching;
mod captures;
mod environment;
mod scripted;
mod synthetic;

pub use access::{Sponge, conversation_seed, radius_seed};
pub use attaching::{Environment as AkaEnvironment, Handshaker, message_seeds};
pub use captures::{Talk, as_next_generation, as_pieces, talks, write_capture};
pub use environment::{Environment, FLOWS, Flow, certificate_bytes, flow, genuine, steps};
pub use synthetic::{Synthetic, SyntheticKey};
