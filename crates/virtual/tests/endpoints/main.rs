//! Endpoints of every stack in virtual time, beside replays of what was recorded of them. One program, for linking OpenSSL
//! takes long.

#![allow(clippy::unwrap_used)] // a test that panics has found something

mod common;
mod lossless;
mod lossy;
mod wrong;
