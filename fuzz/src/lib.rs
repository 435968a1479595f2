//! What the fuzz targets share: make-believe cryptography, configurations, and a genuine
//! conversation to start from.
//!
//! The cryptography is of the right shapes and sizes but keeps no secrets: every signature of the
//! right length verifies, every MAC is zero, encryption leaves data as it is. So a fuzzer gets past
//! it to the code behind.

mod make_believe;
mod world;

pub use make_believe::{MakeBelieve, MakeBelieveKey};
pub use world::{FLOWS, Flow, World, certificate_bytes, datagrams, flow, genuine};
