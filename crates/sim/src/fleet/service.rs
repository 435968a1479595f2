//! The server's workers at their jobs.

use super::{FIRST_SHARING, Fleet, SCALING};
use crate::scenario::Discipline;
use crate::server::{Job, JobId, Server};
use shakedown_link::{Direction, Ns};

impl<const NETWORK: bool> Fleet<'_, NETWORK> {
    /// Starts what can be started.
    #[inline]
    pub(super) fn start_jobs(&mut self, now: Ns) {
        while let Some(server) = self.may_start.pop() {
            while let Some(id) = self.at_server(server, Server::next_to_start) {
                self.start(now, server, id);
            }
        }
    }

    fn start(&mut self, now: Ns, server: u32, id: JobId) {
        self.advance(now);
        let job = *self.jobs.get(id);
        let waited = now - job.since;
        if self.scenario.server.discipline == Discipline::Fifo {
            self.has_waited(&job, waited);
        }
        match self.next_piece(now, id) {
            Some(takes) if self.scenario.server.discipline == Discipline::Fifo => {
                let worker = self.at_server(server, |server| server.assign(id));
                self.queue
                    .set(self.first_worker + server * self.scenario.server.workers + worker, now + takes);
            }
            Some(takes) => {
                self.at_server(server, |server| server.share(now, id, takes));
                self.schedule_sharing(now, server);
            }
            None => self.job_over(now, id),
        }
    }

    /// Notes how long a job has waited.
    #[inline]
    fn has_waited(&mut self, job: &Job, waited: Ns) {
        let counts = self.counts(job);
        if job.is_record() {
            if let Some(open) = self.open.as_mut().filter(|_| counts) {
                open.wait.record_time(waited);
            }
            return;
        }
        if counts {
            self.recorders.wait.record_time(waited);
        }
        if job.orphaned.is_none() {
            self.client(job.slot).waited += waited;
        }
    }

    /// True where a job is of a client that counts.
    #[inline]
    fn counts(&self, job: &Job) -> bool {
        if job.is_record() {
            return self.window.first.is_some();
        }
        let client = &self.clients[job.slot as usize];
        if client.generation == job.generation { client.counted } else { self.window.first.is_some() }
    }

    /// How long a job's next piece takes, if there is one.
    pub(super) fn next_piece(&mut self, now: Ns, id: JobId) -> Option<Ns> {
        let job = *self.jobs.get(id);
        if let Some(left) = job.orphaned {
            // Once; then nothing is left.
            self.jobs.get(id).orphaned = Some(Ns::ZERO);
            if left == Ns::ZERO {
                return None;
            }
            self.jobs.get(id).served += left;
            return Some(left);
        }
        let setup = self.setup;
        let client = &mut self.clients[job.slot as usize];
        if client.generation != job.generation || !client.is_active {
            return None;
        }
        let plan = Self::plan(setup, client);
        let work = client.work::<NETWORK>(now, Direction::Down, plan, &mut self.shared)?;
        self.jobs.get(id).served += work.takes;
        Some(work.takes)
    }

    /// A piece of a job is done.
    pub(super) fn piece_done(&mut self, now: Ns, id: JobId) -> Option<Ns> {
        self.events += 1;
        let job = *self.jobs.get(id);
        let setup = self.setup;
        let is_there = job.orphaned.is_none() && {
            let client = &self.clients[job.slot as usize];
            client.is_active && client.generation == job.generation
        };
        if is_there {
            let client = &mut self.clients[job.slot as usize];
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
        let job = *self.jobs.get(id);
        let sojourn = now - job.since;
        self.load.in_system -= 1;
        self.sojourn_ns += u128::from(sojourn.0);
        if self.scenario.server.discipline == Discipline::Ps {
            // Under sharing, waiting is what service took longer than alone.
            self.has_waited(&job, sojourn.since(job.served));
        }
        self.jobs.forget(id);
        if job.is_record() {
            if let Some(open) = &mut self.open {
                open.work_ns += u128::from(job.served.0);
            }
            return;
        }
        if self.counts(&job) {
            self.recorders.sojourn.record_time(sojourn);
        }
        let client = self.client(job.slot);
        if client.job == Some(id) {
            client.job = None;
        }
    }

    pub(super) fn worker(&mut self, now: Ns, number: u32) {
        let each = self.scenario.server.workers;
        let (server, worker) = (number / each, number % each);
        let Some(id) = self.servers[server as usize].job_of(worker) else { return };
        self.advance(now);
        match self.piece_done(now, id) {
            Some(takes) => self.queue.set(self.first_worker + number, now + takes),
            None => {
                self.at_server(server, |server| server.release(worker));
                self.may_start.push(server);
            }
        }
    }

    pub(super) fn shared_service(&mut self, now: Ns, server: u32) {
        self.advance(now);
        while let Some(id) = self.at_server(server, |server| server.take_shared(now)) {
            if let Some(takes) = self.piece_done(now, id) {
                self.at_server(server, |server| server.share(now, id, takes));
            }
        }
        self.schedule_sharing(now, server);
    }

    /// Servers that have started begin to serve, and others start or stop.
    pub(super) fn scale(&mut self, now: Ns) {
        if self.queue.is_empty() {
            // No client is left whom they would serve.
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
