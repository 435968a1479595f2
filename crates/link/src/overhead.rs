//! Bytes that a link adds to each packet.

use crate::{Fate, Link, Ns, Payload, Unit};

/// A link that adds its own headers and trailers, and takes them off at the far end.
#[derive(Clone, Debug)]
pub struct Overhead<L> {
    /// What comes after.
    pub inner: L,
    /// Bytes per packet.
    pub bytes: u32,
}

impl<P: Payload, L: Link<P>> Link<P> for Overhead<L> {
    #[inline(always)]
    fn offer(&mut self, at: Ns, mut unit: Unit<P>) -> Fate {
        unit.bytes += self.bytes;
        self.inner.offer(at, unit)
    }

    #[inline]
    fn next(&self) -> Option<Ns> {
        self.inner.next()
    }

    #[inline]
    fn take(&mut self, until: Ns) -> Option<(Ns, Unit<P>)> {
        let (at, mut unit) = self.inner.take(until)?;
        unit.bytes -= self.bytes;
        Some((at, unit))
    }
}
