//! A flow of either transport.

use super::table::Key;
use super::tcp_flow::TcpFlow;
use super::udp_flow::UdpFlow;
use crate::report::Connection;
use crate::tls::keylog::KeyLog;

/// What is known about one pair of ends.
pub(super) enum Flow {
    Tcp(Box<TcpFlow>),
    Udp(Box<UdpFlow>),
}

impl Flow {
    /// Tells this flow from others between the same ends.
    pub(super) fn number(&self) -> u64 {
        match self {
            Self::Tcp(flow) => flow.number(),
            Self::Udp(flow) => flow.number(),
        }
    }

    /// The number under which it was recognised, if it was.
    pub(super) fn index(&self) -> Option<u64> {
        match self {
            Self::Tcp(flow) => flow.index(),
            Self::Udp(flow) => flow.index(),
        }
    }

    pub(super) fn accounted_bytes(&self) -> usize {
        match self {
            Self::Tcp(flow) => flow.accounted_bytes(),
            Self::Udp(flow) => flow.accounted_bytes(),
        }
    }

    /// The connection, if it is one that speaks TLS, DTLS or WTLS.
    pub(super) fn tell(
        self,
        key: &Key,
        keys: &KeyLog,
        capture_start_ns: u64,
        evicted: bool,
        next_index: &mut u64,
    ) -> Option<Connection> {
        match self {
            Self::Tcp(flow) => flow.tell(key, keys, capture_start_ns, evicted, next_index),
            Self::Udp(flow) => flow.tell(key, capture_start_ns, evicted),
        }
    }
}
