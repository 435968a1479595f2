//! The driver over links that lose and delay.

use super::common;
use shakedown_link::{Delay, Distribution, Drop, Fate, Link, Mtu, Ns, Null, Purpose, Stream, TooLong, Unit};
use shakedown_stacks::prepare;
use shakedown_trace::driver::{DriveError, Handshake, Loopback, Medium};
use shakedown_trace::{Counter, Recorded, Recording, Trace};
use std::time::Duration;

fn run(name: &str, medium: &mut dyn Medium) -> Result<(Handshake, Trace), DriveError> {
    let pair = prepare(&common::suite(name), &common::settings()).unwrap().pair().unwrap();
    let recording = || Recording::new(Counter::NANOSECONDS);
    let mut client = Recorded::new(pair.client, recording());
    let mut server = Recorded::new(pair.server, recording());
    let handshake = Loopback::new().handshake_over(medium, &mut client, &mut server, &mut ())?;
    let half = |endpoint: &Recorded<_>| endpoint.half_trace().unwrap();
    Ok((handshake, Trace::join(&half(&client), &half(&server)).unwrap()))
}

/// Loses the first datagram.
#[derive(Default)]
struct LosesFirst {
    offered: bool,
    inner: Null,
}

impl Link for LosesFirst {
    fn offer(&mut self, at: Ns, unit: Unit) -> Fate {
        if std::mem::replace(&mut self.offered, true) {
            self.inner.offer(at, unit)
        } else {
            Fate::Dropped(Drop::Lost)
        }
    }

    fn next(&self) -> Option<Ns> {
        self.inner.next()
    }

    fn take(&mut self, until: Ns) -> Option<(Ns, Unit)> {
        self.inner.take(until)
    }
}

/// A lost first datagram costs a timer, and the trace says which messages went twice.
#[test]
fn lost_datagrams_are_sent_again_and_counted() {
    let _shared = common::shared();
    let name = "wtls/rsa/rsa1024/server";
    let (whole, undisturbed) = run(name, &mut (Null::default(), Null::default())).unwrap();
    assert_eq!(whole.now, Duration::ZERO);
    assert!(undisturbed.messages.iter().all(|message| message.retransmissions == 0));
    let (handshake, trace) = run(name, &mut (LosesFirst::default(), Null::default())).unwrap();
    assert!(handshake.now > Duration::ZERO);
    assert_eq!(handshake.client.difference(&common::suite(name)), None);
    let again: Vec<_> = trace.messages.iter().map(|message| message.retransmissions).collect();
    assert_eq!(again[0], 1, "{again:?}");
    assert!(again[1..].iter().all(|times| *times == 0), "{again:?}");
    // What is sent again is no message of its own.
    let names = |trace: &Trace| trace.messages.iter().map(|message| message.name).collect::<Vec<_>>();
    assert_eq!(names(&trace), names(&undisturbed));
    let hello = u64::from(trace.messages[0].bytes);
    assert_eq!(handshake.transferred.total(), whole.transferred.total() + hello);
}

/// Time passes on the link, and only there: one way for each flight.
#[test]
fn delay_is_the_drivers_time() {
    let _shared = common::shared();
    let delayed = || Delay::new(Distribution::constant(Ns::from_ms(20)), Stream::of(1, 1, Purpose::DELAY_UP));
    let (handshake, trace) = run("tls1.3/psk", &mut (delayed(), delayed())).unwrap();
    assert_eq!(common::flights(&trace), 3);
    assert_eq!(handshake.now, Duration::from_millis(3 * 20));
}

/// Nobody sends a stream's bytes again, so a link that drops them is said to.
#[test]
fn a_stream_over_a_link_that_drops_is_an_error() {
    let _shared = common::shared();
    let short = Mtu::new(100, TooLong::Drop, Null::default());
    let error = run("tls1.3/psk", &mut (short, Null::default())).unwrap_err();
    assert!(matches!(error, DriveError::StreamCut { cause: "too-long", .. }), "{error}");
}
