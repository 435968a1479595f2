//! What is on its way between a client and the server.

use crate::tcp::{Packet, SYN};
use shakedown_link::Payload;

/// Something on its way between a client and the server.
#[derive(Clone, Debug)]
pub(crate) struct InFlight {
    pub slot: u32,
    pub generation: u32,
    pub body: Body,
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    Tcp(CompactSegment),
    /// A packet with selective acknowledgements, which are rare.
    Sack(Box<Packet>),
    Datagram(Place),
    /// So many bytes, on nothing but the link.
    Bytes(u32),
}

/// Datagram `index` of a flight.
///
/// Aligned so that every kind of body is: parcels are then copied in whole words, each of which a field that is read next lies
/// in, and the processor need not wait for the copy to reach memory.
#[derive(Clone, Copy, Debug)]
#[repr(align(4))]
pub(crate) struct Place {
    pub flight: u16,
    pub index: u16,
}

impl Body {
    /// True of a SYN.
    pub fn is_syn(&self) -> bool {
        matches!(self, Self::Tcp(packet) if packet.flags & SYN != 0)
    }
}

impl Payload for InFlight {
    fn is_super_packet(&self) -> bool {
        match &self.body {
            Body::Tcp(packet) => packet.more > 0,
            Body::Sack(packet) => packet.is_super_packet(),
            Body::Datagram(..) | Body::Bytes(_) => false,
        }
    }
}

/// A packet without selective acknowledgements, as long as one is on its way: in a storm there are hundreds of thousands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompactSegment {
    flags: u8,
    more: u8,
    seq: u32,
    bytes: u32,
    ack: u32,
    stamp: u32,
    echo: u32,
}

impl From<&Packet> for Body {
    #[inline]
    fn from(packet: &Packet) -> Self {
        if packet.blocks > 0 {
            return Self::Sack(Box::new(*packet));
        }
        let Packet { flags, more, seq, bytes, ack, stamp, echo, .. } = *packet;
        Self::Tcp(CompactSegment { flags, more, seq, bytes, ack, stamp, echo })
    }
}

impl From<&CompactSegment> for Packet {
    fn from(compact: &CompactSegment) -> Self {
        let CompactSegment { flags, more, seq, bytes, ack, stamp, echo } = *compact;
        Self { flags, more, seq, bytes, ack, stamp, echo, ..Self::default() }
    }
}
