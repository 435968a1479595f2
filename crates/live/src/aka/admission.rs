//! Admission of connections to a node: a table with a limit of connections, and a lower limit for one address.
//!
//! If the table is full, a new connection displaces an unauthenticated one. Candidates are those of the address with
//! the most, if these are more than one and more than 1/32 of all places that authenticated mobiles leave; otherwise
//! all unauthenticated connections. Silent candidates are displaced before those with a valid request, and older ones
//! first. An authenticated connection is never displaced; if there are only such, the new one is rejected.
//!
//! Therefore a flood of silent connections from a mobile's own address can displace the mobile only before its first
//! message. A flood from fewer than 32 other addresses cannot displace it at all, nor one from fewer addresses than the
//! free places less one, if these are fewer.

use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// A flood from fewer addresses than this displaces only its own connections, if enough places are left.
const ADDRESSES_OF_A_FLOOD: usize = 32;

/// Limits on the peers of a listening socket.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub connections: usize,
    /// Connections at a time of one address: an IPv4 address, or an IPv6 network of 64 bits.
    pub connections_per_address: usize,
    /// Timeout from the connection to the first valid message, not to the end of the attach. Over a slow bearer, a
    /// mobile needs it for a few hundred bytes, and for one or two retransmissions.
    pub first_message: Duration,
}

impl Limits {
    /// The limits of a port for other nodes. These are few, and all their queries may come from one address.
    pub(super) fn of_nodes(self) -> Self {
        Self { connections_per_address: self.connections, ..self }
    }
}

impl Default for Limits {
    /// 256 connections, 64 of them of one address; ten seconds for the first message.
    fn default() -> Self {
        Self { connections: 256, connections_per_address: 64, first_message: Duration::from_secs(10) }
    }
}

/// Counts of connections that were not served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Refusals {
    /// Rejected, because the table was full.
    pub turned_away: u64,
    /// Displaced by others before they were authenticated.
    pub displaced: u64,
    /// Closed, because no message arrived in time.
    pub silent: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    Silent,
    /// It has sent a valid request, which needs no authentication.
    Asked,
    Proved,
}

/// The unit to which the limit per address applies: an IPv4 address, or an IPv6 network of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    V4(Ipv4Addr),
    /// The first 64 bits.
    V6(u64),
}

impl Origin {
    pub fn of(address: IpAddr) -> Self {
        let prefix = |address: Ipv6Addr| Self::V6((u128::from(address) >> 64) as u64);
        match address {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => address.to_ipv4_mapped().map_or_else(|| prefix(address), Self::V4),
        }
    }
}

struct Held<C> {
    origin: Origin,
    standing: Standing,
    connection: C,
}

/// Result of the admission of a new connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Admission<C> {
    /// It is in the table under this number; `displaced` was removed from the table.
    Admitted {
        number: u64,
        displaced: Option<C>,
    },
    TurnedAway,
}

/// Connections by increasing number: the oldest have the lowest.
pub struct Table<C> {
    limits: Limits,
    held: BTreeMap<u64, Held<C>>,
    per_origin: HashMap<Origin, usize>,
    next: u64,
    refusals: Refusals,
}

