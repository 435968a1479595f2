//! TCP as in Linux 6.18, without I/O: its inputs are packets and times, its outputs packets and a deadline.
//!
//! One [`Tcp`] is one end of one connection. It handles counts of bytes, not bytes: a write is a count, and so is the
//! data received in order ([`Tcp::received`]). A simulator of recorded handshakes therefore needs no buffers; a
//! simulator of real endpoints stores the bytes itself. Packets to be sent are appended to a list.
//!
//! Modelled: SYN and SYN-ACK timeouts with linear and exponential backoff, and the reduction of the window by them
//! unless timestamps show that they were spurious; segmentation by writes and by the window; slow start, Reno, CUBIC
//! with HyStart, BBR with pacing; quick and delayed acknowledgements, ping-pong mode; SACK and D-SACK; RTO with F-RTO
//! and Eifel undo, tail loss probe, RACK, proportional rate reduction; the kernel's timer wheel; super-packets, if a
//! link accepts them. Not modelled: receive windows (a handshake is smaller than the first), ECN, pacing without BBR,
//! fast open, peers without SACK, Nagle's algorithm (TLS servers and clients disable it), TSO's deferral and compression
//! of SACKs within a millisecond.
//!
//! The code reproduces the kernel's behaviour, not its structure; `tests/scripts.rs` checks it in situations from
//! packetdrill's and the kernel's tests.

mod acknowledge;
mod bbr;
mod config;
mod congestion;
mod connect;
mod offload;
mod packet;
mod rack;
mod receive;
mod recovery;
mod rtt;
mod send;
#[cfg(test)]
mod tests;
mod timer;

pub use config::TcpConfig;
pub use congestion::Congestion;
pub use packet::{ACK, FIN, IP_BYTES, MAX_BLOCKS, Packet, RST, SYN};
pub use timer::Jiffies;

use bbr::Bbr;
use congestion::Window;
use rtt::Rtt;
use shakedown_link::{Ns, SuperPackets};
use std::collections::VecDeque;

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A server without a SYN.
    Listening,
    /// A client without a SYN-ACK.
    SynSent,
    /// A server that has answered a SYN.
    SynReceived,
    /// The connection is established at this end.
    Established,
    /// This end gave up.
    TimedOut,
    /// The peer reset the connection.
    Reset,
}

/// The state of loss recovery, by the kernel's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recovery {
    /// No loss and no reordering.
    Open,
    /// Data was delivered out of order, or a segment was retransmitted, for example by a probe.
    Disorder,
    /// The window is being reduced after a probe that repaired a loss.
    Reduced,
    /// Fast recovery.
    Recovery,
    /// Recovery after a timeout.
    Loss,
}

/// The purpose of the sender's timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    Retransmit,
    Probe,
    Reorder,
}

/// A segment that is queued or in flight.
#[derive(Clone, Copy, Debug)]
struct Segment {
    seq: u32,
    end: u32,
    /// When it was last sent.
    at: Ns,
    flags: u8,
}

/// It was selectively acknowledged.
const SACKED: u8 = 1;
/// It counts as lost.
const LOST: u8 = 2;
/// It was retransmitted, and the retransmission is in flight.
const RESENT: u8 = 4;
/// It was retransmitted at least once.
const EVER_RESENT: u8 = 8;
/// It ends the stream.
const LAST: u8 = 16;
/// It was sent in one packet with the segment before it.
const JOINED: u8 = 32;

