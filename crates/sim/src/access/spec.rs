//! A cell as plain data, and the media that a scenario's classes share.

use super::Scheduler;
use super::aloha::AlohaSpec;
use super::circuits::CircuitsSpec;
use super::csma::CsmaSpec;
use super::random_access::RandomAccessSpec;
use crate::error::{ScenarioError, check};
use serde::{Deserialize, Serialize};
use shakedown_link::{BearerSpec, Direction, MAX_SECONDS, Ns, RateValue, Silence};

/// The cells of a kind of clients. Kinds with the same `medium` share their cells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellSpec {
    /// The number of cells; clients are distributed over them evenly.
    pub count: u32,
    /// The name of the shared medium.
    #[serde(default)]
    pub medium: String,
    /// A cell's rate from clients of this kind; `None`: that of one client, or with circuits no limit.
    #[serde(default)]
    pub up_bits_per_s: Option<f64>,
    /// A cell's rate to clients of this kind; `None` as above.
    #[serde(default)]
    pub down_bits_per_s: Option<f64>,
    /// Both directions share the cell's time.
    #[serde(default)]
    pub half_duplex: bool,
    /// Which packet is served next.
    #[serde(default)]
    pub scheduler: Scheduler,
    /// A radio becomes idle if its client pauses for longer than this between attempts; `None`: never.
    #[serde(default)]
    pub idle_after_s: Option<f64>,
    /// How a client whose radio is idle is admitted; `None`: at once. Kinds with the same entry share it.
    #[serde(default)]
    pub entry: Option<EntrySpec>,
    /// How packets share the air; `None`: the scheduler decides.
    #[serde(default)]
    pub contention: Option<ContentionSpec>,
}

/// How a client whose radio is idle is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum EntrySpec {
    /// By preambles at opportunities.
    RandomAccess(RandomAccessSpec),
    /// By a channel for each client, if one is free.
    Circuits(CircuitsSpec),
}

/// How packets share the air without a base station.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ContentionSpec {
    /// 802.11's carrier sense.
    Csma(CsmaSpec),
    /// ALOHA, and 802.15.4's carrier sense.
    Aloha(AlohaSpec),
}

/// The cells of a medium.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MediumPlan {
    pub(super) name: String,
    pub count: u32,
    pub half_duplex: bool,
    pub scheduler: Scheduler,
    pub contention: Option<ContentionSpec>,
    pub entries: Vec<EntrySpec>,
    /// Clients per second in its cells, and their share of all clients; `None` without a steady rate.
    pub steady: Option<(f64, f64)>,
}

impl MediumPlan {
    /// Channels of all its cells.
    pub fn channels(&self) -> u64 {
        let each = match &self.contention {
            Some(ContentionSpec::Aloha(spec)) => spec.channels,
            Some(ContentionSpec::Csma(_)) | None => 1,
        };
        u64::from(self.count) * u64::from(each)
    }

    /// Both directions share a channel's time.
    pub fn shares_time(&self) -> bool {
        self.half_duplex || self.contention.is_some()
    }
}

/// The cell settings of a class.
#[derive(Clone, Debug)]
pub struct CellOf {
    /// The index of its medium among those of the scenario.
    pub(crate) medium: usize,
    /// The index of its entry among those of the medium.
    pub(super) entry: Option<usize>,
    silences: [Option<Silence>; 2],
    rates: [Option<RateValue>; 2],
    /// Bytes that its link adds to a packet.
    pub(super) link_bytes: u32,
    /// The sizes of a client's own queues.
    queue_bytes: [u64; 2],
    /// The maximum pause for which its radio stays connected.
    pub(super) idle_after: Ns,
}

impl CellOf {
    /// The cell settings of a class. Its medium is added to `media` if it is new.
    pub(crate) fn new(
        class: usize,
        cell: &CellSpec,
        bearer: &BearerSpec,
        media: &mut Vec<MediumPlan>,
    ) -> Result<Self, ScenarioError> {
        let count = f64::from(cell.count);
        check("cell.count", count, "1 to 1000000", (1..=1_000_000).contains(&cell.count))?;
        let idle_after_s = cell.idle_after_s.unwrap_or(MAX_SECONDS);
        let accepted = "0 to 1e9";
        check("cell.idle_after_s", idle_after_s, accepted, (0.0..=MAX_SECONDS).contains(&idle_after_s))?;
        let plan = MediumPlan {
            name: cell.medium.clone(),
            count: cell.count,
            half_duplex: cell.half_duplex,
            scheduler: cell.scheduler,
            contention: cell.contention,
            entries: Vec::new(),
            steady: None,
        };
        match &cell.contention {
            Some(ContentionSpec::Csma(spec)) => spec.check()?,
            Some(ContentionSpec::Aloha(spec)) => spec.check()?,
            None => {}
        }
        match &cell.entry {
            Some(EntrySpec::RandomAccess(spec)) => spec.check()?,
            Some(EntrySpec::Circuits(spec)) => spec.check()?,
            None => {}
        }
        let medium = match media.iter().position(|one| one.name == plan.name) {
            Some(medium) if plan == (MediumPlan { entries: Vec::new(), ..media[medium].clone() }) => medium,
            Some(_) => return Err(ScenarioError::Medium { class, medium: plan.name }),
            None => {
                media.push(plan);
                media.len() - 1
            }
        };
        let entries = &mut media[medium].entries;
        let entry = cell.entry.map(|entry| {
            entries.iter().position(|one| *one == entry).unwrap_or_else(|| {
                entries.push(entry);
                entries.len() - 1
            })
        });
        let shares = !matches!(cell.entry, Some(EntrySpec::Circuits(_)));
        let own = |rate: Option<f64>| rate.filter(|_| shares);
        let up = rate("cell.up_bits_per_s", cell.up_bits_per_s.or(own(bearer.up_bits_per_s)))?;
        let down = rate("cell.down_bits_per_s", cell.down_bits_per_s.or(own(bearer.down_bits_per_s)))?;
        let queue_bytes = [bearer.queue_bytes_up, bearer.queue_bytes_down]
            .map(|own| own.or(bearer.queue_bytes).unwrap_or(u64::MAX));
        Ok(Self {
            medium,
            entry,
            silences: bearer.silences().map_err(|error| ScenarioError::Bearer { class, error })?,
            rates: [up, down],
            link_bytes: bearer.link_bytes(),
            queue_bytes,
            idle_after: Ns::from_secs_f64(idle_after_s),
        })
    }

    /// How long a packet occupies the cell.
    pub(super) fn airtime(&self, direction: Direction, bytes: u32) -> Ns {
        self.rates[usize::from(direction == Direction::Down)]
            .map_or(Ns::ZERO, |rate| rate.time_of(bytes + self.link_bytes))
    }

    /// How long its sender is silent after a packet.
    pub(super) fn silence(&self, direction: Direction, airtime: Ns) -> Ns {
        self.silences[usize::from(direction == Direction::Down)]
            .map_or(Ns::ZERO, |silence| silence.after(airtime))
    }

    /// Whether a client's own queue can hold N bytes.
    pub(super) fn holds(&self, direction: Direction, bytes: u64) -> bool {
        bytes <= self.queue_bytes[usize::from(direction == Direction::Down)]
    }
}

fn rate(key: &'static str, value: Option<f64>) -> Result<Option<RateValue>, ScenarioError> {
    let Some(value) = value else { return Ok(None) };
    let accepted = "above 0 and below 9e15";
    RateValue::from_bits_per_s(value).map(Some).ok_or(ScenarioError::Value { key, value, accepted })
}
