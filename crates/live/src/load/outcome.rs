//! Results of a run.

use super::cause::Causes;
use super::client::Checked;
use super::figures::Figures;
use super::sampling::Sample;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use shakedown_sim::histogram::Histogram;
use shakedown_trace::{Negotiated, StackId};
use std::collections::BTreeMap;

/// The generator is saturated if the p99 of start lateness exceeds this.
const MAX_LATENESS_S: f64 = 0.010;
/// The generator is saturated if its thread uses a larger share of a core.
const MAX_CPU_SHARE: f64 = 0.8;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    pub planned: u64,
    pub started: u64,
    pub completed: u64,
    pub failed: Causes,
    /// From the planned start to the transport's connection.
    pub connect: Histogram,
    /// From the planned start to the end of the handshake.
    pub handshake: Histogram,
    /// From the planned start to the server's first byte.
    pub first_byte: Histogram,
    /// From the planned to the actual start.
    pub lateness: Histogram,
    /// Connections that reached the server and were to resume a session.
    pub resumed: Resumed,
    pub negotiated: Vec<NegotiatedCount>,
}

impl Counts {
    pub fn negotiate(&mut self, negotiated: &Negotiated) {
        let protocol = negotiated.protocol;
        let group = negotiated.group.map(|group| group.name(protocol));
        let kind = (protocol.as_str(), negotiated.cipher_suite, group);
        match self.negotiated.iter_mut().find(|known| known.kind() == kind) {
            Some(known) => known.count += 1,
            None => self.negotiated.push(NegotiatedCount {
                protocol: kind.0.into(),
                cipher_suite: kind.1.into(),
                group: group.map(Into::into),
                count: 1,
            }),
        }
    }

    fn add(&mut self, other: Self) {
        self.planned += other.planned;
        self.started += other.started;
        self.completed += other.completed;
        for (cause, count) in other.failed.into_map() {
            self.failed.add(&cause, count);
        }
        for (own, others) in [
            (&mut self.connect, &other.connect),
            (&mut self.handshake, &other.handshake),
            (&mut self.first_byte, &other.first_byte),
            (&mut self.lateness, &other.lateness),
        ] {
            own.merge(others);
        }
        self.resumed.asked += other.resumed.asked;
        self.resumed.confirmed += other.resumed.confirmed;
        self.resumed.without_session += other.resumed.without_session;
        for found in other.negotiated {
            match self.negotiated.iter_mut().find(|known| known.kind() == found.kind()) {
                Some(known) => known.count += found.count,
                None => self.negotiated.push(found),
            }
        }
    }
}

/// Counts of a run in progress.
#[derive(Default)]
pub struct Tally {
    pub counts: Counts,
    /// Starts were delayed by the limit of open connections.
    pub capped: bool,
    /// Sampled handshakes of completed connections.
    pub samples: Vec<(Box<Sample>, Box<Negotiated>)>,
}

impl Tally {
    /// What saturated the generator, so that figures describe it as much as the server; empty if nothing did.
    pub fn saturated_by(&self, elapsed_s: f64, cpu_s: f64) -> Vec<String> {
        let late_ns = self.counts.lateness.quantile(0.99);
        let ways = [
            (late_ns.is_some_and(|late_ns| late_ns > MAX_LATENESS_S * 1e9), "start lateness"),
            (cpu_s > MAX_CPU_SHARE * elapsed_s, "CPU"),
            (self.capped, "open connections"),
            (self.counts.failed.has(super::cause::NO_DESCRIPTOR), "file descriptors"),
            (self.counts.failed.has(super::cause::NO_PORT), "local ports"),
        ];
        ways.into_iter().filter(|(is, _)| *is).map(|(_, way)| way.into()).collect()
    }

    /// Sampled handshakes as JSON objects. Those in which the client's thread was preempted are discarded and counted,
    /// because their times include those of other threads.
    pub fn lines(&self, suites: &[String], stack: &StackId) -> Traces {
        let (whole, preempted): (Vec<_>, Vec<_>) =
            self.samples.iter().partition(|(sample, _)| sample.preemptions == 0);
        let line =
            |(sample, negotiated): &&(Box<Sample>, Box<Negotiated>)| sample.line(negotiated, suites, stack);
        Traces { kept: whole.iter().filter_map(line).collect(), preempted: preempted.len() as u64 }
    }
}

/// Sampled handshakes from the clients' side.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Traces {
    pub kept: Vec<Value>,
    /// Discarded, because the client's thread was preempted.
    pub preempted: u64,
}

/// Resumptions that clients requested, and that servers confirmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    /// Connections that reached the server and were to resume a session.
    pub asked: u64,
    pub confirmed: u64,
    /// Those of `asked` whose client had no session to offer.
    pub without_session: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rates {
    /// Configured rate of new connections per second; `None` in a closed loop.
    pub planned: Option<f64>,
    /// Completed handshakes per second.
    pub achieved: f64,
}

