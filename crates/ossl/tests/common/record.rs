//! What was recorded, as counts: the one place in these tests that knows the recorder.

use shakedown_trace::Primitive;
use shakedown_trace::recorder::{self, Event, Tape};
use std::collections::BTreeMap;

/// How often each primitive ran and over how many bytes.
pub type Tally = BTreeMap<Primitive, (u64, u64)>;

/// Runs `work` with a log of its own; what it wrote there.
pub fn recorded<T>(work: impl FnOnce() -> T) -> (T, Log) {
    recorder::start(Tape::default());
    let result = work();
    (result, Log(recorder::stop().events))
}

/// The events of one call.
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
                let entry = tally.entry(*primitive).or_default();
                entry.0 += u64::from(*counts);
                entry.1 += u64::from(*bytes);
            }
        }
    }

    /// Nanoseconds by primitive.
    pub fn nanoseconds(&self) -> BTreeMap<Primitive, u64> {
        let mut found = BTreeMap::new();
        for event in &self.0 {
            if let Event::Operation { primitive, start, end, .. } = event {
                *found.entry(*primitive).or_default() += end - start;
            }
        }
        found
    }
}
