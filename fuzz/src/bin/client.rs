#![no_main]
//! A client that receives arbitrary datagrams.

use libfuzzer_sys::fuzz_target;
use shakedown_fuzz::{Environment, flow, send_arbitrary};
use shakedown_wtls::Client;

fuzz_target!(|input: &[u8]| {
    let Some((choice, input)) = input.split_first() else { return };
    let mut environment = Environment::new(1);
    let flow = flow(usize::from(*choice));
    let mut client = Client::new(flow.client, None, &mut environment.cx());
    assert!(client.poll_transmit().is_some());
    send_arbitrary!(client, environment, input);
});
