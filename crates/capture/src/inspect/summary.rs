//! Builds the report on a connection from its captured messages.

use super::seconds;
use super::sessions::Sessions;
use crate::dtls::DtlsConnection;
use crate::message::{Mark, Name, Seen, SeenAlert, Span, in_order};
use crate::packet::Endpoint;
use crate::report::{
    Alert, Bytes, Connection, Directions, Encrypted, Gaps, Message, Retransmissions, RoundTrip,
};
use crate::tcp::{Counts, HalfStream};
use crate::tls::{Negotiation, TlsConnection, Undecrypted, alert, cipher_suite, protocol_name};
use crate::wtls::{self, WtlsConnection};
use shakedown_trace::{MessageName, Side};

/// Facts about a connection that do not depend on the protocol. Arrays are by direction of the flow's key.
pub(super) struct Facts<'a> {
    pub(super) index: u64,
    pub(super) transport: &'static str,
    pub(super) ends: [Endpoint; 2],
    pub(super) first_ns: u64,
    pub(super) capture_start_ns: u64,
    /// Which direction opened the connection.
    pub(super) initiator: Option<usize>,
    pub(super) counts: [Counts; 2],
    /// Shortest round trip between the capture point and the end that receives a direction.
    pub(super) round_trip_ns: [Option<u64>; 2],
    /// The TCP streams, with the times of retransmissions.
    pub(super) halves: Option<&'a [HalfStream; 2]>,
    pub(super) evicted: bool,
}

