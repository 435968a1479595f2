//! Peer and server against each other: round trips, keys, and lost, repeated or forged packets.
#![allow(clippy::unwrap_used)]

mod scripted;

use proptest::prelude::*;
use scripted::{Conversation, SECRET, Script};
use shakedown_eap::client::{ClientFailure, Next};
use shakedown_eap::peer::PeerFailure;
use shakedown_eap::radius::{Builder, Packet, Secret, attribute, code};
use shakedown_trace::endpoint::Time;

fn fragments(bytes: usize, size: usize) -> u64 {
    bytes.div_ceil(size) as u64
}

fn both(flights: [usize; 4]) -> [Script; 2] {
    [Script::tls12(flights), Script::tls13(flights)]
}

#[test]
fn both_sides_derive_the_same_keys() {
    for script in both([200, 900, 700, 60]) {
        let mut both = Conversation::new(script, 1398, 1398);
        assert_eq!(both.run(), Next::Success, "{script:?}");
        assert_eq!((both.service.tally().accepted, both.service.sessions()), (1, 0));
        assert_eq!(both.client.exchanged().round_trips, 4);
    }
}

#[test]
fn alert_is_sent_before_the_failure() {
    for script in both([200, 900, 700, 60]) {
        let mut both = Conversation::new(Script { server_fails: true, ..script }, 500, 500);
        let Next::Failure(failure) = both.run() else { panic!("{script:?} succeeded") };
        assert_eq!(failure.cause(), "tls_unknown_ca");
        assert_eq!(both.service.tally().rejected, [("tls_unknown_ca".to_owned(), 1)].into());
        // The alert is acknowledged like any other flight: identity, hello, two fragments, two fragments, alert.
        assert_eq!((both.client.exchanged().round_trips, both.service.sessions()), (6, 0));
    }
}

#[test]
fn tls_1_3_server_must_send_its_success_indication() {
    let script = Script { says: Some(1), ..Script::tls13([200, 900, 700, 60]) };
    let mut both = Conversation::new(script, 500, 500);
    let Next::Failure(ClientFailure::Peer(PeerFailure::Violation(violation))) = both.run() else {
        panic!("a server's word was taken that it did not say");
    };
    assert!(violation.to_string().contains("application data"), "{violation}");
}

/// A forged response to a request of the client.
fn forged(request: &[u8], code: u8, eap: &[u8], secret: &str) -> Vec<u8> {
    let packet = Packet::parse(request).unwrap();
    let mut builder = Builder::new(code, packet.identifier());
    builder.add_eap(eap).unwrap().add(attribute::STATE, b"some").unwrap();
    builder.response(&Secret::new(secret), &packet.authenticator())
}

#[test]
fn success_before_the_handshake_is_refused() {
    let mut both = Conversation::new(Script::tls12([200, 900, 700, 60]), 500, 500);
    let request = both.request(Time::ZERO);
    let accept = forged(&request, code::ACCESS_ACCEPT, &[3, 1, 0, 4], SECRET);
    let next = both.client.handle(Time::ZERO, &accept).unwrap();
    assert_eq!(next, Next::Failure(ClientFailure::Peer(PeerFailure::EarlySuccess)));
}

#[test]
fn packets_with_a_wrong_secret_are_ignored() {
    let mut both = Conversation::new(Script::tls12([200, 900, 700, 60]), 500, 500);
    let request = both.request(Time::ZERO);
    let reject = forged(&request, code::ACCESS_REJECT, &[4, 1, 0, 4], "another");
    assert!(both.client.handle(Time::ZERO, &reject).is_err());
    let mut altered = request.clone();
    *altered.last_mut().unwrap() ^= 1;
    assert_eq!(both.service.handle(Time::ZERO, both.from, &altered), None);
    assert_eq!((both.service.tally().discarded, both.service.sessions()), (1, 0));
    assert_eq!(both.run(), Next::Success);
}

#[test]
fn other_eap_method_is_declined() {
    let mut both = Conversation::new(Script::tls12([200, 900, 700, 60]), 500, 500);
    let request = both.request(Time::ZERO);
    // A request for PEAP.
    let challenge = forged(&request, code::ACCESS_CHALLENGE, &[1, 2, 0, 6, 25, 0x20], SECRET);
    assert_eq!(both.client.handle(Time::ZERO, &challenge), Ok(Next::Transmit));
    let answer = both.request(Time::ZERO);
    let eap = Packet::parse(&answer).unwrap().eap_message().unwrap();
    assert_eq!(eap, [2, 2, 0, 6, 3, 13]);
}

