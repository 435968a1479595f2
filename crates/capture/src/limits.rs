//! How much is read of what somebody else made, where going beyond ends reading with a line of error.
//!
//! What is kept about connections is bounded by [`crate::inspect::Limits`], beyond which some are evicted; bounds
//! that belong to one algorithm (fragments in flight, labels on a frame) stand beside it.

/// Largest packet believed: beyond it, a length is damage.
pub(crate) const MAX_PACKET_BYTES: u32 = 1 << 24;
/// Interfaces of one section of a pcapng file; no machine has more.
pub(crate) const MAX_INTERFACES: usize = 1 << 16;
/// A key log's longest line; none with a secret is as long.
pub(crate) const MAX_KEY_LOG_LINE_BYTES: u64 = 1 << 12;
/// A whole key log, which is kept in memory: the secrets of some millions of connections.
pub(crate) const MAX_KEY_LOG_BYTES: u64 = 1 << 30;
