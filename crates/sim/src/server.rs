//! A server's workers, the jobs that wait for them, and connections that wait to be accepted.

use crate::limiter::{Bucket, Refusal};
use crate::scenario::{Discipline, ServerSpec};
use shakedown_link::Ns;
use std::collections::{BinaryHeap, VecDeque};

/// A job's number.
pub(crate) type JobId = u32;

/// The slot of a record's job, for which no client waits.
const NO_SLOT: u32 = u32::MAX;

/// A connection's job at its server: all work that is available when a worker starts it, or a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub slot: u32,
    pub generation: u32,
    pub since: Ns,
    /// The worker time that it has used so far.
    pub served: Ns,
    /// The remaining work for a client that has given up, which the server does not know; or the work on a record.
    pub orphaned: Option<Ns>,
}

impl Job {
    /// The job of a record, which takes the time `takes`.
    pub fn record(since: Ns, takes: Ns) -> Self {
        Self { slot: NO_SLOT, generation: 0, since, served: Ns::ZERO, orphaned: Some(takes) }
    }

    pub fn is_record(&self) -> bool {
        self.slot == NO_SLOT
    }
}

/// The jobs of all servers, by number.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    jobs: Vec<Job>,
    free: Vec<JobId>,
}

impl Jobs {
    /// Adds a job, and returns its number.
    pub fn add(&mut self, job: Job) -> JobId {
        match self.free.pop() {
            Some(id) => {
                self.jobs[id as usize] = job;
                id
            }
            None => {
                self.jobs.push(job);
                self.jobs.len() as JobId - 1
            }
        }
    }

    pub fn get(&mut self, id: JobId) -> &mut Job {
        &mut self.jobs[id as usize]
    }

    /// Removes a job; its number is reused.
    pub fn forget(&mut self, id: JobId) {
        self.free.push(id);
    }
}

/// Whether a server has room for more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admits {
    /// Another connection in its operating system.
    pub connection: bool,
    /// Another handshake in its application.
    pub handshake: bool,
}

/// A server: its workers, jobs in service, waiting jobs, handshakes in progress, and connections that wait to be
/// accepted.
#[derive(Debug)]
pub(crate) struct Server {
    pub discipline: Discipline,
    pub workers: u32,
    pub handshakes: u32,
    /// Connections that wait to be accepted, by slot and generation.
    pub acceptable: VecDeque<(u32, u32)>,
    /// Attempts in progress, and connections that stay open for records: the load balancer counts both.
    pub connections: u32,
    /// The token bucket for new connections, and how they are refused.
    pub admission: Option<(Bucket, Refusal)>,
    max_handshakes: u32,
    accept_queue: usize,
    waiting: VecDeque<JobId>,
    idle: Vec<u32>,
    in_service: Vec<Option<JobId>>,
    sharing: Sharing,
}

impl Server {
    pub fn new(spec: &ServerSpec) -> Self {
        let shared = spec.discipline == Discipline::Ps;
        Self {
            discipline: spec.discipline,
            workers: spec.workers,
            handshakes: 0,
            acceptable: VecDeque::new(),
            connections: 0,
            admission: spec.admission.map(|admission| (Bucket::new(&admission), admission.refusal)),
            max_handshakes: spec.max_handshakes.unwrap_or(u32::MAX),
            accept_queue: spec.accept_queue.map_or(usize::MAX, |most| most as usize),
            waiting: VecDeque::new(),
            idle: if shared { Vec::new() } else { (0..spec.workers).rev().collect() },
            in_service: if shared { Vec::new() } else { vec![None; spec.workers as usize] },
            sharing: Sharing::default(),
        }
    }

    /// Whether the number of handshakes in progress is below its limit.
    pub fn has_room(&self) -> bool {
        self.handshakes < self.max_handshakes
    }

    pub fn admits(&self) -> Admits {
        let room = self.has_room();
        Admits { connection: room || self.acceptable.len() < self.accept_queue, handshake: room }
    }

    /// Whether it has connections or work.
    pub fn is_used(&self) -> bool {
        self.connections > 0 || self.busy() > 0 || !self.waiting.is_empty()
    }

    /// Adds a job to the queue.
    pub fn enqueue(&mut self, id: JobId) {
        self.waiting.push_back(id);
    }

    /// Removes and returns the next job that can be started.
    pub fn next_to_start(&mut self) -> Option<JobId> {
        if self.discipline == Discipline::Fifo && self.idle.is_empty() {
            return None;
        }
        self.waiting.pop_front()
    }

    /// Assigns a job from the queue to an idle worker (first come, first served).
    pub fn assign(&mut self, id: JobId) -> u32 {
        let worker = self.idle.pop().unwrap_or(0);
        self.in_service[worker as usize] = Some(id);
        worker
    }

    /// The job of a worker.
    pub fn job_of(&self, worker: u32) -> Option<JobId> {
        self.in_service[worker as usize]
    }

