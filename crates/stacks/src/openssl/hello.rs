//! A server's memory for a ClientHello, or a client's certificates, that has not arrived completely.
//!
//! libssl accepts a ClientHello of 128 KiB, and allocates this size when the message header announces it. Therefore a
//! hello is buffered here, in as many bytes as have arrived, and passed to libssl when it is complete. Each connection
//! may buffer a hello of usual size; memory beyond that comes from a [`Budget`] that all connections of a server share,
//! so that peers with large hellos compete only with each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The longest hello, with its record headers. The largest known hellos, of post-quantum suites with a ticket that
/// contains the client's certificate, are shorter than half of it.
pub const MAX_HELLO_BYTES: usize = 32 * 1024;
/// Bytes of a hello that do not count against the budget.
const USUAL_HELLO_BYTES: usize = 4 * 1024;
/// Memory for a hello grows in steps of this size.
const STEP_BYTES: usize = 2 * 1024;
/// The longest list of certificates from a client of a server on a network.
pub const MAX_CERTIFICATES_BYTES: usize = 32 * 1024;
/// libssl's allocation for a list of certificates: a buffer grows by a third more than needed.
const CERTIFICATES_BUFFER_BYTES: usize = MAX_CERTIFICATES_BYTES / 3 * 4;
/// Memory of all connections of a server beyond the usual sizes.
const BUDGET_BYTES: usize = 32 * 1024 * 1024;

const CHANGE_CIPHER_SPEC: u8 = 20;
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const MAJOR_VERSION: u8 = 3;
const MAX_RECORD_BYTES: usize = 16 * 1024;
const RECORD_HEADER_BYTES: usize = 5;
const MESSAGE_HEADER_BYTES: usize = 4;

/// Memory that the connections of a server share.
#[derive(Debug)]
pub struct Budget(AtomicUsize);

impl Default for Budget {
    fn default() -> Self {
        Self(AtomicUsize::new(BUDGET_BYTES))
    }
}

