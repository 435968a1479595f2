//! What is reported about a connection.

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
    /// Place among the messages, from 0.
    pub index: usize,
    /// `client` or `server`.
    pub from: &'static str,
    /// RFC name; `Unknown(n)` for a type without one.
    pub name: String,
    /// Which run of messages of one sender, from 1; `None` for what follows its sender's Finished.
    pub flight: Option<u32>,
    /// On the wire: record headers, padding, MAC or tag included.
    pub bytes: u64,
    /// When its last byte passed (all before it being there), since the connection began.
    pub time_s: f64,
    /// Since the message before it (for the first: since the connection began).
    pub wait_s: f64,
    /// Of the wait, what the sender of this message took; see [`crate::inspect`].
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

/// Handshake records that could not be decrypted, and so are not among the messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Encrypted {
    /// Record headers included.
    pub bytes: u64,
    pub records: usize,
    /// When the first began, since the connection began.
    pub from_s: Option<f64>,
    /// When the last ended.
    pub to_s: Option<f64>,
}

/// What a direction's segments or datagrams went through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Retransmissions {
    /// Segments (datagrams' records) seen again, or filling a hole late.
    pub segments: u64,
    /// Their bytes that had been seen, or passed over, before.
    pub bytes: u64,
    /// Segments overtaken by later ones, without having been sent again.
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
    /// `warning` or `fatal`; `None` where it is encrypted.
    pub level: Option<String>,
    /// RFC name; `None` where it is encrypted.
    pub description: Option<String>,
    /// Since the connection began.
    pub time_s: f64,
}

/// A connection that speaks TLS, DTLS or WTLS.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Connection {
    /// In the order in which they were recognised, from 0.
    pub index: u64,
    /// `tcp` or `udp`.
    pub transport: &'static str,
    pub client: String,
    pub server: String,
    pub server_name: Option<String>,
    /// `ssl3` to `tls1.3`, `dtls1.0` to `dtls1.3`, `wtls`; `None` where no ServerHello was seen.
    pub protocol: Option<&'static str>,
    /// Registered name of the cipher suite.
    pub cipher: Option<String>,
    /// Canonical suite name, where everything it says was visible.
    pub suite: Option<String>,
    /// When it began, since the first packet of the capture.
    pub start_s: f64,
    /// The same since 1970-01-01 00:00 UTC.
    pub start_unix_s: f64,
    /// From its beginning to the last message of the last flight.
    pub handshake_s: Option<f64>,
    /// Whether an earlier session was resumed; `None` if unknown.
    pub resumed: Option<bool>,
    /// Whether both sides finished.
    pub complete: bool,
    /// In the order in which they were sent.
    pub messages: Vec<Message>,
    /// Runs of messages of one sender.
    pub flights: u32,
    /// Handshake bytes, the sum of the messages.
    pub bytes: Bytes,
    /// Handshake records that stayed encrypted.
    pub encrypted: Directions<Encrypted>,
    /// Records of application data, headers included.
    pub application_data_bytes: Directions<u64>,
    pub alerts: Vec<Alert>,
    /// What was sent more than once.
    pub retransmissions: Directions<Retransmissions>,
    /// What is not in the capture.
    pub gaps: Directions<Gaps>,
    /// What the network takes on either side.
    pub round_trip: RoundTrip,
    /// What a reader should know before believing the figures.
    pub problems: Vec<String>,
}

impl Connection {
    /// True where any part of a handshake was seen.
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
    /// TCP connections and UDP exchanges that speak something else.
    pub other_flows: u64,
    /// Packets without TCP or UDP, or too damaged to read.
    pub other_packets: u64,
    /// Packets of tunnels and protocols that may have handshakes inside and are not decoded, by name.
    pub unread: BTreeMap<&'static str, u64>,
    /// Connections reported before their end, for want of memory.
    pub evicted: u64,
    /// Fragmented packets of which a piece is missing.
    pub incomplete_fragments: u64,
    /// What a reader should know before believing the figures.
    pub problems: Vec<String>,
}
