//! What a side asked of its peer when a session was made.

use crate::certificate::TrustAnchor;
use crate::crypto::Provider;
use core::hash::{Hash, Hasher};
use std::hash::DefaultHasher;

/// Names a policy: whom a side trusts, and what it wants to know of its peer. A session is resumed
/// only under the policy that it was made under, as certificates are not checked again. The name
/// tells policies of one build apart; what an attacker chooses has no part in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PolicyId(u64);

impl PolicyId {
    /// The name of what is asked, and of those who may vouch for it.
    pub(crate) fn new<P: Provider>(asked: &impl Hash, anchors: &[TrustAnchor<P>]) -> Self {
        let mut hasher = DefaultHasher::new();
        asked.hash(&mut hasher);
        for anchor in anchors {
            (&anchor.name, anchor.key_hash, anchor.signature_algorithm).hash(&mut hasher);
        }
        Self(hasher.finish())
    }
}
