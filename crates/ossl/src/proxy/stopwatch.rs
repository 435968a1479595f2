//! Timing a call and writing it to the event log: all that this crate asks of the [recorder].

use super::contexts;
use libc::c_void;
use shakedown_trace::Primitive;
use shakedown_trace::recorder;
use std::cell::Cell;

thread_local! {
    /// True while a timed call runs: what it calls in turn is part of it.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// How a call's time is entered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// As one complete operation.
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
/// `None` from `primitive` leaves the call unrecorded.
#[inline]
pub fn time<T>(
    bytes: usize,
    entry: Entry,
    primitive: impl FnOnce(&T) -> Option<Primitive>,
    work: impl FnOnce() -> T,
) -> T {
    if !is_recording() || INSIDE.replace(true) {
        return work();
    }
    let start = recorder::ticks();
    let result = work();
    let end = recorder::ticks();
    INSIDE.set(false);
    if let Some(primitive) = primitive(&result) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        recorder::operation(primitive, start, end, bytes, entry == Entry::Complete);
    }
    result
}

/// Runs `work`, which takes less time than reading the clock twice: where a log is current, its bytes are entered and its
/// time stays with the message.
#[inline]
pub fn count_bytes<T>(
    bytes: usize,
    primitive: impl FnOnce(&T) -> Option<Primitive>,
    work: impl FnOnce() -> T,
) -> T {
    let result = work();
    if is_recording()
        && !INSIDE.get()
        && let Some(primitive) = primitive(&result)
    {
        recorder::operation(primitive, 0, 0, u32::try_from(bytes).unwrap_or(u32::MAX), false);
    }
    result
}

/// Runs `work`; where a log is current, keeps its time for the operation that `context` completes later.
#[inline]
pub fn accumulate<T>(context: *mut c_void, work: impl FnOnce() -> T) -> T {
    if !is_recording() || INSIDE.replace(true) {
        return work();
    }
    let start = recorder::ticks();
    let result = work();
    let spent = recorder::ticks() - start;
    INSIDE.set(false);
    contexts::spend(context, spent);
    result
}

/// Runs `work` and enters it, with what `context` has accumulated, as one complete operation.
#[inline]
pub fn complete<T>(context: *mut c_void, work: impl FnOnce() -> T) -> T {
    if !is_recording() || INSIDE.replace(true) {
        return work();
    }
    let start = recorder::ticks();
    let result = work();
    let end = recorder::ticks();
    INSIDE.set(false);
    let note = contexts::complete(context);
    if let Some(primitive) = note.primitive {
        // What was accumulated lies earlier in the same message; only the length of the operation is kept.
        recorder::operation(primitive, start.saturating_sub(note.spent), end, 0, true);
    }
    result
}
