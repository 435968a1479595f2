//! The classic format: a file header of 24 bytes, then packets with headers of 16
//! (draft-ietf-opsawg-pcap).

use super::window::Window;
use super::{Found, Link};
use crate::CaptureError;
use crate::limits::MAX_PACKET_BYTES;
use std::io::Read;

const FILE_HEADER: usize = 24;
const PACKET_HEADER: usize = 16;

pub(super) struct Classic {
    big_endian: bool,
    /// Nanoseconds in one unit of the second time field.
    unit_ns: u64,
    link: Link,
}

impl Classic {
    /// `None` if the magic number is that of another format.
    pub(super) fn new<R: Read>(magic: [u8; 4], window: &mut Window<R>) -> Result<Option<Self>, CaptureError> {
        let (big_endian, unit_ns) = match magic {
            [0xd4, 0xc3, 0xb2, 0xa1] => (false, 1000),
            [0xa1, 0xb2, 0xc3, 0xd4] => (true, 1000),
            [0x4d, 0x3c, 0xb2, 0xa1] => (false, 1),
            [0xa1, 0xb2, 0x3c, 0x4d] => (true, 1),
            _ => return Ok(None),
        };
        if !window.want(FILE_HEADER)? {
            let found = window.available().len();
            let reason = format!("the file header needs {FILE_HEADER} bytes, and the file has {found}");
            return Err(CaptureError::Corrupt { offset: 0, reason });
        }
        let header = window.available();
        let major = u16::from_ne_bytes([header[4], header[5]]);
        let minor = u16::from_ne_bytes([header[6], header[7]]);
        let swap = |value: u16| if big_endian { u16::from_be(value) } else { u16::from_le(value) };
        let (major, minor) = (swap(major), swap(minor));
        if major != 2 {
            return Err(CaptureError::UnknownVersion { major, minor });
        }
        let link = Link::from_number(word(header, 20, big_endian));
        if let Link::Other(number) = link {
            return Err(CaptureError::UnknownLinkType { number });
        }
        window.pass(FILE_HEADER);
        Ok(Some(Self { big_endian, unit_ns, link }))
    }

    pub(super) fn next<R: Read>(
        &self,
        window: &mut Window<R>,
        packet: u64,
    ) -> Result<Option<Found>, CaptureError> {
        let offset = window.offset();
        if !window.want(PACKET_HEADER)? {
            return match window.available().len() as u64 {
                0 => Ok(None),
                found => Err(CaptureError::Cut { packet, offset, expected: PACKET_HEADER as u64, found }),
            };
        }
        let header = window.available();
        let field = |index: usize| word(header, index * 4, self.big_endian);
        let (seconds, fraction, captured, original) = (field(0), field(1), field(2), field(3));
        if captured > MAX_PACKET_BYTES {
            let reason = format!("packet {packet} claims {captured} bytes");
            return Err(CaptureError::Corrupt { offset, reason });
        }
        let (captured, original) = (captured as usize, original as usize);
        if !window.want(PACKET_HEADER + captured)? {
            let found = window.available().len() as u64;
            let expected = (PACKET_HEADER + captured) as u64;
            return Err(CaptureError::Cut { packet, offset, expected, found });
        }
        window.pass(PACKET_HEADER + captured);
        let time_ns = u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * self.unit_ns;
        Ok(Some(Found { time_ns, link: self.link, captured, original, behind: 0 }))
    }
}

fn word(bytes: &[u8], at: usize, big_endian: bool) -> u32 {
    let four = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    if big_endian { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) }
}
