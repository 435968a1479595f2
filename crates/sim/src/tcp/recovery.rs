//! Recovery from losses, its undo if nothing was lost, and its sending rate (RFC 5682, 6937).

use super::acknowledge::{AckSummary, Resend};
use super::congestion::INFINITE;
use super::{EVER_RESENT, LOST, Packet, Recovery, Tcp, TcpConfig};
use shakedown_link::Ns;

impl Tcp {
    /// Processes a duplicate, a selective acknowledgement, or any acknowledgement while the state is not `Open`.
    pub(super) fn alert(
        &mut self,
        now: Ns,
        packet: &Packet,
        prior_una: u32,
        duplicate: bool,
        summary: &mut AckSummary,
        config: &TcpConfig,
    ) -> Resend {
        if self.recovery == Recovery::Open {
            self.first_resent_stamp = 0;
        } else if self.una >= self.high {
            match self.recovery {
                // The reduction ends when data sent after its beginning is acknowledged.
                Recovery::Reduced if self.una != self.high => {
                    self.end_reduction();
                    self.recovery = Recovery::Open;
                }
                Recovery::Recovery => {
                    self.finish_recovery(packet);
                    self.end_reduction();
                }
                _ => {}
            }
        }
        match self.recovery {
            Recovery::Recovery => {
                if summary.advanced && self.undo_partly(packet, prior_una) {
                    return Resend::Nothing;
                }
                if self.undo_by_duplicates() {
                    self.try_open();
                }
                self.identify_lost(now, summary, config);
                if self.recovery != Recovery::Recovery {
                    if self.lost == 0 {
                        return Resend::Nothing;
                    }
                    self.enter_recovery();
                }
                return Resend::Lost;
            }
            Recovery::Loss => {
                let resend = self.after_timeout(packet, duplicate, summary);
                self.identify_lost(now, summary, config);
                if self.recovery != Recovery::Open && !summary.lost_again {
                    return resend;
                }
            }
            _ => {}
        }
        if self.recovery <= Recovery::Disorder {
            self.undo_by_duplicates();
        }
        self.identify_lost(now, summary, config);
        if self.lost == 0 {
            self.try_open();
            return Resend::Nothing;
        }
        self.enter_recovery();
        Resend::Lost
    }

    /// Recovery from a timeout, with F-RTO (RFC 5682).
    fn after_timeout(&mut self, packet: &Packet, duplicate: bool, summary: &AckSummary) -> Resend {
        let recovered = self.una >= self.high;
        if summary.advanced && self.undo_timeout(packet, false) {
            return Resend::Nothing;
        }
        if self.forward_rto {
            if summary.original && self.undo_timeout(packet, true) {
                return Resend::Nothing;
            }
            if self.next > self.high {
                if summary.sacked || duplicate {
                    self.forward_rto = false;
                }
            } else if summary.advanced && !recovered {
                self.high = self.next;
                if (self.sent as usize) < self.queue.len() {
                    return Resend::New;
                }
                self.forward_rto = false;
            }
        }
        if recovered {
            self.finish_recovery(packet);
            return Resend::Nothing;
        }
        Resend::Lost
    }

    /// True if the original arrived: no segment was sent again, or the peer's echo is older than the first
    /// retransmission.
    fn was_delayed(&self, packet: &Packet) -> bool {
        match self.first_resent_stamp {
            0 => true,
            first => packet.echo > 0 && packet.echo < first,
        }
    }

    fn may_undo(&self, packet: &Packet) -> bool {
        self.undo.is_some() && (self.undo_resent == 0 || self.was_delayed(packet))
    }

    fn undo_reduction(&mut self, unmark: bool) {
        if unmark {
            for segment in self.queue.iter_mut().take(self.sent as usize) {
                segment.flags &= !LOST;
            }
            self.lost = 0;
        }
        if let Some(bbr) = &mut self.bbr {
            bbr.undone();
        } else if self.prior_threshold > 0 {
            self.window.segments = self.window.segments.max(self.prior_window);
            self.window.threshold = self.window.threshold.max(self.prior_threshold);
        }
        self.undo = None;
        self.rack.advanced = true;
    }

