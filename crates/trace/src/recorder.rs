//! The tape: what stacks write down while a handshake runs.
//!
//! Stacks and timed primitives call the free functions here; they do nothing unless a tape is running on
//! this thread. The tape is a plain list of events in the order of time, so that writing one costs a clock
//! reading and a push; everything else is worked out afterwards by [`crate::ledger`].
//!
//! The vocabulary is small on purpose:
//!
//! - [`enter`] and [`leave`] frame the time in which a side has the processor (its *marked time*);
//! - [`boundary`]: whatever message was being worked on is done;
//! - [`sent`], [`received`]: the stretch of time around this point, from the last boundary to the next,
//!   belongs to that message;
//! - [`carry_on`]: what follows belongs to the message before the latest one;
//! - [`operation`]: a primitive ran from one tick to another.

use crate::{MessageName, Primitive, Side, clock};
use std::cell::{Cell, RefCell};

pub use crate::clock::{Ticks, name as clock_name, ticks};

/// One entry of a tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A side starts working.
    Enter(Side, Ticks),
    /// A side stops working.
    Leave(Side, Ticks),
    /// Work on the current message is done.
    Boundary(Ticks),
    /// A message has been built and handed to the transport, with its bytes on the wire.
    Sent(MessageName, u32, Ticks),
    /// A message has been read; its processing goes on.
    Received(MessageName, Ticks),
    /// What follows belongs to the message before the latest.
    CarryOn(Ticks),
    /// A primitive ran.
    Operation {
        /// What ran.
        primitive: Primitive,
        /// When it began.
        start: Ticks,
        /// When it ended.
        end: Ticks,
        /// Bytes it worked on; 0 for public-key calls.
        bytes: u32,
        /// True where this completes one count (a digest's final; an update is only work towards it).
        counts: bool,
    },
}

/// The events of one handshake in order of time. While it runs, times are readings of [`ticks`]; once stopped,
/// nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Tape {
    /// In the order in which they were written.
    pub events: Vec<Event>,
}

thread_local! {
    static TAPE: RefCell<Tape> = const { RefCell::new(Tape { events: Vec::new() }) };
    /// Apart from the tape, so that whoever asks whether to measure pays no more than a look.
    static RECORDING: Cell<bool> = const { Cell::new(false) };
}

/// Starts recording on this thread. The tape given is cleared and reused, so that no allocation falls into
/// what is measured.
pub fn start(mut tape: Tape) {
    clock::calibrate();
    tape.events.clear();
    if tape.events.capacity() < 4096 {
        tape.events.reserve(4096);
    }
    TAPE.with_borrow_mut(|slot| *slot = tape);
    RECORDING.set(true);
}

/// Stops recording on this thread and hands the tape over; an empty one where none was running.
#[must_use]
pub fn stop() -> Tape {
    if !RECORDING.replace(false) {
        return Tape::default();
    }
    let mut tape = TAPE.take();
    tape.events.iter_mut().for_each(Event::convert);
    tape
}

/// True while a tape is running on this thread.
#[must_use]
#[inline]
pub fn is_recording() -> bool {
    RECORDING.get()
}

impl Event {
    /// Each reading is converted by itself, so that differences keep adding up.
    fn convert(&mut self) {
        match self {
            Self::Enter(_, at)
            | Self::Leave(_, at)
            | Self::Boundary(at)
            | Self::Sent(_, _, at)
            | Self::Received(_, at)
            | Self::CarryOn(at) => *at = clock::nanoseconds(*at),
            Self::Operation { start, end, .. } => {
                *start = clock::nanoseconds(*start);
                *end = clock::nanoseconds(*end);
            }
        }
    }
}

#[inline]
fn push(event: impl FnOnce() -> Event) {
    if is_recording() {
        TAPE.with_borrow_mut(|tape| tape.events.push(event()));
    }
}

/// A side starts working.
#[inline]
pub fn enter(side: Side) {
    push(|| Event::Enter(side, ticks()));
}

/// A side stops working.
#[inline]
pub fn leave(side: Side) {
    push(|| Event::Leave(side, ticks()));
}

/// Work on the current message is done.
#[inline]
pub fn boundary() {
    push(|| Event::Boundary(ticks()));
}

/// A message of `bytes` bytes on the wire has been built.
#[inline]
pub fn sent(name: MessageName, bytes: u32) {
    push(|| Event::Sent(name, bytes, ticks()));
}

/// A message has been read.
#[inline]
pub fn received(name: MessageName) {
    push(|| Event::Received(name, ticks()));
}

/// What follows belongs to the message before the latest.
#[inline]
pub fn carry_on() {
    push(|| Event::CarryOn(ticks()));
}

/// A primitive ran from `start` to `end`, two readings of [`ticks`].
#[inline]
pub fn operation(primitive: Primitive, start: Ticks, end: Ticks, bytes: u32, counts: bool) {
    push(|| Event::Operation { primitive, start, end, bytes, counts });
}

/// Runs `work` as one operation of `primitive` over `bytes` bytes.
#[inline]
pub fn timed<T>(primitive: Primitive, bytes: u32, work: impl FnOnce() -> T) -> T {
    if !is_recording() {
        return work();
    }
    let start = ticks();
    let result = work();
    operation(primitive, start, ticks(), bytes, true);
    result
}
