//! Recorded handshakes: messages in order, with the processing times of their senders and receivers.

use serde::{Deserialize, Serialize};
use shakedown_link::{
    BearerSpec, Direction, Distribution, DistributionError, DistributionSpec, MAX_SECONDS, Ns, SuperPackets,
};

/// The sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sender {
    /// The end that sends first.
    Client,
    /// The end that answers.
    Server,
}

impl Sender {
    /// The direction of its messages.
    #[must_use]
    pub fn direction(self) -> Direction {
        match self {
            Self::Client => Direction::Up,
            Self::Server => Direction::Down,
        }
    }
}

/// The transport of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TransportKind {
    /// TCP.
    Stream,
    /// UDP, with the protocol's own retransmission.
    Datagram,
    /// None: bytes are sent over the links unsegmented and without headers, and lost bytes are not sent again.
    Ideal,
}

/// The retransmission of a protocol over datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retransmission {
    /// The first timeout, which doubles.
    pub initial_s: f64,
    /// The maximum timeout.
    pub maximum_s: f64,
    /// The maximum number of times that a flight is sent, including the first.
    pub sends: u32,
    /// The server has a timer too, not only the client.
    pub server_timer: bool,
    /// A side without a timer answers a repeated flight at once by sending its own again, even if that is not the last
    /// flight of the handshake.
    pub answers_duplicates: bool,
    /// Bytes that each division of a record adds (record and handshake headers); `None`: records are not divided, and
    /// IP fragments long datagrams.
    pub fragment_bytes: Option<u32>,
}

impl Retransmission {
    /// DTLS 1.2 as in OpenSSL (RFC 6347, 4.2.4): 1 s doubling to 60 s, both sides, sent thirteen times.
    pub const DTLS: Self = Self {
        initial_s: 1.0,
        maximum_s: 60.0,
        sends: 13,
        server_timer: true,
        answers_duplicates: false,
        fragment_bytes: Some(25),
    };
}

/// A message and its costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessageSpec {
    /// Its sender.
    pub from: Sender,
    /// Its RFC name.
    pub name: String,
    /// Its bytes, with its share of record headers, padding, MAC or tag.
    pub bytes: u32,
    /// The flight that it belongs to.
    pub flight: u32,
    /// The datagram or write that carried it, counted from 1 in its direction.
    #[serde(default)]
    pub unit: u32,
    /// Its sender's time to generate it.
    pub generate: DistributionSpec,
    /// Its receiver's time to process it.
    pub process: DistributionSpec,
}

/// A handshake with its costs on the devices of both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandshakeSpec {
    /// Its name in results: the suite.
    pub name: String,
    /// Its transport.
    pub transport: TransportKind,
    /// In the order in which they are generated.
    pub messages: Vec<MessageSpec>,
    /// The write buffer of a stream's sender: OpenSSL's has 4096 bytes. A full buffer is written to TCP; the rest of a
    /// longer record is written immediately. `None`: a flight is one write.
    #[serde(default)]
    pub write_bytes: Option<u32>,
    /// How flights over datagrams are sent again; `None`: as in DTLS.
    #[serde(default)]
    pub retransmission: Option<Retransmission>,
    /// Power that the client's processor draws while it computes; `None`: unknown.
    #[serde(default)]
    pub client_cpu_w: Option<f64>,
    /// Power that it draws while it waits; `None`: unknown.
    #[serde(default)]
    pub client_idle_w: Option<f64>,
}

/// Why a handshake is invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum HandshakeError {
    #[error("handshake {name} has no messages; accepted: 1 to 10000")]
    Empty { name: String },
    #[error("handshake {name}: message {index} ({message}), {field}: {error}")]
    Distribution {
        name: String,
        index: usize,
        message: String,
        field: &'static str,
        error: DistributionError,
    },
    #[error("handshake {name}: message {index} has {bytes} bytes; accepted: 1 to 16777216")]
    Bytes { name: String, index: usize, bytes: u32 },
    #[error("handshake {name}: one side sends more than 268435456 bytes in all; accepted: up to that")]
    Total { name: String },
    #[error("handshake {name}: the first message is the server's; accepted: the client's")]
    ServerFirst { name: String },
    #[error("handshake {name}: a flight has {count} datagrams; accepted: up to 128")]
    Datagrams { name: String, count: usize },
    #[error("handshake {name}: {field} is {value}; accepted: {accepted}")]
    Value { name: String, field: &'static str, value: f64, accepted: &'static str },
}

