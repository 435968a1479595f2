//! Growth and reduction of the congestion window.

use serde::{Deserialize, Serialize};
use shakedown_link::Ns;

/// Congestion control algorithms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Congestion {
    /// RFC 5681, as in Linux.
    Reno,
    /// RFC 9438 with HyStart, Linux's default.
    #[default]
    Cubic,
    /// BBR, version 1, as in Linux.
    Bbr,
}

/// No threshold yet: slow start without end.
pub const INFINITE: u32 = 0x7fff_ffff;

/// A congestion window, in segments.
#[derive(Clone, Debug)]
pub struct Window {
    /// Segments that may be in flight.
    pub segments: u32,
    /// Slow start below, congestion avoidance from here on.
    pub threshold: u32,
    /// Segments acknowledged since the window last grew in congestion avoidance.
    counted: u32,
    delay_min_us: u64,
    congestion: Congestion,
    /// Allocated when it is first needed: never, if the handshake fits into one window.
    cubic: Option<Box<Cubic>>,
}

/// The properties of an acknowledgement on which the window depends.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// When it arrived.
    pub now: Ns,
    /// Segments that it reports as delivered.
    pub segments: u32,
    /// The sequence number up to which data is acknowledged.
    pub acknowledged: u32,
    /// The sequence number up to which data was sent.
    pub sent: u32,
}

impl Window {
    /// The window of a new connection.
    #[must_use]
    pub fn new(congestion: Congestion, segments: u32) -> Self {
        Self { segments, threshold: INFINITE, counted: 0, delay_min_us: u64::MAX, congestion, cubic: None }
    }

    #[must_use]
    pub fn in_slow_start(&self) -> bool {
        self.segments < self.threshold
    }

    /// The threshold after a loss now.
    pub fn after_loss(&mut self) -> u32 {
        match self.congestion {
            Congestion::Reno => (self.segments / 2).max(2),
            Congestion::Cubic => self.cubic.get_or_insert_default().after_loss(self.segments),
            Congestion::Bbr => self.threshold,
        }
    }

    /// The threshold that is restored if a reduction is undone: at least three quarters of the window.
    #[must_use]
    pub fn current_threshold(&self, reducing: bool) -> u32 {
        if reducing {
            self.threshold
        } else {
            self.threshold.max((self.segments >> 1) + (self.segments >> 2))
        }
    }

    /// Discards the knowledge about the path after a timeout.
    pub fn timed_out(&mut self) {
        self.cubic = None;
        self.delay_min_us = u64::MAX;
    }

    /// Processes a round-trip time; CUBIC may end slow start (HyStart).
    pub fn sampled(&mut self, acked: &Acked, us: u64) {
        if self.congestion != Congestion::Cubic {
            return;
        }
        if self.cubic.as_ref().is_some_and(|cubic| cubic.just_reduced(acked.now)) {
            return;
        }
        self.delay_min_us = self.delay_min_us.min(us.max(1));
        if self.in_slow_start() && self.segments >= HYSTART_LOW_WINDOW {
            let cubic = self.cubic.get_or_insert_default();
            if cubic.ends_slow_start(acked, us.max(1), self.delay_min_us) {
                self.threshold = self.segments;
            }
        }
    }

    /// Grows the window; called only if the window limited the sender.
    pub fn grow(&mut self, acked: &Acked) {
        let mut segments = acked.segments;
        if self.in_slow_start() {
            let grown = (self.segments + segments).min(self.threshold);
            segments -= grown - self.segments;
            self.segments = grown;
            if segments == 0 {
                return;
            }
        }
        let per_step = match self.congestion {
            Congestion::Reno | Congestion::Bbr => self.segments,
            Congestion::Cubic => self.cubic.get_or_insert_default().acknowledgements_per_step(
                acked.now,
                segments,
                self.segments,
                self.delay_min_us,
            ),
        };
        if self.counted >= per_step {
            self.counted = 0;
            self.segments += 1;
        }
        self.counted += segments;
        if self.counted >= per_step {
            let steps = self.counted / per_step;
            self.counted -= steps * per_step;
            self.segments += steps;
        }
    }

    /// Starts counting from zero.
    pub fn clear_count(&mut self) {
        self.counted = 0;
    }
}

/// The state of CUBIC and HyStart.
#[derive(Clone, Debug, Default)]
struct Cubic {
    last_max: u32,
    last_window: u32,
    last_update_ms: u64,
    epoch_start: Option<Ns>,
    origin: u32,
    /// Time to reach the origin, in 1/1024 s.
    reach: u64,
    per_step: u32,
    acknowledged: u32,
    reno_window: u32,
    // HyStart
    slow_start_ended: bool,
    round_start_us: u64,
    round_ends: u32,
    last_ack_us: u64,
    round_min_us: u64,
    samples: u32,
}

