//! One link after another.

use crate::{Fate, Link, Ns, Payload, Unit};

/// Two hops: what comes out of the first goes into the second at its logical time.
///
/// [`offer`](Link::offer) tells only the fate on the first hop, as a sender would learn it. The second hop may lose a
/// unit, so [`next`](Link::next) is a lower bound: at that time there may be nothing to take.
#[derive(Clone, Debug)]
pub struct Chain<A, B> {
    /// The hop nearer to the sender.
    pub first: A,
    /// The hop nearer to the receiver.
    pub second: B,
}

impl<P: Payload, A: Link<P>, B: Link<P>> Link<P> for Chain<A, B> {
    fn offer(&mut self, at: Ns, unit: Unit<P>) -> Fate {
        self.first.offer(at, unit)
    }

    fn next(&self) -> Option<Ns> {
        match (self.first.next(), self.second.next()) {
            (Some(first), Some(second)) => Some(first.min(second)),
            (first, second) => first.or(second),
        }
    }

    fn take(&mut self, until: Ns) -> Option<(Ns, Unit<P>)> {
        loop {
            // What leaves the first hop until then may still overtake nothing: hops are fed in time order.
            let due = self.next().filter(|due| *due <= until)?;
            if self.first.next() == Some(due) {
                if let Some((at, unit)) = self.first.take(due) {
                    // Lost on the second hop: nobody is told.
                    let _ = self.second.offer(at, unit);
                }
            } else if let Some(taken) = self.second.take(due) {
                return Some(taken);
            }
        }
    }
}
