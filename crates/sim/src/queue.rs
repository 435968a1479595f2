//! The event queue.
//!
//! Each connection, worker, source of arrivals and shared cell is an *entity*. An entity has at most one time: that of
//! its next event. To move a timer, this time is set again, so an outdated event is never popped. Events are ordered by
//! time, then by the number of the entity. The number begins with the entity's class, so the order of simultaneous
//! events depends only on the entities, not on the order of insertion.
//!
//! Several data structures were measured with a hold model (`crates/sim/benches/queue.rs` in commit 462c08d6): a fixed
//! population, in which each event schedules another one, with the gaps of a fleet of handshakes. With a hundred
//! thousand clients in flight, a heap of any arity has a cache miss at each level. With few clients, a plain timing
//! wheel moves every single event down through all its levels. Therefore this queue is a timing wheel whose next
//! entries are sorted; see [`EventQueue`].

use shakedown_link::Ns;

/// An entity's number.
pub type Entity = u32;

/// Slots of a level: 2⁶, each as wide as all slots of the level below together.
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
/// A slot of the lowest level is 2¹⁰ ns wide, so nine levels hold any time.
const TICK_BITS: u32 = 10;
const LEVELS: usize = 9;

/// Limit of the entries of a slot that are sorted directly instead of being moved to finer slots.
const SORTED_AT_ONCE: usize = 48;
/// Limit of the sorted entries. If there are more, the later ones are moved back into slots.
const MAX_NEAR: usize = 160;
const KEPT_NEAR: usize = 32;
/// Number of the next sorted entries that are compared one by one when an entry is inserted. For few entries this is
/// the fastest method.
const AT_HAND: usize = 4;

type Entry = (Ns, Entity);

/// A wheel of nine levels of 64 slots, whose next entries are kept sorted.
///
/// Entries up to a horizon are in a short sorted list; later entries are in slots, unsorted. When the list is empty,
/// the next occupied slot is emptied: if it has few entries, they are sorted, independent of the width of the slot;
/// otherwise they are moved to finer slots. A separate table contains the present time of each entity. Entries that
/// differ from the present time of their entity are skipped; they are removed before they are the majority.
#[derive(Clone, Debug)]
pub struct EventQueue {
    /// Everything up to and including the tick, last first.
    near: Vec<Entry>,
    tick: u64,
    slots: Vec<Vec<Entry>>,
    occupied: [u64; LEVELS],
    /// Each entity's time, or [`Ns::MAX`].
    times: Vec<Ns>,
    live: usize,
    held: usize,
    /// The tick of the last popped event. No event can be set before this tick.
    taken: u64,
    /// A slot's entries while they are carried to finer slots.
    carried: Vec<Entry>,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self {
            near: Vec::with_capacity(2 * MAX_NEAR),
            // While there are few entries, all of them are in the sorted list.
            tick: u64::MAX >> TICK_BITS,
            slots: vec![Vec::new(); LEVELS * SLOTS],
            occupied: [0; LEVELS],
            times: Vec::new(),
            live: 0,
            held: 0,
            taken: 0,
            carried: Vec::new(),
        }
    }
}

impl EventQueue {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the time of an entity's next event, and replaces an earlier setting. The time must not be before the last
    /// popped event. [`Ns::MAX`] means no event.
    #[inline]
    pub fn set(&mut self, entity: Entity, time: Ns) {
        if time == Ns::MAX {
            self.clear(entity);
            return;
        }
        let before = match self.times.get_mut(entity as usize) {
            Some(present) => std::mem::replace(present, time),
            None => self.admit(entity, time),
        };
        if before == time {
            return;
        }
        self.live += usize::from(before == Ns::MAX);
        self.held += 1;
        self.insert((time, entity));
        if self.held > 2 * self.live + 1024 {
            self.sweep();
        }
    }

    /// Gives a time to an entity that never had one.
    #[cold]
    fn admit(&mut self, entity: Entity, time: Ns) -> Ns {
        self.times.resize(entity as usize, Ns::MAX);
        self.times.push(time);
        Ns::MAX
    }

    /// Removes the time of an entity, if it has one.
    #[inline]
    pub fn clear(&mut self, entity: Entity) {
        if let Some(time) = self.times.get_mut(entity as usize)
            && *time != Ns::MAX
        {
            *time = Ns::MAX;
            self.live -= 1;
        }
    }

    /// Removes and returns the next entity, with its time.
    #[inline]
    pub fn pop(&mut self) -> Option<(Ns, Entity)> {
        self.pop_before(Ns::MAX)
    }