    fn undo_timeout(&mut self, packet: &Packet, proven: bool) -> bool {
        if !proven && !self.may_undo(packet) {
            return false;
        }
        self.undo_reduction(true);
        self.timeouts = 0;
        self.recovery = Recovery::Open;
        true
    }

    /// After a partial acknowledgement: undoes the reduction if the original arrived and no retransmission is in
    /// flight. True if retransmissions are in flight; nothing more is sent again until they are acknowledged.
    fn undo_partly(&mut self, packet: &Packet, prior_una: u32) -> bool {
        if self.undo.is_none() || !self.was_delayed(packet) {
            return false;
        }
        self.check_reordering(prior_una, self.highest_sacked());
        if self.resent > 0 {
            return true;
        }
        self.undo_reduction(true);
        self.keep_open();
        false
    }

    /// Undoes the reduction if the peer reported every retransmission as a duplicate (D-SACK). True if it did.
    fn undo_by_duplicates(&mut self) -> bool {
        if self.undo.is_none() || self.undo_resent != 0 {
            return false;
        }
        self.rack.persist = (self.rack.persist + 1).min(16);
        self.undo_reduction(false);
        true
    }

    /// All data sent before the recovery is acknowledged.
    fn finish_recovery(&mut self, packet: &Packet) {
        if self.may_undo(packet) {
            self.undo_reduction(false);
        } else {
            self.rack.persist = self.rack.persist.saturating_sub(1);
        }
        self.recovery = Recovery::Open;
    }

    fn any_resent(&self) -> bool {
        self.resent > 0 || self.sent > 0 && self.queue[0].is(EVER_RESENT)
    }

    pub(super) fn keep_open(&mut self) {
        let calm = self.sacked + self.lost == 0 && !self.any_resent();
        let state = if calm { Recovery::Open } else { Recovery::Disorder };
        if self.recovery != state {
            self.recovery = state;
            self.high = self.next;
        }
    }

    fn try_open(&mut self) {
        if !self.any_resent() {
            self.first_resent_stamp = 0;
        }
        if self.recovery != Recovery::Reduced {
            self.keep_open();
        }
    }

    pub(super) fn enter_recovery(&mut self) {
        if !self.any_resent() {
            self.first_resent_stamp = 0;
        }
        self.prior_threshold = 0;
        self.begin_undo();
        if !self.is_reducing() {
            self.prior_threshold = self.window.current_threshold(false);
            self.begin_reduction();
        }
        self.recovery = Recovery::Recovery;
    }

    pub(super) fn begin_reduction(&mut self) {
        self.high = self.next;
        self.probe_high = 0;
        self.window.clear_count();
        self.prior_window = self.window.segments;
        self.prr_delivered = 0;
        self.prr_sent = 0;
        self.save_window();
        self.window.threshold = self.window.after_loss();
    }

    pub(super) fn end_reduction(&mut self) {
        if self.bbr.is_none()
            && self.window.threshold < INFINITE
            && (self.recovery == Recovery::Reduced || self.undo.is_some())
        {
            self.window.segments = self.window.threshold;
        }
    }

    /// Proportional rate reduction (RFC 6937).
    pub(super) fn reduce(&mut self, delivered: u32, newly_lost: u32, advanced: bool) {
        if delivered == 0 {
            return;
        }
        self.prr_delivered += delivered;
        let in_flight = self.in_flight();
        let threshold = self.window.threshold;
        let mut count = if in_flight > threshold {
            let share = (threshold * self.prr_delivered).div_ceil(self.prior_window.max(1));
            share.saturating_sub(self.prr_sent)
        } else {
            let behind = self.prr_delivered.saturating_sub(self.prr_sent).max(delivered);
            (behind + u32::from(advanced && newly_lost == 0)).min(threshold - in_flight)
        };
        if self.prr_sent == 0 {
            count = count.max(1);
        }
        self.window.segments = in_flight + count;
    }
}