impl<C> Table<C> {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            held: BTreeMap::new(),
            per_origin: HashMap::new(),
            next: 0,
            refusals: Refusals::default(),
        }
    }

    /// Admits a new connection. If it displaces another, that one is removed from the table.
    pub fn admit(&mut self, origin: Origin, connection: C) -> Admission<C> {
        let same = self.per_origin.get(&origin).copied().unwrap_or(0);
        let displaced = if same >= self.limits.connections_per_address {
            self.yielding(|held| held.origin == origin)
        } else if self.held.len() >= self.limits.connections {
            self.yielding(|_| true)
        } else {
            return self.insert(origin, connection, None);
        };
        let Some(number) = displaced else {
            self.refusals.turned_away += 1;
            return Admission::TurnedAway;
        };
        let displaced = self.remove(number);
        self.refusals.displaced += 1;
        self.insert(origin, connection, displaced)
    }

    fn insert(&mut self, origin: Origin, connection: C, displaced: Option<C>) -> Admission<C> {
        let number = self.next;
        self.next += 1;
        *self.per_origin.entry(origin).or_default() += 1;
        self.held.insert(number, Held { origin, standing: Standing::Silent, connection });
        Admission::Admitted { number, displaced }
    }

    /// The unauthenticated connection to displace, if there is one: first those of the address with the most, if these
    /// are many, then silent ones, then the oldest.
    fn yielding(&self, among: impl Fn(&Held<C>) -> bool) -> Option<u64> {
        let candidates = || {
            let unproved = |held: &Held<C>| held.standing != Standing::Proved && among(held);
            self.held.iter().filter(move |(_, held)| unproved(held))
        };
        let mut of_origin: HashMap<Origin, usize> = HashMap::new();
        for (_, held) in candidates() {
            *of_origin.entry(held.origin).or_default() += 1;
        }
        // A few mobiles behind one address are no flood. Authenticated ones stay; others share the remaining places.
        let proved = self.held.values().filter(|held| held.standing == Standing::Proved).count();
        let few = (self.limits.connections.saturating_sub(proved) / ADDRESSES_OF_A_FLOOD).max(1);
        let share = |origin: &Origin| of_origin.get(origin).copied().unwrap_or(0).max(few);
        let first =
            candidates().min_by_key(|(number, held)| (Reverse(share(&held.origin)), held.standing, **number));
        first.map(|(number, _)| *number)
    }

    fn remove(&mut self, number: u64) -> Option<C> {
        let held = self.held.remove(&number)?;
        if let Some(count) = self.per_origin.get_mut(&held.origin) {
            *count -= 1;
            if *count == 0 {
                self.per_origin.remove(&held.origin);
            }
        }
        Some(held.connection)
    }

    /// Removes an unauthenticated connection, because the system cannot accept another one.
    pub fn relieve(&mut self) -> Option<C> {
        let number = self.yielding(|_| true)?;
        self.refusals.displaced += 1;
        self.remove(number)
    }

    /// Advances the state of a connection's peer.
    pub fn raise(&mut self, number: u64, standing: Standing) {
        if let Some(held) = self.held.get_mut(&number) {
            held.standing = held.standing.max(standing);
        }
    }

    pub fn leave(&mut self, number: u64) {
        self.remove(number);
    }

    pub fn count_turned_away(&mut self) {
        self.refusals.turned_away += 1;
    }

    pub fn count_silent(&mut self) {
        self.refusals.silent += 1;
    }

    pub fn len(&self) -> usize {
        self.held.len()
    }

    pub fn connections(&self) -> impl Iterator<Item = &C> {
        self.held.values().map(|held| &held.connection)
    }

    pub fn refusals(&self) -> Refusals {
        self.refusals
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn table(connections: usize, connections_per_address: usize) -> Table<u32> {
        Table::new(Limits { connections, connections_per_address, ..Limits::default() })
    }

    fn host(number: u32) -> Origin {
        Origin::V4(Ipv4Addr::from(0x7f00_0000 + number))
    }

    fn held(table: &Table<u32>) -> Vec<u32> {
        table.connections().copied().collect()
    }

    fn admitted(table: &mut Table<u32>, origin: Origin, connection: u32) -> (u64, Option<u32>) {
        match table.admit(origin, connection) {
            Admission::Admitted { number, displaced } => (number, displaced),
            Admission::TurnedAway => panic!("{connection} was turned away"),
        }
    }

    #[test]
    fn least_proven_oldest_is_evicted_and_authenticated_ones_never() {
        let mut table = table(4, 4);
        let (first, _) = admitted(&mut table, host(1), 1);
        let (second, _) = admitted(&mut table, host(2), 2);
        let (third, _) = admitted(&mut table, host(3), 3);
        admitted(&mut table, host(4), 4);
        table.raise(first, Standing::Proved);
        table.raise(second, Standing::Asked);
        // A standing is never lowered.
        table.raise(first, Standing::Asked);
        assert_eq!(admitted(&mut table, host(5), 5).1, Some(3), "the oldest of the silent");
        assert_eq!(admitted(&mut table, host(6), 6).1, Some(4));
        assert_eq!(held(&table), [1, 2, 5, 6]);
        let newest = admitted(&mut table, host(7), 7);
        assert_eq!(newest.1, Some(5));
        table.raise(newest.0, Standing::Asked);
        assert_eq!(admitted(&mut table, host(8), 8).1, Some(6), "silence goes before a question");
        table.leave(third);
        assert_eq!(held(&table), [1, 2, 7, 8], "one that is gone already displaces no other");
        assert_eq!(table.refusals(), Refusals { displaced: 4, ..Refusals::default() });
    }

    #[test]
    fn new_connection_is_refused_if_all_are_authenticated() {
        let mut table = table(2, 2);
        for number in 1..=2 {
            let (place, _) = admitted(&mut table, host(number), number);
            table.raise(place, Standing::Proved);
        }
        assert_eq!(table.admit(host(3), 3), Admission::TurnedAway);
        assert_eq!((held(&table), table.refusals().turned_away), (vec![1, 2], 1));
        assert_eq!(table.relieve(), None);
    }

    #[test]
    fn address_beyond_its_share_evicts_only_its_own_connections() {
        let mut table = table(10, 3);
        for number in 0..3 {
            admitted(&mut table, host(1), number);
        }
        admitted(&mut table, host(2), 100);
        for number in 3..50 {
            assert_eq!(admitted(&mut table, host(1), number).1, Some(number - 3));
        }
        assert_eq!(held(&table), [100, 47, 48, 49]);
        let (last, _) = admitted(&mut table, host(1), 50);
        table.leave(last);
        assert_eq!(admitted(&mut table, host(1), 51).1, None, "a place that was left is free");
    }

    /// Any number of silent connections, from one address or from many, never keeps out a mobile that sends a request.
    #[test]
    fn timely_connection_survives_a_flood_of_silent_ones() {
        for spread in [1, u32::MAX] {
            let limits = Limits::default();
            let mut table = Table::new(limits);
            for number in 0..1000 {
                admitted(&mut table, host(1 + number % spread), number);
            }
            let (mobile, _) = admitted(&mut table, host(1), 5000);
            for number in 0..60 {
                admitted(&mut table, host(1 + number % spread), 2000 + number);
            }
            table.raise(mobile, Standing::Asked);
            for number in 0..1000 {
                admitted(&mut table, host(1 + number % spread), 3000 + number);
            }
            assert!(held(&table).contains(&5000), "{spread}");
            assert!(table.held.len() <= limits.connections);
        }
    }

    /// Mobiles at one address, in their handshakes, among any number of requests of others from a few addresses.
    #[test]
    fn flood_from_few_addresses_evicts_only_its_own_connections() {
        for hosts in [1, 5, 17, 31] {
            let limits = Limits::default();
            let mut table = Table::new(limits);
            let (silent, _) = admitted(&mut table, host(5000), 5000);
            let (asked, _) = admitted(&mut table, host(5000), 5001);
            table.raise(asked, Standing::Asked);
            for number in 0..3000 {
                let (place, _) = admitted(&mut table, host(1 + number % hosts), 10_000 + number);
                table.raise(place, Standing::Asked);
            }
            table.raise(silent, Standing::Asked);
            assert!([5000, 5001].iter().all(|mobile| held(&table).contains(mobile)), "{hosts} hosts");
        }
    }

    /// The same, if mobiles that have attached hold most places.
    #[test]
    fn flood_beside_many_attached_mobiles_evicts_only_its_own() {
        for (proved, hosts, each) in [(200, 7, 8), (200, 31, 8), (248, 1, 8), (248, 6, 3), (253, 1, 3)] {
            let mut table = Table::new(Limits::default());
            let flood = |table: &mut Table<u32>, from: u32| {
                for number in 0..hosts * each {
                    let (place, _) = admitted(table, host(1 + number % hosts), from + number);
                    table.raise(place, Standing::Asked);
                }
            };
            for number in 0..proved {
                let (place, _) = admitted(&mut table, host(1000 + number), number);
                table.raise(place, Standing::Proved);
            }
            flood(&mut table, 10_000);
            let (mobile, _) = admitted(&mut table, host(5000), 5000);
            table.raise(mobile, Standing::Asked);
            flood(&mut table, 20_000);
            flood(&mut table, 30_000);
            let held = held(&table);
            assert!(held.contains(&5000), "{proved} proved, {hosts} hosts with {each} each");
            assert!((0..proved).all(|mobile| held.contains(&mobile)));
        }
    }

    #[test]
    fn nodes_may_use_all_places_from_one_address() {
        let limits = Limits::default().of_nodes();
        let mut table = Table::new(limits);
        for number in 0..256 {
            assert_eq!(admitted(&mut table, host(1), number).1, None);
        }
        assert_eq!(admitted(&mut table, host(1), 256).1, Some(0));
    }

    #[test]
    fn ipv6_addresses_of_one_network_count_as_one_host() {
        let of = |text: &str| Origin::of(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.2"), of("10.0.0.1"));
    }
}
