//! One direction of a bearer: the links that a unit crosses, in their order.

use crate::{Delay, Duplication, Encapsulation, Loss, LossProcess, Mtu, Ns, Rate, Stream};

/// One direction of a bearer, with links of all kinds, most of them without effect.
pub type OneWay<P = Vec<u8>> = Mtu<Encapsulation<Rate<Loss<Duplication<Delay<P>>>>>, P>;

impl<P> OneWay<P> {
    /// The link that serialises units.
    #[inline]
    pub fn sender(&self) -> &Rate<Loss<Duplication<Delay<P>>>> {
        &self.inner.inner
    }

    /// The link that serialises units.
    #[inline]
    pub fn sender_mut(&mut self) -> &mut Rate<Loss<Duplication<Delay<P>>>> {
        &mut self.inner.inner
    }

    /// When the next unit or fragment is due; [`Ns::MAX`] if none is in flight.
    #[inline]
    pub fn due(&self) -> Ns {
        self.sender().inner.inner.inner.due()
    }

    /// Reads part of the state that the next unit needs; see [`Path::touch`](crate::Path::touch).
    pub(crate) fn touch_links(&self) -> u64 {
        let rate = self.sender();
        self.touch()
            ^ self.inner.touch()
            ^ rate.touch()
            ^ u64::from(rate.inner.draws())
            ^ rate.inner.inner.inner.touch()
    }

    /// Resets to the state before the first unit, with other streams, without allocating.
    pub(crate) fn renew(&mut self, process: &LossProcess, streams: Streams) {
        self.renew_joining();
        self.inner.renew();
        let rate = self.sender_mut();
        rate.renew();
        rate.inner.renew(process.clone(), streams.loss);
        rate.inner.inner.renew(streams.duplication);
        rate.inner.inner.inner.renew(streams.delay);
    }
}

/// The random streams of one direction.
pub(crate) struct Streams {
    pub(crate) loss: Stream,
    pub(crate) duplication: Stream,
    pub(crate) delay: Stream,
}
