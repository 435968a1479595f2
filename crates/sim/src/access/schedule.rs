//! A base station that serves one packet after another in each direction, or in both together.

use super::{Answers, Decision, Packet};
use serde::{Deserialize, Serialize};
use shakedown_link::{Direction, Ns};
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};

/// The packet that is served next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// The one that arrived first.
    FirstCome,
    /// The next of each client in turn.
    #[default]
    RoundRobin,
    /// The next of the client with the least airtime so far: proportional fairness, if rates do not fade.
    Proportional,
}

/// Waiting packets, and the time from which the cell is free for the next one.
#[derive(Debug)]
pub(super) struct Schedule<P> {
    scheduler: Scheduler,
    half_duplex: bool,
    lanes: [Lane<P>; 2],
}

/// One direction. Start-time fair queueing (Goyal, Vin and Cheng 1996): a packet's tag is its client's last end tag, or
/// the tag in service if that is larger; its end tag is larger by 1, or by its airtime.
#[derive(Debug)]
struct Lane<P> {
    waiting: BinaryHeap<Reverse<Queued<P>>>,
    /// The end tag of each client's last packet, while packets wait.
    ends: BTreeMap<u64, u64>,
    served: u64,
    count: u64,
    free_at: Ns,
}

impl<P> Default for Lane<P> {
    fn default() -> Self {
        let (waiting, ends) = (BinaryHeap::new(), BTreeMap::new());
        Self { waiting, ends, served: 0, count: 0, free_at: Ns::ZERO }
    }
}

#[derive(Debug)]
struct Queued<P> {
    tag: u64,
    count: u64,
    packet: Packet<P>,
}

impl<P> PartialEq for Queued<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<P> Eq for Queued<P> {}

impl<P> PartialOrd for Queued<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> Ord for Queued<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.tag, self.count).cmp(&(other.tag, other.count))
    }
}

impl<P> Schedule<P> {
    pub fn new(scheduler: Scheduler, half_duplex: bool) -> Self {
        Self { scheduler, half_duplex, lanes: [Lane::default(), Lane::default()] }
    }

    pub fn offer(&mut self, packet: Packet<P>) {
        let lane = &mut self.lanes[usize::from(!self.half_duplex && packet.direction == Direction::Down)];
        let cost = match self.scheduler {
            Scheduler::FirstCome => 0,
            Scheduler::RoundRobin => 1,
            Scheduler::Proportional => packet.airtime.0,
        };
        let end = lane.ends.entry(packet.client.number).or_default();
        let tag = lane.served.max(*end);
        *end = tag + cost;
        lane.count += 1;
        lane.waiting.push(Reverse(Queued { tag, count: lane.count, packet }));
    }

    /// When the next packet is served, or [`Ns::MAX`].
    pub fn next(&self) -> Ns {
        let due = |lane: &Lane<P>| if lane.waiting.is_empty() { Ns::MAX } else { lane.free_at };
        due(&self.lanes[0]).min(due(&self.lanes[1]))
    }

    pub fn act(&mut self, now: Ns, answers: &mut Answers<P>) {
        for lane in &mut self.lanes {
            while lane.free_at <= now
                && let Some(Reverse(next)) = lane.waiting.pop()
            {
                lane.served = next.tag;
                lane.free_at = now + next.packet.airtime;
                answers.tally.carries(&next.packet, now);
                answers.decisions.push(Decision::Sent { packet: next.packet, from: now });
                if lane.waiting.is_empty() {
                    lane.ends.clear();
                }
            }
        }
    }
}
