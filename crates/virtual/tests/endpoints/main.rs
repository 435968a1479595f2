//! Endpoints of every stack in virtual time, compared with replays of their recordings. One program, because linking
//! OpenSSL takes long.

#![allow(clippy::unwrap_used)] // a test that panics has found something

mod common;
mod lossless;
mod lossy;
mod wrong;
