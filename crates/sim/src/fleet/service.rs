//! The server's workers at their jobs.

use super::{FIRST_WORKER, Fleet, SHARING};
use crate::scenario::Discipline;
use crate::server::{Job, JobId};
use shakedown_link::{Direction, Ns};

impl<const NETWORK: bool> Fleet<'_, NETWORK> {
    /// Starts what can be started.
    pub(super) fn start_jobs(&mut self, now: Ns) {
        while let Some(id) = self.server.next_to_start() {
            self.advance(now);
            let job = *self.server.job(id);
            let waited = now - job.since;
            let counts = self.counts(&job);
            if self.scenario.server.discipline == Discipline::Fifo {
                if counts {
                    self.records.wait.record_time(waited);
                }
                if job.orphaned.is_none() {
                    self.client(job.slot).waited += waited;
                }
            }
            match self.next_piece(now, id) {
                Some(takes) if self.scenario.server.discipline == Discipline::Fifo => {
                    let worker = self.server.assign(id);
                    self.queue.set(FIRST_WORKER + worker, now + takes);
                }
                Some(takes) => {
                    self.server.share(now, id, takes);
                    self.schedule_sharing(now);
                }
                None => self.job_over(now, id),
            }
        }
    }

    /// True where a job is of a client that counts.
    pub(super) fn counts(&self, job: &Job) -> bool {
        let client = &self.clients[job.slot as usize];
        if client.generation == job.generation { client.counted } else { self.window.first.is_some() }
    }

    /// How long a job's next piece takes, if there is one.
    pub(super) fn next_piece(&mut self, now: Ns, id: JobId) -> Option<Ns> {
        let job = *self.server.job(id);
        if let Some(left) = job.orphaned {
            // Once; then nothing is left.
            self.server.job(id).orphaned = Some(Ns::ZERO);
            if left == Ns::ZERO {
                return None;
            }
            self.server.job(id).served += left;
            return Some(left);
        }
        let setup = self.setup;
        let client = &mut self.clients[job.slot as usize];
        if client.generation != job.generation || !client.is_active {
            return None;
        }
        let plan = Self::plan(setup, client);
        let work = client.work::<NETWORK>(now, Direction::Down, plan, &mut self.shared)?;
        self.server.job(id).served += work.takes;
        Some(work.takes)
    }

    /// A piece of a job is done.
    pub(super) fn piece_done(&mut self, now: Ns, id: JobId) -> Option<Ns> {
        self.events += 1;
        let job = *self.server.job(id);
        let setup = self.setup;
        let client = &mut self.clients[job.slot as usize];
        let is_there = job.orphaned.is_none() && client.is_active && client.generation == job.generation;
        if is_there {
            let plan = Self::plan(setup, client);
            client.finish::<NETWORK>(now, Direction::Down, plan, &mut self.shared);
        }
        let next = self.next_piece(now, id);
        if next.is_none() {
            self.job_over(now, id);
        }
        if is_there {
            self.act(now, job.slot);
        }
        next
    }

    pub(super) fn job_over(&mut self, now: Ns, id: JobId) {
        self.advance(now);
        let job = *self.server.job(id);
        let sojourn = now - job.since;
        self.load.in_system -= 1;
        self.sojourn_ns += u128::from(sojourn.0);
        let counts = self.counts(&job);
        if counts {
            self.records.sojourn.record_time(sojourn);
        }
        if self.scenario.server.discipline == Discipline::Ps {
            // Under sharing, waiting is what service took longer than alone.
            let waited = sojourn.since(job.served);
            if counts {
                self.records.wait.record_time(waited);
            }
            if job.orphaned.is_none() {
                self.client(job.slot).waited += waited;
            }
        }
        let client = self.client(job.slot);
        if client.job == Some(id) {
            client.job = None;
        }
        self.server.forget(id);
    }

    pub(super) fn worker(&mut self, now: Ns, worker: u32) {
        let Some(id) = self.server.job_of(worker) else { return };
        self.advance(now);
        match self.piece_done(now, id) {
            Some(takes) => self.queue.set(FIRST_WORKER + worker, now + takes),
            None => self.server.release(worker),
        }
    }

    pub(super) fn shared_service(&mut self, now: Ns) {
        self.advance(now);
        while let Some(id) = self.server.take_shared(now) {
            if let Some(takes) = self.piece_done(now, id) {
                self.server.share(now, id, takes);
            }
        }
        self.schedule_sharing(now);
    }

    pub(super) fn schedule_sharing(&mut self, now: Ns) {
        match self.server.next_shared(now) {
            Some(next) => self.queue.set(SHARING, next),
            None => self.queue.clear(SHARING),
        }
    }
}
