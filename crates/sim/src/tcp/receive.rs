//! Receiving: putting segments in order, and acknowledging them at once or later.

use super::{ACK, FIN, MAX_BLOCKS, Packet, SYN, Tcp, TcpConfig};
use shakedown_link::Ns;

const MAX_QUICK: u32 = 16;
const ACK_DELAY_US: u64 = 40_000;
const MAX_ACK_DELAY_US: u64 = 200_000;
const MAX_IDLE_ACK_DELAY_US: u64 = 500_000;
/// The receive window that a host begins with.
const WINDOW_BYTES: u32 = 65_535;

impl Tcp {
    /// A packet on an established connection.
    pub(super) fn established(
        &mut self,
        now: Ns,
        packet: &Packet,
        config: &TcpConfig,
        out: &mut Vec<Packet>,
    ) {
        if packet.is(SYN) {
            // A repeated SYN-ACK: its acknowledgement was lost.
            if self.may_challenge(now) {
                self.acknowledge(now, config, out);
            }
            return;
        }
        if packet.end() < self.acknowledged {
            self.answer_old(now, packet, config, out);
            return;
        }
        if packet.seq <= self.acknowledged && packet.stamp >= self.stamp_to_echo {
            self.stamp_to_echo = packet.stamp;
        }
        if packet.is(ACK) {
            self.acknowledged_by(now, packet, config, out);
        }
        if packet.bytes > 0 || packet.is(FIN) {
            self.take(now, packet);
        }
        self.push(now, config, out);
        self.acknowledge_now_or_later(now, config, out);
    }

    /// All data of the packet was acknowledged before: the packet is answered, and its other fields are ignored,
    /// including its timestamp (`tcp_sequence`). The answer therefore echoes an old timestamp, and the peer measures
    /// too long a round trip: its timeout grows by the duration of the recovery.
    fn answer_old(&mut self, now: Ns, packet: &Packet, config: &TcpConfig, out: &mut Vec<Packet>) {
        if packet.bytes > 0 || packet.is(FIN) {
            self.take(now, packet);
        } else if !self.may_challenge(now) {
            return;
        }
        self.acknowledge(now, config, out);
    }

    fn take(&mut self, now: Ns, packet: &Packet) {
        let (seq, end) = (packet.seq, packet.end());
        if end <= self.received {
            // A duplicate is acknowledged at once, with a report (RFC 2883).
            self.duplicate = Some((seq, end));
            self.enter_quick();
            self.ack_pending = true;
            return;
        }
        if seq > self.received {
            self.keep_out_of_order(seq, end, packet.is(FIN));
            self.ack_pending = true;
            self.ack_now = true;
            return;
        }
        if seq < self.received {
            self.duplicate = Some((seq, self.received));
        }
        self.data_received(now, packet);
        self.received = end;
        self.ended |= packet.is(FIN);
        self.fill_gaps();
        if packet.is(FIN) {
            self.ack_now = true;
        }
    }

    /// Stores a range received out of order; the newest range is the first.
    fn keep_out_of_order(&mut self, seq: u32, end: u32, ends: bool) {
        if let Some(&(from, to)) = self.out_of_order.iter().find(|(from, to)| seq < *to && end > *from) {
            self.duplicate = Some((seq.max(from), end.min(to)));
        }
        let (mut seq, mut end) = (seq, end);
        self.out_of_order.retain(|&(from, to)| {
            let apart = to < seq || from > end;
            if !apart {
                seq = seq.min(from);
                end = end.max(to);
            }
            apart
        });
        self.out_of_order.insert(0, (seq, end));
        self.end_known |= ends;
    }

    fn fill_gaps(&mut self) {
        if self.out_of_order.is_empty() {
            return;
        }
        while let Some(index) = self.out_of_order.iter().position(|(from, _)| *from <= self.received) {
            let (_, to) = self.out_of_order.remove(index);
            self.received = self.received.max(to);
        }
        if self.out_of_order.is_empty() {
            self.ended |= self.end_known;
            self.ack_now = true;
        }
    }