impl Segment {
    fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Tcp {
    state: State,
    clock: Jiffies,
    segment_bytes: u32,
    super_packets: SuperPackets,

    // Sending. The first `sent` segments of the queue are in flight.
    queue: VecDeque<Segment>,
    sent: u32,
    una: u32,
    next: u32,
    written: u32,
    window: Window,
    /// With BBR as congestion control, once established.
    bbr: Option<Box<Bbr>>,
    rtt: Rtt,
    timeout_jiffies: u64,
    timer: Option<(Timer, Ns)>,
    /// When the first SYN or SYN-ACK was sent.
    opened_at: Ns,
    last_sent_at: Ns,
    /// `sent` when the use of the window was last recorded (the kernel's `max_packets_out`).
    max_sent: u32,
    /// When `una` reaches it, the use of the window is recorded again (`cwnd_usage_seq`).
    usage_round: u32,
    window_limited: bool,

    // Loss recovery.
    recovery: Recovery,
    sacked: u32,
    lost: u32,
    resent: u32,
    total_resent: u32,
    /// Retransmissions of the SYN or SYN-ACK. Until the connection is established, `total_resent` counts them.
    opening_resent: u32,
    timeouts: u32,
    opening_timeouts: u32,
    /// `next` when `recovery` last changed (`high_seq`); F-RTO moves it.
    high: u32,
    probe_high: u32,
    probe_resent: bool,
    forward_rto: bool,
    /// `una` when the reduction began, while it may be undone (`undo_marker`).
    undo: Option<u32>,
    /// Retransmissions that the peer has not reported as duplicates yet; -1: there were none (`undo_retrans`).
    undo_resent: i32,
    /// The time stamp of the first retransmission; 0: none since it was reset (`retrans_stamp`).
    first_resent_stamp: u32,
    /// The threshold before the reduction; 0: it is not restored (`prior_ssthresh`).
    prior_threshold: u32,
    prior_window: u32,
    prr_delivered: u32,
    prr_sent: u32,
    duplicates: u32,
    /// The reordering in segments that its host assumes at first, and the present one.
    usual_reordering: u32,
    reordering: u32,
    reordering_seen: bool,
    rack: Rack,

    // Receiving.
    received: u32,
    acknowledged: u32,
    out_of_order: Vec<(u32, u32)>,
    duplicate: Option<(u32, u32)>,
    stamp_to_echo: u32,
    peer_segment: u32,
    /// Number of segments that are still acknowledged at once (`icsk_ack.quick`).
    quick: u32,
    pingpong: bool,
    ack_timeout: u64,
    ack_at: Option<Ns>,
    ack_pending: bool,
    ack_now: bool,
    /// Short segments since the last acknowledgement, at most 2 (`ICSK_ACK_PUSHED`, `ICSK_ACK_PUSHED2`).
    pushed: u8,
    last_received: u64,
    got_data: bool,
    ended: bool,
    end_known: bool,
    last_challenge: Option<Ns>,
}

/// The most recently sent segment that was delivered, and the reordering window (RFC 8985).
#[derive(Clone, Copy, Debug, Default)]
struct Rack {
    at: Ns,
    end: u32,
    rtt_us: u64,
    advanced: bool,
    /// The reordering window in quarters of the minimum round-trip time (`reo_wnd_steps`).
    steps: u32,
    /// Recoveries until the window is reset (`reo_wnd_persist`).
    persist: u32,
    duplicate_seen: bool,
    last_delivered: u32,
}

/// Constants of the kernel.
const RTO_MAX_US: u64 = 120_000_000;
const FIRST_TIMEOUT_US: u64 = 1_000_000;
const FALLBACK_TIMEOUT_US: u64 = 3_000_000;
const MAX_REORDERING: u32 = 300;

impl Tcp {
    fn new(state: State, clock: Jiffies, segment_bytes: u32, config: &TcpConfig) -> Self {
        let is_server = state == State::Listening;
        let usual_reordering = if is_server { config.server_reordering } else { config.client_reordering };
        Self {
            state,
            clock,
            segment_bytes,
            super_packets: SuperPackets::None,
            queue: VecDeque::new(),
            sent: 0,
            una: 0,
            next: 0,
            written: 1,
            window: Window::new(config.congestion, config.initial_window),
            bbr: None,
            rtt: Rtt::default(),
            timeout_jiffies: clock.of_us(FIRST_TIMEOUT_US),
            timer: None,
            opened_at: Ns::ZERO,
            last_sent_at: Ns::ZERO,
            max_sent: 0,
            usage_round: 0,
            window_limited: false,
            recovery: Recovery::Open,
            sacked: 0,
            lost: 0,
            resent: 0,
            total_resent: 0,
            opening_resent: 0,
            timeouts: 0,
            opening_timeouts: 0,
            high: 0,
            probe_high: 0,
            probe_resent: false,
            forward_rto: false,
            undo: None,
            undo_resent: 0,
            first_resent_stamp: 0,
            prior_threshold: 0,
            prior_window: 0,
            prr_delivered: 0,
            prr_sent: 0,
            duplicates: 0,
            usual_reordering,
            reordering: usual_reordering,
            reordering_seen: false,
            rack: Rack { steps: 1, ..Rack::default() },
            received: 0,
            acknowledged: 0,
            out_of_order: Vec::new(),
            duplicate: None,
            stamp_to_echo: 0,
            peer_segment: segment_bytes.min(536),
            quick: 0,
            pingpong: false,
            ack_timeout: 0,
            ack_at: None,
            ack_pending: false,
            ack_now: false,
            pushed: 0,
            last_received: 0,
            got_data: false,
            ended: false,
            end_known: false,
            last_challenge: None,
        }
    }

