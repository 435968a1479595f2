//! BBR, version 1, as in Linux (`tcp_bbr.c`, `tcp_rate.c`): a model of the path instead of a reaction to losses.
//!
//! The window and the pacing rate follow the largest delivery rate of ten rounds and the smallest round-trip time of
//! ten seconds. A connection that carries a handshake is almost always in STARTUP: its pacing rate is 2.885 times the
//! delivery rate, and its first ten segments are sent at once. Not modelled: the detection of policers (long-term
//! bandwidth), which takes sixteen rounds with a fifth of the packets lost.

use shakedown_link::Ns;
use std::collections::VecDeque;

const UNIT: u64 = 256;
/// 2/ln 2: the smallest gain that doubles the rate in each round.
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
const WINDOW_GAIN: u64 = 2 * UNIT;
const CYCLE: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// Delivery rates are in packets per microsecond, scaled by 2^24.
const RATE_SHIFT: u32 = 24;
const RATE_ROUNDS: u32 = 10;
const MIN_ROUND_TRIP_LIFE: Ns = Ns::from_s(10);
const PROBE_ROUND_TRIP_TIME: Ns = Ns::from_ms(200);
const MIN_WINDOW: u32 = 4;
const FULL_ROUNDS: u32 = 3;
/// Growth by less than a quarter counts as none.
const FULL_GAIN: u64 = UNIT * 5 / 4;
/// `sch_fq` and the kernel's internal pacing send the first packets of a connection at once.
const UNPACED_SEGMENTS: u32 = 10;
/// 1 % below the rate, so that queues drain.
const PACING_PERCENT: u64 = 99;
/// Below 1.2 Mbit/s a packet has one segment, otherwise two or more.
const MIN_PACKET_RATE_BYTES_PER_S: u64 = 1_200_000 / 8;
const PACING_SHIFT: u32 = 10;
const MAX_PACKET_BYTES: u64 = 65_535 - 320;
const AGGREGATION_ROUNDS: u32 = 5;
const MAX_AGGREGATION_US: u64 = 100_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRoundTrip,
}

/// State at the time when a segment was sent; one for each segment in flight, in the order of the sender's queue.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Ns,
    end: u32,
    first_sent_at: Ns,
    /// `None` after its delivery has been counted.
    delivered_at: Option<Ns>,
    delivered: u32,
    application_limited: bool,
}

/// The rate sample of an acknowledgement: that of the most recently sent segment that it reports.
#[derive(Clone, Copy, Debug)]
struct Delivery {
    sent: Sent,
    /// Time from sending the first segment of the sample to sending this segment.
    send_us: u64,
}

/// The deliveries of one acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    pub now: Ns,
    /// Segments newly delivered, and newly counted as lost.
    pub delivered: u32,
    pub lost: u32,
    /// Segments in flight before the acknowledgement, and now.
    pub prior_in_flight: u32,
    pub in_flight: u32,
    pub round_trip_us: Option<u64>,
    pub min_round_trip_us: u64,
    /// The state of loss recovery: in fast recovery, and in it or after a timeout.
    pub in_recovery: bool,
    pub repairing: bool,
}

/// The sender's model of the path.
#[derive(Clone, Debug)]
pub(super) struct Bbr {
    segment_bytes: u64,
    // Delivery rates (`tcp_rate.c`).
    sent: VecDeque<Sent>,
    delivered: u32,
    delivered_at: Ns,
    first_sent_at: Ns,
    /// Deliveries up to this count were limited by the application, not by the path; 0: none.
    limited_until: u32,
    delivery: Option<Delivery>,
    // Pacing.
    rate_bytes_per_s: u64,
    segments_sent: u32,
    next_send: Ns,
    /// When packets that are held back by pacing may be sent.
    pub held_until: Option<Ns>,
    // The model.
    mode: Mode,
    rates: [(u32, u64); 3],
    rounds: u32,
    round_ends: u32,
    round_started: bool,
    min_round_trip_us: u64,
    min_round_trip_at: Ns,
    probe_done_at: Option<Ns>,
    probe_round_done: bool,
    full_rate: u64,
    full_rounds: u32,
    full: bool,
    cycle: usize,
    cycle_at: Ns,
    pacing_gain: u64,
    window_gain: u64,
    prior_window: u32,
    conserving: bool,
    was_repairing: bool,
    was_in_recovery: bool,
    idle_restart: bool,
    extra: [u32; 2],
    extra_rounds: u32,
    extra_place: usize,
    epoch_at: Ns,
    epoch_acked: u32,
}

