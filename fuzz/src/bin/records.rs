#![no_main]
//! Records and messages of captured TLS, DTLS and WTLS, in pieces, with losses.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| shakedown_capture::fuzzing::records(input));