    /// Sets how the link handles super-packets.
    #[must_use]
    pub fn with_super_packets(self, super_packets: SuperPackets) -> Self {
        Self { super_packets, ..self }
    }

    /// As [`with_super_packets`](Self::with_super_packets).
    #[inline]
    pub(crate) fn set_super_packets(&mut self, super_packets: SuperPackets) {
        self.super_packets = super_packets;
    }

    /// How the link handles super-packets.
    #[must_use]
    pub fn super_packets(&self) -> SuperPackets {
        self.super_packets
    }

    /// Replaces this connection by a new one, which reuses the memory of its lists.
    #[inline]
    pub(crate) fn replace(&mut self, mut new: Self) {
        debug_assert!(new.queue.is_empty() && new.out_of_order.is_empty(), "the new connection is in use");
        self.queue.clear();
        self.out_of_order.clear();
        std::mem::swap(&mut self.queue, &mut new.queue);
        std::mem::swap(&mut self.out_of_order, &mut new.out_of_order);
        *self = new;
    }

    /// Reads a part of each structure, as [`Path::touch`](shakedown_link::Path::touch) does.
    #[inline]
    pub(crate) fn touch(&self) -> u64 {
        let words = [
            self.queue.front().map_or(0, |segment| segment.at.0),
            self.opened_at.0,
            self.last_sent_at.0,
            self.last_received,
            self.timeout_jiffies,
            self.ack_timeout,
            self.rtt.smoothed_us().unwrap_or(0),
            self.rack.rtt_us,
            u64::from(self.window.segments),
            u64::from(self.una ^ self.undo_resent.unsigned_abs() ^ self.received ^ self.state as u32),
        ];
        words.iter().fold(0, |sum, word| sum ^ word)
    }

    #[inline]
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// Bytes of the peer's stream that have arrived in order.
    #[inline]
    #[must_use]
    pub fn received(&self) -> u32 {
        self.received.saturating_sub(1 + u32::from(self.ended))
    }

    /// Bytes of payload in a full segment.
    #[must_use]
    pub fn segment_bytes(&self) -> u32 {
        self.segment_bytes
    }

    /// Segments retransmitted so far.
    #[must_use]
    pub fn retransmissions(&self) -> u32 {
        self.opening_resent + self.total_resent
    }

    /// When [`timeout`](Self::timeout) has to be called, if at all.
    #[inline]
    #[must_use]
    pub fn deadline(&self) -> Option<Ns> {
        let next = match (self.timer, self.ack_at) {
            (Some((_, timer)), Some(ack)) => Some(timer.min(ack)),
            (timer, ack) => timer.map(|(_, timer)| timer).or(ack),
        };
        match self.bbr.as_ref().and_then(|bbr| bbr.held_until) {
            Some(pace) => Some(next.map_or(pace, |next| next.min(pace))),
            None => next,
        }
    }

