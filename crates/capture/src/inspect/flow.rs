//! A flow of either transport.

use super::sessions::Sessions;
use super::table::{Key, PLACE_BYTES};
use super::tcp_flow::TcpFlow;
use super::udp_flow::UdpFlow;
use crate::report::Connection;
use crate::tls::keylog::KeyLog;

/// The state of one pair of ends.
pub(super) enum Flow {
    Tcp(Box<TcpFlow>),
    Udp(Box<UdpFlow>),
    /// Evicted; its packets are skipped until a new connection begins.
    Evicted {
        number: u64,
    },
}

impl Flow {
    /// Distinguishes this flow from others between the same ends.
    pub(super) fn number(&self) -> u64 {
        match self {
            Self::Tcp(flow) => flow.number(),
            Self::Udp(flow) => flow.number(),
            Self::Evicted { number } => *number,
        }
    }

    /// The index of the connection, if its protocol was recognised.
    pub(super) fn index(&self) -> Option<u64> {
        match self {
            Self::Tcp(flow) => flow.index(),
            Self::Udp(flow) => flow.index(),
            Self::Evicted { .. } => None,
        }
    }

    /// True if this flow has that number and was not emitted yet.
    pub(super) fn is_live(&self, number: u64) -> bool {
        !matches!(self, Self::Evicted { .. }) && self.number() == number
    }

    pub(super) fn accounted_bytes(&self) -> usize {
        match self {
            Self::Tcp(flow) => flow.accounted_bytes(),
            Self::Udp(flow) => flow.accounted_bytes(),
            Self::Evicted { .. } => PLACE_BYTES,
        }
    }

    /// The connection, if it speaks TLS, DTLS or WTLS.
    pub(super) fn emit(
        self,
        key: &Key,
        keys: &KeyLog,
        capture_start_ns: u64,
        evicted: bool,
        next_index: &mut u64,
        sessions: &mut Sessions,
    ) -> Option<Connection> {
        match self {
            Self::Tcp(flow) => flow.emit(key, keys, capture_start_ns, evicted, next_index, sessions),
            Self::Udp(flow) => flow.emit(key, capture_start_ns, evicted, sessions),
            Self::Evicted { .. } => None,
        }
    }
}