impl Bbr {
    /// The state of a connection that has just been established, with its window and round-trip time.
    pub fn new(now: Ns, window: u32, round_trip_us: Option<u64>, segment_bytes: u32) -> Self {
        let mut bbr = Self {
            segment_bytes: u64::from(segment_bytes),
            sent: VecDeque::new(),
            // The SYN or SYN-ACK counts.
            delivered: 1,
            delivered_at: now,
            first_sent_at: now,
            limited_until: 0,
            delivery: None,
            rate_bytes_per_s: 0,
            segments_sent: 0,
            next_send: Ns::ZERO,
            held_until: None,
            mode: Mode::Startup,
            rates: [(0, 0); 3],
            rounds: 0,
            round_ends: 1,
            round_started: false,
            min_round_trip_us: round_trip_us.unwrap_or(u64::MAX),
            min_round_trip_at: now,
            probe_done_at: None,
            probe_round_done: false,
            full_rate: 0,
            full_rounds: 0,
            full: false,
            cycle: 0,
            cycle_at: now,
            pacing_gain: HIGH_GAIN,
            window_gain: HIGH_GAIN,
            prior_window: 0,
            conserving: false,
            was_repairing: false,
            was_in_recovery: false,
            idle_restart: false,
            extra: [0; 2],
            extra_rounds: 0,
            extra_place: 0,
            epoch_at: now,
            epoch_acked: 0,
        };
        let rate = (u64::from(window) << RATE_SHIFT) / round_trip_us.unwrap_or(1_000).max(1);
        bbr.rate_bytes_per_s = bbr.pace(rate, HIGH_GAIN);
        bbr
    }

    // Calls by the sender.

    /// The application writes while so little is queued that the path does not limit the sender.
    pub fn application_limited(&mut self, in_flight: u32) {
        self.limited_until = (self.delivered + in_flight).max(1);
    }

    /// Segments are sent for the first time, in one packet of N bytes. `first`: no other segment is in flight.
    pub fn sent(&mut self, now: Ns, ends: impl Iterator<Item = u32>, bytes: u32, first: bool) {
        let at = now.max(self.next_send);
        if first {
            self.restart_after_idle(now);
            self.first_sent_at = at;
            self.delivered_at = at;
        }
        for end in ends {
            self.segments_sent += 1;
            let sent = self.stamped(at, end);
            self.sent.push_back(sent);
        }
        self.spend(now, bytes);
    }

    /// Segments are retransmitted, in one packet of N bytes.
    pub fn resent(&mut self, now: Ns, index: usize, count: usize, bytes: u32) {
        let at = now.max(self.next_send);
        for place in index..index + count {
            let end = self.sent[place].end;
            self.sent[place] = self.stamped(at, end);
            self.segments_sent += 1;
        }
        self.spend(now, bytes);
    }

    fn stamped(&self, at: Ns, end: u32) -> Sent {
        Sent {
            at,
            end,
            first_sent_at: self.first_sent_at,
            delivered_at: Some(self.delivered_at),
            delivered: self.delivered,
            application_limited: self.limited_until > 0,
        }
    }

    /// Delays the next packet until the bytes of this one have left at the pacing rate.
    fn spend(&mut self, now: Ns, bytes: u32) {
        let before = self.next_send;
        self.next_send = before.max(now);
        if self.segments_sent >= UNPACED_SEGMENTS {
            let length_ns = u64::from(bytes) * 1_000_000_000 / self.rate_bytes_per_s.max(1);
            let credit_ns = self.next_send.since(before).0;
            self.next_send += Ns(length_ns - credit_ns.min(length_ns / 2));
        }
    }

    /// Whether pacing holds packets back; `held_until` then contains the time until which it does.
    pub fn holds(&mut self, now: Ns) -> bool {
        let holds = self.next_send > now;
        self.held_until = holds.then_some(self.next_send);
        holds
    }

    /// How much later a timer that is set now expires because of pacing.
    pub fn delay(&self, now: Ns) -> Ns {
        Ns(self.next_send.0.saturating_sub(now.0))
    }

    /// The segment at a place was selectively acknowledged.
    pub fn sacked(&mut self, index: usize) {
        self.count_delivery(index);
        self.sent[index].delivered_at = None;
    }

    /// The first segment was acknowledged and leaves the queue.
    pub fn acknowledged(&mut self) {
        self.count_delivery(0);
        self.sent.pop_front();
    }

