//! The stack `openssl`: libssl as it is, in memory, with marks.

mod context;
mod endpoint;
mod marks;
mod names;
mod psk;
mod rig;

pub(crate) use context::library;
pub use names::supports;
pub use rig::OpensslRig;
