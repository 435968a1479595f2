//! Decodes captured frames, down to the payload of TCP and UDP.
//!
//! There are two kinds of lengths: on the wire, and captured (the snap length may have truncated the packet).
//! Length fields are never trusted beyond the captured bytes.

mod fragment;
mod internet;
mod link;
mod transport;
mod unread;

pub(crate) use fragment::Reassembler;
pub(crate) use internet::{InternetPacket, decode as decode_internet};
pub(crate) use link::internet_packet;
pub(crate) use transport::{TcpSegment, UdpDatagram, tcp, udp};
pub(crate) use unread::{datagram_name, protocol_name as unread_protocol};

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

pub(crate) const PROTOCOL_TCP: u8 = 6;
pub(crate) const PROTOCOL_UDP: u8 = 17;

/// An address and port; IPv4 in its IPv6-mapped form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Endpoint {
    pub(crate) address: u128,
    pub(crate) port: u16,
}

impl Endpoint {
    pub(crate) fn socket_address(self) -> SocketAddr {
        let address = Ipv6Addr::from(self.address);
        let address = address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4);
        SocketAddr::new(address, self.port)
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from(half(bytes, at)?) << 16 | u32::from(half(bytes, at + 2)?))
}

#[cfg(test)]
mod tests;
