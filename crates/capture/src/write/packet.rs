//! Frames with correct headers: Ethernet, IPv4 (RFC 791), TCP (RFC 9293), UDP (RFC 768).

use super::MAXIMUM_SEGMENT_BYTES;
use std::net::SocketAddrV4;
use std::ops::BitOr;

const ETHERNET_HEADER: usize = 14;
const IP_HEADER: usize = 20;
/// Payload of an IPv4 fragment on an Ethernet: a multiple of eight.
const FRAGMENT_BYTES: usize = 1480;
const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
const DO_NOT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const TIME_TO_LIVE: u8 = 64;

/// Control bits of a TCP header.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Flags(u8);

impl Flags {
    pub(super) const NONE: Self = Self(0);
    pub(super) const FIN: Self = Self(0x01);
    pub(super) const SYN: Self = Self(0x02);
    pub(super) const PUSH: Self = Self(0x08);
    pub(super) const ACK: Self = Self(0x10);

    pub(super) fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

#[derive(Clone, Copy)]
pub(super) struct Endpoints {
    pub(super) source: SocketAddrV4,
    pub(super) destination: SocketAddrV4,
    pub(super) from_client: bool,
}

/// Builds the frames of one sender.
pub(super) struct PacketBuilder {
    endpoints: Endpoints,
    /// Identification of the next IPv4 packet; fragments of one datagram share theirs.
    identification: u16,
}

impl PacketBuilder {
    pub(super) fn new(endpoints: Endpoints) -> Self {
        Self { endpoints, identification: 1 }
    }

    /// A TCP segment; a SYN carries the maximum segment size.
    pub(super) fn segment(
        &mut self,
        sequence: u32,
        acknowledgement: u32,
        flags: Flags,
        payload: &[u8],
    ) -> Vec<u8> {
        let options: &[u8] = if flags.contains(Flags::SYN) {
            &[2, 4, (MAXIMUM_SEGMENT_BYTES >> 8) as u8, (MAXIMUM_SEGMENT_BYTES & 0xff) as u8]
        } else {
            &[]
        };
        let header_bytes = 20 + options.len();
        let mut segment = Vec::with_capacity(header_bytes + payload.len());
        segment.extend_from_slice(&self.endpoints.source.port().to_be_bytes());
        segment.extend_from_slice(&self.endpoints.destination.port().to_be_bytes());
        segment.extend_from_slice(&sequence.to_be_bytes());
        segment.extend_from_slice(&acknowledgement.to_be_bytes());
        segment.push((header_bytes as u8 / 4) << 4);
        segment.push(flags.0);
        segment.extend_from_slice(&u16::MAX.to_be_bytes());
        segment.extend_from_slice(&[0; 4]);
        segment.extend_from_slice(options);
        segment.extend_from_slice(payload);
        let checksum = self.transport_checksum(PROTOCOL_TCP, &segment);
        segment[16..18].copy_from_slice(&checksum.to_be_bytes());
        let frame = self.frame(PROTOCOL_TCP, DO_NOT_FRAGMENT, &segment);
        self.identification = self.identification.wrapping_add(1);
        frame
    }

    /// A UDP datagram, in one or more frames; the caller checks that the payload fits.
    pub(super) fn datagram(&mut self, payload: &[u8]) -> Vec<Vec<u8>> {
        let length = (8 + payload.len()) as u16;
        let mut datagram = Vec::with_capacity(8 + payload.len());
        datagram.extend_from_slice(&self.endpoints.source.port().to_be_bytes());
        datagram.extend_from_slice(&self.endpoints.destination.port().to_be_bytes());
        datagram.extend_from_slice(&length.to_be_bytes());
        datagram.extend_from_slice(&[0; 2]);
        datagram.extend_from_slice(payload);
        // Zero means "no checksum"; a computed zero is sent as all ones (RFC 768).
        let checksum = match self.transport_checksum(PROTOCOL_UDP, &datagram) {
            0 => 0xffff,
            sum => sum,
        };
        datagram[6..8].copy_from_slice(&checksum.to_be_bytes());
        let pieces = datagram.chunks(FRAGMENT_BYTES);
        let last = pieces.len() - 1;
        let frames = pieces
            .enumerate()
            .map(|(index, piece)| {
                let more = if index == last { 0 } else { MORE_FRAGMENTS };
                self.frame(PROTOCOL_UDP, more | (index * FRAGMENT_BYTES / 8) as u16, piece)
            })
            .collect();
        self.identification = self.identification.wrapping_add(1);
        frames
    }

    fn frame(&self, protocol: u8, fragment: u16, payload: &[u8]) -> Vec<u8> {
        let mut frame = Vec::with_capacity(ETHERNET_HEADER + IP_HEADER + payload.len());
        // Locally administered addresses: ...01 is the client, ...02 the server.
        let (source, destination) = if self.endpoints.from_client { (1, 2) } else { (2, 1) };
        frame.extend_from_slice(&[2, 0, 0, 0, 0, destination]);
        frame.extend_from_slice(&[2, 0, 0, 0, 0, source]);
        frame.extend_from_slice(&0x0800u16.to_be_bytes());
        frame.extend_from_slice(&[0x45, 0]);
        frame.extend_from_slice(&((IP_HEADER + payload.len()) as u16).to_be_bytes());
        frame.extend_from_slice(&self.identification.to_be_bytes());
        frame.extend_from_slice(&fragment.to_be_bytes());
        frame.extend_from_slice(&[TIME_TO_LIVE, protocol, 0, 0]);
        frame.extend_from_slice(&self.endpoints.source.ip().octets());
        frame.extend_from_slice(&self.endpoints.destination.ip().octets());
        let checksum = fold(sum(0, &frame[ETHERNET_HEADER..]));
        frame[ETHERNET_HEADER + 10..ETHERNET_HEADER + 12].copy_from_slice(&checksum.to_be_bytes());
        frame.extend_from_slice(payload);
        frame
    }

    /// Checksum over the pseudo header and the whole segment or datagram.
    fn transport_checksum(&self, protocol: u8, bytes: &[u8]) -> u16 {
        let mut total = sum(0, &self.endpoints.source.ip().octets());
        total = sum(total, &self.endpoints.destination.ip().octets());
        total += u64::from(protocol) + bytes.len() as u64;
        fold(sum(total, bytes))
    }
}

/// Adds big-endian 16-bit words; an odd byte at the end counts as a high byte.
pub(super) fn sum(start: u64, bytes: &[u8]) -> u64 {
    let mut pairs = bytes.chunks_exact(2);
    let words: u64 = pairs.by_ref().map(|pair| u64::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    start + words + pairs.remainder().first().map_or(0, |&odd| u64::from(odd) << 8)
}

/// The Internet checksum of a sum (RFC 1071).
pub(super) fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
