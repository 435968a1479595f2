//! Tests of TCP: scripts of the kernel's behaviour, and two ends of a connection.

mod pairs;
mod script;
mod scripts;

use super::congestion::INFINITE;
use super::{LAST, LOST, Packet, RESENT, Recovery, SACKED, Segment, State, Tcp, TcpConfig};
use shakedown_link::Ns;

impl Tcp {
    /// Segments that may be in flight.
    fn window(&self) -> u32 {
        self.window.segments
    }

    /// The slow start threshold, or none yet.
    fn threshold(&self) -> Option<u32> {
        (self.window.threshold < INFINITE).then_some(self.window.threshold)
    }

    /// The state of loss recovery.
    fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// The retransmission timeout.
    fn timeout_s(&self) -> f64 {
        self.clock.as_us(self.timeout_jiffies) as f64 * 1e-6
    }

    /// Recounts its segments and compares.
    ///
    /// # Panics
    /// If a counter differs.
    fn check(&self) {
        let count = |flag| self.queue.iter().filter(|segment| segment.is(flag)).count() as u32;
        assert!(self.sent as usize <= self.queue.len(), "{self:?}");
        assert_eq!((count(LOST), count(RESENT)), (self.lost, self.resent), "{self:?}");
        assert!(count(SACKED) == self.sacked || count(SACKED) == 0, "{self:?}");
        assert!(
            self.queue.iter().skip(self.sent as usize).all(|segment| segment.flags & !LAST == 0),
            "{self:?}"
        );
        assert!(
            self.sent == 0 || self.timer.is_some() || self.state != State::Established,
            "no timer: {self:?}"
        );
    }

    /// Ends the stream.
    fn finish(&mut self, now: Ns, config: &TcpConfig, out: &mut Vec<Packet>) {
        let seq = self.written;
        self.queue.push_back(Segment { seq, end: seq + 1, at: Ns::ZERO, flags: LAST });
        self.written += 1;
        self.push(now, config, out);
    }
}
