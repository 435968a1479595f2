//! What stacks and timed primitives write while an endpoint works.
//!
//! The functions here write to the event log that is current on this thread, and do nothing where none is. A
//! [`Recording`](crate::Recording) makes its log the current one for the length of one call into its endpoint, so any
//! number of connections take turns on a thread. Writing an event costs a clock reading and a push; everything else is
//! worked out afterwards by [`crate::half_trace`].
//!
//! The vocabulary is small on purpose:
//!
//! - [`boundary`]: whatever message was being worked on is done, or the one that was [announced](announce) begins;
//! - [`sent`], [`received`]: the span of time around this point, from the last boundary to the next, belongs to that
//!   message; [`adjust_received`] and [`size_sent`] correct its bytes where they are known only later;
//! - [`attribute_to_previous`]: what follows belongs to the message before the latest one;
//! - [`operation`]: a primitive ran from one reading to another.

use crate::clock;
use crate::{MessageName, Primitive};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::NonNull;

pub use crate::clock::{Ticks, name as clock_name};

/// Bytes of a message sent that only its records will tell; [`size_sent`] says them before the unit leaves.
pub const UNSIZED: u32 = 0;

/// One entry of an event log: half a line of the processor's cache, for whatever a log displaces there is missed by what
/// is measured. Times are raw readings of the log's counter; where nothing depends on one, none is taken
/// and it is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A call into the endpoint begins.
    Enter(Ticks),
    Leave(Ticks),
    /// Work on the current message is done.
    Boundary(Ticks),
    /// A message has been built and handed to the transport, with its bytes on the wire. The time counts only where the
    /// span before belongs to another message.
    Sent(MessageName, u32, Ticks),
    /// A message has been read, with its bytes on the wire; its processing goes on. The time as for `Sent`.
    Received(MessageName, u32, Ticks),
    /// The latest message received has more or fewer bytes than was said.
    AdjustReceived(i32),
    /// The earliest message sent as [`UNSIZED`] has N bytes.
    SizeSent(u32),
    /// What follows belongs to the message before the latest.
    AttributeToPrevious(Ticks),
    /// A datagram, or the pending bytes of a stream, left the endpoint: its length, and a fingerprint of a datagram's
    /// content, by which it is known when it is sent again.
    UnitSent(u32, u64),
    /// A datagram, or a chunk of the stream, was handed to the endpoint.
    UnitReceived(u32),
    Operation {
        primitive: &'static Primitive,
        start: Ticks,
        end: Ticks,
        /// Bytes it worked on; 0 for public-key calls.
        bytes: u32,
        /// True where this completes one count (a digest's final; an update is only work towards it).
        counts: bool,
    },
}

/// A log, and where its readings come from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    state: State,
    /// A message may own the current span. Where none does, a boundary changes nothing: the span flows into the next. Two
    /// of three boundaries are such, and neither read the clock nor are written.
    owned: bool,
    /// A message that the next boundary begins: see [`announce`].
    announced: Option<(MessageName, u32)>,
    /// When the call began that is entered as a whole, and when it ended.
    start: Ticks,
    end: Ticks,
    pub(crate) events: Vec<Event>,
    /// A counter of the caller's; `None`: the clock of [`crate::clock`].
    read: Option<fn() -> Ticks>,
}

/// What must be known before a reading. In one byte, so that one comparison finds the usual case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State(u8);

impl Default for State {
    fn default() -> Self {
        Self(Self::ELSEWHERE)
    }
}

impl State {
    /// Readings are those of the time stamp counter, and no call runs that is entered as a whole.
    const DIRECT: Self = Self(0);
    /// A bit: readings come from elsewhere.
    const ELSEWHERE: u8 = 1;
    /// A bit: a call runs that is entered as a whole. See [`outermost`].
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
    /// The log that is current; null where none is. A pointer, so that making a log current moves nothing: what that
    /// costs falls between the calls that are measured, and is attributed to neither side.
    static CURRENT: Cell<*mut Log> = const { Cell::new(std::ptr::null_mut()) };
}

/// While it lives, a log is the thread's current one. The one that was current before is so again afterwards.
pub(crate) struct MadeCurrent<'a> {
    before: *mut Log,
    /// The log is borrowed for as long as the thread points to it.
    _log: PhantomData<&'a mut Log>,
}

impl<'a> MadeCurrent<'a> {
    #[inline]
    pub(crate) fn new(log: &'a mut Log) -> Self {
        log.enter();
        Self { before: CURRENT.replace(std::ptr::from_mut(log)), _log: PhantomData }
    }
}

impl Drop for MadeCurrent<'_> {
    #[inline]
    fn drop(&mut self) {
        with(Log::leave);
        CURRENT.set(self.before);
    }
}

