//! One forged, repeated, reflected, reordered, truncated or altered datagram at a time, at every step of WTLS
//! handshakes, to either side: the handshake completes with the same result as without it.

use super::common;
use super::stranger::{Arrivals, SUITES, Stranger, cases};
use shakedown_stacks::{Peers, prepare};
use shakedown_trace::endpoint::Time;
use shakedown_trace::{CloseReason, Endpoint, Event, Negotiated, Side};
use std::collections::VecDeque;

const MAX_TURNS: usize = 10_000;

struct Outcome {
    negotiated: [Option<Box<Negotiated>>; 2],
    closed: [Option<CloseReason>; 2],
    sent: Vec<(Side, Vec<u8>)>,
    now: Time,
}

/// Runs a handshake as live sockets do: rejected datagrams are ignored, and timers run in virtual time. `wire` returns
/// the datagrams that arrive instead of each sent one.
fn converse(peers: &Peers, wire: &mut dyn FnMut(Side, &[u8]) -> Arrivals) -> Outcome {
    let pair = peers.pair().unwrap();
    let mut ends: [Box<dyn Endpoint>; 2] = [pair.client, pair.server];
    let mut found = Outcome { negotiated: [None, None], closed: [None, None], sent: vec![], now: Time::ZERO };
    let mut arriving: VecDeque<(Side, Vec<u8>)> = VecDeque::new();
    for _ in 0..MAX_TURNS {
        for side in Side::BOTH {
            let end = &mut ends[side as usize];
            loop {
                let mut datagram = Vec::new();
                if !end.poll_transmit(found.now, &mut datagram) {
                    break;
                }
                arriving.extend(wire(side, &datagram));
                found.sent.push((side, datagram));
            }
            while let Some(event) = end.poll_event() {
                match event {
                    Event::Established(negotiated) => found.negotiated[side as usize] = Some(negotiated),
                    Event::Closed(reason) => found.closed[side as usize] = Some(reason),
                    Event::Data(_) | Event::Rejected(_) => {}
                }
            }
        }
        if let Some((to, datagram)) = arriving.pop_front() {
            ends[to as usize].handle_input(found.now, &datagram);
            continue;
        }
        let over = found.negotiated.iter().all(Option::is_some) || found.closed.iter().any(Option::is_some);
        let due = ends.iter().filter_map(|end| end.poll_timeout()).min();
        let Some(due) = due.filter(|_| !over) else { return found };
        found.now = found.now.max(due);
        for end in &mut ends {
            if end.poll_timeout().is_some_and(|deadline| deadline <= found.now) {
                end.handle_timeout(found.now);
            }
        }
    }
    panic!("no end after {MAX_TURNS} turns");
}

#[test]
fn injected_datagram_does_not_affect_a_handshake() {
    let _shared = common::shared();
    let mut tried = 0;
    for name in SUITES {
        let peers = prepare(&common::suite(name), &common::settings()).unwrap();
        let honest = converse(&peers, &mut |from, datagram| vec![(from.peer(), datagram.to_vec())]);
        assert!(honest.negotiated.iter().all(Option::is_some), "{name}: {:?}", honest.closed);
        let cases = cases(&honest.sent);
        for case in &cases {
            let mut stranger = Stranger::new(case);
            let found = converse(&peers, &mut |from, datagram| stranger.pass(from, datagram));
            let now = found.now;
            assert!(stranger.done, "{name}, {case:02x?}");
            assert_eq!(found.closed, [None, None], "{name}, {case:02x?}: over at {now:?}");
            assert_eq!(found.negotiated, honest.negotiated, "{name}, {case:02x?}: at {now:?}");
        }
        println!("{name}: {} cases", cases.len());
        tried += cases.len();
    }
    println!("{tried} cases");
    assert!(tried > 20_000);
}
