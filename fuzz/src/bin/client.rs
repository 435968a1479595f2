#![no_main]
//! A whole client that is sent arbitrary datagrams.

use libfuzzer_sys::fuzz_target;
use shakedown_fuzz::{Environment, flow, steps};
use shakedown_wtls::Client;

fuzz_target!(|input: &[u8]| {
    let Some((choice, input)) = input.split_first() else { return };
    let mut environment = Environment::new(1);
    let flow = flow(usize::from(*choice));
    let mut client = Client::new(flow.client, None, &mut environment.cx());
    assert!(client.poll_transmit().is_some());
    for (_, _, datagram) in steps(input) {
        client.handle_input(&mut environment.cx(), datagram);
        let mut answers = 0;
        while let Some(answer) = client.poll_transmit() {
            answers += answer.len();
        }
        assert!(answers <= 4_096 + datagram.len(), "{answers} bytes for {}", datagram.len());
        while client.poll_event().is_some() {}
        if let Some(deadline) = client.poll_timeout().filter(|_| datagram.len() % 7 == 0) {
            environment.now = environment.now.max(deadline);
            client.handle_timeout(&mut environment.cx());
        }
        let _ = client.write(&mut environment.cx(), b"data");
        while client.poll_transmit().is_some() {}
    }
});
