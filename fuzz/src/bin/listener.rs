#![no_main]
//! A listener with small limits that receives arbitrary datagrams from four addresses: its limits hold for any input.

use libfuzzer_sys::fuzz_target;
use shakedown_fuzz::{Environment, flow, steps};
use shakedown_wtls::{Budget, Close, Event, Limits, Listener};
use std::time::Duration;

const REFLECTION: Budget = Budget::per_second(2_000, 10);
const LIMITS: Limits = Limits {
    half_open: 5,
    hello_bytes: 1_024,
    established: 3,
    idle: Duration::from_secs(40),
    reflection: REFLECTION,
    operations: Budget::per_second(6, 1),
};

/// Bytes between the listener and an address, and whether the address is proven by a handshake.
#[derive(Default, Clone, Copy)]
struct Traffic {
    received: u64,
    sent: u64,
    proven: bool,
}

fuzz_target!(|input: &[u8]| {
    let Some((choice, input)) = input.split_first() else { return };
    let mut listener = Listener::new(flow(usize::from(*choice)).server, LIMITS);
    let mut environment = Environment::new(2);
    let begin = environment.now;
    let mut traffic = [Traffic::default(); 4];
    let mut connections = Vec::new();
    for (address, action, datagram) in steps(input) {
        match action {
            // Time advances to the next timer, or by one second per byte of the datagram.
            2 => {
                let by = environment.now + Duration::from_secs(datagram.len() as u64);
                let next = listener.poll_timeout().filter(|_| datagram.is_empty());
                environment.now = environment.now.max(next.unwrap_or(by));
                listener.handle_timeout(&mut environment.cx());
            }
            3 => {
                if let Some(connection) = connections.get(datagram.len() % (connections.len() + 1)) {
                    match datagram.first() {
                        Some(0) => listener.close(&mut environment.cx(), *connection, Close::Session),
                        Some(_) => drop(listener.write(&mut environment.cx(), *connection, datagram)),
                        None => listener.close(&mut environment.cx(), *connection, Close::Connection),
                    }
                }
            }
            _ => {
                traffic[address].received += datagram.len() as u64;
                listener.handle_input(&mut environment.cx(), address, datagram);
            }
        }
        while let Some(found) = listener.poll_event() {
            match found.event {
                Event::Established(_) => {
                    connections.push(found.connection);
                    traffic[found.address].proven = true;
                }
                Event::Closed(_) => connections.retain(|connection| *connection != found.connection),
                _ => {}
            }
        }
        while let Some((to, answer)) = listener.poll_transmit() {
            assert!(!answer.is_empty());
            traffic[to].sent += answer.len() as u64;
        }
        let paid = REFLECTION.burst + REFLECTION.refill * ((environment.now - begin).as_secs() + 1);
        for Traffic { received, sent, proven } in traffic {
            assert!(proven || sent <= 3 * received + paid, "{sent} bytes for {received}");
        }
        assert!(listener.half_open() <= LIMITS.half_open && listener.established() <= LIMITS.established);
        assert_eq!(listener.established(), connections.len());
        assert!(connections.iter().all(|connection| listener.address(*connection).is_some()));
        assert!(listener.half_open_bytes() <= listener.half_open_bound_bytes());
    }
    // After all timers have expired, no state is left.
    for _ in 0..16 {
        let Some(next) = listener.poll_timeout() else { break };
        environment.now = environment.now.max(next);
        listener.handle_timeout(&mut environment.cx());
    }
    assert_eq!((listener.half_open(), listener.established()), (0, 0));
});
