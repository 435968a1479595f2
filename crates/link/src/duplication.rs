//! Duplication of units.

use crate::{Fate, Link, Ns, Payload, Probability, Stream, Unit};

/// A link that sends some units twice, the copy directly after the original.
#[derive(Clone, Debug)]
pub struct Duplication<L> {
    /// The next link.
    pub inner: L,
    probability: Probability,
    stream: Stream,
}

impl<L> Duplication<L> {
    /// Duplicates units with a probability, drawn from a stream.
    pub fn new(probability: Probability, stream: Stream, inner: L) -> Self {
        Self { inner, probability, stream }
    }

    /// Resets to the state before the first unit, with another stream.
    pub(crate) fn renew(&mut self, stream: Stream) {
        self.stream = stream;
    }
}

impl<L> Duplication<L> {
    #[cold]
    fn offer_twice<P: Payload>(&mut self, at: Ns, unit: Unit<P>) -> Fate
    where
        L: Link<P>,
    {
        match (self.inner.offer(at, unit.clone()), self.inner.offer(at, unit)) {
            (Fate::Dropped(why), Fate::Dropped(_)) => Fate::Dropped(why),
            (Fate::Dropped(_), fate) | (fate, Fate::Dropped(_)) => fate,
            _ => Fate::Duplicated,
        }
    }
}

impl<P: Payload, L: Link<P>> Link<P> for Duplication<L> {
    #[inline(always)]
    fn offer(&mut self, at: Ns, unit: Unit<P>) -> Fate {
        if self.probability.is_never() || !self.probability.happens(&mut self.stream) {
            return self.inner.offer(at, unit);
        }
        self.offer_twice(at, unit)
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
