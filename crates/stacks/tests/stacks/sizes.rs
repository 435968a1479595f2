//! Bytes on the wire compared with Kuo, Tschofenig, Meyer and Fu, "Comparison Studies between Pre-Shared Key and Public
//! Key Exchange Mechanisms for Transport Layer Security", IFI-TB-2006-001, table 4.1.
//!
//! Differences that depend only on key sizes must equal the paper's exactly. Totals differ, because the paper's
//! certificates had other names and extensions (and DSA keys contain their parameters), and its hellos other offers.

use super::common;
use shakedown_trace::{MessageName, Side};

/// The paper's name of the mechanism; our suite, with `N` for the key size; the paper's bytes for each key size.
const MECHANISMS: [(&str, &str, [u64; 3]); 7] = [
    ("plain PSK", "tls1.0/psk", [586, 586, 586]),
    ("DH_anon", "tls1.0/dh_anon+dhN", [719, 911, 1295]),
    ("DHE_PSK", "tls1.0/dhe_psk+dhN", [791, 983, 1367]),
    ("RSA", "tls1.0/rsa/rsaN/server", [1242, 1439, 1861]),
    ("DHE_DSS", "tls1.0/dhe_dss+dhN/dsaN/server", [1558, 1950, 2821]),
    ("RSA mutual", "tls1.0/rsa/rsaN/mutual", [1994, 2388, 3298]),
    ("DHE_DSS mutual", "tls1.0/dhe_dss+dhN/dsaN/mutual", [2417, 3009, 4260]),
];
const KEY_BITS: [u32; 3] = [512, 1024, 2048];

/// Median of a few handshakes, because the lengths of DSA signatures vary by a byte or two.
fn bytes(pattern: &str) -> [u64; 3] {
    KEY_BITS.map(|bits| common::measure(&pattern.replace('N', &bits.to_string()), 11).bytes.total)
}

#[test]
fn size_increments_and_order_match_the_paper() {
    let _shared = common::shared();
    let ours = MECHANISMS.map(|(_, pattern, _)| bytes(pattern));
    println!("mechanism        ours: 512 1024 2048    paper: 512 1024 2048");
    for ((name, _, paper), ours) in MECHANISMS.iter().zip(&ours) {
        println!("{name:15} {ours:?} {paper:?}");
    }
    for (place, (name, _, paper)) in MECHANISMS.iter().enumerate() {
        let steps = |bytes: &[u64; 3]| [bytes[1] - bytes[0], bytes[2] - bytes[1]];
        match *name {
            "plain PSK" => assert_eq!(steps(&ours[place]), [0, 0]),
            "DH_anon" | "DHE_PSK" => {
                assert_eq!(steps(&ours[place]), [192, 384], "{name}");
                assert_eq!(steps(&ours[place]), steps(paper), "{name}");
            }
            _ => {}
        }
    }
    for column in 0..KEY_BITS.len() {
        let order = |bytes: &dyn Fn(usize) -> u64| {
            let mut order: Vec<usize> = (0..MECHANISMS.len()).collect();
            order.sort_by_key(|place| bytes(*place));
            order.iter().map(|place| MECHANISMS[*place].0).collect::<Vec<_>>()
        };
        let paper = order(&|place| MECHANISMS[place].2[column]);
        assert_eq!(order(&|place| ours[place][column]), paper, "at {} bits", KEY_BITS[column]);
    }
}

/// The sources of the increment: the prime and the server's share in ServerKeyExchange, the client's share in
/// ClientKeyExchange.
#[test]
fn size_increments_are_in_the_key_exchange_messages() {
    let _shared = common::shared();
    let sizes = |bits: u32| {
        let suite = common::suite(&format!("tls1.0/dh_anon+dh{bits}"));
        let trace = common::trace(&suite, &common::settings()).unwrap();
        let of = |side, name| {
            trace
                .messages
                .iter()
                .filter(|message| message.from == side && message.name == name)
                .map(|m| m.bytes)
                .sum::<u32>()
        };
        let server = of(Side::Server, MessageName::ServerKeyExchange);
        let client = of(Side::Client, MessageName::ClientKeyExchange);
        let all: u32 = trace.messages.iter().map(|message| message.bytes).sum();
        (server, client, all - server - client)
    };
    let (small, large) = (sizes(512), sizes(1024));
    assert_eq!((large.0 - small.0, large.1 - small.1, large.2 - small.2), (128, 64, 0));
    // Record and handshake headers (9), three vectors with their lengths (6), the prime, generator 2, the share.
    assert_eq!(small.0, 9 + 6 + 64 + 1 + 64);
    assert_eq!(small.1, 9 + 2 + 64);
}
