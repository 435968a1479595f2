//! Acknowledgements that arrive: what was delivered, what was lost, and what the window may be.

use super::congestion::{Acked, INFINITE};
use super::{
    EVER_RESENT, LOST, MAX_REORDERING, MIN_TIMER_US, Packet, REORDERING, RESENT, Recovery, SACKED, Segment,
    Tcp, TcpConfig, Timer, stamp, us_between,
};
use shakedown_link::Ns;

/// What an acknowledgement brought.
#[derive(Clone, Copy, Debug, Default)]
struct News {
    /// It acknowledges more than any before.
    advanced: bool,
    /// It acknowledges data, of which some was sent again.
    data: bool,
    resent: bool,
    /// It selectively acknowledges more than any before.
    sacked: bool,
    /// Data sent only once, before the episode began.
    original: bool,
    /// It reports a duplicate; the probe's.
    duplicate: bool,
    probe_duplicate: bool,
    /// The packet carries data itself.
    carries: bool,
    set_timer: bool,
    /// A copy was lost too.
    lost_again: bool,
    delivered: u32,
    newly_lost: u32,
    /// The first byte delivered late of what was sent only once.
    reordered_from: u32,
    /// When the first and last of what was newly selectively acknowledged had been sent.
    sacked_at: Option<(Ns, Ns)>,
}

