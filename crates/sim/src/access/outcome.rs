//! What is counted of cells.

use super::Packet;
use crate::metrics::{Histogram, MAX_INTERVALS, Recorder, Summary};
use serde::{Deserialize, Serialize};
use shakedown_link::{Direction, Ns};

/// What one turn of a cell comes to.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub requests: u64,
    /// How long each client that was let in took, and how often it tried.
    pub admitted: Vec<(Ns, u32)>,
    pub refused: u64,
    pub transmissions: u64,
    pub collided: u64,
    pub collisions: u64,
    pub airtime: [Ns; 2],
    pub bytes: [u64; 2],
}

impl Tally {
    /// A packet crosses the cell.
    pub fn carries<P>(&mut self, packet: &Packet<P>) {
        let way = usize::from(packet.direction == Direction::Down);
        self.airtime[way] += packet.airtime;
        self.bytes[way] += u64::from(packet.bytes);
    }
}

/// Accesses of clients whose radios were idle, and what crossed the air, up and down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Accesses, and what became of them.
    pub requests: u64,
    pub admitted: u64,
    pub refused: u64,
    /// Preambles and frames that were sent where they may collide, and those of them that did.
    pub transmissions: u64,
    pub collided: u64,
    pub bytes: [u64; 2],
}

/// What went on in all cells together. Times are nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AccessOutcome {
    /// Cells, of all media.
    pub cells: u64,
    #[serde(flatten)]
    pub all: CellInterval,
    /// How often any collided.
    pub collisions: u64,
    /// Of accesses that succeeded: preambles each, and from the first of them until connected.
    pub attempts: Histogram,
    pub delay: Histogram,
    /// By interval of the outcome's series.
    pub series: Vec<CellInterval>,
}

/// One interval, or all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellInterval {
    #[serde(flatten)]
    pub counts: Counts,
    /// The air's time that was used, up and down.
    pub airtime_ns: [u64; 2],
}

impl CellInterval {
    fn add(&mut self, more: &Self) {
        let (own, other) = (&mut self.counts, &more.counts);
        own.requests += other.requests;
        own.admitted += other.admitted;
        own.refused += other.refused;
        own.transmissions += other.transmissions;
        own.collided += other.collided;
        for way in 0..2 {
            own.bytes[way] += other.bytes[way];
            self.airtime_ns[way] = self.airtime_ns[way].saturating_add(more.airtime_ns[way]);
        }
    }
}

/// An outcome in the making.
#[derive(Debug, Default)]
pub(super) struct AccessRecords {
    all: CellInterval,
    collisions: u64,
    attempts: Recorder,
    delay: Recorder,
    series: Vec<CellInterval>,
}

impl AccessRecords {
    /// Adds a turn, and empties its tally.
    pub fn add(&mut self, now: Ns, width: Ns, tally: &mut Tally) {
        let tally = std::mem::take(tally);
        for (delay, sent) in &tally.admitted {
            self.attempts.record(u64::from(*sent));
            self.delay.record_time(*delay);
        }
        let counts = Counts {
            requests: tally.requests,
            admitted: tally.admitted.len() as u64,
            refused: tally.refused,
            transmissions: tally.transmissions,
            collided: tally.collided,
            bytes: tally.bytes,
        };
        let turn = CellInterval { counts, airtime_ns: tally.airtime.map(|time| time.0) };
        self.collisions += tally.collisions;
        self.all.add(&turn);
        if width > Ns::ZERO && turn != CellInterval::default() {
            let index = ((now.0 / width.0) as usize).min(MAX_INTERVALS - 1);
            if index >= self.series.len() {
                self.series.resize(index + 1, CellInterval::default());
            }
            self.series[index].add(&turn);
        }
    }

    pub fn end(self, cells: u64) -> AccessOutcome {
        AccessOutcome {
            cells,
            all: self.all,
            collisions: self.collisions,
            attempts: self.attempts.histogram(),
            delay: self.delay.histogram(),
            series: self.series,
        }
    }
}

impl AccessOutcome {
    /// Adds other replications of the same scenario.
    pub fn merge(&mut self, other: &Self) {
        self.cells = self.cells.max(other.cells);
        self.all.add(&other.all);
        self.collisions += other.collisions;
        self.attempts.merge(&other.attempts);
        self.delay.merge(&other.delay);
        if self.series.len() < other.series.len() {
            self.series.resize(other.series.len(), CellInterval::default());
        }
        for (own, more) in self.series.iter_mut().zip(&other.series) {
            own.add(more);
        }
    }

    /// What is read; `None` without cells. `width_s` is that of an interval.
    #[must_use]
    pub fn report(&self, width_s: f64, replications: usize) -> Option<AccessReport> {
        if self.cells == 0 {
            return None;
        }
        let interval_s = width_s * self.cells as f64 * replications.max(1) as f64;
        Some(AccessReport {
            cells: self.cells,
            counts: self.all.counts,
            collisions: self.collisions,
            attempts: self.attempts.summary(1.0),
            delay_s: self.delay.summary(1e9),
            airtime_s: self.all.airtime_ns.map(|ns| ns as f64 * 1e-9),
            series: self
                .series
                .iter()
                .map(|one| CellIntervalReport {
                    counts: one.counts,
                    utilisation: one.airtime_ns.map(|ns| ns as f64 * 1e-9 / interval_s),
                })
                .collect(),
        })
    }
}

/// What went on in all cells: seconds and counts; up, then down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccessReport {
    pub cells: u64,
    #[serde(flatten)]
    pub counts: Counts,
    pub collisions: u64,
    pub attempts: Summary,
    pub delay_s: Summary,
    pub airtime_s: [f64; 2],
    pub series: Vec<CellIntervalReport>,
}

/// An interval: counts of all cells and replications, and the share of a cell's time in which it carries bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellIntervalReport {
    #[serde(flatten)]
    pub counts: Counts,
    pub utilisation: [f64; 2],
}
