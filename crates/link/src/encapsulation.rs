//! The overhead of a link per packet, and frame encryption.

use crate::cipher::FrameCipher;
use crate::{Drop, Fate, Link, Ns, Payload, Unit};
use std::fmt;

/// A link that adds bytes to each packet, and removes them at the far end. If it encrypts, payloads are encrypted here
/// and decrypted at the far end, which drops frames that do not verify, as a station does.
pub struct Encapsulation<L> {
    /// The next link.
    pub inner: L,
    overhead_bytes: u32,
    ends: Option<Box<Ends>>,
    rejected: u64,
}

struct Ends {
    sender: Box<dyn FrameCipher>,
    receiver: Box<dyn FrameCipher>,
}

impl<L> Encapsulation<L> {
    /// Adds bytes, without encryption.
    pub fn counted(overhead_bytes: u32, inner: L) -> Self {
        Self { inner, overhead_bytes, ends: None, rejected: 0 }
    }

    /// Reads part of the state that the next unit needs; see [`Path::touch`](crate::Path::touch).
    #[inline]
    pub(crate) fn touch(&self) -> u64 {
        u64::from(self.overhead_bytes) ^ self.rejected
    }

    /// Resets to the state before the first unit, without encryption.
    pub(crate) fn renew(&mut self) {
        self.ends = None;
        self.rejected = 0;
    }

    /// Encrypts with one cipher and decrypts with another from now on: the two ends of the link, with the same key. The
    /// overhead on the wire does not change, because it includes that of encryption.
    pub fn encrypt(&mut self, sender: Box<dyn FrameCipher>, receiver: Box<dyn FrameCipher>) {
        self.ends = Some(Box::new(Ends { sender, receiver }));
    }

    /// Number of frames that did not verify at the far end.
    pub fn rejected(&self) -> u64 {
        self.rejected
    }
}

impl<L: fmt::Debug> fmt::Debug for Encapsulation<L> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Encapsulation")
            .field("inner", &self.inner)
            .field("overhead_bytes", &self.overhead_bytes)
            .field("encrypts", &self.ends.is_some())
            .finish_non_exhaustive()
    }
}

impl<P: Payload, L: Link<P>> Link<P> for Encapsulation<L> {
    #[inline(always)]
    fn offer(&mut self, at: Ns, mut unit: Unit<P>) -> Fate {
        unit.bytes += self.overhead_bytes;
        if let (Some(ends), Some(frame)) = (&mut self.ends, unit.payload.as_mut().and_then(P::frame))
            && ends.sender.seal(frame).is_err()
        {
            return Fate::Dropped(Drop::Unencryptable);
        }
        self.inner.offer(at, unit)
    }

    #[inline]
    fn next(&self) -> Option<Ns> {
        self.inner.next()
    }

    #[inline]
    fn take(&mut self, until: Ns) -> Option<(Ns, Unit<P>)> {
        loop {
            let (at, mut unit) = self.inner.take(until)?;
            unit.bytes -= self.overhead_bytes;
            if let (Some(ends), Some(frame)) = (&mut self.ends, unit.payload.as_mut().and_then(P::frame))
                && ends.receiver.open(frame).is_err()
            {
                self.rejected += 1;
                continue;
            }
            return Some((at, unit));
        }
    }
}
