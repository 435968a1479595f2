//! Counts of events in cells.

use super::{MediumPlan, Packet};
use crate::histogram::{Histogram, Recorder, Summary};
use crate::series::{MAX_INTERVALS, entry, parts};
use serde::{Deserialize, Serialize};
use shakedown_link::{Direction, Ns};

/// The counts of one turn of a cell.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub requests: u64,
    /// The time and the number of attempts that each admitted client needed.
    pub admitted: Vec<(Ns, u32)>,
    pub refused: u64,
    pub transmissions: u64,
    pub collided: u64,
    pub collisions: u64,
    /// When packets occupied the air, up (0) or down (1).
    pub on_air: Vec<(usize, (Ns, Ns))>,
    pub bytes: [u64; 2],
}

impl Tally {
    /// Counts a packet that is sent from this time on.
    pub fn carries<P>(&mut self, packet: &Packet<P>, from: Ns) {
        let way = usize::from(packet.direction == Direction::Down);
        self.on_air.push((way, (from, from + packet.airtime)));
        self.bytes[way] += u64::from(packet.bytes);
    }
}

/// Access requests of clients whose radios were idle, and bytes sent over the air, up and down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Access requests, and their results.
    pub requests: u64,
    pub admitted: u64,
    pub refused: u64,
    /// Preambles and frames that could collide, and those that collided.
    pub transmissions: u64,
    pub collided: u64,
    pub bytes: [u64; 2],
}

/// The outcome of all cells together. Times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AccessOutcome {
    /// The number of cells of all media.
    pub cells: u64,
    #[serde(flatten)]
    pub all: CellInterval,
    /// The air of each medium's cells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<MediumOutcome>,
    /// The number of collisions.
    pub collisions: u64,
    /// Of successful requests: the number of preambles, and the time from the first preamble to the connection.
    pub attempts: Histogram,
    pub delay: Histogram,
    /// By interval of the outcome's series.
    pub series: Vec<CellInterval>,
}

/// The use of the air of a medium's cells, and the number of clients that share it in a steady state. All are integers,
/// so that they are read exactly as they were written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediumOutcome {
    pub name: String,
    /// Channels of all its cells.
    pub channels: u64,
    /// Mean time between the arrivals of clients at a channel; 0 without a steady rate.
    pub channel_interval_ns: u64,
    /// The share of all clients that use its cells, in units of 10⁻⁹.
    pub share_e9: u64,
    /// Both directions share a channel's time.
    pub shares_time: bool,
    /// Used airtime, up and down.
    pub airtime_ns: [u64; 2],
}

/// The directions in which a medium's cells are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Directions {
    Up,
    Down,
    Both,
}

/// A medium whose clients require more airtime than its channels have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SaturatedCells {
    pub medium: String,
    pub ways: Directions,
    /// The required airtime, as a share of a channel's time.
    pub offered: f64,
}

impl MediumOutcome {
    fn of(plan: &MediumPlan) -> Self {
        let channels = plan.channels();
        let (per_s, share) = plan.steady.unwrap_or_default();
        Self {
            name: plan.name.clone(),
            channels,
            channel_interval_ns: if per_s > 0.0 {
                libm::ceil(channels as f64 * 1e9 / per_s) as u64
            } else {
                0
            },
            share_e9: (share * 1e9 + 0.5) as u64,
            shares_time: plan.shares_time(),
            airtime_ns: [0; 2],
        }
    }

    /// Its share of all clients.
    pub(crate) fn share(&self) -> f64 {
        self.share_e9 as f64 * 1e-9
    }

    /// The required share of a channel's time, in the busier direction, from the airtime that all `arrived` clients
    /// used; `None` without a steady rate. It grows with the load, because delayed segments are retransmitted.
    pub(crate) fn offered(&self, arrived: u64) -> Option<(Directions, f64)> {
        if self.channel_interval_ns == 0 || arrived == 0 {
            return None;
        }
        let [up, down] = self.airtime_ns.map(|ns| ns as f64);
        let (ways, airtime_ns) = match self.shares_time {
            true => (Directions::Both, up + down),
            false if up >= down => (Directions::Up, up),
            false => (Directions::Down, down),
        };
        Some((ways, airtime_ns / (arrived as f64 * self.share()) / self.channel_interval_ns as f64))
    }

