//! The histograms that a replication records.

use crate::energy::{ClientEnergy, nanojoules};
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
    pub client_cpu: Recorder,
    pub server_cpu: Recorder,
    radio: Recorder,
    processor: Recorder,
    energy: Recorder,
    /// By class.
    pub ready: Vec<Recorder>,
}

impl Recorders {
    /// For N classes.
    pub fn of(classes: usize) -> Self {
        Self { ready: std::iter::repeat_with(Recorder::default).take(classes).collect(), ..Self::default() }
    }

    /// Counts a client's energy, as far as it is known.
    pub fn record_energy(&mut self, energy: &ClientEnergy) {
        if let Some(joules) = energy.radio_j {
            self.radio.record(nanojoules(joules));
        }
        if let Some(joules) = energy.processor_j {
            self.processor.record(nanojoules(joules));
        }
        if energy.is_known() {
            let sum = energy.radio_j.unwrap_or(0.0) + energy.processor_j.unwrap_or(0.0);
            self.energy.record(nanojoules(sum));
        }
    }

    /// Moves the histograms into the outcome.
    pub fn end(self, outcome: &mut Outcome) {
        outcome.connect = self.connect.histogram();
        outcome.done = self.done.histogram();
        outcome.wait = self.wait.histogram();
        outcome.sojourn = self.sojourn.histogram();
        outcome.client_wait = self.client_wait.histogram();
        outcome.client_cpu = self.client_cpu.histogram();
        outcome.server_cpu = self.server_cpu.histogram();
        outcome.radio = self.radio.histogram();
        outcome.processor = self.processor.histogram();
        outcome.energy = self.energy.histogram();
        // Every client belongs to exactly one class.
        for (class, ready) in outcome.classes.iter_mut().zip(self.ready) {
            class.ready = ready.histogram();
            outcome.ready.merge(&class.ready);
        }
    }
}
