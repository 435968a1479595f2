//! Names of tunnels and protocols that may contain handshakes but are not decoded.

use super::UdpDatagram;

const VXLAN_PORTS: [u16; 2] = [4789, 8472];
const VXLAN_GPE_PORT: u16 = 4790;
const GENEVE_PORT: u16 = 6081;
const GTP_USER_PORT: u16 = 2152;
const GTP_CONTROL_PORT: u16 = 2123;
const QUIC_1: u32 = 1;
const QUIC_2: u32 = 0x6b33_43cf;
/// Versions of mvfst (faceb000 to faceb00f) and of gQUIC with the long header (Q046, Q050, T050, T051).
const MVFST: u32 = 0xface_b000;
const GOOGLE: [u32; 4] = [
    u32::from_be_bytes(*b"Q046"),
    u32::from_be_bytes(*b"Q050"),
    u32::from_be_bytes(*b"T050"),
    u32::from_be_bytes(*b"T051"),
];
/// Longest connection identifier of QUIC (RFC 9000 section 17.2).
const MAX_QUIC_ID_BYTES: u8 = 20;

/// The name of an IP protocol that encapsulates or encrypts other protocols.
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

/// The name of a UDP tunnel, or of a protocol with its own handshake.
pub(crate) fn datagram_name(datagram: &UdpDatagram<'_>) -> Option<&'static str> {
    let payload = datagram.payload;
    let to = |port| datagram.source_port == port || datagram.destination_port == port;
    if is_quic(payload) {
        return Some("QUIC");
    }
    if VXLAN_PORTS.iter().any(|&port| to(port)) && is_vxlan(payload) {
        return Some("VXLAN");
    }
    // draft-ietf-nvo3-vxlan-gpe section 3.1: IPv4, IPv6, Ethernet, NSH or MPLS inside, if the flag P is set.
    if to(VXLAN_GPE_PORT) && matches!(payload, [flags, 0, 0, 1..=5, _, _, _, 0, ..] if flags & 0xcc == 0x0c) {
        return Some("VXLAN-GPE");
    }
    // RFC 8926 section 3.4: version 0, and Ethernet or IP inside.
    if to(GENEVE_PORT) && matches!(payload, [0..=0x3f, _, 0x65, 0x58, ..] | [0..=0x3f, _, 0x08, 0, ..]) {
        return Some("Geneve");
    }
    // 3GPP TS 29.281 and 29.274: version 1 of GTP (not GTP') for user data, 1 or 2 for control.
    if to(GTP_USER_PORT) && matches!(payload, [0x30..=0x37, _, _, _, ..]) {
        return Some("GTP-U");
    }
    (to(GTP_CONTROL_PORT) && matches!(payload, [0x30..=0x5f, _, _, _, ..])).then_some("GTP-C")
}

/// RFC 7348 section 5: only the flag of a valid network identifier may be set; with the extension for group policies
/// (draft-smith-vxlan-group-policy section 2.1), also its three flags and the group.
fn is_vxlan(payload: &[u8]) -> bool {
    match payload {
        [0x08, 0, 0, 0, _, _, _, 0, ..] => true,
        [0x88, flags, _, _, _, _, _, 0, ..] => flags & !0x48 == 0,
        _ => false,
    }
}

/// A packet with QUIC's long header (RFC 8999 section 5.1) of a version that is in use.
fn is_quic(payload: &[u8]) -> bool {
    let &[flags, a, b, c, d, id_bytes, ..] = payload else { return false };
    let version = u32::from_be_bytes([a, b, c, d]);
    let known = matches!(version, QUIC_1 | QUIC_2 | 0xff00_001b..=0xff00_0022)
        || version & !0xf == MVFST
        // RFC 9000 section 15: reserved to exercise version negotiation.
        || version & 0x0f0f_0f0f == 0x0a0a_0a0a;
    if GOOGLE.contains(&version) {
        // Q046 has two 4-bit lengths instead of one length byte.
        return flags & 0xc0 == 0xc0;
    }
    flags & 0xc0 == 0xc0 && known && id_bytes <= MAX_QUIC_ID_BYTES
}