/// A message, ready to be replayed.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub from: Direction,
    pub bytes: u32,
    /// Bytes of its direction up to and including it.
    pub end: u32,
    /// Its flight, counted from 0, and the number of datagrams of that flight up to and including its own.
    pub flight: u16,
    pub datagrams: u16,
    /// It is the last of its flight.
    pub ends_flight: bool,
    pub generate: Distribution,
    pub process: Distribution,
}

/// A run of messages of one sender.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub from: Direction,
    pub bytes: u32,
    /// Payload of each datagram.
    pub datagrams: Vec<u32>,
}

/// A handshake, checked and ready to be replayed.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub name: String,
    pub transport: TransportKind,
    pub steps: Vec<Step>,
    pub flights: Vec<Flight>,
    /// The number of steps after which the client may send data.
    pub ready_after: usize,
    pub write_bytes: u32,
    pub super_packets: SuperPackets,
    pub retransmission: Retransmission,
    pub client_cpu_w: Option<f64>,
    pub client_idle_w: Option<f64>,
    /// Headers below the transport: of IP, and of IP with UDP.
    pub ip_bytes: u32,
    pub datagram_header_bytes: u32,
    /// The mean of the server's time for a handshake, and of its square.
    pub server_mean_s: f64,
    pub server_square_s2: f64,
    /// The variant in which the server answers the client's first flight with an alert, if servers refuse so.
    pub refused: Option<Box<Plan>>,
}

impl Plan {
    pub fn new(spec: &HandshakeSpec, bearer: &BearerSpec) -> Result<Self, HandshakeError> {
        let name = || spec.name.clone();
        let Some(first) = spec.messages.first().filter(|_| spec.messages.len() <= 10_000) else {
            return Err(HandshakeError::Empty { name: name() });
        };
        if first.from == Sender::Server {
            return Err(HandshakeError::ServerFirst { name: name() });
        }
        if spec.write_bytes == Some(0) {
            let accepted = "1 or more, or none";
            return Err(HandshakeError::Value { name: name(), field: "write_bytes", value: 0.0, accepted });
        }
        let retransmission = spec.retransmission.unwrap_or(Retransmission::DTLS);
        check_retransmission(spec, &retransmission)?;
        let steps = steps(spec)?;
        let datagram_header_bytes = bearer.ip_bytes + bearer.udp_bytes;
        let room = bearer.mtu_bytes.saturating_sub(datagram_header_bytes).max(1);
        let mut plan = Self {
            name: name(),
            transport: spec.transport,
            flights: flights(&steps),
            ready_after: ready_after(spec),
            write_bytes: spec.write_bytes.unwrap_or(u32::MAX),
            super_packets: bearer.super_packets,
            retransmission,
            client_cpu_w: spec.client_cpu_w,
            client_idle_w: spec.client_idle_w,
            ip_bytes: bearer.ip_bytes,
            datagram_header_bytes,
            server_mean_s: server_mean_s(&steps),
            server_square_s2: server_square_s2(&steps),
            refused: None,
            steps,
        };
        plan.pack(spec, room)?;
        Ok(plan)
    }

