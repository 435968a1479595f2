//! An attacker on the path between `load` and `serve`, over real sockets, with the cases that a test of
//! `shakedown-stacks` applies to endpoints. Each handshake of a load gets a different case.

use super::stranger::{Case, SUITES, Stranger, cases, headers};
use super::{LONG, config, start, stop, suite};
use mio::net::UdpSocket;
use mio::{Events, Interest, Poll, Token, Waker};
use shakedown_live::load::{self, Arrivals, Outcome};
use shakedown_live::serve::Config;
use shakedown_stacks::Settings;
use shakedown_trace::Side;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of simultaneous handshakes of a suite: high, because many wait 3 seconds for a retransmission, but so low
/// that a socket's buffer holds the datagrams of all, because a lost request is not retransmitted.
const CLIENTS: usize = 48;
/// Content types of records.
const ALERT: u8 = 2;
const DATA: u8 = 4;
const FRONT: Token = Token(usize::MAX);
const WAKER: Token = Token(usize::MAX - 1);

/// A connection through the relay.
struct Conversation<'a> {
    client: SocketAddr,
    /// The client's random value, because ports are reused.
    random: Vec<u8>,
    /// The socket that is the client for the server.
    server: UdpSocket,
    stranger: Option<Stranger<'a>>,
    /// The server's answer has passed; only close alerts follow.
    answered: bool,
}

/// Relays datagrams between clients and a server.
struct Relay<'a> {
    server: SocketAddr,
    front: UdpSocket,
    poll: Poll,
    /// Number of conversations before a load, which pass unchanged.
    unchanged: usize,
    cases: &'a [Case],
    conversations: HashMap<usize, Conversation<'a>>,
    latest: HashMap<SocketAddr, usize>,
    begun: usize,
    /// Datagrams of the second conversation; the first one is not part of a load.
    second: Vec<(Side, Vec<u8>)>,
    done: usize,
}

/// The random value of a ClientHello that begins a datagram.
fn random_of_hello(datagram: &[u8]) -> Option<&[u8]> {
    let [0xc3, _, _, _, _, 1, _, _, _, rest @ ..] = datagram else { return None };
    rest.get(..16)
}

/// Whether a datagram contains a protected record of a content type.
fn holds(datagram: &[u8], content: u8) -> bool {
    headers(datagram).into_iter().any(|at| datagram[at] == 0xe0 | content)
}

impl<'a> Relay<'a> {
    fn new(server: SocketAddr, unchanged: usize, cases: &'a [Case]) -> Self {
        let poll = Poll::new().unwrap();
        let mut front = UdpSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        poll.registry().register(&mut front, FRONT, Interest::READABLE).unwrap();
        Self {
            server,
            front,
            poll,
            unchanged,
            cases,
            conversations: HashMap::new(),
            latest: HashMap::new(),
            begun: 0,
            second: Vec::new(),
            done: 0,
        }
    }

    fn run(&mut self, over: &AtomicBool) {
        let mut events = Events::with_capacity(1024);
        let mut buffer = vec![0; 65_536];
        while !over.load(Ordering::SeqCst) {
            self.poll.poll(&mut events, None).unwrap();
            for event in &events {
                match event.token() {
                    WAKER => {}
                    FRONT => {
                        while let Ok((bytes, client)) = self.front.recv_from(&mut buffer) {
                            self.take_from_client(client, &buffer[..bytes]);
                        }
                    }
                    Token(number) => {
                        while let Some(Ok(bytes)) =
                            self.conversations.get(&number).map(|one| one.server.recv(&mut buffer))
                        {
                            self.pass(number, Side::Server, &buffer[..bytes]);
                        }
                    }
                }
            }
        }
    }

    fn take_from_client(&mut self, client: SocketAddr, datagram: &[u8]) {
        let random = random_of_hello(datagram);
        let known = self
            .latest
            .get(&client)
            .filter(|number| random.is_none_or(|random| self.conversations[*number].random == random));
        let number = match (known, random) {
            (Some(number), _) => *number,
            (None, Some(random)) => self.begin(client, random.to_vec()),
            (None, None) => return,
        };
        self.pass(number, Side::Client, datagram);
        if self.conversations[&number].answered && holds(datagram, ALERT) {
            self.conversations.remove(&number);
            self.latest.remove(&client);
        }
    }

    fn begin(&mut self, client: SocketAddr, random: Vec<u8>) -> usize {
        let mut server = UdpSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        server.connect(self.server).unwrap();
        let number = self.begun;
        self.begun += 1;
        self.poll.registry().register(&mut server, Token(number), Interest::READABLE).unwrap();
        let case = number.checked_sub(self.unchanged).and_then(|number| self.cases.get(number));
        let stranger = case.map(Stranger::new);
        let conversation = Conversation { client, random, server, stranger, answered: false };
        self.conversations.insert(number, conversation);
        self.latest.insert(client, number);
        number
    }

