//! Sending: written bytes become segments, which are sent as the window allows, or when a timer expires.

use super::rtt::MIN_TIMEOUT_US;
use super::{
    ACK, EVER_RESENT, FIN, LAST, LOST, Packet, RESENT, RTO_MAX_US, Recovery, SACKED, Segment, State, Tcp,
    TcpConfig, Timer, stamp, us_between,
};
use shakedown_link::{Ns, SuperPackets};

impl Tcp {
    /// Queues bytes of the stream: one write of an application. They are sent as soon as the connection and the window
    /// allow.
    pub fn write(&mut self, now: Ns, bytes: u32, config: &TcpConfig, out: &mut Vec<Packet>) {
        let unsent_bytes = self.written - self.next.max(1);
        let in_flight = self.in_flight();
        if let Some(bbr) = &mut self.bbr
            && unsent_bytes < self.segment_bytes
            && in_flight < self.window.segments
            && self.lost <= self.resent
        {
            bbr.application_limited(in_flight);
        }
        let mut left = bytes;
        // The last segment is filled up if it was not sent yet.
        if let Some(last) = self.queue.back_mut()
            && self.next <= last.seq
            && !last.is(LAST)
        {
            let more = left.min(self.segment_bytes - (last.end - last.seq));
            last.end += more;
            self.written += more;
            left -= more;
        }
        while left > 0 {
            let length = left.min(self.segment_bytes);
            let seq = self.written;
            self.queue.push_back(Segment { seq, end: seq + length, at: Ns::ZERO, flags: 0 });
            self.written += length;
            left -= length;
        }
        self.push(now, config, out);
    }

    /// Sends segments as the window allows.
    pub(super) fn push(&mut self, now: Ns, config: &TcpConfig, out: &mut Vec<Packet>) {
        if self.state != State::Established || self.sent as usize == self.queue.len() {
            return;
        }
        self.restart_after_idle(now, config);
        let mut count = 0;
        let most = self.packet_segments();
        while (self.sent as usize) < self.queue.len() {
            if self.bbr.as_mut().is_some_and(|bbr| bbr.holds(now)) {
                break;
            }
            let room = self.window.segments.saturating_sub(self.in_flight());
            if room == 0 {
                break;
            }
            count += self.send_new(now, most.min(room), config, out);
        }
        if count > 0 {
            if self.is_reducing() {
                self.prr_sent += count;
            }
            self.schedule_probe(now, config, false);
        }
        self.note_usage();
    }

    /// Sends the first unsent segments, at most `most`, in one packet. Returns their number.
    fn send_new(&mut self, now: Ns, most: u32, config: &TcpConfig, out: &mut Vec<Packet>) -> u32 {
        let index = self.sent as usize;
        let count = if most > 1 { self.sent_together(index, most) } else { 1 };
        for segment in self.queue.range_mut(index..index + count) {
            segment.at = now;
        }
        out.push(self.packet(now, index, count, config));
        self.next = self.queue[index + count - 1].end;
        if let Some(bbr) = &mut self.bbr {
            let ends = self.queue.range(index..index + count).map(|segment| segment.end);
            bbr.sent(now, ends, self.next - self.queue[index].seq, index == 0);
        }
        self.sent += count as u32;
        if count > 1 {
            self.join(index, count);
        }
        self.data_sent(now);
        if index == 0 || matches!(self.timer, Some((Timer::Probe, _))) {
            self.rearm(now);
        }
        count as u32
    }

    /// The packet of `count` segments from `index` on.
    fn packet(&self, now: Ns, index: usize, count: usize, config: &TcpConfig) -> Packet {
        let (segment, last) = (&self.queue[index], &self.queue[index + count - 1]);
        let mut packet = Packet { seq: segment.seq, ..self.bare(now, config) };
        self.add_blocks(&mut packet, config);
        if segment.is(LAST) {
            packet.flags = ACK | FIN;
        }
        packet.bytes = last.end - segment.seq - u32::from(segment.is(LAST));
        // At most 255; see `packet_segments`.
        packet.more = (count - 1) as u8;
        packet
    }

    /// Data carries the acknowledgement; a reply within the delay of the acknowledgement begins ping-pong mode.
    fn data_sent(&mut self, now: Ns) {
        self.last_sent_at = now;
        if self.clock.at(now) - self.last_received < self.ack_timeout {
            self.pingpong = true;
        }
        self.acknowledgement_sent();
    }

