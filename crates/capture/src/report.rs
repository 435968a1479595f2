//! The report on a connection and on a whole capture.

use serde::Serialize;
use std::collections::BTreeMap;

/// A figure for each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Directions<T> {
    pub client_to_server: T,
    pub server_to_client: T,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Message {
    /// Index in the list of messages, from 0.
    pub index: usize,
    /// `client` or `server`.
    pub from: &'static str,
    /// RFC name; `Unknown(n)` for a type without one.
    pub name: String,
    /// Number of the flight, from 1; `None` for messages after their sender's Finished.
    pub flight: Option<u32>,
    /// Bytes on the wire, including record headers, padding, and MAC or tag.
    pub bytes: u64,
    /// Time from the start of the connection to the packet that completed the message.
    pub time_s: f64,
    /// Time since the previous message; for the first, since the start of the connection.
    pub wait_s: f64,
    /// Part of the wait that is attributed to the sender; see [`crate::inspect`].
    pub peer_s: Option<f64>,
    pub network_s: Option<f64>,
}

/// Handshake bytes, the sum of the messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Bytes {
    pub client_to_server: u64,
    pub server_to_client: u64,
    pub total: u64,
}

/// Handshake records that could not be decrypted and are therefore not among the messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Encrypted {
    /// Record headers included.
    pub bytes: u64,
    pub records: usize,
    /// Time from the start of the connection to the beginning of the first record.
    pub from_s: Option<f64>,
    /// The same to the end of the last record.
    pub to_s: Option<f64>,
}

/// Retransmissions and reordering in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Retransmissions {
    /// Segments (in datagrams: records) that were seen before, or that fill a gap late.
    pub segments: u64,
    /// Their bytes before the end of the farthest segment seen until then.
    pub bytes: u64,
    /// Segments that arrived after later ones, but were not retransmitted.
    pub out_of_order: u64,
}

/// Bytes that were on the wire and are not in the capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Gaps {
    pub count: u64,
    pub bytes: u64,
}

/// Shortest round trips between the capture point and either end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RoundTrip {
    pub client_side_s: Option<f64>,
    pub server_side_s: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alert {
    /// `client` or `server`.
    pub from: &'static str,
    /// `warning` or `fatal`; `None` if the alert is encrypted.
    pub level: Option<String>,
    /// RFC name; `None` if the alert is encrypted.
    pub description: Option<String>,
    /// Time since the start of the connection.
    pub time_s: f64,
}

/// A connection that speaks TLS, DTLS or WTLS.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Connection {
    /// Number in the order of recognition, from 0.
    pub index: u64,
    /// `tcp` or `udp`.
    pub transport: &'static str,
    pub client: String,
    pub server: String,
    pub server_name: Option<String>,
    /// `ssl3` to `tls1.3`, `dtls1.0` to `dtls1.3`, `wtls`; `None` if no ServerHello was seen.
    pub protocol: Option<&'static str>,
    /// Registered name of the cipher suite.
    pub cipher: Option<String>,
    /// Canonical suite name; `None` if not all its parts were visible.
    pub suite: Option<String>,
    /// Start of the connection, since the first packet of the capture.
    pub start_s: f64,
    /// The same since 1970-01-01 00:00 UTC.
    pub start_unix_s: f64,
    /// Time from the start of the connection to the last message of the last flight.
    pub handshake_s: Option<f64>,
    /// Whether an earlier session was resumed; `None` if unknown.
    pub resumed: Option<bool>,
    /// Whether both sides finished.
    pub complete: bool,
    /// In the order in which they were sent.
    pub messages: Vec<Message>,
    /// Number of flights (runs of messages of one sender).
    pub flights: u32,
    pub bytes: Bytes,
    pub encrypted: Directions<Encrypted>,
    /// Records of application data, headers included.
    pub application_data_bytes: Directions<u64>,
    pub alerts: Vec<Alert>,
    pub retransmissions: Directions<Retransmissions>,
    pub gaps: Directions<Gaps>,
    pub round_trip: RoundTrip,
    /// Remarks that limit the reliability of the figures.
    pub problems: Vec<String>,
}

impl Connection {
    /// True if any part of a handshake was seen.
    pub fn has_handshake(&self) -> bool {
        let undecrypted = self.encrypted.client_to_server.records + self.encrypted.server_to_client.records;
        !self.messages.is_empty() || undecrypted > 0
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    pub packets: u64,
    pub captured_bytes: u64,
    /// From the first packet to the last.
    pub duration_s: f64,
    pub connections: u64,
    pub handshakes: u64,
    /// TCP connections and UDP exchanges of other protocols.
    pub other_flows: u64,
    /// Packets without TCP or UDP, or too damaged to read.
    pub other_packets: u64,
    /// Packets of tunnels and protocols that may contain handshakes but are not decoded, by name.
    pub unread: BTreeMap<&'static str, u64>,
    /// Connections reported before their end because of a limit (memory or number of connections).
    pub evicted: u64,
    /// Fragmented packets with missing fragments.
    pub incomplete_fragments: u64,
    /// Remarks that limit the reliability of the figures.
    pub problems: Vec<String>,
}
