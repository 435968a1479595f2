//! The membership of a client in its cell, and the cells of a run.

use super::outcome::{AccessOutcome, AccessRecords};
use super::{Answers, CellOf, ClientRef, Decision, Medium, MediumPlan, Packet};
use shakedown_link::{Direction, Drop, Fate, Ns, Path, Payload, Unit};
use std::ops::AddAssign;

/// A client's connection to its cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Radio {
    #[default]
    Idle,
    /// It has requested access.
    Requesting,
    /// It is connected, or is being set up.
    Connected,
}

/// A client of a cell: its radio, and the bytes in its own queue, by direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Member {
    radio: Radio,
    queued: [u64; 2],
}

/// Numbers of packets that did not cross their cells, by cause.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uncrossed {
    /// Held for a client that the cell then refused.
    pub refused: u64,
    /// Given up after collisions.
    pub collided: u64,
    /// Given up because the channel was busy.
    pub channel_busy: u64,
}

impl AddAssign for Uncrossed {
    fn add_assign(&mut self, other: Self) {
        self.refused += other.refused;
        self.collided += other.collided;
        self.channel_busy += other.channel_busy;
    }
}

/// Packets that did not reach a client's path, or that its path dropped.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unsent {
    pub dropped: Option<Drop>,
    pub uncrossed: Uncrossed,
}

fn way(direction: Direction) -> usize {
    usize::from(direction == Direction::Down)
}

impl Member {
    /// True while its radio waits for access.
    #[must_use]
    pub fn is_requesting(&self) -> bool {
        self.radio == Radio::Requesting
    }

    /// Sends a packet through the cell. False if the client's own queue is full.
    pub fn send<P>(
        &mut self,
        now: Ns,
        at: At<'_>,
        (direction, bytes, in_flight): (Direction, u32, P),
        cells: &mut Cells<P>,
    ) -> bool {
        let queued = self.queued[way(direction)] + u64::from(bytes);
        if !at.of.holds(direction, queued) {
            return false;
        }
        self.queued[way(direction)] = queued;
        let client = ClientRef { number: at.number, slot: at.slot, entry: at.of.entry };
        let airtime = at.of.airtime(direction, bytes);
        let silence = at.of.silence(direction, airtime);
        let packet = Packet { client, direction, bytes, airtime, silence, in_flight };
        let medium = &mut cells.media[at.cell as usize];
        cells.touched.push(at.cell);
        if self.radio == Radio::Connected {
            medium.offer(now, packet);
            return true;
        }
        medium.hold(packet);
        if self.radio == Radio::Idle {
            self.radio = Radio::Requesting;
            medium.request(now, client);
        }
        true
    }

    /// Applies a decision of its cell.
    pub fn apply<P: Payload>(
        &mut self,
        now: Ns,
        at: At<'_>,
        decision: Decision<P>,
        path: &mut Path<P>,
        cells: &mut Cells<P>,
    ) -> Unsent {
        let mut unsent = Unsent::default();
        let medium = &mut cells.media[at.cell as usize];
        match decision {
            Decision::Admitted(_) => {
                self.radio = Radio::Connected;
                medium.open(path.set_up(now), at.number);
            }
            Decision::Refused(_) => {
                *self = Self::default();
                unsent.uncrossed.refused = medium.forget(at.number) as u64;
            }
            Decision::Sent { packet: Packet { direction, bytes, in_flight, .. }, from } => {
                self.queued[way(direction)] -= u64::from(bytes);
                if let Fate::Dropped(cause) = path.offer(direction, from, Unit::new(bytes, in_flight)) {
                    unsent.dropped = Some(cause);
                }
            }
            Decision::Spent { direction, bytes, from, .. } => {
                path.spend(direction, from, bytes + at.of.link_bytes);
            }
            Decision::Lost { packet: Packet { direction, bytes, .. }, from } => {
                self.queued[way(direction)] -= u64::from(bytes);
                if let Some(from) = from {
                    unsent.uncrossed.collided = 1;
                    path.spend(direction, from, bytes + at.of.link_bytes);
                } else {
                    unsent.uncrossed.channel_busy = 1;
                }
            }
        }
        unsent
    }

