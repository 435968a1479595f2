//! The stack `openssl`: libssl as it is, in memory, with marks.

mod context;
mod endpoint;
mod marks;
mod names;
mod psk;
mod rig;

pub use names::supports;
pub use rig::OpensslRig;
