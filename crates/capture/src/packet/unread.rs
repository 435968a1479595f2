//! What may carry handshakes and is not looked into, by its name.

use super::UdpDatagram;

const VXLAN_PORTS: [u16; 2] = [4789, 8472];
const GENEVE_PORT: u16 = 6081;
const GTP_USER_PORT: u16 = 2152;
const GTP_CONTROL_PORT: u16 = 2123;
const QUIC_1: u32 = 1;
const QUIC_2: u32 = 0x6b33_43cf;
/// Longest connection identifier of QUIC (RFC 9000 section 17.2).
const MAX_QUIC_ID_BYTES: u8 = 20;

/// An Internet protocol that wraps others, or hides them.
pub(crate) fn protocol_name(protocol: u8, version_6: bool) -> Option<&'static str> {
    Some(match (protocol, version_6) {
        (4, _) => "IPv4 in IP",
        (41, false) => "6in4",
        (41, true) => "IPv6 in IPv6",
        (47, _) => "GRE",
        (50, _) => "ESP",
        (132, _) => "SCTP",
        _ => return None,
    })
}

/// A datagram of a tunnel, or of a protocol that has its handshake inside.
pub(crate) fn datagram_name(datagram: &UdpDatagram<'_>) -> Option<&'static str> {
    let payload = datagram.payload;
    let to = |port| datagram.source_port == port || datagram.destination_port == port;
    if is_quic(payload) {
        return Some("QUIC");
    }
    // RFC 7348 section 5: of the flags, only that of a valid network identifier may be set.
    if VXLAN_PORTS.iter().any(|&port| to(port)) && matches!(payload, [0x08, 0, 0, 0, _, _, _, 0, ..]) {
        return Some("VXLAN");
    }
    // RFC 8926 section 3.4: version 0, and Ethernet or IP inside.
    if to(GENEVE_PORT) && matches!(payload, [0..=0x3f, _, 0x65, 0x58, ..] | [0..=0x3f, _, 0x08, 0, ..]) {
        return Some("Geneve");
    }
    // 3GPP TS 29.281 and 29.274: version 1 without a prime for user data, 1 or 2 for control.
    if to(GTP_USER_PORT) && matches!(payload, [0x30..=0x37, _, _, _, ..]) {
        return Some("GTP-U");
    }
    (to(GTP_CONTROL_PORT) && matches!(payload, [0x30..=0x5f, _, _, _, ..])).then_some("GTP-C")
}

/// A packet with QUIC's long header (RFC 8999 section 5.1) of a version that is in use.
fn is_quic(payload: &[u8]) -> bool {
    let &[flags, a, b, c, d, id_bytes, ..] = payload else { return false };
    let version = u32::from_be_bytes([a, b, c, d]);
    let known = matches!(version, QUIC_1 | QUIC_2 | 0xff00_001b..=0xff00_0022);
    flags & 0xc0 == 0xc0 && known && id_bytes <= MAX_QUIC_ID_BYTES
}
