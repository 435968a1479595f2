//! IPv4 (RFC 791) and IPv6 (RFC 8200) with its extension headers.

use super::{half, word};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InternetPacket<'a> {
    pub(crate) source: u128,
    pub(crate) destination: u128,
    pub(crate) protocol: u8,
    pub(crate) payload: &'a [u8],
    /// Length of the payload on the wire.
    pub(crate) payload_bytes: usize,
    pub(crate) fragment: Option<Fragment>,
}

impl InternetPacket<'_> {
    pub(crate) fn is_version_6(&self) -> bool {
        self.source & !u128::from(u32::MAX) != MAPPED_PREFIX
    }

    /// The packet without its authentication headers (RFC 4302), which do not encrypt the payload. Truncated headers
    /// are kept.
    pub(crate) fn past_authentication(self) -> Self {
        let mut packet = self;
        for _ in 0..MAX_EXTENSIONS {
            let (AUTHENTICATION, &[protocol, words, ..]) = (packet.protocol, packet.payload) else { break };
            let bytes = (usize::from(words) + 2) * 4;
            let (Some(payload), Some(payload_bytes)) =
                (packet.payload.get(bytes..), packet.payload_bytes.checked_sub(bytes))
            else {
                break;
            };
            packet = Self { protocol, payload, payload_bytes, ..packet };
        }
        packet
    }
}

/// Position of a fragment in its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    pub(crate) identification: u32,
    pub(crate) offset: usize,
    pub(crate) more: bool,
}

const MAPPED_PREFIX: u128 = 0xffff << 32;
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
/// Mobility, host identity, shim6: same format as the destination options.
const OTHER_EXTENSIONS: [u8; 3] = [135, 139, 140];
const MAX_EXTENSIONS: usize = 16;

/// Reads an Internet header; `original_bytes` is the packet's length on the wire from its first byte.
pub(crate) fn decode(packet: &[u8], original_bytes: usize) -> Option<InternetPacket<'_>> {
    match packet.first()? >> 4 {
        4 => version_4(packet, original_bytes),
        6 => version_6(packet, original_bytes),
        _ => None,
    }
}

fn version_4(packet: &[u8], original_bytes: usize) -> Option<InternetPacket<'_>> {
    let header = usize::from(packet[0] & 0x0f) * 4;
    if header < 20 || packet.len() < header {
        return None;
    }
    // Zero: captured before the network card segmented the packet (segmentation offload).
    let total = match half(packet, 2)? {
        0 => original_bytes,
        total => usize::from(total).min(original_bytes),
    };
    let field = half(packet, 6)?;
    let (more, offset) = (field & 0x2000 != 0, usize::from(field & 0x1fff) * 8);
    let fragment = (more || offset > 0).then(|| Fragment {
        identification: u32::from(half(packet, 4).unwrap_or_default()),
        offset,
        more,
    });
    let payload_bytes = total.checked_sub(header)?;
    let payload = &packet[header..packet.len().min(total)];
    let address = |at| word(packet, at).map(|address| MAPPED_PREFIX | u128::from(address));
    Some(InternetPacket {
        source: address(12)?,
        destination: address(16)?,
        protocol: packet[9],
        payload,
        payload_bytes,
        fragment,
    })
}

fn version_6(packet: &[u8], original_bytes: usize) -> Option<InternetPacket<'_>> {
    const HEADER: usize = 40;
    if packet.len() < HEADER {
        return None;
    }
    let total = match half(packet, 4)? {
        // A jumbogram, or a packet captured before segmentation offload.
        0 => original_bytes,
        length => (HEADER + usize::from(length)).min(original_bytes),
    };
    let packet = &packet[..packet.len().min(total)];
    let address = |at: usize| {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&packet[at..at + 16]);
        u128::from_be_bytes(bytes)
    };
    let (source, destination) = (address(8), address(24));
    let mut protocol = packet[6];
    let mut at = HEADER;
    let mut fragment = None;
    for _ in 0..MAX_EXTENSIONS {
        let length = match protocol {
            FRAGMENT => {
                let field = half(packet, at + 2)?;
                let (offset, more) = (usize::from(field & 0xfff8), field & 1 == 1);
                // An atomic fragment (RFC 6946) is whole.
                if more || offset > 0 {
                    fragment = Some(Fragment { identification: word(packet, at + 4)?, offset, more });
                }
                8
            }
            AUTHENTICATION => (usize::from(*packet.get(at + 1)?) + 2) * 4,
            HOP_BY_HOP | ROUTING | DESTINATION => (usize::from(*packet.get(at + 1)?) + 1) * 8,
            other if OTHER_EXTENSIONS.contains(&other) => (usize::from(*packet.get(at + 1)?) + 1) * 8,
            _ => break,
        };
        let was_fragment_header = protocol == FRAGMENT;
        protocol = *packet.get(at)?;
        at += length;
        // Further headers are part of the fragmented payload.
        if was_fragment_header && fragment.is_some() {
            break;
        }
    }
    let payload = packet.get(at..)?;
    Some(InternetPacket {
        source,
        destination,
        protocol,
        payload,
        payload_bytes: total.checked_sub(at)?,
        fragment,
    })
}