    /// Like [`pop`](Self::pop), if the time is before a limit.
    #[inline]
    pub fn pop_before(&mut self, limit: Ns) -> Option<(Ns, Entity)> {
        loop {
            let Some(&(time, entity)) = self.near.last() else {
                if !self.refill() {
                    return None;
                }
                continue;
            };
            if time >= limit {
                return None;
            }
            self.near.pop();
            self.held -= 1;
            let present = &mut self.times[entity as usize];
            if *present == time {
                *present = Ns::MAX;
                self.live -= 1;
                self.taken = time.0 >> TICK_BITS;
                return Some((time, entity));
            }
        }
    }

    /// True if no entity has a time.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// At most N next events in order; fewer if the sorted list is shorter.
    pub fn upcoming(&self, most: usize) -> impl Iterator<Item = Entity> + '_ {
        self.near.iter().rev().take(most).map(|(_, entity)| *entity)
    }

    #[inline]
    fn insert(&mut self, entry: Entry) {
        let tick = entry.0.0 >> TICK_BITS;
        if tick > self.tick {
            self.put(entry, tick);
            return;
        }
        self.near.push(entry);
        let length = self.near.len();
        let first = length.saturating_sub(1 + AT_HAND);
        let at_hand = &mut self.near[first..];
        let mut place = at_hand.len() - 1;
        while place > 0 && at_hand[place - 1] < entry {
            at_hand[place] = at_hand[place - 1];
            place -= 1;
        }
        at_hand[place] = entry;
        if place == 0 && first > 0 {
            let place = self.near[..first].partition_point(|other| *other > entry);
            self.near[place..=first].rotate_right(1);
        }
        if length > MAX_NEAR {
            self.spill();
        }
    }

    /// Puts an entry behind the horizon into its slot.
    #[inline]
    fn put(&mut self, entry: Entry, tick: u64) {
        let level = (63 - (tick ^ self.tick).leading_zeros()) / SLOT_BITS;
        let slot = (tick >> (SLOT_BITS * level)) as usize % SLOTS;
        let level = level as usize;
        self.slots[level * SLOTS + slot].push(entry);
        self.occupied[level] |= 1 << slot;
    }

    /// Moves the later entries of the sorted list back into slots, because the list is too long.
    #[cold]
    fn spill(&mut self) {
        let ticks = |entry: &Entry| entry.0.0 >> TICK_BITS;
        let latest = ticks(&self.near[0]);
        let kept = ticks(&self.near[self.near.len() - KEPT_NEAR]).min(latest.saturating_sub(1));
        if kept < self.taken || kept >= latest {
            // All entries are in the present tick, and no slot is narrower.
            return;
        }
        self.lower(kept);
        let first_kept = self.near.partition_point(|entry| ticks(entry) > kept);
        let mut later = std::mem::take(&mut self.carried);
        later.extend(self.near.drain(..first_kept));
        for entry in later.drain(..) {
            self.put(entry, ticks(&entry));
        }
        self.carried = later;
    }

    /// Sets the horizon back to `tick`. If the old horizon was in another slot of some level, the finer slots of that
    /// slot no longer apply: their entries are moved back into that slot.
    fn lower(&mut self, tick: u64) {
        let differs = tick ^ self.tick;
        let level = (63 - (differs | 1).leading_zeros()) / SLOT_BITS;
        let slot = (self.tick >> (SLOT_BITS * level)) as usize % SLOTS;
        let level = level as usize;
        self.tick = tick;
        for finer in 0..level {
            let mut occupied = std::mem::take(&mut self.occupied[finer]);
            while occupied != 0 {
                let index = finer * SLOTS + occupied.trailing_zeros() as usize;
                occupied &= occupied - 1;
                let mut entries = std::mem::take(&mut self.slots[index]);
                self.slots[level * SLOTS + slot].append(&mut entries);
                self.slots[index] = entries;
                self.occupied[level] |= 1 << slot;
            }
        }
    }

    /// Takes the next occupied slot. False if there is none.
    fn refill(&mut self) -> bool {
        while self.near.is_empty() {
            let Some(level) = self.occupied.iter().position(|slots| *slots != 0) else {
                self.tick = u64::MAX >> TICK_BITS;
                return false;
            };
            let slot = self.occupied[level].trailing_zeros();
            self.occupied[level] &= self.occupied[level] - 1;
            let shift = SLOT_BITS * level as u32;
            let above = shift + SLOT_BITS;
            let block = if above < 64 { self.tick >> above << above } else { 0 };
            let first = block | u64::from(slot) << shift;
            let index = level * SLOTS + slot as usize;
            if level == 0 || self.slots[index].len() <= SORTED_AT_ONCE {
                self.tick = first + ((1 << shift) - 1);
                std::mem::swap(&mut self.near, &mut self.slots[index]);
                self.near.sort_unstable_by(|one, other| other.cmp(one));
                continue;
            }
            self.tick = first;
            let mut entries = std::mem::take(&mut self.carried);
            std::mem::swap(&mut entries, &mut self.slots[index]);
            for entry in entries.drain(..) {
                let tick = entry.0.0 >> TICK_BITS;
                if self.times[entry.1 as usize] != entry.0 {
                    self.held -= 1;
                } else if tick > first {
                    self.put(entry, tick);
                } else {
                    self.near.push(entry);
                }
            }
            self.near.sort_unstable_by(|one, other| other.cmp(one));
            self.carried = entries;
        }
        true
    }

    /// Discards entries that no longer agree with their entity's time.
    #[cold]
    fn sweep(&mut self) {
        let times = &self.times;
        let mut held = 0;
        for entries in self.slots.iter_mut().chain([&mut self.near]) {
            entries.retain(|(time, entity)| times[*entity as usize] == *time);
            held += entries.len();
        }
        self.held = held;
        for level in 0..LEVELS {
            let slots = &self.slots[level * SLOTS..(level + 1) * SLOTS];
            self.occupied[level] = slots
                .iter()
                .enumerate()
                .fold(0, |bits, (slot, entries)| bits | u64::from(!entries.is_empty()) << slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Compares the queue with an ordered map, for random sequences of `set`, `clear` and `pop`.
        #[test]
        fn pop_always_returns_the_earliest_event(
            crowd in 0_u32..2000,
            steps in prop::collection::vec((0_u32..300, 0_u32..8, 0_u64..64, 0_u32..48), 1..3000)
        ) {
            let mut queue = EventQueue::new();
            let mut model = BTreeMap::new();
            let mut now = Ns::ZERO;
            // A storm: many entities are set, over a wide range of times, before the first `pop`.
            for (entity, (_, _, small, scale)) in (0..crowd).zip(steps.iter().cycle()) {
                let time = Ns((small << (scale % 24)) + u64::from(entity.wrapping_mul(2_654_435_761) % 30_000_000));
                queue.set(300 + entity, time);
                model.insert(300 + entity, time);
            }
            for (entity, verb, small, scale) in steps {
                match verb {
                    0..=3 => {
                        let time = now + Ns(small << scale);
                        queue.set(entity, time);
                        model.insert(entity, time);
                    }
                    4 => {
                        queue.clear(entity);
                        model.remove(&entity);
                    }
                    _ => {
                        let least = model.iter().map(|(entity, time)| (*time, *entity)).min();
                        prop_assert_eq!(queue.pop(), least);
                        if let Some((time, entity)) = least {
                            now = time;
                            model.remove(&entity);
                        }
                    }
                }
                prop_assert_eq!(queue.live, model.len());
                let time = queue.times.get(entity as usize).copied().filter(|time| *time != Ns::MAX);
                prop_assert_eq!(time, model.get(&entity).copied());
            }
            let mut rest: Vec<_> = model.into_iter().map(|(entity, time)| (time, entity)).collect();
            rest.sort_unstable();
            prop_assert_eq!(std::iter::from_fn(|| queue.pop()).collect::<Vec<_>>(), rest);
        }
    }

    #[test]
    fn ties_are_broken_by_entity_and_not_by_insertion_order() {
        let drain = |order: &[u32]| {
            let mut queue = EventQueue::new();
            for entity in order {
                queue.set(*entity, Ns(u64::from(*entity / 300) << 20));
            }
            std::iter::from_fn(|| queue.pop()).map(|(_, entity)| entity).collect::<Vec<_>>()
        };
        let forth: Vec<u32> = (0..1024).collect();
        let mut mixed: Vec<u32> = (0..1024).map(|number| number * 37 % 1024).collect();
        assert_eq!(drain(&forth), forth);
        assert_eq!(drain(&mixed), forth);
        mixed.reverse();
        assert_eq!(drain(&mixed), forth);
    }

    /// Entries of timers that are moved repeatedly do not accumulate.
    #[test]
    fn queue_size_stays_proportional_to_live_events() {
        let mut queue = EventQueue::new();
        for round in 0..100_000_u64 {
            queue.set((round % 10) as u32, Ns(1_000_000_000 + round));
        }
        assert_eq!(queue.live, 10);
        assert!(queue.held <= 2 * 10 + 1024, "{} held", queue.held);
    }
}
