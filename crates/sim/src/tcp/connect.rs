//! Opening a connection.

use super::bbr::Bbr;
use super::congestion::{Congestion, INFINITE, Window};
use super::{
    ACK, FALLBACK_TIMEOUT_US, FIRST_TIMEOUT_US, Jiffies, Packet, RTO_MAX_US, Recovery, SYN, State, Tcp,
    TcpConfig, Timer, stamp, us_between,
};
use shakedown_link::Ns;

/// The minimum time between two answers to invalid packets.
const CHALLENGE_GAP: Ns = Ns::from_ms(500);

impl Tcp {
    /// A client, which sends its SYN now.
    #[must_use]
    pub fn connect(
        now: Ns,
        clock: Jiffies,
        segment_bytes: u32,
        config: &TcpConfig,
        out: &mut Vec<Packet>,
    ) -> Self {
        let mut tcp = Self::new(State::SynSent, clock, segment_bytes, config);
        tcp.opened_at = now;
        tcp.next = 1;
        tcp.first_resent_stamp = stamp(now);
        out.push(tcp.opening(now, config));
        tcp.set_timer(now, Timer::Retransmit, tcp.timeout_jiffies);
        tcp
    }

    /// A server's end, which waits for a SYN.
    #[must_use]
    pub fn listen(clock: Jiffies, segment_bytes: u32, config: &TcpConfig) -> Self {
        Self::new(State::Listening, clock, segment_bytes, config)
    }

    /// The SYN or SYN-ACK.
    fn opening(&self, now: Ns, config: &TcpConfig) -> Packet {
        let mut packet = Packet { seq: 0, ..self.bare(now, config) };
        packet.flags = if self.state == State::SynSent { SYN } else { SYN | ACK };
        packet
    }

    /// Processes a packet before the connection is established.
    pub(super) fn open(&mut self, now: Ns, packet: &Packet, config: &TcpConfig, out: &mut Vec<Packet>) {
        match self.state {
            State::Listening if packet.is(SYN) => {
                self.state = State::SynReceived;
                self.next = 1;
                self.received = 1;
                self.acknowledged = 1;
                self.stamp_to_echo = packet.stamp;
                self.opened_at = now;
                self.first_resent_stamp = stamp(now);
                out.push(self.opening(now, config));
                self.set_timer(now, Timer::Retransmit, self.answer_timeout());
            }
            // A repeated SYN: repeats the SYN-ACK, and restarts the timer with its present timeout.
            State::SynReceived if packet.is(SYN) => {
                let may = self.may_challenge(now);
                if may {
                    self.answer_again(now, config, out);
                }
            }
            State::SynReceived if packet.is(ACK) && packet.ack == 1 => {
                // The round trip is measured from the only SYN-ACK; with several, from the one that the peer echoes.
                let plain = (self.total_resent == 0).then(|| us_between(self.opened_at, now));
                self.opened(now, packet, plain, config);
                self.established(now, packet, config, out);
            }
            State::SynSent if packet.is(SYN) && packet.is(ACK) && packet.ack == 1 => {
                self.received = 1;
                self.acknowledged = 1;
                self.stamp_to_echo = packet.stamp;
                let plain = (self.total_resent == 0).then(|| us_between(self.opened_at, now));
                self.opened(now, packet, plain, config);
                self.last_received = self.clock.at(now);
                self.acknowledge(now, config, out);
                self.push(now, config, out);
            }
            _ => {}
        }
    }

    /// The connection is established.
    fn opened(&mut self, now: Ns, packet: &Packet, plain_us: Option<u64>, config: &TcpConfig) {
        let echoed = config.timestamps && packet.echo > 0;
        // One segment if the opening timed out and was retransmitted more than once, also in answer to a repeated SYN
        // (`tcp_init_transfer`: `total_retrans > 1 && undo_marker`); but not if the first SYN or SYN-ACK was answered.
        let spurious = echoed && packet.echo == self.first_resent_stamp;
        let cut = self.opening_timeouts > 0 && self.total_resent > 1 && !spurious;
        self.state = State::Established;
        self.una = 1;
        self.timer = None;
        self.recovery = Recovery::Open;
        self.undo = None;
        self.first_resent_stamp = 0;
        self.timeouts = 0;
        self.opening_resent = std::mem::take(&mut self.total_resent);
        self.window = Window::new(config.congestion, if cut { 1 } else { config.initial_window });
        self.window.threshold = INFINITE;
        self.bbr = None;
        let by_echo = echoed.then(|| u64::from(stamp(now).saturating_sub(packet.echo).max(1)) * 1_000);
        match plain_us.or(by_echo) {
            Some(us) => {
                self.rtt.sample_min(us);
                self.rtt.sample(us, 1, 1);
                self.set_timeout();
            }
            None => self.timeout_jiffies = self.clock.of_us(FALLBACK_TIMEOUT_US),
        }
        self.last_sent_at = now;
        if config.congestion == Congestion::Bbr {
            let window = self.window.segments;
            self.bbr = Some(Box::new(Bbr::new(now, window, self.rtt.smoothed_us(), self.segment_bytes)));
        }
    }

    pub(super) fn set_timeout(&mut self) {
        if let Some(us) = self.rtt.timeout_us() {
            self.timeout_jiffies = self.clock.of_us(us.min(RTO_MAX_US));
        }
    }

    /// Repeats the SYN-ACK.
    fn answer_again(&mut self, now: Ns, config: &TcpConfig, out: &mut Vec<Packet>) {
        self.total_resent += 1;
        out.push(self.opening(now, config));
        self.set_timer(now, Timer::Retransmit, self.answer_timeout());
    }

    fn answer_timeout(&self) -> u64 {
        let us = FIRST_TIMEOUT_US << self.opening_timeouts.min(10);
        self.clock.of_us(us.min(RTO_MAX_US))
    }

    pub(super) fn may_challenge(&mut self, now: Ns) -> bool {
        let may = self.last_challenge.is_none_or(|last| now.since(last) >= CHALLENGE_GAP);
        if may {
            self.last_challenge = Some(now);
        }
        may
    }

    /// The peer did not answer the SYN or SYN-ACK in time.
    pub(super) fn opening_timeout(&mut self, now: Ns, config: &TcpConfig, out: &mut Vec<Packet>) {
        if self.state == State::SynReceived {
            if self.opening_timeouts >= config.synack_retries {
                self.close(State::TimedOut);
                return;
            }
            self.opening_timeouts += 1;
            self.answer_again(now, config, out);
            return;
        }
        if self.opening_timeouts >= config.syn_linear_timeouts + config.syn_retries {
            self.close(State::TimedOut);
            return;
        }
        self.opening_timeouts += 1;
        self.total_resent += 1;
        out.push(self.opening(now, config));
        if self.opening_timeouts > config.syn_linear_timeouts {
            self.timeout_jiffies = (self.timeout_jiffies * 2).min(self.clock.of_us(RTO_MAX_US));
        }
        self.set_timer(now, Timer::Retransmit, self.timeout_jiffies);
    }
}
