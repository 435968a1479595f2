//! Timing a call and writing it to the event log: all that this crate asks of the [recorder].

use super::contexts;
use libc::c_void;
use shakedown_trace::Primitive;
use shakedown_trace::recorder;

/// How a call's time is entered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    Complete,
    /// As work towards an operation that is counted when it completes.
    Partial,
}

/// True where an event log is current.
#[inline]
pub fn is_recording() -> bool {
    recorder::is_recording()
}

/// Runs `work`; where a log is current, times it as an operation of what `primitive` says afterwards.
/// `None` from `primitive` leaves the call unrecorded. What `work` calls in turn is part of it.
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

/// Runs `work`, which takes less time than reading the clock twice: where a log is current, its bytes are entered and its
/// time stays with the message.
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

/// Runs `work`; where a log is current, keeps its time for the operation that `context` completes later.
#[inline]
pub fn accumulate<T>(context: *mut c_void, work: impl FnOnce() -> T) -> T {
    recorder::outermost(work, move |_, spent| {
        contexts::spend(context, spent);
        None
    })
}

/// Runs `work` and enters it, with what `context` has accumulated, as one complete operation.
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
