//! The events that stacks and timed primitives write during a call of an endpoint.
//!
//! The functions here write to the current event log of the thread; without one they do nothing. A
//! [`Recording`](crate::Recording) makes its log the current one during one call of its endpoint, so calls of any
//! number of connections can interleave on a thread. Writing an event costs a clock reading and a push; everything else
//! is computed afterwards by [`crate::half_trace`].
//!
//! The events are few:
//!
//! - [`boundary`]: the work on the current message is done, or the [announced](announce) message begins;
//! - [`sent`], [`received`]: the span around this point, from the last boundary to the next, belongs to this message;
//!   [`adjust_received`] and [`size_sent`] correct its bytes if they are known only later;
//! - [`attribute_to_previous`]: what follows belongs to the message before the latest one;
//! - [`operation`]: a primitive ran from one reading to another.

use crate::clock;
use crate::{MessageName, Primitive};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::NonNull;

pub use crate::clock::{Ticks, name as clock_name};

/// Bytes of a sent message whose size is known only from its records; [`size_sent`] reports it before the unit is sent.
pub const UNSIZED: u32 = 0;

/// One entry of an event log, half a cache line long: every line that the log evicts costs the measured code a miss.
/// Times are raw readings of the log's counter, or 0 (without a reading) if nothing depends on the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A call into the endpoint begins.
    Enter(Ticks),
    Leave(Ticks),
    /// Work on the current message is done.
    Boundary(Ticks),
    /// A message has been built and handed to the transport, with its bytes on the wire. The time is used only if the
    /// span before it belongs to another message.
    Sent(MessageName, u32, Ticks),
    /// A message has been read, with its bytes on the wire; its processing continues. The time is used as in `Sent`.
    Received(MessageName, u32, Ticks),
    /// The latest received message has N bytes more than reported.
    AdjustReceived(i32),
    /// The earliest message sent as [`UNSIZED`] has N bytes.
    SizeSent(u32),
    /// What follows belongs to the message before the latest.
    AttributeToPrevious(Ticks),
    /// A datagram, or the pending bytes of a stream, was sent: its length, and a fingerprint of a datagram's content,
    /// by which a retransmission is recognised.
    UnitSent(u32, u64),
    /// A datagram, or a chunk of the stream, was handed to the endpoint.
    UnitReceived(u32),
    Operation {
        primitive: &'static Primitive,
        start: Ticks,
        end: Ticks,
        /// Processed bytes; 0 for public-key calls.
        bytes: u32,
        /// True if this completes one call (a digest's final; an update is only a part of it).
        counts: bool,
    },
}

/// A log and the source of its readings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    state: State,
    /// True if a message owns the current span. Otherwise a boundary has no effect: the span continues after it. This
    /// is so for about two thirds of the boundaries; they cost neither a clock reading nor an event.
    owned: bool,
    /// The message that begins at the next boundary: see [`announce`].
    announced: Option<(MessageName, u32)>,
    /// Start and end of the current [`outermost`] call.
    start: Ticks,
    end: Ticks,
    pub(crate) events: Vec<Event>,
    /// A custom counter; `None`: the clock of [`crate::clock`].
    read: Option<fn() -> Ticks>,
}

/// The state that is tested before a reading, in one byte: one comparison detects the usual case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State(u8);

impl Default for State {
    fn default() -> Self {
        Self(Self::ELSEWHERE)
    }
}

impl State {
    /// Readings are those of the time stamp counter, and no [`outermost`] call is running.
    const DIRECT: Self = Self(0);
    /// A bit: readings have another source.
    const ELSEWHERE: u8 = 1;
    /// A bit: an [`outermost`] call is running.
    const INSIDE: u8 = 2;

    fn of(read: Option<fn() -> Ticks>) -> Self {
        if read.is_none() && clock::is_counter() { Self::DIRECT } else { Self(Self::ELSEWHERE) }
    }

    fn is_inside(self) -> bool {
        self.0 & Self::INSIDE != 0
    }

    fn inside(self) -> Self {
        Self(self.0 | Self::INSIDE)
    }

    fn outside(self) -> Self {
        Self(self.0 & !Self::INSIDE)
    }
}

thread_local! {
    /// The current log; null if there is none. A pointer, so that a change of the current log moves no data: its cost
    /// falls between the measured calls, and is attributed to neither side.
    static CURRENT: Cell<*mut Log> = const { Cell::new(std::ptr::null_mut()) };
}

/// Guard: a log is the thread's current one while this value lives. The previous one is then restored.
pub(crate) struct CurrentGuard<'a> {
    before: *mut Log,
    /// The log is borrowed while the thread points to it.
    _log: PhantomData<&'a mut Log>,
}

