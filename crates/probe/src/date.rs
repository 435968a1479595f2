//! Days of the calendar.

use std::time::{SystemTime, UNIX_EPOCH};

/// Today in UTC, as `YYYY-MM-DD`.
pub fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = libc::time_t::try_from(since.as_secs()).unwrap_or(0);
    // SAFETY: a `tm` is plain numbers (and a pointer, which may be null), for which all zero is a value; gmtime_r writes
    // into it, and leaves it alone where the time is too large.
    let day = unsafe {
        let mut day: libc::tm = std::mem::zeroed();
        libc::gmtime_r(&raw const seconds, &raw mut day);
        day
    };
    format!("{:04}-{:02}-{:02}", day.tm_year + 1900, day.tm_mon + 1, day.tm_mday)
}

/// Hands a date on if it is one.
pub fn check(text: &str) -> Result<String, String> {
    let parts: Vec<&str> = text.split('-').collect();
    let number = |place: usize, digits: usize| {
        let part = parts
            .get(place)
            .filter(|part| part.len() == digits && part.bytes().all(|b| b.is_ascii_digit()))?;
        part.parse::<u32>().ok()
    };
    match (parts.len(), number(0, 4), number(1, 2), number(2, 2)) {
        (3, Some(year), Some(month @ 1..=12), Some(day @ 1..)) if day <= days(year, month) => {
            Ok(text.to_owned())
        }
        _ => Err(format!("--date is '{text}'; accepted: a day as YYYY-MM-DD")),
    }
}

/// Days of a month of the Gregorian calendar.
fn days(year: u32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_that_are_and_days_that_are_not() {
        for day in ["2026-01-31", "2024-02-29", "2000-02-29"] {
            assert_eq!(check(day).as_deref(), Ok(day));
        }
        for day in [
            "2026-02-29",
            "1900-02-29",
            "2026-13-01",
            "2026-00-10",
            "2026-1-1",
            "2026-01-00",
            "26-01-01",
            "2026-01-01-01",
            "x",
        ] {
            assert!(check(day).is_err(), "{day}");
        }
        assert!(check(&today()).is_ok());
    }
}
