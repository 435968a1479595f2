#![no_main]
//! A server's side of one peer that is sent arbitrary datagrams.

use libfuzzer_sys::fuzz_target;
use shakedown_fuzz::{Environment, flow, steps};
use shakedown_wtls::ServerConnection;

fuzz_target!(|input: &[u8]| {
    let Some((choice, input)) = input.split_first() else { return };
    let mut server = ServerConnection::new(flow(usize::from(*choice)).server);
    let mut environment = Environment::new(2);
    for (_, _, datagram) in steps(input) {
        server.handle_input(&mut environment.cx(), datagram);
        let mut answers = 0;
        while let Some(answer) = server.poll_transmit() {
            assert!(!answer.is_empty());
            answers += answer.len();
        }
        // Not much more goes out than a flight, whatever comes in.
        assert!(answers <= 4_096 + datagram.len(), "{answers} bytes for {}", datagram.len());
        while server.poll_event().is_some() {}
        if let Some(deadline) = server.poll_timeout().filter(|_| datagram.len() % 7 == 0) {
            environment.now = environment.now.max(deadline);
            server.handle_timeout(&mut environment.cx());
        }
        let _ = server.write(&mut environment.cx(), b"data");
        while server.poll_transmit().is_some() {}
    }
});
