//! Writes the packets at the client's interface to a pcap file.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Link-layer header type of a file (<https://www.tcpdump.org/linktypes.html>).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum LinkType {
    /// IPv4 without a link-layer header.
    RawIp = 101,
    Ieee80211 = 105,
}

/// Writes a capture file with timestamps in nanoseconds.
pub(super) struct PcapWriter {
    file: BufWriter<File>,
}

const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const SNAPSHOT_BYTES: u32 = 262_144;

impl PcapWriter {
    /// Creates a file. If it exists, it is replaced or, without `replace`, an error is returned.
    pub(super) fn create(path: &Path, replace: bool, link: LinkType) -> io::Result<Self> {
        let mut options = File::options();
        options.write(true);
        let file = if replace { options.create(true).truncate(true) } else { options.create_new(true) }
            .open(path)?;
        let mut file = BufWriter::new(file);
        for word in [MAGIC_NANOSECONDS, 0x0004_0002, 0, 0, SNAPSHOT_BYTES, link as u32] {
            file.write_all(&word.to_le_bytes())?;
        }
        Ok(Self { file })
    }

    /// Adds a packet with its time since 1970.
    pub(super) fn add(&mut self, time_ns: u64, packet: &[u8]) -> io::Result<()> {
        let seconds = (time_ns / 1_000_000_000) as u32;
        let nanoseconds = (time_ns % 1_000_000_000) as u32;
        let length = packet.len() as u32;
        for word in [seconds, nanoseconds, length, length] {
            self.file.write_all(&word.to_le_bytes())?;
        }
        self.file.write_all(packet)
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.file.flush()
    }
}
