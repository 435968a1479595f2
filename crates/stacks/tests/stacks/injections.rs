//! One forged, repeated, reflected, reordered, cut or altered datagram at a time, at every step of WTLS handshakes, to
//! either side: the handshake completes with what both sides would have agreed on without it.

use super::common;
use shakedown_stacks::{Peers, prepare};
use shakedown_trace::endpoint::Time;
use shakedown_trace::{CloseReason, Endpoint, Event, Negotiated, Side};
use std::collections::VecDeque;

/// One of each key exchange, with and without a client's certificate.
const SUITES: &[&str] = &[
    "wtls/rsa/rsa1024/server",
    "wtls/rsa/rsa1024/requested",
    "wtls/rsa/rsa1024/mutual",
    "wtls/rsa/rsa1024/mutual/resumed",
    "wtls/rsa_anon/rsa1024",
    "wtls/dh_anon+dh512",
    "wtls/dh_anon+dh768/resumed",
    "wtls/ecdh_anon+160p",
    "wtls/ecdh_ecdsa/160p/server",
    "wtls/ecdh_ecdsa/160p/mutual",
    "wtls/ecdh_ecdsa/160p/mutual/optimized",
    "wtls/ecdh_ecdsa/160p/mutual/resumed",
    "wtls/shared_secret",
];

/// Handshake messages of WTLS, known and not.
const MESSAGES: [u8; 12] = [0, 1, 2, 11, 12, 13, 14, 15, 16, 20, 21, 255];
/// Descriptions of alerts, known and not.
const ALERTS: [u8; 9] = [0, 1, 10, 20, 40, 42, 48, 100, 255];
const MAX_TURNS: usize = 10_000;

/// What arrives instead of a datagram: to whom, and what.
type Arrivals = Vec<(Side, Vec<u8>)>;

struct Outcome {
    negotiated: [Option<Box<Negotiated>>; 2],
    closed: [Option<CloseReason>; 2],
    sent: Vec<(Side, Vec<u8>)>,
    now: Time,
}

/// Runs a handshake as live sockets do: what is rejected is ignored, timers run in virtual time. `wire` turns each
/// datagram, given its number, into what arrives.
fn converse(peers: &Peers, wire: &mut dyn FnMut(usize, Side, &[u8]) -> Arrivals) -> Outcome {
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
                arriving.extend(wire(found.sent.len(), side, &datagram));
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

/// A record in clear text: its content, with a sequence number and a length.
fn plain(content: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).unwrap().to_be_bytes();
    [&[0xc0 | content, 0, 0], &length[..], body].concat()
}

/// Everything of every content that anyone can write without keys.
fn forgeries() -> Vec<Vec<u8>> {
    let mut all = vec![plain(1, &[1]), plain(4, b"data"), plain(3, &[]), vec![0xc3], vec![0xff; 40]];
    for message in MESSAGES {
        for body in [&[][..], &[0], &[0x5a; 35]] {
            let length = u16::try_from(body.len()).unwrap().to_be_bytes();
            all.push(plain(3, &[&[message], &length[..], body].concat()));
        }
    }
    for description in ALERTS {
        for level in [1, 2, 3] {
            all.push(plain(2, &[level, description, 0, 0, 0, 0]));
        }
    }
    all
}

struct Checked<'a> {
    name: &'a str,
    peers: Peers,
    negotiated: [Option<Box<Negotiated>>; 2],
    cases: usize,
}

impl Checked<'_> {
    fn completes(&mut self, what: &str, wire: &mut dyn FnMut(usize, Side, &[u8]) -> Arrivals) {
        self.cases += 1;
        let found = converse(&self.peers, wire);
        let (name, now) = (self.name, found.now);
        assert_eq!(found.closed, [None, None], "{name}, {what}: over at {now:?}");
        assert_eq!(found.negotiated, self.negotiated, "{name}, {what}: at {now:?}");
    }
}