impl Facts<'_> {
    /// The client's direction, if the messages do not show it.
    pub(super) fn guess_client(&self) -> usize {
        // A server listens on the lower port.
        self.initiator.unwrap_or(usize::from(self.ends[0].port < self.ends[1].port))
    }

    fn since_start_s(&self, time_ns: u64) -> f64 {
        seconds(time_ns.saturating_sub(self.first_ns))
    }

    /// The part of a message's wait that is attributed to the network, if it can be determined.
    fn network_ns(&self, previous: Option<&Seen>, message: &Seen) -> Option<u64> {
        let answered = 1 - message.direction;
        match previous {
            None => {
                self.initiator?;
                Some(self.round_trip_ns[0]?.saturating_add(self.round_trip_ns[1]?))
            }
            Some(previous) if previous.direction != message.direction => {
                let round_trip = self.round_trip_ns[answered]?;
                let repeated = self.halves?[answered].repeated_ns(previous.span.end_offset);
                let lost = repeated
                    .filter(|&at| at > previous.span.end.time_ns && at < message.span.start.time_ns)
                    .map_or(0, |at| at - previous.span.end.time_ns);
                Some(round_trip.saturating_add(lost))
            }
            Some(_) => None,
        }
    }

    /// Messages in the order in which they were sent, with flights and waits.
    fn messages(&self, seen: &[Seen], client: usize) -> (Vec<Message>, u32) {
        let mut flights = 0;
        let mut last_sender = None;
        let mut messages = Vec::with_capacity(seen.len());
        for (index, one) in seen.iter().enumerate() {
            let flight = (!one.after_handshake).then(|| {
                if last_sender.replace(one.direction) != Some(one.direction) {
                    flights += 1;
                }
                flights
            });
            let previous = index.checked_sub(1).map(|before| &seen[before]);
            let since_ns = previous.map_or(self.first_ns, |previous| previous.span.end.time_ns);
            let wait_ns = one.span.end.time_ns.saturating_sub(since_ns);
            let network_ns = self.network_ns(previous, one).map(|network| network.min(wait_ns));
            messages.push(Message {
                index,
                from: side(one.direction, client),
                name: one.name.text(),
                flight,
                bytes: one.bytes,
                time_s: self.since_start_s(one.span.end.time_ns),
                wait_s: seconds(wait_ns),
                peer_s: network_ns.map(|network| seconds(wait_ns - network)),
                network_s: network_ns.map(seconds),
            });
        }
        (messages, flights)
    }

    /// The report without the figures that depend on the protocol, and the messages in the order of sending.
    pub(super) fn connection(&self, mut seen: Vec<Seen>, client: usize) -> (Connection, Vec<Seen>) {
        // Records that had to wait for a hello were added after later ones of their direction.
        seen.sort_by_key(|one| one.span.end_offset);
        let seen = in_order(seen);
        let server = 1 - client;
        let (messages, flights) = self.messages(&seen, client);
        let bytes =
            |direction| seen.iter().filter(|one| one.direction == direction).map(|one| one.bytes).sum();
        let (client_to_server, server_to_client) = (bytes(client), bytes(server));
        let last = seen.iter().filter(|one| !one.after_handshake).map(|one| one.span.end.time_ns).max();
        let counts = [self.counts[client], self.counts[server]];
        let mut problems = Vec::new();
        if self.evicted {
            problems.push(
                "reported before its end: too many connections at a time for the memory limit".to_owned(),
            );
        }
        for (counts, name) in counts.iter().zip([Side::Client, Side::Server]) {
            if counts.stray_segments > 0 {
                problems.push(format!(
                    "segments of the {} that lie outside its stream, as its opening gives it, were not read: {}",
                    name.as_str(),
                    counts.stray_segments
                ));
            }
        }
        let connection = Connection {
            index: self.index,
            transport: self.transport,
            client: self.ends[client].socket_address().to_string(),
            server: self.ends[server].socket_address().to_string(),
            start_s: seconds(self.first_ns.saturating_sub(self.capture_start_ns)),
            start_unix_s: seconds(self.first_ns),
            handshake_s: last.map(|last| self.since_start_s(last)),
            messages,
            flights,
            bytes: Bytes { client_to_server, server_to_client, total: client_to_server + server_to_client },
            retransmissions: directions(counts.map(|counts| Retransmissions {
                segments: counts.retransmitted_segments,
                bytes: counts.retransmitted_bytes,
                out_of_order: counts.out_of_order_segments,
            })),
            gaps: directions(counts.map(|counts| Gaps { count: counts.gaps, bytes: counts.gap_bytes })),
            round_trip: RoundTrip {
                client_side_s: self.round_trip_ns[server].map(seconds),
                server_side_s: self.round_trip_ns[client].map(seconds),
            },
            problems,
            ..Connection::default()
        };
        (connection, seen)
    }

    pub(super) fn alerts(&self, alerts: &[SeenAlert], client: usize) -> Vec<Alert> {
        let alert = |seen: &SeenAlert| Alert {
            from: side(seen.direction, client),
            level: seen.content.map(|(level, _)| alert::level(level)),
            description: seen.content.map(|(_, description)| alert::description(description)),
            time_s: self.since_start_s(seen.time_ns),
        };
        alerts.iter().map(alert).collect()
    }
}

pub(super) fn side(direction: usize, client: usize) -> &'static str {
    if direction == client { Side::Client.as_str() } else { Side::Server.as_str() }
}

pub(super) fn directions<T>([client_to_server, server_to_client]: [T; 2]) -> Directions<T> {
    Directions { client_to_server, server_to_client }
}

/// Adds what was negotiated in TLS or DTLS.
fn describe(described: &mut Connection, negotiation: &Negotiation, seen: &[Seen], server: usize) {
    described.server_name =
        negotiation.client_hello.as_ref().and_then(|hello| hello.server_name.as_deref().map(str::to_owned));
    described.protocol = negotiation.version().and_then(protocol_name);
    described.cipher = negotiation.server_hello.as_ref().map(|hello| cipher_suite::name(hello.cipher_suite));
    described.resumed = is_resumed(negotiation, seen, server);
    described.suite = negotiation.suite.as_ref().map(ToString::to_string);
    described.problems.extend(negotiation.remark.as_deref().map(str::to_owned));
}

