//! pcapng: blocks of any type, sections of either byte order, interfaces with different time units and offsets
//! (draft-ietf-opsawg-pcapng).

use super::window::Window;
use super::{Found, Link};
use crate::CaptureError;
use crate::limits::{MAX_INTERFACES, MAX_KEY_LOG_BYTES, MAX_PACKET_BYTES};
use crate::tls::keylog::KeyLog;
use std::io::Read;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const SECRETS: u32 = 10;
/// "TLSK": a key log in the usual format.
const SECRETS_TLS_KEY_LOG: u32 = 0x544c_534b;
const OPTION_END: u16 = 0;
const OPTION_RESOLUTION: u16 = 9;
const OPTION_TIME_OFFSET: u16 = 14;
/// Block type and length.
const BLOCK_HEADER: usize = 8;
/// The repeated length at the end of a block.
const BLOCK_END: usize = 4;
/// Limit of a block's bytes in addition to its packet or key log.
const BLOCK_EXTRA_BYTES: u64 = 1024;
/// A key log is read in pieces of this size.
const PIECE_BYTES: usize = 1 << 16;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

#[derive(Clone, Copy)]
struct Interface {
    link: Link,
    snap_length: u32,
    units_per_s: u64,
    offset_s: i64,
}

impl Interface {
    fn time_ns(self, high: u32, low: u32) -> u64 {
        let units = u128::from(u64::from(high) << 32 | u64::from(low));
        let nanoseconds = units * 1_000_000_000 / u128::from(self.units_per_s);
        let shifted = i128::try_from(nanoseconds)
            .unwrap_or(i128::MAX)
            .saturating_add(i128::from(self.offset_s) * 1_000_000_000);
        u64::try_from(shifted.max(0)).unwrap_or(u64::MAX)
    }
}

#[derive(Default)]
pub(super) struct NextGeneration {
    big_endian: bool,
    interfaces: Vec<Interface>,
}

impl NextGeneration {
    pub(super) fn next<R: Read>(
        &mut self,
        window: &mut Window<R>,
        packet: u64,
        secrets: &mut KeyLog,
    ) -> Result<Option<Found>, CaptureError> {
        loop {
            let Some(block) = self.block(window, packet)? else { return Ok(None) };
            let (kind, length, offset) = (block.kind, block.length, block.offset);
            if !block.whole {
                self.pieces(window, &block, packet, secrets)?;
                continue;
            }
            let body = &window.available()[BLOCK_HEADER..length - BLOCK_END];
            let mut found = None;
            match kind {
                SECTION_HEADER => self.interfaces.clear(),
                INTERFACE => {
                    let interface = self
                        .interface(body)
                        .ok_or_else(|| corrupt(offset, "an interface block is too short"))?;
                    if self.interfaces.len() >= MAX_INTERFACES {
                        return Err(corrupt(offset, &format!("more than {MAX_INTERFACES} interfaces")));
                    }
                    self.interfaces.push(interface);
                }
                ENHANCED_PACKET | OLD_PACKET => found = Some(self.packet(kind, body, offset)?),
                SIMPLE_PACKET => found = Some(self.simple_packet(body, offset)?),
                // Name resolution, statistics and custom blocks are not used.
                _ => {}
            }
            window.pass(length);
            if found.is_some() {
                return Ok(found);
            }
        }
    }

