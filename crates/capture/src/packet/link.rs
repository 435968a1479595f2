//! Link layers: everything before the Internet header.

use super::half;
use crate::file::Link;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// 802.1Q, 802.1ad, and the type that was used before 802.1ad.
const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
const PPPOE_SESSION: u16 = 0x8864;
const MPLS: u16 = 0x8847;
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;
/// Limit of stacked tags and labels; no network uses more.
const MAX_TAGS: usize = 8;

/// Offset of the Internet header; `None` if the frame contains another protocol or is too short.
pub(crate) fn internet_packet(link: Link, frame: &[u8]) -> Option<usize> {
    match link {
        Link::Ethernet => after_tag(frame, half(frame, 12)?, 14),
        // The type field is followed by the payload (v1), or comes first (v2).
        Link::LinuxCooked => after_tag(frame, half(frame, 14)?, 16),
        Link::LinuxCooked2 => after_tag(frame, half(frame, 0)?, 20),
        // The family's number differs between systems and byte orders; the version in the header does not.
        Link::Loopback => Some(4),
        Link::RawIp => Some(0),
        Link::PointToPoint => match frame {
            [0xff, 0x03, ..] => ppp(frame, 2),
            _ => ppp(frame, 0),
        },
        Link::Other(_) => None,
    }
}

/// Offset of the payload after tags and labels; `kind` is the type of the header at `at`.
fn after_tag(frame: &[u8], mut kind: u16, mut at: usize) -> Option<usize> {
    for _ in 0..MAX_TAGS {
        match kind {
            IPV4 | IPV6 => return Some(at),
            tag if VLAN.contains(&tag) => {
                kind = half(frame, at + 2)?;
                at += 4;
            }
            // Six bytes of PPPoE header, then the PPP protocol number.
            PPPOE_SESSION => return ppp(frame, at + 6),
            MPLS => {
                let bottom = frame.get(at + 2)? & 1 == 1;
                at += 4;
                if bottom {
                    return Some(at);
                }
            }
            _ => return None,
        }
    }
    None
}

fn ppp(frame: &[u8], at: usize) -> Option<usize> {
    match half(frame, at)? {
        PPP_IPV4 | PPP_IPV6 => Some(at + 2),
        // The number may be compressed to one byte (RFC 1661 section 6.5).
        number if matches!(number >> 8, 0x21 | 0x57) => Some(at + 1),
        _ => None,
    }
}
