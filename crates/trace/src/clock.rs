//! The clock that all timestamps come from.
//!
//! A handshake has some three hundred timestamps, so a reading must cost next to nothing. If Linux's clock source is
//! the time stamp counter (which then has a constant rate and is synchronised between processors), the counter is read
//! directly, at a third to a half of the cost of the system's monotonic clock. Otherwise that clock is read.

pub use source::ticks;
pub(crate) use source::{counter, is_counter};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A reading: of the time stamp counter, or nanoseconds of the monotonic clock. `nanoseconds` converts it.
pub type Ticks = u64;

/// Converts ticks to nanoseconds: `(ticks - origin) * multiplier >> 32`.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// Nanoseconds per tick, times 2^32; `None` if ticks are nanoseconds.
    multiplier: Option<u64>,
    /// Ticks at the start of the calibration. An earlier reading converts to 0.
    origin: Ticks,
}

/// Duration of the calibration: with readings accurate to 100 ns, the rate is accurate to 1 in 10^5.
const CALIBRATION_TIME: Duration = Duration::from_millis(10);

fn scale() -> &'static Scale {
    static SCALE: OnceLock<Scale> = OnceLock::new();
    SCALE.get_or_init(|| {
        if !is_counter() {
            return Scale { multiplier: None, origin: 0 };
        }
        let (first, started) = read_both();
        while started.elapsed() < CALIBRATION_TIME {
            std::hint::spin_loop();
        }
        let (last, ended) = read_both();
        let elapsed = (ended - started).as_nanos() << 32;
        let multiplier = u64::try_from(elapsed / u128::from((last - first).max(1))).unwrap_or(u64::MAX);
        Scale { multiplier: Some(multiplier), origin: first }
    })
}

/// Both clocks at the same time: the closest of several pairs of readings, because a pair can be interrupted.
fn read_both() -> (Ticks, Instant) {
    let reading = || {
        let before = ticks();
        let instant = Instant::now();
        (ticks() - before, before, instant)
    };
    let (width, before, instant) =
        (0..32).map(|_| reading()).min_by_key(|reading| reading.0).unwrap_or_else(reading);
    (before + width / 2, instant)
}

/// Measures the counter's rate, once per process; takes 10 ms.
pub(crate) fn calibrate() {
    scale();
}

/// A reading as nanoseconds since an arbitrary start of this process. Never decreases from one reading to a later one.
pub fn nanoseconds(ticks: Ticks) -> u64 {
    let scale = scale();
    match scale.multiplier {
        None => ticks,
        Some(multiplier) => {
            let since = u128::from(ticks.saturating_sub(scale.origin));
            u64::try_from((since * u128::from(multiplier)) >> 32).unwrap_or(u64::MAX)
        }
    }
}

pub fn name() -> &'static str {
    if is_counter() { "time stamp counter, scaled to CLOCK_MONOTONIC" } else { "CLOCK_MONOTONIC (ns)" }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod source {
    use std::sync::atomic::{AtomicU8, Ordering};

    const UNKNOWN: u8 = 0;
    const COUNTER: u8 = 1;
    const MONOTONIC: u8 = 2;
    static SOURCE: AtomicU8 = AtomicU8::new(UNKNOWN);

    /// The kernel's current clock source.
    const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

    /// True if [`ticks`] is [`counter`]. Callers store the result instead of testing it at each reading.
    pub fn is_counter() -> bool {
        if SOURCE.load(Ordering::Relaxed) == UNKNOWN {
            let trusted = std::fs::read_to_string(CLOCK_SOURCE).is_ok_and(|name| name.trim() == "tsc");
            SOURCE.store(if trusted { COUNTER } else { MONOTONIC }, Ordering::Relaxed);
        }
        SOURCE.load(Ordering::Relaxed) == COUNTER
    }

    /// Reads the clock that all timestamps come from.
    #[inline]
    pub fn ticks() -> u64 {
        match SOURCE.load(Ordering::Relaxed) {
            COUNTER => counter(),
            _ => other_ticks(),
        }
    }

    /// Reads the time stamp counter.
    #[inline(always)]
    pub fn counter() -> u64 {
        // SAFETY: every x86-64 processor has the instruction, and Linux permits it in user mode.
        unsafe { std::arch::x86_64::_rdtsc() }
    }

    /// If the counter is not trusted, or the clock source has not been read yet.
    #[cold]
    fn other_ticks() -> u64 {
        if is_counter() { ticks() } else { super::monotonic() }
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod source {
    pub fn is_counter() -> bool {
        false
    }

    #[inline]
    pub fn ticks() -> u64 {
        super::monotonic()
    }

    pub use ticks as counter;
}

fn monotonic() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    u64::try_from(START.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the system's clock. Preemption between two readings only lengthens the system's time, so its
    /// readings inside and outside the span give the two bounds.
    #[test]
    fn nanoseconds_match_the_system_clock() {
        // As a recording does when it starts: readings before the calibration convert to 0.
        calibrate();
        let outer = Instant::now();
        let first = ticks();
        let inner = Instant::now();
        while inner.elapsed() < Duration::from_millis(50) {
            std::hint::spin_loop();
        }
        let least = inner.elapsed();
        let last = ticks();
        let most = outer.elapsed();
        let found = Duration::from_nanos(nanoseconds(last) - nanoseconds(first)).as_secs_f64();
        assert!(found > least.as_secs_f64() * 0.999, "{found} s, at least {least:?} passed");
        assert!(found < most.as_secs_f64() * 1.001, "{found} s, at most {most:?} passed");
    }

    #[test]
    fn converted_time_never_decreases() {
        let mut earlier = nanoseconds(ticks());
        for _ in 0..10_000 {
            let now = nanoseconds(ticks());
            assert!(now >= earlier);
            earlier = now;
        }
    }
}