impl Budget {
    fn take(&self, bytes: usize) -> bool {
        let less = |left: usize| left.checked_sub(bytes);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Bytes taken from a budget; returned on drop.
#[derive(Debug)]
struct Share {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Share {
    /// Takes or returns the difference to `bytes`. False if the budget is exceeded.
    fn set(&mut self, bytes: usize) -> bool {
        if bytes > self.bytes {
            if !self.budget.take(bytes - self.bytes) {
                return false;
            }
        } else {
            self.budget.give_back(self.bytes - bytes);
        }
        self.bytes = bytes;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The message is longer than [`MAX_HELLO_BYTES`].
    TooLong,
    NoRoom,
}

impl Refusal {
    /// The alert to send; for a message that is too long, the same as libssl's.
    pub fn alert(self) -> u8 {
        const ILLEGAL_PARAMETER: u8 = 47;
        const INTERNAL_ERROR: u8 = 80;
        match self {
            Self::TooLong => ILLEGAL_PARAMETER,
            Self::NoRoom => INTERNAL_ERROR,
        }
    }

    pub fn reason(self) -> String {
        match self {
            Self::TooLong => format!("ClientHello is longer than {MAX_HELLO_BYTES} bytes"),
            Self::NoRoom => "too many large handshake messages are incomplete".into(),
        }
    }
}

/// Bytes to pass to libssl.
#[derive(Debug, PartialEq, Eq)]
pub enum Passed<'a> {
    Nothing,
    Input(&'a [u8]),
    /// The buffered bytes and the latest input.
    Held(Vec<u8>),
}

/// A connection's buffer for incomplete messages.
#[derive(Debug)]
pub struct HelloGate {
    share: Share,
    held: Vec<u8>,
    /// The offset of the next record in `held`.
    next: usize,
    /// The first bytes of the message, and the number of its bytes that have arrived.
    header: [u8; MESSAGE_HEADER_BYTES],
    arrived: usize,
    awaits: Awaits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaits {
    FirstHello,
    /// The response to a HelloRetryRequest, or another message after the server's first flight in TLS 1.3.
    SecondHello,
    Nothing,
}

/// The progress of the awaited message.
enum Progress {
    Incomplete,
    /// It is complete, or not an awaited message: libssl processes it.
    Pass,
    TooLong,
}

impl HelloGate {
    pub fn new(budget: Arc<Budget>) -> Self {
        Self {
            share: Share { budget, bytes: 0 },
            held: Vec::new(),
            next: 0,
            header: [0; MESSAGE_HEADER_BYTES],
            arrived: 0,
            awaits: Awaits::FirstHello,
        }
    }

    /// Prepares for a second hello.
    pub fn await_second(&mut self) {
        *self = Self { awaits: Awaits::SecondHello, ..Self::new(Arc::clone(&self.share.budget)) };
    }

    /// Processes input, and returns the bytes to pass to libssl.
    pub fn pass<'a>(&mut self, input: &'a [u8]) -> Result<Passed<'a>, Refusal> {
        if self.awaits == Awaits::Nothing {
            return Ok(Passed::Input(input));
        }
        if self.held.is_empty() {
            match self.progress(input) {
                Progress::Incomplete => {}
                Progress::Pass => {
                    self.awaits = Awaits::Nothing;
                    return Ok(Passed::Input(input));
                }
                Progress::TooLong => return Err(Refusal::TooLong),
            }
            self.hold(input)?;
            return Ok(Passed::Nothing);
        }
        self.hold(input)?;
        let held = std::mem::take(&mut self.held);
        match self.progress(&held) {
            Progress::Incomplete => {
                self.held = held;
                Ok(Passed::Nothing)
            }
            Progress::Pass => {
                self.awaits = Awaits::Nothing;
                self.share.set(0);
                Ok(Passed::Held(held))
            }
            Progress::TooLong => Err(Refusal::TooLong),
        }
    }

    /// Counts libssl's buffer for a client's certificates against the budget while a part of them is missing.
    pub fn in_certificates(&mut self, midway: bool) -> Result<(), Refusal> {
        if self.awaits != Awaits::Nothing {
            return Ok(());
        }
        let bytes = if midway { CERTIFICATES_BUFFER_BYTES } else { 0 };
        if self.share.set(bytes) { Ok(()) } else { Err(Refusal::NoRoom) }
    }

    fn hold(&mut self, input: &[u8]) -> Result<(), Refusal> {
        let bytes = self.held.len() + input.len();
        // The peer's next flight waits for the server's, so little can follow a complete hello.
        if bytes > MAX_HELLO_BYTES + INPUT_SLACK_BYTES {
            return Err(Refusal::TooLong);
        }
        let capacity = bytes.next_multiple_of(STEP_BYTES);
        if !self.share.set(capacity.saturating_sub(USUAL_HELLO_BYTES)) {
            return Err(Refusal::NoRoom);
        }
        self.held.reserve_exact(capacity - self.held.len());
        self.held.extend_from_slice(input);
        Ok(())
    }

    /// Parses the records from the current position. `bytes` starts as in the call before, and has become longer.
    fn progress(&mut self, bytes: &[u8]) -> Progress {
        while let Some([kind, major, _, high, low]) = bytes.get(self.next..self.next + RECORD_HEADER_BYTES) {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            let start = self.next + RECORD_HEADER_BYTES;
            if *kind == CHANGE_CIPHER_SPEC && self.awaits == Awaits::SecondHello && self.arrived == 0 {
                self.next = start + length;
                continue;
            }
            if *kind != HANDSHAKE || *major != MAJOR_VERSION || !(1..=MAX_RECORD_BYTES).contains(&length) {
                return Progress::Pass;
            }
            let there = bytes.get(start..).unwrap_or_default();
            let there = &there[..there.len().min(length)];
            let missing = MESSAGE_HEADER_BYTES.saturating_sub(self.arrived);
            for (place, byte) in self.header.iter_mut().skip(self.arrived).zip(there.iter().take(missing)) {
                *place = *byte;
            }
            let arrived = self.arrived + there.len();
            let [kind, length_bytes @ ..] = self.header;
            if arrived > 0 && kind != CLIENT_HELLO {
                return Progress::Pass;
            }
            if arrived >= MESSAGE_HEADER_BYTES {
                let [a, b, c] = length_bytes.map(usize::from);
                let message = MESSAGE_HEADER_BYTES + (a << 16 | b << 8 | c);
                if message + RECORD_HEADER_BYTES > MAX_HELLO_BYTES {
                    return Progress::TooLong;
                }
                if arrived >= message {
                    return Progress::Pass;
                }
            }
            if there.len() < length {
                break;
            }
            self.arrived = arrived;
            self.next = start + length;
        }
        if self.next > MAX_HELLO_BYTES || bytes.len() > MAX_HELLO_BYTES {
            Progress::TooLong
        } else {
            Progress::Incomplete
        }
    }
}

/// Bytes that may arrive with the last bytes of a hello.
const INPUT_SLACK_BYTES: usize = 32 * 1024;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A hello of `length` bytes in records of `record` bytes.
    fn hello(length: usize, record: usize) -> Vec<u8> {
        let mut message = vec![CLIENT_HELLO];
        message.extend_from_slice(&u32::try_from(length).unwrap().to_be_bytes()[1..]);
        message.resize(MESSAGE_HEADER_BYTES + length, 7);
        let framed = message.chunks(record).flat_map(|part| {
            let [high, low] = u16::try_from(part.len()).unwrap().to_be_bytes();
            [&[HANDSHAKE, 3, 1, high, low], part].concat()
        });
        framed.collect()
    }

    fn gate() -> (HelloGate, Arc<Budget>) {
        let budget = Arc::new(Budget::default());
        (HelloGate::new(Arc::clone(&budget)), budget)
    }

    #[test]
    fn hello_passes_when_complete_however_it_is_split() {
        for (length, record) in [(200, 16_384), (200, 1), (9_000, 3), (30_000, 16_384), (30_000, 500)] {
            let bytes = hello(length, record);
            let whole = bytes.len() <= MAX_HELLO_BYTES;
            for cut in [1, 2, 5, 700, bytes.len()] {
                let (mut gate, budget) = gate();
                let mut passed = Vec::new();
                let mut refused = None;
                for part in bytes.chunks(cut) {
                    match gate.pass(part) {
                        Ok(Passed::Nothing) => assert!(passed.is_empty()),
                        Ok(Passed::Input(input)) => passed.extend_from_slice(input),
                        Ok(Passed::Held(held)) => passed = held,
                        Err(refusal) => {
                            refused = Some(refusal);
                            break;
                        }
                    }
                }
                if whole {
                    assert_eq!(passed, bytes, "{length} bytes by {record} in pieces of {cut}");
                } else if cut < bytes.len() {
                    assert_eq!(refused, Some(Refusal::TooLong));
                }
                drop(gate);
                assert_eq!(budget.0.load(Ordering::Relaxed), BUDGET_BYTES);
            }
        }
    }

    #[test]
    fn oversized_hello_is_refused_by_its_header() {
        let (mut gate, _) = gate();
        assert_eq!(gate.pass(&hello(100_000, 16_384)[..9]), Err(Refusal::TooLong));
    }

    #[test]
    fn small_records_are_counted_with_their_headers() {
        let (mut gate, _) = gate();
        let bytes = hello(30_000, 1);
        let outcome: Result<Vec<_>, _> = bytes.chunks(1_000).map(|part| gate.pass(part)).collect();
        assert_eq!(outcome, Err(Refusal::TooLong));
    }

    #[test]
    fn data_that_is_no_hello_passes_at_once() {
        for bytes in [
            &b"GET / HTTP/1.1\r\n"[..],
            &[21, 3, 1, 0, 2],
            &[22, 3, 1, 0, 4, 2],
            &[22, 3, 1, 0, 0],
            &[22, 9, 1, 0, 9],
            &[22, 3, 1, 0x50, 0],
        ] {
            assert_eq!(gate().0.pass(bytes), Ok(Passed::Input(bytes)));
        }
    }

    #[test]
    fn second_hello_after_change_cipher_spec_is_buffered() {
        let change = [CHANGE_CIPHER_SPEC, 3, 3, 0, 1, 1];
        let bytes = [&change[..], &hello(300, 16_384)].concat();
        let (mut gate, _) = gate();
        gate.await_second();
        assert_eq!(gate.pass(&bytes[..40]), Ok(Passed::Nothing));
        assert_eq!(gate.pass(&bytes[40..]), Ok(Passed::Held(bytes.clone())));
        gate.await_second();
        assert_eq!(gate.pass(&[&change[..], &hello(100_000, 16_384)].concat()), Err(Refusal::TooLong));
        gate.await_second();
        let finished = [&change[..], &[23, 3, 3, 0, 50]].concat();
        assert_eq!(gate.pass(&finished), Ok(Passed::Input(&finished[..])));
    }

    #[test]
    fn large_hellos_share_a_budget_and_small_ones_need_none() {
        let budget = Arc::new(Budget::default());
        let large = hello(30_000, 16_384);
        let mut gates = Vec::new();
        loop {
            let mut gate = HelloGate::new(Arc::clone(&budget));
            match gate.pass(&large[..29_000]) {
                Ok(_) => gates.push(gate),
                Err(refusal) => break assert_eq!(refusal, Refusal::NoRoom),
            }
        }
        assert_eq!(gates.len(), BUDGET_BYTES / (30_720 - USUAL_HELLO_BYTES));
        let mut usual = HelloGate::new(Arc::clone(&budget));
        assert_eq!(usual.pass(&hello(4_000, 16_384)[..3_900]), Ok(Passed::Nothing));
        gates.pop();
        assert_eq!(HelloGate::new(budget).pass(&large[..29_000]), Ok(Passed::Nothing));
    }
}
