//! A TCP connection of the capture.

use super::sessions::Sessions;
use super::sniff::{Sniffer, Verdict};
use super::summary::{Facts, report_tls};
use super::table::{Key, PLACE_BYTES};
use crate::file::RawPacket;
use crate::message::Mark;
use crate::packet::TcpSegment;
use crate::report::Connection;
use crate::tcp::{HalfStream, Payload, Sink};
use crate::tls::keylog::KeyLog;
use crate::tls::{Input, Piece, TlsConnection};

/// The protocol of the stream, as far as it is known.
enum Role {
    Open(Sniffer),
    Tls(Box<TlsConnection>),
    Other,
}

/// Round trips between the capture point and the end that receives a direction.
#[derive(Clone, Copy, Debug, Default)]
struct RoundTrip {
    /// End offset and time of bytes that were sent and not yet acknowledged.
    pending: Option<(u64, u64)>,
    shortest_ns: Option<u64>,
}

impl RoundTrip {
    fn acknowledged(&mut self, offset: u64, now_ns: u64) {
        if let Some((end, sent_ns)) = self.pending
            && offset >= end
        {
            self.pending = None;
            let sample = now_ns.saturating_sub(sent_ns);
            self.shortest_ns = Some(self.shortest_ns.map_or(sample, |shortest| shortest.min(sample)));
        }
    }
}

/// A segment and its context.
#[derive(Clone, Copy)]
pub(super) struct Arrival<'a> {
    /// 0 or 1: which end sends it.
    pub direction: usize,
    pub segment: &'a TcpSegment<'a>,
    pub raw: &'a RawPacket<'a>,
    pub keys: &'a KeyLog,
    /// Limit of held bytes of out-of-order segments.
    pub room: usize,
}

/// State of one connection.
pub(super) struct TcpFlow {
    number: u64,
    index: u64,
    first_ns: u64,
    last_ns: u64,
    halves: [HalfStream; 2],
    role: Role,
    /// Which direction opened the connection.
    initiator: Option<usize>,
    round_trips: [RoundTrip; 2],
    reset: bool,
    /// Time at which the connection ended, if it has ended.
    over_since_ns: Option<u64>,
    accounted_bytes: usize,
}

