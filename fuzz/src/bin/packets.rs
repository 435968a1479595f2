#![no_main]
//! A whole capture file: formats, link layers, IP, TCP and UDP, and what is told of them, in little memory.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| shakedown_capture::fuzzing::packets(input));
