//! Any number of interleaved handshakes, on one thread or on several, have the same recordings as a single one.

use super::common;
use shakedown_stacks::{Peers, prepare};
use shakedown_trace::endpoint::Time;
use shakedown_trace::{Counter, Endpoint, Event, Recorded, Recording, Side, Trace};

/// Suites whose messages always have the same length, because they contain no DER signature.
const SUITES: [&str; 20] = [
    "ssl3/rsa/rsa1024/server",
    "tls1.0/dh_anon+dh512",
    "tls1.0/dhe_rsa+dh512/rsa1024/mutual",
    "tls1.1/rsa/rsa1024/requested",
    "tls1.2/psk",
    "tls1.2/rsa/rsa1024/server/resumed",
    "tls1.2/rsa/rsa1024/server/ticket",
    "tls1.2/ecdhe_rsa+x25519/rsa1024@rsa2048/mutual",
    "tls1.2/ecdhe_psk+p256",
    "tls1.2/rsa_psk/rsa1024",
    "tls1.3/x25519/ed25519/mutual",
    "tls1.3/p256/rsa2048/server",
    "tls1.3/x25519/rsa2048/server/resumed",
    "tls1.3/x25519mlkem768/mldsa44/server",
    "tls1.3/psk",
    "tls1.3/psk_dhe+x25519",
    "wtls/rsa/rsa1024/mutual",
    "wtls/ecdh_ecdsa/163k/mutual",
    "wtls/ecdh_anon+160p",
    "wtls/rsa/rsa1024/server/resumed",
];

/// Concurrent handshakes.
const CONNECTIONS: usize = 500;
const THREADS: usize = 4;

/// A handshake that can pause between any two units.
struct InFlight {
    suite: usize,
    client: Recorded<Box<dyn Endpoint>>,
    server: Recorded<Box<dyn Endpoint>>,
    established: [bool; 2],
    /// The side that is polled next.
    turn: Side,
    idle: u32,
}

impl InFlight {
    fn new(suite: usize, peers: &Peers) -> Self {
        let pair = peers.pair().unwrap();
        let recorded = |endpoint| Recorded::new(endpoint, Recording::new(Counter::NANOSECONDS));
        let (client, server) = (recorded(pair.client), recorded(pair.server));
        Self { suite, client, server, established: [false; 2], turn: Side::Client, idle: 0 }
    }

    /// Transfers one unit, if there is one. True if the handshake is complete.
    fn step(&mut self, buffer: &mut Vec<u8>) -> bool {
        let (from, to) = match self.turn {
            Side::Client => (&mut self.client, &mut self.server),
            Side::Server => (&mut self.server, &mut self.client),
        };
        buffer.clear();
        if from.poll_transmit(Time::ZERO, buffer) {
            to.handle_input(Time::ZERO, buffer);
            self.idle = 0;
        } else {
            self.turn = self.turn.peer();
            self.idle += 1;
        }
        for endpoint in [&mut self.client, &mut self.server] {
            while let Some(event) = endpoint.poll_event() {
                match event {
                    Event::Established(_) => self.established[endpoint.side() as usize] = true,
                    other => panic!("{}: {other:?}", SUITES[self.suite]),
                }
            }
        }
        assert!(self.idle < 4 || self.established == [true; 2], "{} stands still", SUITES[self.suite]);
        self.idle > 1 && self.established == [true; 2]
    }

    fn run(mut self) -> Vec<String> {
        let mut buffer = Vec::new();
        while !self.step(&mut buffer) {}
        self.account()
    }

    /// The whole recording except times.
    fn account(&self) -> Vec<String> {
        let half = |endpoint: &Recorded<_>| endpoint.half_trace().unwrap();
        let trace = Trace::join(&half(&self.client), &half(&self.server)).unwrap();
        assert_eq!(common::imbalances(&trace), [""; 0], "{}", SUITES[self.suite]);
        let messages = trace.messages.iter().map(|message| {
            let (from, name, flight) = (message.from, message.name, message.flight);
            format!("{from} {name} {flight:?} unit {} {} B", message.unit, message.bytes)
        });
        let operations = trace.operations.iter().map(|operation| {
            let (side, message, primitive) = (operation.side, operation.message, operation.primitive);
            format!("{side} {message:?} {primitive:?} x{} {} B", operation.count, operation.bytes)
        });
        messages.chain(operations).collect()
    }
}

fn peers() -> Vec<Peers> {
    SUITES.iter().map(|name| prepare(&common::suite(name), &common::settings()).unwrap()).collect()
}

/// The recording of each suite's handshake without others. The first handshake of a context may have more operations
/// than later ones, so the second is used.
fn alone(peers: &[Peers]) -> Vec<Vec<String>> {
    let second = |(suite, peers): (usize, &Peers)| {
        InFlight::new(suite, peers).run();
        InFlight::new(suite, peers).run()
    };
    peers.iter().enumerate().map(second).collect()
}

#[track_caller]
fn assert_same(suite: usize, found: &[String], expected: &[Vec<String>]) {
    let expected = &expected[suite];
    let name = SUITES[suite];
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected, "{name}");
    }
    assert_eq!(found.len(), expected.len(), "{name}: {found:#?}, not {expected:#?}");
}

#[test]
fn interleaved_handshakes_on_one_thread_match_single_ones() {
    let _shared = common::shared();
    let peers = peers();
    let expected = alone(&peers);
    let begin = |number: usize| InFlight::new(number % SUITES.len(), &peers[number % SUITES.len()]);
    let mut in_flight: Vec<_> = (0..CONNECTIONS).map(begin).collect();
    let mut buffer = Vec::new();
    let mut done = vec![false; CONNECTIONS];
    // One unit of each handshake in turn, so that all are in progress at once.
    while done.contains(&false) {
        for (one, done) in in_flight.iter_mut().zip(&mut done) {
            if !*done {
                *done = one.step(&mut buffer);
            }
        }
    }
    for one in &in_flight {
        assert_same(one.suite, &one.account(), &expected);
    }
}

#[test]
fn handshakes_on_several_threads_match_single_ones() {
    let _shared = common::shared();
    let peers = peers();
    let expected = alone(&peers);
    let (peers, expected) = (&peers, &expected);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for round in 0..5 {
                    for place in 0..SUITES.len() {
                        // Each thread starts with another suite, so that different suites interleave.
                        let suite = (place + thread * 5 + round) % SUITES.len();
                        let found = InFlight::new(suite, &peers[suite]).run();
                        assert_same(suite, &found, expected);
                    }
                }
            });
        }
    });
}
