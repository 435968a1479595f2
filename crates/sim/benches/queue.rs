//! A hold model of event queues: a fixed population; each event taken schedules its entity again, after a gap drawn as a
//! fleet of handshakes has them. Prints nanoseconds an event. Shapes:
//!
//! - `std heap`: `BinaryHeap`, pop and push; moved events stay behind as stale entries.
//! - `2-ary`, `4-ary`, `8-ary`: an indexed heap whose top is replaced.
//! - `wheel`: six levels of 64 slots of 1 µs and up, entries in a list a slot, sorted when a slot comes due.
//! - `lanes`: a ring for each constant delay, whose heads stand in a 4-ary heap with everything else.
//!
//! Every shape gives the same order, which is checked.

use shakedown_link::{Ns, Stream};
use shakedown_sim::queue::EventQueue;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::hint::black_box;
use std::time::Instant;

/// Delays that are the same for many: a round trip's half, a processing time, timeouts.
const CONSTANT: [u64; 4] = [35_000_000, 120_000, 272_000_000, 1_004_000_000];

/// A gap, and the lane that it could go to: half of all events wait for a link of constant delay, some for a timer, the
/// rest for whatever is spread.
fn gap(stream: &mut Stream) -> (u64, Option<usize>) {
    match stream.below(100) {
        0..50 => (CONSTANT[0], Some(0)),
        50..65 => (CONSTANT[1], Some(1)),
        65..72 => (CONSTANT[2], Some(2)),
        72..75 => (CONSTANT[3], Some(3)),
        75..90 => ((stream.exponential() * 2e6) as u64, None),
        _ => ((stream.exponential() * 80e6) as u64, None),
    }
}

trait Queue {
    fn push(&mut self, time: u64, entity: u32, lane: Option<usize>);
    /// Takes the next event and gives its entity a new one.
    fn hold(&mut self, next: &mut dyn FnMut(u64, u32) -> (u64, Option<usize>)) -> (u64, u32);
}

#[derive(Default)]
struct StdHeap {
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    times: Vec<u64>,
}

impl Queue for StdHeap {
    fn push(&mut self, time: u64, entity: u32, _: Option<usize>) {
        if self.times.len() <= entity as usize {
            self.times.resize(entity as usize + 1, u64::MAX);
        }
        self.times[entity as usize] = time;
        self.heap.push(Reverse((time, entity)));
    }

    fn hold(&mut self, next: &mut dyn FnMut(u64, u32) -> (u64, Option<usize>)) -> (u64, u32) {
        loop {
            let Reverse((time, entity)) = self.heap.pop().expect("not empty");
            if self.times[entity as usize] != time {
                continue;
            }
            let (after, lane) = next(time, entity);
            self.push(after, entity, lane);
            return (time, entity);
        }
    }
}

/// The indexed heap, for any arity.
struct Heap<const ARITY: usize> {
    heap: Vec<(u64, u32)>,
    places: Vec<u32>,
}

impl<const ARITY: usize> Default for Heap<ARITY> {
    fn default() -> Self {
        Self { heap: Vec::new(), places: Vec::new() }
    }
}

impl<const ARITY: usize> Heap<ARITY> {
    fn put(&mut self, place: usize, entry: (u64, u32)) {
        self.heap[place] = entry;
        self.places[entry.1 as usize] = place as u32;
    }

    fn down(&mut self, mut place: usize, entry: (u64, u32)) {
        loop {
            let first = place * ARITY + 1;
            let end = (first + ARITY).min(self.heap.len());
            let Some(least) = (first..end).min_by_key(|child| self.heap[*child]) else { break };
            if entry <= self.heap[least] {
                break;
            }
            let moved = self.heap[least];
            self.put(place, moved);
            place = least;
        }
        self.put(place, entry);
    }
}

impl<const ARITY: usize> Queue for Heap<ARITY> {
    fn push(&mut self, time: u64, entity: u32, _: Option<usize>) {
        if self.places.len() <= entity as usize {
            self.places.resize(entity as usize + 1, u32::MAX);
        }
        self.heap.push((time, entity));
        let mut place = self.heap.len() - 1;
        while place > 0 && self.heap[(place - 1) / ARITY] > (time, entity) {
            let moved = self.heap[(place - 1) / ARITY];
            self.put(place, moved);
            place = (place - 1) / ARITY;
        }
        self.put(place, (time, entity));
    }

    fn hold(&mut self, next: &mut dyn FnMut(u64, u32) -> (u64, Option<usize>)) -> (u64, u32) {
        let top = self.heap[0];
        let (after, _) = next(top.0, top.1);
        self.down(0, (after, top.1));
        top
    }
}

#[derive(Default)]
struct Ours(EventQueue);

impl Queue for Ours {
    fn push(&mut self, time: u64, entity: u32, _: Option<usize>) {
        self.0.set(entity, Ns(time));
    }

    fn hold(&mut self, next: &mut dyn FnMut(u64, u32) -> (u64, Option<usize>)) -> (u64, u32) {
        let (time, entity) = self.0.pop().expect("not empty");
        let (after, _) = next(time.0, entity);
        self.0.set(entity, Ns(after));
        (time.0, entity)
    }
}

const SLOT_BITS: u32 = 6;
const LEVELS: usize = 8;
/// 2¹⁰ ns a slot of the lowest level.
const TICK_BITS: u32 = 10;

struct Wheel {
    slots: Vec<Vec<(u64, u32)>>,
    occupied: [u64; LEVELS],
    /// What is due in the present tick, sorted, last first.
    due: Vec<(u64, u32)>,
    tick: u64,
}

