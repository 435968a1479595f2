//! What came of a run.

use super::cause::Causes;
use super::client::Checked;
use super::figures::{Figures, Histogram};
use serde::Serialize;
use shakedown_trace::Negotiated;
use std::collections::BTreeMap;
use std::time::Duration;

/// The generator is no bottleneck while 99 per cent of starts are no later than this.
const MAX_LATENESS_S: f64 = 0.010;
/// Nor while its thread has a fifth of a core to spare.
const MAX_CPU_SHARE: f64 = 0.8;

/// What is counted while a run goes on.
#[derive(Default)]
pub struct Tally {
    /// Starts that were due.
    pub planned: u64,
    /// Connections started.
    pub started: u64,
    /// Those that did all that was asked.
    pub completed: u64,
    /// The others.
    pub failed: Causes,
    /// From the planned start to the transport's connection.
    pub connect: Histogram,
    /// From the planned start to the end of the handshake.
    pub handshake: Histogram,
    /// From the planned start to the server's first byte.
    pub first_byte: Histogram,
    /// From the planned to the actual start.
    pub lateness: Histogram,
    /// Completed connections that asked for resumption, and what became of it.
    pub resumed: Resumed,
    /// What was negotiated, and how often.
    pub negotiated: Vec<(Kind, u64)>,
    /// Starts waited because the most connections allowed were open.
    pub capped: bool,
}

/// What a handshake came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Kind {
    /// Protocol.
    pub protocol: &'static str,
    /// In the stack's spelling.
    pub cipher_suite: &'static str,
    /// Of the key exchange.
    pub group: Option<&'static str>,
}

impl Tally {
    /// Counts what was negotiated.
    pub fn count(&mut self, negotiated: &Negotiated) {
        let protocol = negotiated.protocol;
        let kind = Kind {
            protocol: protocol.as_str(),
            cipher_suite: negotiated.cipher_suite,
            group: negotiated.group.map(|group| group.name(protocol)),
        };
        match self.negotiated.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => self.negotiated.push((kind, 1)),
        }
    }
}

/// Resumption as it was asked for, and as servers confirmed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Resumed {
    /// Completed handshakes of connections that were to resume a session.
    pub asked: u64,
    /// Of these, those that the server resumed.
    pub confirmed: u64,
    /// Of these, those whose client held no session to offer.
    pub without_session: u64,
}

/// Planned and achieved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rates {
    /// Starts a second that were asked for; `None` in a closed loop.
    pub planned: Option<f64>,
    /// Completed handshakes a second.
    pub achieved: f64,
}

/// How often something was negotiated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct NegotiatedCount {
    /// What.
    #[serde(flatten)]
    pub kind: Kind,
    /// How often.
    pub count: u64,
}

/// A run's figures.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Starts that were due; completed and failed ones add up to it.
    pub planned: u64,
    /// Connections started.
    pub started: u64,
    /// Connections that did all that was asked.
    pub completed: u64,
    /// The others, by cause.
    pub failed: BTreeMap<String, u64>,
    /// Starts and handshakes a second.
    pub rate_per_s: Rates,
    /// From the first possible start to the end of the last connection.
    pub elapsed_s: f64,
    /// From the planned start to the transport's connection; of completed connections, as the next two.
    pub connect_s: Figures,
    /// From the planned start to the end of the handshake.
    pub handshake_s: Figures,
    /// From the planned start to the server's first byte.
    pub first_byte_s: Figures,
    /// Resumption.
    pub resumed: Resumed,
    /// What was negotiated.
    pub negotiated: Vec<NegotiatedCount>,
    /// From the planned to the actual start.
    pub start_lateness_s: Figures,
    /// CPU time of the generator's thread.
    pub generator_cpu_s: f64,
    /// The generator, not the server, set the figures.
    pub saturated: bool,
    /// In what way.
    pub saturated_by: Vec<&'static str>,
    /// What the server's certificate was checked against.
    pub certificate_checked: Checked,
    /// The run was ended early.
    pub interrupted: bool,
}

/// A tally, and what only the whole run has.
pub struct Finished {
    /// What was counted.
    pub tally: Tally,
    /// Starts a second that were asked for.
    pub rate_per_s: Option<f64>,
    /// How long it took.
    pub elapsed: Duration,
    /// The generator's CPU time.
    pub cpu: Duration,
    /// What the server was checked against.
    pub checked: Checked,
    /// It was ended early.
    pub interrupted: bool,
}

impl From<Finished> for Outcome {
    fn from(run: Finished) -> Self {
        let Finished { tally, rate_per_s, elapsed, cpu, checked, interrupted } = run;
        let elapsed_s = elapsed.as_secs_f64();
        let failed = tally.failed.into_map();
        let mut saturated_by = Vec::new();
        if tally.lateness.quantile_s(0.99).is_some_and(|late_s| late_s > MAX_LATENESS_S) {
            saturated_by.push("start lateness");
        }
        if cpu.as_secs_f64() > MAX_CPU_SHARE * elapsed_s {
            saturated_by.push("CPU");
        }
        if tally.capped {
            saturated_by.push("open connections");
        }
        for (cause, short) in
            [(super::cause::NO_DESCRIPTOR, "file descriptors"), (super::cause::NO_PORT, "local ports")]
        {
            if failed.contains_key(cause) {
                saturated_by.push(short);
            }
        }
        Self {
            planned: tally.planned,
            started: tally.started,
            completed: tally.completed,
            failed,
            rate_per_s: Rates { planned: rate_per_s, achieved: tally.completed as f64 / elapsed_s },
            elapsed_s,
            connect_s: tally.connect.figures(),
            handshake_s: tally.handshake.figures(),
            first_byte_s: tally.first_byte.figures(),
            resumed: tally.resumed,
            negotiated: tally
                .negotiated
                .into_iter()
                .map(|(kind, count)| NegotiatedCount { kind, count })
                .collect(),
            start_lateness_s: tally.lateness.figures(),
            generator_cpu_s: cpu.as_secs_f64(),
            saturated: !saturated_by.is_empty(),
            saturated_by,
            certificate_checked: checked,
            interrupted,
        }
    }
}
