//! Processing of acknowledgements: delivered and lost segments, and the new window.

use super::bbr::Round;
use super::congestion::Acked;
use super::{
    EVER_RESENT, LOST, MAX_REORDERING, Packet, RESENT, Recovery, SACKED, Tcp, TcpConfig, stamp, us_between,
};
use shakedown_link::Ns;

/// The effects of an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckSummary {
    /// It acknowledges more than any before.
    pub advanced: bool,
    /// It acknowledges data; some of this data was retransmitted.
    pub data: bool,
    pub resent: bool,
    /// It selectively acknowledges more than any before.
    pub sacked: bool,
    /// It acknowledges data that was sent only once, before the recovery began.
    pub original: bool,
    /// It reports a duplicate; the duplicate is the probe.
    pub duplicate: bool,
    pub probe_duplicate: bool,
    /// The packet carries data itself.
    pub carries: bool,
    pub set_timer: bool,
    /// A retransmission was lost too.
    pub lost_again: bool,
    pub delivered: u32,
    pub newly_lost: u32,
    /// Segments in flight before it; the latest round-trip time that it yields.
    pub prior_in_flight: u32,
    pub round_trip_us: Option<u64>,
    /// The lowest sequence number that was delivered out of order and was sent only once.
    pub reordered_from: u32,
    /// Send times of the first and the last segment that it newly acknowledges selectively.
    pub sacked_at: Option<(Ns, Ns)>,
}

/// What to send after an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resend {
    Nothing,
    New,
    Lost,
}

impl Tcp {
    /// An acknowledgement has arrived.
    pub(super) fn acknowledged_by(
        &mut self,
        now: Ns,
        packet: &Packet,
        config: &TcpConfig,
        out: &mut Vec<Packet>,
    ) {
        let prior_una = self.una;
        let mut summary = AckSummary {
            carries: packet.bytes > 0,
            reordered_from: self.next,
            prior_in_flight: self.in_flight(),
            ..AckSummary::default()
        };
        if packet.ack > self.next {
            return;
        }
        if packet.ack < prior_una {
            if packet.blocks > 0 {
                self.take_blocks(now, packet, prior_una, &mut summary);
                let resend = self.alert(now, packet, prior_una, false, &mut summary, config);
                if let Some(bbr) = &mut self.bbr {
                    bbr.also_delivered(summary.delivered);
                }
                self.send_after(resend, now, config, out);
            }
            return;
        }
        if packet.ack > prior_una {
            summary.advanced = true;
            self.timeouts = 0;
        }
        let highest_sacked = self.highest_sacked();
        let had_sent = self.sent > 0;
        self.una = packet.ack;
        if packet.blocks > 0 {
            self.take_blocks(now, packet, prior_una, &mut summary);
        }
        if !had_sent {
            if summary.duplicate {
                self.alert(now, packet, prior_una, false, &mut summary, config);
            }
            if self.probe_high > 0 {
                self.probe_acknowledged(packet, &summary);
            }
            return;
        }
        self.remove_acknowledged(now, packet, highest_sacked, config, &mut summary);
        self.widen_reordering();
        if self.probe_high > 0 {
            self.probe_acknowledged(packet, &summary);
        }
        let ordinary = summary.carries || summary.data;
        let mut resend = Resend::Nothing;
        if !ordinary || summary.sacked || summary.duplicate || self.recovery != Recovery::Open {
            let duplicate = !(summary.advanced || ordinary || summary.duplicate);
            resend = self.alert(now, packet, prior_una, duplicate, &mut summary, config);
        }
        if summary.set_timer && !self.schedule_probe(now, config, true) {
            self.rearm(now);
        }
        self.control_window(now, &summary);
        self.send_after(resend, now, config, out);
    }

    fn send_after(&mut self, resend: Resend, now: Ns, config: &TcpConfig, out: &mut Vec<Packet>) {
        match resend {
            Resend::Nothing => {}
            Resend::New => {
                self.push(now, config, out);
                if self.next <= self.high {
                    self.forward_rto = false;
                    self.repair_lost(now, config, out);
                }
            }
            Resend::Lost => self.repair_lost(now, config, out),
        }
    }