impl Log {
    /// An empty log with room for some events.
    pub(crate) fn new(read: Option<fn() -> Ticks>, room: usize) -> Self {
        Self { state: State::of(read), read, events: Vec::with_capacity(room), ..Self::default() }
    }

    /// Forgets the events and keeps their memory.
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

    /// Appends an event. It is made in its place: where there is room, it is not made elsewhere and copied.
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

    /// A message owns the span from here, or around here where no other does.
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

    /// Begins a call that is entered as a whole. `None` where this is part of another one.
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

    /// Notes when it ended, and returns what it took.
    #[inline]
    fn end(&mut self) -> Ticks {
        let inside = State::DIRECT.inside();
        self.end = if self.state == inside { clock::counter() } else { self.other_ticks() };
        self.end - self.start
    }

    /// Enters it.
    #[inline(never)]
    fn write_whole(&mut self, primitive: &'static Primitive, spent: Ticks, bytes: u32, counts: bool) {
        self.state = self.state.outside();
        let (start, end) = (self.start.saturating_sub(spent), self.end);
        self.push(|| Event::Operation { primitive, start, end, bytes, counts });
    }
}

/// Works on the log that is current, if there is one.
#[inline]
fn with<T>(work: impl FnOnce(&mut Log) -> T) -> Option<T> {
    let log = CURRENT.get();
    // SAFETY: not null only while a `MadeCurrent` lives, which borrows the log exclusively and resets the pointer when it
    // is dropped; the pointer is this thread's alone. Nothing that `work` does here (reading a counter, appending an
    // event) comes back to this function, so there is one reference at a time.
    unsafe { log.as_mut() }.map(work)
}

/// True while a log is current on this thread.
#[inline]
pub fn is_recording() -> bool {
    !CURRENT.get().is_null()
}

/// Reads the counter of the log that is current; the clock where none is.
#[inline]
pub fn ticks() -> Ticks {
    with(|log| log.ticks()).unwrap_or_else(clock::ticks)
}

/// Work on the current message is done. Where one is announced, it begins here, and the current span is its own.
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

/// A message of `bytes` bytes on the wire is being read that no call will hand over: the next boundary is where its
/// processing begins. Costs no reading.
#[inline]
pub fn announce(name: MessageName, bytes: u32) {
    with(|log| log.announced = Some((name, bytes)));
}

/// The latest message received has `difference` bytes more than was said, as where a record's overhead is known only
/// once the record is full. Costs no reading.
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

/// What a call was, as it is entered once it is over.
pub struct Entry {
    pub primitive: &'static Primitive,
    /// Time that was spent on it before, in the same message: only the length of an operation is kept.
    pub spent: Ticks,
    /// Bytes it worked on; 0 for public-key calls.
    pub bytes: u32,
    /// True where this completes one count.
    pub counts: bool,
}

/// Runs `work`; where a log is current, enters what `entry` makes of its result and of the time that it took.
/// Whatever `work` and `entry` call in turn is part of it, and is not entered by itself if it comes here.
///
/// Handshakes have a hundred such calls of some dozens of kinds. So the thread's log is looked up once for each, and what
/// can be is done out of line: the fewer lines of the processor's caches are this function's, the less is displaced of what
/// is measured.
#[inline]
pub fn outermost<T>(work: impl FnOnce() -> T, entry: impl FnOnce(&T, Ticks) -> Option<Entry>) -> T {
    // As a pointer: what `work` calls may look at the log.
    let begun = with(|log| log.begin().map(NonNull::from)).flatten();
    let result = work();
    if let Some(mut log) = begun {
        // SAFETY: the log was current when the call began, and still is, for the `MadeCurrent` that made it so still lives:
        // such values are dropped in the reverse of the order in which they are made, and this function was called under
        // it. What `work` did is over, so as in `with` there is one reference at a time.
        let elapsed = unsafe { log.as_mut() }.end();
        let entry = entry(&result, elapsed);
        // SAFETY: as above; what `entry` did is over.
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

/// Enters work that took no time, unless it is part of a call that is entered as a whole. Costs no reading.
#[inline]
pub fn untimed(entry: impl FnOnce() -> Option<Entry>) {
    let current = CURRENT.get();
    // SAFETY: as in `with`.
    if unsafe { current.as_ref() }.is_some_and(|log| !log.state.is_inside())
        && let Some(Entry { primitive, bytes, counts, .. }) = entry()
    {
        // SAFETY: as above; what `entry` did is over.
        unsafe { (*current).write(primitive, 0, 0, bytes, counts) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An event is written some two hundred times in a handshake: what a log takes of the processor's caches is missed by
    /// what is measured.
    #[test]
    fn an_event_is_half_a_cache_line() {
        assert!(size_of::<Event>() <= 32, "{}", size_of::<Event>());
    }
}
