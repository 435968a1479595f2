//! TCP and UDP headers.

use super::{half, word};

/// Header fields and payload of a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TcpSegment<'a> {
    pub(crate) source_port: u16,
    pub(crate) destination_port: u16,
    pub(crate) sequence: u32,
    /// `None` without the ACK bit.
    pub(crate) acknowledgement: Option<u32>,
    pub(crate) syn: bool,
    pub(crate) fin: bool,
    pub(crate) reset: bool,
    pub(crate) payload: &'a [u8],
    /// Length of the payload on the wire.
    pub(crate) payload_bytes: usize,
}

/// Header fields and payload of a UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UdpDatagram<'a> {
    pub(crate) source_port: u16,
    pub(crate) destination_port: u16,
    pub(crate) payload: &'a [u8],
    pub(crate) payload_bytes: usize,
}

/// Reads a segment of `bytes_on_wire` bytes, of which `segment` was captured.
pub(crate) fn tcp(segment: &[u8], bytes_on_wire: usize) -> Option<TcpSegment<'_>> {
    if segment.len() < 20 {
        return None;
    }
    let header = usize::from(segment[12] >> 4) * 4;
    if header < 20 {
        return None;
    }
    let flags = segment[13];
    Some(TcpSegment {
        source_port: half(segment, 0)?,
        destination_port: half(segment, 2)?,
        sequence: word(segment, 4)?,
        acknowledgement: if flags & 0x10 != 0 { word(segment, 8) } else { None },
        fin: flags & 0x01 != 0,
        syn: flags & 0x02 != 0,
        reset: flags & 0x04 != 0,
        // Options may lie beyond the snap length; the payload's length is still known.
        payload: segment.get(header..).unwrap_or_default(),
        payload_bytes: bytes_on_wire.checked_sub(header)?,
    })
}

/// Reads a datagram of `bytes_on_wire` bytes, of which `datagram` was captured.
pub(crate) fn udp(datagram: &[u8], bytes_on_wire: usize) -> Option<UdpDatagram<'_>> {
    let claimed = usize::from(half(datagram, 4)?);
    // Zero: a jumbogram (RFC 2675).
    let total = if claimed == 0 { bytes_on_wire } else { claimed.min(bytes_on_wire) };
    let payload_bytes = total.checked_sub(8)?;
    let payload = datagram.get(8..)?;
    Some(UdpDatagram {
        source_port: half(datagram, 0)?,
        destination_port: half(datagram, 2)?,
        payload: &payload[..payload.len().min(payload_bytes)],
        payload_bytes,
    })
}
