//! Timings as a device profile: the TOML file with the costs of primitives on this machine.

use super::sampling::has_a_tail;
use super::timing::Timing;
use crate::machine::Machine;
use serde::Serialize;
use shakedown_trace::Primitive;
use shakedown_trace::operation::intern;
use std::time::Instant;

/// A profile's data other than timings.
#[derive(Clone, Debug)]
pub struct About {
    /// The name of the profile and of its file.
    pub name: String,
    /// The device's display name.
    pub title: String,
    /// The date of the measurement, as `YYYY-MM-DD`.
    pub date: String,
    pub source: String,
    pub machine: Machine,
}

/// Version of the format of device profiles.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    name: &'a str,
    title: &'a str,
    chip: &'a str,
    clock_hz: u64,
    library: String,
    build: String,
    date: &'a str,
    source: [&'a str; 1],
    note: String,
    primitive: Vec<Row<'a>>,
}

#[derive(Default, Serialize)]
struct Row<'a> {
    operation: &'static str,
    algorithm: &'a str,
    parameters: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mean_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sd_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_call_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_kib_us: Option<f64>,
}

pub fn device_profile(about: &About, timings: &[Timing]) -> Result<String, String> {
    let (clock_hz, clock_note) = match about.machine.clock_hz {
        Some(clock_hz) if clock_hz > 0 => (clock_hz, ""),
        _ => (estimate_clock_hz(), " The clock is estimated: the system does not tell it."),
    };
    let document = Document {
        schema: SCHEMA,
        name: &about.name,
        title: &about.title,
        chip: &about.machine.cpu,
        clock_hz,
        library: format!("OpenSSL {}", shakedown_ossl::version()),
        build: format!(
            "{}, {}, {} {}",
            openssl::version::platform().trim_start_matches("platform: "),
            about.machine.os,
            about.machine.build_profile,
            about.machine.version
        ),
        date: &about.date,
        source: [&about.source],
        note: format!(
            "Medians of calls as in a handshake: peers' keys freshly read, a handshake without public keys in \
             between. Signing with ML-DSA is a distribution.{clock_note}"
        ),
        primitive: timings.iter().map(row).collect(),
    };
    toml::to_string(&document).map_err(|error| error.to_string())
}

fn row(timing: &Timing) -> Row<'_> {
    let row = Row {
        operation: timing.operation.as_str(),
        algorithm: &timing.algorithm,
        parameters: &timing.parameters,
        ..Row::default()
    };
    let primitive = Primitive::new(timing.operation, intern(&timing.algorithm), "");
    if timing.operation.is_symmetric() {
        // Two zeros would mean no cost; the clock's resolution is 1 ns.
        let per_call_us = timing.per_call_us.map_or(0.0, short).max(0.001);
        Row { per_call_us: Some(per_call_us), per_kib_us: timing.per_kib_us.map(short), ..row }
    } else if has_a_tail(primitive) {
        let spread = &timing.us;
        Row {
            mean_us: Some(short(spread.mean)),
            sd_us: Some(short(spread.sd)),
            min_us: Some(short(spread.min)),
            max_us: Some(short(spread.max)),
            ..row
        }
    } else {
        Row { time_us: Some(short(timing.us.median)), ..row }
    }
}

/// Rounds to five significant digits, which is more than the precision of the measurement.
fn short(figure: f64) -> f64 {
    format!("{figure:.4e}").parse().unwrap_or(figure)
}

/// Estimates the processor's clock rate by a chain of dependent multiplications: on most processors, three cycles for
/// the multiplication and one for the exclusive or.
fn estimate_clock_hz() -> u64 {
    const STEPS: u64 = 20_000_000;
    const CYCLES_PER_STEP: f64 = 4.0;
    let factor = std::hint::black_box(0x9E37_79B9_7F4A_7C15_u64);
    let once = || {
        let start = Instant::now();
        let mut value = factor;
        for step in 0..STEPS {
            value = value.wrapping_mul(factor) ^ step;
        }
        std::hint::black_box(value);
        start.elapsed().as_secs_f64()
    };
    let best = (0..5).map(|_| once()).fold(f64::INFINITY, f64::min);
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    // a frequency is far below 2^53
    let clock_hz = (STEPS as f64 * CYCLES_PER_STEP / best) as u64;
    clock_hz.max(1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::primitives::Spread;
    use shakedown_trace::Operation;

    fn about() -> About {
        About {
            name: "this-machine".into(),
            title: "A \"test\"".into(),
            date: "2026-01-01".into(),
            source: "a test".into(),
            machine: Machine { clock_hz: Some(3_000_000_000), ..Machine::detect() },
        }
    }

    #[test]
    fn each_kind_of_cost_has_its_keys() {
        let spread = Spread::of(&[1.0, 2.0, 123.456_789], 0);
        let of = |operation, algorithm, parameters| {
            Timing::new(Primitive::new(operation, algorithm, parameters), spread)
        };
        let mut digest = of(Operation::Digest, "sha256", "");
        (digest.per_call_us, digest.per_kib_us) = (Some(0.0), Some(0.5));
        let timings =
            [of(Operation::Sign, "mldsa", "mldsa65"), of(Operation::Verify, "rsa", "rsa2048e3"), digest];
        let text = device_profile(&about(), &timings).unwrap();
        let document: toml::Table = text.parse().unwrap();
        let rows = document["primitive"].as_array().unwrap();
        let number = |row: usize, key: &str| rows[row].get(key).and_then(toml::Value::as_float);
        assert_eq!((number(0, "min_us"), number(0, "max_us")), (Some(1.0), Some(123.46)));
        assert!(
            number(0, "mean_us").is_some() && number(0, "sd_us").is_some() && number(0, "time_us").is_none()
        );
        assert_eq!((number(1, "time_us"), number(1, "mean_us")), (Some(2.0), None));
        assert_eq!((number(2, "per_call_us"), number(2, "per_kib_us")), (Some(0.001), Some(0.5)));
        assert_eq!(document["title"].as_str(), Some("A \"test\""));
        assert_eq!(document["clock_hz"].as_integer(), Some(3_000_000_000));
    }

    #[test]
    fn estimated_clock_rate_is_plausible() {
        let text =
            device_profile(&About { machine: Machine { clock_hz: None, ..about().machine }, ..about() }, &[]);
        let document: toml::Table = text.unwrap().parse().unwrap();
        let clock_hz = document["clock_hz"].as_integer().unwrap();
        assert!((100_000_000..20_000_000_000).contains(&clock_hz), "{clock_hz}");
        assert!(document["note"].as_str().unwrap().contains("estimated"));
    }
}
