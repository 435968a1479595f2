//! The limits of a listener for unproven peers.

#![allow(clippy::unwrap_used)]

mod support;

use shakedown_wtls::provider::openssl::OpenSsl;
use shakedown_wtls::*;
use std::sync::Arc;
use std::time::Duration;
use support::network::{plain, protected};
use support::*;

type Configs = (Arc<ClientConfig<OpenSsl>>, Arc<ServerConfig<OpenSsl>>);

const NOTHING: Budget = Budget::per_second(0, 0);

fn shared((client, server): (ClientConfig<OpenSsl>, ServerConfig<OpenSsl>)) -> Configs {
    (Arc::new(client), Arc::new(server))
}

/// A server whose first flight is many times as long as a ClientHello.
fn long_chain() -> Configs {
    shared(certified_pair(&[Kind::Rsa(1024); 4], ClientAuthentication::None, false, false))
}

fn anonymous() -> Configs {
    let curve = ParameterSpecifier::of_curve(Curve::Wtls8, false);
    shared(anonymous_pair(offer(KeyExchangeSuite::EcdhAnon, curve)))
}

fn new_client(
    config: &Arc<ClientConfig<OpenSsl>>,
    seed: u64,
    now: Duration,
) -> (Client<OpenSsl>, Environment) {
    let mut environment = Environment::new(seed);
    let client = Client::new(Arc::clone(config), None, &mut environment.cx(now));
    (client, environment)
}

struct Server {
    listener: Listener<u64, OpenSsl>,
    environment: Environment,
    now: Duration,
}

impl Server {
    fn new(config: &Arc<ServerConfig<OpenSsl>>, limits: Limits) -> Self {
        let listener = Listener::new(Arc::clone(config), limits);
        Self { listener, environment: Environment::new(1), now: Duration::from_secs(10) }
    }

    /// Delivers a datagram; returns the responses.
    fn deliver(&mut self, address: u64, datagram: &[u8]) -> Vec<Vec<u8>> {
        self.listener.handle_input(&mut self.environment.cx(self.now), address, datagram);
        self.environment.log.0.clear();
        std::iter::from_fn(|| self.listener.poll_transmit()).map(|(_, datagram)| datagram).collect()
    }

    /// Runs a client against the server until it is connected; returns the number of its timeouts.
    fn connect(&mut self, address: u64, config: &Arc<ClientConfig<OpenSsl>>, seed: u64) -> u32 {
        let (mut client, mut environment) = new_client(config, seed, self.now);
        for repetitions in 0..10 {
            while let Some(datagram) = client.poll_transmit() {
                for answer in self.deliver(address, &datagram) {
                    client.handle_input(&mut environment.cx(self.now), &answer);
                }
            }
            if client.is_open() {
                return repetitions;
            }
            self.now = client.poll_timeout().expect("the client gives up");
            client.handle_timeout(&mut environment.cx(self.now));
        }
        panic!("the client does not get in");
    }
}

fn total(datagrams: &[Vec<u8>]) -> usize {
    datagrams.iter().map(Vec::len).sum()
}

#[test]
fn without_a_budget_replies_are_at_most_three_times_the_input() {
    let (client, server) = long_chain();
    let limits = Limits { reflection: NOTHING, ..Limits::default() };
    let mut server = Server::new(&server, limits);
    let hello = new_client(&client, 1, server.now).0.poll_transmit().unwrap();
    let (mut received, mut sent) = (0, 0);
    let mut answers = 0;
    for _ in 0..200 {
        // The same ClientHello, a malformed message, and a record that belongs to no connection.
        let junk = plain(ContentType::Handshake, 3, &[16, 0, 1, 9]);
        for datagram in [&hello, &junk, &protected(ContentType::ApplicationData, 1, &[1; 24])] {
            received += datagram.len();
            let answer = server.deliver(7, datagram);
            answers += answer.len();
            sent += total(&answer);
            assert!(sent <= 3 * received, "{sent} bytes for {received}");
        }
        server.now += Duration::from_secs(1);
    }
    assert!(answers > 2, "the flight has been sent in the end");
    // Received bytes count only for their own address.
    assert_eq!(server.deliver(8, &hello), Vec::<Vec<u8>>::new());
    assert!(server.listener.withheld().datagrams > 0);
}

#[test]
fn without_a_budget_a_retransmitting_client_connects() {
    let kinds = [Kind::Rsa(1024); 3];
    let (client, config) = shared(certified_pair(&kinds, ClientAuthentication::None, false, false));
    let limits = Limits { reflection: NOTHING, ..Limits::default() };
    let repetitions = Server::new(&config, limits).connect(7, &client, 1);
    assert!((1..=4).contains(&repetitions), "{repetitions}");
    assert_eq!(Server::new(&config, Limits::default()).connect(7, &client, 1), 0);
}

#[test]
fn finished_client_returns_its_budget() {
    let (client, config) = long_chain();
    // Enough for one first flight, once.
    let limits = Limits { reflection: Budget::per_second(2_000, 0), ..Limits::default() };
    let mut server = Server::new(&config, limits);
    for address in 0..20 {
        assert_eq!(server.connect(address, &client, address), 0, "client {address} waits");
    }
    assert_eq!(server.listener.withheld(), Withheld::default());
}

