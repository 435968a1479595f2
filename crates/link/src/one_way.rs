//! One direction of a bearer: the links that a unit crosses, in their order.

use crate::{Delay, Duplication, Encapsulation, Loss, LossProcess, Mtu, Ns, Rate, Stream};

/// One direction of a bearer, whose links are all there, most of them without effect.
pub type OneWay<P = Vec<u8>> = Mtu<Encapsulation<Rate<Loss<Duplication<Delay<P>>>>>, P>;

impl<P> OneWay<P> {
    /// Where units are serialised.
    #[inline]
    pub fn sender(&self) -> &Rate<Loss<Duplication<Delay<P>>>> {
        &self.inner.inner
    }

    /// Where units are serialised.
    #[inline]
    pub fn sender_mut(&mut self) -> &mut Rate<Loss<Duplication<Delay<P>>>> {
        &mut self.inner.inner
    }

    /// When the next unit, or a part of it, is due; [`Ns::MAX`] where none is under way.
    #[inline]
    pub fn due(&self) -> Ns {
        self.sender().inner.inner.inner.due()
    }

    /// Reads a little of all that the next unit needs.
    pub(crate) fn touch_links(&self) -> u64 {
        let rate = self.sender();
        self.touch()
            ^ self.inner.touch()
            ^ rate.touch()
            ^ u64::from(rate.inner.draws())
            ^ rate.inner.inner.inner.touch()
    }

    /// As before the first unit, with draws of other streams, in the memory that it has.
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

/// What one direction draws from.
pub(crate) struct Streams {
    pub(crate) loss: Stream,
    pub(crate) duplication: Stream,
    pub(crate) delay: Stream,
}
