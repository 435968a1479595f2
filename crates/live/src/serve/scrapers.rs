//! A small HTTP server for Prometheus scrapes: one thread, one poll, limits of the number and duration of connections.

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Token of the listening socket and of every connection: every turn processes all of them.
const SOCKETS: Token = Token(0);
const EVENTS: usize = 64;
/// Connections accepted in one turn, before open connections are processed again.
const ACCEPTS_PER_TURN: usize = 16;

/// Open connections; the server reserves file descriptors for these. One more displaces an old one. The limit exceeds
/// `ACCEPTS_PER_TURN`, so that a request that arrives with its connection is answered before it can be displaced.
const MAX_CONNECTIONS: usize = 32;
const MAX_HEAD_BYTES: usize = 8_192;
/// How long accepting pauses if file descriptors or memory are exhausted.
const PAUSE: Duration = Duration::from_millis(50);

pub struct Answer {
    /// Status code and reason phrase.
    pub status: &'static str,
    pub kind: &'static str,
    pub body: String,
}

pub struct Scrapers {
    poll: Poll,
    listener: TcpListener,
    connections: Vec<Connection>,
    /// Time of the next attempt to accept without an event.
    accepts_at: Option<Instant>,
    max_duration: Duration,
}

struct Connection {
    stream: TcpStream,
    address: IpAddr,
    until: Instant,
    phase: Phase,
}

enum Phase {
    /// The request's head, as far as it was received.
    Head(Vec<u8>),
    /// The response, and how many of its bytes are sent.
    Answer(Vec<u8>, usize),
}

impl Scrapers {
    /// The token of the waker that ends a turn.
    pub const WAKER: Token = Token(1);

    /// Serves the listening socket; each connection is closed after `max_duration`.
    pub fn new(poll: Poll, mut listener: TcpListener, max_duration: Duration) -> io::Result<Self> {
        poll.registry().register(&mut listener, SOCKETS, Interest::READABLE)?;
        Ok(Self { poll, listener, connections: Vec::new(), accepts_at: None, max_duration })
    }

    /// Waits until a socket is ready, a connection's time has expired or the waker is used, and processes that.
    pub fn turn(&mut self, answer: &impl Fn(&[u8]) -> Answer) -> io::Result<()> {
        // The oldest connection ends first, because all have the same maximum duration.
        let ends = self.connections.first().map(|oldest| oldest.until);
        let next = [self.accepts_at, ends].into_iter().flatten().min();
        let timeout = next.map(|at| at.saturating_duration_since(Instant::now()));
        match self.poll.poll(&mut Events::with_capacity(EVENTS), timeout) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        self.accept();
        let now = Instant::now();
        let waits =
            |result| matches!(result, Err(error) if io::Error::kind(&error) == io::ErrorKind::WouldBlock);
        self.connections.retain_mut(|connection| connection.until > now && waits(connection.work(answer)));
        Ok(())
    }

    fn accept(&mut self) {
        self.accepts_at = None;
        for _ in 0..ACCEPTS_PER_TURN {
            match self.listener.accept() {
                Ok((stream, peer)) => self.admit(stream, peer.ip()),
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => {}
                    io::ErrorKind::WouldBlock => return,
                    // No descriptors or no memory: accepting pauses.
                    _ => {
                        self.accepts_at = Some(Instant::now() + PAUSE);
                        return;
                    }
                },
            }
        }
        self.accepts_at = Some(Instant::now());
    }

    fn admit(&mut self, mut stream: TcpStream, address: IpAddr) {
        if self.connections.len() >= MAX_CONNECTIONS {
            self.drop_one();
        }
        let until = Instant::now() + self.max_duration;
        if self
            .poll
            .registry()
            .register(&mut stream, SOCKETS, Interest::READABLE | Interest::WRITABLE)
            .is_ok()
        {
            self.connections.push(Connection { stream, address, until, phase: Phase::Head(Vec::new()) });
        }
    }

    /// Drops the oldest connection of the address with the most connections.
    fn drop_one(&mut self) {
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        for connection in &self.connections {
            *counts.entry(connection.address).or_default() += 1;
        }
        let most = counts.values().max();
        if let Some(oldest) = self.connections.iter().position(|one| counts.get(&one.address) == most) {
            self.connections.remove(oldest);
        }
    }
}

impl Connection {
    /// Continues until the socket would block ([`io::ErrorKind::WouldBlock`]); any other result ends the connection.
    fn work(&mut self, answer: &impl Fn(&[u8]) -> Answer) -> io::Result<()> {
        loop {
            match &mut self.phase {
                Phase::Head(head) => {
                    let mut chunk = [0; 1024];
                    let read = retry(|| self.stream.read(&mut chunk))?;
                    head.extend_from_slice(&chunk[..read]);
                    if head.windows(4).any(|end| end == b"\r\n\r\n") {
                        self.phase = Phase::Answer(written(&answer(path(head))), 0);
                    } else if read == 0 || head.len() > MAX_HEAD_BYTES {
                        return Ok(());
                    }
                }
                Phase::Answer(text, sent) => {
                    if *sent == text.len() {
                        return Ok(());
                    }
                    match retry(|| self.stream.write(&text[*sent..]))? {
                        0 => return Ok(()),
                        taken => *sent += taken,
                    }
                }
            }
        }
    }
}

