//! The requirements of a side for its peer when a session was created.

use crate::certificate::TrustAnchor;
use crate::crypto::Provider;
use core::hash::{Hash, Hasher};
use std::hash::DefaultHasher;

/// Identifies a policy: the trusted roots of a side, and its requirements for the peer. A session is resumed only
/// under the policy under which it was created, because certificates are not checked again. Identifiers can only be
/// compared within one build of the program. They do not depend on data that an attacker can choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PolicyId(u64);

impl PolicyId {
    /// The identifier of a policy, from the requirements for the peer and the trusted roots.
    pub(crate) fn new<P: Provider>(requirements: &impl Hash, anchors: &[TrustAnchor<P>]) -> Self {
        let mut hasher = DefaultHasher::new();
        requirements.hash(&mut hasher);
        for anchor in anchors {
            (&anchor.name, anchor.key_hash, anchor.signature_algorithm).hash(&mut hasher);
        }
        Self(hasher.finish())
    }
}
