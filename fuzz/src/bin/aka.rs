#![no_main]
//! Arbitrary messages of SSL-based AKA on a stream: a parsed message is encoded to the same bytes.

use libfuzzer_sys::fuzz_target;
use shakedown_aka::core::{Answer, Query};
use shakedown_aka::frame::{Frames, HEADER_BYTES};
use shakedown_aka::message::{MAX_TLS_BYTES, Message};

fuzz_target!(|input: &[u8]| {
    let (mut frames, mut pieces) = (Frames::default(), Frames::default());
    frames.push(input);
    let mut all = Vec::new();
    while let Some(frame) = frames.next_frame() {
        all.push(frame);
    }
    // The frames are the same if the stream arrives in pieces.
    let mut again = Vec::new();
    for piece in input.chunks(1 + input.len() % 7) {
        pieces.push(piece);
        while let Some(frame) = pieces.next_frame() {
            again.push(frame);
        }
    }
    assert_eq!(all, again);
    for (kind, body) in all {
        let mut whole = vec![kind];
        whole.extend(u16::try_from(body.len()).unwrap_or(u16::MAX).to_be_bytes());
        whole.extend(&body);
        assert_eq!(whole.len(), HEADER_BYTES + body.len());
        if let Ok(query) = Query::read(kind, &body) {
            assert_eq!(query.to_bytes(), whole);
        }
        if let Ok(answer) = Answer::read(kind, &body) {
            assert_eq!(answer.to_bytes(), whole);
        }
        if body.len() <= MAX_TLS_BYTES
            && let Ok(message) = Message::read(kind, body)
        {
            assert_eq!(message.to_bytes(), whole);
        }
    }
});
