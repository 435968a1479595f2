//! A client, a listener, and a link with a delay between them. No genuine datagram is lost.

use super::*;
use std::collections::VecDeque;

/// The delay of a datagram.
pub const DELAY: Duration = Duration::from_millis(50);

/// The client's address, which attackers know.
pub const CLIENT: u32 = 7;

pub struct Network {
    pub now: Duration,
    pub client: Client<OpenSsl>,
    pub listener: Listener<u32, OpenSsl>,
    pub client_environment: Environment,
    pub server_environment: Environment,
    pub client_events: Vec<Event>,
    pub server_events: Vec<(ConnectionId, Event)>,
    /// Datagrams in transit: time of arrival, whether to the server, and bytes.
    pub on_the_way: VecDeque<(Duration, bool, Vec<u8>)>,
    /// All datagrams between the client's address and the server since this was last emptied, including the
    /// attackers': whether to the server, and bytes.
    pub sent: Vec<(bool, Vec<u8>)>,
}

impl Network {
    pub fn new(
        client: &Arc<ClientConfig<OpenSsl>>,
        server: &Arc<ServerConfig<OpenSsl>>,
        session: Option<Session>,
        limits: Limits,
        seed: u64,
    ) -> Self {
        let now = Duration::from_secs(10);
        let mut client_environment = Environment::new(2 * seed + 1);
        let client = Client::new(Arc::clone(client), session, &mut client_environment.cx(now));
        let mut network = Self {
            now,
            client,
            listener: Listener::new(Arc::clone(server), limits),
            client_environment,
            server_environment: Environment::new(2 * seed + 2),
            client_events: Vec::new(),
            server_events: Vec::new(),
            on_the_way: VecDeque::new(),
            sent: Vec::new(),
        };
        network.collect();
        network
    }

    /// Sends the datagrams of both sides, and records their events.
    pub fn collect(&mut self) {
        let arrival = self.now + DELAY;
        while let Some(datagram) = self.client.poll_transmit() {
            self.sent.push((true, datagram.clone()));
            self.on_the_way.push_back((arrival, true, datagram));
        }
        while let Some((to, datagram)) = self.listener.poll_transmit() {
            assert_eq!(to, CLIENT);
            self.sent.push((false, datagram.clone()));
            self.on_the_way.push_back((arrival, false, datagram));
        }
        self.client_events.extend(std::iter::from_fn(|| self.client.poll_event()));
        let events = std::iter::from_fn(|| self.listener.poll_event());
        self.server_events.extend(events.map(|found| (found.connection, found.event)));
    }

    /// Delivers a datagram to the server or the client, independent of its sender.
    pub fn deliver(&mut self, to_server: bool, datagram: &[u8]) {
        if to_server {
            self.listener.handle_input(&mut self.server_environment.cx(self.now), CLIENT, datagram);
        } else {
            self.client.handle_input(&mut self.client_environment.cx(self.now), datagram);
        }
        self.collect();
    }

    /// Processes the next arrival or timeout that is due by `until`. Returns whether there was one.
    pub fn step(&mut self, until: Duration) -> bool {
        let arrival = self.on_the_way.front().map(|(time, ..)| *time);
        let timers = [self.client.poll_timeout(), self.listener.poll_timeout()];
        let Some(next) = timers.into_iter().chain([arrival]).flatten().min() else { return false };
        if next > until {
            return false;
        }
        self.now = self.now.max(next);
        if arrival == Some(next) {
            let (_, to_server, datagram) = self.on_the_way.pop_front().unwrap();
            self.deliver(to_server, &datagram);
        } else {
            self.client.handle_timeout(&mut self.client_environment.cx(self.now));
            self.listener.handle_timeout(&mut self.server_environment.cx(self.now));
            self.collect();
        }
        true
    }

    /// Advances the time, and processes all arrivals and timeouts.
    pub fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while self.step(until) {}
        self.now = until;
    }

    pub fn client_write(&mut self, data: &[u8]) {
        self.client.write(&mut self.client_environment.cx(self.now), data).unwrap();
        self.collect();
    }

    pub fn server_write(&mut self, connection: ConnectionId, data: &[u8]) {
        let cx = &mut self.server_environment.cx(self.now);
        self.listener.write(cx, connection, data).unwrap();
        self.collect();
    }

    /// The server's connection with the client: the one with the same transcript.
    pub fn connection(&self) -> Option<ConnectionId> {
        let transcript = &established(&self.client_events)?.transcript;
        let mut events = self.server_events.iter();
        events.find_map(|(id, event)| match event {
            Event::Established(found) if found.transcript == *transcript => Some(*id),
            _ => None,
        })
    }

    pub fn received(&self, connection: ConnectionId) -> Vec<&[u8]> {
        let events = self.server_events.iter().filter(|(id, _)| *id == connection);
        let data = events.filter_map(|(_, event)| match event {
            Event::Data(data) => Some(data.as_slice()),
            _ => None,
        });
        data.collect()
    }
}

/// A record in clear text.
pub fn plain(content: ContentType, sequence: u16, fragment: &[u8]) -> Vec<u8> {
    let kind = record::RecordType::new(content, false, true, true);
    let mut raw = Vec::new();
    record::write_header(&mut raw, kind, sequence, fragment.len() as u16);
    raw.extend_from_slice(fragment);
    raw
}

/// A record with one handshake message.
pub fn handshake(sequence: u16, kind: HandshakeType, body: &[u8]) -> Vec<u8> {
    let mut message = vec![kind.number()];
    message.extend((body.len() as u16).to_be_bytes());
    message.extend_from_slice(body);
    plain(ContentType::Handshake, sequence, &message)
}

/// An alert in clear text.
pub fn plain_alert(sequence: u16, alert: Alert, checksum: Checksum) -> Vec<u8> {
    let message = codec::Codec::to_bytes(&AlertMessage { alert, checksum }).unwrap();
    plain(ContentType::Alert, sequence, &message)
}

/// A record that looks protected.
pub fn protected(content: ContentType, sequence: u16, fragment: &[u8]) -> Vec<u8> {
    let mut raw = plain(content, sequence, fragment);
    raw[0] |= 0x20;
    raw
}