    /// Adds the variant in which the server's first answer is an alert.
    pub fn refuse(&mut self) {
        let mut plan = self.clone();
        // The client may have sent all that does not depend on an answer before the server refuses it.
        let unanswered = plan.steps.iter().take_while(|step| step.from == Direction::Up).count();
        plan.steps.truncate(unanswered);
        let flight = plan.steps.last().map_or(0, |step| step.flight + 1);
        plan.flights.truncate(usize::from(flight));
        let nothing = Distribution::constant(Ns::ZERO);
        plan.steps.push(Step {
            from: Direction::Down,
            bytes: ALERT_BYTES,
            end: ALERT_BYTES,
            flight,
            datagrams: 1,
            ends_flight: true,
            generate: nothing.clone(),
            process: nothing,
        });
        plan.flights.push(Flight { from: Direction::Down, bytes: ALERT_BYTES, datagrams: vec![ALERT_BYTES] });
        plan.ready_after = usize::MAX;
        self.refused = Some(Box::new(plan));
    }

    /// True if no work is random.
    pub fn is_constant(&self) -> bool {
        let sides = [Direction::Up, Direction::Down];
        self.steps.iter().all(|step| sides.iter().all(|side| step.constant(*side).is_some()))
    }

    /// Packs the messages of each flight into datagrams: those that shared one still do; long datagrams are divided.
    fn pack(&mut self, spec: &HandshakeSpec, room: u32) -> Result<(), HandshakeError> {
        let mut unit = None;
        for (step, message) in self.steps.iter_mut().zip(&spec.messages) {
            let flight = &mut self.flights[usize::from(step.flight)];
            let shares = unit == Some((step.flight, message.unit)) || message.unit == 0;
            unit = Some((step.flight, message.unit));
            match flight.datagrams.last_mut() {
                Some(last) if shares => *last += step.bytes,
                _ => flight.datagrams.push(step.bytes),
            }
            if let Some(more) = self.retransmission.fragment_bytes {
                while let Some(long) = flight.datagrams.last().copied().filter(|bytes| *bytes > room) {
                    // Each piece has its own headers.
                    let rest = long - room + more.min(room / 2);
                    flight.datagrams.pop();
                    flight.datagrams.extend([room, rest]);
                }
            }
            step.datagrams = flight.datagrams.len() as u16;
            if flight.datagrams.len() > 128 {
                let count = flight.datagrams.len();
                return Err(HandshakeError::Datagrams { name: spec.name.clone(), count });
            }
        }
        Ok(())
    }
}

/// The longest record of TLS, without its header and tag.
const RECORD_BYTES: u32 = 16_384;
/// A TLS alert with its record header.
const ALERT_BYTES: u32 = 5 + 2;

/// The writes to TCP of a TLS library that buffers records: libssl's buffering BIO writes a full buffer, and at once
/// the rest of a record that is longer than the buffer. The remaining bytes are written at the end.
pub fn written(records: impl Iterator<Item = u32>, buffer_bytes: u32, mut write: impl FnMut(u32)) {
    let mut held = 0;
    for mut record in records {
        if record <= buffer_bytes - held {
            held += record;
            continue;
        }
        if held > 0 {
            record -= buffer_bytes - held;
            write(buffer_bytes);
            held = 0;
        }
        if record >= buffer_bytes {
            write(record);
        } else {
            held = record;
        }
    }
    if held > 0 {
        write(held);
    }
}

/// The records of a message.
pub(crate) fn records(bytes: u32) -> impl Iterator<Item = u32> {
    (0..bytes.div_ceil(RECORD_BYTES)).map(move |index| RECORD_BYTES.min(bytes - index * RECORD_BYTES))
}

fn check_retransmission(spec: &HandshakeSpec, policy: &Retransmission) -> Result<(), HandshakeError> {
    let bad = |field, value, accepted| {
        Err(HandshakeError::Value { name: spec.name.clone(), field, value, accepted })
    };
    if !(policy.initial_s > 0.0 && policy.initial_s <= MAX_SECONDS) {
        return bad("retransmission.initial_s", policy.initial_s, "above 0, at most 1e9");
    }
    if !(policy.maximum_s >= policy.initial_s && policy.maximum_s <= MAX_SECONDS) {
        return bad("retransmission.maximum_s", policy.maximum_s, "initial_s to 1e9");
    }
    if policy.sends == 0 {
        return bad("retransmission.sends", 0.0, "1 or more");
    }
    for (field, watts) in [("client_cpu_w", spec.client_cpu_w), ("client_idle_w", spec.client_idle_w)] {
        if let Some(watts) = watts.filter(|watts| !(*watts >= 0.0 && watts.is_finite())) {
            return bad(field, watts, "0 or more");
        }
    }
    Ok(())
}

