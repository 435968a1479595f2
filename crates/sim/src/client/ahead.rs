//! Service times of the first messages of future clients, drawn in batches.

use super::SERVICE;
use crate::checked::Setup;
use shakedown_link::{Direction, Distribution, Ns, Stream};

/// Clients per batch. The processor computes the logarithms of a batch in parallel.
const TOGETHER: usize = 16;

/// Draws the server's time for the first message of each client in advance. It is the first draw of the server's side
/// of a client in any case, so results do not change.
#[derive(Debug)]
pub(crate) struct DrawnAhead<'a> {
    work: &'a Distribution,
    seed: u64,
    /// Times of consecutive clients, and the number after the last of these clients.
    times: [Ns; TOGETHER],
    end: u64,
}

impl<'a> DrawnAhead<'a> {
    /// `None` if the clients have different handshakes, or if this time is constant.
    pub fn of(setup: &'a Setup, seed: u64) -> Option<Self> {
        let step = setup.only_plan()?.steps.first()?;
        let has_spread = step.constant(Direction::Down).is_none();
        let work = step.cost(Direction::Down);
        has_spread.then_some(Self { work, seed, times: [Ns::ZERO; TOGETHER], end: 0 })
    }

    /// The time of the next client. Clients are numbered from 0 in the order of arrival.
    #[inline]
    pub fn next(&mut self, number: u64) -> Ns {
        if number == self.end {
            self.draw();
        }
        self.times[number as usize % TOGETHER]
    }

    fn draw(&mut self) {
        self.times = self.work.draw_each(|place| Stream::of(self.seed, self.end + place as u64, SERVICE[1]));
        self.end += TOGETHER as u64;
    }
}
