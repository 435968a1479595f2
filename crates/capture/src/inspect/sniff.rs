//! Recognises TLS by the content of a stream, on any port, from the start or in the middle.

use super::proxy::{self, Header};
use crate::message::Mark;
use crate::tls::{looks_like_record, looks_like_version_2};

/// Number of first bytes that are enough to recognise TLS.
const PREFIX_BYTES: usize = 11;
/// Number of chunks of another protocol that are searched for a ClientHello (as after STARTTLS).
const MAX_CHUNKS: u32 = 64;

/// An inspected chunk that must be read again.
pub(super) struct Chunk {
    pub(super) direction: usize,
    pub(super) offset: u64,
    pub(super) bytes: Vec<u8>,
    pub(super) mark: Mark,
}

pub(super) enum Verdict {
    /// Not enough seen yet.
    Open,
    /// TLS: read these chunks and continue; a direction that is not `begun` starts in the middle.
    Tls { chunks: Vec<Chunk>, begun: [bool; 2], remarks: Vec<String> },
    /// Another protocol.
    Other,
}

/// Inspects the chunks of one connection until its protocol is known.
pub(super) struct Sniffer {
    chunks: Vec<Chunk>,
    /// True while each direction's first bytes are being collected; afterwards any chunk may begin TLS.
    prefix: bool,
    /// The beginning of the connection was not captured: a record of any type is accepted.
    midstream: bool,
    /// True if bytes of a direction were seen and discarded.
    passed: [bool; 2],
    tried: u32,
    /// Remarks on the PROXY headers of load balancers, outermost first.
    proxies: Vec<String>,
    /// Bytes of a load balancer's header that are still to be skipped, for each direction.
    owed: [usize; 2],
}

#[derive(PartialEq)]
enum Match {
    Yes,
    No,
    TooShort,
}

