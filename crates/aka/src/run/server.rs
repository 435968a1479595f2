//! The processors of an SGSN, which also serve requests of other mobiles.

use super::costs::Steps;
use shakedown_link::{Ns, Stream};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Requests of other mobiles: Poisson arrivals, each with the server's work of a full handshake as one job.
#[derive(Clone, Debug)]
struct Background {
    mean_gap_s: f64,
    next: Ns,
    work: Steps,
    stream: Stream,
}

/// Serves requests in order of arrival, with several workers.
#[derive(Clone, Debug)]
pub struct Server {
    free: BinaryHeap<Reverse<Ns>>,
    background: Option<Background>,
    /// Number of other mobiles' requests so far.
    pub served: u64,
}

impl Server {
    /// Idle workers. Requests of other mobiles arrive at a rate, if it is above 0.
    pub fn new(workers: usize, background_per_s: f64, work: Steps, mut stream: Stream) -> Self {
        let background = (background_per_s > 0.0).then(|| {
            let mean_gap_s = 1.0 / background_per_s;
            let next = Ns::from_secs_f64(mean_gap_s * stream.exponential());
            Background { mean_gap_s, next, work, stream }
        });
        Self { free: (0..workers.max(1)).map(|_| Reverse(Ns::ZERO)).collect(), background, served: 0 }
    }

    /// End of work that arrives at `now`, which must not decrease between calls.
    pub fn submit(&mut self, now: Ns, work: Ns) -> Ns {
        if let Some(mut background) = self.background.take() {
            while background.next <= now {
                let other = background.work.draw_all(&mut background.stream);
                self.serve(background.next, other);
                self.served += 1;
                let gap = background.mean_gap_s * background.stream.exponential();
                background.next += Ns::from_secs_f64(gap);
            }
            self.background = Some(background);
        }
        self.serve(now, work)
    }

    fn serve(&mut self, at: Ns, work: Ns) -> Ns {
        let Reverse(free) = self.free.pop().unwrap_or(Reverse(Ns::ZERO));
        let done = free.max(at) + work;
        self.free.push(Reverse(done));
        done
    }
}