pub(super) fn report_tls(
    mut connection: TlsConnection,
    facts: &Facts<'_>,
    sessions: &mut Sessions,
) -> Connection {
    let client = connection.negotiation.client.unwrap_or_else(|| facts.guess_client());
    sessions.settle(&mut connection.negotiation, &connection.seen, client);
    let server = 1 - client;
    let complete = connection.is_over();
    let spans = handshake_spans(&connection, client);
    let TlsConnection { directions: ends, negotiation, mut seen, alerts, mut problems, .. } = connection;
    name_retries(&mut seen, server);
    let (mut described, seen) = facts.connection(seen, client);
    described.alerts = facts.alerts(&alerts, client);
    let encrypted = spans.each_ref().map(|span| encrypted(span, facts));
    let application = |direction: usize, encrypted: Encrypted| {
        let undecrypted: usize = ends[direction].undecrypted.iter().map(|record| record.wire_bytes).sum();
        (ends[direction].application_bytes + undecrypted as u64).saturating_sub(encrypted.bytes)
    };
    described.application_data_bytes =
        directions([application(client, encrypted[0]), application(server, encrypted[1])]);
    described.encrypted = directions(encrypted);
    if ends.iter().any(|end| end.undecrypted_after_handshake > 0) {
        problems.add(
            "encrypted handshake records after the handshake (a renegotiation, perhaps) are not reported",
        );
    }
    describe(&mut described, &negotiation, &seen, server);
    described.complete = complete || (negotiation.is_tls_1_3() && spans.iter().all(|span| !span.is_empty()));
    if let Some(last) = spans.iter().flatten().map(|record| record.span.end.time_ns).max() {
        let last_s = facts.since_start_s(last);
        described.handshake_s = Some(described.handshake_s.map_or(last_s, |other| other.max(last_s)));
    }
    described.problems.extend(problems.into_list());
    described
}

pub(super) fn report_dtls(
    mut connection: DtlsConnection,
    facts: &Facts<'_>,
    sessions: &mut Sessions,
) -> Connection {
    let client = connection.negotiation.client.unwrap_or_else(|| facts.guess_client());
    sessions.settle(&mut connection.negotiation, &connection.seen, client);
    let server = 1 - client;
    let complete = connection.is_over();
    let DtlsConnection { directions: ends, negotiation, seen, alerts, problems, .. } = connection;
    let spans = [client, server].map(|direction| encrypted(&ends[direction].undecrypted, facts));
    let (mut described, seen) = facts.connection(seen, client);
    described.alerts = facts.alerts(&alerts, client);
    described.complete = complete || (negotiation.is_tls_1_3() && spans.iter().all(|span| span.records > 0));
    described.encrypted = directions(spans);
    described.application_data_bytes =
        directions([client, server].map(|direction| ends[direction].application_bytes));
    describe(&mut described, &negotiation, &seen, server);
    described.problems.extend(problems.into_list());
    described
}

pub(super) fn report_wtls(
    mut connection: WtlsConnection,
    facts: &Facts<'_>,
    sessions: &mut Sessions,
) -> Connection {
    let client = connection.client.unwrap_or_else(|| facts.guess_client());
    let server = 1 - client;
    sessions.settle_wtls(&mut connection, client, facts.ends[server]);
    let (cipher, resumed, complete) = (connection.cipher(), connection.is_resumed(), connection.is_over());
    let WtlsConnection { directions: ends, server_hello, seen, alerts, problems, suite, .. } = connection;
    let (mut described, _) = facts.connection(seen, client);
    described.protocol = server_hello.map(|_| "wtls");
    described.cipher = cipher.map(|cipher| cipher.name().to_owned());
    described.resumed = resumed;
    described.suite = suite.map(|suite| suite.to_string());
    described.complete = complete;
    described.application_data_bytes =
        directions([client, server].map(|direction| ends[direction].application_bytes));
    described.alerts = alerts
        .iter()
        .map(|alert| Alert {
            from: side(alert.direction, client),
            level: alert.content.map(|(level, _)| wtls::alert_level(level)),
            description: alert.content.map(|(_, description)| wtls::alert_description(description)),
            time_s: facts.since_start_s(alert.time_ns),
        })
        .collect();
    described.problems.extend(problems.into_list());
    described
}