fn steps(spec: &HandshakeSpec) -> Result<Vec<Step>, HandshakeError> {
    let mut ends = [0_u32; 2];
    let mut flight = 0;
    let mut steps: Vec<Step> = Vec::with_capacity(spec.messages.len());
    let mut before: Option<&MessageSpec> = None;
    for (index, message) in spec.messages.iter().enumerate() {
        if message.bytes == 0 || message.bytes > 1 << 24 {
            return Err(HandshakeError::Bytes { name: spec.name.clone(), index, bytes: message.bytes });
        }
        let distribution = |field, spec_of: &DistributionSpec| {
            Distribution::try_from(spec_of).map_err(|error| HandshakeError::Distribution {
                name: spec.name.clone(),
                index,
                message: message.name.clone(),
                field,
                error,
            })
        };
        if let (Some(before), Some(last)) = (before, steps.last_mut())
            && (before.flight != message.flight || before.from != message.from)
        {
            last.ends_flight = true;
            flight += 1;
        }
        let from = message.from.direction();
        let end = &mut ends[usize::from(from == Direction::Down)];
        *end = end.saturating_add(message.bytes);
        if *end > 1 << 28 {
            return Err(HandshakeError::Total { name: spec.name.clone() });
        }
        steps.push(Step {
            from,
            bytes: message.bytes,
            end: *end,
            flight,
            datagrams: 0,
            ends_flight: index + 1 == spec.messages.len(),
            generate: distribution("generate", &message.generate)?,
            process: distribution("process", &message.process)?,
        });
        before = Some(message);
    }
    Ok(steps)
}

fn flights(steps: &[Step]) -> Vec<Flight> {
    let mut flights: Vec<Flight> = Vec::new();
    for step in steps {
        if flights.len() <= usize::from(step.flight) {
            flights.push(Flight { from: step.from, bytes: 0, datagrams: Vec::new() });
        }
        if let Some(flight) = flights.last_mut() {
            flight.bytes += step.bytes;
        }
    }
    flights
}

/// The client may send data after its last message, when it has processed the server's Finished; it does not wait for
/// later tickets.
fn ready_after(spec: &HandshakeSpec) -> usize {
    let last = |wanted: &dyn Fn(&MessageSpec) -> bool| spec.messages.iter().rposition(wanted);
    let client = last(&|message| message.from == Sender::Client);
    let server = last(&|message| message.from == Sender::Server && message.name == "Finished")
        .or_else(|| last(&|message| message.from == Sender::Server));
    client.max(server).map_or(0, |index| index + 1)
}

fn server_mean_s(steps: &[Step]) -> f64 {
    steps.iter().map(|step| step.cost(Direction::Down).mean_s()).sum()
}

/// Steps are drawn independently, so their variances add.
fn server_square_s2(steps: &[Step]) -> f64 {
    let costs = steps.iter().map(|step| step.cost(Direction::Down));
    let variance_s2: f64 = costs.map(|cost| cost.square_s2() - cost.mean_s() * cost.mean_s()).sum();
    let mean_s = server_mean_s(steps);
    mean_s * mean_s + variance_s2
}

impl Step {
    /// Its cost on a side, which is named by the direction in which it sends.
    #[inline]
    pub fn cost(&self, side: Direction) -> &Distribution {
        if self.from == side { &self.generate } else { &self.process }
    }

