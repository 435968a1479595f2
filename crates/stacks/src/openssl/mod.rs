//! The stack `openssl`: libssl as it is, in memory, with its callbacks told to the recorder.

mod context;
mod endpoint;
mod foreign;
mod hello;
mod lifetime;
mod marks;
mod names;
mod psk;
mod security;
mod stack;
mod supported;
mod together;

pub use foreign::{ForeignClient, read_roots};
pub use stack::Openssl;

const NAME: &str = "openssl";
