//! Tables of flows by address and of sessions by name, ordered by last use.

use crate::packet::Endpoint;
use lru::LruCache;
use std::hash::Hash;
use std::num::NonZeroUsize;

/// Approximate overhead of a flow in the table and the allocator, in addition to its state.
pub(super) const PLACE_BYTES: usize = 256;

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

/// A map that remembers the order of use: `get` and `put` make an entry the newest.
pub(super) type Table<K, T> = LruCache<K, T>;

/// A map with a maximum number of entries, which uses memory only for present ones.
pub(super) fn bounded<K: Eq + Hash, T>(most: NonZeroUsize) -> Table<K, T> {
    let mut table = Table::unbounded();
    table.resize(most);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_share_a_key() {
        let (one, other) = (Endpoint { address: 5, port: 1 }, Endpoint { address: 4, port: 9 });
        let (forth, back) = (Key::of(one, other, 6), Key::of(other, one, 6));
        assert_eq!(forth.0, back.0);
        assert_eq!((forth.1, back.1), (1, 0));
    }
}
