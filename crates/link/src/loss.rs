//! Loss of units.

use crate::{Drop, Fate, Link, Ns, Payload, Probability, Stream, Unit};

/// How units are lost.
#[derive(Clone, Debug)]
pub enum LossProcess {
    /// No loss.
    None,
    /// Each unit is lost independently.
    Independent(Probability),
    /// In bursts: a Markov chain of two states (Gilbert 1960), which is in the good one at first. The state changes
    /// before each unit; all units in the bad state are lost, and no others.
    Bursts { worsens: Probability, recovers: Probability, is_bad: bool },
}

impl LossProcess {
    /// True if it draws random numbers.
    #[inline]
    pub fn draws(&self) -> bool {
        matches!(self, Self::Independent(_) | Self::Bursts { .. })
    }

    /// The probability that none of the first `units` is lost.
    pub fn survival(&self, units: u32) -> f64 {
        match self {
            Self::None => 1.0,
            Self::Independent(probability) => libm::pow(1.0 - probability.share(), f64::from(units)),
            Self::Bursts { worsens, .. } => {
                // The state was good at first, and has been since.
                (0..units).fold(1.0, |survived, _| survived - survived * worsens.share())
            }
        }
    }

    /// True if any of the next `units` is lost; adds the number of drawn units to `drawn`.
    pub(crate) fn loses_any(&mut self, units: u32, stream: &mut Stream, drawn: &mut u64) -> bool {
        if !self.draws() {
            return false;
        }
        (0..units).any(|_| {
            *drawn += 1;
            self.loses(stream)
        })
    }

    #[inline]
    fn loses(&mut self, stream: &mut Stream) -> bool {
        match self {
            Self::None => false,
            Self::Independent(probability) => probability.happens(stream),
            Self::Bursts { worsens, recovers, is_bad } => {
                let moves = if *is_bad { *recovers } else { *worsens };
                *is_bad ^= moves.happens(stream);
                if !*is_bad {
                    // Without this unused number, each seed would lose other units than in earlier versions.
                    stream.next();
                }
                *is_bad
            }
        }
    }
}

/// A link that loses units. Lost units were sent, so it is placed after the [`Rate`](crate::Rate) that sends them.
#[derive(Clone, Debug)]
pub struct Loss<L> {
    /// The next link.
    pub inner: L,
    process: LossProcess,
    stream: Stream,
    offered: u32,
}

impl<L> Loss<L> {
    pub fn new(process: LossProcess, stream: Stream, inner: L) -> Self {
        Self { inner, process, stream, offered: 0 }
    }

    /// True if it draws random numbers.
    pub(crate) fn draws(&self) -> bool {
        self.process.draws()
    }

    /// Resets to the state before the first unit, with another process and stream.
    pub(crate) fn renew(&mut self, process: LossProcess, stream: Stream) {
        self.process = process;
        self.stream = stream;
        self.offered = 0;
    }

    /// Number of offered units, lost or not.
    pub fn offered(&self) -> u32 {
        self.offered
    }
}

impl<P: Payload, L: Link<P>> Link<P> for Loss<L> {
    #[inline(always)]
    fn offer(&mut self, at: Ns, unit: Unit<P>) -> Fate {
        self.offered = self.offered.wrapping_add(1);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn probability(share: f64) -> Probability {
        Probability::new(share).expect("a probability")
    }

    /// Compares the surviving share of many draws with the probability.
    #[test]
    fn survival_rate_matches_the_probability() {
        let bursts =
            LossProcess::Bursts { worsens: probability(0.05), recovers: probability(0.3), is_bad: false };
        for process in [LossProcess::None, LossProcess::Independent(probability(0.03)), bursts] {
            let mut drawn = 0;
            let lost = (0..100_000_u64).filter(|seed| {
                let mut stream = Stream::seeded(*seed);
                process.clone().loses_any(12, &mut stream, &mut drawn)
            });
            let survived = 1.0 - lost.count() as f64 / 1e5;
            // Five standard deviations of the share.
            assert!((survived - process.survival(12)).abs() < 0.008, "{process:?}: {survived}");
        }
    }
}