fn retry(mut work: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match work() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// The path of a GET request without its query; empty for other methods.
fn path(head: &[u8]) -> &[u8] {
    let target = head.strip_prefix(b"GET ").unwrap_or_default();
    target.split(|byte| matches!(byte, b' ' | b'?' | b'\r')).next().unwrap_or_default()
}

fn written(answer: &Answer) -> Vec<u8> {
    let Answer { status, kind, body } = answer;
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::socket::bind_tcp;
    use mio::Waker;
    use std::net::{Shutdown, SocketAddr};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    const LONG: Duration = Duration::from_secs(3_600);
    /// More than the sockets' buffers hold, if the client's buffer is small.
    const BODY_BYTES: usize = 8 << 20;

    /// A server of short and long responses, which stops on drop.
    struct Serving {
        address: SocketAddr,
        stop: Arc<AtomicBool>,
        waker: Waker,
        thread: Option<std::thread::JoinHandle<()>>,
    }

    fn serving(max_duration: Duration) -> Serving {
        let listener = bind_tcp("0.0.0.0:0".parse().unwrap(), 1).unwrap().remove(0);
        let address = SocketAddr::from(([127, 0, 0, 1], listener.local_addr().unwrap().port()));
        let poll = Poll::new().unwrap();
        let waker = Waker::new(poll.registry(), Scrapers::WAKER).unwrap();
        let mut scrapers = Scrapers::new(poll, listener, max_duration).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let answer = |path: &[u8]| {
            let bytes = if path == b"/large" { BODY_BYTES } else { path.len() };
            Answer { status: "200 OK", kind: "text/plain", body: "x".repeat(bytes) }
        };
        let work = move || {
            while !stopping.load(SeqCst) {
                scrapers.turn(&answer).unwrap();
                assert!(scrapers.connections.len() <= MAX_CONNECTIONS);
            }
        };
        Serving { address, stop, waker, thread: Some(std::thread::spawn(work)) }
    }

    impl Drop for Serving {
        fn drop(&mut self) {
            self.stop.store(true, SeqCst);
            self.waker.wake().unwrap();
            self.thread.take().unwrap().join().unwrap();
        }
    }

    impl Serving {
        /// A client at one of loopback's addresses.
        fn client(&self, last: u8) -> std::net::TcpStream {
            let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
            socket.bind(&SocketAddr::from(([127, 0, 0, last], 0)).into()).unwrap();
            socket.set_recv_buffer_size(4_096).unwrap();
            socket.connect(&self.address.into()).unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
            socket.into()
        }

        /// Requests a path, and returns the response.
        fn get(&self, path: &str) -> String {
            let mut client = self.client(1);
            write!(client, "GET {path} HTTP/1.1\r\n\r\n").unwrap();
            read_all(client)
        }
    }

    fn read_all(mut client: std::net::TcpStream) -> String {
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        text
    }

    fn body(text: &str) -> &str {
        text.split_once("\r\n\r\n").unwrap().1
    }

    #[test]
    fn request_is_answered_however_it_is_split() {
        let serving = serving(LONG);
        assert_eq!(body(&serving.get("/some")), "xxxxx");
        assert_eq!(body(&serving.get("/some?more=all")), "xxxxx");
        let mut client = serving.client(1);
        for byte in b"GET /some HTTP/1.0\r\nHost: localhost\r\n\r\n" {
            client.write_all(&[*byte]).unwrap();
        }
        assert_eq!(body(&read_all(client)), "xxxxx");
        assert_eq!(body(&serving.get("/large")).len(), BODY_BYTES);
    }

    #[test]
    fn silent_and_slow_clients_do_not_block_others() {
        for asked in ["", "GET /large HTTP/1.1\r\n\r\n"] {
            let serving = serving(LONG);
            let clients: Vec<_> = (0..MAX_CONNECTIONS + 8)
                .map(|_| {
                    let mut client = serving.client(1);
                    // The server may have dropped it.
                    let _ = client.write_all(asked.as_bytes());
                    client
                })
                .collect();
            assert_eq!(body(&serving.get("/some")), "xxxxx");
            drop(clients);
        }
    }

    #[test]
    fn silent_clients_evict_only_connections_of_their_address() {
        let serving = serving(LONG);
        let mut patient = serving.client(2);
        let silent: Vec<_> = (0..3 * MAX_CONNECTIONS).map(|_| serving.client(1)).collect();
        assert_eq!(body(&serving.get("/some")), "xxxxx");
        patient.write_all(b"GET /some HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!(body(&read_all(patient)), "xxxxx");
        drop(silent);
    }

    #[test]
    fn connection_ends_by_timeout_peer_close_or_oversized_head() {
        let short = serving(Duration::from_millis(50));
        assert_eq!(read_all(short.client(1)), "");
        let serving = serving(LONG);
        let client = serving.client(1);
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(read_all(client), "");
        let mut client = serving.client(1);
        let head = [b'a'; MAX_HEAD_BYTES + 1];
        client.write_all(&head).unwrap();
        assert_eq!(read_all(client), "");
    }
}
