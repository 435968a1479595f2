//! The one vendored OpenSSL, and a way to look inside it while it works.
//!
//! One build of OpenSSL 3.5 runs everything from SSL 3.0 with RSA-512 to TLS 1.3 with ML-KEM; which features
//! that takes is written in this crate's `Cargo.toml`. A [`Library`] is an OpenSSL library context, either
//! *bare* (the default and legacy providers as they are) or *timed*: in between sits a built-in *proxy
//! provider* that republishes every algorithm of theirs, with the functions that matter replaced by
//! trampolines which time the call and write it to the [recorder](shakedown_trace::recorder). libssl and the
//! providers themselves are not modified, and a handshake in a timed context runs the very same code.

pub mod ffi;
mod library;
pub mod memory;
mod proxy;
pub mod random;

pub use library::{Library, LibraryError, version};
