//! The machine and the build of a measurement.

use serde::Serialize;

/// The machine and the build; stored with every result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// The name that the processor reports.
    pub cpu: String,
    /// Processors that this process may use.
    pub cores: usize,
    /// Highest clock rate that the system reports, in Hz.
    pub clock_hz: Option<u64>,
    pub architecture: &'static str,
    pub os: String,
    pub memory_bytes: Option<u64>,
    /// `release` or `debug`. Times of a debug build are not valid.
    pub build_profile: &'static str,
    pub version: &'static str,
}

pub const BUILD_PROFILE: &str = if cfg!(debug_assertions) { "debug" } else { "release" };

impl Machine {
    /// Detects the machine on which the program runs. Values that the system does not report are unknown.
    pub fn detect() -> Self {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let line = cpuinfo.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let cpu = field("model name").or_else(|| field("Model")).unwrap_or_else(|| "unknown".into());
        let highest = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
        let highest = highest.ok().and_then(|text| text.trim().parse::<u64>().ok()).map(|khz| khz * 1000);
        let now = field("cpu MHz").and_then(|text| text.parse::<f64>().ok());
        let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let memory_bytes = memory
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:"))
            .and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok())
            .map(|kib| kib * 1024);
        let os = nix::sys::utsname::uname().map_or_else(
            |_| std::env::consts::OS.to_owned(),
            |name| format!("{} {}", name.sysname().to_string_lossy(), name.release().to_string_lossy()),
        );
        Self {
            cpu,
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            // A frequency is a whole number of hertz well below 2^53.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            clock_hz: highest.or(now.map(|mhz| (mhz * 1e6) as u64)),
            architecture: std::env::consts::ARCH,
            os,
            memory_bytes,
            build_profile: BUILD_PROFILE,
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}
