//! Media that the clients of a cell share, and access to them.
//!
//! A client of a cell has its own path: its radio's rate, delay, loss, queue and energy. The cell's `Medium` decides
//! *when* a packet may be sent on that path, and whether it is lost in a collision. A client whose radio is idle
//! requests access; a connected client offers packets. The answers are `Decision`s: the event loop calls `act` at the
//! time that `next` returns.
//!
//! | module | what it decides |
//! | --- | --- |
//! | `random_access`, `circuits` | which clients are admitted, and when |
//! | `schedule` | which packet a base station serves next |
//! | `csma`, `aloha` | which stations send if there is no base station, and which frames collide |
//! | [`outcome`] | counts |

mod aloha;
mod circuits;
mod csma;
mod member;
pub mod outcome;
mod random_access;
mod schedule;
pub mod spec;

use aloha::Aloha;
use circuits::Circuits;
use csma::Csma;
pub use member::{At, Cells, Member, Uncrossed};
use outcome::Tally;
use random_access::RandomAccess;
use schedule::Schedule;
pub use schedule::Scheduler;
use shakedown_link::{Direction, Ns, Purpose, Stream};
pub use spec::CellOf;
pub use spec::CellSpec;
pub(crate) use spec::MediumPlan;
use spec::{ContentionSpec, EntrySpec};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// The purposes of a cell's random numbers.
const ENTRY: Purpose = Purpose(108);
const CONTENTION: Purpose = Purpose(109);

/// A client of a medium: its unique number, its slot, and how it is admitted (`None`: at once).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientRef {
    pub number: u64,
    pub slot: u32,
    pub entry: Option<usize>,
}

/// A packet that a client sends or receives through its cell.
#[derive(Clone, Debug)]
pub struct Packet<P> {
    pub client: ClientRef,
    pub direction: Direction,
    pub bytes: u32,
    /// How long its bytes occupy the cell.
    pub airtime: Ns,
    /// The silence after it that its sender's duty cycle requires.
    pub silence: Ns,
    pub in_flight: P,
}

/// A decision of a medium.
#[derive(Clone, Debug)]
pub enum Decision<P> {
    /// The client may set up its radio.
    Admitted(ClientRef),
    /// The client may not, and its waiting packets are lost.
    Refused(ClientRef),
    /// The packet is sent on its client's path, from this time on.
    Sent { packet: Packet<P>, from: Ns },
    /// A packet was sent without success, and will be sent again.
    Spent { client: ClientRef, direction: Direction, bytes: u32, from: Ns },
    /// A packet is given up. `from`: when it was last sent without success; `None`: the channel was too often busy.
    Lost { packet: Packet<P>, from: Option<Ns> },
}

impl<P> Decision<P> {
    /// The client that it concerns.
    #[must_use]
    pub fn client(&self) -> ClientRef {
        match self {
            Self::Admitted(client) | Self::Refused(client) | Self::Spent { client, .. } => *client,
            Self::Sent { packet, .. } | Self::Lost { packet, .. } => packet.client,
        }
    }
}

/// Decisions of a medium, and their counts.
#[derive(Debug)]
struct Answers<P> {
    pub decisions: Vec<Decision<P>>,
    pub tally: Tally,
}

impl<P> Default for Answers<P> {
    fn default() -> Self {
        Self { decisions: Vec::new(), tally: Tally::default() }
    }
}

/// How clients are admitted.
#[derive(Debug)]
enum Entry {
    RandomAccess(RandomAccess),
    Circuits(Circuits),
}

/// How packets share the air.
#[derive(Debug)]
enum Channel<P> {
    Schedule(Schedule<P>),
    Csma(Csma<P>),
    Aloha(Aloha<P>),
}

/// One cell.
#[derive(Debug)]
struct Medium<P> {
    entries: Vec<Entry>,
    channel: Channel<P>,
    /// Packets of clients that are not connected yet, by client.
    held: BTreeMap<u64, Vec<Packet<P>>>,
    /// When the radios of admitted clients will be set up.
    opening: BinaryHeap<Reverse<(Ns, u64)>>,
    /// Decisions made when access was requested, and the time of the request.
    decided: Answers<P>,
    decided_at: Ns,
}

