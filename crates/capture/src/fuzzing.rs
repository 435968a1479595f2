//! Entry points for fuzzing of parts that are otherwise reached only through the layers of a capture.

use crate::dtls::DtlsConnection;
use crate::inspect::{Inspector, Limits, Step};
use crate::message::Mark;
use crate::tls::keylog::KeyLog;
use crate::tls::{Input, Piece, TlsConnection};
use crate::wtls::WtlsConnection;

/// Fragments may claim messages of up to 256 KiB, of which 33 are kept at a time in each direction.
const MAX_HELD_BYTES: usize = 1 << 25;
/// Small enough that a fuzzer's input can cause evictions and missing bytes.
const SMALL: Limits = Limits { reordering_bytes: 1 << 11, total_bytes: 1 << 15, connections: 4 };

/// Reads bytes as a whole capture file, with small limits.
///
/// # Panics
/// If more memory is held than granted, reading does not end, or the emitted figures are inconsistent.
pub fn packets(input: &[u8]) {
    let Ok(mut inspector) = Inspector::new(input, KeyLog::default(), SMALL) else { return };
    let (mut emitted, mut steps) = (0, 0);
    loop {
        match inspector.step(1) {
            Step::Connection(connection) => {
                emitted += 1;
                let sum: u64 = connection.messages.iter().map(|message| message.bytes).sum();
                assert_eq!(sum, connection.bytes.total);
                let _ = crate::trace::of(&connection);
            }
            Step::NoneYet => {}
            Step::End => break,
        }
        steps += 1;
        // Each packet has a header of at least 8 bytes, ends at most two connections, and is one step.
        assert!(steps <= input.len() + 16, "reading does not end");
        assert!(inspector.held_bytes() <= SMALL.total_bytes, "{} bytes held", inspector.held_bytes());
    }
    let summary = inspector.summary();
    assert_eq!(summary.connections, emitted);
    assert!(summary.captured_bytes <= input.len() as u64);
}

/// Reads bytes as pieces of two streams of TLS and as datagrams of DTLS and WTLS. Each piece begins with a
/// byte of flags (bit 0: direction, bit 1: missing) and two bytes with its length.
///
/// # Panics
/// If more than `MAX_HELD_BYTES` are held.
pub fn records(input: &[u8]) {
    let keys = KeyLog::default();
    let (begun, mut rest) = input.split_first().map_or((0, input), |(&first, rest)| (first, rest));
    let mut tls = TlsConnection::new([begun & 1 == 0, begun & 2 == 0]);
    let (mut dtls, mut wtls) = (DtlsConnection::new(), WtlsConnection::default());
    let mut offsets = [0; 2];
    let mut packet = 0;
    while let Some((&[head, low, high], behind)) = rest.split_first_chunk::<3>() {
        let direction = usize::from(head & 1);
        let (bytes, after) = behind.split_at(usize::from(u16::from_le_bytes([low, high])).min(behind.len()));
        rest = after;
        packet += 1;
        let mark = Mark { packet, time_ns: packet, peer_acknowledged: offsets[1 - direction] };
        let missing = head & 2 != 0;
        let piece = if missing { Piece::Missing(bytes.len() as u64) } else { Piece::Bytes(bytes) };
        tls.read(&keys, direction, Input { piece, mark, offset: offsets[direction] });
        offsets[direction] += bytes.len() as u64;
        if !missing {
            dtls.read(&keys, direction, bytes, 0, mark);
            wtls.read(direction, bytes, 0, mark);
        }
        let held = tls.held_bytes() + dtls.held_bytes() + wtls.held_bytes();
        assert!(held <= MAX_HELD_BYTES, "{held} bytes held after {} of input", input.len() - rest.len());
    }
    tls.end(&keys);
    dtls.end();
}
