#![no_main]
//! A whole client that is sent arbitrary datagrams.

use libfuzzer_sys::fuzz_target;
use shakedown_fuzz::{World, datagrams, flow};
use shakedown_wtls::Client;

fuzz_target!(|input: &[u8]| {
    let Some((choice, input)) = input.split_first() else { return };
    let mut world = World::new(1);
    let flow = flow(usize::from(*choice));
    let mut client = Client::new(flow.client, flow.session, &mut world.cx());
    assert!(client.poll_transmit().is_some());
    for (_, datagram) in datagrams(input) {
        client.handle_datagram(&mut world.cx(), datagram);
        let mut answers = 0;
        while let Some(answer) = client.poll_transmit() {
            answers += answer.len();
        }
        assert!(answers <= 4_096 + datagram.len(), "{answers} bytes for {}", datagram.len());
        while client.poll_event().is_some() {}
        if let Some(deadline) = client.poll_timeout().filter(|_| datagram.len() % 7 == 0) {
            world.now = world.now.max(deadline);
            client.handle_timeout(&mut world.cx());
        }
        let _ = client.send(&mut world.cx(), b"data");
        while client.poll_transmit().is_some() {}
    }
});
