//! CSMA/CA as in IEEE 802.11's distributed coordination function, basic access: a station with a frame waits for a
//! random number of idle slots. Stations whose waits end in the same slot collide, and draw from twice as many slots.
//!
//! Time is divided into slots as in Bianchi's model (2000): for waiting stations, a transmission of any length is one
//! slot. Clients are stations; the access point is one more station, which sends all downlink frames.

use super::{Answers, Decision, Packet};
use crate::error::{ScenarioError, check};
use serde::{Deserialize, Serialize};
use shakedown_link::{Direction, MAX_SECONDS, Ns, Stream};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Contention for a channel by carrier sense.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CsmaSpec {
    /// The duration of an idle slot.
    pub slot_s: f64,
    /// The number of slots from which the first wait of a frame is drawn.
    pub window: u32,
    /// The maximum number of slots from which a wait is drawn.
    pub max_window: u32,
    /// The maximum number of times that a frame is sent.
    pub attempts: u32,
    /// Airtime of a frame besides its bytes: preamble and headers.
    pub frame_s: f64,
    /// Time after a received frame: the pause before its acknowledgement, and the acknowledgement.
    pub acknowledgement_s: f64,
    /// Time for which the channel is idle before slots are counted.
    pub idle_s: f64,
}

impl CsmaSpec {
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        let s = self.slot_s;
        check("cell.contention.slot_s", s, "1e-9 to 1e9", (1e-9..=MAX_SECONDS).contains(&s))?;
        for (key, s) in [
            ("cell.contention.frame_s", self.frame_s),
            ("cell.contention.acknowledgement_s", self.acknowledgement_s),
            ("cell.contention.idle_s", self.idle_s),
        ] {
            check(key, s, "0 to 1e9", (0.0..=MAX_SECONDS).contains(&s))?;
        }
        for (key, count) in [
            ("cell.contention.window", self.window),
            ("cell.contention.max_window", self.max_window),
            ("cell.contention.attempts", self.attempts),
        ] {
            check(key, f64::from(count), "1 to 1000000", (1..=1_000_000).contains(&count))?;
        }
        let accepted = "window or more";
        check(
            "cell.contention.max_window",
            f64::from(self.max_window),
            accepted,
            self.max_window >= self.window,
        )
    }
}

/// The station that sends all downlink frames.
const ACCESS_POINT: u64 = u64::MAX;

#[derive(Debug)]
struct Station<P> {
    frames: VecDeque<Packet<P>>,
    window: u32,
    sent: u32,
}

/// The channel of one cell.
#[derive(Debug)]
pub(super) struct Csma<P> {
    spec: CsmaSpec,
    slot: Ns,
    stations: BTreeMap<u64, Station<P>>,
    /// The slot in which each station with a frame sends.
    due: BTreeSet<(u64, u64)>,
    /// `first` is the slot that begins at `idle_from`, from which on the channel is idle.
    first: u64,
    idle_from: Ns,
    /// The stations that send, the time since which they send, and the time until which the channel is occupied.
    sending: Vec<u64>,
    since: Ns,
    until: Ns,
    stream: Stream,
}

impl<P> Csma<P> {
    pub fn new(spec: &CsmaSpec, stream: Stream) -> Self {
        Self {
            spec: *spec,
            slot: Ns::from_secs_f64(spec.slot_s),
            stations: BTreeMap::new(),
            due: BTreeSet::new(),
            first: 0,
            idle_from: Ns::ZERO,
            sending: Vec::new(),
            since: Ns::ZERO,
            until: Ns::ZERO,
            stream,
        }
    }

    pub fn offer(&mut self, now: Ns, packet: Packet<P>) {
        let name = if packet.direction == Direction::Down { ACCESS_POINT } else { packet.client.number };
        let window = self.spec.window;
        let station =
            self.stations.entry(name).or_insert(Station { frames: VecDeque::new(), window, sent: 0 });
        station.frames.push_back(packet);
        if station.frames.len() == 1 {
            // Slots that have been idle, rounded up.
            let over =
                if self.sending.is_empty() { now.since(self.idle_from).0.div_ceil(self.slot.0) } else { 1 };
            self.draw(name, self.first + over);
        }
    }

    fn draw(&mut self, name: u64, from: u64) {
        if let Some(station) = self.stations.get(&name) {
            let slots = self.stream.below(u64::from(station.window));
            self.due.insert((from + slots, name));
        }
    }

    pub fn next(&self) -> Ns {
        if !self.sending.is_empty() {
            return self.until;
        }
        self.due.first().map_or(Ns::MAX, |(slot, _)| self.begins(*slot))
    }

    fn begins(&self, slot: u64) -> Ns {
        self.idle_from + Ns((slot - self.first) * self.slot.0)
    }

    pub fn act(&mut self, now: Ns, answers: &mut Answers<P>) {
        if self.sending.is_empty() {
            if let Some((slot, _)) = self.due.first().copied().filter(|(slot, _)| self.begins(*slot) <= now) {
                self.send(slot, answers);
            }
        } else if self.until <= now {
            self.end(answers);
        }
    }

    /// All stations whose slot this is send at once.
    fn send(&mut self, slot: u64, answers: &mut Answers<P>) {
        self.since = self.begins(slot);
        let mut longest = Ns::ZERO;
        while let Some((due, name)) = self.due.first().copied().filter(|(due, _)| *due == slot) {
            self.due.remove(&(due, name));
            if let Some(packet) = self.stations.get(&name).and_then(|station| station.frames.front()) {
                longest = longest.max(packet.airtime);
                self.sending.push(name);
            }
        }
        let alone = self.sending.len() == 1;
        let after_s = self.spec.idle_s + if alone { self.spec.acknowledgement_s } else { 0.0 };
        let taken = Ns::from_secs_f64(self.spec.frame_s) + longest;
        self.until = self.since + taken + Ns::from_secs_f64(after_s);
        self.first = slot;
        answers.tally.transmissions += self.sending.len() as u64;
        if !alone {
            answers.tally.collisions += 1;
            answers.tally.collided += self.sending.len() as u64;
        }
    }

    /// The channel is free again.
    fn end(&mut self, answers: &mut Answers<P>) {
        let sent = std::mem::take(&mut self.sending);
        let alone = sent.len() == 1;
        self.first += 1;
        self.idle_from = self.until;
        for name in sent {
            let Some(station) = self.stations.get_mut(&name) else { continue };
            station.sent += 1;
            let over = alone || station.sent >= self.spec.attempts;
            if over {
                station.sent = 0;
                station.window = self.spec.window;
            } else {
                station.window = (station.window * 2).min(self.spec.max_window);
            }
            let frame = if over { station.frames.pop_front() } else { None };
            let is_idle = station.frames.is_empty();
            match frame {
                Some(packet) if alone => {
                    answers.tally.carries(&packet, self.since);
                    answers.decisions.push(Decision::Sent { packet, from: self.since });
                }
                Some(packet) => answers.decisions.push(Decision::Lost { packet, from: Some(self.since) }),
                None => {
                    if let Some(packet) = station.frames.front() {
                        answers.decisions.push(Decision::Spent {
                            client: packet.client,
                            direction: packet.direction,
                            bytes: packet.bytes,
                            from: self.since,
                        });
                    }
                }
            }
            if is_idle {
                self.stations.remove(&name);
            } else {
                self.draw(name, self.first);
            }
        }
    }
}
