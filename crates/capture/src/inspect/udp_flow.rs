//! Datagrams between two ends.

use super::sessions::Sessions;
use super::summary::{Facts, report_dtls, report_wtls};
use super::table::{Key, PLACE_BYTES};
use crate::dtls::{self, DtlsConnection};
use crate::message::Mark;
use crate::packet::{UdpDatagram, datagram_name};
use crate::report::Connection;
use crate::tls::keylog::KeyLog;
use crate::wtls::{self, WtlsConnection};

/// Number of datagrams of other protocols that are searched for a handshake.
const MAX_TRIED: u32 = 64;

enum Role {
    Open { tried: u32, name: Option<&'static str> },
    Dtls(Box<DtlsConnection>),
    Wtls(Box<WtlsConnection>),
}

/// State of one exchange of datagrams.
pub(super) struct UdpFlow {
    number: u64,
    index: u64,
    first_ns: u64,
    initiator: usize,
    role: Role,
    accounted_bytes: usize,
}

/// True if a datagram begins a handshake.
pub(super) fn begins(datagram: &[u8]) -> bool {
    dtls::begins(datagram) || wtls::begins(datagram)
}

impl UdpFlow {
    pub(super) fn new(number: u64, first_ns: u64, initiator: usize) -> Self {
        Self {
            number,
            index: 0,
            first_ns,
            initiator,
            role: Role::Open { tried: 0, name: None },
            accounted_bytes: 0,
        }
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn index(&self) -> Option<u64> {
        (!matches!(self.role, Role::Open { .. })).then_some(self.index)
    }

    pub(super) fn accounted_bytes(&self) -> usize {
        self.accounted_bytes
    }

    /// Name of the protocol that is not decoded, if it is known.
    pub(super) fn unread(&self) -> Option<&'static str> {
        match self.role {
            Role::Open { name, .. } => name,
            Role::Dtls(_) | Role::Wtls(_) => None,
        }
    }

    /// Computes the memory held, in bytes.
    pub(super) fn account(&mut self) -> usize {
        let role = match &self.role {
            Role::Open { .. } => 0,
            Role::Dtls(connection) => connection.held_bytes() + size_of::<DtlsConnection>(),
            Role::Wtls(connection) => connection.held_bytes() + size_of::<WtlsConnection>(),
        };
        self.accounted_bytes = PLACE_BYTES + size_of::<Self>() + role;
        self.accounted_bytes
    }

    /// True if a datagram begins another handshake between the same ends.
    pub(super) fn is_another(&self, datagram: &[u8]) -> bool {
        match &self.role {
            Role::Open { .. } => false,
            Role::Dtls(connection) => connection.is_another(datagram),
            Role::Wtls(connection) => connection.is_another(datagram),
        }
    }

    pub(super) fn datagram(
        &mut self,
        direction: usize,
        datagram: &UdpDatagram<'_>,
        mark: Mark,
        keys: &KeyLog,
        next_index: &mut u64,
    ) {
        if let Role::Open { tried, name } = &mut self.role {
            if *tried >= MAX_TRIED {
                return;
            }
            *tried += 1;
            if dtls::begins(datagram.payload) {
                self.role = Role::Dtls(Box::new(DtlsConnection::new()));
            } else if wtls::begins(datagram.payload) {
                self.role = Role::Wtls(Box::default());
            } else {
                *name = name.or_else(|| datagram_name(datagram));
                return;
            }
            self.index = *next_index;
            *next_index += 1;
            // Earlier datagrams between the two ends belong to another protocol.
            self.first_ns = mark.time_ns;
            self.initiator = direction;
        }
        let missing = datagram.payload_bytes.saturating_sub(datagram.payload.len());
        match &mut self.role {
            Role::Dtls(connection) => connection.read(keys, direction, datagram.payload, missing, mark),
            Role::Wtls(connection) => connection.read(direction, datagram.payload, missing, mark),
            Role::Open { .. } => {}
        }
    }

    /// Determines the suite of a handshake that is over, and frees the data used for it.
    pub(super) fn settle(&mut self, key: &Key, sessions: &mut Sessions) {
        match &mut self.role {
            Role::Dtls(connection) if connection.wants_settling() => {
                if let Some(client) = connection.negotiation.client {
                    sessions.settle(&mut connection.negotiation, &connection.seen, client);
                }
            }
            Role::Wtls(connection) if !connection.settled && connection.is_over() => {
                if let Some(client) = connection.client {
                    sessions.settle_wtls(connection, client, key.ends[1 - client]);
                }
            }
            _ => {}
        }
    }

    /// True once [`Self::settle`] has processed the handshake.
    pub(super) fn is_settled(&self) -> bool {
        match &self.role {
            Role::Open { .. } => false,
            Role::Dtls(connection) => connection.negotiation.settled,
            Role::Wtls(connection) => connection.settled,
        }
    }

    /// The connection, if it speaks DTLS or WTLS.
    pub(super) fn emit(
        self,
        key: &Key,
        capture_start_ns: u64,
        evicted: bool,
        sessions: &mut Sessions,
    ) -> Option<Connection> {
        let facts = |counts| Facts {
            index: self.index,
            transport: "udp",
            ends: key.ends,
            first_ns: self.first_ns,
            capture_start_ns,
            initiator: Some(self.initiator),
            counts,
            round_trip_ns: [None; 2],
            halves: None,
            evicted,
        };
        match self.role {
            Role::Open { .. } => None,
            Role::Dtls(mut connection) => {
                connection.end();
                let counts = connection.directions.each_ref().map(|direction| direction.counts);
                Some(report_dtls(*connection, &facts(counts), sessions))
            }
            Role::Wtls(connection) => {
                let counts = connection.directions.each_ref().map(|direction| direction.counts);
                Some(report_wtls(*connection, &facts(counts), sessions))
            }
        }
    }
}
