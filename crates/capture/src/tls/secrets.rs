//! From a secret of the key log to records in the clear.

mod derivation;
mod opener;

pub(crate) use opener::{LegacyKeys, LegacyOpener, ModernOpener};
