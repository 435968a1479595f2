//! Packets in flight between a client and the server.

use crate::tcp::{Packet, SYN};
use shakedown_link::Payload;

/// A packet in flight between a client and the server.
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
    /// N bytes without a transport.
    Bytes(u32),
}

/// Datagram `index` of a flight.
///
/// Aligned like every other kind of body. Packets are then copied in whole words, and a field that is read next lies
/// within one of them, so the processor does not have to wait for the copy.
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

/// A packet in flight without selective acknowledgements, in few bytes: in a storm there are hundreds of thousands.
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
