//! Timing a call, and remembering what a context works on between calls.

use shakedown_trace::Primitive;
use shakedown_trace::recorder::{self, Ticks};
use std::cell::{Cell, RefCell};

thread_local! {
    /// True while a timed call runs: what it calls in turn is part of it.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    static CONTEXTS: RefCell<Contexts> = const { RefCell::new(Contexts { entries: Vec::new() }) };
}

/// How a call's time is entered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// As one whole operation.
    Whole,
    /// As work towards an operation that is counted when it completes.
    Towards,
}

/// Runs `work`; where a tape is running, times it as an operation of what `primitive` says afterwards.
/// `None` from `primitive` leaves the call unbooked.
#[inline]
pub fn time<T>(
    bytes: usize,
    entry: Entry,
    primitive: impl FnOnce(&T) -> Option<Primitive>,
    work: impl FnOnce() -> T,
) -> T {
    if !recorder::is_recording() || INSIDE.replace(true) {
        return work();
    }
    let start = recorder::ticks();
    let result = work();
    let end = recorder::ticks();
    INSIDE.set(false);
    if let Some(primitive) = primitive(&result) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        recorder::operation(primitive, start, end, bytes, entry == Entry::Whole);
    }
    result
}

/// Runs `work`; where a tape is running, keeps its time for the operation that `context` completes later.
#[inline]
pub fn accumulate<T>(context: usize, work: impl FnOnce() -> T) -> T {
    if !recorder::is_recording() || INSIDE.replace(true) {
        return work();
    }
    let start = recorder::ticks();
    let result = work();
    let spent = recorder::ticks() - start;
    INSIDE.set(false);
    CONTEXTS.with_borrow_mut(|contexts| {
        if let Some(entry) = contexts.find(context) {
            entry.spent += spent;
        }
    });
    result
}

/// Runs `work` and books it, with what `context` has accumulated, as one whole operation.
#[inline]
pub fn complete<T>(context: usize, work: impl FnOnce() -> T) -> T {
    if !recorder::is_recording() || INSIDE.replace(true) {
        return work();
    }
    let start = recorder::ticks();
    let result = work();
    let end = recorder::ticks();
    INSIDE.set(false);
    let known = CONTEXTS.with_borrow_mut(|contexts| {
        contexts.find(context).map(|entry| (entry.primitive, std::mem::take(&mut entry.spent)))
    });
    if let Some((Some(primitive), spent)) = known {
        // What was accumulated lies earlier in the same message; only the length of the operation is kept.
        recorder::operation(primitive, start.saturating_sub(spent), end, 0, true);
    }
    result
}

/// Notes what a context works on from now on.
pub fn remember(context: usize, primitive: Option<Primitive>) {
    CONTEXTS.with_borrow_mut(|contexts| contexts.insert(context, primitive));
}

/// What a context works on.
pub fn recall(context: usize) -> Option<Primitive> {
    CONTEXTS.with_borrow_mut(|contexts| contexts.find(context).and_then(|entry| entry.primitive))
}

/// A copy of a context works on the same.
pub fn duplicate(context: usize, copy: usize) {
    CONTEXTS.with_borrow_mut(|contexts| {
        let known = contexts.find(context).map(|entry| (entry.primitive, std::mem::take(&mut entry.spent)));
        if let Some((primitive, spent)) = known {
            contexts.insert(copy, primitive);
            if let Some(entry) = contexts.find(copy) {
                entry.spent = spent;
            }
        }
    });
}

/// The most recent contexts, latest first. Bounded: the oldest is forgotten, and a freed address is taken over
/// by the next context that is initialised there.
struct Contexts {
    entries: Vec<ContextEntry>,
}

#[derive(Clone, Copy)]
struct ContextEntry {
    context: usize,
    primitive: Option<Primitive>,
    spent: Ticks,
}

const MOST_CONTEXTS: usize = 64;

impl Contexts {
    /// Whoever is asked for is asked for again soon, so it moves to the front.
    fn find(&mut self, context: usize) -> Option<&mut ContextEntry> {
        let place = self.entries.iter().position(|entry| entry.context == context)?;
        if place > 0 {
            self.entries[..=place].rotate_right(1);
        }
        self.entries.first_mut()
    }

    fn insert(&mut self, context: usize, primitive: Option<Primitive>) {
        let entry = ContextEntry { context, primitive, spent: 0 };
        if let Some(known) = self.find(context) {
            *known = entry;
            return;
        }
        if self.entries.len() < MOST_CONTEXTS {
            self.entries.push(entry);
        } else if let Some(oldest) = self.entries.last_mut() {
            *oldest = entry;
        }
        self.entries.rotate_right(1);
    }
}
