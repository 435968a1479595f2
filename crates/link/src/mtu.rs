//! The MTU of a link, and fragmentation.

use crate::{Drop, Fate, Fragment, Link, Ns, Payload, Unit};

/// A link that carries units up to a length, and fragments longer ones as IPv4 does (RFC 791, section 3.2): each
/// fragment repeats the network-layer header and, except for the last, contains a multiple of 8 bytes. A unit arrives
/// with its last fragment; if any fragment is lost, the unit never arrives.
#[derive(Clone, Debug)]
pub struct Mtu<L, P = Vec<u8>> {
    /// The next link.
    pub inner: L,
    limit_bytes: u32,
    header_bytes: u32,
    cut: u32,
    joining: Vec<Joining<P>>,
}

#[derive(Clone, Debug)]
struct Joining<P> {
    of: u32,
    bytes: u32,
    missing: u16,
    parts: Vec<Option<Option<P>>>,
}

/// Each fragment except for the last contains a multiple of this.
pub(crate) const FRAGMENT_BYTES: u32 = 8;

/// Limit of units in reassembly; beyond it, the oldest is dropped, as by a receiver short of memory.
const MAX_JOINING: usize = 16;

impl<L, P> Mtu<L, P> {
    /// Carries units up to `limit_bytes`, of which `header_bytes` are the header that fragments repeat. The limit is
    /// at least the header and 8 bytes, so that a fragment has room.
    pub fn new(limit_bytes: u32, header_bytes: u32, inner: L) -> Self {
        let limit_bytes = limit_bytes.max(header_bytes + FRAGMENT_BYTES);
        Self { inner, limit_bytes, header_bytes, cut: 0, joining: Vec::new() }
    }

    /// Reads part of the state that the next unit needs; see [`Path::touch`](crate::Path::touch).
    #[inline]
    pub(crate) fn touch(&self) -> u64 {
        u64::from(self.limit_bytes) ^ self.joining.len() as u64
    }

    /// Drops fragments that are not reassembled yet.
    pub(crate) fn renew_joining(&mut self) {
        self.cut = 0;
        self.joining.clear();
    }
}

impl<P: Payload, L: Link<P>> Mtu<L, P> {
    #[cold]
    fn offer_parts(&mut self, at: Ns, unit: Unit<P>) -> Fate {
        let each = (self.limit_bytes - self.header_bytes) / FRAGMENT_BYTES * FRAGMENT_BYTES;
        let content = unit.bytes.saturating_sub(self.header_bytes);
        let Ok(count) = u16::try_from(content.div_ceil(each)) else {
            return Fate::Dropped(Drop::TooLong);
        };
        self.cut = self.cut.wrapping_add(1);
        let mut payloads = unit.payload.map(|payload| payload.cut(count).into_iter());
        let mut fate = Fate::Accepted;
        for index in 0..count {
            let held = each.min(content - u32::from(index) * each);
            let part = Unit {
                bytes: self.header_bytes + held,
                fragment: Fragment { of: self.cut, index, count },
                payload: payloads.as_mut().and_then(Iterator::next),
            };
            match (fate, self.inner.offer(at, part)) {
                (Fate::Dropped(_), _) => {}
                (_, dropped @ Fate::Dropped(_)) => fate = dropped,
                (_, Fate::Duplicated | Fate::Accepted) => {}
            }
        }
        fate
    }

    /// The whole unit, if this was its last missing fragment.
    #[cold]
    fn join(&mut self, unit: Unit<P>) -> Option<Unit<P>> {
        let Fragment { of, index, count } = unit.fragment;
        let place = self.joining.iter().position(|joining| joining.of == of).unwrap_or_else(|| {
            if self.joining.len() == MAX_JOINING {
                self.joining.remove(0);
            }
            let parts = std::iter::repeat_with(|| None).take(count.into()).collect();
            self.joining.push(Joining { of, bytes: self.header_bytes, missing: count, parts });
            self.joining.len() - 1
        });
        let joining = &mut self.joining[place];
        let part = &mut joining.parts[usize::from(index)];
        if part.is_none() {
            *part = Some(unit.payload);
            joining.missing -= 1;
            joining.bytes += unit.bytes - self.header_bytes;
        }
        if joining.missing > 0 {
            return None;
        }
        let whole = self.joining.remove(place);
        let payloads: Vec<P> = whole.parts.into_iter().flatten().flatten().collect();
        let payload = if payloads.is_empty() { None } else { P::join(payloads) };
        Some(Unit { bytes: whole.bytes, fragment: Fragment::WHOLE, payload })
    }
}

impl<P: Payload, L: Link<P>> Link<P> for Mtu<L, P> {
    #[inline(always)]
    fn offer(&mut self, at: Ns, unit: Unit<P>) -> Fate {
        let fits = unit.bytes <= self.limit_bytes;
        if fits || unit.payload.as_ref().is_some_and(Payload::is_super_packet) {
            self.inner.offer(at, unit)
        } else {
            self.offer_parts(at, unit)
        }
    }

    #[inline]
    fn next(&self) -> Option<Ns> {
        self.inner.next()
    }

    #[inline]
    fn take(&mut self, until: Ns) -> Option<(Ns, Unit<P>)> {
        loop {
            let (at, unit) = self.inner.take(until)?;
            if unit.fragment.count == 1 {
                return Some((at, unit));
            }
            if let Some(whole) = self.join(unit) {
                return Some((at, whole));
            }
        }
    }
}
