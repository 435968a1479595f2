//! TCP settings.

use super::Congestion;
use serde::{Deserialize, Serialize};

/// The TCP settings of the hosts; the same for both ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TcpConfig {
    /// Segments of the first window (RFC 6928).
    pub initial_window: u32,
    /// Congestion control.
    pub congestion: Congestion,
    /// Timestamps (RFC 7323), which use 12 bytes of each segment.
    pub timestamps: bool,
    /// Time that is added to the timers of probes and of reordering: 2 ms since Linux 6.7, two jiffies before.
    pub timer_floor_us: u32,
    /// Jiffies per second.
    pub hz: u32,
    /// Both ends are on one machine, as in a test bed of network namespaces, and their timers use one clock.
    pub one_clock: bool,
    /// Retransmissions of a SYN with the first timeout, before it doubles (`tcp_syn_linear_timeouts`).
    pub syn_linear_timeouts: u32,
    /// Further retransmissions of a SYN (`tcp_syn_retries`).
    pub syn_retries: u32,
    /// Retransmissions of a SYN-ACK (`tcp_synack_retries`).
    pub synack_retries: u32,
    /// Reordering in segments that the client assumes for its packets until it detects more (`tcp_reordering`). If
    /// fewer are acknowledged out of order, it waits a quarter of a round trip before it retransmits.
    pub client_reordering: u32,
    /// The same for the server.
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
