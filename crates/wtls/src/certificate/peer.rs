//! The authenticated identity of a peer.

use super::ChainCertificate;
use std::sync::Arc;

/// A verified chain, whose holder has proved in the handshake that it has the leaf's private key. Only the engine
/// creates it. Clones share the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerIdentity {
    certificates: Arc<[ChainCertificate]>,
    valid_from_unix_s: u64,
    valid_until_unix_s: u64,
}

impl PeerIdentity {
    /// From a chain, and the time in which all its verified certificates are valid.
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