    /// After a pause, halves the window once for each timeout in it, to no less than the initial window.
    fn restart_after_idle(&mut self, now: Ns, config: &TcpConfig) {
        let timeout_us = self.clock.as_us(self.timeout_jiffies).max(1);
        let idle_us = us_between(self.last_sent_at, now);
        let paced = self.bbr.is_some();
        if paced || self.sent > 0 || idle_us <= timeout_us || self.window.segments <= config.initial_window {
            return;
        }
        self.window.threshold = self.window.current_threshold(self.is_reducing());
        let halvings = ((idle_us - 1) / timeout_us).min(31) as u32;
        self.window.segments = (self.window.segments >> halvings).max(config.initial_window);
    }

    /// Records whether the window limits the sender; only then may the window grow.
    fn note_usage(&mut self) {
        let limited = self.in_flight() >= self.window.segments;
        if self.una >= self.usage_round || limited || (!self.window_limited && self.sent > self.max_sent) {
            self.window_limited = limited;
            self.max_sent = self.sent;
            self.usage_round = self.next;
        }
    }

    pub(super) fn is_window_limited(&self) -> bool {
        self.window_limited || self.window.in_slow_start() && self.window.segments < 2 * self.max_sent
    }

    /// Retransmits segments, in one packet.
    fn resend(&mut self, index: usize, count: usize, now: Ns, config: &TcpConfig, out: &mut Vec<Packet>) {
        for segment in self.queue.range_mut(index..index + count) {
            segment.at = now;
            segment.flags |= EVER_RESENT;
        }
        if self.super_packets != SuperPackets::None {
            self.join(index, count);
        }
        out.push(self.packet(now, index, count, config));
        if let Some(bbr) = &mut self.bbr {
            let bytes = self.queue[index + count - 1].end - self.queue[index].seq;
            bbr.resent(now, index, count, bytes);
        }
        self.total_resent += count as u32;
        self.last_sent_at = now;
        self.acknowledgement_sent();
    }

    /// Retransmits segments that count as lost.
    fn repair(&mut self, index: usize, count: usize, now: Ns, config: &TcpConfig, out: &mut Vec<Packet>) {
        self.resend(index, count, now, config, out);
        for segment in self.queue.range_mut(index..index + count) {
            segment.flags |= RESENT;
        }
        self.resent += count as u32;
        if self.first_resent_stamp == 0 {
            self.first_resent_stamp = stamp(now);
        }
        self.undo_resent = self.undo_resent.max(0) + count as i32;
    }

    /// Retransmits all segments that count as lost, as the window allows.
    pub(super) fn repair_lost(&mut self, now: Ns, config: &TcpConfig, out: &mut Vec<Packet>) {
        let mut head_sent = false;
        let most = self.packet_segments();
        let mut index = 0;
        while index < self.sent as usize {
            let room = self.window.segments.saturating_sub(self.in_flight());
            if room == 0 {
                break;
            }
            if self.bbr.as_mut().is_some_and(|bbr| bbr.holds(now)) {
                break;
            }
            let segment = &self.queue[index];
            if segment.is(SACKED | RESENT) || !segment.is(LOST) {
                index += 1;
                continue;
            }
            let count = self.resent_together(index, most.min(room));
            self.repair(index, count, now, config, out);
            if self.is_reducing() {
                self.prr_sent += count as u32;
            }
            head_sent |= index == 0 && !matches!(self.timer, Some((Timer::Reorder, _)));
            index += count;
        }
        if head_sent {
            self.set_timer(now, Timer::Retransmit, self.timeout_jiffies);
        }
    }

    /// Sends packets that pacing held back (`tcp_tsq_write`).
    pub(super) fn pace_allows(&mut self, now: Ns, config: &TcpConfig, out: &mut Vec<Packet>) {
        if let Some(bbr) = &mut self.bbr {
            bbr.held_until = None;
        }
        if self.lost > self.resent && self.window.segments > self.in_flight() {
            self.repair_lost(now, config, out);
        }
        self.push(now, config, out);
    }

    /// Sets the timer for the oldest segment, from now.
    pub(super) fn rearm(&mut self, now: Ns) {
        if self.sent == 0 {
            self.timer = None;
            return;
        }
        let mut jiffies = self.timeout_jiffies;
        if matches!(self.timer, Some((Timer::Reorder | Timer::Probe, _))) {
            jiffies = self.clock.of_us(self.timeout_left_us(now).max(1) as u64);
        }
        self.set_timer(now, Timer::Retransmit, jiffies);
    }

    /// The time left until the timeout of the oldest segment.
    fn timeout_left_us(&self, now: Ns) -> i64 {
        let oldest = self.queue.front().map_or(now, |segment| segment.at);
        self.clock.as_us(self.timeout_jiffies) as i64 - us_between(oldest, now) as i64
    }

