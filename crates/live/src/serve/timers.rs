//! Deadlines of connections.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// A connection's deadline. If it moves later, the heap need not change.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deadline {
    pub due: Duration,
    queued: Option<Duration>,
}

/// Deadlines in order. Each connection has one entry, which is checked when its time has come. A deadline that moves
/// earlier gets another entry.
#[derive(Debug, Default)]
pub struct Timers {
    heap: BinaryHeap<Reverse<(Duration, usize)>>,
}

impl Timers {
    pub fn set(&mut self, key: usize, deadline: &mut Deadline, due: Duration) {
        deadline.due = due;
        if deadline.queued.is_none_or(|queued| due < queued) {
            deadline.queued = Some(due);
            self.heap.push(Reverse((due, key)));
        }
    }

    pub fn next(&self) -> Option<Duration> {
        self.heap.peek().map(|Reverse((due, _))| *due)
    }

    /// The next entry whose time has come; [`check`](Self::check) decides whether its deadline has passed.
    pub fn pop(&mut self, now: Duration) -> Option<(Duration, usize)> {
        let Reverse((due, _)) = self.heap.peek()?;
        if *due > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry)
    }

    /// True if the deadline of an entry from [`pop`](Self::pop) has passed. A deadline that has moved is queued again.
    pub fn check(&mut self, entry: (Duration, usize), deadline: &mut Deadline, now: Duration) -> bool {
        // The deadline has another entry, or the entry is that of an earlier connection with the same key.
        if deadline.queued != Some(entry.0) {
            return false;
        }
        deadline.queued = None;
        if deadline.due <= now {
            return true;
        }
        let due = deadline.due;
        self.set(entry.1, deadline, due);
        false
    }

    /// Number of entries, including those of removed connections.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.heap.len()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    #[test]
    fn postponed_deadline_keeps_a_single_entry() {
        let mut timers = Timers::default();
        let mut deadline = Deadline::default();
        for due in 10..1_000 {
            timers.set(7, &mut deadline, ms(due));
        }
        assert_eq!(timers.len(), 1);
        let entry = timers.pop(ms(10)).unwrap();
        assert!(!timers.check(entry, &mut deadline, ms(10)));
        assert_eq!(timers.next(), Some(ms(999)));
        let entry = timers.pop(ms(999)).unwrap();
        assert!(timers.check(entry, &mut deadline, ms(999)));
        assert_eq!(timers.len(), 0);
    }

    #[test]
    fn advanced_deadline_expires_once() {
        let mut timers = Timers::default();
        let mut deadline = Deadline::default();
        timers.set(1, &mut deadline, ms(500));
        timers.set(1, &mut deadline, ms(20));
        let early = timers.pop(ms(30)).unwrap();
        assert!(timers.check(early, &mut deadline, ms(30)));
        let late = timers.pop(ms(500)).unwrap();
        assert!(!timers.check(late, &mut deadline, ms(500)));
    }

    #[test]
    fn deadline_is_not_due_before_its_time() {
        let mut timers = Timers::default();
        let mut deadline = Deadline::default();
        timers.set(1, &mut deadline, ms(20));
        assert_eq!(timers.pop(ms(19)), None);
        assert_eq!(timers.next(), Some(ms(20)));
    }
}