impl TcpFlow {
    /// `midstream`: the opening is not in the capture.
    pub(super) fn new(number: u64, first_ns: u64, midstream: bool) -> Self {
        Self {
            number,
            index: 0,
            first_ns,
            last_ns: first_ns,
            halves: Default::default(),
            role: Role::Open(Sniffer::new(midstream)),
            initiator: None,
            round_trips: Default::default(),
            reset: false,
            over_since_ns: None,
            accounted_bytes: 0,
        }
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn index(&self) -> Option<u64> {
        matches!(self.role, Role::Tls(_)).then_some(self.index)
    }

    pub(super) fn accounted_bytes(&self) -> usize {
        self.accounted_bytes
    }

    /// Computes the memory held, in bytes.
    pub(super) fn account(&mut self) -> usize {
        let role = match &self.role {
            Role::Open(sniffer) => sniffer.held_bytes(),
            Role::Tls(connection) => connection.held_bytes() + size_of::<TlsConnection>(),
            Role::Other => 0,
        };
        let halves = self.halves.iter().map(HalfStream::held_bytes).sum::<usize>();
        self.accounted_bytes = PLACE_BYTES + size_of::<Self>() + role + halves;
        self.accounted_bytes
    }

    /// True once both sides have closed, or one has reset.
    pub(super) fn is_over(&self) -> bool {
        self.reset || self.halves.iter().all(HalfStream::is_complete)
    }

    /// Time at which the connection ended, if it has ended.
    pub(super) fn over_since_ns(&self) -> Option<u64> {
        self.over_since_ns
    }

    /// True if the receiver accepts a reset (RFC 9293 sections 3.5.3 and 3.10.7.3): by its acknowledgement if it
    /// responds to a SYN, otherwise by its sequence number.
    fn believes_reset(&self, direction: usize, segment: &TcpSegment<'_>) -> bool {
        let (half, peer) = (&self.halves[direction], &self.halves[1 - direction]);
        if matches!(self.role, Role::Other) {
            return true;
        }
        if half.is_placed() {
            return half.expects(segment.sequence);
        }
        segment.acknowledgement.is_some_and(|acknowledgement| peer.has_sent(acknowledgement))
    }

    /// True if a segment opens another connection between the same ends.
    pub(super) fn is_another(&self, direction: usize, segment: &TcpSegment<'_>) -> bool {
        let opens = segment.syn && segment.acknowledgement.is_none();
        // No sequence numbers are kept for streams of other protocols.
        opens
            && (matches!(self.role, Role::Other)
                || self.halves[direction].contradicts_start(segment.sequence))
    }

    /// Processes a segment; a connection that is recognised as TLS gets the next index.
    pub(super) fn segment(&mut self, arrival: Arrival<'_>, next_index: &mut u64) {
        let Arrival { direction, segment, raw, .. } = arrival;
        let was_over = self.is_over();
        self.last_ns = self.last_ns.max(raw.time_ns);
        if segment.reset {
            // The payload of a reset is not part of the stream.
            self.reset |= self.believes_reset(direction, segment);
        } else {
            self.follow(arrival, next_index);
        }
        match (was_over, self.is_over()) {
            (false, true) => self.over_since_ns = Some(raw.time_ns),
            (true, false) => self.over_since_ns = None,
            _ => {}
        }
    }

    /// Processes a segment that is not a reset.
    fn follow(&mut self, arrival: Arrival<'_>, next_index: &mut u64) {
        let Arrival { direction, segment, raw, keys, room } = arrival;
        let peer = 1 - direction;
        let repeated_syn = segment.syn && self.halves[direction].is_placed();
        let first = segment.sequence.wrapping_add(u32::from(segment.syn));
        if segment.syn {
            self.halves[direction].place_opening(first);
        } else {
            self.halves[direction].place(first);
        }
        if segment.syn {
            self.initiator =
                self.initiator.or(Some(if segment.acknowledgement.is_some() { peer } else { direction }));
            // After a SYN, the reset was not accepted, or the connection is opened again with the same number.
            self.reset = false;
            // After a repeated SYN, it is unknown to which one a response belongs.
            self.round_trips[direction].pending = (!repeated_syn).then_some((0, raw.time_ns));
        }
        let mut peer_acknowledged = 0;
        if let Some(acknowledgement) = segment.acknowledgement {
            self.halves[peer].place(acknowledgement);
            peer_acknowledged = self.halves[peer].acknowledge(acknowledgement);
            self.round_trips[peer].acknowledged(peer_acknowledged, raw.time_ns);
        }
        let mark = Mark { packet: raw.number, time_ns: raw.time_ns, peer_acknowledged };
        if matches!(self.role, Role::Other) {
            self.reset |= segment.fin;
            return;
        }
        let payload = Payload {
            sequence: first,
            captured: segment.payload,
            length: segment.payload_bytes,
            fin: segment.fin,
        };
        let (role, index) = (&mut self.role, &mut self.index);
        let mut stream = Stream { role, direction, keys, index, next_index };
        let fresh = self.halves[direction].segment(payload, mark, room, &mut stream);
        // New data shows that the reset did not arrive, or belonged to another connection.
        self.reset &= !fresh;
        if segment.payload_bytes > 0 {
            let round_trip = &mut self.round_trips[direction];
            if !fresh {
                round_trip.pending = None;
            } else if round_trip.pending.is_none() {
                round_trip.pending = Some((self.halves[direction].highest(), raw.time_ns));
            }
        }
        if matches!(self.role, Role::Other) {
            self.halves = Default::default();
        }
    }

    /// Determines the suite of a handshake that is over, and frees the data used for it.
    pub(super) fn settle(&mut self, sessions: &mut Sessions) {
        if let Role::Tls(connection) = &mut self.role
            && connection.wants_settling()
            && let Some(client) = connection.negotiation.client
        {
            sessions.settle(&mut connection.negotiation, &connection.seen, client);
        }
    }

    /// True once [`Self::settle`] has processed the handshake.
    pub(super) fn is_settled(&self) -> bool {
        matches!(&self.role, Role::Tls(connection) if connection.negotiation.settled)
    }

    /// The connection, if it speaks TLS.
    pub(super) fn emit(
        mut self,
        key: &Key,
        keys: &KeyLog,
        capture_start_ns: u64,
        evicted: bool,
        next_index: &mut u64,
        sessions: &mut Sessions,
    ) -> Option<Connection> {
        for direction in 0..2 {
            let (role, index) = (&mut self.role, &mut self.index);
            let mut stream = Stream { role, direction, keys, index, next_index: &mut *next_index };
            let mark = Mark { packet: u64::MAX, time_ns: self.last_ns, peer_acknowledged: 0 };
            self.halves[direction].finish(mark, &mut stream);
        }
        let Role::Tls(mut connection) = self.role else { return None };
        connection.end(keys);
        let facts = Facts {
            index: self.index,
            transport: "tcp",
            ends: key.ends,
            first_ns: self.first_ns,
            capture_start_ns,
            initiator: self.initiator,
            counts: [self.halves[0].counts, self.halves[1].counts],
            round_trip_ns: self.round_trips.map(|round_trip| round_trip.shortest_ns),
            halves: Some(&self.halves),
            evicted,
        };
        Some(report_tls(*connection, &facts, sessions))
    }
}

/// Passes the stream of one direction to its reader.
struct Stream<'a> {
    role: &'a mut Role,
    direction: usize,
    keys: &'a KeyLog,
    index: &'a mut u64,
    next_index: &'a mut u64,
}

impl Sink for Stream<'_> {
    fn bytes(&mut self, offset: u64, bytes: &[u8], mark: Mark) {
        match self.role {
            Role::Tls(connection) => {
                connection.read(
                    self.keys,
                    self.direction,
                    Input { piece: Piece::Bytes(bytes), mark, offset },
                );
            }
            Role::Open(sniffer) => match sniffer.bytes(self.direction, offset, bytes, mark) {
                Verdict::Open => {}
                Verdict::Other => *self.role = Role::Other,
                Verdict::Tls { chunks, begun, remarks } => {
                    *self.index = *self.next_index;
                    *self.next_index += 1;
                    let mut connection = Box::new(TlsConnection::new(begun));
                    for remark in remarks {
                        connection.problems.add(remark);
                    }
                    for chunk in chunks {
                        let input = Input {
                            piece: Piece::Bytes(&chunk.bytes),
                            mark: chunk.mark,
                            offset: chunk.offset,
                        };
                        connection.read(self.keys, chunk.direction, input);
                    }
                    *self.role = Role::Tls(connection);
                }
            },
            Role::Other => {}
        }
    }

    fn missing(&mut self, offset: u64, count: u64, mark: Mark) {
        match self.role {
            Role::Tls(connection) => {
                connection.read(
                    self.keys,
                    self.direction,
                    Input { piece: Piece::Missing(count), mark, offset },
                );
            }
            Role::Open(sniffer) => sniffer.missing(self.direction, count),
            Role::Other => {}
        }
    }
}
