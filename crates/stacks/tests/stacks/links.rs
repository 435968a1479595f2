//! The in-memory driver with a lost datagram.

use super::common;
use shakedown_stacks::prepare;
use shakedown_trace::driver::{Handshake, Loopback};
use shakedown_trace::endpoint::Time;
use shakedown_trace::{Counter, Endpoint, Recorded, Recording, Trace};

/// A handshake whose first client datagram may be lost.
fn run(name: &str, loses_first: bool) -> (Handshake, Trace) {
    let pair = prepare(&common::suite(name), &common::settings()).unwrap().pair().unwrap();
    let recording = || Recording::new(Counter::NANOSECONDS);
    let mut client = Recorded::new(pair.client, recording());
    let mut server = Recorded::new(pair.server, recording());
    if loses_first {
        assert!(client.poll_transmit(Time::ZERO, &mut Vec::new()));
    }
    let handshake = Loopback::new().handshake(&mut client, &mut server, &mut ()).unwrap();
    let half = |endpoint: &Recorded<_>| endpoint.half_trace().unwrap();
    (handshake, Trace::join(&half(&client), &half(&server)).unwrap())
}

/// After a lost first datagram a timer expires, and the trace counts the retransmitted messages.
#[test]
fn lost_datagrams_are_retransmitted_and_counted() {
    let _shared = common::shared();
    let name = "wtls/rsa/rsa1024/server";
    let (whole, undisturbed) = run(name, false);
    assert_eq!(whole.now, Time::ZERO);
    assert!(undisturbed.messages.iter().all(|message| message.retransmissions == 0));
    let (handshake, trace) = run(name, true);
    assert!(handshake.now > Time::ZERO);
    assert_eq!(handshake.client.difference(&common::suite(name)), None);
    let again: Vec<_> = trace.messages.iter().map(|message| message.retransmissions).collect();
    assert_eq!(again[0], 1, "{again:?}");
    assert!(again[1..].iter().all(|times| *times == 0), "{again:?}");
    // A retransmission is not a new message.
    let names = |trace: &Trace| trace.messages.iter().map(|message| message.name).collect::<Vec<_>>();
    assert_eq!(names(&trace), names(&undisturbed));
    assert_eq!(handshake.transferred.total(), whole.transferred.total());
}