    fn pass(&mut self, number: usize, from: Side, datagram: &[u8]) {
        let conversation = self.conversations.get_mut(&number).unwrap();
        conversation.answered |= from == Side::Server && holds(datagram, DATA);
        if number == 1 {
            self.second.push((from, datagram.to_vec()));
        }
        let arrivals = match &mut conversation.stranger {
            Some(stranger) => {
                let before = stranger.done;
                let arrivals = stranger.pass(from, datagram);
                self.done += usize::from(stranger.done && !before);
                arrivals
            }
            None => vec![(from.peer(), datagram.to_vec())],
        };
        for (to, datagram) in arrivals {
            // Datagrams that cannot be sent are lost.
            let _ = match to {
                Side::Client => self.front.send_to(&datagram, conversation.client),
                Side::Server => conversation.server.send(&datagram),
            };
        }
    }
}

/// Result of a load.
struct Loaded {
    outcome: Outcome,
    /// Number of cases that were applied.
    done: usize,
    /// Cases without the close alert that the client sends after its answer.
    unfinished: Vec<Case>,
    /// The datagrams of its first handshake.
    datagrams: Vec<(Side, Vec<u8>)>,
}

/// A load of a server through a relay, one handshake for each case. `sessions` handshakes come before it.
fn loaded(suite_name: &str, sessions: usize, cases: &[Case]) -> Loaded {
    let server = start(Config { payload_bytes: 1, handshake_timeout: LONG, ..config(suite_name) });
    let mut relay = Relay::new(server.address(), sessions, cases);
    let over = AtomicBool::new(false);
    let waker = Waker::new(relay.poll.registry(), WAKER).unwrap();
    let config = load::Config {
        target: format!("wtls://{}", relay.front.local_addr().unwrap()),
        arrivals: Arrivals::Closed,
        duration_s: LONG.as_secs_f64(),
        // Longer than the retransmissions of a client without an answer.
        timeout_s: 100.0,
        max_starts: Some(cases.len().max(1) as u64),
        clients: if cases.is_empty() { 1 } else { CLIENTS },
        request: Some("request".into()),
        ..load::Config::default()
    };
    let parts = std::thread::scope(|scope| {
        scope.spawn(|| relay.run(&over));
        let settings = Settings::default();
        let found =
            load::run(&config, Some(&suite(suite_name)), &settings, &mut |_| ControlFlow::Continue(()));
        over.store(true, Ordering::SeqCst);
        waker.wake().unwrap();
        found.unwrap_or_else(|error| panic!("{suite_name}: {error}"))
    });
    let counted = stop(server).handshakes;
    assert_eq!(counted.failed, [].into(), "{suite_name}");
    let unfinished = relay.conversations.into_values().filter_map(|one| one.stranger);
    Loaded {
        outcome: load::merge(vec![parts]).unwrap(),
        done: relay.done,
        unfinished: unfinished.map(|stranger| stranger.case.clone()).collect(),
        datagrams: relay.second,
    }
}

/// The datagrams of a handshake without an attacker.
fn honest(suite_name: &str) -> Vec<(Side, Vec<u8>)> {
    let datagrams = loaded(suite_name, 1, &[]).datagrams;
    datagrams.into_iter().take_while(|(_, datagram)| !holds(datagram, DATA)).collect()
}

/// Number of cases that a suite's handshakes survived.
fn survives(name: &str) -> usize {
    let all = cases(&honest(name));
    let unanswered = tried(name, &all);
    // The kernel of a busy machine drops datagrams, and requests are not retransmitted, so these cases are tried once
    // more.
    if !unanswered.is_empty() {
        assert_eq!(tried(name, &unanswered).len(), 0, "{name}: {unanswered:02x?}");
    }
    all.len()
}

/// Cases in which the handshake was completed and the request had no answer.
fn tried(name: &str, cases: &[Case]) -> Vec<Case> {
    let is_resumption = suite(name).is_resumption();
    // Before a load, a generator performs one handshake, or one for every client's session.
    let loaded = loaded(name, if is_resumption { CLIENTS } else { 1 }, cases);
    let (found, tried) = (loaded.outcome, cases.len() as u64);
    let lost = found.failed.get("timeout: first byte").copied().unwrap_or_default();
    assert_eq!(found.failed.into_values().sum::<u64>(), lost, "{name}: {:02x?}", loaded.unfinished);
    assert_eq!((found.completed, loaded.done), (tried - lost, cases.len()), "{name}");
    // An answer comes only if both sides have the same keys.
    assert_eq!(found.first_byte_s.n, tried - lost, "{name}");
    assert_eq!(found.resumed.confirmed, if is_resumption { tried } else { 0 }, "{name}");
    assert_eq!(found.negotiated.len(), 1, "{name}: {:?}", found.negotiated);
    // A close alert may be lost too.
    if lost == 0 { Vec::new() } else { loaded.unfinished }
}

#[test]
fn injected_datagram_does_not_affect_a_handshake_over_sockets() {
    let count: usize = std::thread::scope(|scope| {
        let suites: Vec<_> = SUITES.iter().map(|name| (name, scope.spawn(|| survives(name)))).collect();
        let cases = suites.into_iter().map(|(name, survived)| {
            let cases = survived.join().unwrap();
            println!("{name}: {cases} cases");
            cases
        });
        cases.sum()
    });
    println!("{count} cases");
    assert!(count > 20_000);
}
