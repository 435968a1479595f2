//! Bearer profiles as plain data.

use super::Way;
use crate::cipher::{CCMP_OVERHEAD_BYTES, WEP_OVERHEAD_BYTES};
use crate::{
    Direction, Distribution, DistributionError, DistributionSpec, LossProcess, MAX_SECONDS, Ns, Probability,
    Purpose, RateValue, Silence,
};
use serde::{Deserialize, Serialize};

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
    /// Bytes that the encryption adds to each frame.
    pub fn overhead_bytes(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Wep => WEP_OVERHEAD_BYTES,
            Self::Ccmp => CCMP_OVERHEAD_BYTES,
        }
    }
}

/// How a bearer treats super-packets, in which Linux's TCP combines several segments (GSO, TSO).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SuperPackets {
    /// They are segmented before the link, as before a wire: each segment is lost independently.
    #[default]
    None,
    /// They are lost, duplicated and delayed as a whole, and segmented before they arrive: netem on an interface
    /// without offloads, since Linux 4.17. TCP still builds them, and they are segmented after the queueing discipline.
    Cut,
    /// The same, but they arrive as a whole: netem on an interface with offloads that ends on the same machine (veth).
    Whole,
}

/// Power and energy of a radio; `None` if unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EnergySpec {
    /// Power while sending.
    pub send_w: Option<f64>,
    /// Power while receiving.
    pub receive_w: Option<f64>,
    /// Power while set up, but neither sending nor receiving.
    pub idle_w: Option<f64>,
    /// Energy per byte sent.
    pub send_j_per_byte: Option<f64>,
    /// Energy per byte received.
    pub receive_j_per_byte: Option<f64>,
    /// Energy of a set-up from idle.
    pub setup_j: Option<f64>,
    /// Power while the radio stays connected after the last byte, for `tail_s`.
    pub tail_w: Option<f64>,
    pub tail_s: Option<f64>,
    /// Energy of each set-up after the first, with that of the whole tail before it.
    pub again_j: Option<f64>,
    /// Without a cell, the radio becomes idle in a pause between attempts that is longer than this; `None`: never.
    pub idle_after_s: Option<f64>,
}

/// The fields of a bearer profile. Times in seconds, rates in bit/s, lengths in bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BearerSpec {
    /// Rate from the client; `None`: transmission takes no time.
    pub up_bits_per_s: Option<f64>,
    /// Rate to the client; `None`: transmission takes no time.
    pub down_bits_per_s: Option<f64>,
    /// Mean of the one-way delay that does not depend on size.
    pub traversal_s: f64,
    /// Its standard deviation; the distribution is normal, truncated at 0.
    #[serde(default)]
    pub traversal_sd_s: f64,
    /// One-way delay as a distribution; replaces the two above.
    #[serde(default)]
    pub traversal: Option<DistributionSpec>,
    /// The same from the client, if it differs.
    #[serde(default)]
    pub traversal_up: Option<DistributionSpec>,
    /// The same to the client, if it differs.
    #[serde(default)]
    pub traversal_down: Option<DistributionSpec>,
    /// How long a drawn delay is kept for later units.
    #[serde(default)]
    pub traversal_holds_s: f64,
    /// Whether units with a shorter delay overtake earlier ones.
    #[serde(default)]
    pub traversal_reorders: bool,
    /// Largest network-layer packet.
    #[serde(default = "ethernet_mtu")]
    pub mtu_bytes: u32,
    #[serde(default)]
    pub packet_overhead_bytes: u32,
    /// Link encryption; its overhead is added to `packet_overhead_bytes`.
    #[serde(default)]
    pub link_encryption: LinkEncryption,
    /// Network-layer header of a packet and of each of its fragments, as compressed.
    #[serde(default = "ip_header")]
    pub ip_bytes: u32,
    /// Header of a datagram, as compressed.
    #[serde(default = "udp_header")]
    pub udp_bytes: u32,
    /// Probability that a packet is lost.
    #[serde(default)]
    pub loss: f64,
    /// The same from the client, if it differs.
    #[serde(default)]
    pub loss_up: Option<f64>,
    /// The same to the client, if it differs.
    #[serde(default)]
    pub loss_down: Option<f64>,
    /// Mean number of consecutive lost packets; up to the mean of independent loss, loss is independent.
    #[serde(default)]
    pub loss_burst_packets: f64,
    /// The same from the client, if it differs.
    #[serde(default)]
    pub loss_burst_packets_up: Option<f64>,
    /// The same to the client, if it differs.
    #[serde(default)]
    pub loss_burst_packets_down: Option<f64>,
    /// Probability that a packet is duplicated.
    #[serde(default)]
    pub duplication: f64,
    /// Probability that a packet is held back for `reordering_s`.
    #[serde(default)]
    pub reordering: f64,
    #[serde(default)]
    pub reordering_s: f64,
    /// How TCP's super-packets are treated.
    #[serde(default)]
    pub super_packets: SuperPackets,
    /// Whether both directions share one medium.
    #[serde(default)]
    pub half_duplex: bool,
    /// Set-up time of an idle radio, drawn once per path; `None`: it takes no time.
    #[serde(default)]
    pub setup: Option<DistributionSpec>,
    /// Depth of the sender's drop-tail queue, including the packet in service; `None`: unlimited.
    #[serde(default)]
    pub queue_bytes: Option<u64>,
    /// The same from the client, if it differs.
    #[serde(default)]
    pub queue_bytes_up: Option<u64>,
    /// The same to the client, if it differs.
    #[serde(default)]
    pub queue_bytes_down: Option<u64>,
    /// Share of the time that may be spent sending from the client.
    #[serde(default = "always")]
    pub duty_cycle_up: f64,
    /// Share of the time that may be spent sending to the client.
    #[serde(default = "always")]
    pub duty_cycle_down: f64,
    /// Silence after each packet from the client.
    #[serde(default)]
    pub pause_up_s: f64,
    /// Silence after each packet to the client.
    #[serde(default)]
    pub pause_down_s: f64,
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

