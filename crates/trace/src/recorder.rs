//! What stacks and timed primitives write while an endpoint works.
//!
//! The functions here write to the event log that is current on this thread, and do nothing where none is. A
//! [`Recording`](crate::Recording) makes its log the current one for the length of one call into its endpoint, so any
//! number of connections take turns on a thread. Writing an event costs a clock reading and a push; everything else is
//! worked out afterwards by [`crate::half_trace`].
//!
//! The vocabulary is small on purpose:
//!
//! - [`boundary`]: whatever message was being worked on is done;
//! - [`sent`], [`received`]: the span of time around this point, from the last boundary to the next, belongs to that
//!   message; [`adjust_sent`], [`adjust_received`] and [`size_sent`] correct its bytes where they are known only
//!   later;
//! - [`attribute_to_previous`]: what follows belongs to the message before the latest one;
//! - [`operation`]: a primitive ran from one reading to another.

use crate::clock;
use crate::{MessageName, Primitive};
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;

pub use crate::clock::{Ticks, name as clock_name};

/// Bytes of a message sent that only its records will tell; [`size_sent`] says them before the unit leaves.
pub const UNSIZED: u32 = 0;

/// One entry of an event log. Times are raw readings of the log's counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A call into the endpoint begins.
    Enter(Ticks),
    /// It returns.
    Leave(Ticks),
    /// Work on the current message is done.
    Boundary(Ticks),
    /// A message has been built and handed to the transport, with its bytes on the wire.
    Sent(MessageName, u32, Ticks),
    /// A message has been read, with its bytes on the wire; its processing goes on.
    Received(MessageName, u32, Ticks),
    /// The latest message sent has more or fewer bytes than was said.
    AdjustSent(i32),
    /// The latest message received has more or fewer bytes than was said.
    AdjustReceived(i32),
    /// The earliest message sent as [`UNSIZED`] has so many bytes.
    SizeSent(u32),
    /// What follows belongs to the message before the latest.
    AttributeToPrevious(Ticks),
    /// A datagram, or the pending bytes of a stream, left the endpoint: its length, and a fingerprint of a datagram's
    /// content, by which it is known when it is sent again.
    UnitSent(u32, u64),
    /// A datagram, or a chunk of the stream, was handed to the endpoint.
    UnitReceived(u32),
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

/// Where readings come from while a log is current.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    /// No log is current.
    Off,
    /// The clock of [`crate::clock`].
    Clock,
    /// A counter of the caller's.
    Custom(fn() -> Ticks),
}

struct Current {
    source: Cell<Source>,
    /// Not dropped with the thread, so that reaching it costs no check whether it still lives. It owns memory only
    /// during a call, after which the memory goes back to the recording that lent it.
    events: RefCell<ManuallyDrop<Vec<Event>>>,
}

thread_local! {
    static CURRENT: Current = const {
        Current { source: Cell::new(Source::Off), events: RefCell::new(ManuallyDrop::new(Vec::new())) }
    };
}

/// Exchanges the thread's current log and source of readings for others; gives the source there was.
pub(crate) fn exchange(events: &mut Vec<Event>, source: Source) -> Source {
    CURRENT.with(|current| {
        std::mem::swap(&mut **current.events.borrow_mut(), events);
        current.source.replace(source)
    })
}

/// True while a log is current on this thread.
#[must_use]
#[inline]
pub fn is_recording() -> bool {
    CURRENT.with(|current| !matches!(current.source.get(), Source::Off))
}

/// Reads the counter of the log that is current; the clock where none is.
#[must_use]
#[inline]
pub fn ticks() -> Ticks {
    CURRENT.with(|current| match current.source.get() {
        Source::Off | Source::Clock => clock::ticks(),
        Source::Custom(read) => read(),
    })
}

#[inline]
fn push(event: Event) {
    CURRENT.with(|current| {
        if !matches!(current.source.get(), Source::Off) {
            current.events.borrow_mut().push(event);
        }
    });
}

/// Writes an event that needs a reading.
#[inline]
fn push_at(event: impl FnOnce(Ticks) -> Event) {
    if is_recording() {
        push(event(ticks()));
    }
}

/// A call into the endpoint begins.
pub(crate) fn enter() {
    push_at(Event::Enter);
}

/// It returns.
pub(crate) fn leave() {
    push_at(Event::Leave);
}

/// Work on the current message is done.
#[inline]
pub fn boundary() {
    push_at(Event::Boundary);
}

/// A message of `bytes` bytes on the wire has been built.
#[inline]
pub fn sent(name: MessageName, bytes: u32) {
    push_at(|at| Event::Sent(name, bytes, at));
}

/// A message of `bytes` bytes on the wire has been read.
#[inline]
pub fn received(name: MessageName, bytes: u32) {
    push_at(|at| Event::Received(name, bytes, at));
}

/// The latest message sent has `difference` bytes more than was said, as where a record's overhead is known only once
/// the record is full. Costs no reading.
#[inline]
pub fn adjust_sent(difference: i32) {
    push(Event::AdjustSent(difference));
}

/// The latest message received has `difference` bytes more than was said. Costs no reading.
#[inline]
pub fn adjust_received(difference: i32) {
    push(Event::AdjustReceived(difference));
}

/// The earliest message that was sent as [`UNSIZED`] has `bytes` bytes on the wire. Costs no reading.
#[inline]
pub fn size_sent(bytes: u32) {
    push(Event::SizeSent(bytes));
}

/// What follows belongs to the message before the latest.
#[inline]
pub fn attribute_to_previous() {
    push_at(Event::AttributeToPrevious);
}

/// A primitive ran from `start` to `end`, two readings of [`ticks`].
#[inline]
pub fn operation(primitive: Primitive, start: Ticks, end: Ticks, bytes: u32, counts: bool) {
    push(Event::Operation { primitive, start, end, bytes, counts });
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
