//! ALOHA (Abramson 1970), pure or slotted, on one or more channels: a station sends a frame as soon as it has one, and
//! frames that overlap on a channel are lost. With carrier sense, unslotted CSMA/CA as in IEEE 802.15.4: before each
//! frame, a station waits for a random time and listens; if the channel is busy, it waits again, longer.
//!
//! After each frame a station is silent as its duty cycle requires. The gateway sends all downlink frames, and receives
//! nothing while it sends; without carrier sense, its own frames are always received.

use super::{Answers, Decision, Packet};
use crate::error::{ScenarioError, check};
use serde::{Deserialize, Serialize};
use shakedown_link::{Direction, MAX_SECONDS, Ns, Stream};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// Contention without a base station.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlohaSpec {
    /// Channels, one of which is drawn for each frame.
    #[serde(default = "one")]
    pub channels: u32,
    /// Frames begin at multiples of this; 0: at any time.
    #[serde(default)]
    pub slot_s: f64,
    /// The maximum number of times that a frame is sent.
    #[serde(default = "one")]
    pub attempts: u32,
    /// The maximum pause before a retransmission; pauses are uniform between 0 and this.
    #[serde(default)]
    pub backoff_s: f64,
    /// Airtime of a frame besides its bytes: preamble, headers, and an acknowledgement for which the sender waits.
    #[serde(default)]
    pub frame_s: f64,
    /// Listening before sending.
    #[serde(default)]
    pub sense: Option<SenseSpec>,
}

/// Carrier sense (IEEE 802.15.4, section 6.2.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SenseSpec {
    /// The unit of waiting times.
    pub unit_s: f64,
    /// The exponent n of the first wait, which is 0 to 2ⁿ - 1 units.
    pub min_exponent: u32,
    /// The maximum exponent; n grows by 1 each time that the channel is busy.
    pub max_exponent: u32,
    /// How often the channel may be found busy before a frame is given up.
    pub busy: u32,
    /// Time from the end of listening to the start of sending.
    pub turnaround_s: f64,
}

fn one() -> u32 {
    1
}

impl AlohaSpec {
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        let mut times = vec![
            ("cell.contention.slot_s", self.slot_s),
            ("cell.contention.backoff_s", self.backoff_s),
            ("cell.contention.frame_s", self.frame_s),
        ];
        let mut counts =
            vec![("cell.contention.channels", self.channels), ("cell.contention.attempts", self.attempts)];
        if let Some(sense) = &self.sense {
            times.push(("cell.contention.sense.unit_s", sense.unit_s));
            times.push(("cell.contention.sense.turnaround_s", sense.turnaround_s));
            counts.push(("cell.contention.sense.busy", sense.busy));
            let (least, most) = (sense.min_exponent, sense.max_exponent);
            let exponents = f64::from(least);
            check("cell.contention.sense.min_exponent", exponents, "0 to max_exponent", least <= most)?;
            check("cell.contention.sense.max_exponent", f64::from(most), "0 to 20", most <= 20)?;
        }
        for (key, s) in times {
            check(key, s, "0 to 1e9", (0.0..=MAX_SECONDS).contains(&s))?;
        }
        for (key, count) in counts {
            check(key, f64::from(count), "1 to 10000", (1..=10_000).contains(&count))?;
        }
        Ok(())
    }
}

const GATEWAY: u64 = u64::MAX;

#[derive(Debug)]
struct Station<P> {
    frames: VecDeque<Packet<P>>,
    /// When its duty cycle allows it to send again.
    free_at: Ns,
    sent: u32,
    found_busy: u32,
}

impl<P> Default for Station<P> {
    fn default() -> Self {
        Self { frames: VecDeque::new(), free_at: Ns::ZERO, sent: 0, found_busy: 0 }
    }
}

/// A frame in the air.
#[derive(Clone, Copy, Debug)]
struct Flying {
    station: u64,
    channel: u64,
    begins: Ns,
    ends: Ns,
    is_lost: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// A frame ends; this is processed before frames that begin at the same time.
    End,
    /// A station sends, or listens first.
    Begin,
}

/// The channels of one cell.
#[derive(Debug)]
pub(super) struct Aloha<P> {
    spec: AlohaSpec,
    stations: BTreeMap<u64, Station<P>>,
    steps: BinaryHeap<Reverse<(Ns, Step, u64)>>,
    flying: Vec<Flying>,
    stream: Stream,
}

impl<P> Aloha<P> {
    pub fn new(spec: &AlohaSpec, stream: Stream) -> Self {
        Self { spec: *spec, stations: BTreeMap::new(), steps: BinaryHeap::new(), flying: Vec::new(), stream }
    }

    pub fn offer(&mut self, now: Ns, packet: Packet<P>) {
        let name = if packet.direction == Direction::Down { GATEWAY } else { packet.client.number };
        let station = self.stations.entry(name).or_default();
        station.frames.push_back(packet);
        if station.frames.len() == 1 {
            let from = station.free_at.max(now);
            self.plan(name, from);
        }
    }

