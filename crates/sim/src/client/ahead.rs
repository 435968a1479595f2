//! The server's work on the first messages of clients that are yet to come.

use super::SERVICE;
use crate::checked::Setup;
use shakedown_link::{Direction, Distribution, Ns, Stream};

/// Clients whose work is drawn together, so that their logarithms do not wait for each other, nor the next event for them.
const TOGETHER: usize = 16;

/// Draws the server's time for the first message of each client, some clients ahead. It is the first that is drawn for
/// the server's side of a client in any case, so nothing else changes.
#[derive(Debug)]
pub(crate) struct DrawnAhead<'a> {
    work: &'a Distribution,
    seed: u64,
    /// Times of clients in the order of their numbers, and the number after the last.
    times: [Ns; TOGETHER],
    end: u64,
}

impl<'a> DrawnAhead<'a> {
    /// Of clients that are all of one kind; `None` where they are not, or where that work has no spread.
    pub fn of(setup: &'a Setup, seed: u64) -> Option<Self> {
        let step = setup.only_plan()?.steps.first()?;
        let has_spread = step.constant(Direction::Down).is_none();
        let work = step.cost(Direction::Down);
        has_spread.then_some(Self { work, seed, times: [Ns::ZERO; TOGETHER], end: 0 })
    }

    /// That of the next client. Clients are numbered from 0, and come in this order.
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
