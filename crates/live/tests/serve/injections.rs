//! A stranger on the path between `load` and `serve`, over real sockets: what `shakedown-stacks`'s test of the same
//! cases does to endpoints. Every handshake of a load meets another case.

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

/// Handshakes of one suite at the same time: many wait for 3 seconds until something lost is sent again. A socket's
/// buffer has room for the datagrams of all: a request that is lost is not sent again.
const CLIENTS: usize = 48;
/// Contents of records.
const ALERT: u8 = 2;
const DATA: u8 = 4;
const FRONT: Token = Token(usize::MAX);
const WAKER: Token = Token(usize::MAX - 1);

/// A connection that passes through.
struct Conversation<'a> {
    client: SocketAddr,
    /// The client's random value: ports are used again.
    random: Vec<u8>,
    /// To the server, its socket is the client.
    server: UdpSocket,
    stranger: Option<Stranger<'a>>,
    /// The server's answer has passed: what follows is goodbye.
    answered: bool,
}

/// Passes datagrams on between clients and a server.
struct Relay<'a> {
    server: SocketAddr,
    front: UdpSocket,
    poll: Poll,
    /// How many conversations pass unchanged, which are those before a load.
    unchanged: usize,
    cases: &'a [Case],
    conversations: HashMap<usize, Conversation<'a>>,
    latest: HashMap<SocketAddr, usize>,
    begun: usize,
    /// The second conversation's datagrams: the first is not a load's.
    second: Vec<(Side, Vec<u8>)>,
    done: usize,
}

/// The random value of a ClientHello that begins a datagram.
fn random_of_hello(datagram: &[u8]) -> Option<&[u8]> {
    let [0xc3, _, _, _, _, 1, _, _, _, rest @ ..] = datagram else { return None };
    rest.get(..16)
}

/// Whether a datagram holds a protected record of a content.
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
            // What does not get through is lost, as datagrams are.
            let _ = match to {
                Side::Client => self.front.send_to(&datagram, conversation.client),
                Side::Server => conversation.server.send(&datagram),
            };
        }
    }
}

/// What came of a load.
struct Loaded {
    outcome: Outcome,
    /// How many cases came up.
    done: usize,
    /// Cases in which the client said no goodbye, as it does after its answer.
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
        // Longer than a client that has no answer goes on.
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

/// The datagrams of a handshake without a stranger.
fn honest(suite_name: &str) -> Vec<(Side, Vec<u8>)> {
    let datagrams = loaded(suite_name, 1, &[]).datagrams;
    datagrams.into_iter().take_while(|(_, datagram)| !holds(datagram, DATA)).collect()
}

/// Number of cases that a suite's handshakes survived.
fn survives(name: &str) -> usize {
    let all = cases(&honest(name));
    let unanswered = tried(name, &all);
    // The kernel of a busy machine drops datagrams, and nothing sends a request again: once more, and no more.
    if !unanswered.is_empty() {
        assert_eq!(tried(name, &unanswered).len(), 0, "{name}: {unanswered:02x?}");
    }
    all.len()
}

/// Cases in which the handshake was completed and the request had no answer.
fn tried(name: &str, cases: &[Case]) -> Vec<Case> {
    let is_resumption = suite(name).is_resumption();
    // Before it loads, a generator makes one handshake, or one for every client's session.
    let loaded = loaded(name, if is_resumption { CLIENTS } else { 1 }, cases);
    let (found, tried) = (loaded.outcome, cases.len() as u64);
    let lost = found.failed.get("timeout: first byte").copied().unwrap_or_default();
    assert_eq!(found.failed.into_values().sum::<u64>(), lost, "{name}: {:02x?}", loaded.unfinished);
    assert_eq!((found.completed, loaded.done), (tried - lost, cases.len()), "{name}");
    // An answer comes only if both sides have the same keys.
    assert_eq!(found.first_byte_s.n, tried - lost, "{name}");
    assert_eq!(found.resumed.confirmed, if is_resumption { tried } else { 0 }, "{name}");
    assert_eq!(found.negotiated.len(), 1, "{name}: {:?}", found.negotiated);
    // A goodbye may be lost too.
    if lost == 0 { Vec::new() } else { loaded.unfinished }
}

#[test]
fn one_datagram_of_a_stranger_neither_ends_nor_changes_a_handshake_over_sockets() {
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
