//! Discrete-event simulation of handshakes: virtual time over links, transports and a server's queue.

pub mod tcp;
