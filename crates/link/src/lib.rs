//! Links: units and times in, units and times out. Links wrap links.
//!
//! A [`Link`] is offered units (a packet, a datagram, a chunk of a stream) and gives them back when they are due. It
//! reads no clock: time is an argument, an integer number of nanoseconds ([`Ns`]), so the same link serves a driver in
//! memory, a simulator in virtual time and an emulator on a wall clock. Each unit carries its *logical* time, to
//! which a link adds; who comes late to [`Link::take`] gets the logical time all the same, so lateness never adds up.
//!
//! | link | what it does to a unit |
//! | --- | --- |
//! | [`Null`] | hands it over at once |
//! | [`Mtu`] | cuts it into fragments and joins them at the far end |
//! | [`Encapsulation`] | adds the link's bytes per packet, those of WEP or CCMP among them, and really encrypts a payload that is present |
//! | [`Rate`] | serialises it behind those before it; bounded queue, drop-tail |
//! | [`Loss`] | loses it: independently or in bursts |
//! | [`Duplication`] | sends it twice |
//! | [`Delay`] | holds it: constant, or drawn from a distribution; in order unless reordering is asked for |
//!
//! [`BearerSpec`] mirrors a bearer profile and builds a [`Path`]: both directions, with what they share (a half-duplex
//! medium, a radio that must be set up and falls idle).
//!
//! Randomness is a [`Stream`] each, named by (seed, entity, purpose), portable to the bit: the same seed gives the same
//! fates on every platform, and a new link changes no other link's draws.

#![forbid(unsafe_code)]

mod bearer;
pub mod cipher;
mod delay;
mod distribution;
mod duplication;
mod elementary;
mod encapsulation;
mod loss;
mod mtu;
mod one_way;
mod path;
mod random;
mod rate;
mod time;
mod unit;

pub use bearer::{
    Bearer, BearerError, BearerSpec, BurstSpec, EnergySpec, Layer, LinkEncryption, SuperPackets,
};
pub use delay::Delay;
pub use distribution::{Distribution, DistributionError, DistributionSpec};
pub use duplication::Duplication;
pub use encapsulation::Encapsulation;
pub use loss::{Loss, LossProcess};
pub use mtu::Mtu;
pub use one_way::OneWay;
pub use path::{Direction, Path, Radio, RadioTimes};
pub use random::{Probability, Purpose, Stream};
pub use rate::{Bound, Rate, RateValue, Silence};
pub use time::{MAX_SECONDS, Ns};
pub use unit::{Drop, Fate, Fragment, Null, Payload, Unit};

/// Something that carries units from one end to the other, in one direction.
///
/// Times offered never go backwards (a caller that breaks this gets the later time). [`take`](Self::take) gives units in
/// the order of their logical times; units due at the same time in the order in which they were offered.
pub trait Link<P: Payload = Vec<u8>> {
    /// Offers a unit at a time. Its fate is decided immediately, but the far end sees it only when it is due.
    fn offer(&mut self, at: Ns, unit: Unit<P>) -> Fate;

    /// When the next unit is due at the far end, if any is under way.
    fn next(&self) -> Option<Ns>;

    /// The next unit that is due until then, with its logical time.
    fn take(&mut self, until: Ns) -> Option<(Ns, Unit<P>)>;
}
