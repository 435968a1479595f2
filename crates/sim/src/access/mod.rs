//! What the clients of a cell share, and how they get in.
//!
//! A client of a cell has a path of its own: its radio's rate, delay, loss, queue and energy. The cell's `Medium` decides
//! *when* a packet may go onto that path, and whether it survives there. Two questions are asked of it: a client whose radio
//! is idle requests access, and a packet of a connected client is offered. Answers
//! are `Verdict`s, given when the event loop lets the medium act at the time that `next` names.
//!
//! | module | what it decides |
//! | --- | --- |
//! | `random_access`, `circuits` | who is let in, and when |
//! | `schedule` | which packet a base station serves next |
//! | `csma`, `aloha` | who sends where there is no base station's say, and what collides |
//! | [`outcome`] | what is counted |

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
pub use member::{At, Cells, Member};
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

/// What cells draw from.
const ENTRY: Purpose = Purpose(108);
const CONTENTION: Purpose = Purpose(109);

/// A client as a medium knows it: the number that no other client has, its place, and how it gets in, if it must.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Who {
    pub number: u64,
    pub slot: u32,
    pub entry: Option<usize>,
}

/// A packet of a client that is to cross its cell.
#[derive(Clone, Debug)]
pub struct Packet<P> {
    pub who: Who,
    pub direction: Direction,
    pub bytes: u32,
    /// How long its bytes occupy the cell.
    pub airtime: Ns,
    /// The silence that its sender's duty cycle asks for after it.
    pub silence: Ns,
    pub in_flight: P,
}

/// What a medium has decided.
#[derive(Clone, Debug)]
pub enum Verdict<P> {
    /// The client may set up its radio.
    Admitted(Who),
    /// It may not, and what it was to send is lost.
    Refused(Who),
    /// The packet goes onto its client's path, from that time on.
    Sent { packet: Packet<P>, from: Ns },
    /// A packet was sent in vain, and will be again.
    Spent { who: Who, direction: Direction, bytes: u32, from: Ns },
    /// A packet is given up; it was sent in vain from that time on, or not at all.
    Lost { packet: Packet<P>, from: Option<Ns> },
}

impl<P> Verdict<P> {
    /// Whom it is about.
    #[must_use]
    pub fn who(&self) -> Who {
        match self {
            Self::Admitted(who) | Self::Refused(who) | Self::Spent { who, .. } => *who,
            Self::Sent { packet, .. } | Self::Lost { packet, .. } => packet.who,
        }
    }
}

/// What a medium has decided, and what is counted of it.
#[derive(Debug)]
struct Answers<P> {
    pub verdicts: Vec<Verdict<P>>,
    pub tally: Tally,
}

impl<P> Default for Answers<P> {
    fn default() -> Self {
        Self { verdicts: Vec::new(), tally: Tally::default() }
    }
}

/// How clients are let in.
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
    /// When the radios of clients that were admitted are set up.
    opening: BinaryHeap<Reverse<(Ns, u64)>>,
    /// What was decided at once, and when.
    decided: Answers<P>,
    decided_at: Ns,
}

impl<P> Medium<P> {
    /// A cell; `entity` is what no other drawer of numbers is called.
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
    pub fn request(&mut self, now: Ns, who: Who) {
        match who.entry.and_then(|entry| self.entries.get_mut(entry)) {
            Some(Entry::RandomAccess(access)) => access.request(now, who, &mut self.decided),
            Some(Entry::Circuits(circuits)) => circuits.request(who, &mut self.decided),
            None => self.decided.verdicts.push(Verdict::Admitted(who)),
        }
        self.decided_at = now;
    }

    /// A client that was let in leaves.
    pub fn leave(&mut self, entry: Option<usize>) {
        if let Some(Entry::Circuits(circuits)) = entry.and_then(|entry| self.entries.get_mut(entry)) {
            circuits.leave();
        }
    }

    /// Keeps a packet until its client is connected.
    pub fn hold(&mut self, packet: Packet<P>) {
        self.held.entry(packet.who.number).or_default().push(packet);
    }

    /// Gives up what was kept for a client; how many packets those were.
    pub fn forget(&mut self, number: u64) -> usize {
        self.held.remove(&number).map_or(0, |packets| packets.len())
    }

    /// The client will be connected from then on.
    pub fn open(&mut self, at: Ns, number: u64) {
        self.opening.push(Reverse((at, number)));
    }

    /// A packet of a connected client.
    pub fn offer(&mut self, now: Ns, packet: Packet<P>) {
        match self.held.get_mut(&packet.who.number) {
            // Its radio is still being set up.
            Some(before) => before.push(packet),
            None => self.channel.offer(now, packet),
        }
    }

    /// When it wants to act next, or [`Ns::MAX`].
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

    /// Decides what is due.
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
