//! Discrete-event simulation of handshakes: virtual time over links, transports and a server's queue.

pub mod metrics;
pub mod queue;
pub mod tcp;
