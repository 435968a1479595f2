//! The processor of the measuring thread: pinning, and detection of preemption.

use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use std::time::Duration;

/// The number of times that this thread has lost the processor.
pub fn context_switches() -> i64 {
    getrusage(UsageWho::RUSAGE_THREAD)
        .map_or(0, |usage| usage.voluntary_context_switches() + usage.involuntary_context_switches())
}

/// The CPU time of this thread; zero if the system does not report it.
pub fn thread_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}

/// The processors that this thread may use.
pub fn processors() -> Vec<usize> {
    let Ok(allowed) = sched_getaffinity(Pid::from_raw(0)) else { return Vec::new() };
    (0..CpuSet::count()).filter(|one| allowed.is_set(*one).unwrap_or(false)).collect()
}

/// Pins this thread, and the threads that it starts, to one processor while the value lives.
pub struct Pinned {
    before: Option<CpuSet>,
}

impl Pinned {
    pub fn to_current_processor() -> Self {
        Self::to(sched_getcpu().ok())
    }

    /// Pins the thread. If the system refuses, nothing changes, and results are only noisier.
    pub fn to(processor: Option<usize>) -> Self {
        let this = Pid::from_raw(0);
        let pin = || {
            let before = sched_getaffinity(this).ok()?;
            let mut one = CpuSet::new();
            one.set(processor?).ok()?;
            sched_setaffinity(this, &one).ok()?;
            Some(before)
        };
        Self { before: pin() }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // If the system refuses, the thread stays pinned.
            let _ = sched_setaffinity(Pid::from_raw(0), before);
        }
    }
}