#[test]
fn number_of_authentications_is_limited() {
    let mut both = Conversation::new(Script::tls12([200, 900, 700, 60]), 500, 500);
    for number in 0..5000_u32 {
        let request = both.request(Time::ZERO);
        // Two access points, so that neither reaches its own limit first.
        let from = if number.is_multiple_of(2) { both.from } else { ([127, 0, 0, 2], 4000).into() };
        both.service.handle(Time::ZERO, from, &request);
        // A new client, which starts again with its identity.
        both.client = Conversation::new(Script::tls12([200, 900, 700, 60]), 500, 500).client;
    }
    assert_eq!(both.service.sessions(), 4096);
    assert_eq!(both.service.tally().turned_away, 5000 - 4096);
    both.service.handle_timeout(Time::from_secs(60));
    assert_eq!((both.service.sessions(), both.service.tally().abandoned), (0, 4096));
    assert_eq!(both.service.poll_timeout(), None);
}

#[test]
fn one_access_point_does_not_exhaust_the_limit() {
    let [script, _] = both([200, 3000, 1500, 60]);
    let mut both = Conversation::new(script, 1000, 1000);
    let greedy = |both: &mut Conversation, from: std::net::SocketAddr, count: usize| {
        (0..count)
            .filter(|_| {
                let request = both.request(Time::ZERO);
                both.service.handle(Time::ZERO, from, &request).is_some()
            })
            .count()
    };
    let limit = shakedown_eap::service::Limits::default().sessions_per_client;
    let (one, other) = (([10, 0, 0, 1], 1).into(), ([10, 0, 0, 2], 1).into());
    assert_eq!(greedy(&mut both, one, limit + 100), limit);
    // The ports of an access point do not matter.
    assert_eq!(greedy(&mut both, ([10, 0, 0, 1], 2).into(), 10), 0);
    assert_eq!(greedy(&mut both, other, 10), 10);
    both.service.handle_timeout(Time::from_secs(61));
    assert_eq!(both.service.sessions(), 0);
    assert_eq!(greedy(&mut both, one, 10), 10, "its sessions are over, and it may begin others");
}

/// An observed initial request, repeated from other ports and addresses, starts no other authentication.
#[test]
fn repeated_initial_request_starts_no_other_authentication() {
    let mut both = Conversation::new(Script::tls12([200, 900, 700, 60]), 500, 500);
    let request = both.request(Time::ZERO);
    let from = both.from;
    let challenge = both.service.handle(Time::ZERO, from, &request).unwrap();
    let mut answered = 0;
    for number in 0..4000_u16 {
        let now = Time::from_millis(u64::from(number) * 14);
        let address = if number.is_multiple_of(2) { from.ip() } else { [10, 0, 0, 9].into() };
        let reply = both.service.handle(now, (address, 1024 + number).into(), &request);
        assert!(reply.as_ref().is_none_or(|reply| address == from.ip() && *reply == challenge));
        answered += usize::from(reply.is_some());
    }
    assert!(answered > 0, "a client that sends again gets its answer");
    assert_eq!((both.service.sessions(), both.service.tally().duplicates), (1, 4000));
    // The genuine peer continues with its response.
    assert!(both.client.handle(Time::ZERO, &challenge).is_ok());
    assert_eq!(both.run(), Next::Success);
}

/// Two access points fill the table; a third and a fourth can still authenticate.
#[test]
fn full_table_evicts_from_the_largest_access_point() {
    let script = Script::tls12([200, 900, 700, 60]);
    let mut both = Conversation::new(script, 500, 500);
    for number in 0..5000_u32 {
        let request = both.request(Time::ZERO);
        both.service.handle(Time::ZERO, ([10, 0, 0, 1 + (number % 2) as u8], 4000).into(), &request);
        both.client = Conversation::new(script, 500, 500).client;
    }
    assert_eq!(both.service.sessions(), 4096);
    for _ in 0..2 {
        both.client = Conversation::new(script, 500, 500).client;
        assert_eq!(both.run(), Next::Success);
    }
    assert_eq!((both.service.tally().accepted, both.service.tally().abandoned), (2, 1));
    assert_eq!(both.service.sessions(), 4095);
}

