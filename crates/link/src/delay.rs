//! Delay of units: the innermost link, which holds units until they are due.

use crate::{Distribution, Fate, Link, Ns, Payload, Probability, Stream, Unit};
use std::collections::VecDeque;

/// A link whose units arrive some time after they were sent.
///
/// Units arrive in order, unless reordering is configured: a unit with a shorter delay than the one before it arrives
/// directly after it. Delay in real networks is correlated; [`holding`](Self::holding) keeps a drawn delay for a time.
#[derive(Clone, Debug)]
pub struct Delay<P = Vec<u8>> {
    delay: Distribution,
    process: Option<Process>,
    /// Latest due time of the units that keep their order.
    latest: Ns,
    /// Due time of the first held unit, or [`Ns::MAX`]; stored because it is read far more often than units are taken.
    first: Ns,
    /// Held units in the order of due time, then of offering.
    held: VecDeque<(Ns, Unit<P>)>,
}

#[derive(Clone, Debug)]
struct Process {
    stream: Stream,
    /// For how long a drawn delay is kept, the current delay, and the end of its time.
    holds: Ns,
    current: Ns,
    current_until: Ns,
    /// Probability that a unit is held back so that later ones overtake it, and for how long.
    reorders: Probability,
    held_back: Ns,
    /// Whether a unit with a shorter delay overtakes one with a longer delay.
    jitter_reorders: bool,
}

impl<P> Delay<P> {
    /// A delay that is drawn from a stream; a constant delay does not use the stream.
    pub fn new(delay: Distribution, stream: Stream) -> Self {
        let process = delay.as_constant().is_none().then(|| Process::new(stream));
        Self { delay, process, latest: Ns::ZERO, first: Ns::MAX, held: VecDeque::new() }
    }

    /// Keeps a drawn delay for `time`: all units sent meanwhile have it. Without effect on a constant delay.
    #[must_use]
    pub fn holding(mut self, time: Ns) -> Self {
        if let Some(process) = &mut self.process {
            process.holds = time;
        }
        self
    }

    /// Due time of the first held unit; [`Ns::MAX`] if there is none.
    #[inline]
    pub(crate) fn due(&self) -> Ns {
        self.first
    }

    /// Reads part of the state that the next unit needs; see [`Path::touch`](crate::Path::touch).
    #[inline]
    pub(crate) fn touch(&self) -> u64 {
        let process = self.process.as_ref().map_or(0, |process| process.current_until.0 ^ process.holds.0);
        let held = self.held.front().map_or(0, |(due, unit)| due.0 ^ u64::from(unit.bytes));
        self.first.0 ^ process ^ held
    }

    /// Resets to the state before the first unit, with another stream, without allocating.
    pub(crate) fn renew(&mut self, stream: Stream) {
        if let Some(process) = &mut self.process {
            process.stream = stream;
            (process.current, process.current_until) = (Ns::ZERO, Ns::ZERO);
        }
        (self.latest, self.first) = (Ns::ZERO, Ns::MAX);
        self.held.clear();
    }

    /// Lets units with a shorter delay overtake those with a longer one. Without effect on a constant delay.
    #[must_use]
    pub fn overtaking(mut self) -> Self {
        if let Some(process) = &mut self.process {
            process.jitter_reorders = true;
        }
        self
    }

    /// Holds some units back, so that later ones overtake them.
    #[must_use]
    pub fn reordering(mut self, probability: Probability, held_back: Ns, stream: Stream) -> Self {
        if !probability.is_never() {
            let process = self.process.get_or_insert_with(|| Process::new(stream));
            process.reorders = probability;
            process.held_back = held_back;
        }
        self
    }
}

impl Process {
    fn new(stream: Stream) -> Self {
        Self {
            stream,
            holds: Ns::ZERO,
            current: Ns::ZERO,
            current_until: Ns::ZERO,
            reorders: Probability::NEVER,
            held_back: Ns::ZERO,
            jitter_reorders: false,
        }
    }

    /// When a unit sent at a time is due, and whether it keeps its place in the order.
    fn due(&mut self, at: Ns, delay: &Distribution) -> (Ns, bool) {
        if self.holds == Ns::ZERO || at >= self.current_until {
            self.current = delay.draw(&mut self.stream);
            self.current_until = at + self.holds;
        }
        if !self.reorders.is_never() && self.reorders.happens(&mut self.stream) {
            return (at + self.current + self.held_back, false);
        }
        (at + self.current, !self.jitter_reorders)
    }
}

impl<P: Payload> Link<P> for Delay<P> {
    #[inline(always)]
    fn offer(&mut self, at: Ns, unit: Unit<P>) -> Fate {
        let (mut due, keeps_place) = match (&mut self.process, self.delay.as_constant()) {
            (Some(process), _) => process.due(at, &self.delay),
            (None, constant) => (at + constant.unwrap_or_default(), true),
        };
        if keeps_place {
            due = due.max(self.latest);
            self.latest = due;
        }
        if self.held.back().is_none_or(|(last, _)| *last <= due) {
            self.held.push_back((due, unit));
        } else {
            let place = self.held.partition_point(|(other, _)| *other <= due);
            self.held.insert(place, (due, unit));
        }
        self.first = self.first.min(due);
        Fate::Accepted
    }

    #[inline]
    fn next(&self) -> Option<Ns> {
        (self.first < Ns::MAX || !self.held.is_empty()).then_some(self.first)
    }

    #[inline]
    fn take(&mut self, until: Ns) -> Option<(Ns, Unit<P>)> {
        if self.first > until {
            return None;
        }
        let taken = self.held.pop_front();
        self.first = self.held.front().map_or(Ns::MAX, |(due, _)| *due);
        taken
    }
}