    /// A worker has finished its job.
    pub fn release(&mut self, worker: u32) {
        if self.in_service[worker as usize].take().is_some() {
            self.idle.push(worker);
        }
    }

    /// Unfinished jobs: in service, sharing the workers, and in the queue.
    pub fn left(&self) -> impl Iterator<Item = JobId> {
        let sharing = self.sharing.active.iter().map(|std::cmp::Reverse((.., id))| id);
        self.in_service.iter().flatten().chain(sharing).chain(&self.waiting).copied()
    }

    /// Workers that are busy.
    pub fn busy(&self) -> u32 {
        match self.discipline {
            Discipline::Fifo => self.workers - self.idle.len() as u32,
            Discipline::Ps => self.workers.min(self.sharing.active()),
        }
    }

    // Processor sharing.

    /// A job, or its next part, begins to share the workers.
    pub fn share(&mut self, now: Ns, id: JobId, work: Ns) {
        self.sharing.advance(now, self.workers);
        self.sharing.begin(id, work);
    }

    /// The time at which the next sharing job is done; `None` without one.
    pub fn next_shared(&self, now: Ns) -> Option<Ns> {
        self.sharing.next(now, self.workers)
    }

    /// Removes and returns a sharing job that is done.
    pub fn take_shared(&mut self, now: Ns) -> Option<JobId> {
        self.sharing.advance(now, self.workers);
        self.sharing.finished()
    }
}

/// Processor sharing, computed with a virtual time that passes at the rate at which each job is served. A job that
/// begins at virtual time v with work w is therefore done at v + w, independent of other jobs.
#[derive(Debug, Default)]
struct Sharing {
    /// In units of 2⁻³² ns.
    virtual_time: u128,
    at: Ns,
    /// (virtual time of its end, order of beginning, job), the earliest first.
    active: BinaryHeap<std::cmp::Reverse<(u128, u64, JobId)>>,
    begun: u64,
}

const FRACTION_BITS: u32 = 32;

impl Sharing {
    fn active(&self) -> u32 {
        self.active.len() as u32
    }

    fn advance(&mut self, now: Ns, workers: u32) {
        let passed = u128::from(now.since(self.at).0) << FRACTION_BITS;
        let active = self.active().max(1);
        self.virtual_time +=
            if active <= workers { passed } else { passed * u128::from(workers) / u128::from(active) };
        self.at = now;
    }

    fn begin(&mut self, id: JobId, work: Ns) {
        let done = self.virtual_time + (u128::from(work.0) << FRACTION_BITS);
        self.active.push(std::cmp::Reverse((done, self.begun, id)));
        self.begun += 1;
    }

    fn next(&self, now: Ns, workers: u32) -> Option<Ns> {
        let std::cmp::Reverse((done, ..)) = self.active.peek()?;
        let left = done.saturating_sub(self.virtual_time);
        let active = self.active();
        let real = if active <= workers {
            left
        } else {
            left.saturating_mul(active.into()).div_ceil(workers.into())
        };
        Some(now + Ns(u64::try_from(real.div_ceil(1 << FRACTION_BITS)).unwrap_or(u64::MAX)))
    }

    fn finished(&mut self) -> Option<JobId> {
        let std::cmp::Reverse((done, _, id)) = *self.active.peek()?;
        if done > self.virtual_time {
            return None;
        }
        self.active.pop();
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_that_share_a_worker_slow_each_other() {
        let spec = ServerSpec { discipline: Discipline::Ps, ..ServerSpec::default() };
        let mut server = Server::new(&spec);
        // 10 ns of work at 0, 4 at 2: the first has 8 left, both go at half speed, the second is done at 10, the first
        // at 14.
        server.share(Ns(0), 0, Ns(10));
        assert_eq!(server.next_shared(Ns(0)), Some(Ns(10)));
        server.share(Ns(2), 1, Ns(4));
        assert_eq!(server.next_shared(Ns(2)), Some(Ns(10)));
        assert_eq!(server.take_shared(Ns(10)), Some(1));
        assert_eq!(server.take_shared(Ns(10)), None);
        assert_eq!(server.next_shared(Ns(10)), Some(Ns(14)));
        assert_eq!(server.take_shared(Ns(14)), Some(0));
        assert_eq!(server.busy(), 0);
    }

    #[test]
    fn job_uses_at_most_one_worker() {
        let spec = ServerSpec { discipline: Discipline::Ps, workers: 2, ..ServerSpec::default() };
        let mut server = Server::new(&spec);
        server.share(Ns(0), 0, Ns(10));
        assert_eq!(server.next_shared(Ns(0)), Some(Ns(10)));
        server.share(Ns(0), 1, Ns(10));
        assert_eq!(server.next_shared(Ns(0)), Some(Ns(10)));
        server.share(Ns(0), 2, Ns(10));
        assert_eq!(server.next_shared(Ns(0)), Some(Ns(15)));
        assert_eq!(server.busy(), 2);
    }
}
