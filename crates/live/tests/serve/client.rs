//! A client of the stacks on a blocking socket.

use shakedown_stacks::{Connector, Settings};
use shakedown_trace::endpoint::{Event, Transport};
use shakedown_trace::{Endpoint, Negotiated, Session, Side, Suite};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time limit of a connection, after which the test fails.
const TIMEOUT: Duration = Duration::from_secs(300);
const LOOK_EVERY: Duration = Duration::from_millis(20);

pub struct Client {
    connector: Arc<dyn Connector>,
    transport: Transport,
}

/// Result of a connection.
pub struct Outcome {
    pub negotiated: Negotiated,
    pub session: Option<Session>,
    pub answer: Vec<u8>,
}

enum Socket {
    Stream(TcpStream),
    Datagrams(UdpSocket),
}

impl Socket {
    fn open(transport: Transport, server: SocketAddr) -> Self {
        match transport {
            Transport::Stream => {
                let stream = TcpStream::connect(server).unwrap();
                stream.set_read_timeout(Some(LOOK_EVERY)).unwrap();
                Self::Stream(stream)
            }
            Transport::Datagram => {
                let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
                socket.connect(server).unwrap();
                socket.set_read_timeout(Some(LOOK_EVERY)).unwrap();
                Self::Datagrams(socket)
            }
        }
    }

    fn send(&mut self, unit: &[u8]) {
        match self {
            Self::Stream(stream) => stream.write_all(unit).unwrap(),
            Self::Datagrams(socket) => assert_eq!(socket.send(unit).unwrap(), unit.len()),
        }
    }

    /// Receives input; 0 bytes if none arrives within `LOOK_EVERY`.
    fn receive(&mut self, buffer: &mut [u8]) -> usize {
        let received = match self {
            Self::Stream(stream) => stream.read(buffer),
            Self::Datagrams(socket) => socket.recv(buffer),
        };
        match received {
            Ok(bytes) => bytes,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => 0,
            Err(error) => panic!("{error}"),
        }
    }
}

impl Client {
    pub fn new(suite: &Suite, settings: &Settings) -> Self {
        let stack = settings.registry.choose(suite, Side::Client, None).unwrap();
        let identities = settings.identities(suite, stack.as_ref(), stack.as_ref()).unwrap();
        let connector = stack.client(&settings.setup(suite, identities)).unwrap();
        Self { connector, transport: suite.transport() }
    }

    /// A client's first flight.
    pub fn first_flight(&self) -> Vec<u8> {
        let mut flight = Vec::new();
        let mut client = self.connector.connect(None).unwrap();
        assert!(client.poll_transmit(Duration::ZERO, &mut flight));
        flight
    }

    /// Performs a handshake, sends a request, and receives an answer of N bytes.
    pub fn connect(
        &self,
        server: SocketAddr,
        session: Option<Session>,
        request: &[u8],
        answer_bytes: usize,
    ) -> Outcome {
        let mut client = self.connector.connect(session.as_ref()).unwrap();
        let mut socket = Socket::open(self.transport, server);
        let start = Instant::now();
        let mut buffer = vec![0; 65_536];
        let mut negotiated = None;
        let mut answer = Vec::new();
        while answer.len() < answer_bytes || negotiated.is_none() {
            assert!(start.elapsed() < TIMEOUT, "no answer; the client is in state {}", client.state());
            let now = start.elapsed();
            let mut unit = Vec::new();
            while client.poll_transmit(now, &mut unit) {
                socket.send(&unit);
                unit.clear();
            }
            let mut idle = true;
            while let Some(event) = client.poll_event() {
                idle = false;
                match event {
                    Event::Established(found) => {
                        negotiated = Some(*found);
                        if !request.is_empty() {
                            client.write(now, request).unwrap();
                        }
                    }
                    Event::Data(data) => answer.extend_from_slice(&data),
                    Event::Rejected(failure) => panic!("{failure}"),
                    Event::Closed(reason) => panic!("{reason:?}"),
                }
            }
            if !idle {
                continue;
            }
            let received = socket.receive(&mut buffer);
            let now = start.elapsed();
            if received > 0 {
                client.handle_input(now, &buffer[..received]);
            }
            if client.poll_timeout().is_some_and(|due| due <= now) {
                client.handle_timeout(now);
            }
        }
        let session = client.session();
        client.close(start.elapsed());
        let mut unit = Vec::new();
        while client.poll_transmit(start.elapsed(), &mut unit) {
            socket.send(&unit);
            unit.clear();
        }
        Outcome { negotiated: negotiated.unwrap(), session, answer }
    }
}