    fn count_delivery(&mut self, index: usize) {
        let sent = self.sent[index];
        if sent.delivered_at.is_none() {
            return;
        }
        let later = self.delivery.is_none_or(|best| {
            sent.at > self.first_sent_at || sent.at == self.first_sent_at && sent.end > best.sent.end
        });
        if later {
            self.first_sent_at = sent.at;
            self.delivery = Some(Delivery { sent, send_us: sent.at.since(sent.first_sent_at).0 / 1_000 });
        }
    }

    /// Counts segments that an outdated acknowledgement reports as delivered.
    pub fn also_delivered(&mut self, segments: u32) {
        self.delivered += segments;
        self.delivery = None;
    }

    /// A timeout: the rate may have fallen.
    pub fn timed_out(&mut self) {
        self.was_repairing = true;
        self.was_in_recovery = false;
        self.full_rate = 0;
        self.round_started = true;
    }

    /// Saves the window before a reduction; it is restored after the recovery.
    pub fn save_window(&mut self, window: u32) {
        let calm = !self.was_repairing && self.mode != Mode::ProbeRoundTrip;
        self.prior_window = if calm { window } else { self.prior_window.max(window) };
    }

    /// A reduction is undone, because nothing was lost.
    pub fn undone(&mut self) {
        self.full_rate = 0;
        self.full_rounds = 0;
    }

    /// Segments of a super-packet: about a millisecond at the pacing rate.
    pub fn packet_segments(&self) -> u32 {
        let bytes = (self.rate_bytes_per_s >> PACING_SHIFT).min(MAX_PACKET_BYTES);
        ((bytes / self.segment_bytes) as u32).clamp(self.min_packet_segments(), 127)
    }

    /// The pacing rate in bytes per second, and the minimum number of segments of a packet.
    pub fn pacing(&self) -> (u64, u32) {
        (self.rate_bytes_per_s, self.min_packet_segments())
    }

    fn min_packet_segments(&self) -> u32 {
        if self.rate_bytes_per_s < MIN_PACKET_RATE_BYTES_PER_S { 1 } else { 2 }
    }

    // The model (`bbr_main`).

    /// Updates the model after an acknowledgement, and returns the new window.
    pub fn update(&mut self, round: &Round, window: u32) -> u32 {
        self.delivered += round.delivered;
        if self.delivered > self.limited_until {
            self.limited_until = 0;
        }
        if round.delivered > 0 {
            self.delivered_at = round.now;
        }
        let sample = self.sample(round);
        self.update_rate(sample);
        self.update_aggregation(round, sample.is_some(), window);
        self.update_cycle(round);
        self.check_full(sample);
        self.check_drained(round);
        let mut window = self.update_round_trip(round, window);
        (self.pacing_gain, self.window_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBandwidth => (CYCLE[self.cycle], WINDOW_GAIN),
            Mode::ProbeRoundTrip => (UNIT, UNIT),
        };
        let pace = self.pace(self.rate(), self.pacing_gain);
        if self.full || pace > self.rate_bytes_per_s {
            self.rate_bytes_per_s = pace;
        }
        window = self.next_window(round, window);
        if self.mode == Mode::ProbeRoundTrip { window.min(MIN_WINDOW) } else { window }
    }

    /// The rate sample: packets delivered since the segment was sent; the longer of the times in which they were sent
    /// and acknowledged, in µs; packets delivered before it was sent; whether the application limited them.
    fn sample(&mut self, round: &Round) -> Option<(u32, u64, u32, bool)> {
        let Delivery { sent, send_us } = self.delivery.take()?;
        let delivered = self.delivered - sent.delivered;
        let ack_us = round.now.since(sent.delivered_at?).0 / 1_000;
        let interval_us = send_us.max(ack_us);
        let valid = interval_us > 0 && interval_us >= round.min_round_trip_us;
        valid.then_some((delivered, interval_us, sent.delivered, sent.application_limited))
    }

    fn update_rate(&mut self, sample: Option<(u32, u64, u32, bool)>) {
        self.round_started = false;
        let Some((delivered, interval_us, prior_delivered, limited)) = sample else { return };
        if prior_delivered >= self.round_ends {
            self.round_ends = self.delivered;
            self.rounds += 1;
            self.round_started = true;
            self.conserving = false;
        }
        let rate = (u64::from(delivered) << RATE_SHIFT) / interval_us;
        if !limited || rate >= self.rate() {
            self.take_rate(rate);
        }
    }

    /// The largest delivery rate of the last ten rounds.
    fn rate(&self) -> u64 {
        self.rates[0].1
    }