fn always() -> f64 {
    1.0
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BearerError {
    #[error("{key} is {value}; accepted: above 0 and below 9e15")]
    Rate { key: &'static str, value: f64 },
    #[error("{key} is {value}; accepted: 0 to 1")]
    Probability { key: &'static str, value: f64 },
    #[error("{key} is {value}; accepted: 0 to 1e9 seconds")]
    Time { key: &'static str, value: f64 },
    #[error("{key}: {error}")]
    Distribution { key: &'static str, error: DistributionError },
    #[error("mtu_bytes is {value}; accepted: {least} or more (ip_bytes + 8), so that a fragment has room")]
    Mtu { value: u32, least: u32 },
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

impl EnergySpec {
    pub(super) fn check(&self) -> Result<(), BearerError> {
        let all = [
            ("send_w", self.send_w),
            ("receive_w", self.receive_w),
            ("idle_w", self.idle_w),
            ("send_j_per_byte", self.send_j_per_byte),
            ("receive_j_per_byte", self.receive_j_per_byte),
            ("setup_j", self.setup_j),
            ("tail_w", self.tail_w),
            ("tail_s", self.tail_s),
            ("again_j", self.again_j),
            ("idle_after_s", self.idle_after_s),
        ];
        for (key, value) in all {
            if let Some(value) = value.filter(|value| !(value.is_finite() && *value >= 0.0)) {
                return Err(BearerError::Energy { key, value });
            }
        }
        Ok(())
    }

    /// True if the radio of a client without a cell becomes idle in a pause of this length between attempts.
    pub fn is_idle_in(&self, pause: Ns) -> bool {
        self.idle_after_s.is_some_and(|after_s| pause > Ns::from_secs_f64(after_s))
    }
}

impl BearerSpec {
    /// Bytes that the link adds to each packet, including those of encryption.
    pub fn link_bytes(&self) -> u32 {
        self.packet_overhead_bytes + self.link_encryption.overhead_bytes()
    }

    pub(super) fn setup_time(&self) -> Result<Distribution, BearerError> {
        let Some(spec) = &self.setup else { return Ok(Distribution::constant(Ns::ZERO)) };
        Distribution::try_from(spec).map_err(|error| BearerError::Distribution { key: "setup", error })
    }

    pub(super) fn way(&self, direction: Direction) -> Result<Way, BearerError> {
        Ok(match direction {
            Direction::Up => Way {
                rate: rate("up_bits_per_s", self.up_bits_per_s)?,
                delay: self.delay("traversal_up", self.traversal_up.as_ref())?,
                loss: self.loss_process(
                    ("loss_up", self.loss_up),
                    ("loss_burst_packets_up", self.loss_burst_packets_up),
                )?,
                queue_bytes: self.queue_bytes_up.or(self.queue_bytes),
                silence: self.silences()?[0],
                purposes: [Purpose::LOSS_UP, Purpose::DUPLICATION_UP, Purpose::DELAY_UP],
            },
            Direction::Down => Way {
                rate: rate("down_bits_per_s", self.down_bits_per_s)?,
                delay: self.delay("traversal_down", self.traversal_down.as_ref())?,
                loss: self.loss_process(
                    ("loss_down", self.loss_down),
                    ("loss_burst_packets_down", self.loss_burst_packets_down),
                )?,
                queue_bytes: self.queue_bytes_down.or(self.queue_bytes),
                silence: self.silences()?[1],
                purposes: [Purpose::LOSS_DOWN, Purpose::DUPLICATION_DOWN, Purpose::DELAY_DOWN],
            },
        })
    }

    /// The silence after each unit, from the client and to it.
    pub fn silences(&self) -> Result<[Option<Silence>; 2], BearerError> {
        Ok([
            silence(("duty_cycle_up", self.duty_cycle_up), ("pause_up_s", self.pause_up_s))?,
            silence(("duty_cycle_down", self.duty_cycle_down), ("pause_down_s", self.pause_down_s))?,
        ])
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
    ) -> Result<LossProcess, BearerError> {
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
        // With independent loss, 1 / (1 - loss) packets are lost in a row on average.
        if loss >= 1.0 || burst <= 1.0 / (1.0 - loss) {
            return Ok(LossProcess::Independent(independent));
        }
        // The bad state lasts `burst` packets on average and has the share `loss`.
        let recovers = 1.0 / burst;
        Ok(LossProcess::Bursts {
            worsens: probability(key, recovers * loss / (1.0 - loss))?,
            recovers: probability(key, recovers)?,
            is_bad: false,
        })
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

pub(super) fn probability(key: &'static str, value: f64) -> Result<Probability, BearerError> {
    Probability::new(value).ok_or(BearerError::Probability { key, value })
}

pub(super) fn seconds(key: &'static str, value: f64) -> Result<Ns, BearerError> {
    if (0.0..=MAX_SECONDS).contains(&value) {
        Ok(Ns::from_secs_f64(value))
    } else {
        Err(BearerError::Time { key, value })
    }
}
