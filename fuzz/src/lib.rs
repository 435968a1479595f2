//! What the fuzz targets share: make-believe cryptography, configurations, a genuine conversation to start
//! from, and captures of such conversations.
//!
//! The cryptography is of the right shapes and sizes but keeps no secrets: every signature of the
//! right length verifies, every MAC is zero, encryption leaves data as it is. So a fuzzer gets past
//! it to the code behind.

mod captures;
mod make_believe;
mod world;

pub use captures::{Talk, as_next_generation, as_pieces, talks, write_capture};
pub use make_believe::{MakeBelieve, MakeBelieveKey};
pub use world::{FLOWS, Flow, World, certificate_bytes, datagrams, flow, genuine};