    fn block<R: Read>(&mut self, window: &mut Window<R>, packet: u64) -> Result<Option<Block>, CaptureError> {
        let offset = window.offset();
        if !window.want(12)? {
            return match window.available().len() as u64 {
                0 => Ok(None),
                found => Err(CaptureError::Cut { packet, offset, expected: 12, found }),
            };
        }
        let head = window.available();
        let little = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        // The section header's type is a palindrome; the word after its length shows the byte order.
        if little(0) == SECTION_HEADER {
            self.big_endian = match little(8) {
                BYTE_ORDER_MAGIC => false,
                magic if magic.swap_bytes() == BYTE_ORDER_MAGIC => true,
                magic => {
                    return Err(corrupt(offset, &format!("a section begins with byte order {magic:08x}")));
                }
            };
        }
        let (kind, claimed) = (self.word(head, 0), self.word(head, 4));
        // Blocks of other types are skipped, even if they are larger than any packet.
        let in_pieces = match kind {
            SECTION_HEADER | INTERFACE | OLD_PACKET | SIMPLE_PACKET | ENHANCED_PACKET => false,
            SECRETS => true,
            _ => claimed > MAX_PACKET_BYTES,
        };
        let most = if in_pieces { MAX_KEY_LOG_BYTES } else { MAX_PACKET_BYTES.into() } + BLOCK_EXTRA_BYTES;
        if claimed < 12 || claimed % 4 != 0 || u64::from(claimed) > most {
            return Err(corrupt(offset, &format!("a block of type {kind} claims {claimed} bytes")));
        }
        let length = claimed as usize;
        if in_pieces {
            return Ok(Some(Block { kind, length, offset, whole: false }));
        }
        if !window.want(length)? {
            let found = window.available().len() as u64;
            return Err(CaptureError::Cut { packet, offset, expected: u64::from(claimed), found });
        }
        let bytes = window.available();
        self.check_end(claimed, &bytes[length - BLOCK_END..], offset)?;
        if kind == SECTION_HEADER {
            if length < 28 {
                return Err(corrupt(offset, "a section header is too short"));
            }
            let (major, minor) = (self.half(bytes, 12), self.half(bytes, 14));
            if major != 1 {
                return Err(CaptureError::UnknownVersion { major, minor });
            }
        }
        Ok(Some(Block { kind, length, offset, whole: true }))
    }

    fn interface(&self, body: &[u8]) -> Option<Interface> {
        if body.len() < 8 {
            return None;
        }
        let link = Link::from_number(u32::from(self.half(body, 0)));
        let mut interface =
            Interface { link, snap_length: self.word(body, 4), units_per_s: 1_000_000, offset_s: 0 };
        let mut at = 8;
        while at + 4 <= body.len() {
            let (code, length) = (self.half(body, at), self.half(body, at + 2) as usize);
            let Some(value) = body.get(at + 4..at + 4 + length) else { break };
            match (code, value) {
                (OPTION_END, _) => break,
                (OPTION_RESOLUTION, &[resolution]) => {
                    let exponent = u32::from(resolution & 0x7f);
                    let base: u64 = if resolution & 0x80 == 0 { 10 } else { 2 };
                    interface.units_per_s = base.checked_pow(exponent).unwrap_or(u64::MAX);
                }
                (OPTION_TIME_OFFSET, value) if value.len() == 8 => {
                    let (first, second) = (self.word(value, 0), self.word(value, 4));
                    let (high, low) = if self.big_endian { (first, second) } else { (second, first) };
                    interface.offset_s = (u64::from(high) << 32 | u64::from(low)).cast_signed();
                }
                _ => {}
            }
            at += 4 + length.next_multiple_of(4);
        }
        Some(interface)
    }

    fn packet(&self, kind: u32, body: &[u8], offset: u64) -> Result<Found, CaptureError> {
        if body.len() < 20 {
            return Err(corrupt(offset, "a packet block is too short"));
        }
        let index = if kind == ENHANCED_PACKET { self.word(body, 0) } else { u32::from(self.half(body, 0)) };
        let interface = self.interfaces.get(index as usize).copied();
        let interface = interface.ok_or_else(|| {
            corrupt(offset, &format!("a packet names interface {index}, of {}", self.interfaces.len()))
        })?;
        let (captured, original) = (self.word(body, 12) as usize, self.word(body, 16) as usize);
        let room = body.len() - 20;
        if captured > room {
            let reason = format!("a packet of {captured} bytes in a block that has room for {room}");
            return Err(corrupt(offset, &reason));
        }
        let time_ns = interface.time_ns(self.word(body, 4), self.word(body, 8));
        let behind = room - captured + BLOCK_END;
        Ok(Found { time_ns, link: interface.link, captured, original, behind })
    }