    pub(super) fn highest_sacked(&self) -> u32 {
        let sent = self.queue.iter().take(self.sent as usize);
        sent.rev().find(|segment| segment.is(SACKED)).map_or(self.una, |segment| segment.end)
    }

    /// Marks the segments that the blocks acknowledge completely. The peer sends its newest block first, but blocks are
    /// processed in stream order, as in the kernel. Segments delivered in order then do not count as reordered, and the
    /// last segment that is processed is the one sent last.
    fn take_blocks(&mut self, now: Ns, packet: &Packet, prior_una: u32, summary: &mut AckSummary) {
        let blocks = packet.sack();
        let mut first = 0;
        let (from, to) = blocks[0];
        let within = blocks.get(1).is_some_and(|outer| from >= outer.0 && to <= outer.1);
        if from < packet.ack || within {
            let segments = self.duplicate_reported(from, to, summary);
            first = 1;
            if self.undo.is_some_and(|undo| to > undo) && self.undo_resent > 0 && to <= prior_una {
                self.undo_resent = self.undo_resent.saturating_sub_unsigned(segments).max(0);
            }
        }
        let mut sorted = packet.sack;
        let sorted = &mut sorted[first..usize::from(packet.blocks)];
        sorted.sort_unstable();
        for &(from, to) in &*sorted {
            for index in 0..self.sent as usize {
                let segment = self.queue[index];
                if segment.seq < from || segment.end > to || segment.is(SACKED) || segment.end <= self.una {
                    continue;
                }
                self.delivered_out_of_order(now, index, summary);
            }
        }
        if (self.recovery != Recovery::Loss || self.undo.is_some()) && summary.sacked {
            self.check_reordering(summary.reordered_from, self.highest_sacked());
        }
    }

    fn delivered_out_of_order(&mut self, now: Ns, index: usize, summary: &mut AckSummary) {
        if let Some(bbr) = &mut self.bbr {
            bbr.sacked(index);
        }
        let highest = self.highest_sacked();
        let segment = &mut self.queue[index];
        let before = *segment;
        segment.flags |= SACKED;
        segment.flags &= !(LOST | RESENT);
        self.sacked += 1;
        self.lost -= u32::from(before.is(LOST));
        self.resent -= u32::from(before.is(RESENT));
        summary.sacked = true;
        summary.delivered += 1;
        if !before.is(EVER_RESENT) {
            if before.seq < highest {
                summary.reordered_from = summary.reordered_from.min(before.seq);
            }
            summary.original |= before.end <= self.high;
            let earliest = summary.sacked_at.map_or(before.at, |(first, _)| first);
            summary.sacked_at = Some((earliest, before.at));
        }
        self.advance_rack(now, &before);
    }

    /// The number of segments that are reported as duplicates; 0 if more duplicates than retransmissions were reported.
    fn duplicate_reported(&mut self, from: u32, to: u32, summary: &mut AckSummary) -> u32 {
        let segments = (to - from).div_ceil(self.segment_bytes).max(1);
        if segments == 1 && self.probe_high > 0 && self.probe_high == to {
            summary.probe_duplicate = true;
        }
        self.duplicates += segments;
        if self.duplicates > self.total_resent {
            return 0;
        }
        if self.reordering_seen && !summary.probe_duplicate {
            self.rack.duplicate_seen = true;
        }
        summary.duplicate = true;
        summary.delivered += segments;
        segments
    }

    /// Records reordering: data from `low` was delivered after data up to `highest`, without a retransmission.
    pub(super) fn check_reordering(&mut self, low: u32, highest: u32) {
        if low >= highest {
            return;
        }
        let distance = highest - low;
        if distance > self.reordering * self.segment_bytes {
            self.reordering = distance.div_ceil(self.segment_bytes).min(MAX_REORDERING);
        }
        self.reordering_seen = true;
    }