    fn saturated(&self, arrived: u64) -> Option<SaturatedCells> {
        let (ways, offered) = self.offered(arrived)?;
        (offered >= 1.0).then(|| SaturatedCells { medium: self.name.clone(), ways, offered })
    }
}

/// One interval, or all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellInterval {
    #[serde(flatten)]
    pub counts: Counts,
    /// Used airtime, up and down.
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
        }
        add_times(&mut self.airtime_ns, more.airtime_ns);
    }
}

fn add_times(own: &mut [u64; 2], more: [u64; 2]) {
    for (sum, one) in own.iter_mut().zip(more) {
        *sum = sum.saturating_add(one);
    }
}

/// An unfinished [`AccessOutcome`].
#[derive(Debug, Default)]
pub(super) struct AccessRecords {
    all: CellInterval,
    media: Vec<MediumOutcome>,
    collisions: u64,
    attempts: Recorder,
    delay: Recorder,
    series: Vec<CellInterval>,
}

impl AccessRecords {
    /// Empty records for the cells of these media.
    pub fn of(plans: &[MediumPlan]) -> Self {
        Self { media: plans.iter().map(MediumOutcome::of).collect(), ..Self::default() }
    }

    /// Adds a turn of a medium's cell, and empties its tally.
    pub fn add(&mut self, now: Ns, width: Ns, medium: usize, tally: &mut Tally) {
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
        let mut turn = CellInterval { counts, airtime_ns: [0; 2] };
        if width > Ns::ZERO && turn != CellInterval::default() {
            entry(&mut self.series, ((now.0 / width.0) as usize).min(MAX_INTERVALS - 1)).add(&turn);
        }
        for &(way, (from, to)) in &tally.on_air {
            turn.airtime_ns[way] = turn.airtime_ns[way].saturating_add((to - from).0);
            for (number, length) in parts(width, (from, to)) {
                let sum = &mut entry(&mut self.series, number).airtime_ns[way];
                *sum = sum.saturating_add(length.0);
            }
        }
        self.collisions += tally.collisions;
        self.all.add(&turn);
        add_times(&mut self.media[medium].airtime_ns, turn.airtime_ns);
        // The memory of the lists is reused.
        let (mut admitted, mut on_air) =
            (std::mem::take(&mut tally.admitted), std::mem::take(&mut tally.on_air));
        admitted.clear();
        on_air.clear();
        *tally = Tally { admitted, on_air, ..Tally::default() };
    }

    pub fn end(self, cells: u64) -> AccessOutcome {
        AccessOutcome {
            cells,
            all: self.all,
            media: self.media,
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
        // Of one scenario, so they have the same media.
        for (own, more) in self.media.iter_mut().zip(&other.media) {
            add_times(&mut own.airtime_ns, more.airtime_ns);
        }
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

    /// The report on `arrived` clients; `None` without cells. `width_s`: length of an interval.
    #[must_use]
    pub fn report(&self, arrived: u64, width_s: f64, replications: usize) -> Option<AccessReport> {
        if self.cells == 0 {
            return None;
        }
        let channels: u64 = self.media.iter().map(|medium| medium.channels).sum();
        let interval_s = width_s * channels as f64 * replications.max(1) as f64;
        Some(AccessReport {
            cells: self.cells,
            counts: self.all.counts,
            collisions: self.collisions,
            attempts: self.attempts.summary(1.0),
            delay_s: self.delay.summary(1e9),
            airtime_s: self.all.airtime_ns.map(|ns| ns as f64 * 1e-9),
            saturated: self.media.iter().filter_map(|medium| medium.saturated(arrived)).collect(),
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

/// The report on all cells, in seconds and counts; pairs are up and down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccessReport {
    pub cells: u64,
    #[serde(flatten)]
    pub counts: Counts,
    pub collisions: u64,
    pub attempts: Summary,
    pub delay_s: Summary,
    pub airtime_s: [f64; 2],
    /// In a steady state, the media that are saturated.
    pub saturated: Vec<SaturatedCells>,
    pub series: Vec<CellIntervalReport>,
}

/// An interval: counts of all cells and replications, and the share of their channels' time that is used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellIntervalReport {
    #[serde(flatten)]
    pub counts: Counts,
    pub utilisation: [f64; 2],
}
