//! Time series that merge exactly: counts of events, and clients by stage, in each interval.

use serde::{Deserialize, Serialize};
use shakedown_link::Ns;

/// Counts by interval of virtual time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// The width of an interval.
    pub width: Ns,
    /// The intervals, from time 0; events after the last are counted in it.
    pub intervals: Vec<Interval>,
    /// The same for each class's clients.
    pub classes: Vec<Vec<ClassInterval>>,
}

/// One interval of the servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// Attempts begun, without each client's first.
    pub retries: u64,
    /// Connections that servers refused.
    pub refused: u64,
    /// Time that workers were busy.
    pub busy: Ns,
    /// Jobs waiting for a worker, times time.
    pub waiting: Ns,
    /// Servers in service, times time; 0 if their number is fixed.
    pub servers: Ns,
    /// The same for starting servers.
    pub starting: Ns,
}

/// One interval of a class's clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassInterval {
    /// Clients that arrived.
    pub arrived: u64,
    /// Clients that were ready.
    pub completed: u64,
    /// Clients that gave up.
    pub failed: u64,
    /// Clients in flight, by stage, times time.
    pub stages: [Ns; STAGES],
}

/// The maximum number of intervals; a longer run counts the rest in the last.
pub const MAX_INTERVALS: usize = 10_000;

impl Series {
    /// For N classes and intervals of this width; none if the width is 0.
    #[must_use]
    pub fn new(width: Ns, classes: usize) -> Self {
        Self { width, intervals: Vec::new(), classes: vec![Vec::new(); classes] }
    }

    /// The interval of a time, if there is a series.
    #[inline]
    pub fn at(&mut self, time: Ns) -> Option<&mut Interval> {
        let number = self.number(time)?;
        Some(entry(&mut self.intervals, number))
    }

    /// The same for a class's clients.
    #[inline]
    pub fn class_at(&mut self, class: usize, time: Ns) -> Option<&mut ClassInterval> {
        let number = self.number(time)?;
        Some(entry(&mut self.classes[class], number))
    }

    #[inline]
    fn number(&self, time: Ns) -> Option<usize> {
        let number = time.0.checked_div(self.width.0)?;
        Some((number as usize).min(MAX_INTERVALS - 1))
    }

    /// Adds the numbers of busy workers and waiting jobs, times their duration, to each interval of a span.
    #[inline]
    pub fn hold(&mut self, span: (Ns, Ns), busy: u64, waiting: u64) {
        for (number, length) in parts(self.width, span) {
            let interval = entry(&mut self.intervals, number);
            interval.busy += times(length, busy);
            interval.waiting += times(length, waiting);
        }
    }

    /// The same for servers in service and starting servers.
    pub fn hold_servers(&mut self, span: (Ns, Ns), servers: u64, starting: u64) {
        for (number, length) in parts(self.width, span) {
            let interval = entry(&mut self.intervals, number);
            interval.servers += times(length, servers);
            interval.starting += times(length, starting);
        }
    }

    /// The same for a class's clients by stage.
    pub fn hold_stages(&mut self, class: usize, span: (Ns, Ns), there: &[u64; STAGES]) {
        if *there == [0; STAGES] {
            return;
        }
        for (number, length) in parts(self.width, span) {
            let interval = entry(&mut self.classes[class], number);
            for (sum, count) in interval.stages.iter_mut().zip(there) {
                *sum += times(length, *count);
            }
        }
    }

    /// The number of intervals, of servers and of clients.
    #[must_use]
    pub fn length(&self) -> usize {
        self.classes.iter().map(Vec::len).chain([self.intervals.len()]).max().unwrap_or(0)
    }

    /// All classes' clients in an interval.
    #[must_use]
    pub fn clients(&self, number: usize) -> ClassInterval {
        let mut all = ClassInterval::default();
        self.classes.iter().filter_map(|class| class.get(number)).for_each(|one| all.add(one));
        all
    }

    /// The maximum number of clients in flight at the end of an interval.
    #[must_use]
    pub fn peak_in_flight(&self) -> u64 {
        let mut there = 0;
        let ends = (0..self.length()).map(|number| {
            let all = self.clients(number);
            there += all.arrived;
            there -= all.completed + all.failed;
            there
        });
        ends.max().unwrap_or(0)
    }

