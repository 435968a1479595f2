//! Replications, and parts of them, on several threads.

use crate::{Merger, Outcome, Simulation};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// The time between two reports of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(20);

impl Simulation {
    /// Runs all replications once, on at most N threads. Outcomes merge exactly, so the result equals that of
    /// [`run`](Self::run).
    ///
    /// Calls `progress` on this thread with the number of clients over all replications; `None` if it stops the run.
    pub(crate) fn run_once_on(
        &self,
        threads: NonZeroUsize,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Option<Outcome> {
        let count = self.pieces(threads.get());
        let of_threads = threads.get();
        let threads = of_threads.min(count as usize);
        if threads == 1 {
            return self.run(progress);
        }
        let work = Work::default();
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            for _ in 0..threads {
                let (sender, work) = (sender.clone(), &work);
                scope.spawn(move || {
                    while let Some(number) = work.next(count) {
                        let outcome = self.piece(number, of_threads, &mut work.counter());
                        let is_over = outcome.is_none();
                        if sender.send(outcome).is_err() || is_over {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            let mut all = Merger::default();
            loop {
                match receiver.recv_timeout(PROGRESS_INTERVAL) {
                    // Outcomes of one scenario with different numbers always merge.
                    Ok(Some(outcome)) => all.add(outcome).ok()?,
                    Ok(None) => return None,
                    Err(RecvTimeoutError::Timeout) => {
                        if progress(work.through.load(Ordering::Relaxed)).is_break() {
                            work.stops.store(true, Ordering::Relaxed);
                            return None;
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => return all.end().ok()?,
                }
            }
        })
    }
}

/// The state that the threads share.
#[derive(Debug, Default)]
struct Work {
    begun: AtomicU32,
    through: AtomicU64,
    stops: AtomicBool,
}

impl Work {
    fn next(&self, count: u32) -> Option<u32> {
        Some(self.begun.fetch_add(1, Ordering::Relaxed)).filter(|number| *number < count)
    }

    /// Adds the progress of a part to the total.
    fn counter(&self) -> impl FnMut(u64) -> ControlFlow<()> + '_ {
        let mut before = 0;
        move |through| {
            self.through.fetch_add(through - before, Ordering::Relaxed);
            before = through;
            if self.stops.load(Ordering::Relaxed) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        }
    }
}
