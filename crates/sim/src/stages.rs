//! The stages in which clients wait that have arrived and are neither ready nor failed.

use crate::metrics::Series;
use shakedown_link::Ns;

/// The stage of a client that is not ready yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Between two attempts.
    Pausing,
    /// Its radio asks its cell for access.
    Seeking,
    /// Its connection waits to be accepted, or its flight for a worker or the end of work on it.
    AtServer,
    /// Anything else: packets are under way, the transport waits, or the client computes.
    UnderWay,
}

/// How many there are.
pub const STAGES: usize = 4;

/// Clients of each class by stage.
#[derive(Debug)]
pub struct Stages {
    /// Since when, and how many.
    classes: Vec<(Ns, [u64; STAGES])>,
}

impl Stages {
    /// Counts for N classes, without clients.
    #[must_use]
    pub fn of(classes: usize) -> Self {
        Self { classes: vec![(Ns::ZERO, [0; STAGES]); classes] }
    }

    /// A client of a class leaves a stage, and comes to another; `None`: it is not on its way.
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
