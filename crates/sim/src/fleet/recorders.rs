//! The histograms that a replication records.

use crate::histogram::Recorder;
use crate::outcome::Outcome;

/// The histograms of an unfinished [`Outcome`], with the same names.
#[derive(Debug, Default)]
pub(super) struct Recorders {
    pub connect: Recorder,
    pub done: Recorder,
    pub wait: Recorder,
    pub sojourn: Recorder,
    pub client_wait: Recorder,
    pub energy: Recorder,
    /// By class.
    pub ready: Vec<Recorder>,
}

impl Recorders {
    /// For N classes.
    pub fn of(classes: usize) -> Self {
        Self { ready: std::iter::repeat_with(Recorder::default).take(classes).collect(), ..Self::default() }
    }

    /// Moves the histograms into the outcome.
    pub fn end(self, outcome: &mut Outcome) {
        outcome.connect = self.connect.histogram();
        outcome.done = self.done.histogram();
        outcome.wait = self.wait.histogram();
        outcome.sojourn = self.sojourn.histogram();
        outcome.client_wait = self.client_wait.histogram();
        outcome.energy = self.energy.histogram();
        // Every client belongs to exactly one class.
        for (class, ready) in outcome.classes.iter_mut().zip(self.ready) {
            class.ready = ready.histogram();
            outcome.ready.merge(&class.ready);
        }
    }
}