/// β = 717/1024, C = 0.4 (as 41/1024 · 10), in Linux's fixed point.
const BETA: u64 = 717;
const SCALE: u64 = 1024;
const RENO_SCALE: u64 = 8 * (SCALE + BETA) / 3 / (SCALE - BETA);
const CUBE_SCALE: u64 = 410;
const CUBE_FACTOR: u64 = (1 << 40) / 410;

const HYSTART_LOW_WINDOW: u32 = 16;
const HYSTART_SAMPLES: u32 = 8;
const HYSTART_TRAIN_US: u64 = 2_000;
/// The time that offloading adds to a train; at the rates of a handshake it always has its maximum.
const HYSTART_GSO_US: u64 = 1_000;

impl Cubic {
    fn after_loss(&mut self, window: u32) -> u32 {
        self.epoch_start = None;
        let reduced = |factor: u64| (u64::from(window) * factor / (2 * SCALE)) as u32;
        // Fast convergence: after a loss below the last maximum, the connection leaves room for others.
        self.last_max = if window < self.last_max { reduced(SCALE + BETA) } else { window };
        ((u64::from(window) * BETA / SCALE) as u32).max(2)
    }

    fn acknowledgements_per_step(&mut self, now: Ns, segments: u32, window: u32, delay_min_us: u64) -> u32 {
        self.acknowledged += segments;
        let now_ms = now.0 / 1_000_000;
        if self.last_window == window && now_ms.saturating_sub(self.last_update_ms) <= 31 && self.per_step > 0
        {
            return self.per_step;
        }
        if self.epoch_start.is_some() && now_ms == self.last_update_ms {
            return self.friendly(window);
        }
        self.last_window = window;
        self.last_update_ms = now_ms;
        let start = *self.epoch_start.get_or_insert_with(|| {
            self.acknowledged = segments;
            self.reno_window = window;
            if self.last_max <= window {
                self.reach = 0;
                self.origin = window;
            } else {
                self.reach = cube_root(CUBE_FACTOR * u64::from(self.last_max - window));
                self.origin = self.last_max;
            }
            now
        });
        let delay_us = if delay_min_us == u64::MAX { 0 } else { delay_min_us };
        let elapsed = ((now - start).0 / 1_000).saturating_add(delay_us).saturating_mul(SCALE) / 1_000_000;
        let offset = elapsed.abs_diff(self.reach);
        // In Linux this wraps after a day without a loss; no window is that large.
        let cube = u128::from(offset).saturating_pow(3).saturating_mul(u128::from(CUBE_SCALE)) >> 40;
        let delta = u32::try_from(cube).unwrap_or(u32::MAX);
        let target = if elapsed < self.reach {
            self.origin.saturating_sub(delta)
        } else {
            self.origin.saturating_add(delta)
        };
        self.per_step = if target > window { window / (target - window) } else { 100 * window };
        if self.last_max == 0 && self.per_step > 20 {
            self.per_step = 20;
        }
        self.friendly(window)
    }

    /// At least as fast as Reno.
    fn friendly(&mut self, window: u32) -> u32 {
        let delta = ((u64::from(window) * RENO_SCALE) >> 3).max(1) as u32;
        while self.acknowledged > delta {
            self.acknowledged -= delta;
            self.reno_window += 1;
        }
        if self.reno_window > window {
            self.per_step = self.per_step.min(window / (self.reno_window - window));
        }
        self.per_step = self.per_step.max(2);
        self.per_step
    }

    /// Round trips within a second after a reduction are ignored.
    fn just_reduced(&self, now: Ns) -> bool {
        self.epoch_start.is_some_and(|start| now.since(start) < Ns::from_s(1))
    }

    fn ends_slow_start(&mut self, acked: &Acked, us: u64, delay_min_us: u64) -> bool {
        if self.slow_start_ended {
            return false;
        }
        let now_us = acked.now.0 / 1_000;
        if acked.acknowledged > self.round_ends {
            self.round_start_us = now_us;
            self.last_ack_us = now_us;
            self.round_ends = acked.sent;
            self.round_min_us = u64::MAX;
            self.samples = 0;
        }
        if now_us - self.last_ack_us <= HYSTART_TRAIN_US {
            self.last_ack_us = now_us;
            // The train of acknowledgements is longer than half of the minimum round-trip time (without pacing).
            self.slow_start_ended |= now_us - self.round_start_us > (delay_min_us + HYSTART_GSO_US) / 2;
        }
        self.round_min_us = self.round_min_us.min(us);
        if self.samples < HYSTART_SAMPLES {
            self.samples += 1;
        } else {
            let margin = (delay_min_us / 8).clamp(4_000, 16_000);
            self.slow_start_ended |= self.round_min_us > delay_min_us + margin;
        }
        self.slow_start_ended
    }
}

fn cube_root(value: u64) -> u64 {
    let (mut low, mut high) = (0_u64, 1 << 21);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if middle * middle * middle <= value { low = middle } else { high = middle - 1 }
    }
    low
}