impl<'a> CurrentGuard<'a> {
    #[inline]
    pub(crate) fn new(log: &'a mut Log) -> Self {
        log.enter();
        Self { before: CURRENT.replace(std::ptr::from_mut(log)), _log: PhantomData }
    }
}

impl Drop for CurrentGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        with(Log::leave);
        CURRENT.set(self.before);
    }
}

impl Log {
    /// An empty log with capacity for `room` events.
    pub(crate) fn new(read: Option<fn() -> Ticks>, room: usize) -> Self {
        Self { state: State::of(read), read, events: Vec::with_capacity(room), ..Self::default() }
    }

    /// Removes the events and keeps their memory.
    pub(crate) fn clear(&mut self) {
        self.events.clear();
        self.announced = None;
    }

    #[inline]
    fn ticks(&self) -> Ticks {
        if self.state.0 & State::ELSEWHERE == 0 { clock::counter() } else { self.other_ticks() }
    }

    #[cold]
    #[inline(never)]
    fn other_ticks(&self) -> Ticks {
        self.read.map_or_else(clock::ticks, |read| read())
    }

    /// Appends an event. If there is capacity, it is constructed in place, without a copy.
    #[inline(always)]
    fn push(&mut self, event: impl Fn() -> Event) {
        if self.events.len() == self.events.capacity() {
            return self.push_beyond_room(&event());
        }
        self.events.push(event());
    }

    #[cold]
    #[inline(never)]
    fn push_beyond_room(&mut self, event: &Event) {
        self.events.push(*event);
    }

    #[inline(never)]
    fn enter(&mut self) {
        let at = self.ticks();
        self.push(|| Event::Enter(at));
    }

    #[inline(never)]
    fn leave(&mut self) {
        (self.owned, self.state) = (false, self.state.outside());
        let at = self.ticks();
        self.push(|| Event::Leave(at));
    }

    /// A message owns the span that begins here, or the current span if it has no owner.
    #[inline(always)]
    fn own(&mut self, event: impl Fn(Ticks) -> Event) {
        let at = if self.owned { self.ticks() } else { 0 };
        self.owned = true;
        self.push(|| event(at));
    }

    #[inline(never)]
    fn received(&mut self, name: MessageName, bytes: u32) {
        self.own(|at| Event::Received(name, bytes, at));
    }

    #[inline(never)]
    fn write(&mut self, primitive: &'static Primitive, start: Ticks, end: Ticks, bytes: u32, counts: bool) {
        self.push(|| Event::Operation { primitive, start, end, bytes, counts });
    }

    /// Begins an [`outermost`] call. `None` if it is nested in another one.
    #[inline]
    fn begin(&mut self) -> Option<&mut Self> {
        if self.state != State::DIRECT {
            return self.begin_otherwise();
        }
        self.state = State::DIRECT.inside();
        self.start = clock::counter();
        Some(self)
    }

    #[cold]
    #[inline(never)]
    fn begin_otherwise(&mut self) -> Option<&mut Self> {
        if self.state.is_inside() {
            return None;
        }
        self.state = self.state.inside();
        self.start = self.other_ticks();
        Some(self)
    }

    /// Stores the end of the call, and returns its duration.
    #[inline]
    fn end(&mut self) -> Ticks {
        let inside = State::DIRECT.inside();
        self.end = if self.state == inside { clock::counter() } else { self.other_ticks() };
        self.end - self.start
    }

    /// Writes the call's event.
    #[inline(never)]
    fn write_whole(&mut self, primitive: &'static Primitive, spent: Ticks, bytes: u32, counts: bool) {
        self.state = self.state.outside();
        let (start, end) = (self.start.saturating_sub(spent), self.end);
        self.push(|| Event::Operation { primitive, start, end, bytes, counts });
    }
}

/// Runs `work` on the current log, if there is one.
#[inline]
fn with<T>(work: impl FnOnce(&mut Log) -> T) -> Option<T> {
    let log = CURRENT.get();
    // SAFETY: not null only while a `CurrentGuard` lives, which borrows the log exclusively and resets the pointer when
    // it is dropped; the pointer is thread-local. Nothing that `work` does here (reading a counter, appending an event)
    // calls this function again, so there is one reference at a time.
    unsafe { log.as_mut() }.map(work)
}

/// True while a log is current on this thread.
#[inline]
pub fn is_recording() -> bool {
    !CURRENT.get().is_null()
}

/// Reads the counter of the current log; without one, the clock.
#[inline]
pub fn ticks() -> Ticks {
    with(|log| log.ticks()).unwrap_or_else(clock::ticks)
}

