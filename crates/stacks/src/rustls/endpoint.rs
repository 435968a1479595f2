//! One rustls connection behind the sans-IO interface.

use super::boundaries::Boundaries;
use super::names;
use super::sessions::OneSession;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};
use shakedown_trace::endpoint::{CloseReason, Event, Session, Time, Transport, WriteError};
use shakedown_trace::suite::Protocol;
use shakedown_trace::{Endpoint, Failure, Side, recorder};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::sync::Arc;

const HEADER: usize = 5;
/// The longest protected record (RFC 5246 section 6.2.3; TLS 1.3 allows less).
const MAX_RECORD: usize = 16_384 + 2_048;

/// The configuration of a connection until its first call, then the connection.
enum Made {
    Client(Arc<ClientConfig>, ServerName<'static>),
    Server(Arc<ServerConfig>),
    Connection(Box<Connection>),
    /// Creating the connection failed.
    Nothing,
}

pub struct RustlsEndpoint {
    side: Side,
    made: Made,
    boundaries: Option<Box<Boundaries>>,
    /// Received bytes of an incomplete record.
    arrived: Vec<u8>,
    events: VecDeque<Event>,
    sessions: Option<Arc<OneSession>>,
    established: bool,
    closed: bool,
}

impl RustlsEndpoint {
    pub fn client(
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        protocol: Protocol,
        sessions: Arc<OneSession>,
    ) -> Self {
        Self { sessions: Some(sessions), ..Self::new(Side::Client, Made::Client(config, name), protocol) }
    }

    pub fn server(config: Arc<ServerConfig>, protocol: Protocol) -> Self {
        Self::new(Side::Server, Made::Server(config), protocol)
    }

    fn new(side: Side, made: Made, protocol: Protocol) -> Self {
        Self {
            side,
            made,
            boundaries: Some(Boundaries::new(side, protocol == Protocol::Tls13)),
            arrived: Vec::new(),
            events: VecDeque::new(),
            sessions: None,
            established: false,
            closed: false,
        }
    }

    /// Runs `work` on the connection, with its boundaries as the thread's current ones.
    fn with<T>(&mut self, work: impl FnOnce(&mut Connection) -> T) -> Option<T> {
        let Self { boundaries, made, .. } = self;
        let connection = match made {
            Made::Connection(connection) => connection,
            _ => return None,
        };
        Some(Boundaries::scope(boundaries, || work(connection)))
    }

    /// Creates the connection if it does not exist, which for a client builds the first flight.
    fn begin(&mut self) {
        let made = match std::mem::replace(&mut self.made, Made::Nothing) {
            Made::Client(config, name) => {
                let made = Boundaries::scope(&mut self.boundaries, || ClientConnection::new(config, name));
                if recorder::is_recording()
                    && let Some(boundaries) = self.boundaries.as_deref_mut()
                {
                    boundaries.hello();
                }
                made.map(Connection::Client)
            }
            Made::Server(config) => ServerConnection::new(config).map(Connection::Server),
            other => {
                self.made = other;
                return;
            }
        };
        match made {
            Ok(mut connection) => {
                connection.set_buffer_limit(None);
                self.made = Made::Connection(Box::new(connection));
            }
            Err(error) => self.fail(&error),
        }
    }

    fn fail(&mut self, error: &rustls::Error) {
        let (state, alert, reason) = (self.state(), names::alert(error), error.to_string());
        self.end(CloseReason::Failed(Failure { side: self.side, state, alert, reason }));
    }

    /// Reports the end of the connection once.
    fn end(&mut self, reason: CloseReason) {
        if !std::mem::replace(&mut self.closed, true) {
            self.events.push_back(Event::Closed(reason));
        }
    }

