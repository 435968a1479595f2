//! The event log of one endpoint, and the wrapper that writes it.

use crate::clock;
use crate::endpoint::{Endpoint, Event as Happened, Transport};
use crate::recorder::{CurrentGuard, Event, Log, Ticks};
use crate::wrapper::Wrapper;

/// The counter that is read during an endpoint's calls: a clock in nanoseconds, or a function of the caller.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    unit: &'static str,
    /// `None`: the clock of this crate.
    read: Option<fn() -> Ticks>,
}

impl Counter {
    /// Nanoseconds of the clock that [`clock_name`](crate::recorder::clock_name) names.
    pub const NANOSECONDS: Self = Self { unit: "ns", read: None };

    /// Another counter that never decreases on a thread, such as one of instructions; `unit` names what it counts.
    pub const fn custom(unit: &'static str, read: fn() -> Ticks) -> Self {
        Self { unit, read: Some(read) }
    }

    pub fn unit(self) -> &'static str {
        self.unit
    }

    /// True for the clock, false for a custom counter.
    pub fn is_time(self) -> bool {
        self.read.is_none()
    }

    /// The current reading, in the counter's unit.
    pub fn now(self) -> u64 {
        self.convert(self.read.map_or_else(clock::ticks, |read| read()))
    }

    /// Converts a reading to the counter's unit, from an arbitrary start. A later reading is never smaller.
    pub fn convert(self, ticks: Ticks) -> u64 {
        if self.read.is_some() { ticks } else { clock::nanoseconds(ticks) }
    }
}

impl Default for Counter {
    fn default() -> Self {
        Self::NANOSECONDS
    }
}

impl PartialEq for Counter {
    /// Counters are equal if their units are: values of one unit can be combined.
    fn eq(&self, other: &Self) -> bool {
        self.unit == other.unit
    }
}

impl Eq for Counter {}

/// The event log of one endpoint.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    counter: Counter,
    log: Log,
}

/// Initial capacity of a log, in events: enough for one side of a usual handshake, so that its calls do not allocate.
const ROOM: usize = 256;

impl Recording {
    /// An empty log for readings of `counter`.
    pub fn new(counter: Counter) -> Self {
        // Measures the clock's rate before anything is timed.
        clock::calibrate();
        Self { counter, log: Log::new(counter.read, ROOM) }
    }

    pub fn counter(&self) -> Counter {
        self.counter
    }

    /// The events so far, in the order in which they were written.
    pub fn events(&self) -> &[Event] {
        &self.log.events
    }

    /// A recording of other events with the same counter.
    pub(crate) fn with(&self, events: Vec<Event>) -> Self {
        let mut other = Self::new(self.counter);
        other.log.events = events;
        other
    }

    /// Removes the events and keeps their memory, so that no allocation is measured in the next handshake.
    pub fn clear(&mut self) {
        self.log.clear();
    }

    /// Records that a unit (a chunk of the stream, or a datagram) has arrived. The call that processes it follows.
    pub fn unit_received(&mut self, bytes: usize) {
        self.log.events.push(Event::UnitReceived(u32::try_from(bytes).unwrap_or(u32::MAX)));
    }

    /// Records that a unit has been passed to the transport, after the call that generated it.
    pub fn unit_sent(&mut self, transport: Transport, unit: &[u8]) {
        let fingerprint = match transport {
            Transport::Stream => 0,
            Transport::Datagram => fingerprint(unit),
        };
        self.log.events.push(Event::UnitSent(u32::try_from(unit.len()).unwrap_or(u32::MAX), fingerprint));
    }

    /// Runs `work` as one call of the endpoint, with this as the thread's current log. Afterwards the previous log is
    /// current again; it contains no events of this call.
    pub fn during<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let _current = CurrentGuard::new(&mut self.log);
        work()
    }
}

/// An endpoint with its own recording, which contains every call of the endpoint.
///
/// It is an endpoint itself, so driver, simulator and server need no instrumentation. Events that the stack and its
/// primitives report to the [recorder](crate::recorder) during a call are written to this endpoint's log, even if many
/// connections share the thread or a connection changes threads.
pub struct Recorded<E> {
    pub(crate) inner: E,
    pub(crate) recording: Recording,
}