impl Sniffer {
    pub(super) fn new(midstream: bool) -> Self {
        Self {
            chunks: Vec::new(),
            prefix: !midstream,
            midstream,
            passed: [false; 2],
            tried: 0,
            proxies: Vec::new(),
            owed: [0; 2],
        }
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.bytes.capacity() + size_of::<Chunk>()).sum()
    }

    /// Inspects the next chunk of a direction.
    pub(super) fn bytes(&mut self, direction: usize, offset: u64, bytes: &[u8], mark: Mark) -> Verdict {
        let (offset, bytes) = self.pay(direction, offset, bytes);
        if bytes.is_empty() {
            return Verdict::Open;
        }
        if self.prefix {
            self.chunks.push(Chunk { direction, offset, bytes: bytes.to_vec(), mark });
            while self.proxies.len() < proxy::MAX_HEADERS {
                match proxy::header(&self.start(direction, proxy::LOOK_BYTES)) {
                    Header::None => break,
                    Header::Unfinished => return Verdict::Open,
                    Header::Complete { bytes, remark } => {
                        self.proxies.push(remark);
                        self.owed[direction] = self.drop_front(direction, bytes);
                    }
                }
            }
            let start = self.start(direction, PREFIX_BYTES);
            if start.is_empty() {
                return Verdict::Open;
            }
            match begins_handshake(&start) {
                Match::TooShort => return Verdict::Open,
                Match::Yes => {
                    let chunks = std::mem::take(&mut self.chunks);
                    let remarks = std::mem::take(&mut self.proxies);
                    return Verdict::Tls { chunks, begun: [true, true], remarks };
                }
                Match::No => self.give_up_prefix(),
            }
            return Verdict::Open;
        }
        self.tried += 1;
        self.passed[direction] = true;
        let (mut offset, mut bytes) = (offset, bytes);
        while self.proxies.len() < proxy::MAX_HEADERS
            && let Header::Complete { bytes: before, remark } = proxy::header(bytes)
        {
            self.proxies.push(remark);
            self.owed[direction] = before;
            (offset, bytes) = self.pay(direction, offset, bytes);
        }
        if bytes.is_empty() {
            return Verdict::Open;
        }
        let matches = begins_handshake(bytes) == Match::Yes || (self.midstream && continues(bytes));
        if matches {
            let mut begun = [!self.midstream && !self.passed[0], !self.midstream && !self.passed[1]];
            begun[direction] = true;
            let chunk = Chunk { direction, offset, bytes: bytes.to_vec(), mark };
            return Verdict::Tls { chunks: vec![chunk], begun, remarks: std::mem::take(&mut self.proxies) };
        }
        if self.tried >= MAX_CHUNKS { Verdict::Other } else { Verdict::Open }
    }

    /// Notes that `count` bytes of a direction are not in the capture.
    pub(super) fn missing(&mut self, direction: usize, count: u64) {
        if let Some(rest) = (self.owed[direction] as u64).checked_sub(count) {
            self.owed[direction] = rest as usize;
            return;
        }
        self.owed[direction] = 0;
        self.give_up_prefix();
        self.passed[direction] = true;
    }

    /// The first bytes of a direction, at most `most`.
    fn start(&self, direction: usize, most: usize) -> Vec<u8> {
        let mine = self.chunks.iter().filter(|chunk| chunk.direction == direction);
        mine.flat_map(|chunk| &chunk.bytes).copied().take(most).collect()
    }

    /// Skips the rest of a header; returns the offset and the bytes that follow.
    fn pay<'a>(&mut self, direction: usize, offset: u64, bytes: &'a [u8]) -> (u64, &'a [u8]) {
        let paid = self.owed[direction].min(bytes.len());
        self.owed[direction] -= paid;
        (offset + paid as u64, &bytes[paid..])
    }

    /// Skips the first `count` bytes of a direction; returns how many of them are still to come.
    fn drop_front(&mut self, direction: usize, mut count: usize) -> usize {
        for chunk in self.chunks.iter_mut().filter(|chunk| chunk.direction == direction) {
            let taken = count.min(chunk.bytes.len());
            chunk.bytes.drain(..taken);
            chunk.offset += taken as u64;
            count -= taken;
        }
        self.chunks.retain(|chunk| !chunk.bytes.is_empty());
        count
    }

    fn give_up_prefix(&mut self) {
        self.prefix = false;
        for chunk in std::mem::take(&mut self.chunks) {
            self.passed[chunk.direction] = true;
        }
    }
}

/// True if a segment begins with a ClientHello.
pub(super) fn begins_client_hello(payload: &[u8]) -> bool {
    payload.get(5) == Some(&1) && begins_handshake(payload) == Match::Yes
}

/// A handshake record whose first message is a ClientHello or ServerHello, or a ClientHello in SSL 2.0's format.
fn begins_handshake(bytes: &[u8]) -> Match {
    let record = |length: usize| match length {
        0 => true,
        1..5 => {
            bytes[0] == 22
                && bytes.get(1).is_none_or(|&major| major == 3)
                && bytes.get(2).is_none_or(|&minor| minor <= 4)
        }
        _ => {
            bytes[0] == 22
                && looks_like_record(bytes)
                && bytes.get(5).is_none_or(|kind| matches!(kind, 1 | 2))
        }
    };
    if record(bytes.len()) {
        return if bytes.len() > 5 { Match::Yes } else { Match::TooShort };
    }
    let old = bytes[0] & 0x80 != 0
        && bytes.get(2).is_none_or(|&kind| kind == 1)
        && bytes.get(3).is_none_or(|&major| major == 3);
    match old {
        true if bytes.len() < 5 => Match::TooShort,
        true if looks_like_version_2(bytes) => Match::Yes,
        _ => Match::No,
    }
}

/// A record of any type in the middle of a connection.
fn continues(bytes: &[u8]) -> bool {
    matches!(bytes, [20..=23, 3, 0..=3, ..]) && looks_like_record(bytes) && bytes.get(3..5) != Some(&[0, 0])
}
