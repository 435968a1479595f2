//! WTLS identities: generated from a profile and kept, or user-supplied.

mod chain;
mod describe;
mod issue;
mod key;
mod user;

pub use chain::read_certificates;
pub use describe::describe;
pub use issue::{identity, new_chain, one};
pub use key::private_key;
pub use user::load;

use shakedown_wtls::certificate::Certificate;
use std::fmt;

/// What a side presents and what its peer trusts.
#[derive(Clone, PartialEq, Eq)]
pub struct WtlsIdentity {
    /// Certificates that are sent, leaf first, without the root.
    pub chain: Vec<Certificate>,
    /// The root that the peer trusts.
    pub root: Certificate,
    /// The leaf's private key as PKCS #8 DER; [`private_key`] converts it for the engine.
    pub key: Vec<u8>,
    /// Common name that the peer checks.
    pub subject: String,
}

impl fmt::Debug for WtlsIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key must not appear in logs.
        let bytes: Vec<_> = self.chain.iter().map(|certificate| certificate.as_bytes().len()).collect();
        formatter
            .debug_struct("WtlsIdentity")
            .field("subject", &self.subject)
            .field("chain_bytes", &bytes)
            .finish()
    }
}