impl Default for Wheel {
    fn default() -> Self {
        Self { slots: vec![Vec::new(); LEVELS * 64], occupied: [0; LEVELS], due: Vec::new(), tick: 0 }
    }
}

impl Wheel {
    fn insert(&mut self, time: u64, entity: u32) {
        let tick = time >> TICK_BITS;
        if tick <= self.tick {
            let place = self.due.partition_point(|entry| *entry > (time, entity));
            self.due.insert(place, (time, entity));
            return;
        }
        let differing = 63 - (tick ^ self.tick).leading_zeros();
        let level = (differing / SLOT_BITS) as usize;
        let slot = (tick >> (SLOT_BITS * level as u32) & 63) as usize;
        self.slots[level * 64 + slot].push((time, entity));
        self.occupied[level] |= 1 << slot;
    }

    fn advance(&mut self) {
        while self.due.is_empty() {
            let level = (0..LEVELS).find(|level| self.occupied[*level] != 0).expect("not empty");
            let slot = self.occupied[level].trailing_zeros();
            self.occupied[level] &= self.occupied[level] - 1;
            let shift = SLOT_BITS * level as u32;
            self.tick = (self.tick >> (shift + SLOT_BITS) << SLOT_BITS | u64::from(slot)) << shift;
            let index = level * 64 + slot as usize;
            let mut entries = std::mem::take(&mut self.slots[index]);
            if level == 0 {
                std::mem::swap(&mut self.due, &mut entries);
                self.due.sort_unstable_by(|one, other| other.cmp(one));
            } else {
                for (time, entity) in entries.drain(..) {
                    self.insert(time, entity);
                }
            }
            self.slots[index] = entries;
        }
    }
}

impl Queue for Wheel {
    fn push(&mut self, time: u64, entity: u32, _: Option<usize>) {
        self.insert(time, entity);
    }

    fn hold(&mut self, next: &mut dyn FnMut(u64, u32) -> (u64, Option<usize>)) -> (u64, u32) {
        self.advance();
        let (time, entity) = self.due.pop().expect("not empty");
        let (after, _) = next(time, entity);
        self.insert(after, entity);
        (time, entity)
    }
}

#[derive(Default)]
struct Lanes {
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    lanes: [VecDeque<(u64, u32)>; CONSTANT.len()],
}

impl Queue for Lanes {
    fn push(&mut self, time: u64, entity: u32, lane: Option<usize>) {
        match lane {
            // Filled at random at first, so only what keeps the order may go in.
            Some(lane) if self.lanes[lane].back().is_none_or(|last| *last < (time, entity)) => {
                self.lanes[lane].push_back((time, entity));
            }
            _ => self.heap.push(Reverse((time, entity))),
        }
    }

    fn hold(&mut self, next: &mut dyn FnMut(u64, u32) -> (u64, Option<usize>)) -> (u64, u32) {
        let mut least = self.heap.peek().map_or((u64::MAX, 0), |entry| entry.0);
        let mut from = None;
        for (number, lane) in self.lanes.iter().enumerate() {
            if let Some(head) = lane.front()
                && *head < least
            {
                least = *head;
                from = Some(number);
            }
        }
        match from {
            Some(lane) => drop(self.lanes[lane].pop_front()),
            None => drop(self.heap.pop()),
        }
        let (after, lane) = next(least.0, least.1);
        self.push(after, least.1, lane);
        least
    }
}

/// Nanoseconds an event, the least of some rounds, and a digest of the order.
fn measure(mut queue: impl Queue, population: u32, events: u32) -> (f64, u64) {
    let mut stream = Stream::seeded(1);
    for entity in 0..population {
        let spread = stream.below(1_000_000_000);
        queue.push(spread, entity, None);
    }
    let mut digest = 0_u64;
    let mut least = f64::INFINITY;
    for round in 0..6 {
        let start = Instant::now();
        for _ in 0..events {
            let (time, entity) = queue.hold(&mut |now, _| {
                let (gap, lane) = gap(&mut stream);
                (now + gap + 1, lane)
            });
            digest = digest.wrapping_mul(31).wrapping_add(time ^ u64::from(entity));
        }
        let each = start.elapsed().as_nanos() as f64 / f64::from(events);
        // The first round brings the population into its steady state.
        if round > 0 {
            least = least.min(each);
        }
    }
    (least, black_box(digest))
}

fn main() {
    let mut stream = Stream::seeded(2);
    let start = Instant::now();
    let sum: u64 = (0..10_000_000).map(|_| gap(&mut stream).0).sum();
    let draw = start.elapsed().as_nanos() as f64 / 1e7;
    println!("ns an event, drawing the gap ({draw:.0} ns, mean {} ms) taken off", sum / 10_000_000_000_000);
    println!(
        "{:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "population", "std heap", "2-ary", "4-ary", "8-ary", "ours", "wheel", "lanes"
    );
    for population in [10, 1_000, 100_000, 1_000_000] {
        let events = 2_000_000;
        let rows = [
            measure(StdHeap::default(), population, events),
            measure(Heap::<2>::default(), population, events),
            measure(Heap::<4>::default(), population, events),
            measure(Heap::<8>::default(), population, events),
            measure(Ours::default(), population, events),
            measure(Wheel::default(), population, events),
            measure(Lanes::default(), population, events),
        ];
        assert!(rows.iter().all(|row| row.1 == rows[0].1), "the shapes disagree about the order: {rows:?}");
        let cells: Vec<String> = rows.iter().map(|row| format!("{:>9.1}", row.0 - draw)).collect();
        println!("{population:>10} {}", cells.join(" "));
    }
}
