//! Service of jobs by the server's workers.
//!
//! The small functions here and in `turn` that every job passes through are inlined by force: the compiler would not
//! inline some of them.

use super::{FIRST_SHARING, Fleet, SCALING};
use crate::scenario::Discipline;
use crate::server::{Job, JobId};
use shakedown_link::{Direction, Ns};

impl<const NETWORK: bool> Fleet<'_, NETWORK> {
    /// Adds a job to a server's queue.
    #[inline(always)]
    pub(super) fn enqueue(&mut self, server: u32, job: Job) -> JobId {
        let id = self.jobs.add(job);
        self.servers[server as usize].enqueue(id);
        self.load.waiting += 1;
        self.load.in_system += 1;
        self.may_start.push(server);
        id
    }

    /// Starts the jobs that can start.
    #[inline]
    pub(super) fn start_jobs(&mut self, now: Ns) {
        while let Some(server) = self.may_start.pop() {
            while let Some(id) = self.servers[server as usize].next_to_start() {
                self.load.waiting -= 1;
                self.start(now, server, id);
            }
        }
    }

    #[inline(always)]
    fn start(&mut self, now: Ns, server: u32, id: JobId) {
        self.advance(now);
        if self.scenario.server.discipline == Discipline::Fifo {
            let job = *self.jobs.get(id);
            self.has_waited(&job, now - job.since);
        }
        match self.next_piece(now, id) {
            Some(takes) if self.scenario.server.discipline == Discipline::Fifo => {
                let worker = self.servers[server as usize].assign(id);
                self.load.busy += 1;
                self.queue
                    .set(self.first_worker + server * self.scenario.server.workers + worker, now + takes);
            }
            Some(takes) => {
                self.at_shared(server, |server| server.share(now, id, takes));
                self.schedule_sharing(now, server);
            }
            None => self.job_over(now, id),
        }
    }

    /// Records how long a job has waited.
    #[inline(always)]
    fn has_waited(&mut self, job: &Job, waited: Ns) {
        let began = self.window.first.is_some();
        if job.is_record() {
            if let Some(open) = self.open.as_mut().filter(|_| began) {
                open.wait.record_time(waited);
            }
            return;
        }
        let client = &mut self.clients[job.slot as usize];
        if client.counts(job, began) {
            self.recorders.wait.record_time(waited);
        }
        if job.orphaned.is_none() {
            client.waited += waited;
        }
    }

    /// The duration of a job's next piece, if there is one.
    #[inline(always)]
    pub(super) fn next_piece(&mut self, now: Ns, id: JobId) -> Option<Ns> {
        let job = self.jobs.get(id);
        if let Some(left) = job.orphaned {
            // Returned once; afterwards no work is left.
            job.orphaned = Some(Ns::ZERO);
            job.served += left;
            return (left > Ns::ZERO).then_some(left);
        }
        let client = &mut self.clients[job.slot as usize];
        if client.generation != job.generation || !client.is_active {
            return None;
        }
        let takes = client.work::<NETWORK>(now, Direction::Down, &mut self.shared)?;
        job.served += takes;
        Some(takes)
    }

    /// Ends a piece of a job. Returns the duration of the next piece, if there is one.
    #[inline(always)]
    pub(super) fn piece_done(&mut self, now: Ns, id: JobId) -> Option<Ns> {
        self.events += 1;
        let Job { slot, generation, orphaned, .. } = *self.jobs.get(id);
        if orphaned.is_none() {
            let client = &mut self.clients[slot as usize];
            if client.is_active && client.generation == generation {
                client.finish::<NETWORK>(now, Direction::Down, &mut self.shared);
                let takes = client.work::<NETWORK>(now, Direction::Down, &mut self.shared);
                match takes {
                    Some(takes) => self.jobs.get(id).served += takes,
                    None => self.job_over(now, id),
                }
                self.act(now, slot);
                return takes;
            }
        }
        let next = self.next_piece(now, id);
        if next.is_none() {
            self.job_over(now, id);
        }
        next
    }

    #[inline(always)]
    pub(super) fn job_over(&mut self, now: Ns, id: JobId) {
        self.advance(now);
        let job = *self.jobs.get(id);
        let sojourn = now - job.since;
        self.load.in_system -= 1;
        self.sojourn_ns += u128::from(sojourn.0);
        if self.scenario.server.discipline == Discipline::Ps {
            // Under sharing, the wait is the sojourn time minus the service time on one worker alone.
            self.has_waited(&job, sojourn.since(job.served));
        }
        self.jobs.forget(id);
        if job.is_record() {
            if let Some(open) = &mut self.open {
                open.work_ns += u128::from(job.served.0);
            }
            return;
        }
        let client = &mut self.clients[job.slot as usize];
        if client.counts(&job, self.window.first.is_some()) {
            self.recorders.sojourn.record_time(sojourn);
        }
        if client.job == Some(id) {
            client.job = None;
        }
    }

    #[inline]
    pub(super) fn worker(&mut self, now: Ns, number: u32) {
        let each = self.scenario.server.workers;
        // Avoids divisions, which are slow; most servers have one worker.
        let (server, worker) = if each == 1 { (number, 0) } else { (number / each, number % each) };
        let Some(id) = self.servers[server as usize].job_of(worker) else { return };
        self.advance(now);
        match self.piece_done(now, id) {
            Some(takes) => self.queue.set(self.first_worker + number, now + takes),
            None => {
                self.servers[server as usize].release(worker);
                self.load.busy -= 1;
                self.may_start.push(server);
            }
        }
    }

    pub(super) fn shared_service(&mut self, now: Ns, server: u32) {
        self.advance(now);
        while let Some(id) = self.at_shared(server, |server| server.take_shared(now)) {
            if let Some(takes) = self.piece_done(now, id) {
                self.at_shared(server, |server| server.share(now, id, takes));
            }
        }
        self.schedule_sharing(now, server);
    }

    /// Autoscaling: started servers begin to serve, and others start or stop.
    pub(super) fn scale(&mut self, now: Ns) {
        if self.is_over() {
            // No client remains that they would serve.
            self.now = self.load.at;
            return;
        }
        self.advance(now);
        let Some(scaler) = &mut self.scaler else { return };
        let servers = &self.servers;
        let ending =
            |on: u32| servers.iter().skip(on as usize).filter(|server| server.is_used()).count() as u32;
        scaler.act(now, self.load.busy_ns, self.load.waiting, ending);
        self.queue.set(SCALING, scaler.next());
    }

    fn schedule_sharing(&mut self, now: Ns, server: u32) {
        match self.servers[server as usize].next_shared(now) {
            Some(next) => self.queue.set(FIRST_SHARING + server, next),
            None => self.queue.clear(FIRST_SHARING + server),
        }
    }
}
