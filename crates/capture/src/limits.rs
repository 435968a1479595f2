//! Limits on untrusted input; exceeding one ends reading with an error of one line.
//!
//! [`crate::inspect::Limits`] bounds the memory for connections; beyond it, some are evicted. Limits of one
//! algorithm (fragments in flight, labels on a frame) are defined next to it.

/// Largest accepted packet: a greater length is damage.
pub(crate) const MAX_PACKET_BYTES: u32 = 1 << 24;
/// Limit of interfaces per section of a pcapng file; no machine has more.
pub(crate) const MAX_INTERFACES: usize = 1 << 16;
/// Longest accepted line of a key log; lines with a secret are shorter.
pub(crate) const MAX_KEY_LOG_LINE_BYTES: u64 = 1 << 12;
/// Largest accepted key log, which is kept in memory: the secrets of a few million connections.
pub(crate) const MAX_KEY_LOG_BYTES: u64 = 1 << 30;