/// The work on the current message is done. An announced message begins here, and owns the current span.
#[inline(never)]
pub fn boundary() {
    with(|log| {
        if let Some((name, bytes)) = log.announced.take() {
            return log.received(name, bytes);
        }
        if log.owned {
            log.owned = false;
            let at = log.ticks();
            log.push(|| Event::Boundary(at));
        }
    });
}

/// A message of `bytes` bytes on the wire has been built.
#[inline(never)]
pub fn sent(name: MessageName, bytes: u32) {
    with(|log| log.own(|at| Event::Sent(name, bytes, at)));
}

/// A message of `bytes` bytes on the wire has been read.
#[inline(never)]
pub fn received(name: MessageName, bytes: u32) {
    with(|log| log.received(name, bytes));
}

/// A message of `bytes` bytes on the wire is being read, and no call will report it: its processing begins at the next
/// boundary. Costs no reading.
#[inline]
pub fn announce(name: MessageName, bytes: u32) {
    with(|log| log.announced = Some((name, bytes)));
}

/// The latest received message has `difference` bytes more than reported, for example because a record's overhead is
/// known only when the record is full. Costs no reading.
#[inline(never)]
pub fn adjust_received(difference: i32) {
    with(|log| log.push(|| Event::AdjustReceived(difference)));
}

/// The earliest message that was sent as [`UNSIZED`] has `bytes` bytes on the wire. Costs no reading.
#[inline(never)]
pub fn size_sent(bytes: u32) {
    with(|log| log.push(|| Event::SizeSent(bytes)));
}

/// What follows belongs to the message before the latest.
#[inline(never)]
pub fn attribute_to_previous() {
    with(|log| log.own(Event::AttributeToPrevious));
}

/// A primitive ran from `start` to `end`, two readings of [`ticks`].
#[inline]
pub fn operation(primitive: Primitive, start: Ticks, end: Ticks, bytes: u32, counts: bool) {
    with(|log| log.write(primitive.interned(), start, end, bytes, counts));
}

/// Runs `work` as one operation of `primitive` over `bytes` bytes.
#[inline]
pub fn timed<T>(primitive: Primitive, bytes: u32, work: impl FnOnce() -> T) -> T {
    if !is_recording() {
        return work();
    }
    let start = ticks();
    let result = work();
    let end = ticks();
    operation(primitive, start, end, bytes, true);
    result
}

/// The properties of a call, which is recorded when it returns.
pub struct Entry {
    pub primitive: &'static Primitive,
    /// Time that earlier calls spent on the same operation. It is added: only an operation's duration is used.
    pub spent: Ticks,
    /// Processed bytes; 0 for public-key calls.
    pub bytes: u32,
    /// True if this completes one call.
    pub counts: bool,
}

/// Runs `work`; if a log is current, records the result of `entry`, which gets the result of `work` and its duration.
/// Nested calls in `work` and `entry` are part of this one, and are not recorded themselves.
///
/// A handshake has a hundred such calls of some dozens of kinds. So the thread's log is looked up once per call, and
/// most code is out of line: it evicts fewer cache lines of the measured code.
#[inline]
pub fn outermost<T>(work: impl FnOnce() -> T, entry: impl FnOnce(&T, Ticks) -> Option<Entry>) -> T {
    // As a pointer: code that `work` calls may access the log.
    let begun = with(|log| log.begin().map(NonNull::from)).flatten();
    let result = work();
    if let Some(mut log) = begun {
        // SAFETY: the log was current when the call began, and still is, because the `CurrentGuard` of that time still
        // lives: such values are dropped in the reverse order of their creation, and this function was called under it.
        // `work` has returned, so as in `with` there is one reference at a time.
        let elapsed = unsafe { log.as_mut() }.end();
        let entry = entry(&result, elapsed);
        // SAFETY: as above; `entry` has returned.
        let log = unsafe { log.as_mut() };
        match entry {
            Some(Entry { primitive, spent, bytes, counts }) => {
                log.write_whole(primitive, spent, bytes, counts)
            }
            None => log.state = log.state.outside(),
        }
    }
    result
}

/// Records work that took no time, unless it is part of an [`outermost`] call. Costs no reading.
#[inline]
pub fn untimed(entry: impl FnOnce() -> Option<Entry>) {
    let current = CURRENT.get();
    // SAFETY: as in `with`.
    if unsafe { current.as_ref() }.is_some_and(|log| !log.state.is_inside())
        && let Some(Entry { primitive, bytes, counts, .. }) = entry()
    {
        // SAFETY: as above; `entry` has returned.
        unsafe { (*current).write(primitive, 0, 0, bytes, counts) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A handshake writes some two hundred events, and the log evicts cache lines of the measured code.
    #[test]
    fn event_size_is_at_most_32_bytes() {
        assert!(size_of::<Event>() <= 32, "{}", size_of::<Event>());
    }
}