    /// Its radio becomes idle during this pause if the pause is long enough and no packet of the client is left in the
    /// cell.
    pub fn pause<P: Payload>(
        &mut self,
        now: Ns,
        pause: Ns,
        at: At<'_>,
        path: &mut Path<P>,
        cells: &mut Cells<P>,
    ) {
        if pause > at.of.idle_after && self.radio == Radio::Connected && self.queued == [0; 2] {
            self.radio = Radio::Idle;
            path.release(now);
            cells.media[at.cell as usize].leave(at.of.entry);
        }
    }

    /// The client leaves its cell.
    pub fn leave<P>(&self, at: At<'_>, cells: &mut Cells<P>) {
        if self.radio == Radio::Connected {
            cells.media[at.cell as usize].leave(at.of.entry);
        }
    }
}

/// A client and its cell.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    /// The cell's number within the run.
    pub cell: u32,
    /// The cell settings of the client's class.
    pub of: &'a CellOf,
    /// The client's unique number.
    pub number: u64,
    /// The client's slot.
    pub slot: u32,
}

/// The cells of a run.
#[derive(Debug)]
pub struct Cells<P> {
    media: Vec<Medium<P>>,
    /// The first cell and the number of cells of each medium.
    places: Vec<(u32, u32)>,
    /// Cells whose next event may have changed.
    touched: Vec<u32>,
    answers: Answers<P>,
    records: AccessRecords,
}

impl<P> Cells<P> {
    pub(crate) fn new(plans: &[MediumPlan], seed: u64) -> Self {
        let (mut media, mut places) = (Vec::new(), Vec::new());
        for plan in plans {
            places.push((media.len() as u32, plan.count));
            for _ in 0..plan.count {
                // Clients are numbered from 0, so no cell has the number of a client.
                media.push(Medium::new(plan, seed, u64::MAX - media.len() as u64 - 1));
            }
        }
        let (answers, records) = (Answers::default(), AccessRecords::of(plans));
        Self { media, places, touched: Vec::new(), answers, records }
    }

    /// The number of cells of all media.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.media.len() as u32
    }

    /// The cell of a client, by its number: clients are assigned to cells in turn.
    #[must_use]
    pub fn cell(&self, of: &CellOf, number: u64) -> u32 {
        let (first, count) = self.places[of.medium];
        first + (number % u64::from(count)) as u32
    }

    /// Lets a cell act, and returns its decisions; [`recycle`](Self::recycle) takes the emptied list back. `width`:
    /// length of the intervals of the time series.
    pub fn act(&mut self, now: Ns, cell: u32, width: Ns) -> Vec<Decision<P>> {
        self.media[cell as usize].act(now, &mut self.answers);
        // There are few media, and their cells are in order.
        let medium = self.places.iter().rposition(|(first, _)| *first <= cell).unwrap_or(0);
        self.records.add(now, width, medium, &mut self.answers.tally);
        std::mem::take(&mut self.answers.decisions)
    }

    /// Takes back the emptied list of a cell's decisions.
    pub fn recycle(&mut self, cell: u32, decisions: Vec<Decision<P>>) {
        self.answers.decisions = decisions;
        self.touched.push(cell);
    }

    /// Drops a decision about a client that has left.
    pub fn drop_decision(&mut self, cell: u32, decision: &Decision<P>) {
        if let Decision::Admitted(client) = decision {
            let medium = &mut self.media[cell as usize];
            medium.leave(client.entry);
            medium.forget(client.number);
        }
    }

    /// The next cell whose next event may have changed, and the time of this event.
    pub fn next_touched(&mut self) -> Option<(u32, Ns)> {
        let cell = self.touched.pop()?;
        Some((cell, self.media[cell as usize].next()))
    }

    /// The outcome of all cells at the end of the run.
    pub fn end(&mut self) -> AccessOutcome {
        std::mem::take(&mut self.records).end(self.media.len() as u64)
    }
}
