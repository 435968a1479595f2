//! Segments in flight, and their lengths.

use super::TcpConfig;
use shakedown_link::Payload;

/// An IP header without options.
pub const IP_BYTES: u32 = 20;
const TCP_BYTES: u32 = 20;
const TIMESTAMP_BYTES: u32 = 12;
/// IP, TCP and the options of a SYN: MSS, SACK permitted and timestamps, window scale.
const SYN_BYTES: u32 = 60;

impl TcpConfig {
    /// Bytes of payload in a full segment; 0 if packets have no room for any.
    #[must_use]
    pub fn segment_bytes(&self, mtu_bytes: u32) -> u32 {
        mtu_bytes.saturating_sub(self.header_bytes())
    }

    /// Bytes of a full segment's packet that are not payload.
    #[must_use]
    pub fn header_bytes(&self) -> u32 {
        IP_BYTES + TCP_BYTES + if self.timestamps { TIMESTAMP_BYTES } else { 0 }
    }

    /// Length of a packet with its IP header; of a super-packet, the sum of its segments' lengths.
    #[must_use]
    pub fn wire_bytes(&self, packet: &Packet) -> u32 {
        if packet.is(SYN) {
            return SYN_BYTES;
        }
        if packet.is(RST) {
            // Without options (`tcp_v4_send_reset`).
            return IP_BYTES + TCP_BYTES;
        }
        let timestamps = if self.timestamps { TIMESTAMP_BYTES } else { 0 };
        // Two bytes of padding, kind and length, then eight a block.
        let blocks = if packet.blocks > 0 { 4 + 8 * u32::from(packet.blocks) } else { 0 };
        packet.segments() * (IP_BYTES + TCP_BYTES + timestamps + blocks) + packet.bytes
    }
}

/// Flag: synchronise.
pub const SYN: u8 = 1;
/// Flag: the acknowledgement number is valid.
pub const ACK: u8 = 2;
/// Flag: no more data.
pub const FIN: u8 = 4;
/// Flag: reset.
pub const RST: u8 = 8;

/// The maximum number of blocks of a selective acknowledgement; with timestamps there is room for one less.
pub const MAX_BLOCKS: usize = 4;

/// A segment in flight. Sequence numbers begin at 0 with the SYN, so the first byte of data is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// SYN, ACK, FIN, RST.
    pub flags: u8,
    /// The number of blocks in `sack`.
    pub blocks: u8,
    /// The number of segments after the first, in a super-packet.
    pub more: u8,
    /// First sequence number.
    pub seq: u32,
    /// Payload.
    pub bytes: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// The sender's clock, in milliseconds and never 0.
    pub stamp: u32,
    /// The peer's timestamp that it echoes, or 0.
    pub echo: u32,
    /// Selectively acknowledged ranges, (from, up to); the range of a duplicate comes first.
    pub sack: [(u32, u32); MAX_BLOCKS],
}

impl Payload for Packet {
    fn is_super_packet(&self) -> bool {
        self.more > 0
    }
}

impl Packet {
    /// True if the flag is set.
    #[inline]
    #[must_use]
    pub fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The sequence number after it.
    #[inline]
    #[must_use]
    pub fn end(&self) -> u32 {
        self.seq + self.bytes + u32::from(self.is(SYN)) + u32::from(self.is(FIN))
    }

    /// The number of its segments.
    #[inline]
    #[must_use]
    pub fn segments(&self) -> u32 {
        1 + u32::from(self.more)
    }

    /// Its segments, of at most N bytes.
    pub(super) fn cut(&self, segment_bytes: u32) -> impl Iterator<Item = Self> + '_ {
        (0..self.segments()).map(move |index| {
            let before = index * segment_bytes;
            let bytes = self.bytes.saturating_sub(before).min(segment_bytes);
            Self { seq: self.seq + before, bytes, more: 0, ..*self }
        })
    }

    /// The valid blocks.
    #[must_use]
    pub fn sack(&self) -> &[(u32, u32)] {
        &self.sack[..usize::from(self.blocks)]
    }
}
