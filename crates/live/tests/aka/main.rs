//! Attaches by SSL-based AKA with real handshakes: what the network allows, what it refuses, and what is on the wire.
#![allow(clippy::unwrap_used)]

mod attaches;
mod interleaved;
mod sessions;
mod simulated;
mod trust;