    fn data_received(&mut self, now: Ns, packet: &Packet) {
        self.ack_pending = true;
        let jiffies = self.clock.at(now);
        if packet.bytes >= self.peer_segment {
            self.peer_segment = packet.bytes.min(self.segment_bytes);
        } else {
            self.pushed = (self.pushed + 1).min(2);
        }
        let shortest = self.clock.of_us(ACK_DELAY_US);
        if self.got_data {
            let gap = jiffies - self.last_received;
            if gap <= shortest / 2 {
                self.ack_timeout = self.ack_timeout / 2 + shortest / 2;
            } else if gap < self.ack_timeout {
                let longest = self.clock.of_us(MAX_ACK_DELAY_US);
                self.ack_timeout = (self.ack_timeout / 2 + gap).min(self.timeout_jiffies).min(longest);
            } else if gap > self.timeout_jiffies {
                self.more_quick();
            }
        } else {
            self.got_data = true;
            self.more_quick();
            self.ack_timeout = shortest;
        }
        self.last_received = jiffies;
        if packet.bytes >= 128 {
            // The receive window grows, and one more segment is acknowledged at once.
            self.quick |= 1;
        }
    }

    fn more_quick(&mut self) {
        let count = (WINDOW_BYTES / (2 * self.peer_segment)).clamp(2, MAX_QUICK);
        self.quick = self.quick.max(count);
    }

    fn enter_quick(&mut self) {
        self.more_quick();
        self.pingpong = false;
        self.ack_timeout = self.clock.of_us(ACK_DELAY_US);
    }

    fn acknowledge_now_or_later(&mut self, now: Ns, config: &TcpConfig, out: &mut Vec<Packet>) {
        if !self.ack_pending {
            return;
        }
        let two_segments = self.received - self.acknowledged > self.peer_segment;
        let quick = config.quick_ack || self.quick > 0 && !self.pingpong;
        if two_segments || quick || self.ack_now {
            self.acknowledge(now, config, out);
        } else {
            self.acknowledge_later(now);
        }
    }

    /// The application has read all data. Two small segments, or one outside ping-pong mode, are then acknowledged
    /// without delay.
    pub fn read(&mut self, now: Ns, config: &TcpConfig, out: &mut Vec<Packet>) {
        let small = self.pushed == 2 || self.pushed == 1 && !self.pingpong;
        if self.ack_pending && small {
            self.acknowledge(now, config, out);
        }
    }

    fn acknowledge_later(&mut self, now: Ns) {
        let mut delay = self.ack_timeout;
        let shortest = self.clock.of_us(ACK_DELAY_US);
        if delay > shortest {
            let interactive = self.pingpong || self.pushed > 0;
            let longest_us = if interactive { MAX_ACK_DELAY_US } else { MAX_IDLE_ACK_DELAY_US };
            let mut longest = self.clock.of_us(longest_us);
            if let Some(us) = self.rtt.smoothed_us() {
                longest = longest.min(self.clock.of_us(us).max(shortest));
            }
            delay = delay.min(longest);
        }
        let at = self.clock.fires(now, delay.min(self.clock.of_us(MAX_ACK_DELAY_US)));
        self.ack_at = Some(self.ack_at.map_or(at, |earlier| earlier.min(at)));
    }

    pub(super) fn delayed_ack(&mut self, now: Ns, config: &TcpConfig, out: &mut Vec<Packet>) {
        self.ack_at = None;
        if !self.ack_pending {
            return;
        }
        if self.pingpong {
            self.pingpong = false;
            self.ack_timeout = self.clock.of_us(ACK_DELAY_US);
        } else {
            let longest = self.clock.of_us(MAX_ACK_DELAY_US).min(self.timeout_jiffies);
            self.ack_timeout = (self.ack_timeout * 2).min(longest);
        }
        self.acknowledge(now, config, out);
    }

    /// Sends an acknowledgement without data.
    pub(super) fn acknowledge(&mut self, now: Ns, config: &TcpConfig, out: &mut Vec<Packet>) {
        let mut packet = self.bare(now, config);
        self.add_blocks(&mut packet, config);
        out.push(packet);
        self.acknowledgement_sent();
    }

    /// A packet that acknowledges the received data was sent, with or without data.
    pub(super) fn acknowledgement_sent(&mut self) {
        if self.quick > 0 && self.ack_pending {
            self.quick -= 1;
            if self.quick == 0 {
                self.ack_timeout = self.clock.of_us(ACK_DELAY_US);
            }
        }
        self.ack_pending = false;
        self.ack_now = false;
        self.ack_at = None;
        self.pushed = 0;
        self.duplicate = None;
        self.acknowledged = self.received;
    }

    pub(super) fn add_blocks(&self, packet: &mut Packet, config: &TcpConfig) {
        let room = if config.timestamps { MAX_BLOCKS - 1 } else { MAX_BLOCKS };
        let blocks = self.duplicate.iter().chain(&self.out_of_order);
        for (place, block) in packet.sack.iter_mut().zip(blocks).take(room) {
            *place = *block;
            packet.blocks += 1;
        }
    }
}
