//! Loss detection by time (RACK, RFC 8985).

use super::acknowledge::AckSummary;
use super::{
    EVER_RESENT, LOST, Packet, RESENT, Recovery, SACKED, Segment, Tcp, TcpConfig, Timer, stamp, us_between,
};
use shakedown_link::Ns;

impl Tcp {
    /// A segment was delivered (`tcp_rack_advance`). It is ignored if it was retransmitted less than the minimum
    /// round-trip time ago, because then its original was delivered.
    pub(super) fn advance_rack(&mut self, now: Ns, segment: &Segment) {
        let us = us_between(segment.at, now);
        if segment.is(EVER_RESENT | RESENT) && self.rtt.min_us().is_some_and(|min| us < min) {
            return;
        }
        self.rack.advanced = true;
        self.rack.rtt_us = us;
        if (segment.at, segment.end) > (self.rack.at, self.rack.end) {
            self.rack.at = segment.at;
            self.rack.end = segment.end;
        }
    }

    /// True if the peer's echo shows that the original of a retransmitted segment was delivered
    /// (`tcp_skb_spurious_retrans`). This is valid only for data acknowledged in order: after a hole, the echo is that
    /// of the last segment before the hole (RFC 7323, 4.3).
    pub(super) fn was_copied_needlessly(segment: &Segment, packet: &Packet) -> bool {
        segment.is(EVER_RESENT | RESENT) && packet.echo > 0 && packet.echo < stamp(segment.at)
    }

    /// Widens the reordering window by a quarter of the minimum round-trip time after each round with duplicates that
    /// reordering may have caused. After sixteen recoveries the window is reset.
    pub(super) fn widen_reordering(&mut self) {
        if self.una < self.rack.last_delivered {
            return;
        }
        if std::mem::take(&mut self.rack.duplicate_seen) {
            self.rack.steps = (self.rack.steps + 1).min(255);
            self.rack.last_delivered = self.next;
            self.rack.persist = 16;
        } else if self.rack.persist == 0 {
            self.rack.steps = 1;
        }
    }

    fn reordering_window_us(&self) -> u64 {
        if !self.reordering_seen && (self.recovery >= Recovery::Recovery || self.sacked >= self.reordering) {
            return 0;
        }
        let quarter = self.rtt.min_us().unwrap_or(0) / 4;
        (quarter * u64::from(self.rack.steps)).min(self.rtt.smoothed_us().unwrap_or(0))
    }

    /// Marks lost segments: those sent long enough before a segment that was delivered. Sets a timer if there are
    /// segments that may be marked later.
    pub(super) fn identify_lost(&mut self, now: Ns, summary: &mut AckSummary, config: &TcpConfig) {
        if self.sent == 0 || !std::mem::take(&mut self.rack.advanced) {
            return;
        }
        let wait_us = self.mark_rack_lost(now, summary);
        if wait_us > 0 {
            let jiffies =
                self.clock.of_us(wait_us + u64::from(config.timer_floor_us)).min(self.timeout_jiffies);
            self.set_timer(now, Timer::Reorder, jiffies);
            summary.set_timer = false;
        }
    }

    fn mark_rack_lost(&mut self, now: Ns, summary: &mut AckSummary) -> u64 {
        let window_us = self.reordering_window_us();
        let mut wait_us = 0;
        for index in 0..self.sent as usize {
            let segment = self.queue[index];
            let waiting = segment.is(LOST) && !segment.is(RESENT);
            let earlier = (segment.at, segment.end) < (self.rack.at, self.rack.end);
            if segment.is(SACKED) || waiting || !earlier {
                continue;
            }
            let limit_us = self.rack.rtt_us + window_us;
            let passed_us = us_between(segment.at, now);
            if passed_us >= limit_us {
                summary.lost_again |= segment.is(RESENT);
                summary.newly_lost += 1;
                self.mark_lost(index);
            } else {
                wait_us = wait_us.max(limit_us - passed_us);
            }
        }
        wait_us
    }

    /// The reordering timeout has expired.
    pub(super) fn reordering_timeout(&mut self, now: Ns, config: &TcpConfig, out: &mut Vec<Packet>) {
        let before = self.in_flight();
        let mut summary = AckSummary::default();
        self.mark_rack_lost(now, &mut summary);
        if before != self.in_flight() {
            if self.recovery != Recovery::Recovery {
                self.enter_recovery();
                self.reduce(1, 0, false);
            }
            self.repair_lost(now, config, out);
        }
        if !matches!(self.timer, Some((Timer::Retransmit, _))) {
            self.rearm(now);
        }
    }
}