/// Whether an earlier session was resumed. Up to TLS 1.2, a server that resumes sends neither Certificate nor
/// ServerHelloDone before its ChangeCipherSpec.
pub(super) fn is_resumed(negotiation: &Negotiation, seen: &[Seen], server: usize) -> Option<bool> {
    let hello = negotiation.server_hello.as_ref()?;
    if negotiation.is_tls_1_3() {
        return Some(hello.pre_shared_key);
    }
    let sent = |name| {
        let is_it = |one: &Seen| one.direction == server && one.name == Name::Known(name);
        seen.iter().any(|one| is_it(one) && !one.after_handshake)
    };
    if sent(MessageName::ServerHelloDone) || sent(MessageName::Certificate) {
        return Some(false);
    }
    (sent(MessageName::ChangeCipherSpec) && sent(MessageName::ServerHello)).then_some(true)
}

/// Of two ServerHellos, the first is a HelloRetryRequest, even if its content was not captured.
fn name_retries(seen: &mut [Seen], server: usize) {
    let hello = Name::Known(MessageName::ServerHello);
    let is_hello = |one: &Seen| one.direction == server && one.name == hello && !one.after_handshake;
    let Some(last) = seen.iter().rposition(is_hello) else { return };
    for one in seen[..last].iter_mut().filter(|one| is_hello(one)) {
        one.name = Name::Known(MessageName::HelloRetryRequest);
    }
}

/// The undecrypted TLS 1.3 records that belong to the handshake, of client and server. The server's are those before
/// the client's first; the client's are those up to the first with the size of Finished, or else only the first.
fn handshake_spans(connection: &TlsConnection, client: usize) -> [Vec<Undecrypted>; 2] {
    if !connection.negotiation.is_tls_1_3() {
        return [Vec::new(), Vec::new()];
    }
    let cipher_suite = connection.negotiation.server_hello.as_ref().map_or(0, |hello| hello.cipher_suite);
    let finished_bytes = cipher_suite::protection(cipher_suite).map(|protection| {
        // Record header, message header, verify data, content type, tag.
        5 + 4 + protection.derivation.bytes() + 1 + protection.tag_bytes()
    });
    let ends = &connection.directions;
    let (from_client, from_server) = (&ends[client].undecrypted, &ends[1 - client].undecrypted);
    let early = connection.negotiation.client_hello.as_ref().is_some_and(|hello| hello.early_data);
    let hello_packet =
        connection.seen.iter().find(|one| one.direction != client).map(|one| one.span.end.packet);
    // Early data goes before the ServerHello.
    let is_early =
        |record: &&Undecrypted| early && hello_packet.is_some_and(|packet| record.span.end.packet < packet);
    let from_client: Vec<Undecrypted> = from_client.iter().skip_while(is_early).copied().collect();
    let before = |record: &&Undecrypted, first: Mark| {
        let Span { end, end_offset, .. } = record.span;
        end.packet < first.packet || (end_offset > 0 && end_offset <= first.peer_acknowledged)
    };
    let server = match from_client.first() {
        Some(first) => {
            from_server.iter().take_while(|record| before(record, first.span.start)).copied().collect()
        }
        // The client never answered: an alert, or the end of the capture.
        None => from_server.clone(),
    };
    let length =
        from_client.iter().position(|record| Some(record.wire_bytes) == finished_bytes).unwrap_or(0) + 1;
    let client = from_client.into_iter().take(length).collect();
    [client, server]
}

fn encrypted(span: &[Undecrypted], facts: &Facts<'_>) -> Encrypted {
    Encrypted {
        bytes: span.iter().map(|record| record.wire_bytes as u64).sum(),
        records: span.len(),
        from_s: span.first().map(|record| facts.since_start_s(record.span.start.time_ns)),
        to_s: span.last().map(|record| facts.since_start_s(record.span.end.time_ns)),
    }
}
