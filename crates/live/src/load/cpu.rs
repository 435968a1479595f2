//! CPU time of the calling thread.

use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

pub fn thread_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}