    /// Adds the counts of another series. False, and nothing is added, if widths or classes differ.
    #[must_use]
    pub fn merge(&mut self, other: &Self) -> bool {
        if (self.width, self.classes.len()) != (other.width, other.classes.len()) {
            return false;
        }
        for (number, more) in other.intervals.iter().enumerate() {
            let interval = entry(&mut self.intervals, number);
            interval.retries += more.retries;
            interval.refused += more.refused;
            interval.busy += more.busy;
            interval.waiting += more.waiting;
            interval.servers += more.servers;
            interval.starting += more.starting;
        }
        for (own, more) in self.classes.iter_mut().zip(&other.classes) {
            more.iter().enumerate().for_each(|(number, one)| entry(own, number).add(one));
        }
        true
    }
}

impl ClassInterval {
    fn add(&mut self, more: &Self) {
        self.arrived += more.arrived;
        self.completed += more.completed;
        self.failed += more.failed;
        for (sum, one) in self.stages.iter_mut().zip(more.stages) {
            *sum += one;
        }
    }

    /// Clients in flight, times time.
    #[must_use]
    pub fn in_flight(&self) -> Ns {
        self.stages.iter().fold(Ns::ZERO, |sum, one| sum + *one)
    }
}

/// A span cut by the intervals: number and length of each part.
pub(crate) fn parts(width: Ns, (from, to): (Ns, Ns)) -> impl Iterator<Item = (usize, Ns)> {
    let mut from = if width == Ns::ZERO { to } else { from };
    std::iter::from_fn(move || {
        if from >= to {
            return None;
        }
        let number = from.0 / width.0;
        let is_last = number as usize >= MAX_INTERVALS - 1;
        let end = if is_last { to } else { to.min(Ns((number + 1).saturating_mul(width.0))) };
        let length = end - from;
        from = end;
        Some(((number as usize).min(MAX_INTERVALS - 1), length))
    })
}

#[inline]
pub(crate) fn entry<T: Default + Clone>(list: &mut Vec<T>, number: usize) -> &mut T {
    if number >= list.len() {
        list.resize(number + 1, T::default());
    }
    &mut list[number]
}

fn times(length: Ns, count: u64) -> Ns {
    Ns(length.0.saturating_mul(count))
}

/// The stage of a client that is not ready yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Between two attempts.
    Pausing,
    /// Its radio has requested access to its cell.
    Seeking,
    /// Its connection waits to be accepted, or its flight for a worker or the end of work on it.
    AtServer,
    /// Anything else: packets are under way, the transport waits, or the client computes.
    UnderWay,
}

/// The number of stages.
pub const STAGES: usize = 4;

/// Clients of each class by stage.
#[derive(Debug)]
pub struct Stages {
    /// The time since which the numbers are valid, and the numbers.
    classes: Vec<(Ns, [u64; STAGES])>,
}

impl Stages {
    /// Counts for N classes, without clients.
    #[must_use]
    pub fn of(classes: usize) -> Self {
        Self { classes: vec![(Ns::ZERO, [0; STAGES]); classes] }
    }

    /// A client of a class moves from a stage to another; `None`: it is not in flight.
    pub fn moves(
        &mut self,
        series: &mut Series,
        class: usize,
        (from, to): (Option<Stage>, Option<Stage>),
        now: Ns,
    ) {
        let (at, there) = &mut self.classes[class];
        if now > *at {
            series.hold_stages(class, (*at, now), there);
            *at = now;
        }
        if let Some(stage) = from {
            there[stage as usize] -= 1;
        }
        if let Some(stage) = to {
            there[stage as usize] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_distributed_over_their_intervals() {
        let mut series = Series::new(Ns(10), 1);
        series.hold((Ns(5), Ns(25)), 2, 0);
        let busy: Vec<u64> = series.intervals.iter().map(|interval| interval.busy.0).collect();
        assert_eq!(busy, [10, 20, 10]);
        let mut other = Series::new(Ns(10), 1);
        other.hold_stages(0, (Ns(28), Ns(31)), &[0, 0, 1, 2]);
        assert!(series.merge(&other));
        assert_eq!(
            (series.length(), series.clients(2).in_flight(), series.clients(3).in_flight()),
            (4, Ns(6), Ns(3))
        );
        assert!(!series.merge(&Series::new(Ns(11), 1)));
    }
}