/// What to send after an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resend {
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
        let mut news = News { carries: packet.bytes > 0, reordered_from: self.next, ..News::default() };
        if packet.ack > self.next {
            return;
        }
        if packet.ack < prior_una {
            if packet.blocks > 0 {
                self.take_blocks(now, packet, prior_una, &mut news);
                let resend = self.alert(now, packet, prior_una, false, &mut news, config);
                self.send_after(resend, now, config, out);
            }
            return;
        }
        if packet.ack > prior_una {
            news.advanced = true;
            self.timeouts = 0;
        }
        let highest_sacked = self.highest_sacked();
        let had_sent = self.sent > 0;
        self.una = packet.ack;
        if packet.blocks > 0 {
            self.take_blocks(now, packet, prior_una, &mut news);
        }
        if !had_sent {
            if news.duplicate {
                self.alert(now, packet, prior_una, false, &mut news, config);
            }
            if self.probe_high > 0 {
                self.probe_acknowledged(packet, &news);
            }
            return;
        }
        self.remove_acknowledged(now, packet, highest_sacked, config, &mut news);
        self.widen_reordering();
        if self.probe_high > 0 {
            self.probe_acknowledged(packet, &news);
        }
        let ordinary = news.carries || news.data;
        let mut resend = Resend::Nothing;
        if !ordinary || news.sacked || news.duplicate || self.recovery != Recovery::Open {
            let duplicate = !(news.advanced || ordinary || news.duplicate);
            resend = self.alert(now, packet, prior_una, duplicate, &mut news, config);
        }
        if news.set_timer && !self.schedule_probe(now, config, true) {
            self.rearm(now);
        }
        self.control_window(now, &news);
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

    fn highest_sacked(&self) -> u32 {
        let sent = self.queue.iter().take(self.sent as usize);
        sent.rev().find(|segment| segment.is(SACKED)).map_or(self.una, |segment| segment.end)
    }

    /// Marks what the blocks acknowledge. Parts of a segment don't count.
    fn take_blocks(&mut self, now: Ns, packet: &Packet, prior_una: u32, news: &mut News) {
        let blocks = packet.sack();
        let mut first = 0;
        let (from, to) = blocks[0];
        let within = blocks.get(1).is_some_and(|outer| from >= outer.0 && to <= outer.1);
        if from < packet.ack || within {
            self.duplicate_reported(from, to, news);
            first = 1;
            if self.undo.is_some_and(|undo| to > undo) && self.undo_resent > 0 && to <= prior_una {
                self.undo_resent -= 1;
            }
        }
        for &(from, to) in &blocks[first..] {
            for index in 0..self.sent as usize {
                let segment = self.queue[index];
                if segment.seq < from || segment.end > to || segment.is(SACKED) || segment.end <= self.una {
                    continue;
                }
                self.delivered_out_of_order(now, index, packet, news);
            }
        }
        if (self.recovery != Recovery::Loss || self.undo.is_some()) && news.sacked {
            self.check_reordering(news.reordered_from, self.highest_sacked());
        }
    }

    fn delivered_out_of_order(&mut self, now: Ns, index: usize, packet: &Packet, news: &mut News) {
        let highest = self.highest_sacked();
        let segment = &mut self.queue[index];
        let before = *segment;
        segment.flags |= SACKED;
        segment.flags &= !(LOST | RESENT);
        self.sacked += 1;
        self.lost -= u32::from(before.is(LOST));
        self.resent -= u32::from(before.is(RESENT));
        news.sacked = true;
        news.delivered += 1;
        if !before.is(EVER_RESENT) {
            if before.seq < highest {
                news.reordered_from = news.reordered_from.min(before.seq);
            }
            news.original |= before.end <= self.high;
            let earliest = news.sacked_at.map_or(before.at, |(first, _)| first);
            news.sacked_at = Some((earliest, before.at));
        }
        self.advance_rack(now, &before, packet);
    }

    fn duplicate_reported(&mut self, from: u32, to: u32, news: &mut News) {
        let segments = (to - from).div_ceil(self.segment_bytes).max(1);
        if segments == 1 && self.probe_high > 0 && self.probe_high == to {
            news.probe_duplicate = true;
        }
        self.duplicates += segments;
        if self.duplicates > self.total_resent {
            return;
        }
        if self.reordering_seen && !news.probe_duplicate {
            self.rack.duplicate_seen = true;
        }
        news.duplicate = true;
        news.delivered += segments;
    }

    /// What was delivered after something sent later was reordered, unless it was sent again.
    fn check_reordering(&mut self, low: u32, highest: u32) {
        if low >= highest {
            return;
        }
        let distance = highest - low;
        if distance > self.reordering * self.segment_bytes {
            self.reordering = distance.div_ceil(self.segment_bytes).min(MAX_REORDERING);
        }
        self.reordering_seen = true;
    }

    /// Takes what is acknowledged off the queue, and the round trip from it.
    fn remove_acknowledged(
        &mut self,
        now: Ns,
        packet: &Packet,
        highest_sacked: u32,
        config: &TcpConfig,
        news: &mut News,
    ) {
        let (mut first, mut last) = (None, None);
        let mut reordered_from = self.next;
        let mut removed = 0;
        while self.sent > 0 && self.queue[0].end <= self.una {
            let Some(segment) = self.queue.pop_front() else { break };
            self.sent -= 1;
            removed += 1;
            if segment.is(EVER_RESENT) {
                self.resent -= u32::from(segment.is(RESENT));
                news.resent = true;
            } else if !segment.is(SACKED) {
                first = first.or(Some(segment.at));
                last = Some(segment.at);
                reordered_from = reordered_from.min(segment.seq);
                news.original |= segment.end <= self.high;
            }
            if segment.is(SACKED) {
                self.sacked -= 1;
            } else if config.sack {
                news.delivered += 1;
                self.advance_rack(now, &segment, packet);
            }
            self.lost -= u32::from(segment.is(LOST));
            news.data = true;
        }
        let since = |at| us_between(at, now);
        let mut smoothed = first.filter(|_| !news.resent).map(since);
        let mut latest = last.filter(|_| !news.resent).map(since);
        let sacked_us = news.sacked_at.map(|(first, last)| (since(first), since(last)));
        if let Some((earliest_us, latest_us)) = sacked_us {
            smoothed = smoothed.or(Some(earliest_us));
            latest = Some(latest_us);
        }
        if smoothed.is_none() && config.timestamps && packet.echo > 0 && news.data {
            smoothed = Some(u64::from(stamp(now).saturating_sub(packet.echo).max(1)) * 1_000);
            latest = smoothed;
        }
        if let (Some(us), Some(latest_us)) = (smoothed, latest) {
            self.rtt.sample_min(latest_us);
            self.rtt.sample(us, self.una, self.next);
            self.set_timeout();
            let acked = Acked { now, segments: removed, acknowledged: self.una, sent: self.next };
            self.window.sampled(&acked, latest_us);
        }
        if news.data {
            news.set_timer = true;
            if config.sack {
                if reordered_from < highest_sacked {
                    self.check_reordering(reordered_from, highest_sacked);
                }
            } else {
                self.forget_counted(removed, news);
            }
        } else if let (Some(head), Some((us, _))) = (self.queue.front(), sacked_us) {
            news.set_timer |= self.sent > 0 && us > us_between(head.at, now);
        }
    }

    // Without SACK, duplicate acknowledgements are counted in its place (NewReno, RFC 6582).

    fn count_duplicate(&mut self, news: &mut News) {
        self.sacked += 1;
        let holes = self.lost.max(1).min(self.sent);
        if self.sacked + holes > self.sent {
            self.sacked = self.sent - holes;
            self.reordering = self.sent.clamp(REORDERING, MAX_REORDERING);
            self.reordering_seen = true;
        } else {
            news.delivered += 1;
        }
    }

    fn forget_counted(&mut self, removed: u32, news: &mut News) {
        news.delivered += removed.saturating_sub(self.sacked).max(1);
        self.sacked = self.sacked.saturating_sub(removed - 1).min(self.sent);
        if news.resent {
            news.original = false;
        }
    }

    fn advance_rack(&mut self, now: Ns, segment: &Segment, packet: &Packet) {
        let copied = segment.is(EVER_RESENT | RESENT);
        if copied && packet.echo > 0 && packet.echo < stamp(segment.at) {
            // The original was delivered, not the copy.
            return;
        }
        let us = us_between(segment.at, now);
        if copied && self.rtt.min_us().is_some_and(|min| us < min) {
            return;
        }
        self.rack.advanced = true;
        self.rack.rtt_us = us;
        if (segment.at, segment.end) > (self.rack.at, self.rack.end) {
            self.rack.at = segment.at;
            self.rack.end = segment.end;
        }
    }

    /// The reordering window grows by a quarter of the least round trip with each round in which duplicates were reported
    /// that reordering may have caused, and forgets after sixteen recoveries.
    fn widen_reordering(&mut self) {
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

    /// Finds what is lost (RACK): what was sent long enough before something that was delivered. True where a timer was
    /// set for what may still turn out to be.
    fn find_lost(&mut self, now: Ns, news: &mut News) -> bool {
        if !std::mem::take(&mut self.rack.advanced) {
            return false;
        }
        let wait_us = self.mark_rack_lost(now, news);
        if wait_us > 0 {
            let jiffies = self.clock.of_us(wait_us + MIN_TIMER_US).min(self.timeout_jiffies);
            self.set_timer(now, Timer::Reorder, jiffies);
        }
        wait_us > 0
    }

    fn mark_rack_lost(&mut self, now: Ns, news: &mut News) -> u64 {
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
                news.lost_again |= segment.is(RESENT);
                news.newly_lost += 1;
                self.mark_lost(index);
            } else {
                wait_us = wait_us.max(limit_us - passed_us);
            }
        }
        wait_us
    }

    /// The time for stragglers is over.
    pub(super) fn reordering_timeout(&mut self, now: Ns, config: &TcpConfig, out: &mut Vec<Packet>) {
        let before = self.in_flight();
        let mut news = News::default();
        self.mark_rack_lost(now, &mut news);
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

    fn identify_lost(&mut self, now: Ns, news: &mut News, config: &TcpConfig) {
        if self.sent == 0 {
            return;
        }
        if config.sack {
            if self.find_lost(now, news) {
                news.set_timer = false;
            }
            return;
        }
        let begins = self.recovery < Recovery::Recovery && self.sacked >= self.reordering;
        if begins || self.recovery == Recovery::Recovery && news.advanced {
            if self.queue[0].is(LOST) {
                return;
            }
            news.newly_lost += 1;
            self.mark_lost(0);
        }
    }

    /// A duplicate, a selective acknowledgement, or anything while not all is well.
    fn alert(
        &mut self,
        now: Ns,
        packet: &Packet,
        prior_una: u32,
        duplicate: bool,
        news: &mut News,
        config: &TcpConfig,
    ) -> Resend {
        if self.sent == 0 {
            self.sacked = 0;
        }
        if self.recovery == Recovery::Open {
            self.first_resent_stamp = 0;
        } else if self.una >= self.high {
            match self.recovery {
                Recovery::Reduced if self.una != self.high => {
                    self.end_reduction();
                    self.recovery = Recovery::Open;
                }
                Recovery::Recovery => {
                    if !config.sack {
                        self.sacked = 0;
                    }
                    if self.finish_recovery(packet, config) {
                        return Resend::Nothing;
                    }
                    self.end_reduction();
                }
                _ => {}
            }
        }
        match self.recovery {
            Recovery::Recovery => {
                if !news.advanced {
                    if !config.sack && duplicate {
                        self.count_duplicate(news);
                    }
                } else if self.undo_partly(packet, prior_una) {
                    return Resend::Nothing;
                }
                if self.undo_by_duplicates() {
                    self.try_open();
                }
                self.identify_lost(now, news, config);
                if self.recovery != Recovery::Recovery {
                    if self.lost == 0 {
                        return Resend::Nothing;
                    }
                    self.enter_recovery();
                }
                return Resend::Lost;
            }
            Recovery::Loss => {
                let resend = self.after_timeout(packet, duplicate, news, config);
                self.identify_lost(now, news, config);
                if self.recovery != Recovery::Open && !news.lost_again {
                    return resend;
                }
            }
            _ => {}
        }
        if !config.sack {
            if news.advanced {
                self.sacked = 0;
            }
            if duplicate {
                self.count_duplicate(news);
            }
        }
        if self.recovery <= Recovery::Disorder {
            self.undo_by_duplicates();
        }
        self.identify_lost(now, news, config);
        if self.lost == 0 {
            self.try_open();
            return Resend::Nothing;
        }
        self.enter_recovery();
        Resend::Lost
    }

    /// Recovery from a timeout, with F-RTO (RFC 5682).
    fn after_timeout(&mut self, packet: &Packet, duplicate: bool, news: &News, config: &TcpConfig) -> Resend {
        let recovered = self.una >= self.high;
        if news.advanced && self.undo_timeout(packet, false, config) {
            return Resend::Nothing;
        }
        if self.forward_rto {
            if news.original && self.undo_timeout(packet, true, config) {
                return Resend::Nothing;
            }
            if self.next > self.high {
                if news.sacked || duplicate {
                    self.forward_rto = false;
                }
            } else if news.advanced && !recovered {
                self.high = self.next;
                if (self.sent as usize) < self.queue.len() {
                    return Resend::New;
                }
                self.forward_rto = false;
            }
        }
        if recovered {
            self.finish_recovery(packet, config);
            return Resend::Nothing;
        }
        if !config.sack {
            if self.next > self.high && duplicate {
                self.sacked += 1;
            } else if news.advanced {
                self.sacked = 0;
            }
        }
        Resend::Lost
    }

    /// True where the peer's echo shows that the original arrived: it is older than the first copy.
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
        if self.prior_threshold > 0 {
            self.window.segments = self.window.segments.max(self.prior_window);
            self.window.threshold = self.window.threshold.max(self.prior_threshold);
        }
        self.undo = None;
        self.rack.advanced = true;
    }

    fn undo_timeout(&mut self, packet: &Packet, proven: bool, config: &TcpConfig) -> bool {
        if !proven && !self.may_undo(packet) {
            return false;
        }
        self.undo_reduction(true);
        self.timeouts = 0;
        if self.holds_state(config) {
            return true;
        }
        if proven || config.sack {
            self.recovery = Recovery::Open;
        }
        true
    }

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

    fn undo_by_duplicates(&mut self) -> bool {
        if self.undo.is_none() || self.undo_resent != 0 {
            return false;
        }
        self.rack.persist = (self.rack.persist + 1).min(16);
        self.undo_reduction(false);
        true
    }

    /// Without SACK the old state is kept until something above its end is acknowledged.
    fn holds_state(&self, config: &TcpConfig) -> bool {
        !config.sack && self.una == self.high
    }

    /// Everything of the episode is acknowledged. True where the state stays.
    fn finish_recovery(&mut self, packet: &Packet, config: &TcpConfig) -> bool {
        if self.may_undo(packet) {
            self.undo_reduction(false);
        } else {
            self.rack.persist = self.rack.persist.saturating_sub(1);
        }
        if self.holds_state(config) {
            return true;
        }
        self.recovery = Recovery::Open;
        false
    }

    fn any_resent(&self) -> bool {
        self.resent > 0 || self.sent > 0 && self.queue[0].is(EVER_RESENT)
    }

    fn keep_open(&mut self) {
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

    fn enter_recovery(&mut self) {
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

    fn begin_reduction(&mut self) {
        self.high = self.next;
        self.probe_high = 0;
        self.window.clear_count();
        self.prior_window = self.window.segments;
        self.prr_delivered = 0;
        self.prr_sent = 0;
        self.window.threshold = self.window.after_loss();
    }

    fn end_reduction(&mut self) {
        if self.window.threshold < INFINITE && (self.recovery == Recovery::Reduced || self.undo.is_some()) {
            self.window.segments = self.window.threshold;
        }
    }

    /// Proportional rate reduction (RFC 6937).
    fn reduce(&mut self, delivered: u32, newly_lost: u32, advanced: bool) {
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

    fn probe_acknowledged(&mut self, packet: &Packet, news: &News) {
        if packet.ack < self.probe_high {
            return;
        }
        if !self.probe_resent || news.probe_duplicate {
            self.probe_high = 0;
        } else if packet.ack > self.probe_high {
            // More than the probe's copy was acknowledged, without a word of a duplicate: something was lost.
            self.begin_reduction();
            self.recovery = Recovery::Reduced;
            self.end_reduction();
            self.keep_open();
        } else if !(news.advanced || news.data || news.carries || news.sacked) {
            self.probe_high = 0;
        }
    }

    fn control_window(&mut self, now: Ns, news: &News) {
        if self.is_reducing() {
            self.reduce(news.delivered, news.newly_lost, news.advanced);
            return;
        }
        let grows = if self.reordering > REORDERING { news.data || news.sacked } else { news.data };
        if grows && self.is_window_limited() {
            let acked = Acked { now, segments: news.delivered, acknowledged: self.una, sent: self.next };
            self.window.grow(&acked);
        }
    }
}
