//! Random access as in LTE, LTE-M and NB-IoT (3GPP TS 36.321, section 5.1): a client sends a preamble at the next
//! opportunity; without a response within a window it pauses and tries again, as often as its attempts allow.

use super::{Answers, ClientRef, Decision};
use crate::error::{ScenarioError, check};
use serde::{Deserialize, Serialize};
use shakedown_link::{MAX_SECONDS, Ns, Probability, Stream};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// The preambles that a base station detects. It decodes none that several clients sent at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Detection {
    /// All preambles.
    #[default]
    Certain,
    /// The i-th of an access, whose power grows with i, with probability 1 - e⁻ⁱ (3GPP TR 37.868, table 6.2.2.1.1).
    Ramping,
}

/// Random access to a cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomAccessSpec {
    /// Time from one opportunity to the next.
    pub opportunity_s: f64,
    /// The number of preambles of an opportunity.
    pub preambles: u32,
    /// The maximum number of preambles that a client sends in one access.
    pub attempts: u32,
    /// Time from an opportunity until a client without a response stops waiting.
    pub response_s: f64,
    /// Time from an opportunity until the client is connected, if no message is repeated.
    pub connect_s: f64,
    /// The maximum pause before another attempt; pauses are uniform between 0 and this.
    pub backoff_s: f64,
    /// The maximum number of preambles answered at an opportunity; `None`: all that are detected.
    #[serde(default)]
    pub grants: Option<u32>,
    /// How preambles are detected.
    #[serde(default)]
    pub detection: Detection,
    /// The probability that a transmission of one of the two messages after the response has to be repeated.
    #[serde(default)]
    pub repetition: f64,
    /// The time of each repetition.
    #[serde(default)]
    pub repetition_s: f64,
    /// The maximum number of transmissions of each message.
    #[serde(default = "once")]
    pub transmissions: u32,
}

fn once() -> u32 {
    1
}

impl RandomAccessSpec {
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        let s = self.opportunity_s;
        check("cell.entry.opportunity_s", s, "1e-6 to 1e9", (1e-6..=MAX_SECONDS).contains(&s))?;
        for (key, s) in [
            ("cell.entry.response_s", self.response_s),
            ("cell.entry.connect_s", self.connect_s),
            ("cell.entry.backoff_s", self.backoff_s),
            ("cell.entry.repetition_s", self.repetition_s),
        ] {
            check(key, s, "0 to 1e9", (0.0..=MAX_SECONDS).contains(&s))?;
        }
        for (key, count) in [
            ("cell.entry.preambles", self.preambles),
            ("cell.entry.attempts", self.attempts),
            ("cell.entry.grants", self.grants.unwrap_or(1)),
            ("cell.entry.transmissions", self.transmissions),
        ] {
            check(key, f64::from(count), "1 to 10000", (1..=10_000).contains(&count))?;
        }
        check("cell.entry.repetition", self.repetition, "0 to 1", (0.0..=1.0).contains(&self.repetition))
    }
}

/// A client that waits to send a preamble.
#[derive(Clone, Copy, Debug)]
struct Contender {
    client: ClientRef,
    since: Ns,
    sent: u32,
}

/// The opportunities of one cell.
#[derive(Debug)]
pub(super) struct RandomAccess {
    spec: RandomAccessSpec,
    period: Ns,
    repetition: Probability,
    /// The clients that send a preamble, by opportunity.
    waiting: BTreeMap<u64, Vec<Contender>>,
    /// When each client will be connected (true) or refused because its attempts are used up (false).
    deciding: BinaryHeap<Reverse<(Ns, ClientRef, bool)>>,
    stream: Stream,
}

impl RandomAccess {
    pub fn new(spec: &RandomAccessSpec, stream: Stream) -> Self {
        Self {
            spec: *spec,
            period: Ns::from_secs_f64(spec.opportunity_s),
            repetition: Probability::new(spec.repetition).unwrap_or(Probability::NEVER),
            waiting: BTreeMap::new(),
            deciding: BinaryHeap::new(),
            stream,
        }
    }