/// Number of handshakes with the same negotiated parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NegotiatedCount {
    pub protocol: String,
    pub cipher_suite: String,
    pub group: Option<String>,
    pub count: u64,
}

impl NegotiatedCount {
    fn kind(&self) -> (&str, &str, Option<&str>) {
        (&self.protocol, &self.cipher_suite, self.group.as_deref())
    }
}

/// Counts of one generator, which can be added to those of others.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Part {
    pub(super) counts: Counts,
    pub(super) rate_per_s: Option<f64>,
    pub(super) elapsed_s: f64,
    pub(super) generator_cpu_s: f64,
    pub(super) saturated_by: Vec<String>,
    pub(super) checked: Checked,
    pub(super) interrupted: bool,
    pub(super) slowdown: Option<f64>,
    pub(super) traces: Traces,
}

/// Counts of a run: of the load, and of the background load.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Parts {
    pub load: Part,
    pub background: Option<Part>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Number of generators, each with its own thread.
    pub generators: usize,
    /// Connections that were due: the sum of completed and failed ones.
    pub planned: u64,
    pub started: u64,
    pub completed: u64,
    pub failed: BTreeMap<String, u64>,
    pub rate_per_s: Rates,
    /// From the first possible start to the end of the last connection; the maximum over generators.
    pub elapsed_s: f64,
    /// From the planned start to the transport's connection; like the next two, of completed connections.
    pub connect_s: Figures,
    /// From the planned start to the end of the handshake.
    pub handshake_s: Figures,
    /// From the planned start to the server's first byte.
    pub first_byte_s: Figures,
    pub resumed: Resumed,
    pub negotiated: Vec<NegotiatedCount>,
    pub start_lateness_s: Figures,
    pub generator_cpu_s: f64,
    /// A generator, not the server, limited the figures.
    pub saturated: bool,
    pub saturated_by: Vec<String>,
    /// Certificates that the server's certificate was checked against; `No` unless all generators used the same.
    pub certificate_checked: Checked,
    pub interrupted: bool,
    /// Final slowdown factor of an emulated client.
    pub slowdown: Option<f64>,
    /// Sampled handshakes; a background load has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traces: Option<Traces>,
    /// The background load.
    pub background: Option<Box<Outcome>>,
}

impl Part {
    fn add(&mut self, other: Self) {
        self.counts.add(other.counts);
        self.rate_per_s = match (self.rate_per_s, other.rate_per_s) {
            (Some(own), Some(others)) => Some(own + others),
            _ => None,
        };
        self.elapsed_s = self.elapsed_s.max(other.elapsed_s);
        self.generator_cpu_s += other.generator_cpu_s;
        for way in other.saturated_by {
            if !self.saturated_by.contains(&way) {
                self.saturated_by.push(way);
            }
        }
        if self.checked != other.checked {
            self.checked = Checked::No;
        }
        self.interrupted |= other.interrupted;
        self.slowdown = self.slowdown.or(other.slowdown);
        self.traces.kept.extend(other.traces.kept);
        self.traces.preempted += other.traces.preempted;
    }

    fn outcome(self, generators: usize) -> Outcome {
        let counts = self.counts;
        let achieved = counts.completed as f64 / self.elapsed_s;
        Outcome {
            generators,
            planned: counts.planned,
            started: counts.started,
            completed: counts.completed,
            failed: counts.failed.into_map(),
            rate_per_s: Rates { planned: self.rate_per_s, achieved },
            elapsed_s: self.elapsed_s,
            connect_s: Figures::from(&counts.connect),
            handshake_s: Figures::from(&counts.handshake),
            first_byte_s: Figures::from(&counts.first_byte),
            resumed: counts.resumed,
            negotiated: counts.negotiated,
            start_lateness_s: Figures::from(&counts.lateness),
            generator_cpu_s: self.generator_cpu_s,
            saturated: !self.saturated_by.is_empty(),
            saturated_by: self.saturated_by,
            certificate_checked: self.checked,
            interrupted: self.interrupted,
            slowdown: self.slowdown,
            traces: Some(self.traces),
            background: None,
        }
    }
}

/// Sum of the parts; `None` if there are none.
fn sum(parts: Vec<Part>) -> Option<Part> {
    parts.into_iter().reduce(|mut all, part| {
        all.add(part);
        all
    })
}

/// Adds the figures of simultaneous generators: percentiles are those of all times together, as if one generator had
/// counted them. `None` if there are none.
pub fn merge(parts: Vec<Parts>) -> Option<Outcome> {
    let generators = parts.len();
    let (loads, backgrounds): (Vec<_>, Vec<_>) =
        parts.into_iter().map(|parts| (parts.load, parts.background)).unzip();
    let backgrounds: Vec<_> = backgrounds.into_iter().flatten().collect();
    let background_generators = backgrounds.len();
    let background = sum(backgrounds)
        .map(|part| Box::new(Outcome { traces: None, ..part.outcome(background_generators) }));
    Some(Outcome { background, ..sum(loads)?.outcome(generators) })
}