    /// Processes one record, or bytes that cannot be one.
    fn take(&mut self, record: &[u8]) {
        if recorder::is_recording()
            && let Some(boundaries) = self.boundaries.as_deref_mut()
            && record.len() >= HEADER
        {
            boundaries.record(record[0], &record[HEADER..]);
        }
        let outcome = self.with(|connection| {
            let mut rest = record;
            while !rest.is_empty() {
                // Reading from a slice fails only if rustls's own buffer is full.
                match connection.read_tls(&mut rest) {
                    Ok(0) | Err(_) => break,
                    Ok(_) => {}
                }
                connection.process_new_packets()?;
            }
            connection.process_new_packets()
        });
        match outcome {
            Some(Ok(state)) => {
                self.establish();
                self.read(state.plaintext_bytes_to_read());
                if state.peer_has_closed() {
                    self.end(CloseReason::Peer);
                }
            }
            Some(Err(error)) => self.fail(&error),
            None => {}
        }
    }

    fn establish(&mut self) {
        if self.established {
            return;
        }
        if let Some(Some(negotiated)) = self.with(|connection| names::negotiated(connection)) {
            self.established = true;
            self.events.push_back(Event::Established(Box::new(negotiated)));
        }
    }

    fn read(&mut self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let mut data = vec![0; bytes];
        // The number of bytes that rustls has reported.
        let read =
            self.with(|connection| connection.reader().read(&mut data)).and_then(Result::ok).unwrap_or(0);
        data.truncate(read);
        self.events.push_back(Event::Data(data));
    }
}

impl Endpoint for RustlsEndpoint {
    fn side(&self) -> Side {
        self.side
    }

    fn transport(&self) -> Transport {
        Transport::Stream
    }

    fn handle_input(&mut self, _: Time, bytes: &[u8]) {
        self.begin();
        self.arrived.extend_from_slice(bytes);
        let mut arrived = std::mem::take(&mut self.arrived);
        let mut start = 0;
        while let Some(header) = arrived.get(start..start + HEADER) {
            let length = HEADER + usize::from(u16::from_be_bytes([header[3], header[4]]));
            // Longer than any record, so not a record: rustls reports it with its own alert.
            let length = if length > HEADER + MAX_RECORD { arrived.len() - start } else { length };
            let Some(record) = arrived.get(start..start + length) else { break };
            if self.closed {
                break;
            }
            self.take(record);
            start += length;
        }
        arrived.drain(..start);
        self.arrived = arrived;
    }

    fn handle_close(&mut self, _: Time) {
        self.end(CloseReason::Truncated);
    }

    fn write(&mut self, _: Time, data: &[u8]) -> Result<(), WriteError> {
        let side = self.side;
        if self.closed {
            return Err(WriteError::Closed { side });
        }
        if !self.established {
            return Err(WriteError::NotEstablished { side });
        }
        let refused = |reason: std::io::Error| WriteError::Refused { side, reason: reason.to_string() };
        let written = self.with(|connection| connection.writer().write_all(data));
        written.ok_or(WriteError::Closed { side })?.map_err(refused)
    }

    fn close(&mut self, _: Time) {
        self.with(|connection| connection.send_close_notify());
        self.end(CloseReason::Local);
    }

    fn poll_transmit(&mut self, _: Time, buffer: &mut Vec<u8>) -> bool {
        self.begin();
        let start = buffer.len();
        self.with(|connection| {
            while connection.wants_write() {
                // Writing to memory does not fail.
                if !matches!(connection.write_tls(buffer), Ok(1..)) {
                    break;
                }
            }
        });
        if recorder::is_recording()
            && let Some(boundaries) = self.boundaries.as_deref_mut()
        {
            boundaries.unit(&buffer[start..]);
        }
        buffer.len() > start
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn state(&self) -> String {
        match &self.made {
            Made::Client(..) | Made::Server(_) => "before the handshake".into(),
            Made::Connection(connection) if connection.is_handshaking() => "handshaking".into(),
            Made::Connection(_) => "established".into(),
            Made::Nothing => "not made".into(),
        }
    }

    fn session(&self) -> Option<Session> {
        self.sessions.as_ref().and_then(|sessions| sessions.given()).map(Session::new)
    }

    fn peer_certificates(&self) -> Vec<Vec<u8>> {
        let Made::Connection(connection) = &self.made else { return Vec::new() };
        let chain = connection.peer_certificates().unwrap_or_default();
        chain.iter().map(|certificate| certificate.to_vec()).collect()
    }
}
