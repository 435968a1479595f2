//! Reads capture files (pcap and pcapng, either byte order) packet by packet.

mod classic;
mod next_generation;
mod window;

use crate::CaptureError;
use crate::tls::keylog::KeyLog;
use classic::Classic;
use next_generation::NextGeneration;
use std::collections::BTreeMap;
use std::io::Read;
use window::Window;

/// The link layer of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Ethernet II or 802.3.
    Ethernet,
    /// A protocol family in four bytes, of either byte order (BSD loopback).
    Loopback,
    /// IPv4 or IPv6 without a link-layer header.
    RawIp,
    /// Linux "any" device, version 1.
    LinuxCooked,
    /// Linux "any" device, version 2.
    LinuxCooked2,
    /// Point-to-point protocol, with or without its HDLC-like framing.
    PointToPoint,
    /// An unsupported link type.
    Other(u32),
}

impl Link {
    /// Converts a number of the registry (<https://www.tcpdump.org/linktypes.html>).
    pub fn from_number(number: u32) -> Self {
        // The upper half of the field may carry the length of a frame check sequence.
        match number & 0xffff {
            0 | 108 => Self::Loopback,
            1 => Self::Ethernet,
            9 | 50 => Self::PointToPoint,
            12 | 14 | 101 | 228 | 229 => Self::RawIp,
            113 => Self::LinuxCooked,
            276 => Self::LinuxCooked2,
            other => Self::Other(other),
        }
    }
}

/// One packet as captured.
#[derive(Clone, Copy, Debug)]
pub struct RawPacket<'a> {
    /// From 1, in the order of the file.
    pub number: u64,
    /// Nanoseconds since 1970-01-01 00:00 UTC.
    pub time_ns: u64,
    /// The link layer at the start of `data`.
    pub link: Link,
    pub data: &'a [u8],
    /// Length of the packet on the wire.
    pub original_bytes: usize,
}

enum Format {
    Classic(Classic),
    NextGeneration(NextGeneration),
}

/// Reads a capture packet by packet; its memory does not grow with the file.
pub struct CaptureReader<R> {
    window: Window<R>,
    format: Format,
    packets: u64,
    /// Numbers of skipped packets, by link type.
    passed_over: BTreeMap<u32, u64>,
}

impl<R: Read> CaptureReader<R> {
    /// Reads the file's header.
    pub fn new(source: R) -> Result<Self, CaptureError> {
        let mut window = Window::new(source);
        if !window.want(4)? {
            return Err(match window.available() {
                [] => CaptureError::Empty,
                some => not_a_capture(some),
            });
        }
        let head = window.available();
        let magic = [head[0], head[1], head[2], head[3]];
        let format = match magic {
            [0x0a, 0x0d, 0x0d, 0x0a] => Format::NextGeneration(NextGeneration::default()),
            _ => match Classic::new(magic, &mut window)? {
                Some(classic) => Format::Classic(classic),
                None => return Err(not_a_capture(window.available())),
            },
        };
        Ok(Self { window, format, packets: 0, passed_over: BTreeMap::new() })
    }

    /// The next packet; `None` at the end. Secrets before it in the file (pcapng decryption secrets) are added to
    /// `keys`.
    ///
    /// # Errors
    /// [`CaptureError`]; nothing more can be read after it.
    pub fn next_packet(&mut self, keys: &mut KeyLog) -> Result<Option<RawPacket<'_>>, CaptureError> {
        loop {
            let number = self.packets + 1;
            let found = match &mut self.format {
                Format::Classic(classic) => classic.next(&mut self.window, number)?,
                Format::NextGeneration(next) => next.next(&mut self.window, number, keys)?,
            };
            let Some(found) = found else {
                // Packets of unsupported link types are an error only if the file contains no others.
                return match self.passed_over.keys().next() {
                    Some(&number) if self.packets == 0 => Err(CaptureError::UnknownLinkType { number }),
                    _ => Ok(None),
                };
            };
            if let Link::Other(number) = found.link {
                *self.passed_over.entry(number).or_default() += 1;
                continue;
            }
            self.packets = number;
            return Ok(Some(RawPacket {
                number,
                time_ns: found.time_ns,
                link: found.link,
                data: self.window.taken(found.captured, found.behind),
                original_bytes: found.original.max(found.captured),
            }));
        }
    }

    /// Numbers of packets that were skipped because their link type is not supported, by link type.
    pub fn passed_over(&self) -> &BTreeMap<u32, u64> {
        &self.passed_over
    }

    /// Offset in the file of the next byte to be read.
    pub fn bytes_read(&self) -> u64 {
        self.window.offset()
    }
}

/// A packet in the window: its bytes were just passed, and `behind` more bytes after them.
struct Found {
    time_ns: u64,
    link: Link,
    captured: usize,
    original: usize,
    behind: usize,
}

fn not_a_capture(head: &[u8]) -> CaptureError {
    let head = &head[..head.len().min(4)];
    let hint = match head {
        [0x1f, 0x8b, ..] => " (gzip: decompress it first)",
        [0x28, 0xb5, 0x2f, 0xfd] => " (zstd: decompress it first)",
        [0xa1, 0xb2, 0xcd, 0x34] | [0x34, 0xcd, 0xb2, 0xa1] => " (a variant of pcap with longer records)",
        _ => "",
    };
    let found = head.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
    CaptureError::NotACapture { found, hint }
}

#[cfg(test)]
mod tests;
