//! A counter of the instructions that valgrind's callgrind counts in the program.
//!
//! Callgrind writes its count to valgrind's log when the program requests it (a monitor command); a reading sends this
//! request and reads the log. Collection is off meanwhile, so that a reading costs the same few instructions at any
//! size of the log. A count is exact: the same work has the same count in every run on the same processor features.

use crate::recorder::Ticks;
use crate::recording::Counter;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Valgrind's log, read up to the latest reading.
static LOG: OnceLock<Mutex<File>> = OnceLock::new();

/// Bytes of a reading that contain the count. A list of the active functions follows.
const HEAD_BYTES: usize = 1024;

// Requests, as valgrind/valgrind.h and valgrind/callgrind.h number them.
const RUNNING_ON_VALGRIND: usize = 0x1001;
const MONITOR_COMMAND: usize = 0x1202;
const TOGGLE_COLLECT: usize = 0x4354_0002;
const START_INSTRUMENTATION: usize = 0x4354_0004;

const STATUS: &std::ffi::CStr = c"status internal";

#[derive(Debug, thiserror::Error)]
pub enum CountError {
    #[error(
        "instructions are counted in programs that valgrind --tool=callgrind runs; this one runs without it"
    )]
    NotRunning,
    #[error("valgrind's log {path}: {error}")]
    Log { path: String, error: std::io::Error },
    #[error("valgrind's log {path} holds no counts")]
    NoCount { path: String },
}

/// Starts callgrind's counting, and returns the counter. `log` is the path of valgrind's log.
pub fn start(log: &Path) -> Result<Counter, CountError> {
    if request(RUNNING_ON_VALGRIND, 0) == 0 {
        return Err(CountError::NotRunning);
    }
    let path = || log.display().to_string();
    let file = File::open(log).map_err(|error| CountError::Log { path: path(), error })?;
    LOG.get_or_init(|| Mutex::new(file));
    request(START_INSTRUMENTATION, 0);
    match read() {
        0 => Err(CountError::NoCount { path: path() }),
        _ => Ok(Counter::custom("instructions", read)),
    }
}

/// The count so far; 0 if it cannot be read.
fn read() -> Ticks {
    request(TOGGLE_COLLECT, 0);
    let found = LOG.get().and_then(|log| {
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        // Skip other output that valgrind wrote since the last reading.
        log.seek(SeekFrom::End(0)).ok()?;
        request(MONITOR_COMMAND, STATUS.as_ptr() as usize);
        let mut head = [0; HEAD_BYTES];
        let length = log.read(&mut head).ok()?;
        count(std::str::from_utf8(&head[..length]).ok()?)
    });
    request(TOGGLE_COLLECT, 0);
    found.unwrap_or(0)
}

/// The count of the thread that sent the request.
fn count(status: &str) -> Option<Ticks> {
    let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    value(&format!("events-{}", value("current-tid")?))?.trim().parse().ok()
}

/// Sends a request to valgrind; returns 0 if the program does not run under it.
#[cfg(target_arch = "x86_64")]
fn request(number: usize, argument: usize) -> usize {
    let asked = [number, argument, 0, 0, 0, 0];
    let mut answer = 0_usize;
    // SAFETY: on a processor the instructions change only flags (the rotations add up to 128 bits, and a register is
    // exchanged with itself); valgrind recognises them, reads the six words at rax and writes its answer to rdx.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
            in("rax") asked.as_ptr(), inout("rdx") answer, options(nostack),
        );
    }
    answer
}

/// Sends a request to valgrind; returns 0 if the program does not run under it.
#[cfg(target_arch = "aarch64")]
fn request(number: usize, argument: usize) -> usize {
    let asked = [number, argument, 0, 0, 0, 0];
    let mut answer = 0_usize;
    // SAFETY: as on x86-64; the address of the six words is in x4, the answer in x3.
    unsafe {
        std::arch::asm!(
            "ror x12, x12, #3", "ror x12, x12, #13", "ror x12, x12, #51", "ror x12, x12, #61", "orr x10, x10, x10",
            in("x4") asked.as_ptr(), inout("x3") answer, options(nostack),
        );
    }
    answer
}

/// Valgrind's requests are implemented for two architectures.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn request(_number: usize, _argument: usize) -> usize {
    0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Output of valgrind 3.19.
    const WRITTEN: &str = "instrumentation: on\nexecuted-bbs: 28331\nevents: Ir\npart: 0\nthreads: 2\n\
        current-tid: 2\nevents-1: 7\nframes-1: 0\nevents-2: 123007\nframes-2: 1\nfunction-2-0: main\n";

    #[test]
    fn instruction_count_is_parsed_from_callgrind_output() {
        assert_eq!(count(WRITTEN), Some(123_007));
        assert_eq!(count("instrumentation: off\n"), None);
    }

    /// Callgrind's counts are tested by running the tests under it; this test runs without it.
    #[test]
    fn counting_without_valgrind_is_an_error() {
        assert!(matches!(start(Path::new("/dev/null")), Err(CountError::NotRunning)));
    }
}