    pub fn next(&self) -> Ns {
        self.steps.peek().map_or(Ns::MAX, |Reverse((at, ..))| *at)
    }

    /// Schedules a station's next frame, not before a time.
    fn plan(&mut self, name: u64, from: Ns) {
        let mut at = from;
        if let Some(sense) = self.spec.sense {
            let busy = self.stations.get(&name).map_or(0, |station| station.found_busy);
            let exponent = (sense.min_exponent + busy).min(sense.max_exponent);
            at += Ns::from_secs_f64(sense.unit_s * self.stream.below(1 << exponent) as f64);
        }
        if self.spec.slot_s > 0.0 {
            let slot = Ns::from_secs_f64(self.spec.slot_s).0.max(1);
            at = Ns(at.0.div_ceil(slot) * slot);
        }
        self.steps.push(Reverse((at, Step::Begin, name)));
    }

    pub fn act(&mut self, now: Ns, answers: &mut Answers<P>) {
        while let Some(Reverse((at, step, name))) = self.steps.peek().copied() {
            if at > now {
                return;
            }
            self.steps.pop();
            match step {
                Step::Begin => self.begin(at, name, answers),
                Step::End => self.end(at, name, answers),
            }
        }
    }

    fn begin(&mut self, at: Ns, name: u64, answers: &mut Answers<P>) {
        let channel = self.stream.below(u64::from(self.spec.channels));
        let Some(station) = self.stations.get_mut(&name) else { return };
        let mut begins = at;
        if let Some(sense) = &self.spec.sense {
            let is_busy =
                self.flying.iter().any(|one| one.channel == channel && one.begins <= at && at < one.ends);
            if is_busy {
                station.found_busy += 1;
                if station.found_busy > sense.busy {
                    self.fail(at, name, None, answers);
                } else {
                    self.plan(name, at);
                }
                return;
            }
            begins += Ns::from_secs_f64(sense.turnaround_s);
        }
        let Some(frame) = station.frames.front() else { return };
        let ends = begins + frame.airtime + Ns::from_secs_f64(self.spec.frame_s);
        station.free_at = ends + frame.silence;
        station.sent += 1;
        let mut own = Flying { station: name, channel, begins, ends, is_lost: false };
        for other in &mut self.flying {
            if other.channel == channel && other.begins < ends && begins < other.ends {
                // Without carrier sense, the gateway's frames are received; it receives nothing while it sends.
                own.is_lost |= name != GATEWAY || self.spec.sense.is_some();
                other.is_lost |= other.station != GATEWAY || self.spec.sense.is_some();
            }
        }
        self.flying.push(own);
        answers.tally.transmissions += 1;
        self.steps.push(Reverse((ends, Step::End, name)));
    }

    fn end(&mut self, at: Ns, name: u64, answers: &mut Answers<P>) {
        let Some(place) = self.flying.iter().position(|one| one.station == name && one.ends == at) else {
            return;
        };
        let own = self.flying.swap_remove(place);
        if own.is_lost {
            answers.tally.collisions += 1;
            answers.tally.collided += 1;
            self.fail(at, name, Some(own.begins), answers);
            return;
        }
        let Some(station) = self.stations.get_mut(&name) else { return };
        if let Some(packet) = station.frames.pop_front() {
            answers.tally.carries(&packet, own.begins);
            answers.decisions.push(Decision::Sent { packet, from: own.begins });
        }
        self.proceed(at, name);
    }

    /// A frame was not received, or could not be sent.
    fn fail(&mut self, at: Ns, name: u64, from: Option<Ns>, answers: &mut Answers<P>) {
        let attempts = self.spec.attempts;
        let Some(station) = self.stations.get_mut(&name) else { return };
        let gives_up = from.is_none() || station.sent >= attempts;
        if gives_up {
            if let Some(packet) = station.frames.pop_front() {
                answers.decisions.push(Decision::Lost { packet, from });
            }
            self.proceed(at, name);
            return;
        }
        if let (Some(packet), Some(from)) = (station.frames.front(), from) {
            answers.decisions.push(Decision::Spent {
                client: packet.client,
                direction: packet.direction,
                bytes: packet.bytes,
                from,
            });
        }
        station.found_busy = 0;
        let pause = Ns::from_secs_f64(self.spec.backoff_s * self.stream.uniform());
        let from = station.free_at.max(at + pause);
        self.plan(name, from);
    }

    /// Proceeds to the station's next frame, if it has one.
    fn proceed(&mut self, at: Ns, name: u64) {
        let Some(station) = self.stations.get_mut(&name) else { return };
        (station.sent, station.found_busy) = (0, 0);
        let from = station.free_at.max(at);
        if !station.frames.is_empty() {
            self.plan(name, from);
        } else if from == at {
            self.stations.remove(&name);
        }
    }
}
