//! Recorded operations, as counts. Only this module of the tests uses the recorder.

use shakedown_trace::recorder::Event;
use shakedown_trace::{Counter, Primitive, Recording};
use std::collections::BTreeMap;

/// Number of operations and bytes of each primitive.
pub type Tally = BTreeMap<Primitive, (u64, u64)>;

/// Runs `work` with a separate log; returns the log.
pub fn recorded<T>(work: impl FnOnce() -> T) -> (T, Log) {
    let mut recording = Recording::new(Counter::NANOSECONDS);
    let result = recording.during(work);
    let operations = recording.events().iter().filter(|event| matches!(event, Event::Operation { .. }));
    (result, Log(operations.copied().collect()))
}

/// The operations of one call.
#[derive(Default)]
pub struct Log(pub Vec<Event>);

impl Log {
    /// Counts and bytes by primitive.
    pub fn tally(&self) -> Tally {
        let mut tally = Tally::new();
        self.add_to(&mut tally);
        tally
    }

    pub fn add_to(&self, tally: &mut Tally) {
        for event in &self.0 {
            if let Event::Operation { primitive, bytes, counts, .. } = event {
                let entry = tally.entry(**primitive).or_default();
                entry.0 += u64::from(*counts);
                entry.1 += u64::from(*bytes);
            }
        }
    }

    pub fn nanoseconds(&self) -> BTreeMap<Primitive, u64> {
        let mut found = BTreeMap::new();
        for event in &self.0 {
            if let Event::Operation { primitive, start, end, .. } = event {
                *found.entry(**primitive).or_default() +=
                    Counter::NANOSECONDS.convert(*end) - Counter::NANOSECONDS.convert(*start);
            }
        }
        found
    }
}