#[test]
fn replies_to_a_flood_follow_the_budget_rate() {
    let (client, config) = long_chain();
    let reflection = Budget::per_second(20_000, 1_000);
    let mut server = Server::new(&config, Limits { reflection, ..Limits::default() });
    let begin = server.now;
    let (mut received, mut sent) = (0, 0);
    for address in 0..2_000 {
        let hello = new_client(&client, address, server.now).0.poll_transmit().unwrap();
        received += hello.len();
        sent += total(&server.deliver(address, &hello));
        server.now += Duration::from_millis(5);
        let paid = 20_000 + (server.now - begin).as_secs_f64() as usize * 1_000 + 1_000;
        assert!(sent <= 3 * received + paid, "{sent} bytes sent for {received}");
    }
    assert!(server.listener.withheld().datagrams > 1_000);
    // A genuine client connects, but not at the first try.
    assert!(server.connect(9_999, &client, 9_999) > 0);
}

#[test]
fn no_connection_alerts_stay_within_the_same_budget() {
    let (_, config) = anonymous();
    let limits = Limits { reflection: NOTHING, ..Limits::default() };
    let mut server = Server::new(&config, limits);
    assert_eq!(total(&server.deliver(1, &protected(ContentType::ApplicationData, 1, &[1; 24]))), 11);
    assert_eq!(total(&server.deliver(1, &[0xE4, 0, 1])), 0, "3 bytes pay for 9");
    assert_eq!(total(&server.deliver(1, &[0xE4, 0, 1, 0])), 0, "which is no record");
    assert_eq!(total(&server.deliver(1, &[0x64, 0, 1, 0])), 11);
    let alert = plain(ContentType::Alert, 1, &[2, 10, 0, 0, 0, 0]);
    assert_eq!(total(&server.deliver(1, &alert)), 0, "two strangers do not talk for ever");
}

#[test]
fn key_generations_in_a_flood_follow_the_budget_rate() {
    let (client, config) = anonymous();
    let operations = Budget::per_second(50, 10);
    let mut server = Server::new(&config, Limits { operations, ..Limits::default() });
    let mut answered = 0;
    for address in 0..2_000 {
        let hello = new_client(&client, address, server.now).0.poll_transmit().unwrap();
        answered += server.deliver(address, &hello).len();
        server.now += Duration::from_millis(10);
    }
    // 50, and 10 a second for 20 s.
    assert!((240..=250).contains(&answered), "{answered} keys");
    assert_eq!(server.listener.withheld().hellos, 2_000 - answered as u64);
    // A client that retries later connects like any other.
    server.now += Duration::from_secs(1);
    assert_eq!(server.connect(9_999, &client, 9_999), 0);
    // A certified key exchange needs no temporary key, so no client waits for one.
    let (client, config) = long_chain();
    let mut server = Server::new(&config, Limits { operations: NOTHING, ..Limits::default() });
    assert_eq!(server.connect(7, &client, 1), 0);
}

#[test]
fn keys_of_finished_clients_use_no_budget() {
    let (client, config) = anonymous();
    let operations = Budget::per_second(1, 0);
    let mut server = Server::new(&config, Limits { operations, ..Limits::default() });
    for address in 0..20 {
        assert_eq!(server.connect(address, &client, address), 0, "client {address} waits");
    }
    // A handshake that does not finish returns nothing to the budget.
    let hello = new_client(&client, 99, server.now).0.poll_transmit().unwrap();
    assert_eq!(server.deliver(99, &hello).len(), 1);
    let hello = new_client(&client, 98, server.now).0.poll_transmit().unwrap();
    assert_eq!(server.deliver(98, &hello).len(), 0);
}

#[test]
fn completed_handshakes_free_half_open_places_first() {
    let (client, config) = anonymous();
    let limits = Limits { half_open: 10, ..Limits::default() };
    let mut server = Server::new(&config, limits);
    // A handshake in progress that is older than all others.
    let (mut slow, mut environment) = new_client(&client, 500, server.now);
    let flight = server.deliver(500, &slow.poll_transmit().unwrap());
    for address in 0..50 {
        assert_eq!(server.connect(address, &client, address), 0);
        assert!(server.listener.half_open() <= 10);
    }
    slow.handle_input(&mut environment.cx(server.now), &flight[0]);
    let answers = server.deliver(500, &slow.poll_transmit().unwrap());
    slow.handle_input(&mut environment.cx(server.now), &answers[0]);
    assert!(slow.is_open());
    assert_eq!(server.listener.established(), 51);
}

#[test]
fn longest_silent_connection_is_evicted() {
    let (client, config) = anonymous();
    let limits = Limits { established: 3, ..Limits::default() };
    let mut server = Server::new(&config, limits);
    let mut clients = Vec::new();
    for address in 0..3 {
        let (mut client, mut environment) = new_client(&client, address, server.now);
        for _ in 0..2 {
            for answer in server.deliver(address, &client.poll_transmit().unwrap()) {
                client.handle_input(&mut environment.cx(server.now), &answer);
            }
        }
        assert!(client.is_open());
        clients.push((client, environment));
        server.now += Duration::from_secs(1);
    }
    // The first and the third client send data; the second does not.
    for index in [0, 2] {
        let (client, environment) = &mut clients[index];
        client.write(&mut environment.cx(server.now), b"here").unwrap();
        server.deliver(index as u64, &client.poll_transmit().unwrap());
        server.now += Duration::from_secs(1);
    }
    assert_eq!(server.connect(3, &client, 3), 0);
    assert_eq!(server.listener.established(), 3);
    let events = std::iter::from_fn(|| server.listener.poll_event());
    let evicted: Vec<_> = events.filter(|found| found.event == Event::Closed(CloseReason::Evicted)).collect();
    assert_eq!(evicted.len(), 1);
    assert_eq!(evicted[0].address, 1);
}
