//! The resources that a server passes to a worker, and the shutdown request.

use super::config::Config;
use super::tally::Tally;
use super::traces::Sampler;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

pub struct Parts {
    /// Time 0 of the server.
    pub epoch: Instant,
    pub config: Arc<Config>,
    pub sampler: Option<Arc<Sampler>>,
    pub tally: Arc<Tally>,
    pub shutdown: Arc<ShutdownSignal>,
    /// Limit of the worker's handshakes in progress; when it is reached, the oldest is dropped.
    pub max_handshakes: usize,
}

/// The shutdown request to a server's workers; 0: none.
#[derive(Debug, Default)]
pub struct ShutdownSignal(AtomicU8);

impl ShutdownSignal {
    /// Stop accepting, and wait for open connections.
    pub const DRAIN: u8 = 1;
    /// Close all connections immediately.
    pub const STOP: u8 = 2;

    /// Raises the request; it is never lowered.
    pub fn raise(&self, request: u8) {
        self.0.fetch_max(request, Ordering::SeqCst);
    }

    pub fn get(&self) -> u8 {
        self.0.load(Ordering::SeqCst)
    }
}