    pub fn request<P>(&mut self, now: Ns, client: ClientRef, answers: &mut Answers<P>) {
        answers.tally.requests += 1;
        self.wait(now, Contender { client, since: now, sent: 0 });
    }

    /// The client sends at the first opportunity from this time on.
    fn wait(&mut self, from: Ns, contender: Contender) {
        let opportunity = from.0.div_ceil(self.period.0);
        self.waiting.entry(opportunity).or_default().push(contender);
    }

    pub fn next(&self) -> Ns {
        let opportunity = self.waiting.keys().next().map_or(Ns::MAX, |number| Ns(number * self.period.0));
        let decided = self.deciding.peek().map_or(Ns::MAX, |Reverse((at, ..))| *at);
        opportunity.min(decided)
    }

    pub fn act<P>(&mut self, now: Ns, answers: &mut Answers<P>) {
        while let Some(entry) =
            self.waiting.first_entry().filter(|entry| entry.key() * self.period.0 <= now.0)
        {
            let at = Ns(entry.key() * self.period.0);
            let contenders = entry.remove();
            self.opportunity(at, contenders, answers);
        }
        while let Some(Reverse((at, client, admitted))) = self.deciding.peek().copied() {
            if at > now {
                break;
            }
            self.deciding.pop();
            answers.decisions.push(if admitted {
                Decision::Admitted(client)
            } else {
                Decision::Refused(client)
            });
        }
    }

    fn opportunity<P>(&mut self, at: Ns, contenders: Vec<Contender>, answers: &mut Answers<P>) {
        let mut chosen: BTreeMap<u64, Vec<Contender>> = BTreeMap::new();
        for mut contender in contenders {
            contender.sent += 1;
            if contender.sent == 1 {
                contender.since = at;
            }
            let preamble = self.stream.below(u64::from(self.spec.preambles));
            chosen.entry(preamble).or_default().push(contender);
        }
        let mut grants = self.spec.grants.unwrap_or(u32::MAX);
        for same in chosen.into_values() {
            answers.tally.transmissions += same.len() as u64;
            if same.len() > 1 {
                answers.tally.collisions += 1;
                answers.tally.collided += same.len() as u64;
            }
            let alone = same.len() == 1;
            for contender in same {
                let answered = alone && grants > 0 && self.is_detected(&contender);
                grants -= u32::from(answered);
                match if answered { self.connects_at(at) } else { None } {
                    Some(connected) => {
                        answers.tally.admitted.push((connected - contender.since, contender.sent));
                        self.decide(connected, &contender, true);
                    }
                    None => self.fails(at, contender, answers),
                }
            }
        }
    }

    fn is_detected(&mut self, contender: &Contender) -> bool {
        match self.spec.detection {
            Detection::Certain => true,
            Detection::Ramping => self.stream.uniform() >= libm::exp(-f64::from(contender.sent)),
        }
    }

    /// When a client whose preamble was answered is connected; `None` if one of the messages is never received.
    fn connects_at(&mut self, at: Ns) -> Option<Ns> {
        let mut connected = at + Ns::from_secs_f64(self.spec.connect_s);
        for _ in 0..2 {
            let mut sent = 1;
            while self.repetition.happens(&mut self.stream) {
                if sent == self.spec.transmissions {
                    return None;
                }
                sent += 1;
                connected += Ns::from_secs_f64(self.spec.repetition_s);
            }
        }
        Some(connected)
    }

    fn fails<P>(&mut self, at: Ns, contender: Contender, answers: &mut Answers<P>) {
        let known = at + Ns::from_secs_f64(self.spec.response_s);
        if contender.sent >= self.spec.attempts {
            answers.tally.refused += 1;
            self.decide(known, &contender, false);
            return;
        }
        let pause = Ns::from_secs_f64(self.spec.backoff_s * self.stream.uniform());
        // Not at the same opportunity again.
        self.wait((known + pause).max(at + Ns(1)), contender);
    }

    fn decide(&mut self, at: Ns, contender: &Contender, admitted: bool) {
        self.deciding.push(Reverse((at, contender.client, admitted)));
    }
}
