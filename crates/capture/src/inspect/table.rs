//! Flows by their addresses, and sessions by their names: the one idle for longest is at hand.

use crate::packet::Endpoint;
use std::collections::HashMap;
use std::hash::Hash;

/// The two ends in ascending order, and the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) ends: [Endpoint; 2],
    pub(super) protocol: u8,
}

impl Key {
    /// The key of a packet, and its direction: 0 from the first end, 1 from the second.
    pub(super) fn of(source: Endpoint, destination: Endpoint, protocol: u8) -> (Self, usize) {
        if source <= destination {
            (Self { ends: [source, destination], protocol }, 0)
        } else {
            (Self { ends: [destination, source], protocol }, 1)
        }
    }
}

const NONE: u32 = u32::MAX;

struct Slot<K, T> {
    key: K,
    value: T,
    /// Neighbours in the order of use.
    older: u32,
    newer: u32,
}

/// A map that remembers the order of use.
pub(super) struct Table<K, T> {
    places: HashMap<K, u32>,
    slots: Vec<Option<Slot<K, T>>>,
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
}

impl<K, T> Default for Table<K, T> {
    fn default() -> Self {
        Self { places: HashMap::new(), slots: Vec::new(), free: Vec::new(), oldest: NONE, newest: NONE }
    }
}

impl<K: Copy + Eq + Hash, T> Table<K, T> {
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Every flow, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &T)> {
        self.slots.iter().flatten().map(|slot| (&slot.key, &slot.value))
    }

    /// Finds a flow and leaves the order as it is.
    pub(super) fn peek(&self, key: &K) -> Option<&T> {
        let place = *self.places.get(key)?;
        self.slots[place as usize].as_ref().map(|slot| &slot.value)
    }

    /// Finds a flow and makes it the newest.
    pub(super) fn touch(&mut self, key: &K) -> Option<&mut T> {
        let place = *self.places.get(key)?;
        if self.newest != place {
            self.unlink(place);
            self.link(place);
        }
        self.slots[place as usize].as_mut().map(|slot| &mut slot.value)
    }

    /// Adds a flow that is not there yet, as the newest.
    pub(super) fn insert(&mut self, key: K, value: T) {
        debug_assert!(!self.places.contains_key(&key));
        let slot = Some(Slot { key, value, older: NONE, newer: NONE });
        let place = match self.free.pop() {
            Some(place) => {
                self.slots[place as usize] = slot;
                place
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
        };
        self.places.insert(key, place);
        self.link(place);
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<T> {
        let place = self.places.remove(key)?;
        self.unlink(place);
        self.free.push(place);
        self.slots[place as usize].take().map(|slot| slot.value)
    }

    /// The flow that was idle for longest.
    pub(super) fn oldest(&self) -> Option<K> {
        self.slots.get(self.oldest as usize)?.as_ref().map(|slot| slot.key)
    }

    fn unlink(&mut self, place: u32) {
        let Some(Some(Slot { older, newer, .. })) = self.slots.get(place as usize) else { return };
        let (older, newer) = (*older, *newer);
        match self.slots.get_mut(older as usize) {
            Some(Some(neighbour)) => neighbour.newer = newer,
            _ => self.oldest = newer,
        }
        match self.slots.get_mut(newer as usize) {
            Some(Some(neighbour)) => neighbour.older = older,
            _ => self.newest = older,
        }
    }

    fn link(&mut self, place: u32) {
        let newest = std::mem::replace(&mut self.newest, place);
        if let Some(Some(slot)) = self.slots.get_mut(place as usize) {
            (slot.older, slot.newer) = (newest, NONE);
        }
        match self.slots.get_mut(newest as usize) {
            Some(Some(neighbour)) => neighbour.newer = place,
            _ => self.oldest = place,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(port: u16) -> Key {
        Key { ends: [Endpoint { address: 1, port }, Endpoint { address: 2, port }], protocol: 6 }
    }

    #[test]
    fn oldest_is_the_one_least_recently_used() {
        let mut table = Table::default();
        for port in 0..4 {
            table.insert(key(port), port);
        }
        assert_eq!(table.touch(&key(0)), Some(&mut 0));
        assert_eq!(table.touch(&key(3)), Some(&mut 3));
        assert_eq!(table.touch(&key(2)), Some(&mut 2));
        let mut order = Vec::new();
        while let Some(oldest) = table.oldest() {
            order.extend(table.remove(&oldest));
            if order.len() == 2 {
                table.insert(key(9), 9);
            }
        }
        assert_eq!(order, [1, 0, 3, 2, 9]);
        assert_eq!(table.len(), 0);
        assert_eq!(table.touch(&key(1)), None);
    }

    #[test]
    fn both_directions_share_a_key() {
        let (one, other) = (Endpoint { address: 5, port: 1 }, Endpoint { address: 4, port: 9 });
        let (forth, back) = (Key::of(one, other, 6), Key::of(other, one, 6));
        assert_eq!(forth.0, back.0);
        assert_eq!((forth.1, back.1), (1, 0));
    }
}
