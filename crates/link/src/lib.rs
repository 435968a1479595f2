//! Links that delay, lose or change units. Links wrap links.
//!
//! A [`Link`] accepts units (a packet, a datagram, a chunk of a stream) and returns them when they are due. It
//! reads no clock: time is an argument, an integer number of nanoseconds ([`Ns`]), so the same link serves a driver in
//! memory, a simulator in virtual time and an emulator on a wall clock. Each unit has a *logical* time, to which
//! a link adds. A late call of [`Link::take`] returns the same logical time, so lateness does not accumulate.
//!
//! | link | effect on a unit |
//! | --- | --- |
//! | [`Mtu`] | fragments it, and reassembles it at the far end |
//! | [`Encapsulation`] | adds the link's overhead per packet, including that of WEP or CCMP, and encrypts its payload |
//! | [`Rate`] | serialises it after earlier units; bounded drop-tail queue |
//! | [`Loss`] | loses it: independently or in bursts |
//! | [`Duplication`] | sends it twice |
//! | [`Delay`] | delays it: constant, or drawn from a distribution; in order unless reordering is configured |
//!
//! [`BearerSpec`] mirrors a bearer profile. A validated one, [`Bearer`], builds a [`Path`]: both directions and
//! their shared state (a half-duplex medium, a radio that must be set up).
//!
//! Each use of randomness has a [`Stream`], identified by (seed, entity, purpose) and bit-identical on every platform:
//! the same seed gives the same fates everywhere, and a new link does not change the draws of other links.

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

pub use bearer::{Bearer, BearerError, BearerSpec, EnergySpec, LinkEncryption, SuperPackets};
pub use delay::Delay;
pub use distribution::{Distribution, DistributionError, DistributionSpec};
pub use duplication::Duplication;
pub use encapsulation::Encapsulation;
pub use loss::{Loss, LossProcess};
pub use mtu::Mtu;
pub use one_way::OneWay;
pub use path::{Direction, Path, RadioTimes};
pub use random::{Probability, Purpose, Stream};
pub use rate::{Rate, RateValue, Silence};
pub use time::{MAX_SECONDS, Ns};
pub use unit::{Drop, Fate, Fragment, Payload, Unit};

/// Carries units from one end to the other, in one direction.
///
/// Offered times must not decrease (an earlier time counts as the later one). [`take`](Self::take) returns units in the
/// order of their logical times; units that are due at the same time in the order in which they were offered.
pub trait Link<P: Payload = Vec<u8>> {
    /// Offers a unit at a time. Its fate is decided immediately, but the far end sees it only when it is due.
    fn offer(&mut self, at: Ns, unit: Unit<P>) -> Fate;

    /// When the next unit is due at the far end, if any is in flight.
    fn next(&self) -> Option<Ns>;

    /// The next unit that is due no later than `until`, with its logical time.
    fn take(&mut self, until: Ns) -> Option<(Ns, Unit<P>)>;
}
