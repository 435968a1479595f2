//! Doors for fuzzing: parts that are otherwise reached only through a capture's layers.

use crate::dtls::DtlsConnection;
use crate::message::Mark;
use crate::tls::keylog::KeyLog;
use crate::tls::{Input, Piece, TlsConnection};
use crate::wtls::WtlsConnection;

/// Reads bytes as pieces of two streams of TLS and as datagrams of DTLS and WTLS. Each piece begins with a
/// byte that says what it is: bit 0 the direction, bit 1 whether it is missing, the others how long it is.
pub fn records(input: &[u8]) {
    let keys = KeyLog::default();
    let (begun, mut rest) = input.split_first().map_or((0, input), |(&first, rest)| (first, rest));
    let mut tls = TlsConnection::new([begun & 1 == 0, begun & 2 == 0]);
    let (mut dtls, mut wtls) = (DtlsConnection::new(), WtlsConnection::default());
    let mut offsets = [0; 2];
    let mut packet = 0;
    while let Some((&head, behind)) = rest.split_first() {
        let direction = usize::from(head & 1);
        let (bytes, after) =
            behind.split_at(usize::from(head >> 2).min(behind.len()) * 4 % (behind.len() + 1));
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
        // Fragments may claim messages of up to 256 KiB, of which 32 at a time are believed in each direction.
        assert!(held <= 1 << 25, "{held} bytes held after {} of input", input.len() - rest.len());
    }
    tls.end(&keys);
    dtls.end();
}
