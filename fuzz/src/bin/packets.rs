#![no_main]
//! A whole capture file: formats, link layers, IP, TCP and UDP, and the reports on them, with small limits.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| shakedown_capture::fuzzing::packets(input));
