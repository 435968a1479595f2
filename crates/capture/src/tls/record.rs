//! Splits a stream into TLS records, and resynchronises after missing bytes.

use crate::message::{Mark, Span};
use std::borrow::Cow;

pub(crate) const CHANGE_CIPHER_SPEC: u8 = 20;
pub(crate) const ALERT: u8 = 21;
pub(crate) const HANDSHAKE: u8 = 22;
pub(crate) const APPLICATION_DATA: u8 = 23;
const HEARTBEAT: u8 = 24;

pub(crate) const HEADER_BYTES: usize = 5;
/// 2^14 and 2048 for the overhead of protection (RFC 5246 section 6.2.3).
const MAXIMUM_BODY_BYTES: usize = (1 << 14) + 2048;

/// A record's header, if those five bytes can be one.
fn header(bytes: &[u8]) -> Option<(u8, u16, usize)> {
    let &[kind, major, minor, high, low, ..] = bytes else { return None };
    let length = usize::from(u16::from_be_bytes([high, low]));
    let plausible = (CHANGE_CIPHER_SPEC..=HEARTBEAT).contains(&kind)
        && major == 3
        && minor <= 4
        && length <= MAXIMUM_BODY_BYTES
        && (length > 0 || kind == APPLICATION_DATA);
    plausible.then(|| (kind, u16::from_be_bytes([major, minor]), length))
}

/// True if a record header may begin here.
pub(crate) fn looks_like_record(bytes: &[u8]) -> bool {
    header(bytes).is_some()
}

#[derive(Debug, Default)]
pub(crate) struct Record<'a> {
    pub(crate) kind: u8,
    pub(crate) version: u16,
    pub(crate) header: [u8; HEADER_BYTES],
    /// Content after the header; empty unless `kept`.
    pub(crate) body: Cow<'a, [u8]>,
    /// True if the caller requested the body.
    pub(crate) kept: bool,
    pub(crate) wire_bytes: usize,
    /// Parts of the body that were not captured; they read as zeros.
    pub(crate) holes: Cow<'a, [(usize, usize)]>,
    /// A ClientHello in the format of SSL 2.0 (RFC 5246 appendix E.2), without a message header.
    pub(crate) version_2: bool,
    pub(crate) span: Span,
}

impl Record<'_> {
    /// A copy that can be kept.
    pub(crate) fn to_owned(&self) -> Record<'static> {
        let (body, holes) = (self.body.to_vec().into(), self.holes.to_vec().into());
        let Self { kind, version, header, kept, wire_bytes, version_2, span, .. } = *self;
        Record { kind, version, header, body, kept, wire_bytes, holes, version_2, span }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Header,
    Body {
        kind: u8,
        version: u16,
        wire_bytes: usize,
        remaining: usize,
        keep: bool,
        version_2: bool,
    },
    Lost,
}

enum HeaderStep {
    /// The input ended before the header was complete.
    Hungry,
    NoHeader,
    Found(State),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Piece<'a> {
    Bytes(&'a [u8]),
    /// Bytes that were on the wire and are not in the capture.
    Missing(u64),
}

/// A piece that is being consumed, and its position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'a> {
    pub(crate) piece: Piece<'a>,
    pub(crate) mark: Mark,
    /// Stream offset of the piece.
    pub(crate) offset: u64,
}

/// State between two pieces.
#[derive(Debug, Default)]
pub(crate) struct RecordReader {
    state: State,
    header: [u8; HEADER_BYTES],
    have: usize,
    start: Mark,
    body: Vec<u8>,
    holes: Vec<(usize, usize)>,
    /// True once a record header was read: the format of SSL 2.0 is accepted only at the start.
    begun: bool,
    /// How often synchronisation was lost.
    pub(crate) losses: u32,
}

impl RecordReader {
    /// Begins in the middle of a stream.
    pub(crate) fn lost() -> Self {
        Self { state: State::Lost, begun: true, ..Self::default() }
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.body.capacity()
    }

    /// True in the middle of a record.
    pub(crate) fn is_within_record(&self) -> bool {
        matches!(self.state, State::Body { .. }) || self.have > 0
    }

