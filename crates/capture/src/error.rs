//! Errors in captures and key logs: one variant per violation.

use std::path::PathBuf;

/// Why a capture could not be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    #[error("cannot open {path}: {source}")]
    Open { path: PathBuf, source: std::io::Error },
    #[error("cannot read at byte {offset}: {source}")]
    Read { offset: u64, source: std::io::Error },
    #[error("the file is empty; a capture (pcap or pcapng) begins with at least 24 bytes of header")]
    Empty,
    /// The first bytes belong to no capture format.
    #[error("not a capture: the file begins with {found}{hint}; pcap and pcapng are accepted")]
    NotACapture {
        /// The first bytes in hexadecimal.
        found: String,
        /// A guess at the file's real format, in parentheses.
        hint: &'static str,
    },
    #[error("capture format version {major}.{minor} is not known; pcap 2.x and pcapng 1.x are accepted")]
    UnknownVersion { major: u16, minor: u16 },
    #[error(
        "packets of link type {number} are not understood; accepted are Ethernet (1), null/loopback (0, 108), \
         raw IP (12, 14, 101, 228, 229), PPP (9) and Linux cooked (113, 276)"
    )]
    UnknownLinkType {
        /// Number in the registry of link types.
        number: u32,
    },
    #[error(
        "the capture is cut: packet {packet} begins at byte {offset} and takes {expected} bytes, \
         of which {found} are there"
    )]
    Cut {
        /// Number of the truncated packet, from 1.
        packet: u64,
        offset: u64,
        /// Bytes that the packet needs.
        expected: u64,
        found: u64,
    },
    #[error("the capture is damaged at byte {offset}: {reason}")]
    Corrupt { offset: u64, reason: String },
    #[error("cannot open key log {path}: {source}")]
    OpenKeyLog { path: PathBuf, source: std::io::Error },
    #[error(
        "key log, line {line}: {reason}; accepted: LABEL CLIENT_RANDOM SECRET in hexadecimal, or # comment"
    )]
    KeyLog {
        /// Line number, from 1.
        line: usize,
        reason: String,
    },
}
