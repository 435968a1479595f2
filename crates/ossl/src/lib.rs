//! The one vendored OpenSSL, and the measurement of its algorithms.
//!
//! One build of OpenSSL 3.5 supports everything from SSL 3.0 with RSA-512 to TLS 1.3 with ML-KEM; this crate's
//! `Cargo.toml` sets the build features for that. A [`Library`] is an OpenSSL library context, either *bare* (with the
//! unmodified default and legacy providers) or *timed*. A timed context has a built-in *proxy provider*. It republishes
//! every algorithm of these providers, but replaces the relevant functions by trampolines that time the call and write
//! it to the [recorder](shakedown_trace::recorder). libssl and the original providers are not modified, so a handshake
//! in a timed context runs the same code.

pub mod ffi;
mod library;
pub mod memory;
mod proxy;
pub mod random;

pub use library::{Library, LibraryError, version};
