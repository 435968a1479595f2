//! A bearer profile's figures, and the path that they make.

use crate::cipher::{CCMP_OVERHEAD_BYTES, WEP_OVERHEAD_BYTES};
use crate::path::Shared;
use crate::{
    Bound, Delay, Direction, Distribution, DistributionError, DistributionSpec, Duplication, Encapsulation,
    Loss, LossProcess, MAX_SECONDS, Mtu, Ns, Overhead, Path, Payload, Probability, Purpose, Radio, Rate,
    RateValue, Silence, Stream, TooLong,
};
use serde::{Deserialize, Serialize};

/// Link encryption by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkEncryption {
    /// None.
    #[default]
    None,
    /// Wired Equivalent Privacy.
    Wep,
    /// CCMP, as in WPA2.
    Ccmp,
}

impl LinkEncryption {
    /// Bytes that it adds to each frame.
    #[must_use]
    pub fn overhead_bytes(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Wep => WEP_OVERHEAD_BYTES,
            Self::Ccmp => CCMP_OVERHEAD_BYTES,
        }
    }
}

/// What a bearer's rates count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// Whole frames: the link's overhead takes time.
    #[default]
    Layer2,
    /// Network packets: rates are net of the link's overhead, which takes no further time.
    Layer3,
}

/// Loss in bursts; see [`LossProcess::GilbertElliott`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BurstSpec {
    /// Probability of going from good to bad before a unit.
    pub worsens: f64,
    /// Probability of going from bad to good before a unit.
    pub recovers: f64,
    /// Loss while good.
    #[serde(default)]
    pub good: f64,
    /// Loss while bad.
    #[serde(default = "certain")]
    pub bad: f64,
}

fn certain() -> f64 {
    1.0
}

/// What a radio draws; `None` where unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EnergySpec {
    /// Power while sending.
    pub send_w: Option<f64>,
    /// Power while receiving.
    pub receive_w: Option<f64>,
    /// Power while set up, but neither sending nor receiving.
    pub idle_w: Option<f64>,
    /// Power while being set up.
    pub setup_w: Option<f64>,
    /// Power of the idle radio.
    pub sleep_w: Option<f64>,
    /// Energy per byte sent.
    pub send_j_per_byte: Option<f64>,
    /// Energy per byte received.
    pub receive_j_per_byte: Option<f64>,
    /// Energy of a set-up from idle, in place of power times time.
    pub setup_j: Option<f64>,
    /// Power while the radio stays connected after the last byte …
    pub tail_w: Option<f64>,
    /// … and for how long.
    pub tail_s: Option<f64>,
}