    /// Handles the timers that have expired.
    pub fn timeout(&mut self, now: Ns, config: &TcpConfig, out: &mut Vec<Packet>) {
        if self.ack_at.is_some_and(|at| at <= now) {
            self.delayed_ack(now, config, out);
        }
        if self.bbr.as_ref().and_then(|bbr| bbr.held_until).is_some_and(|at| at <= now) {
            self.pace_allows(now, config, out);
        }
        let Some((timer, at)) = self.timer else { return };
        if at > now {
            return;
        }
        match (self.state, timer) {
            (State::SynSent | State::SynReceived, _) => self.opening_timeout(now, config, out),
            (State::Established, Timer::Retransmit) => self.retransmission_timeout(now, config, out),
            (State::Established, Timer::Probe) => self.send_probe(now, config, out),
            (State::Established, Timer::Reorder) => self.reordering_timeout(now, config, out),
            _ => self.timer = None,
        }
    }

    /// Processes a packet. A super-packet that the link divides is processed as its segments.
    pub fn receive(&mut self, now: Ns, packet: &Packet, config: &TcpConfig, out: &mut Vec<Packet>) {
        if packet.more > 0 && self.super_packets == SuperPackets::Cut {
            for segment in packet.cut(self.segment_bytes) {
                self.receive_one(now, &segment, config, out);
            }
        } else {
            self.receive_one(now, packet, config, out);
        }
    }

    fn receive_one(&mut self, now: Ns, packet: &Packet, config: &TcpConfig, out: &mut Vec<Packet>) {
        if packet.is(RST) {
            if self.state != State::Listening {
                self.close(State::Reset);
            }
            return;
        }
        match self.state {
            State::Listening | State::SynSent | State::SynReceived => self.open(now, packet, config, out),
            State::Established => self.established(now, packet, config, out),
            State::TimedOut | State::Reset => {}
        }
    }

    fn close(&mut self, state: State) {
        self.state = state;
        self.timer = None;
        self.ack_at = None;
        self.bbr = None;
        self.queue.clear();
        (self.sent, self.sacked, self.lost, self.resent) = (0, 0, 0, 0);
    }

    /// A packet without data that acknowledges the received data.
    fn bare(&self, now: Ns, config: &TcpConfig) -> Packet {
        let (stamp, echo) = if config.timestamps { (stamp(now), self.stamp_to_echo) } else { (0, 0) };
        Packet { flags: ACK, seq: self.next, ack: self.received, stamp, echo, ..Packet::default() }
    }

    fn set_timer(&mut self, now: Ns, timer: Timer, jiffies: u64) {
        let delay_us = match &self.bbr {
            // Packets that pacing holds back are acknowledged later (`tcp_pacing_delay`).
            Some(bbr) if timer != Timer::Reorder => bbr.delay(now).0 / 1_000,
            _ => 0,
        };
        let jiffies = (jiffies + self.clock.of_us(delay_us)).min(self.clock.of_us(RTO_MAX_US));
        self.timer = Some((timer, self.clock.fires(now, jiffies)));
    }

    fn in_flight(&self) -> u32 {
        (self.sent + self.resent).saturating_sub(self.sacked + self.lost)
    }

    fn is_reducing(&self) -> bool {
        matches!(self.recovery, Recovery::Reduced | Recovery::Recovery)
    }
}

/// The clock of timestamps: milliseconds, never 0.
fn stamp(now: Ns) -> u32 {
    (now.0 / 1_000_000) as u32 + 1
}

/// Microseconds between two times.
fn us_between(earlier: Ns, later: Ns) -> u64 {
    later.since(earlier).0 / 1_000
}