    /// The next record that ends in the input; `keep` selects the content types whose bodies are returned.
    pub(crate) fn next<'s, 'a: 's>(
        &'s mut self,
        input: &mut Input<'a>,
        keep: impl Fn(u8) -> bool,
    ) -> Option<Record<'s>> {
        self.release_if_idle();
        loop {
            match self.state {
                State::Lost => {
                    self.have = 0;
                    self.find(input)?;
                    self.state = State::Header;
                }
                State::Header => {
                    let state = match self.read_header(input, &keep) {
                        HeaderStep::Hungry => return None,
                        HeaderStep::NoHeader => {
                            self.losses += 1;
                            self.state = State::Lost;
                            continue;
                        }
                        HeaderStep::Found(state) => state,
                    };
                    self.state = state;
                    // The whole body is in the input: no copy.
                    if let (State::Body { remaining, version_2: false, .. }, Piece::Bytes(bytes)) =
                        (state, input.piece)
                        && let Some((body, rest)) = bytes.split_at_checked(remaining)
                    {
                        self.state = State::Header;
                        self.have = 0;
                        input.piece = Piece::Bytes(rest);
                        input.offset += remaining as u64;
                        return Some(self.record(state, Some(body), input));
                    }
                }
                State::Body { .. } => {
                    self.read_body(input);
                    let State::Body { remaining: 0, .. } = self.state else { return None };
                    let state = std::mem::replace(&mut self.state, State::Header);
                    self.have = 0;
                    return Some(self.record(state, None, input));
                }
            }
        }
    }

    fn record<'a>(&'a self, state: State, whole: Option<&'a [u8]>, input: &Input<'_>) -> Record<'a> {
        let State::Body { kind, version, wire_bytes, keep, version_2, .. } = state else {
            unreachable!("only called with a body's state")
        };
        Record {
            kind,
            version,
            header: self.header,
            body: Cow::Borrowed(if keep { whole.unwrap_or(&self.body) } else { &[] }),
            kept: keep,
            wire_bytes,
            holes: Cow::Borrowed(if whole.is_some() { &[] } else { &self.holes }),
            version_2,
            span: Span { start: self.start, end: input.mark, end_offset: input.offset },
        }
    }

    /// Frees the buffers between two records.
    pub(crate) fn release_if_idle(&mut self) {
        if self.state == State::Header && self.have == 0 && self.body.capacity() > 0 {
            (self.body, self.holes) = (Vec::new(), Vec::new());
        }
    }

    /// Consumes a header, or nothing if there is none.
    fn read_header(&mut self, input: &mut Input<'_>, keep: impl Fn(u8) -> bool) -> HeaderStep {
        let bytes = match input.piece {
            Piece::Bytes([]) | Piece::Missing(0) => return HeaderStep::Hungry,
            Piece::Bytes(bytes) => bytes,
            Piece::Missing(_) => return HeaderStep::NoHeader,
        };
        if self.have == 0 {
            self.start = input.mark;
        }
        let taken = (HEADER_BYTES - self.have).min(bytes.len());
        self.header[self.have..self.have + taken].copy_from_slice(&bytes[..taken]);
        let have = self.have + taken;
        let state = match header(&self.header) {
            _ if have < HEADER_BYTES => None,
            Some((kind, version, length)) => Some(State::Body {
                kind,
                version,
                wire_bytes: HEADER_BYTES + length,
                remaining: length,
                keep: keep(kind),
                version_2: false,
            }),
            None if !self.begun && looks_like_version_2(&self.header) => {
                let length = version_2_length(&self.header);
                // Three of its bytes are in the header already.
                self.body.extend_from_slice(&self.header[2..]);
                Some(State::Body {
                    kind: HANDSHAKE,
                    version: 0x0200,
                    wire_bytes: 2 + length,
                    remaining: length - 3,
                    keep: true,
                    version_2: true,
                })
            }
            None => return HeaderStep::NoHeader,
        };
        self.have = have;
        input.piece = Piece::Bytes(&bytes[taken..]);
        input.offset += taken as u64;
        let Some(state) = state else { return HeaderStep::Hungry };
        self.begun = true;
        HeaderStep::Found(state)
    }

    fn read_body(&mut self, input: &mut Input<'_>) {
        let State::Body { remaining, keep, .. } = &mut self.state else { return };
        match input.piece {
            Piece::Bytes(bytes) => {
                let (mine, rest) = bytes.split_at((*remaining).min(bytes.len()));
                if *keep {
                    self.body.extend_from_slice(mine);
                }
                *remaining -= mine.len();
                input.offset += mine.len() as u64;
                input.piece = Piece::Bytes(rest);
            }
            Piece::Missing(count) => {
                let mine = (*remaining).min(usize::try_from(count).unwrap_or(usize::MAX));
                if *keep {
                    self.holes.push((self.body.len(), self.body.len() + mine));
                    self.body.resize(self.body.len() + mine, 0);
                }
                *remaining -= mine;
                input.offset += mine as u64;
                input.piece = Piece::Missing(count - mine as u64);
            }
        }
    }

    /// Searches for a header and consumes everything before it; `None` if there is none.
    fn find(&mut self, input: &mut Input<'_>) -> Option<()> {
        let bytes = match input.piece {
            Piece::Bytes(bytes) => bytes,
            Piece::Missing(count) => {
                input.offset += count;
                input.piece = Piece::Missing(0);
                return None;
            }
        };
        let found = (0..bytes.len()).find(|&at| begins_records(&bytes[at..]));
        let skipped = found.unwrap_or(bytes.len());
        input.offset += skipped as u64;
        input.piece = Piece::Bytes(&bytes[skipped..]);
        found.map(|_| ())
    }
}

/// True if a record begins here and, if its end is in the input, another one follows.
fn begins_records(bytes: &[u8]) -> bool {
    let Some((kind, version, length)) = header(bytes) else { return false };
    // Stricter than in a synchronised stream, because every offset is tried.
    if !(0x0300..=0x0303).contains(&version) || length == 0 || kind == HEARTBEAT {
        return false;
    }
    match bytes.get(HEADER_BYTES + length..) {
        Some(next) if next.len() >= HEADER_BYTES => {
            header(next).is_some_and(|(_, other, _)| other == version)
        }
        _ => true,
    }
}

/// A ClientHello of SSL 2.0 that offers a later version: length with its high bit, type 1, version 3.x.
pub(crate) fn looks_like_version_2(bytes: &[u8]) -> bool {
    matches!(bytes, [0x80..=0xff, _, 1, 3, 0..=4, ..]) && version_2_length(bytes) >= 9 + 3 + 16
}

fn version_2_length(bytes: &[u8]) -> usize {
    usize::from(bytes[0] & 0x7f) << 8 | usize::from(bytes[1])
}
