//! The processor under the measuring thread: staying on it, and noticing when it was lost.

use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::unistd::Pid;

/// How often this thread has lost the processor.
pub fn context_switches() -> i64 {
    getrusage(UsageWho::RUSAGE_THREAD)
        .map_or(0, |usage| usage.voluntary_context_switches() + usage.involuntary_context_switches())
}

/// Keeps this thread on the processor that it runs on, for as long as it lives.
pub struct Pinned {
    before: Option<CpuSet>,
}

impl Pinned {
    /// Pins the thread. Where the system refuses, nothing changes and results are only noisier.
    pub fn to_current_processor() -> Self {
        let this = Pid::from_raw(0);
        let pin = || {
            let before = sched_getaffinity(this).ok()?;
            let mut one = CpuSet::new();
            one.set(sched_getcpu().ok()?).ok()?;
            sched_setaffinity(this, &one).ok()?;
            Some(before)
        };
        Self { before: pin() }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // Where the system refuses, the thread stays where it is.
            let _ = sched_setaffinity(Pid::from_raw(0), before);
        }
    }
}