#[test]
fn one_datagram_of_a_stranger_neither_ends_nor_changes_a_handshake() {
    let _shared = common::shared();
    let forgeries = forgeries();
    let mut cases = 0;
    for name in SUITES {
        let peers = prepare(&common::suite(name), &common::settings()).unwrap();
        let honest = converse(&peers, &mut |_, from, datagram| vec![(from.peer(), datagram.to_vec())]);
        assert!(honest.negotiated.iter().all(Option::is_some), "{name}: {:?}", honest.closed);
        let mut checked = Checked { name, peers, negotiated: honest.negotiated, cases: 0 };
        for at in 0..honest.sent.len() {
            let (from, sent) = &honest.sent[at];
            for to in Side::BOTH {
                for forged in &forgeries {
                    for first in [true, false] {
                        let what = format!("datagram {at}: {forged:02x?} to the {to}, first: {first}");
                        checked.completes(&what, &mut |number, from, datagram| {
                            let mut arrivals = vec![(from.peer(), datagram.to_vec())];
                            if number == at {
                                arrivals.insert(usize::from(!first), (to, forged.clone()));
                            }
                            arrivals
                        });
                    }
                }
            }
            let lengths = [0, 1, 2, sent.len() / 2, sent.len() - 1];
            for length in lengths {
                for replaced in [true, false] {
                    let what = format!("datagram {at} of the {from} cut to {length}, replaced: {replaced}");
                    checked.completes(&what, &mut |number, from, datagram| {
                        let whole = (from.peer(), datagram.to_vec());
                        if number != at {
                            return vec![whole];
                        }
                        let cut = (from.peer(), datagram[..length.min(datagram.len())].to_vec());
                        if replaced { vec![cut] } else { vec![cut, whole] }
                    });
                }
            }
            for bit in (0..sent.len() * 8).step_by(41) {
                for replaced in [true, false] {
                    let what =
                        format!("datagram {at} of the {from}, bit {bit} flipped, replaced: {replaced}");
                    checked.completes(&what, &mut |number, from, datagram| {
                        let whole = (from.peer(), datagram.to_vec());
                        if number != at || bit / 8 >= datagram.len() {
                            return vec![whole];
                        }
                        let mut flipped = datagram.to_vec();
                        flipped[bit / 8] ^= 1 << (bit % 8);
                        let flipped = (from.peer(), flipped);
                        if replaced { vec![flipped] } else { vec![flipped, whole] }
                    });
                }
            }
            checked.completes(&format!("datagram {at} twice"), &mut |number, from, datagram| {
                vec![(from.peer(), datagram.to_vec()); if number == at { 2 } else { 1 }]
            });
            checked.completes(&format!("datagram {at} reflected"), &mut |number, from, datagram| {
                let mut arrivals = vec![(from.peer(), datagram.to_vec())];
                if number == at {
                    arrivals.insert(0, (from, datagram.to_vec()));
                }
                arrivals
            });
            let mut earlier: Vec<(Side, Vec<u8>)> = Vec::new();
            checked.completes(&format!("all before datagram {at} again"), &mut |number, from, datagram| {
                let mut arrivals = Vec::new();
                if number == at {
                    arrivals.append(&mut earlier);
                }
                earlier.push((from.peer(), datagram.to_vec()));
                arrivals.push((from.peer(), datagram.to_vec()));
                arrivals
            });
            let mut held: Option<(Side, Vec<u8>)> = None;
            checked.completes(&format!("datagram {at} after the next"), &mut |number, from, datagram| {
                let this = (from.peer(), datagram.to_vec());
                if number == at {
                    held = Some(this);
                    return vec![];
                }
                std::iter::once(this).chain(held.take()).collect()
            });
        }
        println!("{name}: {} cases", checked.cases);
        cases += checked.cases;
    }
    println!("{cases} cases");
    assert!(cases > 1000 * SUITES.len() / 2);
}