    fn simple_packet(&self, body: &[u8], offset: u64) -> Result<Found, CaptureError> {
        let interface = self.interfaces.first().copied();
        let interface = interface.ok_or_else(|| corrupt(offset, "a packet before any interface"))?;
        if body.len() < 4 {
            return Err(corrupt(offset, "a packet block is too short"));
        }
        let original = self.word(body, 0) as usize;
        let limit = if interface.snap_length == 0 { usize::MAX } else { interface.snap_length as usize };
        let room = body.len() - 4;
        let captured = original.min(limit).min(room);
        let behind = room - captured + BLOCK_END;
        Ok(Found { time_ns: 0, link: interface.link, captured, original, behind })
    }

    /// Checks the length that is repeated at the end of a block.
    fn check_end(&self, claimed: u32, end: &[u8], offset: u64) -> Result<(), CaptureError> {
        let repeated = self.word(end, 0);
        if repeated != claimed {
            return Err(corrupt(offset, &format!("a block of {claimed} bytes ends by claiming {repeated}")));
        }
        Ok(())
    }

    /// Passes a block in pieces, because it may be larger than any packet; the keys of a secrets block are kept.
    fn pieces<R: Read>(
        &self,
        window: &mut Window<R>,
        block: &Block,
        packet: u64,
        secrets: &mut KeyLog,
    ) -> Result<(), CaptureError> {
        let need = |window: &mut Window<R>, count| {
            if window.want(count)? {
                return Ok(());
            }
            let found = window.offset() + window.available().len() as u64 - block.offset;
            Err(CaptureError::Cut { packet, offset: block.offset, expected: block.length as u64, found })
        };
        window.pass(BLOCK_HEADER);
        let mut left = block.length - BLOCK_HEADER - BLOCK_END;
        let mut text = 0;
        if left >= 8 {
            need(window, 8)?;
            let head = window.available();
            if block.kind == SECRETS && self.word(head, 0) == SECRETS_TLS_KEY_LOG {
                text = (self.word(head, 4) as usize).min(left - 8);
            }
            window.pass(8);
            left -= 8;
        }
        let mut lines = 0;
        while left > 0 {
            let count = left.min(PIECE_BYTES);
            need(window, count)?;
            let piece = &window.available()[..count.min(text)];
            // Complete lines, unless the log ends here or the line is longer than the piece.
            let whole = match piece.iter().rposition(|&byte| byte == b'\n') {
                Some(at) if piece.len() < text => at + 1,
                _ => piece.len(),
            };
            lines = secrets.read_carried(&piece[..whole], lines);
            // Without text: padding after the log, secrets of another type, or a block that is not used.
            let taken = if text == 0 { count } else { whole };
            text -= whole;
            window.pass(taken);
            left -= taken;
        }
        need(window, BLOCK_END)?;
        self.check_end(block.length as u32, window.available(), block.offset)?;
        window.pass(BLOCK_END);
        Ok(())
    }

    fn word(&self, bytes: &[u8], at: usize) -> u32 {
        let four = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        if self.big_endian { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) }
    }

    fn half(&self, bytes: &[u8], at: usize) -> u16 {
        let two = [bytes[at], bytes[at + 1]];
        if self.big_endian { u16::from_be_bytes(two) } else { u16::from_le_bytes(two) }
    }
}

struct Block {
    kind: u32,
    length: usize,
    offset: u64,
    /// True if the whole block is in the window, false if it is read in pieces.
    whole: bool,
}

fn corrupt(offset: u64, reason: &str) -> CaptureError {
    CaptureError::Corrupt { offset, reason: reason.to_owned() }
}