/// A bearer, by the fields of its profile. Times in seconds, rates in bit/s, lengths in bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BearerSpec {
    /// From the client; `None`: so fast that it takes no time.
    pub up_bits_per_s: Option<f64>,
    /// To the client; `None`: so fast that it takes no time.
    pub down_bits_per_s: Option<f64>,
    /// What the rates count.
    #[serde(default)]
    pub rates_count: Layer,
    /// One-way delay that does not depend on size: its mean …
    pub traversal_s: f64,
    /// … and standard deviation; normal, without what would be negative.
    #[serde(default)]
    pub traversal_sd_s: f64,
    /// One-way delay as a distribution; then the two above do not count.
    #[serde(default)]
    pub traversal: Option<DistributionSpec>,
    /// The same from the client, where it differs.
    #[serde(default)]
    pub traversal_up: Option<DistributionSpec>,
    /// The same to the client, where it differs.
    #[serde(default)]
    pub traversal_down: Option<DistributionSpec>,
    /// How long a drawn delay holds for the units that follow.
    #[serde(default)]
    pub traversal_holds_s: f64,
    /// Units that drew a shorter delay overtake those before them.
    #[serde(default)]
    pub traversal_reorders: bool,
    /// Largest network-layer packet.
    #[serde(default = "ethernet_mtu")]
    pub mtu_bytes: u32,
    /// Link bytes added to each packet.
    #[serde(default)]
    pub packet_overhead_bytes: u32,
    /// Link encryption, whose bytes come on top.
    #[serde(default)]
    pub link_encryption: LinkEncryption,
    /// Network-layer header of a packet, as compressed.
    #[serde(default = "ip_header")]
    pub ip_bytes: u32,
    /// Header of a datagram, as compressed.
    #[serde(default = "udp_header")]
    pub udp_bytes: u32,
    /// Probability that a packet is lost.
    #[serde(default)]
    pub loss: f64,
    /// The same from the client, where it differs.
    #[serde(default)]
    pub loss_up: Option<f64>,
    /// The same to the client, where it differs.
    #[serde(default)]
    pub loss_down: Option<f64>,
    /// Mean number of packets lost in a row; not above what chance gives: each is lost by itself.
    #[serde(default)]
    pub loss_burst_packets: f64,
    /// The same from the client, where it differs.
    #[serde(default)]
    pub loss_burst_packets_up: Option<f64>,
    /// The same to the client, where it differs.
    #[serde(default)]
    pub loss_burst_packets_down: Option<f64>,
    /// Loss in bursts by its two states, in place of all these.
    #[serde(default)]
    pub burst_loss: Option<BurstSpec>,
    /// Loss in bursts by its two states from the client, where it differs.
    #[serde(default)]
    pub burst_loss_up: Option<BurstSpec>,
    /// Loss in bursts by its two states to the client, where it differs.
    #[serde(default)]
    pub burst_loss_down: Option<BurstSpec>,
    /// Probability that a packet comes twice.
    #[serde(default)]
    pub duplication: f64,
    /// Probability that a packet is held back …
    #[serde(default)]
    pub reordering: f64,
    /// … and for how long.
    #[serde(default)]
    pub reordering_s: f64,
    /// One medium for both directions.
    #[serde(default)]
    pub half_duplex: bool,
    /// Time from the end of sending one way to the start of sending the other, half duplex.
    #[serde(default)]
    pub turnaround_s: f64,
    /// Time before the first packet can go, and any after the radio fell idle.
    #[serde(default)]
    pub setup_s: f64,
    /// The same as a distribution, drawn once a path; then `setup_s` does not count.
    #[serde(default)]
    pub setup: Option<DistributionSpec>,
    /// The radio falls idle so long after the last packet; `None`: it does not.
    #[serde(default)]
    pub idle_after_s: Option<f64>,
    /// Depth of the sender's drop-tail queue, the packet in service included; `None`: everything waits.
    #[serde(default)]
    pub queue_bytes: Option<u64>,
    /// The same from the client, where it differs.
    #[serde(default)]
    pub queue_bytes_up: Option<u64>,
    /// The same to the client, where it differs.
    #[serde(default)]
    pub queue_bytes_down: Option<u64>,
    /// The same in packets.
    #[serde(default)]
    pub queue_packets: Option<u32>,
    /// Share of the time that may be spent sending from the client.
    #[serde(default = "certain")]
    pub duty_cycle_up: f64,
    /// Share of the time that may be spent sending to the client.
    #[serde(default = "certain")]
    pub duty_cycle_down: f64,
    /// Silence after each packet from the client.
    #[serde(default)]
    pub pause_up_s: f64,
    /// Silence after each packet to the client.
    #[serde(default)]
    pub pause_down_s: f64,
    /// What the radio draws.
    #[serde(default)]
    pub energy: EnergySpec,
}

fn ethernet_mtu() -> u32 {
    1500
}

fn ip_header() -> u32 {
    20
}

fn udp_header() -> u32 {
    8
}