    /// Removes acknowledged segments from the queue, and measures the round-trip time.
    fn remove_acknowledged(
        &mut self,
        now: Ns,
        packet: &Packet,
        highest_sacked: u32,
        config: &TcpConfig,
        summary: &mut AckSummary,
    ) {
        let (mut first, mut last) = (None, None);
        let mut reordered_from = self.next;
        let mut removed = 0;
        while self.sent > 0 && self.queue[0].end <= self.una {
            let Some(segment) = self.queue.pop_front() else { break };
            self.sent -= 1;
            removed += 1;
            if let Some(bbr) = &mut self.bbr {
                bbr.acknowledged();
            }
            if segment.is(EVER_RESENT) {
                self.resent -= u32::from(segment.is(RESENT));
                summary.resent = true;
            } else if !segment.is(SACKED) {
                first = first.or(Some(segment.at));
                last = Some(segment.at);
                reordered_from = reordered_from.min(segment.seq);
                summary.original |= segment.end <= self.high;
            }
            if segment.is(SACKED) {
                self.sacked -= 1;
            } else {
                summary.delivered += 1;
                if !Self::was_copied_needlessly(&segment, packet) {
                    self.advance_rack(now, &segment);
                }
            }
            self.lost -= u32::from(segment.is(LOST));
            summary.data = true;
        }
        let since = |at| us_between(at, now);
        let mut smoothed = first.filter(|_| !summary.resent).map(since);
        let mut latest = last.filter(|_| !summary.resent).map(since);
        let sacked_us = summary.sacked_at.map(|(first, last)| (since(first), since(last)));
        if let Some((earliest_us, latest_us)) = sacked_us {
            smoothed = smoothed.or(Some(earliest_us));
            latest = Some(latest_us);
        }
        if smoothed.is_none() && config.timestamps && packet.echo > 0 && summary.data {
            smoothed = Some(u64::from(stamp(now).saturating_sub(packet.echo).max(1)) * 1_000);
            latest = smoothed;
        }
        if let (Some(us), Some(latest_us)) = (smoothed, latest) {
            self.rtt.sample_min(latest_us);
            self.rtt.sample(us, self.una, self.next);
            self.set_timeout();
            summary.round_trip_us = Some(latest_us);
            let acked = Acked { now, segments: removed, acknowledged: self.una, sent: self.next };
            self.window.sampled(&acked, latest_us);
        }
        if summary.data {
            summary.set_timer = true;
            self.check_reordering(reordered_from, highest_sacked);
        } else if let (Some(head), Some((us, _))) = (self.queue.front(), sacked_us) {
            summary.set_timer |= self.sent > 0 && us > us_between(head.at, now);
        }
    }

    fn probe_acknowledged(&mut self, packet: &Packet, summary: &AckSummary) {
        if packet.ack < self.probe_high {
            return;
        }
        if !self.probe_resent || summary.probe_duplicate {
            self.probe_high = 0;
        } else if packet.ack > self.probe_high {
            // More than the probe was acknowledged, and no duplicate was reported: the original of the probe was lost.
            self.begin_reduction();
            self.recovery = Recovery::Reduced;
            self.end_reduction();
            self.keep_open();
        } else if !(summary.advanced || summary.data || summary.carries || summary.sacked) {
            self.probe_high = 0;
        }
    }

    fn control_window(&mut self, now: Ns, summary: &AckSummary) {
        if self.bbr.is_some() {
            let round = Round {
                now,
                delivered: summary.delivered,
                lost: summary.newly_lost,
                prior_in_flight: summary.prior_in_flight,
                in_flight: self.in_flight(),
                round_trip_us: summary.round_trip_us,
                min_round_trip_us: self.rtt.min_us().unwrap_or(0),
                in_recovery: self.recovery == Recovery::Recovery,
                repairing: self.recovery >= Recovery::Recovery,
            };
            if let Some(bbr) = &mut self.bbr {
                self.window.segments = bbr.update(&round, self.window.segments);
            }
            return;
        }
        if self.is_reducing() {
            self.reduce(summary.delivered, summary.newly_lost, summary.advanced);
            return;
        }
        let grows = if self.reordering > self.usual_reordering {
            summary.data || summary.sacked
        } else {
            summary.data
        };
        if grows && self.is_window_limited() {
            let acked = Acked { now, segments: summary.delivered, acknowledged: self.una, sent: self.next };
            self.window.grow(&acked);
        }
    }
}
