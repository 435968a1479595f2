//! Protocol stacks behind [`Endpoint`](shakedown_trace::Endpoint), and what is measured on them.
//!
//! A stack is one module that makes a [`Rig`] for a suite: everything two endpoints need, built before any
//! clock starts. [`measure`] runs a rig's endpoints against each other and knows no stack by name but to
//! choose one.

pub mod catalogue;
pub mod machine;
pub mod measure;
pub mod memory;
pub mod openssl;
pub mod primitives;
mod processor;
pub mod recording;
mod rig;
pub mod transfer;
pub mod wtls;

/// Rust's own allocations are counted beside OpenSSL's in every program that runs a stack.
#[global_allocator]
static ALLOCATOR: shakedown_ossl::memory::Counting = shakedown_ossl::memory::Counting;

pub use rig::{
    CertificateForm, Notices, Pair, Rig, Settings, SetupError, Subject, Unsupported, prepare, supports,
};
