//! The event log of one endpoint, and the wrapper that keeps it.

use crate::clock;
use crate::endpoint::{Endpoint, Event as Happened, Transport};
use crate::recorder::{Event, Log, MadeCurrent, Ticks};
use crate::wrapper::Wrapper;

/// What is counted while an endpoint works: nanoseconds, or whatever a function of the caller's reads.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    unit: &'static str,
    /// `None`: the clock of this crate.
    read: Option<fn() -> Ticks>,
}

impl Counter {
    /// Nanoseconds of the clock that [`clock_name`](crate::recorder::clock_name) names.
    pub const NANOSECONDS: Self = Self { unit: "ns", read: None };

    /// Another counter that never decreases on a thread, such as instructions; `unit` says what it counts.
    pub const fn custom(unit: &'static str, read: fn() -> Ticks) -> Self {
        Self { unit, read: Some(read) }
    }

    pub fn unit(self) -> &'static str {
        self.unit
    }

    /// True for the clock, false for a counter of the caller's.
    pub fn is_time(self) -> bool {
        self.read.is_none()
    }

    /// What it shows now, in its unit.
    pub fn now(self) -> u64 {
        self.convert(self.read.map_or_else(clock::ticks, |read| read()))
    }

    /// A reading in the counter's unit, from an arbitrary start. Never decreases from one reading to a later one.
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
    /// By unit: figures of one unit may be joined.
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

/// Events that a log has room for from the start, so that the first calls do not have to find it: those of a usual
/// handshake's side.
const ROOM: usize = 256;

impl Recording {
    /// An empty log of a counter's readings.
    pub fn new(counter: Counter) -> Self {
        // Learns the clock's speed before anything is timed.
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

    /// Forgets the events and keeps their memory, so that no allocation falls into what is measured next.
    pub fn clear(&mut self) {
        self.log.clear();
    }

    /// A unit has arrived: a chunk of the stream, or a datagram. The call that takes it follows.
    pub fn unit_received(&mut self, bytes: usize) {
        self.log.events.push(Event::UnitReceived(u32::try_from(bytes).unwrap_or(u32::MAX)));
    }

    /// A unit has been handed to the transport. The call that made it went before.
    pub fn unit_sent(&mut self, transport: Transport, unit: &[u8]) {
        let fingerprint = match transport {
            Transport::Stream => 0,
            Transport::Datagram => fingerprint(unit),
        };
        self.log.events.push(Event::UnitSent(u32::try_from(unit.len()).unwrap_or(u32::MAX), fingerprint));
    }

    /// Makes this the thread's current log while `work` runs, as one call of the endpoint. A log that was current
    /// before is so again afterwards, and sees nothing of this.
    pub fn during<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let _current = MadeCurrent::new(&mut self.log);
        work()
    }
}

/// An endpoint with a recording of its own: every call in which it works is written there.
///
/// It is an endpoint itself, so driver, simulator and server need no instrumentation. Whatever the stack and its
/// primitives tell the [recorder](crate::recorder) during a call goes to this endpoint's log, however many connections take turns on the
/// thread, and whichever thread it is.
pub struct Recorded<E> {
    inner: E,
    recording: Recording,
}

impl<E: Endpoint> Recorded<E> {
    /// Wraps an endpoint that has done nothing yet.
    pub fn new(inner: E, recording: Recording) -> Self {
        Self { inner, recording }
    }

    /// Takes wrapper and endpoint apart.
    pub fn into_parts(self) -> (E, Recording) {
        (self.inner, self.recording)
    }

    pub(crate) fn parts(&self) -> (&E, &Recording) {
        (&self.inner, &self.recording)
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

    /// Fetches what is there already: no work.
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

/// Tells datagrams of one connection apart. Not a cryptographic hash: a collision gains an attacker nothing, for what is sent is
/// this side's own.
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
    // 0 is kept for units of streams.
    mix(hash, rest).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::{self, Ticks};
    use crate::{HalfTrace, MessageName, Operation, Primitive, Side};
    use std::cell::Cell;

    thread_local! {
        /// Instructions that a processor would count; work here says how many it takes.
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

    /// Whatever a counter counts is attributed as time is, by the same calls, to the last unit.
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
        // The message that is announced begins at the boundary.
        assert_eq!(spent, [7 + 10 + 20, 5 + 40 + 1, 3, 2]);
        // What follows the last boundary of the first call belongs to no message.
        assert_eq!(half.unattributed, 3);
        assert_eq!(half.operations.len(), 1);
        assert_eq!((half.operations[0].primitive, half.operations[0].spent), (sha256, 20));
        // A reading at both ends of a call and of the operation, and one where a message's span ends.
        assert_eq!(READINGS.get(), 2 * 2 + 2 + 1 + 2);
    }
}