/// Why a bearer makes no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs)] // the messages say it
pub enum BearerError {
    #[error("{key} is {value}; accepted: above 0 and below 9e15")]
    Rate { key: &'static str, value: f64 },
    #[error("{key} is {value}; accepted: 0 to 1")]
    Probability { key: &'static str, value: f64 },
    #[error("{key} is {value}; accepted: 0 to 1e9 seconds")]
    Time { key: &'static str, value: f64 },
    #[error("{key}: {error}")]
    Distribution { key: &'static str, error: DistributionError },
    #[error("mtu_bytes is {0}; accepted: 68 or more (RFC 791)")]
    Mtu(u32),
    #[error("packet_overhead_bytes is {0}; accepted: 0 to 65535")]
    Overhead(u32),
    #[error("{key} is {value}; accepted: 0 to 60")]
    Header { key: &'static str, value: u32 },
    #[error("{key} is {value}; accepted: above 0, at most 1")]
    DutyCycle { key: &'static str, value: f64 },
    #[error("{key} is {value}; accepted: 0, or 1 or more")]
    Burst { key: &'static str, value: f64 },
    #[error("energy.{key} is {value}; accepted: a finite number, 0 or more")]
    Energy { key: &'static str, value: f64 },
}

/// One direction of a bearer, whose links are all there, most of them without effect.
pub type OneWay<P = Vec<u8>> = Mtu<Encapsulation<Overhead<Rate<Loss<Duplication<Delay<P>>>>>>, P>;

impl<P: Payload> Path<P> {
    /// Reads a little of both directions, so that they are in the processor's cache when they are needed. What it returns
    /// means nothing; a simulator of many paths that knows which will be used next reads all of those at once, and waits
    /// for memory once instead of for each.
    #[must_use]
    pub fn touch(&self) -> u64 {
        let [up, down] = self.ways();
        up.touch_links() ^ down.touch_links()
    }
}

impl<P> OneWay<P> {
    /// Where units are serialised.
    #[inline]
    #[must_use]
    pub fn sender(&self) -> &Rate<Loss<Duplication<Delay<P>>>> {
        &self.inner.inner.inner
    }

    /// Where units are serialised.
    #[inline]
    pub fn sender_mut(&mut self) -> &mut Rate<Loss<Duplication<Delay<P>>>> {
        &mut self.inner.inner.inner
    }

    /// When the next unit, or a part of it, is due; [`Ns::MAX`] where none is under way.
    #[inline]
    #[must_use]
    pub fn due(&self) -> Ns {
        self.sender().inner.inner.inner.due()
    }

    /// Reads a little of all that the next unit needs.
    fn touch_links(&self) -> u64 {
        let rate = self.sender();
        let outer = self.touch() ^ self.inner.touch() ^ u64::from(self.inner.inner.bytes);
        outer ^ rate.touch() ^ u64::from(rate.inner.draws()) ^ rate.inner.inner.inner.touch()
    }

    /// As before the first unit, with draws of other streams, in the memory that it has.
    fn renew(&mut self, process: &LossProcess, streams: Streams) {
        self.renew_joining();
        self.inner.renew();
        let rate = self.sender_mut();
        rate.renew();
        rate.inner.renew(process.clone(), streams.loss);
        rate.inner.inner.renew(streams.duplication);
        rate.inner.inner.inner.renew(streams.delay);
    }
}

/// What one direction draws from.
struct Streams {
    loss: Stream,
    duplication: Stream,
    delay: Stream,
}

/// A validated bearer, from which a path is made for each client.
#[derive(Clone, Debug)]
pub struct Bearer {
    up: Way,
    down: Way,
    mtu_bytes: u32,
    overhead_bytes: u32,
    encryption_bytes: u32,
    duplication: Probability,
    reordering: Probability,
    reordering_s: Ns,
    holds: Ns,
    overtaking: bool,
    setup: Distribution,
    shared: Option<Shared>,
}

#[derive(Clone, Debug)]
struct Way {
    rate: Option<RateValue>,
    delay: Distribution,
    loss: LossProcess,
    bound: Bound,
    silence: Option<Silence>,
    purposes: [Purpose; 3],
}

impl TryFrom<&BearerSpec> for Bearer {
    type Error = BearerError;

    fn try_from(spec: &BearerSpec) -> Result<Self, BearerError> {
        let counted = spec.rates_count == Layer::Layer2;
        let mtu_bytes = spec.mtu_bytes;
        if mtu_bytes < 68 {
            return Err(BearerError::Mtu(mtu_bytes));
        }
        for (key, value) in [("ip_bytes", spec.ip_bytes), ("udp_bytes", spec.udp_bytes)] {
            if value > 60 {
                return Err(BearerError::Header { key, value });
            }
        }
        if spec.packet_overhead_bytes > 65_535 {
            return Err(BearerError::Overhead(spec.packet_overhead_bytes));
        }
        spec.energy.check()?;
        let setup = spec.setup_time()?;
        let idle_after = spec.idle_after_s.map(|s| seconds("idle_after_s", s)).transpose()?;
        let turnaround = seconds("turnaround_s", spec.turnaround_s)?;
        let has_setup = setup.as_constant() != Some(Ns::ZERO) || idle_after.is_some();
        // What it takes is drawn for each path.
        let radio = has_setup.then(|| Radio::new(Ns::ZERO, idle_after));
        let half_duplex = spec.half_duplex.then_some(turnaround);
        let shares = radio.is_some() || half_duplex.is_some();
        Ok(Self {
            up: spec.way(Direction::Up)?,
            down: spec.way(Direction::Down)?,
            mtu_bytes,
            overhead_bytes: if counted { spec.packet_overhead_bytes } else { 0 },
            encryption_bytes: if counted { spec.link_encryption.overhead_bytes() } else { 0 },
            duplication: probability("duplication", spec.duplication)?,
            reordering: probability("reordering", spec.reordering)?,
            reordering_s: seconds("reordering_s", spec.reordering_s)?,
            holds: seconds("traversal_holds_s", spec.traversal_holds_s)?,
            overtaking: spec.traversal_reorders,
            setup,
            shared: shares.then_some(Shared { radio, half_duplex, last: None }),
        })
    }
}

impl EnergySpec {
    fn check(&self) -> Result<(), BearerError> {
        let all = [
            ("send_w", self.send_w),
            ("receive_w", self.receive_w),
            ("idle_w", self.idle_w),
            ("setup_w", self.setup_w),
            ("sleep_w", self.sleep_w),
            ("send_j_per_byte", self.send_j_per_byte),
            ("receive_j_per_byte", self.receive_j_per_byte),
            ("setup_j", self.setup_j),
            ("tail_w", self.tail_w),
            ("tail_s", self.tail_s),
        ];
        for (key, value) in all {
            if let Some(value) = value.filter(|value| !(value.is_finite() && *value >= 0.0)) {
                return Err(BearerError::Energy { key, value });
            }
        }
        Ok(())
    }
}

impl BearerSpec {
    /// A bearer of these rates and this one-way delay, and nothing else.
    #[must_use]
    pub fn of_rates(up_bits_per_s: Option<f64>, down_bits_per_s: Option<f64>, traversal_s: f64) -> Self {
        Self {
            up_bits_per_s,
            down_bits_per_s,
            rates_count: Layer::default(),
            traversal_s,
            traversal_sd_s: 0.0,
            traversal: None,
            traversal_up: None,
            traversal_down: None,
            traversal_holds_s: 0.0,
            traversal_reorders: false,
            mtu_bytes: ethernet_mtu(),
            packet_overhead_bytes: 0,
            link_encryption: LinkEncryption::None,
            ip_bytes: ip_header(),
            udp_bytes: udp_header(),
            loss: 0.0,
            loss_up: None,
            loss_down: None,
            loss_burst_packets: 0.0,
            loss_burst_packets_up: None,
            loss_burst_packets_down: None,
            burst_loss: None,
            burst_loss_up: None,
            burst_loss_down: None,
            duplication: 0.0,
            reordering: 0.0,
            reordering_s: 0.0,
            half_duplex: false,
            turnaround_s: 0.0,
            setup_s: 0.0,
            setup: None,
            idle_after_s: None,
            queue_bytes: None,
            queue_bytes_up: None,
            queue_bytes_down: None,
            queue_packets: None,
            duty_cycle_up: 1.0,
            duty_cycle_down: 1.0,
            pause_up_s: 0.0,
            pause_down_s: 0.0,
            energy: EnergySpec::default(),
        }
    }

    fn setup_time(&self) -> Result<Distribution, BearerError> {
        let key = if self.setup.is_some() { "setup" } else { "setup_s" };
        let spec = self.setup.clone().unwrap_or(DistributionSpec::Constant { s: self.setup_s });
        Distribution::try_from(&spec).map_err(|error| match (&self.setup, error) {
            (None, _) => BearerError::Time { key, value: self.setup_s },
            (Some(_), error) => BearerError::Distribution { key, error },
        })
    }

    fn way(&self, direction: Direction) -> Result<Way, BearerError> {
        let bytes = |own: Option<u64>| own.or(self.queue_bytes);
        Ok(match direction {
            Direction::Up => Way {
                rate: rate("up_bits_per_s", self.up_bits_per_s)?,
                delay: self.delay("traversal_up", self.traversal_up.as_ref())?,
                loss: self.loss_process(
                    ("loss_up", self.loss_up),
                    ("loss_burst_packets_up", self.loss_burst_packets_up),
                    self.burst_loss_up,
                )?,
                bound: Bound { bytes: bytes(self.queue_bytes_up), units: self.queue_packets },
                silence: silence(("duty_cycle_up", self.duty_cycle_up), ("pause_up_s", self.pause_up_s))?,
                purposes: [Purpose::LOSS_UP, Purpose::DUPLICATION_UP, Purpose::DELAY_UP],
            },
            Direction::Down => Way {
                rate: rate("down_bits_per_s", self.down_bits_per_s)?,
                delay: self.delay("traversal_down", self.traversal_down.as_ref())?,
                loss: self.loss_process(
                    ("loss_down", self.loss_down),
                    ("loss_burst_packets_down", self.loss_burst_packets_down),
                    self.burst_loss_down,
                )?,
                bound: Bound { bytes: bytes(self.queue_bytes_down), units: self.queue_packets },
                silence: silence(
                    ("duty_cycle_down", self.duty_cycle_down),
                    ("pause_down_s", self.pause_down_s),
                )?,
                purposes: [Purpose::LOSS_DOWN, Purpose::DUPLICATION_DOWN, Purpose::DELAY_DOWN],
            },
        })
    }

    fn delay(&self, key: &'static str, own: Option<&DistributionSpec>) -> Result<Distribution, BearerError> {
        let (key, spec) = match (own, &self.traversal) {
            (Some(own), _) => (key, own.clone()),
            (None, Some(both)) => ("traversal", both.clone()),
            (None, None) => {
                let (mean_s, sd_s) = (self.traversal_s, self.traversal_sd_s);
                ("traversal_s", DistributionSpec::Normal { mean_s, sd_s, minimum_s: 0.0 })
            }
        };
        Distribution::try_from(&spec).map_err(|error| BearerError::Distribution { key, error })
    }

    fn loss_process(
        &self,
        own: (&'static str, Option<f64>),
        own_burst: (&'static str, Option<f64>),
        own_states: Option<BurstSpec>,
    ) -> Result<LossProcess, BearerError> {
        // A direction's own loss is not overruled by what holds for both.
        let states = if own.1.is_some() { own_states } else { own_states.or(self.burst_loss) };
        if let Some(burst) = &states {
            return Ok(LossProcess::GilbertElliott {
                worsens: probability("burst_loss.worsens", burst.worsens)?,
                recovers: probability("burst_loss.recovers", burst.recovers)?,
                good: probability("burst_loss.good", burst.good)?,
                bad: probability("burst_loss.bad", burst.bad)?,
                is_bad: false,
            });
        }
        let (key, loss) = own.1.map_or(("loss", self.loss), |loss| (own.0, loss));
        let independent = probability(key, loss)?;
        let (key, burst) =
            own_burst.1.map_or(("loss_burst_packets", self.loss_burst_packets), |burst| (own_burst.0, burst));
        if !(burst.is_finite() && (burst == 0.0 || burst >= 1.0)) {
            return Err(BearerError::Burst { key, value: burst });
        }
        if independent.is_never() {
            return Ok(LossProcess::None);
        }
        // By chance alone 1 / (1 - loss) are lost in a row.
        if loss >= 1.0 || burst <= 1.0 / (1.0 - loss) {
            return Ok(LossProcess::Independent(independent));
        }
        // Lost in the bad state only, which is left once in `burst` packets and is the share `loss` of all.
        let recovers = 1.0 / burst;
        Ok(LossProcess::GilbertElliott {
            worsens: probability(key, recovers * loss / (1.0 - loss))?,
            recovers: probability(key, recovers)?,
            good: Probability::NEVER,
            bad: probability(key, 1.0)?,
            is_bad: false,
        })
    }
}

impl Bearer {
    /// Largest network-layer packet.
    #[must_use]
    pub fn mtu_bytes(&self) -> u32 {
        self.mtu_bytes
    }

    /// True where nothing takes any time, is lost, doubled, or changed in length: links are then not needed.
    #[must_use]
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
            && self.shared.is_none()
    }

    /// Mean one-way delay without serialisation, up and down.
    #[must_use]
    pub fn mean_delay_s(&self) -> (f64, f64) {
        (self.up.delay.mean_s(), self.down.delay.mean_s())
    }

    /// A path of its own for a client. What exceeds the MTU is fragmented.
    #[must_use]
    pub fn path<P: Payload>(&self, seed: u64, entity: u64) -> Path<P> {
        let shared = self.shared_of(seed, entity);
        Path::new(self.way(&self.up, seed, entity), self.way(&self.down, seed, entity), shared)
    }

    /// Makes a path of this bearer, which a client has left, what [`path`](Self::path) would make for another, in the
    /// memory that it has.
    pub fn renew<P: Payload>(&self, path: &mut Path<P>, seed: u64, entity: u64) {
        path.renew(self.shared_of(seed, entity));
        path.way(Direction::Up).renew(&self.up.loss, self.streams(&self.up, seed, entity));
        path.way(Direction::Down).renew(&self.down.loss, self.streams(&self.down, seed, entity));
    }

    fn shared_of(&self, seed: u64, entity: u64) -> Option<Shared> {
        let mut shared = self.shared;
        if let Some(radio) = shared.as_mut().and_then(|shared| shared.radio.as_mut()) {
            radio.takes(self.setup_time(seed, entity));
        }
        shared
    }

    fn streams(&self, way: &Way, seed: u64, entity: u64) -> Streams {
        let stream = |purpose, drawn: bool| {
            if drawn { Stream::of(seed, entity, purpose) } else { Stream::seeded(0) }
        };
        let [loss, duplication, delay] = way.purposes;
        let varies = way.delay.as_constant().is_none() || !self.reordering.is_never();
        Streams {
            loss: stream(loss, way.loss.draws()),
            duplication: stream(duplication, !self.duplication.is_never()),
            delay: stream(delay, varies),
        }
    }

    /// How long a client's radio takes to be set up.
    #[must_use]
    pub fn setup_time(&self, seed: u64, entity: u64) -> Ns {
        self.setup
            .as_constant()
            .unwrap_or_else(|| self.setup.draw(&mut Stream::of(seed, entity, Purpose::SETUP)))
    }

    /// The same without the set-up: a path that many clients share, each of which sets up its own radio.
    #[must_use]
    pub fn shared_part(&self) -> Self {
        let mut bearer = self.clone();
        bearer.setup = Distribution::constant(Ns::ZERO);
        bearer.shared = self
            .shared
            .filter(|shared| shared.half_duplex.is_some())
            .map(|shared| Shared { radio: None, ..shared });
        bearer
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
            Some(rate) => Rate::new(rate, loss).bounded(way.bound),
            None => Rate::unlimited(loss),
        };
        let rate = rate.silent(way.silence);
        let overhead = Overhead { inner: rate, bytes: self.overhead_bytes };
        let encapsulation = Encapsulation::counted(self.encryption_bytes, overhead);
        Mtu::new(self.mtu_bytes, TooLong::Fragment, encapsulation)
    }
}

fn rate(key: &'static str, value: Option<f64>) -> Result<Option<RateValue>, BearerError> {
    value.map(|value| RateValue::from_bits_per_s(value).ok_or(BearerError::Rate { key, value })).transpose()
}

fn silence(
    (duty_key, duty_cycle): (&'static str, f64),
    (pause_key, pause_s): (&'static str, f64),
) -> Result<Option<Silence>, BearerError> {
    if !(duty_cycle > 0.0 && duty_cycle <= 1.0) {
        return Err(BearerError::DutyCycle { key: duty_key, value: duty_cycle });
    }
    let pause = seconds(pause_key, pause_s)?;
    let is_any = duty_cycle < 1.0 || pause > Ns::ZERO;
    Ok(is_any.then_some(Silence { duty_cycle, pause }))
}

fn probability(key: &'static str, value: f64) -> Result<Probability, BearerError> {
    Probability::new(value).ok_or(BearerError::Probability { key, value })
}

fn seconds(key: &'static str, value: f64) -> Result<Ns, BearerError> {
    if (0.0..=MAX_SECONDS).contains(&value) {
        Ok(Ns::from_secs_f64(value))
    } else {
        Err(BearerError::Time { key, value })
    }
}