    /// Its cost on a side, if this is constant.
    #[inline]
    pub fn constant(&self, side: Direction) -> Option<Ns> {
        self.cost(side).as_constant()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(from: Sender, name: &str, bytes: u32, flight: u32, unit: u32) -> MessageSpec {
        let none = DistributionSpec::Constant { s: 0.0 };
        MessageSpec { from, name: name.into(), bytes, flight, unit, generate: none.clone(), process: none }
    }

    fn ethernet() -> BearerSpec {
        serde_json::from_str(r#"{"up_bits_per_s": null, "down_bits_per_s": null, "traversal_s": 0}"#)
            .expect("a bearer")
    }

    fn handshake(transport: TransportKind, messages: Vec<MessageSpec>) -> HandshakeSpec {
        let name = "test".into();
        HandshakeSpec {
            name,
            transport,
            messages,
            write_bytes: None,
            retransmission: None,
            client_cpu_w: None,
            client_idle_w: None,
        }
    }

    #[test]
    fn full_buffer_is_written_and_the_rest_of_a_long_record_at_once() {
        let writes = |messages: &[u32], buffer| {
            let mut found = Vec::new();
            let all = messages.iter().flat_map(|bytes| records(*bytes));
            written(all, buffer, |bytes| found.push(bytes));
            found
        };
        // A certificate chain of 15 kB: the full buffer with the start of it, and then all of the rest.
        assert_eq!(writes(&[127, 28, 15_000, 101, 74], 4096), [4096, 15_155 - 4096, 175]);
        assert_eq!(writes(&[9_810, 28, 600, 80, 58], 4096), [9_810, 766]);
        assert_eq!(writes(&[4096, 4096], 4096), [4096, 4096]);
        assert_eq!(writes(&[4000, 97, 4096], 4096), [4096, 4096, 1]);
        // Two records; the second is buffered.
        assert_eq!(writes(&[20_000], 4096), [16_384, 3_616]);
        assert_eq!(writes(&[127, 20_000, 5], u32::MAX), [20_132]);
        assert_eq!(writes(&[], 4096), [0; 0]);
    }

    #[test]
    fn client_is_ready_after_its_last_message_and_server_finished() {
        use Sender::{Client, Server};
        let hello = message(Client, "ClientHello", 300, 1, 1);
        let flight = message(Server, "ServerHello", 100, 2, 1);
        let tls13 = vec![
            hello.clone(),
            flight.clone(),
            message(Server, "Finished", 50, 2, 1),
            message(Client, "Finished", 50, 3, 2),
            message(Server, "NewSessionTicket", 200, 4, 2),
        ];
        let full12 = vec![
            hello.clone(),
            flight.clone(),
            message(Client, "Finished", 50, 3, 2),
            message(Server, "NewSessionTicket", 200, 4, 2),
            message(Server, "Finished", 50, 4, 2),
        ];
        let resumed12 =
            vec![hello, flight, message(Server, "Finished", 50, 2, 1), message(Client, "Finished", 50, 3, 2)];
        for (messages, ready) in [(tls13, 4), (full12, 5), (resumed12, 4)] {
            let plan = Plan::new(&handshake(TransportKind::Stream, messages), &ethernet()).expect("valid");
            assert_eq!(plan.ready_after, ready);
        }
    }

    #[test]
    fn datagrams_keep_grouping_and_split_oversized_messages() {
        use Sender::{Client, Server};
        let messages = vec![
            message(Client, "ClientHello", 200, 1, 1),
            message(Server, "ServerHello", 100, 2, 1),
            message(Server, "Certificate", 3000, 2, 2),
            message(Server, "ServerHelloDone", 25, 2, 2),
        ];
        let plan =
            Plan::new(&handshake(TransportKind::Datagram, messages.clone()), &ethernet()).expect("valid");
        // 3000 bytes: 1472, then 1528 + 25 of headers: 1472, then 81 + 25; ServerHelloDone shares the last.
        assert_eq!(plan.flights[1].datagrams, [100, 1472, 1472, 106 + 25]);
        assert_eq!(plan.steps.iter().map(|step| step.datagrams).collect::<Vec<_>>(), [1, 1, 4, 4]);
        let mut whole = handshake(TransportKind::Datagram, messages);
        whole.retransmission = Some(Retransmission { fragment_bytes: None, ..Retransmission::DTLS });
        assert_eq!(Plan::new(&whole, &ethernet()).expect("valid").flights[1].datagrams, [100, 3025]);
    }
}