    /// Kathleen Nichols' windowed maximum (`lib/win_minmax.c`).
    fn take_rate(&mut self, rate: u64) {
        let value = (self.rounds, rate);
        let best = &mut self.rates;
        if rate >= best[0].1 || self.rounds - best[2].0 > RATE_ROUNDS {
            *best = [value; 3];
            return;
        }
        if rate >= best[1].1 {
            (best[1], best[2]) = (value, value);
        } else if rate >= best[2].1 {
            best[2] = value;
        }
        let age = self.rounds - best[0].0;
        if age > RATE_ROUNDS {
            *best = [best[1], best[2], value];
            if self.rounds - best[0].0 > RATE_ROUNDS {
                *best = [best[1], best[2], value];
            }
        } else if best[1].0 == best[0].0 && age > RATE_ROUNDS / 4 {
            (best[1], best[2]) = (value, value);
        } else if best[2].0 == best[1].0 && age > RATE_ROUNDS / 2 {
            best[2] = value;
        }
    }

    /// Aggregated acknowledgements need a window above the bandwidth-delay product.
    fn update_aggregation(&mut self, round: &Round, sampled: bool, window: u32) {
        if round.delivered == 0 || !sampled {
            return;
        }
        if self.round_started {
            self.extra_rounds += 1;
            if self.extra_rounds >= AGGREGATION_ROUNDS {
                self.extra_rounds = 0;
                self.extra_place ^= 1;
                self.extra[self.extra_place] = 0;
            }
        }
        let epoch_us = self.delivered_at.since(self.epoch_at).0 / 1_000;
        let mut expected = ((u128::from(self.rate()) * u128::from(epoch_us)) >> RATE_SHIFT) as u64;
        if u64::from(self.epoch_acked) <= expected {
            self.epoch_acked = 0;
            self.epoch_at = self.delivered_at;
            expected = 0;
        }
        self.epoch_acked += round.delivered;
        let extra = (u64::from(self.epoch_acked) - expected).min(u64::from(window)) as u32;
        let place = &mut self.extra[self.extra_place];
        *place = extra.max(*place);
    }

    fn update_cycle(&mut self, round: &Round) {
        if self.mode != Mode::ProbeBandwidth {
            return;
        }
        let long = self.delivered_at.since(self.cycle_at).0 / 1_000 > self.min_round_trip_us;
        let ends = if self.pacing_gain == UNIT {
            long
        } else {
            let in_network = self.in_network(round.now, round.prior_in_flight);
            if self.pacing_gain > UNIT {
                long && (round.lost > 0 || in_network >= self.inflight(self.pacing_gain))
            } else {
                long || in_network <= self.inflight(UNIT)
            }
        };
        if ends {
            self.next_cycle();
        }
    }

    fn next_cycle(&mut self) {
        self.cycle = (self.cycle + 1) % CYCLE.len();
        self.cycle_at = self.delivered_at;
    }

