//! Who a peer has proved to be.

use super::ChainCertificate;
use std::sync::Arc;

/// A chain that was verified, whose holder proved in the handshake to have the leaf's key. Only the
/// engine makes one. It is shared, not copied, by all that refer to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerIdentity {
    certificates: Arc<[ChainCertificate]>,
    valid_from_unix_s: u64,
    valid_until_unix_s: u64,
}

impl PeerIdentity {
    /// From a chain and the time in which all of it that was verified is valid.
    pub(crate) fn new(certificates: Vec<ChainCertificate>, validity_unix_s: (u64, u64)) -> Self {
        let (valid_from_unix_s, valid_until_unix_s) = validity_unix_s;
        Self { certificates: certificates.into(), valid_from_unix_s, valid_until_unix_s }
    }

    /// The chain, leaf first.
    pub fn certificates(&self) -> &[ChainCertificate] {
        &self.certificates
    }

    /// Whether the chain is valid at a time.
    pub fn is_valid_at(&self, unix_s: u64) -> bool {
        (self.valid_from_unix_s..=self.valid_until_unix_s).contains(&unix_s)
    }
}