impl<P> Medium<P> {
    /// A cell; `entity` is a unique number for its random numbers.
    pub fn new(plan: &MediumPlan, seed: u64, entity: u64) -> Self {
        let mut stream = Stream::of(seed, entity, ENTRY);
        let entries = plan.entries.iter().map(|entry| match entry {
            EntrySpec::RandomAccess(spec) => {
                Entry::RandomAccess(RandomAccess::new(spec, Stream::seeded(stream.next())))
            }
            EntrySpec::Circuits(spec) => Entry::Circuits(Circuits::new(spec)),
        });
        let entries = entries.collect();
        let stream = Stream::of(seed, entity, CONTENTION);
        let channel = match &plan.contention {
            None => Channel::Schedule(Schedule::new(plan.scheduler, plan.half_duplex)),
            Some(ContentionSpec::Csma(spec)) => Channel::Csma(Csma::new(spec, stream)),
            Some(ContentionSpec::Aloha(spec)) => Channel::Aloha(Aloha::new(spec, stream)),
        };
        Self {
            entries,
            channel,
            held: BTreeMap::new(),
            opening: BinaryHeap::new(),
            decided: Answers::default(),
            decided_at: Ns::MAX,
        }
    }

    /// A client's radio is idle, and it has something to send or to receive.
    pub fn request(&mut self, now: Ns, client: ClientRef) {
        match client.entry.and_then(|entry| self.entries.get_mut(entry)) {
            Some(Entry::RandomAccess(access)) => access.request(now, client, &mut self.decided),
            Some(Entry::Circuits(circuits)) => circuits.request(client, &mut self.decided),
            None => self.decided.decisions.push(Decision::Admitted(client)),
        }
        self.decided_at = now;
    }

    /// An admitted client leaves.
    pub fn leave(&mut self, entry: Option<usize>) {
        if let Some(Entry::Circuits(circuits)) = entry.and_then(|entry| self.entries.get_mut(entry)) {
            circuits.leave();
        }
    }

    /// Keeps a packet until its client is connected.
    pub fn hold(&mut self, packet: Packet<P>) {
        self.held.entry(packet.client.number).or_default().push(packet);
    }

    /// Drops the packets that are held for a client, and returns their number.
    pub fn forget(&mut self, number: u64) -> usize {
        self.held.remove(&number).map_or(0, |packets| packets.len())
    }

    /// The client will be connected from this time on.
    pub fn open(&mut self, at: Ns, number: u64) {
        self.opening.push(Reverse((at, number)));
    }

    /// Takes a packet of a connected client.
    pub fn offer(&mut self, now: Ns, packet: Packet<P>) {
        match self.held.get_mut(&packet.client.number) {
            // Its radio is still being set up.
            Some(before) => before.push(packet),
            None => self.channel.offer(now, packet),
        }
    }

    /// The time of its next event, or [`Ns::MAX`].
    pub fn next(&self) -> Ns {
        let mut next = self.decided_at.min(self.channel.next());
        if let Some(Reverse((at, _))) = self.opening.peek() {
            next = next.min(*at);
        }
        for entry in &self.entries {
            if let Entry::RandomAccess(access) = entry {
                next = next.min(access.next());
            }
        }
        next
    }

    /// Makes the decisions that are due.
    pub fn act(&mut self, now: Ns, answers: &mut Answers<P>) {
        std::mem::swap(answers, &mut self.decided);
        self.decided_at = Ns::MAX;
        for entry in &mut self.entries {
            if let Entry::RandomAccess(access) = entry {
                access.act(now, answers);
            }
        }
        while let Some(Reverse((at, number))) = self.opening.peek().copied() {
            if at > now {
                break;
            }
            self.opening.pop();
            for packet in self.held.remove(&number).unwrap_or_default() {
                self.channel.offer(now, packet);
            }
        }
        self.channel.act(now, answers);
    }
}

impl<P> Channel<P> {
    fn offer(&mut self, now: Ns, packet: Packet<P>) {
        match self {
            Self::Schedule(schedule) => schedule.offer(packet),
            Self::Csma(csma) => csma.offer(now, packet),
            Self::Aloha(aloha) => aloha.offer(now, packet),
        }
    }

    fn next(&self) -> Ns {
        match self {
            Self::Schedule(schedule) => schedule.next(),
            Self::Csma(csma) => csma.next(),
            Self::Aloha(aloha) => aloha.next(),
        }
    }

    fn act(&mut self, now: Ns, answers: &mut Answers<P>) {
        match self {
            Self::Schedule(schedule) => schedule.act(now, answers),
            Self::Csma(csma) => csma.act(now, answers),
            Self::Aloha(aloha) => aloha.act(now, answers),
        }
    }
}