    /// The kernel begins the cycle at a random phase, but never at the slow one; here the phase depends on the time, so
    /// that a run can be repeated.
    fn begin_cycles(&mut self, now: Ns) {
        self.mode = Mode::ProbeBandwidth;
        let drawn = (now.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % (CYCLE.len() as u64 - 1);
        self.cycle = CYCLE.len() - 1 - drawn as usize;
        self.next_cycle();
    }

    fn check_full(&mut self, sample: Option<(u32, u64, u32, bool)>) {
        let limited = sample.is_some_and(|(_, _, _, limited)| limited);
        if self.full || !self.round_started || limited {
            return;
        }
        if self.rate() >= self.full_rate * FULL_GAIN / UNIT {
            self.full_rate = self.rate();
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.full = self.full_rounds >= FULL_ROUNDS;
    }

    fn check_drained(&mut self, round: &Round) {
        if self.mode == Mode::Startup && self.full {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && self.in_network(round.now, round.in_flight) <= self.inflight(UNIT) {
            self.begin_cycles(round.now);
        }
    }

    fn update_round_trip(&mut self, round: &Round, mut window: u32) -> u32 {
        let expired = round.now.since(self.min_round_trip_at) > MIN_ROUND_TRIP_LIFE;
        if let Some(us) = round.round_trip_us
            && (us < self.min_round_trip_us || expired)
        {
            self.min_round_trip_us = us;
            self.min_round_trip_at = round.now;
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRoundTrip {
            self.save_window(window);
            self.mode = Mode::ProbeRoundTrip;
            self.probe_done_at = None;
        }
        if self.mode == Mode::ProbeRoundTrip {
            self.application_limited(round.in_flight);
            match self.probe_done_at {
                None if round.in_flight <= MIN_WINDOW => {
                    self.probe_done_at = Some(round.now + PROBE_ROUND_TRIP_TIME);
                    self.probe_round_done = false;
                    self.round_ends = self.delivered;
                }
                Some(_) => {
                    self.probe_round_done |= self.round_started;
                    if self.probe_round_done {
                        window = self.end_probe(round.now, window);
                    }
                }
                None => {}
            }
        }
        if round.delivered > 0 {
            self.idle_restart = false;
        }
        window
    }

    fn end_probe(&mut self, now: Ns, window: u32) -> u32 {
        if self.probe_done_at.is_none_or(|at| now <= at) {
            return window;
        }
        self.min_round_trip_at = now;
        if self.full {
            self.begin_cycles(now);
        } else {
            self.mode = Mode::Startup;
        }
        window.max(self.prior_window)
    }

    /// After an idle period, a sender in PROBE_BW continues at the known rate (`CA_EVENT_TX_START`).
    fn restart_after_idle(&mut self, now: Ns) {
        if self.limited_until == 0 {
            return;
        }
        self.idle_restart = true;
        self.epoch_at = now;
        self.epoch_acked = 0;
        if self.mode == Mode::ProbeBandwidth {
            self.rate_bytes_per_s = self.pace(self.rate(), UNIT);
        }
    }

    /// The window (`bbr_set_cwnd`).
    fn next_window(&mut self, round: &Round, mut window: u32) -> u32 {
        if round.delivered > 0 && !self.recovers(round, &mut window) {
            let target = self.budget(self.product(self.window_gain) + self.aggregation());
            if self.full {
                window = (window + round.delivered).min(target);
            } else if window < target || self.delivered < UNPACED_SEGMENTS {
                window += round.delivered;
            }
            window = window.max(MIN_WINDOW);
        }
        window
    }

    /// First round of recovery: sends as much as is delivered; its end restores the window. True if it must not grow.
    fn recovers(&mut self, round: &Round, window: &mut u32) -> bool {
        if round.lost > 0 {
            *window = window.saturating_sub(round.lost).max(1);
        }
        if round.in_recovery && !self.was_in_recovery {
            self.conserving = true;
            self.round_ends = self.delivered;
            *window = round.in_flight + round.delivered;
        } else if self.was_repairing && !round.repairing {
            *window = (*window).max(self.prior_window);
            self.conserving = false;
        }
        self.was_in_recovery = round.in_recovery;
        self.was_repairing = round.repairing;
        if self.conserving {
            *window = (*window).max(round.in_flight + round.delivered);
        }
        self.conserving
    }

    fn pace(&self, rate: u64, gain: u64) -> u64 {
        let bytes = u128::from(rate) * u128::from(self.segment_bytes) * u128::from(gain) / u128::from(UNIT);
        ((bytes * u128::from(10_000 * PACING_PERCENT)) >> RATE_SHIFT) as u64
    }

    /// The bandwidth-delay product times a gain, in segments.
    fn product(&self, gain: u64) -> u32 {
        if self.min_round_trip_us == u64::MAX {
            return UNPACED_SEGMENTS;
        }
        let scaled = u128::from(self.rate()) * u128::from(self.min_round_trip_us) * u128::from(gain)
            / u128::from(UNIT);
        scaled.div_ceil(1 << RATE_SHIFT).min(u128::from(u32::MAX / 2)) as u32
    }

    /// Adds room for super-packets at both ends, and rounds up to an even number.
    fn budget(&self, segments: u32) -> u32 {
        let even = (segments + 3 * self.packet_segments() + 1) & !1;
        even + if self.mode == Mode::ProbeBandwidth && self.cycle == 0 { 2 } else { 0 }
    }

    fn inflight(&self, gain: u64) -> u32 {
        self.budget(self.product(gain))
    }

    fn aggregation(&self) -> u32 {
        if !self.full {
            return 0;
        }
        let most = (u128::from(self.rate()) * u128::from(MAX_AGGREGATION_US)) >> RATE_SHIFT;
        self.extra[0].max(self.extra[1]).min(most as u32)
    }

    /// The number of segments in the network when the next packet may be sent.
    fn in_network(&self, now: Ns, in_flight: u32) -> u32 {
        let wait_us = self.delay(now).0 / 1_000;
        let leaves = ((u128::from(self.rate()) * u128::from(wait_us)) >> RATE_SHIFT) as u32;
        let joined = if self.pacing_gain > UNIT { self.packet_segments() } else { 0 };
        (in_flight + joined).saturating_sub(leaves)
    }
}
