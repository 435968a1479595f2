//! Losing units.

use crate::{Drop, Fate, Link, Ns, Payload, Probability, Stream, Unit};

/// How units are lost.
#[derive(Clone, Debug)]
pub enum LossProcess {
    /// None is.
    None,
    /// Each by itself.
    Independent(Probability),
    /// In bursts: a chain of two states with a loss probability each (Gilbert 1960, Elliott 1963). For each unit the
    /// state moves first, then the unit is lost or not by the state moved to. It begins in the good state.
    GilbertElliott {
        /// From good to bad.
        worsens: Probability,
        /// From bad to good.
        recovers: Probability,
        /// Lost while good.
        good: Probability,
        /// Lost while bad.
        bad: Probability,
        /// The state.
        is_bad: bool,
    },
}

impl LossProcess {
    /// True where it draws random numbers.
    #[inline]
    #[must_use]
    pub fn draws(&self) -> bool {
        matches!(self, Self::Independent(_) | Self::GilbertElliott { .. })
    }

    #[inline]
    fn loses(&mut self, stream: &mut Stream) -> bool {
        match self {
            Self::None => false,
            Self::Independent(probability) => probability.happens(stream),
            Self::GilbertElliott { worsens, recovers, good, bad, is_bad } => {
                let moves = if *is_bad { *recovers } else { *worsens };
                *is_bad ^= moves.happens(stream);
                let lost = if *is_bad { *bad } else { *good };
                lost.happens(stream)
            }
        }
    }
}

/// A link that loses units. What is lost here was sent: place it behind the [`Rate`](crate::Rate) whose time it takes.
#[derive(Clone, Debug)]
pub struct Loss<L> {
    /// What comes after.
    pub inner: L,
    process: LossProcess,
    stream: Stream,
}

impl<L> Loss<L> {
    /// Loses by a process, with draws of a stream.
    #[must_use]
    pub fn new(process: LossProcess, stream: Stream, inner: L) -> Self {
        Self { inner, process, stream }
    }

    /// True where it draws random numbers.
    pub(crate) fn draws(&self) -> bool {
        self.process.draws()
    }

    /// As before the first unit, by a process and with draws of a stream.
    pub(crate) fn renew(&mut self, process: LossProcess, stream: Stream) {
        self.process = process;
        self.stream = stream;
    }
}

impl<P: Payload, L: Link<P>> Link<P> for Loss<L> {
    #[inline(always)]
    fn offer(&mut self, at: Ns, unit: Unit<P>) -> Fate {
        if self.process.loses(&mut self.stream) {
            return Fate::Dropped(Drop::Lost);
        }
        self.inner.offer(at, unit)
    }

    #[inline]
    fn next(&self) -> Option<Ns> {
        self.inner.next()
    }

    #[inline]
    fn take(&mut self, until: Ns) -> Option<(Ns, Unit<P>)> {
        self.inner.take(until)
    }
}
