//! Bearer profiles, and the paths that are built from them.

mod spec;

pub use spec::{BearerError, BearerSpec, EnergySpec, LinkEncryption, SuperPackets};

use crate::one_way::{OneWay, Streams};
use crate::path::{Radio, Shared};
use crate::{
    Delay, Direction, Distribution, Duplication, Encapsulation, Loss, LossProcess, Mtu, Ns, Path, Payload,
    Probability, Purpose, Rate, RateValue, Silence, Stream,
};
use spec::{probability, seconds};

/// A validated bearer, from which a path is made for each client.
#[derive(Clone, Debug)]
pub struct Bearer {
    up: Way,
    down: Way,
    mtu_bytes: u32,
    ip_bytes: u32,
    link_bytes: u32,
    duplication: Probability,
    reordering: Probability,
    reordering_s: Ns,
    /// How long a drawn delay applies to later units.
    holds: Ns,
    overtaking: bool,
    setup: Distribution,
    half_duplex: bool,
}

#[derive(Clone, Debug)]
struct Way {
    rate: Option<RateValue>,
    delay: Distribution,
    loss: LossProcess,
    queue_bytes: Option<u64>,
    silence: Option<Silence>,
    purposes: [Purpose; 3],
}

impl TryFrom<&BearerSpec> for Bearer {
    type Error = BearerError;

    fn try_from(spec: &BearerSpec) -> Result<Self, BearerError> {
        let mtu_bytes = spec.mtu_bytes;
        for (key, value) in [("ip_bytes", spec.ip_bytes), ("udp_bytes", spec.udp_bytes)] {
            if value > 60 {
                return Err(BearerError::Header { key, value });
            }
        }
        let least = spec.ip_bytes + crate::mtu::FRAGMENT_BYTES;
        if mtu_bytes < least {
            return Err(BearerError::Mtu { value: mtu_bytes, least });
        }
        if spec.packet_overhead_bytes > 65_535 {
            return Err(BearerError::Overhead(spec.packet_overhead_bytes));
        }
        spec.energy.check()?;
        let setup = spec.setup_time()?;
        Ok(Self {
            up: spec.way(Direction::Up)?,
            down: spec.way(Direction::Down)?,
            mtu_bytes,
            ip_bytes: spec.ip_bytes,
            link_bytes: spec.link_bytes(),
            duplication: probability("duplication", spec.duplication)?,
            reordering: probability("reordering", spec.reordering)?,
            reordering_s: seconds("reordering_s", spec.reordering_s)?,
            holds: seconds("traversal_holds_s", spec.traversal_holds_s)?,
            overtaking: spec.traversal_reorders,
            setup,
            half_duplex: spec.half_duplex,
        })
    }
}

impl Bearer {
    /// True if no unit is delayed, lost, duplicated or reordered: links are then not needed.
    pub fn is_instant(&self) -> bool {
        let at_once = |way: &Way| way.rate.is_none() && way.delay.as_constant() == Some(Ns::ZERO);
        at_once(&self.up)
            && at_once(&self.down)
            && matches!(self.up.loss, LossProcess::None)
            && matches!(self.down.loss, LossProcess::None)
            && self.up.silence.is_none()
            && self.down.silence.is_none()
            && self.duplication.is_never()
            && self.reordering.is_never()
            && !self.half_duplex
            && !self.has_setup()
    }

    /// True if nothing but loss is random.
    pub fn is_constant(&self) -> bool {
        self.up.delay.as_constant().is_some()
            && self.down.delay.as_constant().is_some()
            && self.duplication.is_never()
            && self.reordering.is_never()
            && self.setup.as_constant().is_some()
    }

    /// The same without loss.
    pub fn without_loss(&self) -> Self {
        let mut bearer = self.clone();
        bearer.up.loss = LossProcess::None;
        bearer.down.loss = LossProcess::None;
        bearer
    }

    /// The probability that none of a path's first `units` is lost; `units` are from and to the client.
    pub fn survival(&self, units: [u32; 2]) -> f64 {
        self.up.loss.survival(units[0]) * self.down.loss.survival(units[1])
    }

    /// True if a client's path loses any of its first units; adds the number of drawn units to `drawn`.
    pub fn loses_any(&self, seed: u64, entity: u64, units: [u32; 2], drawn: &mut u64) -> bool {
        [&self.up, &self.down].into_iter().zip(units).any(|(way, units)| {
            let mut process = way.loss.clone();
            process.draws() && process.loses_any(units, &mut Stream::of(seed, entity, way.purposes[0]), drawn)
        })
    }

    /// A new path for a client. Units that exceed the MTU are fragmented.
    pub fn path<P: Payload>(&self, seed: u64, entity: u64) -> Path<P> {
        let shared = self.shared_of(seed, entity);
        Path::new(self.way(&self.up, seed, entity), self.way(&self.down, seed, entity), shared)
    }

    /// Resets a used path of this bearer to what [`path`](Self::path) returns for another client, without allocating.
    pub fn renew<P: Payload>(&self, path: &mut Path<P>, seed: u64, entity: u64) {
        path.renew(self.shared_of(seed, entity));
        path.way(Direction::Up).renew(&self.up.loss, self.streams(&self.up, seed, entity));
        path.way(Direction::Down).renew(&self.down.loss, self.streams(&self.down, seed, entity));
    }

    fn shared_of(&self, seed: u64, entity: u64) -> Option<Shared> {
        let radio = self.has_setup().then(|| Radio::new(self.setup_time(seed, entity)));
        let shares = radio.is_some() || self.half_duplex;
        shares.then_some(Shared { radio, half_duplex: self.half_duplex })
    }

    fn has_setup(&self) -> bool {
        self.setup.as_constant() != Some(Ns::ZERO)
    }

    fn streams(&self, way: &Way, seed: u64, entity: u64) -> Streams {
        // Placeholder for a stream that is not used.
        const NONE: Stream = Stream::seeded(0);
        let stream = |purpose, drawn: bool| if drawn { Stream::of(seed, entity, purpose) } else { NONE };
        let [loss, duplication, delay] = way.purposes;
        let varies = way.delay.as_constant().is_none() || !self.reordering.is_never();
        Streams {
            loss: stream(loss, way.loss.draws()),
            duplication: stream(duplication, !self.duplication.is_never()),
            delay: stream(delay, varies),
        }
    }

    /// The set-up time of a client's radio.
    fn setup_time(&self, seed: u64, entity: u64) -> Ns {
        self.setup
            .as_constant()
            .unwrap_or_else(|| self.setup.draw(&mut Stream::of(seed, entity, Purpose::SETUP)))
    }

    fn way<P: Payload>(&self, way: &Way, seed: u64, entity: u64) -> OneWay<P> {
        let streams = self.streams(way, seed, entity);
        let mut delay = Delay::new(way.delay.clone(), streams.delay.clone()).holding(self.holds);
        if self.overtaking {
            delay = delay.overtaking();
        }
        let delay = delay.reordering(self.reordering, self.reordering_s, streams.delay);
        let duplication = Duplication::new(self.duplication, streams.duplication, delay);
        let loss = Loss::new(way.loss.clone(), streams.loss, duplication);
        let rate = match way.rate {
            Some(rate) => Rate::new(rate, loss).bounded(way.queue_bytes),
            None => Rate::unlimited(loss),
        };
        let is_silent = self.up.silence.is_some() || self.down.silence.is_some();
        let rate = rate.silent(way.silence).interleaved(self.half_duplex && is_silent);
        let encapsulation = Encapsulation::counted(self.link_bytes, rate);
        Mtu::new(self.mtu_bytes, self.ip_bytes, encapsulation)
    }
}
