//! The header of the PROXY protocol, which load balancers send before the first byte of a connection
//! (<https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt>).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const SIGNATURE_1: &[u8] = b"PROXY ";
/// Section 2.1: the longest line, its end included.
const MAX_LINE_BYTES: usize = 107;
const SIGNATURE_2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// Signature, version and command, family, length.
const FIXED_BYTES: usize = 16;
/// The longest addresses that are read: two of IPv6 with their ports.
const MAX_ADDRESS_BYTES: usize = 36;
/// Bytes of a stream that are enough to recognise a header. The rest of a long one (other values after the addresses)
/// is skipped without being kept.
pub(super) const LOOK_BYTES: usize = MAX_LINE_BYTES;
/// Limit of consecutive headers, one for each load balancer of a chain.
pub(super) const MAX_HEADERS: usize = 8;

/// The header at the start of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Header {
    None,
    /// Too short to decide: it may be a header.
    Unfinished,
    /// A header of `bytes` bytes, of which the last may not have arrived yet, and a remark for the report.
    Complete {
        bytes: usize,
        remark: String,
    },
}

pub(super) fn header(start: &[u8]) -> Header {
    if start.is_empty() {
        return Header::None;
    }
    let may_be = |signature: &[u8]| start.iter().zip(signature).all(|(one, other)| one == other);
    if may_be(SIGNATURE_1) {
        line(start)
    } else if may_be(SIGNATURE_2) {
        binary(start)
    } else {
        Header::None
    }
}

fn line(start: &[u8]) -> Header {
    let Some(at) = start.iter().take(MAX_LINE_BYTES).position(|&byte| byte == b'\n') else {
        return if start.len() < MAX_LINE_BYTES { Header::Unfinished } else { Header::None };
    };
    let text = std::str::from_utf8(&start[..at]).unwrap_or_default();
    let mut words = text.split_ascii_whitespace().skip(2);
    let address = words.next().and_then(|word| word.parse::<IpAddr>().ok());
    let port = words.nth(1).and_then(|word| word.parse().ok());
    whole(at + 1, address.zip(port).map(SocketAddr::from))
}

fn binary(start: &[u8]) -> Header {
    let Some(fixed) = start.first_chunk::<FIXED_BYTES>() else { return Header::Unfinished };
    let bytes = FIXED_BYTES + usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
    if fixed[12] & 0xf0 != 0x20 {
        return Header::None;
    }
    let addresses_end = bytes.min(FIXED_BYTES + MAX_ADDRESS_BYTES);
    let Some(addresses) = start.get(FIXED_BYTES..addresses_end) else { return Header::Unfinished };
    let client = match (fixed[12] & 0x0f, fixed[13] >> 4, addresses) {
        (1, 1, [a, b, c, d, _, _, _, _, high, low, ..]) => {
            Some((IpAddr::V4(Ipv4Addr::new(*a, *b, *c, *d)), u16::from_be_bytes([*high, *low])))
        }
        (1, 2, addresses) => addresses.first_chunk::<34>().and_then(|both| {
            let source = both.first_chunk::<16>()?;
            Some((IpAddr::V6(Ipv6Addr::from(*source)), u16::from_be_bytes([both[32], both[33]])))
        }),
        _ => None,
    };
    whole(bytes, client.map(SocketAddr::from))
}

fn whole(bytes: usize, client: Option<SocketAddr>) -> Header {
    let whom = client.map_or(String::new(), |client| format!(", which names the client {client}"));
    Header::Complete { bytes, remark: format!("{bytes} bytes of PROXY header precede the handshake{whom}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remark(start: &[u8]) -> Option<(usize, String)> {
        match header(start) {
            Header::Complete { bytes, remark } => Some((bytes, remark)),
            Header::None | Header::Unfinished => None,
        }
    }

    #[test]
    fn both_proxy_header_versions_name_the_client() {
        let text = b"PROXY TCP4 192.0.2.1 198.51.100.7 56324 443\r\n";
        let expected =
            "45 bytes of PROXY header precede the handshake, which names the client 192.0.2.1:56324";
        assert_eq!(remark(&[&text[..], b"\x16\x03\x01"].concat()), Some((45, expected.to_owned())));
        let unknown = "15 bytes of PROXY header precede the handshake";
        assert_eq!(remark(b"PROXY UNKNOWN\r\n"), Some((15, unknown.to_owned())));
        let binary =
            [SIGNATURE_2, &[0x21, 0x11, 0, 12, 192, 0, 2, 1, 198, 51, 100, 7, 0xdc, 4, 1, 0xbb]].concat();
        let found = remark(&[&binary[..], &[0x16]].concat());
        assert!(found.is_some_and(|(bytes, text)| bytes == 28 && text.ends_with("192.0.2.1:56324")));
        let version_6 =
            [SIGNATURE_2, &[0x21, 0x21, 0, 36, 0x20, 1], &[0; 13], &[5], &[9; 16], &[0, 80, 1, 0xbb]]
                .concat();
        assert!(remark(&version_6).is_some_and(|(_, text)| text.ends_with("[2001::5]:80")));
    }

    #[test]
    fn data_that_is_no_proxy_header_is_not_waited_for() {
        for (start, expected) in [
            (&b"PRO"[..], Header::Unfinished),
            (b"PROXY TCP4 192.0.2.1", Header::Unfinished),
            (b"POST / HTTP/1.1", Header::None),
            (b"", Header::None),
            (&SIGNATURE_2[..5], Header::Unfinished),
            (&[SIGNATURE_2, &[0x31, 0x11, 0, 12]].concat(), Header::None),
            (&[SIGNATURE_2, &[0x21, 0x11, 0xff, 0xff]].concat(), Header::Unfinished),
            (&[SIGNATURE_1, &[b'x'; 200]].concat(), Header::None),
        ] {
            assert_eq!(header(start), expected, "{start:?}");
        }
    }
}
