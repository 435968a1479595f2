//! Random access as in LTE, LTE-M and NB-IoT (3GPP TS 36.321, section 5.1): a preamble at the next opportunity, a response
//! within a window or none, a pause, and so on until it succeeds or the attempts are used up.

use super::{Answers, Verdict, Who};
use crate::error::{ScenarioError, check};
use serde::{Deserialize, Serialize};
use shakedown_link::{MAX_SECONDS, Ns, Probability, Stream};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// How a base station finds preambles that only one client sent. Of those that several sent it decodes none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Detection {
    /// All of them.
    #[default]
    Certain,
    /// The i-th of an access, sent with more power each time, with probability 1 - e⁻ⁱ (3GPP TR 37.868, table 6.2.2.1.1).
    Ramping,
}

/// Random access to a cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomAccessSpec {
    /// Time from one opportunity to the next.
    pub opportunity_s: f64,
    /// Preambles of an opportunity.
    pub preambles: u32,
    /// Preambles that a client sends at most in one access.
    pub attempts: u32,
    /// From an opportunity until a client without a response knows so.
    pub response_s: f64,
    /// From an opportunity until the client is connected, where no message is repeated.
    pub connect_s: f64,
    /// The longest pause before another attempt; each is drawn evenly up to it.
    pub backoff_s: f64,
    /// Preambles that are answered at an opportunity at most; `None`: all that are detected.
    #[serde(default)]
    pub grants: Option<u32>,
    /// How preambles are found.
    #[serde(default)]
    pub detection: Detection,
    /// The probability that one of the two messages after the response has to be repeated …
    #[serde(default)]
    pub repetition: f64,
    /// … how long that takes each time …
    #[serde(default)]
    pub repetition_s: f64,
    /// … and how often each is sent at most.
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

/// A client that is to send a preamble.
#[derive(Clone, Copy, Debug)]
struct Contender {
    who: Who,
    since: Ns,
    sent: u32,
}

/// The opportunities of one cell.
#[derive(Debug)]
pub(super) struct RandomAccess {
    spec: RandomAccessSpec,
    period: Ns,
    repetition: Probability,
    /// Who sends a preamble, by opportunity.
    waiting: BTreeMap<u64, Vec<Contender>>,
    /// Who will be connected, or has used up its attempts, and when.
    deciding: BinaryHeap<Reverse<(Ns, Who, bool)>>,
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

    pub fn request<P>(&mut self, now: Ns, who: Who, answers: &mut Answers<P>) {
        answers.tally.requests += 1;
        self.wait(now, Contender { who, since: now, sent: 0 });
    }

    /// It sends at the first opportunity from then on.
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
        while let Some(Reverse((at, who, admitted))) = self.deciding.peek().copied() {
            if at > now {
                break;
            }
            self.deciding.pop();
            answers.verdicts.push(if admitted { Verdict::Admitted(who) } else { Verdict::Refused(who) });
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

    /// When a client whose preamble was answered at an opportunity is connected; `None` where a message is never received.
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
        // Not at an opportunity that has just been.
        self.wait((known + pause).max(at + Ns(1)), contender);
    }

    fn decide(&mut self, at: Ns, contender: &Contender, admitted: bool) {
        self.deciding.push(Reverse((at, contender.who, admitted)));
    }
}
