#![no_main]
//! A whole server that is sent arbitrary datagrams by two peers.

use libfuzzer_sys::fuzz_target;
use shakedown_fuzz::{World, datagrams, flow};
use shakedown_wtls::{Limits, Listener};

fuzz_target!(|input: &[u8]| {
    let Some((choice, input)) = input.split_first() else { return };
    let limits = Limits { half_open: 1, ..Limits::default() };
    let mut listener = Listener::new(flow(usize::from(*choice)).server, limits);
    let mut world = World::new(2);
    for (peer, datagram) in datagrams(input) {
        listener.handle_datagram(&mut world.cx(), peer, datagram);
        let mut answers = 0;
        while let Some((to, answer)) = listener.poll_transmit() {
            assert_eq!(to, peer);
            assert!(!answer.is_empty());
            answers += answer.len();
        }
        // Not much more goes out than a flight, whatever comes in.
        assert!(answers <= 4_096 + datagram.len(), "{answers} bytes for {}", datagram.len());
        while listener.poll_event().is_some() {}
        assert!(listener.half_open() <= 1);
        assert!(listener.half_open_bytes() <= listener.half_open_bound_bytes() + 70_000);
        if let Some(deadline) = listener.poll_timeout().filter(|_| datagram.len() % 7 == 0) {
            world.now = world.now.max(deadline);
            listener.handle_timeout(&mut world.cx());
        }
        let _ = listener.send(&mut world.cx(), &peer, b"data");
        while listener.poll_transmit().is_some() {}
    }
});