    /// Sets the timer for a tail loss probe. False if no probe is allowed.
    pub(super) fn schedule_probe(&mut self, now: Ns, config: &TcpConfig, from_now: bool) -> bool {
        let calm = matches!(self.recovery, Recovery::Open | Recovery::Reduced);
        if self.sent == 0 || !calm {
            return false;
        }
        let mut jiffies = match self.rtt.twice_us() {
            Some(us) if self.sent == 1 => self.clock.of_us(us + MIN_TIMEOUT_US),
            Some(us) => self.clock.of_us(us + u64::from(config.timer_floor_us)),
            None => self.clock.of_us(super::FIRST_TIMEOUT_US),
        };
        let left_us =
            if from_now { self.clock.as_us(self.timeout_jiffies) as i64 } else { self.timeout_left_us(now) };
        if left_us > 0 {
            jiffies = jiffies.min(self.clock.of_us(left_us as u64));
        }
        self.set_timer(now, Timer::Probe, jiffies);
        true
    }

    /// Sends a probe: a new segment if there is one, otherwise the last segment again.
    pub(super) fn send_probe(&mut self, now: Ns, config: &TcpConfig, out: &mut Vec<Packet>) {
        if self.probe_high > 0 || self.sent == 0 {
            // Only one probe at a time.
            self.rearm(now);
            return;
        }
        self.probe_resent = self.sent as usize == self.queue.len();
        if self.probe_resent {
            // Of a super-packet, only the last segment.
            self.resend(self.sent as usize - 1, 1, now, config, out);
        } else {
            // Even if the window is full.
            let room = self.window.segments.saturating_sub(self.in_flight());
            self.send_new(now, self.packet_segments().min(room).max(1), config, out);
        }
        self.probe_high = self.next;
        self.timer = None;
        self.rearm(now);
    }

    /// Handles a retransmission timeout.
    pub(super) fn retransmission_timeout(&mut self, now: Ns, config: &TcpConfig, out: &mut Vec<Packet>) {
        self.timer = None;
        if self.sent == 0 {
            return;
        }
        if self.timeouts >= config.retries {
            self.close(State::TimedOut);
            return;
        }
        self.enter_loss(now);
        self.timeouts += 1;
        self.repair(0, 1, now, config, out);
        self.timeout_jiffies = (self.timeout_jiffies * 2).min(self.clock.of_us(RTO_MAX_US));
        self.set_timer(now, Timer::Retransmit, self.timeout_jiffies);
    }

    fn enter_loss(&mut self, now: Ns) {
        let new = self.recovery < Recovery::Recovery;
        self.mark_all_lost(now);
        if self.recovery <= Recovery::Disorder
            || self.high <= self.una
            || (self.recovery == Recovery::Loss && self.timeouts == 0)
        {
            self.prior_threshold = self.window.current_threshold(self.is_reducing());
            self.prior_window = self.window.segments;
            self.save_window();
            self.window.threshold = self.window.after_loss();
            self.window.timed_out();
            self.begin_undo();
        }
        self.window.segments = self.in_flight() + 1;
        self.window.clear_count();
        if self.recovery <= Recovery::Disorder && self.sacked >= self.usual_reordering {
            self.reordering = self.reordering.min(self.usual_reordering);
        }
        self.recovery = Recovery::Loss;
        if let Some(bbr) = &mut self.bbr {
            bbr.timed_out();
        }
        self.high = self.next;
        self.probe_high = 0;
        self.forward_rto = new || self.timeouts > 0;
    }

    /// Saves the window, which BBR restores after a recovery.
    pub(super) fn save_window(&mut self) {
        if let Some(bbr) = &mut self.bbr {
            bbr.save_window(self.window.segments);
        }
    }

    pub(super) fn begin_undo(&mut self) {
        self.undo = Some(self.una);
        self.undo_resent = self.resent as i32 + i32::from(self.probe_high > 0 && self.probe_resent);
        if self.undo_resent == 0 {
            // 0 would mean that all retransmissions were unnecessary.
            self.undo_resent = -1;
        }
    }

    /// After a timeout, marks all segments as lost except those so recent that they may still be acknowledged.
    fn mark_all_lost(&mut self, now: Ns) {
        for index in 0..self.sent as usize {
            let segment = &self.queue[index];
            let recent = us_between(segment.at, now) < self.rack.rtt_us;
            if !segment.is(SACKED) && (index == 0 || !recent) {
                self.mark_lost(index);
            }
        }
    }

    /// Marks a segment as lost; again if its retransmission was lost too.
    pub(super) fn mark_lost(&mut self, index: usize) {
        let segment = &mut self.queue[index];
        self.resent -= u32::from(segment.is(RESENT));
        self.lost += u32::from(!segment.is(LOST));
        segment.flags = segment.flags & !RESENT | LOST;
    }
}
