//! Calendar dates as seconds since 1970, UTC.

use openssl::asn1::{Asn1Time, Asn1TimeRef};
use openssl::error::ErrorStack;

/// Seconds of a day.
pub const DAY_S: i64 = 86_400;

/// The first second of a certificate's calendar, 1950-01-01.
pub const MIN_S: i64 = -631_152_000;

/// The last second of it, at the end of 9999-12-31.
pub const MAX_S: i64 = 253_402_300_799;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{unix_s} is no time to validate certificates at; accepted: seconds since 1970 from {MIN_S} (1950-01-01) to {MAX_S} \
     (9999-12-31)"
)]
pub struct TimeError {
    /// Seconds since 1970; wider than accepted times, so that the error can print any input.
    pub unix_s: i128,
}

/// Checks that certificates can be validated at a time, in seconds since 1970.
pub fn checked(unix_s: impl Into<i128>) -> Result<i64, TimeError> {
    let unix_s = unix_s.into();
    let time_s = i64::try_from(unix_s).ok().filter(|time_s| (MIN_S..=MAX_S).contains(time_s));
    time_s.ok_or(TimeError { unix_s })
}

/// Reads `YYYY-MM-DD` as seconds since 1970 at midnight UTC; `None` for anything else.
pub fn parse(text: &str) -> Option<i64> {
    let is_right = |(place, byte): (usize, u8)| {
        if matches!(place, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() }
    };
    if text.len() != 10 || !text.bytes().enumerate().all(is_right) || text < "1950" {
        return None;
    }
    // OpenSSL rejects dates that do not exist.
    let midnight = Asn1Time::from_str(&format!("{}000000Z", text.replace('-', ""))).ok()?;
    unix_s(&midnight).ok()
}

/// Prints seconds since 1970 as `YYYY-MM-DD hh:mm:ss UTC`.
pub fn print(unix_s: i64) -> String {
    let (year, month, day) = civil_from_days(unix_s.div_euclid(DAY_S));
    let second = unix_s.rem_euclid(DAY_S);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// The proleptic Gregorian date `days` days after 1970-01-01, computed with years that begin in March.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// A certificate's time as seconds since 1970.
pub(crate) fn unix_s(time: &Asn1TimeRef) -> Result<i64, ErrorStack> {
    let difference = Asn1Time::from_unix(0)?.diff(time)?;
    Ok(i64::from(difference.days) * DAY_S + i64::from(difference.secs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_parsed_and_printed() {
        assert_eq!(parse("1970-01-01"), Some(0));
        assert_eq!(parse("2000-02-29"), Some(951_782_400));
        assert_eq!(parse("2049-12-31"), Some(2_524_521_600));
        assert_eq!(print(951_782_400 + 3661), "2000-02-29 01:01:01 UTC");
        assert_eq!(print(-1), "1969-12-31 23:59:59 UTC");
    }

    #[test]
    fn times_beyond_the_calendar_are_refused_in_one_line() {
        assert_eq!(Some(MIN_S), parse("1950-01-01"));
        assert_eq!(print(MAX_S), "9999-12-31 23:59:59 UTC");
        for time_s in [MIN_S, 0, MAX_S] {
            assert_eq!(checked(time_s), Ok(time_s));
        }
        for unix_s in
            [i128::from(MIN_S) - 1, i128::from(MAX_S) + 1, i64::MIN.into(), i64::MAX.into(), i128::MAX]
        {
            assert_eq!(checked(unix_s), Err(TimeError { unix_s }));
        }
        let message = checked(99_999_999_999_999_999_999_i128).map_err(|error| error.to_string());
        let wanted = "99999999999999999999 is no time to validate certificates at; accepted: seconds since 1970 from \
                      -631152000 (1950-01-01) to 253402300799 (9999-12-31)";
        assert_eq!(message, Err(wanted.to_owned()));
        // Any time can be printed.
        assert!(print(i64::MIN).ends_with(" UTC") && print(i64::MAX).ends_with(" UTC"));
    }

    #[test]
    fn impossible_dates_are_refused() {
        for text in [
            "2001-02-29",
            "2001-13-01",
            "2001-00-01",
            "2001-1-01",
            "2001-01-01-",
            "20010101",
            "",
            "+001-01-01",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