#[test]
fn ended_sessions_leave_a_limited_number_of_deadlines() {
    let script = Script::tls12([200, 900, 700, 60]);
    let mut both = Conversation::new(script, 1398, 1398);
    // Short authentications at a high rate: the service asserts that its number of deadlines is limited.
    for _ in 0..10_000 {
        both.client = Conversation::new(script, 1398, 1398).client;
        assert_eq!(both.run(), Next::Success);
    }
    assert_eq!((both.service.tally().accepted, both.service.sessions()), (10_000, 0));
    // A session in progress keeps its deadline.
    both.client = Conversation::new(script, 1398, 1398).client;
    let request = both.request(Time::ZERO);
    both.service.handle(Time::ZERO, both.from, &request);
    both.service.handle_timeout(Time::from_secs(60));
    assert_eq!((both.service.sessions(), both.service.tally().abandoned), (0, 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Identity, start; then one round trip for each fragment, and one for the last acknowledgement.
    #[test]
    fn round_trips_follow_from_fragments(
        flights in [1_usize..700, 1_usize..9000, 1_usize..9000, 1_usize..300],
        peer in 1_usize..1400,
        server in 1_usize..1390,
        tls13: bool,
    ) {
        // Within the limit of rounds of both sides.
        prop_assume!(flights[0].div_ceil(peer) + flights[2].div_ceil(peer) < 140);
        prop_assume!(flights[1].div_ceil(server) + flights[3].div_ceil(server) < 140);
        let script = if tls13 { Script::tls13(flights) } else { Script::tls12(flights) };
        let mut both = Conversation::new(script, peer, server);
        prop_assert_eq!(both.run(), Next::Success);
        // The ticket and the indication share a flight.
        let last = flights[3] + usize::from(tls13);
        let of_peer = fragments(flights[0], peer) + fragments(flights[2], peer);
        let of_server = fragments(flights[1], server) + fragments(last, server);
        prop_assert_eq!(u64::from(both.client.exchanged().round_trips), of_peer + of_server);
        prop_assert_eq!(u64::from(both.client.peer().tunnel().fragments()), of_peer + of_server);
    }

    /// Old packets of either side may be repeated at any time; only the expected packet has an effect.
    #[test]
    fn replayed_and_reordered_packets_change_nothing(
        choices in proptest::collection::vec((0_usize..40, 0_usize..40, any::<bool>()), 60),
        tls13: bool,
    ) {
        let flights = [200, 2000, 1500, 60];
        let script = if tls13 { Script::tls13(flights) } else { Script::tls12(flights) };
        let mut plain = Conversation::new(script, 400, 400);
        prop_assert_eq!(plain.run(), Next::Success);

        let mut both = Conversation::new(script, 400, 400);
        let (mut requests, mut replies): (Vec<Vec<u8>>, Vec<Vec<u8>>) = Default::default();
        let mut choices = choices.into_iter().cycle();
        // Time passes beyond the lifetime of stored responses, so that replays do not only hit the cache.
        let mut now = Time::ZERO;
        loop {
            let request = both.request(now);
            for _ in 0..3 {
                let (old, answer, late) = choices.next().unwrap();
                if late && now < Time::from_secs(40) {
                    now += Time::from_secs(1);
                }
                if let Some(old) = requests.get(old).filter(|old| *old != &request) {
                    // The client accepts no response to a replay.
                    if let Some(reply) = both.service.handle(now, both.from, old) {
                        prop_assert!(both.client.handle(now, &reply).is_err());
                    }
                }
                if let Some(answer) = replies.get(answer) {
                    prop_assert!(both.client.handle(now, answer).is_err());
                }
            }
            let reply = both.service.handle(now, both.from, &request).expect("an answer");
            // A repeated request gets the same bytes.
            let again = both.service.handle(now, both.from, &request);
            prop_assert_eq!(again.as_ref(), Some(&reply));
            requests.push(request);
            replies.push(reply.clone());
            match both.client.handle(now, &reply).unwrap() {
                Next::Transmit => {}
                next => {
                    prop_assert_eq!(next, Next::Success);
                    break;
                }
            }
        }
        prop_assert_eq!(both.client.exchanged(), plain.client.exchanged());
        prop_assert!(both.client.msk() == plain.client.msk());
        prop_assert_eq!(both.service.tally().accepted, 1);
        prop_assert_eq!(&both.service.tally().rejected, &plain.service.tally().rejected);
    }
}
