//! Times calls and writes them to the event log: this crate's only use of the [recorder].

use super::contexts;
use libc::c_void;
use shakedown_trace::Primitive;
use shakedown_trace::recorder;

/// How a call is recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    Complete,
    /// As part of an operation, which is counted when it completes.
    Partial,
}

/// True if an event log is current.
#[inline]
pub fn is_recording() -> bool {
    recorder::is_recording()
}

/// Runs `work`. If a log is current, times the call, including nested calls, and records it as an operation of the
/// primitive that `primitive` then returns. The call is not recorded if that is `None`.
#[inline]
pub fn time<T>(
    bytes: usize,
    entry: Entry,
    primitive: impl FnOnce(&T) -> Option<&'static Primitive>,
    work: impl FnOnce() -> T,
) -> T {
    recorder::outermost(work, move |result, _| {
        let counts = entry == Entry::Complete;
        Some(recorder::Entry { primitive: primitive(result)?, spent: 0, bytes: saturated(bytes), counts })
    })
}

/// Runs `work`, which takes less time than reading the clock twice. If a log is current, records its bytes; its time is
/// part of the message.
#[inline]
pub fn count_bytes<T>(
    bytes: usize,
    primitive: impl FnOnce(&T) -> Option<&'static Primitive>,
    work: impl FnOnce() -> T,
) -> T {
    let result = work();
    recorder::untimed(|| {
        let primitive = primitive(&result)?;
        Some(recorder::Entry { primitive, spent: 0, bytes: saturated(bytes), counts: false })
    });
    result
}

/// Runs `work`. If a log is current, adds its time to the operation that `context` completes later.
#[inline]
pub fn accumulate<T>(context: *mut c_void, work: impl FnOnce() -> T) -> T {
    recorder::outermost(work, move |_, spent| {
        contexts::spend(context, spent);
        None
    })
}

/// Runs `work` and records it, with the accumulated time of `context`, as one complete operation.
#[inline]
pub fn complete<T>(context: *mut c_void, work: impl FnOnce() -> T) -> T {
    recorder::outermost(work, move |_, _| {
        let note = contexts::complete(context);
        Some(recorder::Entry { primitive: note.primitive?, spent: note.spent, bytes: 0, counts: true })
    })
}

#[inline]
fn saturated(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