impl<E: Endpoint> Recorded<E> {
    /// Wraps an endpoint before its first call.
    pub fn new(inner: E, recording: Recording) -> Self {
        Self { inner, recording }
    }

    /// The endpoint and its recording.
    pub fn into_parts(self) -> (E, Recording) {
        (self.inner, self.recording)
    }
}

impl<E: Endpoint> Wrapper for Recorded<E> {
    type Inner = E;

    fn inner(&self) -> &E {
        &self.inner
    }

    fn inner_mut(&mut self) -> &mut E {
        &mut self.inner
    }

    #[inline]
    fn around<T>(&mut self, call: impl FnOnce(&mut E) -> T) -> T {
        self.recording.during(|| call(&mut self.inner))
    }

    /// Not recorded, because it only returns an existing event.
    #[inline]
    fn take_event(&mut self) -> Option<Happened> {
        self.inner.poll_event()
    }

    #[inline]
    fn unit_arrives(&mut self, unit: &[u8]) {
        self.recording.unit_received(unit.len());
    }

    #[inline]
    fn unit_leaves(&mut self, unit: &[u8]) {
        self.recording.unit_sent(self.inner.transport(), unit);
    }
}

/// A hash that distinguishes the datagrams of one connection. It need not be cryptographic: only this side's own
/// datagrams are hashed, so an attacker gains nothing from a collision.
fn fingerprint(bytes: &[u8]) -> u64 {
    // FNV's prime and offset, eight bytes at a time.
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(PRIME).rotate_left(23);
    let mut words = bytes.chunks_exact(8);
    let mut hash = mix(0xcbf2_9ce4_8422_2325, bytes.len() as u64);
    for word in words.by_ref() {
        hash = mix(hash, u64::from_le_bytes(word.try_into().unwrap_or_default()));
    }
    let rest = words.remainder().iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
    // 0 is reserved for units of streams.
    mix(hash, rest).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::{self, Ticks};
    use crate::{HalfTrace, MessageName, Operation, Primitive, Side};
    use std::cell::Cell;

    thread_local! {
        /// A simulated count of instructions; each call of `work` adds to it.
        static RETIRED: Cell<Ticks> = const { Cell::new(1_000) };
        static READINGS: Cell<u32> = const { Cell::new(0) };
    }

    fn work(instructions: Ticks) {
        RETIRED.set(RETIRED.get() + instructions);
    }

    fn read() -> Ticks {
        READINGS.set(READINGS.get() + 1);
        RETIRED.get()
    }

    /// A custom counter's values are attributed as time is, by the same calls, exactly.
    #[test]
    fn any_counter_is_attributed_to_messages_and_operations() {
        let mut recording = Recording::new(Counter::custom("instructions", read));
        let sha256 = Primitive::new(Operation::Digest, "sha256", "");
        recording.during(|| {
            work(7);
            recorder::boundary();
            work(10);
            recorder::sent(MessageName::ClientHello, 100);
            recorder::timed(sha256, 100, || work(20));
            recorder::boundary();
            work(3);
            recorder::boundary();
        });
        recording.during(|| {
            work(5);
            recorder::received(MessageName::ServerHello, 50);
            work(40);
            recorder::announce(MessageName::ChangeCipherSpec, 6);
            work(1);
            recorder::boundary();
            work(3);
            recorder::received(MessageName::Finished, 30);
            work(2);
        });
        let half = HalfTrace::of(Side::Client, &recording).expect("consistent events");
        assert_eq!(half.counter.unit(), "instructions");
        assert_eq!(half.total, 7 + 10 + 20 + 3 + 5 + 40 + 1 + 3 + 2);
        let spent: Vec<u64> = half.messages.iter().map(|message| message.spent).collect();
        // The announced message begins at the boundary.
        assert_eq!(spent, [7 + 10 + 20, 5 + 40 + 1, 3, 2]);
        // The work after the last boundary of the first call belongs to no message.
        assert_eq!(half.unattributed, 3);
        assert_eq!(half.operations.len(), 1);
        assert_eq!((half.operations[0].primitive, half.operations[0].spent), (sha256, 20));
        // One reading at each end of a call and of the operation, and one at the end of a message's span.
        assert_eq!(READINGS.get(), 2 * 2 + 2 + 1 + 2);
    }
}
