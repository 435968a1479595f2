//! Ten thousand handshakes over links that lose, duplicate and delay datagrams: each succeeds or fails cleanly.

#![allow(clippy::unwrap_used)]

mod support;

use shakedown_wtls::provider::openssl::OpenSsl;
use shakedown_wtls::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use support::*;

const RUNS: u64 = 10_000;
/// Limit of the events of one run, far more than any run needs.
const FUEL: usize = 2_000;

struct LossyLink {
    seeded: Seeded,
    loss_percent: u64,
    repeat_percent: u64,
    spread_ms: u64,
    /// Datagrams in transit, by time of arrival and order of sending.
    on_the_way: BTreeMap<(Duration, u64), (bool, Vec<u8>)>,
    sent: u64,
}

impl LossyLink {
    fn send(&mut self, now: Duration, to_server: bool, datagram: &[u8]) {
        let copies = 1 + u64::from(self.seeded.below(100) < self.repeat_percent);
        for _ in 0..copies {
            if self.seeded.below(100) < self.loss_percent {
                continue;
            }
            let delay = Duration::from_millis(50 + self.seeded.below(self.spread_ms + 1));
            self.sent += 1;
            self.on_the_way.insert((now + delay, self.sent), (to_server, datagram.to_vec()));
        }
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
enum Outcome {
    Success,
    TimedOut,
}

fn run(
    client: &Arc<ClientConfig<OpenSsl>>,
    server: &Arc<ServerConfig<OpenSsl>>,
    session: Option<Session>,
    seed: u64,
) -> Outcome {
    let mut seeded = Seeded::new(seed);
    let mut link = LossyLink {
        loss_percent: seeded.below(41),
        repeat_percent: seeded.below(31),
        spread_ms: [0, 100, 5_000][seeded.below(3) as usize],
        seeded,
        on_the_way: BTreeMap::new(),
        sent: 0,
    };
    let mut pair = Pair::new(client, server, session, seed);
    let mut questions = 0;
    for _ in 0..FUEL {
        while let Some(datagram) = pair.client.poll_transmit() {
            link.send(pair.now, true, &datagram);
        }
        while let Some(datagram) = pair.server.poll_transmit() {
            link.send(pair.now, false, &datagram);
        }
        if let Some(reason) = closed(&pair.client_events) {
            // No datagram is altered, so the only possible reason is a timeout.
            assert_eq!(reason, &CloseReason::TimedOut, "seed {seed}");
            return Outcome::TimedOut;
        }
        let reached = data(&pair.server_events).iter().any(|data| *data == b"question");
        if reached && pair.client.is_open() {
            let (client, server) = (&pair.client_events, &pair.server_events);
            let (client, server) = (established(client).unwrap(), established(server).unwrap());
            assert_eq!(client.transcript, server.transcript, "seed {seed}");
            return Outcome::Success;
        }
        let arrival = link.on_the_way.first_key_value().map(|((time, _), _)| *time);
        let timers = [pair.client.poll_timeout(), pair.server.poll_timeout(), arrival];
        match timers.into_iter().flatten().min() {
            Some(next) if arrival == Some(next) => {
                let ((time, _), (to_server, datagram)) = link.on_the_way.pop_first().unwrap();
                pair.now = pair.now.max(time);
                if to_server {
                    pair.deliver_to_server(&datagram);
                } else {
                    pair.deliver_to_client(&datagram);
                }
            }
            Some(_) => {
                pair.advance();
            }
            // The application repeats its question, because data may be lost too.
            None => pair.now += Duration::from_secs(1),
        }
        if pair.client.is_open() && questions < 500 {
            questions += 1;
            pair.client_write(b"question");
        }
    }
    panic!("seed {seed} does not end: {:?} {:?}", pair.client_events, pair.server_events);
}

#[test]
fn handshakes_over_bad_links_succeed_or_fail_cleanly() {
    let curve = ParameterSpecifier::of_curve(Curve::Wtls8, false);
    let identifier = Identifier::Binary(b"subscriber".to_vec());
    let named =
        KeyExchangeId::new(KeyExchangeSuite::SharedSecret, ParameterSpecifier::NONE, identifier.clone());
    let secret = || SharedSecret { identifier: identifier.clone(), secret: vec![7; 16].into() };
    let mut shared = anonymous_pair(named);
    shared.0.shared_secrets.push(secret());
    shared.1.shared_secrets.push(secret());
    let ec = [Kind::Ec(Curve::Wtls8)];
    let pairs = [
        anonymous_pair(offer(KeyExchangeSuite::EcdhAnon, curve)),
        shared,
        certified_pair(&ec, ClientAuthentication::Required, true, false),
    ]
    .map(|(client, mut server)| {
        // Space for the session of every run, so that none evicts the sessions that are resumed.
        server.sessions = Arc::new(MemorySessions::new(2 * RUNS as usize));
        (Arc::new(client), Arc::new(server))
    });
    let sessions = pairs.clone().map(|(client, server)| {
        let mut pair = Pair::new(&client, &server, None, 999_999);
        pair.run();
        pair.client.session().cloned().unwrap()
    });
    let mut outcomes = BTreeMap::<Outcome, u64>::new();
    for seed in 0..RUNS {
        let kind = (seed % 3) as usize;
        let session = (seed % 7 == 0).then(|| sessions[kind].clone());
        let (client, server) = &pairs[kind];
        *outcomes.entry(run(client, server, session, seed)).or_default() += 1;
    }
    // On the worst link, a flight and its response arrive with a probability of (1 - 0.4)², so five tries
    // fail with 0.64⁵ = 11 %. With losses from 0 to 40 %, far fewer fail.
    let failed = outcomes.get(&Outcome::TimedOut).copied().unwrap_or(0);
    println!("{outcomes:?}");
    assert!(failed > 0, "{outcomes:?}: the links are not bad enough to show anything");
    assert!(failed < RUNS / 10, "{outcomes:?}");
}
