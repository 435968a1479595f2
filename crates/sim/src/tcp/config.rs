//! How hosts do TCP.

use super::Congestion;
use serde::{Deserialize, Serialize};

/// How hosts are set up; both ends of a connection alike.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TcpConfig {
    /// Segments of the first window (RFC 6928).
    pub initial_window: u32,
    /// Congestion control.
    pub congestion: Congestion,
    /// Timestamps (RFC 7323), which take 12 bytes of each segment.
    pub timestamps: bool,
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Hold back a small segment while others are under way (RFC 896); TLS servers and clients turn it off.
    pub nagle: bool,
    /// What is added to the timers of probes and of reordering: 2 ms since Linux 6.7, two jiffies before.
    pub timer_floor_us: u32,
    /// Jiffies a second.
    pub hz: u32,
    /// Both ends stand on one machine, as in a test-bed of network namespaces, and their timers go by one clock.
    pub one_clock: bool,
    /// SYNs sent again with the first timeout, before it doubles (`tcp_syn_linear_timeouts`).
    pub syn_linear_timeouts: u32,
    /// SYNs sent again after those (`tcp_syn_retries`).
    pub syn_retries: u32,
    /// SYN-ACKs sent again (`tcp_synack_retries`).
    pub synack_retries: u32,
    /// Segments by which the client takes its own packets to be reordered at most, until it sees more (`tcp_reordering`).
    /// With fewer segments acknowledged out of order it waits a quarter of a round trip before it repairs.
    pub client_reordering: u32,
    /// The same of the server.
    pub server_reordering: u32,
    /// Acknowledge every segment at once (`ip route … quickack 1`).
    pub quick_ack: bool,
    /// Timeouts of data after which a connection is given up (`tcp_retries2`).
    pub retries: u32,
}

impl Default for TcpConfig {
    fn default() -> Self {
        Self {
            initial_window: 10,
            congestion: Congestion::Cubic,
            timestamps: true,
            sack: true,
            nagle: false,
            timer_floor_us: 2_000,
            hz: 250,
            one_clock: false,
            syn_linear_timeouts: 4,
            syn_retries: 6,
            synack_retries: 5,
            client_reordering: 3,
            server_reordering: 3,
            quick_ack: false,
            retries: 15,
        }
    }
}
