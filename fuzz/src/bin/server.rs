#![no_main]
//! The server's side of one connection, which receives arbitrary datagrams.

use libfuzzer_sys::fuzz_target;
use shakedown_fuzz::{Environment, flow, send_arbitrary};
use shakedown_wtls::ServerConnection;

fuzz_target!(|input: &[u8]| {
    let Some((choice, input)) = input.split_first() else { return };
    let mut server = ServerConnection::new(flow(usize::from(*choice)).server);
    let mut environment = Environment::new(2);
    send_arbitrary!(server, environment, input);
});
