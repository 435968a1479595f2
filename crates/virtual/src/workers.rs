//! The server's workers and their queue: first come, first served.

use shakedown_link::Ns;
use std::collections::VecDeque;

/// A client's input that the server must process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub slot: u32,
    pub generation: u32,
    pub since: Ns,
    /// The attempt is over; the remaining work still takes this time.
    pub orphaned: Option<Ns>,
}

/// The current job of each worker, and the queue.
pub(crate) struct Workers {
    at: Vec<Option<Job>>,
    line: VecDeque<Job>,
    busy: u32,
}

impl Workers {
    pub fn new(count: u32) -> Self {
        Self { at: vec![None; count as usize], line: VecDeque::new(), busy: 0 }
    }

    pub fn busy(&self) -> u32 {
        self.busy
    }

    pub fn waiting(&self) -> usize {
        self.line.len()
    }

    pub fn enqueue(&mut self, job: Job) {
        self.line.push_back(job);
    }

    /// The next job for a free worker, if there is one.
    pub fn next_to_start(&mut self) -> Option<Job> {
        if self.busy as usize == self.at.len() { None } else { self.line.pop_front() }
    }

    /// Assigns a job to a free worker, and returns its index.
    pub fn assign(&mut self, job: Job) -> Option<u32> {
        let worker = self.at.iter().position(Option::is_none)?;
        self.at[worker] = Some(job);
        self.busy += 1;
        u32::try_from(worker).ok()
    }

    pub fn job_of(&self, worker: u32) -> Option<Job> {
        self.at[worker as usize]
    }

    pub fn release(&mut self, worker: u32) {
        if self.at[worker as usize].take().is_some() {
            self.busy -= 1;
        }
    }

    /// The attempt of a waiting job is over; its work still takes `takes`.
    pub fn orphan(&mut self, slot: u32, generation: u32, takes: Ns) {
        let of_it = |job: &&mut Job| job.slot == slot && job.generation == generation;
        if let Some(job) = self.line.iter_mut().find(of_it) {
            job.orphaned = Some(takes);
        }
    }

    /// Jobs that have not ended.
    pub fn left(&self) -> usize {
        self.line.len() + self.busy as usize
    }
}
